"""Each row of the tables in docs/celery.md has its test."""

from __future__ import annotations

import re
from pathlib import Path

_HERE = Path(__file__).parent
_TEXT = (_HERE.parents[1] / "docs" / "celery.md").read_text(encoding="utf-8")

ENDS = {
    "success; `Ignore` raised by the task": "a_slot_runs_once_and_is_done a_task_that_ignores_itself_is_done",
    "`retry`, manual, automatic or with `throw=False`": (
        "the_countdown_of_a_retry_is_the_deadline a_retry_carries_the_fence_of_the_run_that_sent_it "
        "automatic_retries_are_postponed_and_their_last_is_final a_retry_that_is_sent_and_not_thrown_is_not_lost"
    ),
    "`replace` by one task": (
        "a_task_that_goes_on_in_the_place_of_another_ends_its_slot_and_what_else_comes_there_is_no_slot"
    ),
    "`replace` by a chain or a group": (
        "a_task_that_goes_on_in_the_place_of_another_ends_its_slot_and_what_else_comes_there_is_no_slot"
    ),
    "exception, retries exhausted, soft time limit": (
        "a_failure_is_final_and_keeps_its_error a_manual_retry_whose_tries_are_spent_is_final "
        "automatic_retries_are_postponed_and_their_last_is_final a_soft_time_limit_is_a_failure"
    ),
    "`Reject(requeue=True)` with late ack": "a_rejected_message_is_a_failure_unless_the_broker_has_it_again",
    "hard time limit, `revoke(terminate=True)`": "a_hard_time_limit_is_a_failure a_terminated_run_is_a_failure",
    "pool process killed": (
        "a_killed_pool_process_is_a_failure "
        "a_killed_pool_process_whose_message_returns_spends_an_attempt_when_its_lease_passes"
    ),
    "revoked, or expired at the worker": (
        "a_revoked_message_is_rejected a_message_that_expires_at_the_worker_is_rejected"
    ),
    "unknown task": "a_task_that_no_worker_knows_ends_dead",
    "expired in a RabbitMQ queue": ("a_message_that_expires_in_a_rabbitmq_queue_is_missed_by_nobody_but_the_sweep"),
    "a second message of the slot": (
        "a_second_message_of_a_done_slot_does_not_run a_duplicate_leaves_the_result_as_it_was "
        "slots_run_in_other_pools_as_well"
    ),
    "the store is away at the begin": "no_slot_runs_while_the_store_is_away",
}
PROMISES = {
    "worker killed in a run": (
        "a_killed_workers_slot_is_completed_by_another a_killed_workers_slot_is_lost_where_a_repeat_would_be_worse "
        "a_killed_worker_that_acks_late_costs_a_lease_and_a_sweep"
    ),
    "cold shutdown (SIGQUIT) in a run": (
        "a_cold_shutdown_is_a_crash_that_the_sweep_repairs a_cold_shutdown_loses_what_must_not_be_repeated"
    ),
    "warm shutdown (SIGTERM)": "a_warm_shutdown_finishes_what_runs_and_gives_back_what_waits",
    "worker killed, message in hand, not begun": "a_message_in_the_hand_of_a_killed_worker_runs_once",
    "visibility timeout shorter than the run": "a_visibility_timeout_shorter_than_the_job_repeats_nothing",
    "broker refuses, is silent, or does not confirm": (
        "a_refused_broker_fails_at_once a_broker_behind_a_black_hole_costs_a_few_seconds_and_never_the_loop "
        "what_rabbitmq_does_not_confirm_counts_as_refused"
    ),
}


def _rows(heading: str) -> list[str]:
    table = _TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| (.*?) \|", table, re.MULTILINE)[1:]


def _tests() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in _HERE.glob("test_*.py")]
    return {name for text in texts for name in re.findall(r"^(?:async )?def test_(\w+)", text, re.MULTILINE)}


def test_each_end_of_a_task_and_each_promise_has_its_tests() -> None:
    assert [row for row in _rows("What ends a slot, and how") if row != "---"] == list(ENDS)
    assert [row for row in _rows("What is guaranteed, per broker and ack mode") if row != "---"] == list(PROMISES)
    named = {name for names in (*ENDS.values(), *PROMISES.values()) for name in names.split()}
    assert named - _tests() == set()
