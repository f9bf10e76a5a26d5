"""slotqueue in front of Celery: `slotqueue run benchmarks.peers.slotqueue_celery_app:slots`, as the README says."""

from celery import Celery

from benchmarks.peers.schedule import LOAD
from benchmarks.peers.slotqueue_schedule import schedule
from slotqueue import Policy, SlotQueue
from slotqueue.enqueuers.celery import CeleryEnqueuer

app = Celery("benchmarks", broker=LOAD["url"])
slots = SlotQueue(LOAD["url"], enqueuer=CeleryEnqueuer(app), defaults=Policy(on_crash="complete"))
for number in range(LOAD["jobs"]):
    slots.add(f"job-{number}", schedule(number), task="work")
