"""The Celery application of the beat benchmark; `BENCH_BEAT` says as JSON what is wanted of it."""

import json
import os

from celery import Celery

SAID = json.loads(os.environ["BENCH_BEAT"])

app = Celery("benchmarks.beat_app", broker=SAID["url"], backend=SAID["url"])
app.conf.update(
    task_default_queue=SAID["queue"],
    slotqueue_namespace=SAID["queue"],
    redbeat_redis_url=SAID["url"],
    redbeat_key_prefix=f"{SAID['queue']}:",
    redbeat_lock_timeout=SAID["lock_timeout"],
    beat_max_loop_interval=SAID["lock_timeout"] / 5,
    beat_schedule={
        f"entry-{i}": {"task": "work", "schedule": SAID["every"], "args": (i,)} for i in range(SAID["count"])
    },
)
