"""The public face is pinned: a name that comes or goes is a decision."""

from __future__ import annotations

import inspect

import pytest

import slotqueue
from slotqueue import errors


def test_the_public_names() -> None:
    assert sorted(slotqueue.__all__) == [
        "ConfigurationError", "Cron", "CurrentSlot", "Every", "InvalidSchedule", "InvalidSlotKey",
        "Job", "MissingExtra", "NotInSlot", "Policy", "Slot", "SlotQueue", "SlotQueueError", "SlotState",
        "StoreUnavailable", "VersionConflict", "current_slot", "slot_key",
    ]  # fmt: skip
    assert all(inspect.getdoc(getattr(slotqueue, name)) for name in slotqueue.__all__)


def test_every_error_has_the_common_base_and_stands_in_the_drawn_tree() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert all(issubclass(kind, errors.SlotQueueError) for kind in kinds)
    assert all(kind.__name__ in (errors.__doc__ or "") for kind in kinds)


@pytest.mark.parametrize(
    "kind,also",
    [
        (errors.ConfigurationError, ValueError),
        (errors.InvalidSchedule, ValueError),
        (errors.MissingExtra, ImportError),
        (errors.InvalidSlotKey, ValueError),
        (errors.NotInSlot, LookupError),
    ],
)
def test_errors_are_caught_by_the_names_that_people_know(kind: type[Exception], also: type[Exception]) -> None:
    assert issubclass(kind, also)


def test_a_configuration_error_says_which_job_and_which_argument() -> None:
    error = errors.ConfigurationError("9 is too many", job="rollup", argument="lookback")
    assert str(error) == "job 'rollup', lookback: 9 is too many"
    assert (error.job, error.argument, error.problem) == ("rollup", "lookback", "9 is too many")
