"""The application that `slotqueue demo --worker celery` runs: each replica runs `slots`, each Celery worker `app`."""

import time

from celery import Celery

from slotqueue import Every, SlotQueue, current_slot
from slotqueue.demo.stage import Stage
from slotqueue.enqueuers.celery import CeleryEnqueuer

stage = Stage.of_this_process()  # what the command line said; it also writes down what happens, for the table
redis = stage.open_redis()

app = Celery("demo", broker=stage.url)  # run by Celery's own command line: `celery -A slotqueue.demo.app_celery worker`
app.conf.update(
    broker_transport_options={"global_keyprefix": f"{stage.queue}:"},  # apart from whatever else is in this Redis
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
)

slots = SlotQueue(  # its import is all that guards a Celery worker
    stage.url,
    enqueuer=stage.fragile(CeleryEnqueuer(app)),  # here one replica dies: after claim, before enqueue
    namespace=stage.namespace,
    replica=stage.name,
    sweep_every=0.5,
    on_event=stage.saw,
)
every = stage.window(Every(seconds=stage.every))  # of all the seconds there are, as many as were asked for
slots.add("report", every, on_crash="complete", lease=3, lookback=stage.slots)


@app.task(name="report")
def report() -> None:
    """Write down that it ran, which is all that this report does, and takes 0.4 s."""
    slot = current_slot()
    stage.write_down_blocking(redis, "begun", slot)
    time.sleep(0.2)
    stage.may_die("in the middle of a job", slot.key)  # here one worker dies
    time.sleep(0.2)
    stage.write_down_blocking(redis, "finished", slot)
