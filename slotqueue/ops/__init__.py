"""What an operator asks and does: async functions over a `Site` that answer with frozen values. Nothing prints.

>>> (await slots.ops.account("ran:rollup:2026-10-02T03:00")).says
>>> site = Site.at("redis://localhost:6379/0", "ran")              # where there is no code
>>> (await account(site, "ran:rollup:2026-10-02T03:00")).says
"""

from slotqueue.ops.absence import Why
from slotqueue.ops.account import Account, LastRun, Missed, account
from slotqueue.ops.audit import Audited, JobAudited, Outcome, audit
from slotqueue.ops.backfill import Progress, Range, backfill, survey
from slotqueue.ops.checking import Checked, JobChecked, check, check_jobs
from slotqueue.ops.findings import Finding, Severity
from slotqueue.ops.fires import Fire, upcoming
from slotqueue.ops.forgetting import Forgotten, forget
from slotqueue.ops.health import Health, health
from slotqueue.ops.in_force import InForce, in_force
from slotqueue.ops.letters import discard_letters, letters, retry_letters
from slotqueue.ops.observing import Observed, observe
from slotqueue.ops.ops import Ops
from slotqueue.ops.orders import Order, OrderOutcome, rerun, retry, trigger
from slotqueue.ops.pauses import Pause, pause, pauses, resume
from slotqueue.ops.processes import ReplicaSeen, WorkerSeen, replicas, workers
from slotqueue.ops.site import Site
from slotqueue.ops.slots import Recent, SlotRow, recent
from slotqueue.ops.status import JobStatus, Status, status
from slotqueue.ops.stored import Stored, put, remove, stored
from slotqueue.ops.timeline import Moment

__all__ = [
    "Account",
    "Audited",
    "Checked",
    "Finding",
    "Fire",
    "Forgotten",
    "Health",
    "InForce",
    "JobAudited",
    "JobChecked",
    "JobStatus",
    "LastRun",
    "Missed",
    "Moment",
    "Observed",
    "Ops",
    "Order",
    "OrderOutcome",
    "Outcome",
    "Pause",
    "Progress",
    "Range",
    "Recent",
    "ReplicaSeen",
    "Severity",
    "Site",
    "SlotRow",
    "Status",
    "Stored",
    "Why",
    "WorkerSeen",
    "account",
    "audit",
    "backfill",
    "check",
    "check_jobs",
    "discard_letters",
    "forget",
    "health",
    "in_force",
    "letters",
    "observe",
    "pause",
    "pauses",
    "put",
    "recent",
    "remove",
    "replicas",
    "rerun",
    "resume",
    "retry",
    "retry_letters",
    "status",
    "stored",
    "survey",
    "trigger",
    "upcoming",
    "workers",
]
