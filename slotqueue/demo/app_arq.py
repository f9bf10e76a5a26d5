"""The application that `slotqueue demo` runs: each replica runs `slots`, each arq worker `WorkerSettings`."""

import asyncio
from typing import Any

from arq.connections import RedisSettings

from slotqueue import Every, SlotQueue, current_slot
from slotqueue.demo.stage import Stage
from slotqueue.enqueuers.arq import ArqEnqueuer

stage = Stage.of_this_process()  # what the command line said; it also writes down what happens, for the table

slots = SlotQueue(
    stage.url,
    enqueuer=stage.fragile(ArqEnqueuer(queue_name=stage.queue)),  # here one replica dies: after claim, before enqueue
    namespace=stage.namespace,
    replica=stage.name,
    sweep_every=0.5,
    on_event=stage.saw,
)
every = stage.window(Every(seconds=stage.every))  # of all the seconds there are, as many as were asked for
slots.add("report", every, on_crash="complete", lease=3, lookback=stage.slots)


async def report(ctx: dict[str, Any]) -> None:
    """Write down that it ran, which is all that this report does, and takes 0.4 s."""
    slot = current_slot()
    await stage.write_down(ctx["redis"], "begun", slot)
    await asyncio.sleep(0.2)
    stage.may_die("in the middle of a job", slot.key)  # here one worker dies
    await asyncio.sleep(0.2)
    await stage.write_down(ctx["redis"], "finished", slot)


@slots.worker
class WorkerSettings:
    """Run by arq's own command line: `arq slotqueue.demo.app_arq.WorkerSettings`."""

    functions = (report,)
    redis_settings = RedisSettings.from_dsn(stage.url)
    queue_name = stage.queue
    poll_delay = 0.05
