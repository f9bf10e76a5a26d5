"""What an operator asks: async functions over a `Site`, each answering with frozen values. Nothing here prints.

>>> (await slots.ops.account("ran:rollup:2026-10-02T03:00")).says
>>> site = Site.at("redis://localhost:6379/0", "ran")              # where there is no code
>>> (await account(site, "ran:rollup:2026-10-02T03:00")).says
"""

from slotqueue.ops.absence import Why
from slotqueue.ops.account import Account, LastRun, Missed, account
from slotqueue.ops.audit import Audited, JobAudited, Outcome, audit
from slotqueue.ops.checking import Checked, JobChecked, check, check_jobs
from slotqueue.ops.findings import Finding, Severity
from slotqueue.ops.fires import Fire, upcoming
from slotqueue.ops.ops import Ops
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
    "JobAudited",
    "JobChecked",
    "JobStatus",
    "LastRun",
    "Missed",
    "Moment",
    "Ops",
    "Outcome",
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
    "check",
    "check_jobs",
    "put",
    "recent",
    "remove",
    "replicas",
    "status",
    "stored",
    "upcoming",
    "workers",
]
