"""slotqueue in front of arq: `slotqueue run benchmarks.peers.slotqueue_app:slots`, as the README says."""

from benchmarks.peers.schedule import LOAD
from benchmarks.peers.slotqueue_schedule import schedule
from slotqueue import Policy, SlotQueue
from slotqueue.enqueuers.arq import ArqEnqueuer

slots = SlotQueue(LOAD["url"], enqueuer=ArqEnqueuer(), defaults=Policy(on_crash="complete"))
for number in range(LOAD["jobs"]):
    slots.add(f"job-{number}", schedule(number), task="work")
