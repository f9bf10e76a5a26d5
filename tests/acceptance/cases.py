"""What went wrong for users of other schedulers, and the tests that say how slotqueue behaves there.

`python -m tests.acceptance.cases` writes docs/cases.md from this table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cases.md"
_THREAD = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")


@dataclass(frozen=True, slots=True)
class Case:
    """A failure in the field.

    Args:
        threads: where it was reported, "owner/repository#number", one or more with blanks between.
        what: went wrong, in short.
        tests: "path under tests::name of the function".
    """

    threads: str
    what: str
    tests: tuple[str, ...]


_DST = "unit/test_cron_dst.py::test_the_fire_times_around_a_clock_change_are_exactly_these"

CASES = (
    Case(
        "procrastinate-org/procrastinate#1495",
        "killed between the record and the message: the slot stays blocked",
        (
            "acceptance/test_claims.py::test_a_claim_that_nobody_enqueued_is_sent_by_another_replica_and_blocks_no_later_slot",
        ),
    ),
    Case(
        "kagkarlsson/db-scheduler#365 celery/celery#3270",
        "not finished is taken for dead, and the work is started again",
        (
            "acceptance/test_claims.py::test_open_slots_of_a_stopped_worker_pool_are_not_sent_again",
            "enqueuers/test_celery_facts.py::test_what_waits_for_workers_that_are_away_runs_once",
        ),
    ),
    Case(
        "python-arq/arq#432 python-arq/arq#417 python-arq/arq#531",
        "a kept result makes the next enqueue do nothing, and nobody hears of it",
        ("acceptance/test_claims.py::test_a_second_attempt_runs_whatever_arq_keeps_of_the_first",),
    ),
    Case(
        "python-arq/arq#196",
        "a short job is over and cleaned away before a slower replica looks, which starts it again",
        ("races/test_replicas.py::test_five_replicas_out_of_step_run_ten_slots_ten_times",),
    ),
    Case(
        "lukas-krecan/ShedLock#132 lukas-krecan/ShedLock#6 lukas-krecan/ShedLock#231",
        "a replica that was paused, or whose clock is wrong, runs a slot again",
        (
            "races/test_replicas.py::test_a_replica_that_was_frozen_over_some_slots_runs_none_again",
            "races/test_replicas.py::test_a_replica_that_takes_the_time_for_later_than_it_is_enqueues_nothing_early",
            "acceptance/test_claims.py::test_a_claim_that_would_die_too_early_is_refused_when_the_job_is_added",
        ),
    ),
    Case(
        "sibson/redbeat#208 sibson/redbeat#214",
        "an error while claiming is taken for a win",
        ("acceptance/test_claims.py::test_a_replica_whose_claims_never_arrive_wins_nothing_and_heals_itself",),
    ),
    Case(
        "bensheldon/good_job#767",
        "finished records are deleted, and with them the proof that they had run",
        ("acceptance/test_claims.py::test_a_replica_that_starts_late_finds_what_is_done",),
    ),
    Case(
        "celery/celery#5935 celery/kombu#337",
        "a message is delivered again after the visibility timeout, and runs twice",
        ("enqueuers/test_celery_facts.py::test_a_visibility_timeout_shorter_than_the_job_repeats_nothing",),
    ),
    Case(
        "python-arq/arq#343 python-arq/arq#300",
        "the in-progress key outlives a killed worker by minutes or hours",
        ("acceptance/test_claims.py::test_a_killed_workers_slot_runs_once_more_within_lease_and_sweep",),
    ),
    Case(
        "rq/rq-scheduler#312 rq/rq#1354 rq/rq#1531",
        "the lock expires while the scheduler still works through its list",
        ("acceptance/test_load.py::test_a_list_longer_than_the_grace_is_worked_through_once",),
    ),
    Case(
        "coleifer/huey#850",
        "the same task is sent several times in a minute",
        (
            "acceptance/test_load.py::test_ticks_with_nothing_due_ask_once_a_second_at_most_whether_stored_jobs_have_changed",
        ),
    ),
    Case(
        "coleifer/huey#663 sibson/redbeat#85 sibson/redbeat#100",
        "stuck at the lock for half an hour after a deploy",
        ("acceptance/test_outages.py::test_killed_replicas_leave_no_key_for_ever_and_hold_up_no_slot",),
    ),
    Case(
        "sibson/redbeat#163",
        "the lock is lost in a failover of Redis, and two schedule",
        (
            "connections/test_failover.py::test_a_failover_that_no_call_noticed_is_made_good",
            "soak/test_soak.py::test_every_promise_is_kept",
        ),
    ),
    Case(
        "rails/solid_queue#636 rails/solid_queue#731 rails/solid_queue#251",
        "who lost the race reports an enqueue as well; a false answer crashes the loop",
        (
            "acceptance/test_load.py::test_winners_and_losers_add_up",
            "acceptance/test_load.py::test_an_answer_that_says_nothing_is_no_acceptance",
        ),
    ),
    Case(
        "procrastinate-org/procrastinate#1158 procrastinate-org/procrastinate#1464 celery/celery#3005",
        "one job that cannot be enqueued stops all others",
        (
            "acceptance/test_load.py::test_jobs_that_misbehave_hold_up_no_other",
            "acceptance/test_load.py::test_arguments_that_do_not_serialise_are_refused_when_the_job_is_added",
        ),
    ),
    Case(
        "sibson/redbeat#230 sibson/redbeat#218 sibson/redbeat#129",
        "a laptop's sleep ends the scheduler",
        (
            "races/test_replicas.py::test_a_lone_replica_that_was_frozen_catches_up_each_slot_once",
            "races/test_replicas.py::test_a_lone_replica_that_was_frozen_too_long_says_what_it_missed",
        ),
    ),
    Case("celery/celery#10107", "an hourly job skips an hour in autumn", (_DST,)),
    Case(
        "kubernetes/kubernetes#121594",
        "a daily job runs twice in autumn",
        (
            _DST,
            "unit/test_cron_dst.py::test_the_next_fire_time_is_the_same_for_a_process_that_starts_in_the_middle",
        ),
    ),
    Case(
        "node-cron/node-cron#518 node-cron/node-cron#517 quartz-scheduler/quartz#51 agronholm/apscheduler#1059 "
        "HangfireIO/Cronos#36",
        "a time inside of the gap in spring is skipped for months, or lies in the past",
        (_DST,),
    ),
    Case("Steve-Mcl/node-red-contrib-cron-plus#108", "every minute, but for the repeated hour", (_DST,)),
    Case(
        "agronholm/apscheduler#606 agronholm/apscheduler#529 dragonmantank/cron-expression#220 cronie-crond/cronie#218",
        "a whole day is skipped, since 24 h were added to one of 23",
        (_DST,),
    ),
    Case(
        "celery/django-celery-beat#134 celery/celery#9653 cronie-crond/cronie#217",
        "an hour late on the day of the change",
        (_DST,),
    ),
    Case(
        "cronie-crond/cronie#124 node-cron/node-cron#174",
        "the host's own zone disturbs a schedule in another",
        ("unit/test_cron_dst.py::test_the_zone_of_the_host_changes_nothing",),
    ),
    Case(
        "celery/django-celery-beat#604 celery/celery#6438",
        "intervals stop at the end of summer time",
        ("unit/test_every.py::test_a_wait_through_the_end_of_summer_time_is_even",),
    ),
    Case(
        "celery/django-celery-beat#625 graphile/worker#252 graphile/worker#334",
        "zones of half and quarter hours",
        (_DST, "unit/test_cron_dst.py::test_a_shift_of_half_an_hour_follows_the_same_rule"),
    ),
    Case(
        "pallets-eco/croniter#141 Steve-Mcl/node-red-contrib-cron-plus#110 harrisiirak/cron-parser#115",
        "a date that never comes is accepted, and searched for without an end",
        ("unit/test_cron.py::test_a_date_that_never_comes_is_refused_at_once",),
    ),
    Case(
        "harrisiirak/cron-parser#410 taichino/croniter#142",
        "an impossible day with a weekday is refused, though the weekday comes",
        ("unit/test_cron.py::test_an_impossible_day_with_a_weekday_runs_on_the_weekday",),
    ),
    Case(
        "taichino/croniter#119 cronie-crond/cronie#200 HangfireIO/Cronos#95 cuu508/cronsim#3",
        "Sunday as 7, and ranges of days that wrap",
        ("unit/test_cron.py::test_weekdays_may_be_named_wrap_and_count_sunday_as_0_or_7",),
    ),
    Case(
        "taichino/croniter#23 dragonmantank/cron-expression#71",
        "fields out of range are accepted",
        ("unit/test_cron.py::test_what_is_no_expression_or_ambiguous_is_refused",),
    ),
    Case(
        "Scogun/kcron-common#35",
        "steps that do not divide",
        ("unit/test_cron.py::test_steps_that_do_not_divide_start_anew",),
    ),
    Case(
        "celery/celery#2531 celery/django-celery-beat#683 celery/django-celery-beat#912",
        "a changed schedule fires at once",
        ("acceptance/test_changes.py::test_a_changed_schedule_fires_at_its_next_slot_not_at_the_deploy",),
    ),
    Case(
        "celery/django-celery-beat#537 celery/celery#4806 celery/celery#370",
        "a job that is enabled again fires at once",
        (
            "acceptance/test_changes.py::test_a_job_that_was_away_for_weeks_owes_nothing_when_it_returns",
            "store/test_by_hand.py::test_what_fell_due_in_a_pause_that_is_over_is_skipped_and_not_caught_up",
        ),
    ),
    Case(
        "bensheldon/good_job#1484 sidekiq-cron/sidekiq-cron#111",
        "a deploy straddles the slot, which is missed",
        ("acceptance/test_changes.py::test_a_slot_that_a_deploy_straddled_is_enqueued_once_with_its_own_time",),
    ),
    Case(
        "csi-addons/kubernetes-csi-addons#374",
        "a shorter schedule counts a hundred slots as missed",
        ("acceptance/test_changes.py::test_a_shortened_schedule_owes_none_of_the_slots_it_would_have_had",),
    ),
    Case(
        "sidekiq-cron/sidekiq-cron#147 sidekiq-cron/sidekiq-cron#132 timgit/pg-boss#914",
        "a fixed window of what is due misses slots when the tick is late",
        (
            "unit/test_planner.py::test_ticks_that_are_starved_for_a_day_pass_over_no_slot",
            "races/test_replicas.py::test_a_lone_replica_that_was_frozen_catches_up_each_slot_once",
        ),
    ),
    Case(
        "taskforcesh/bullmq#2966 sibson/redbeat#151 riverqueue/river#791 getsentry/sentry#47333",
        "the phase of an interval starts anew with each process",
        (
            "unit/test_every.py::test_the_grid_stands_on_the_epoch",
            "unit/test_every.py::test_replicas_agree_whenever_they_started",
        ),
    ),
    Case(
        "tastyware/streaq#152 agronholm/apscheduler#182 agronholm/apscheduler#292",
        "a stale run fires far outside of its window, or one that is a second late is dropped",
        ("acceptance/test_late.py::test_a_message_past_its_time_is_recorded_as_expired_and_one_without_runs_once",),
    ),
    Case(
        "celery/celery#4041 agronholm/apscheduler#864",
        "a daily task is sent thousands of times",
        (
            "acceptance/test_changes.py::test_a_schedule_that_fails_at_run_time_is_set_aside",
            "unit/test_planner.py::test_a_schedule_that_does_not_grow_never_makes_a_tight_loop",
        ),
    ),
    Case(
        "sibson/redbeat#11 sibson/redbeat#221 openclaw/openclaw#71603",
        "a removed job still fires from old state",
        ("acceptance/test_changes.py::test_slots_of_a_removed_job_are_not_revived",),
    ),
    Case(
        "tastyware/streaq#20 OptimalBits/bull#1675 taskforcesh/bullmq#453 tobymao/saq#116",
        "a change is ignored, or makes a second job of the first",
        ("acceptance/test_changes.py::test_a_job_is_its_name_whatever_else_changes",),
    ),
    Case(
        "python-arq/arq#435 python-arq/arq#386 python-arq/arq#498 resque/resque-scheduler#523",
        "a restart of Redis ends the loop",
        (
            "acceptance/test_outages.py::test_a_redis_that_was_killed_for_a_while_costs_no_slot",
            "acceptance/test_outages.py::test_a_network_that_breaks_costs_no_slot",
            "acceptance/test_outages.py::test_a_redis_that_hangs_or_loads_is_waited_for",
        ),
    ),
    Case(
        "redis/redis#4624 Grokzen/redis-py-cluster#244 betagouv/rdv-service-public#3469",
        "READONLY and LOADING after a failover",
        (
            "connections/test_failover.py::test_a_primary_that_was_demoted_is_left_and_its_refusals_are_no_lost_races",
            "acceptance/test_outages.py::test_a_redis_that_hangs_or_loads_is_waited_for",
        ),
    ),
    Case(
        "taskforcesh/bullmq#459 rq/rq#1942 celery/celery#9436",
        "CROSSSLOT on a cluster",
        (
            "connections/test_cluster.py::test_every_verb_works_on_whichever_node_the_namespace_lies",
            "connections/test_cluster.py::test_a_node_that_is_asked_as_if_it_were_alone_says_so_in_one_line",
        ),
    ),
    Case(
        "agronholm/apscheduler#160 agronholm/apscheduler#655 agronholm/apscheduler#218",
        "forked workers share a socket, or each start a scheduler",
        (
            "embedding/test_wsgi.py::test_preloaded_workers_tick_and_the_master_does_not",
            "store/test_runners.py::test_a_forked_child_has_a_connection_of_its_own",
            "unit/test_guard_threads.py::test_a_forked_child_has_a_heartbeat_of_its_own",
        ),
    ),
    Case(
        "python-arq/arq#187 rq/rq#2273",
        "no signal handlers in loops, no SIGALRM",
        (
            "cli/test_signals.py::test_a_tick_hands_its_functions_back_where_loops_know_no_signals_and_there_is_no_alarm",
            "cli/test_signals.py::test_ctrl_c_is_130_without_a_word_of_clicks",
        ),
    ),
    Case(
        "celery/django-celery-beat#445 celery/django-celery-beat#454 celery/celery#4175 celery/celery#4996",
        "many entries: hours, CPU and memory",
        (
            "unit/test_planner.py::test_an_idle_job_costs_a_pass_nothing",
            "acceptance/test_many_jobs.py::test_a_hundred_thousand_jobs_with_damaged_ones_among_them",
        ),
    ),
    Case(
        "temporalio/temporal#10503 rfsbraz/deleterr#292",
        "missed and skipped slots are seen by nobody",
        (
            "store/test_counts.py::test_the_ends_are_what_was_due_with_one_of_each",
            "soak/test_soak.py::test_every_promise_is_kept",
        ),
    ),
)

_HEAD = """# What went wrong elsewhere

Failures that users of other schedulers reported in public, and the tests here that show what slotqueue does there. The
same tests run under load as well: `make test-load`, in [how it is broken on purpose](reliability.md). Made from
`tests/acceptance/cases.py`.

| reported | what went wrong | tests |
| --- | --- | --- |
"""


def page() -> str:
    """The page, in Markdown."""
    return _HEAD + "".join(map(_row, CASES))


def exists(test: str) -> bool:
    """Whether there is such a test."""
    path, _, name = test.partition("::")
    file = ROOT / "tests" / path
    return file.exists() and f"def {name}(" in file.read_text(encoding="utf-8")


def _row(case: Case) -> str:
    threads = _THREAD.sub(r"[\1#\2](https://github.com/\1/issues/\2)", case.threads).replace(") [", "), [")
    return f"| {threads} | {case.what} | {'<br>'.join(f'`{each}`' for each in case.tests)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
