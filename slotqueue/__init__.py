"""Scheduled work on many replicas: each slot is claimed once in Redis, and enqueued under one id into arq or Celery."""

from slotqueue.app import SlotQueue
from slotqueue.current import CurrentSlot, current_slot
from slotqueue.errors import (
    ConfigurationError,
    InvalidSchedule,
    InvalidSlotKey,
    MissingExtra,
    NotInSlot,
    SlotQueueError,
    StoreUnavailable,
    VersionConflict,
)
from slotqueue.jobs import Job
from slotqueue.policy import Policy
from slotqueue.schedules import Cron, Every
from slotqueue.slots import Slot, SlotState, slot_key

__all__ = [
    "ConfigurationError",
    "Cron",
    "CurrentSlot",
    "Every",
    "InvalidSchedule",
    "InvalidSlotKey",
    "Job",
    "MissingExtra",
    "NotInSlot",
    "Policy",
    "Slot",
    "SlotQueue",
    "SlotQueueError",
    "SlotState",
    "StoreUnavailable",
    "VersionConflict",
    "current_slot",
    "slot_key",
]
