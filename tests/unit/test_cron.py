"""What cron expressions mean, and which are refused."""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from slotqueue.errors import ConfigurationError, InvalidSchedule
from slotqueue.schedules import LATEST, Cron, Every, newest_between


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def fires(expression: str, start: str, end: str, tz: str = "UTC") -> list[str]:
    return [f"{fire:%m-%dT%H:%M}" for fire in Cron(expression, tz).between(at(start), at(end))]


JUNE = ("2026-06-01", "2026-07-01")


@pytest.mark.parametrize(
    "expression, days",
    [
        ("0 0 * * 7", [7, 14, 21, 28]),
        ("0 0 * * 0", [7, 14, 21, 28]),
        ("0 0 * * 5-7", [5, 6, 7, 12, 13, 14, 19, 20, 21, 26, 27, 28]),
        ("0 0 * * sat-sun", [6, 7, 13, 14, 20, 21, 27, 28]),
        ("0 0 * * 0-7", list(range(1, 31))),
        ("0 0 * * mon-sun", list(range(1, 31))),
        ("0 0 * * 1-7", list(range(1, 31))),
        ("0 0 * * fri-mon", [1, 5, 6, 7, 8, 12, 13, 14, 15, 19, 20, 21, 22, 26, 27, 28, 29]),
        ("0 0 * * 5-1", [1, 5, 6, 7, 8, 12, 13, 14, 15, 19, 20, 21, 22, 26, 27, 28, 29]),
        ("0 0 * * fri-mon/2", [5, 7, 12, 14, 19, 21, 26, 28]),
        ("0 0 * * sat-sun,wed", [3, 6, 7, 10, 13, 14, 17, 20, 21, 24, 27, 28]),
        ("0 0 * * 7-1", [1, 7, 8, 14, 15, 21, 22, 28, 29]),
        ("0 0 * * 6-0", [6, 7, 13, 14, 20, 21, 27, 28]),
        ("0 0 * * fri-5/2", [5, 12, 19, 26]),
        ("0 0 3-3/2 * *", [3]),
        ("0-0/5 0 1-1/1 jun-6/3 *", [1]),
        ("0 0 * * 5L", [26]),
        ("0 0 * * 1#2", [8]),
        ("0 0 L * *", [30]),
        ("0 0 LW * *", [30]),
    ],
)
def test_weekdays_may_be_named_wrap_and_count_sunday_as_0_or_7(expression: str, days: list[int]) -> None:
    assert fires(expression, *JUNE) == [f"06-{day:02}T00:00" for day in days]


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("0 0 31 2 1", ["02-02T00:00", "02-09T00:00", "02-16T00:00", "02-23T00:00"]),
        ("48 14 31 jun sun", ["06-07T14:48", "06-14T14:48", "06-21T14:48", "06-28T14:48"]),
    ],
)
def test_an_impossible_day_with_a_weekday_runs_on_the_weekday(expression: str, expected: list[str]) -> None:
    assert fires(expression, "2026-01-01", "2027-01-01") == expected


@pytest.mark.parametrize(
    "expression, start, expected",
    [
        ("*/7 * * * *", "2026-06-01T00:45", ["06-01T00:49", "06-01T00:56", "06-01T01:00", "06-01T01:07"]),
        (
            "0 */5 * * *",
            "2026-06-01T00:00",
            ["06-01T00:00", "06-01T05:00", "06-01T10:00", "06-01T15:00", "06-01T20:00", "06-02T00:00"],
        ),
        ("0 0 */2 * *", "2026-01-28T00:00", ["01-29T00:00", "01-31T00:00", "02-01T00:00", "02-03T00:00"]),
    ],
)
def test_steps_that_do_not_divide_start_anew(expression: str, start: str, expected: list[str]) -> None:
    found = Cron(expression).between(at(start), LATEST)
    assert [f"{next(found):%m-%dT%H:%M}" for _ in expected] == expected


@pytest.mark.parametrize(
    "alias, expression",
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@Annually", "0 0 1 1 *"),
    ],
)
def test_an_alias_is_the_expression_it_stands_for(alias: str, expression: str) -> None:
    assert Cron(alias) == Cron(expression)
    assert str(Cron(alias)) == str(Cron(expression))


IMPOSSIBLE = [
    "0 0 31 2 *",
    "0 0 30 2 *",
    "0 0 31 4 *",
    "0 0 31 2,4,6,9,11 *",
    "0 0 */29 2 1#5",
    "0 0 */30 2 tue#5",
    "0 0 31 2 */2",
    "0 0 */31 * 1#2",
]


@pytest.mark.parametrize("expression", IMPOSSIBLE)
def test_a_date_that_never_comes_is_refused_at_once(expression: str) -> None:
    begun = time.process_time()
    with pytest.raises(InvalidSchedule, match="day-of-month"):
        Cron(expression)
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize("expression", ["0 0 29 2 *", "0 0 29 2 */7", "0 0 * 2 0#5", "0 0 31,L 2 *", "0 0 29-31 2 1-5"])
def test_a_rare_date_is_accepted(expression: str) -> None:
    assert Cron(expression).next_after(at("2026-01-01")) is not None


REFUSED = [
    "* * 0 * *",
    "* * * 0 *",
    "60 * * * *",
    "* 24 * * *",
    "* * * * 8",
    "* * 32 * *",
    "* * * 13 *",
    "*/0 * * * *",
    "5-1 * * * *",
    "0 22-2 * * *",
    "0 0 * nov-feb *",
    "* * * *",
    "* * * * * *",
    "* * * * * * *",
    "",
    " ",
    "@reboot",
    "@every 5m",
    "@",
    "@daily @daily",
    "0 0 1/2 * *",
    "0/15 * * * *",
    "5,1/2 * * * *",
    "0 0 L/2 * *",
    "0 0 * * MON/2",
    "-1 * * * *",
    "1- * * * *",
    "1,,2 * * * *",
    ", * * * *",
    "* * * * 5#6",
    "* * * * L",
    "* * * * monday",
    "? * * * *",
    "1.5 * * * *",
    "\u0663 * * * *",
    "\u00b2 * * * *",
    "\uff15 * * * *",
    "0 0 * * \u017fun",
    "0\u00a00 * * *",
    "0 0 * * *\x00",
    "1" * 5000 + " * * * *",
    "*/" + "1" * 5000 + " * * * *",
]


@pytest.mark.parametrize("expression", REFUSED)
def test_what_is_no_expression_or_ambiguous_is_refused(expression: str) -> None:
    with pytest.raises(InvalidSchedule, match="right is"):
        Cron(expression)


@pytest.mark.parametrize("expression", [None, 5, b"* * * * *", ["*"] * 5])
def test_what_is_no_text_is_refused(expression: object) -> None:
    with pytest.raises(InvalidSchedule, match="no cron expression"):
        Cron(expression)  # type: ignore[arg-type]


def test_a_step_behind_a_single_value_is_refused_with_what_to_write_instead() -> None:
    with pytest.raises(InvalidSchedule, match=r"right is 1-31/2"):
        Cron("0 0 1/2 * *")
    assert fires("0 0 1-31/2 * *", "2026-06-01", "2026-06-06") == ["06-01T00:00", "06-03T00:00", "06-05T00:00"]


def test_a_bad_field_is_named_with_what_it_takes() -> None:
    with pytest.raises(InvalidSchedule, match=r"'0 24 \* \* \*': bad hour '24'; right is 0-23"):
        Cron("0 24 * * *")


@pytest.mark.parametrize(
    "tz", ["", "Europe/Nowhere", "Europe", "../etc/passwd", "/etc/localtime", "localtime", "right/UTC"]
)
def test_an_unknown_zone_is_refused_by_name(tz: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Cron("0 0 * * *", tz)
    assert repr(tz) in str(caught.value)
    assert caught.value.argument == "tz"


@pytest.mark.parametrize(
    "tz", [None, 1, UTC, ZoneInfo("Europe/Berlin"), b"UTC", ["UTC"], "\x00", "\ud800", "a" * 5000, "Zürich"]
)
def test_what_is_no_zone_name_is_refused_and_never_raises_anything_else(tz: object) -> None:
    with pytest.raises(InvalidSchedule):
        Cron("0 0 * * *", tz)  # type: ignore[arg-type]


@pytest.mark.parametrize("expression", ["0 0 * * mon", "0\t0  * * MON", " 0 0 * * Mon\n"])
def test_spelling_does_not_change_the_identity(expression: str) -> None:
    assert Cron(expression) == Cron("0 0 * * MON")
    assert hash(Cron(expression)) == hash(Cron("0 0 * * MON"))
    assert str(Cron(expression)) == "cron 0 0 * * MON UTC"


def test_expression_zone_and_seconds_each_change_the_identity() -> None:
    crons = [
        Cron("0 3 * * *"),
        Cron("0 4 * * *"),
        Cron("0 3 * * *", "Europe/Berlin"),
        Cron("0 0 3 * * *", seconds=True),
    ]
    assert len(set(crons)) == len({str(cron) for cron in crons}) == 4


@pytest.mark.parametrize(
    "cron, text",
    [
        (Cron("0 3 * * *", tz="Europe/Berlin"), "Cron('0 3 * * *', tz='Europe/Berlin')"),
        (Cron("*/5 * * * * *", seconds=True), "Cron('*/5 * * * * *', tz='UTC', seconds=True)"),
    ],
)
def test_the_repr_builds_the_schedule_again(cron: Cron, text: str) -> None:
    assert repr(cron) == text
    assert eval(text) == cron


def test_a_cron_is_an_immutable_value_that_can_be_copied_and_pickled() -> None:
    cron = Cron("30 2 * * *", "America/New_York")
    with pytest.raises(AttributeError):
        cron.tz = "UTC"  # type: ignore[misc]
    for twin in (copy.copy(cron), copy.deepcopy(cron), pickle.loads(pickle.dumps(cron))):
        assert twin == cron
        assert twin.next_after(at("2026-03-08")) == at("2026-03-08T07:00")


def test_seconds_are_a_sixth_field_in_front() -> None:
    cron = Cron("*/20 30 3 * * *", seconds=True)
    found = list(cron.between(at("2026-06-01"), at("2026-06-02")))
    assert found == [at(f"2026-06-01T03:30:{second}") for second in ("00", "20", "40")]
    for refused in ("* * * * *", "@daily"):
        with pytest.raises(InvalidSchedule):
            Cron(refused, seconds=True)
    with pytest.raises(InvalidSchedule, match="True or False"):
        Cron("* * * * *", seconds="yes")  # type: ignore[arg-type]


NAIVE = datetime(2026, 6, 1)


@pytest.mark.parametrize("schedule", [Cron("0 * * * *"), Cron("0 * * * *", "Europe/Berlin"), Every(hours=1)])
@pytest.mark.parametrize("wrong", [NAIVE, None, 0, "2026-06-01T00:00Z"])
def test_naive_datetimes_are_refused_before_anything_is_iterated(schedule: Cron | Every, wrong: datetime) -> None:
    fine = at("2026-06-01")
    for ask in (
        lambda: schedule.next_after(wrong),
        lambda: schedule.latest_at(wrong),
        lambda: schedule.between(wrong, fine),
        lambda: schedule.between(fine, wrong),
        lambda: schedule.last_between(wrong, fine, 1),
        lambda: newest_between(schedule, fine, wrong, 1),
    ):
        with pytest.raises(ConfigurationError, match="aware") as caught:
            ask()
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("schedule", [Cron("0 * * * *"), Cron("0 * * * *", "Asia/Kolkata"), Every(hours=1)])
def test_answers_are_in_utc_whatever_zone_was_asked_in(schedule: Cron | Every) -> None:
    asked = at("2026-06-01T00:10").astimezone(timezone(timedelta(hours=-5, minutes=-30)))
    answers = [
        schedule.next_after(asked),
        schedule.latest_at(asked),
        *schedule.between(asked, asked + timedelta(hours=2)),
    ]
    assert len(answers) == 4
    assert all(answer is not None and answer.tzinfo is UTC for answer in answers)
    assert answers == [
        schedule.next_after(at("2026-06-01T00:10")),
        schedule.latest_at(at("2026-06-01T00:10")),
        *answers[2:],
    ]


@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin"])
def test_a_rare_schedule_is_found_in_both_directions_quickly(tz: str) -> None:
    leap = Cron("30 12 29 2 *", tz)
    hour = 12 if tz == "UTC" else 11
    begun = time.process_time()
    assert leap.next_after(at("2026-01-01")) == at(f"2028-02-29T{hour}:30")
    assert leap.latest_at(at("2027-12-01")) == at(f"2024-02-29T{hour}:30")
    assert leap.next_after(at("2096-03-01")) == at(f"2104-02-29T{hour}:30")
    assert leap.last_between(at("2000-01-01"), at("2026-01-01"), 2) == [at(f"20{y}-02-29T{hour}:30") for y in (20, 24)]
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize("tz", ["UTC", "America/New_York", "Pacific/Apia"])
@pytest.mark.parametrize("expression", ["* * * * *", "0 3 * * *", "0 0 29 2 *"])
def test_the_ends_of_the_range_of_datetime_are_answered_with_none(expression: str, tz: str) -> None:
    cron = Cron(expression, tz)
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    earliest, newest = cron.next_after(first), cron.latest_at(last)
    assert cron.next_after(last) is None
    assert cron.latest_at(first) is None
    assert earliest is not None
    assert earliest.year <= 8
    assert newest is not None
    assert newest.year >= 9990
    assert cron.next_after(newest) is None
    assert cron.last_between(first, last, 1) == [newest]
    beyond = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
    assert cron.next_after(beyond) is None


def test_a_schedule_whose_times_all_fall_into_gaps_ends_instead_of_searching_for_ever() -> None:
    """Minutes `*` make it WILDCARD, and since 2007 New York skips that hour on that day, every year."""
    cron = Cron("* 2 8-14 3 */7", "America/New_York")
    begun = time.process_time()
    assert cron.next_after(at("2026-01-01")) is None
    assert time.process_time() - begun < 2
    assert cron.latest_at(at("2026-01-01")) == at("2006-03-12T07:59")


def test_the_newest_of_a_long_gap_come_without_a_walk() -> None:
    cron = Cron("* * * * * *", "Europe/Berlin", seconds=True)
    begun = time.process_time()
    newest = cron.last_between(at("1990-01-01"), at("2026-01-01"), 3)
    assert newest == [at(f"2025-12-31T23:59:{second}") for second in (57, 58, 59)]
    assert time.process_time() - begun < 0.5
    assert cron.last_between(at("1990-01-01"), at("2026-01-01"), 0) == []
    assert cron.last_between(at("2026-01-01"), at("2026-01-01"), 3) == []


class Mondays:
    """A schedule of somebody else's: three methods and nothing more."""

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        return Cron("0 0 * * 1").between(start, end)

    def next_after(self, t: datetime) -> datetime | None:
        return Cron("0 0 * * 1").next_after(t)

    def latest_at(self, t: datetime) -> datetime | None:
        return Cron("0 0 * * 1").latest_at(t)


class Broken(Mondays):
    def latest_at(self, t: datetime) -> datetime | None:
        return self.next_after(t)


def test_the_newest_are_found_for_any_object_with_the_three_methods() -> None:
    start, end = at("2026-06-01"), at("2026-06-22")
    assert newest_between(Mondays(), start, end, 2) == [at("2026-06-08"), at("2026-06-15")]
    assert newest_between(Mondays(), start, end, 9) == [at("2026-06-01"), at("2026-06-08"), at("2026-06-15")]
    assert newest_between(Mondays(), end, start, 9) == []
    assert newest_between(Cron("0 0 * * 1"), start, end, 2) == [at("2026-06-08"), at("2026-06-15")]
    with pytest.raises(ConfigurationError, match="latest_at"):
        newest_between(Broken(), start, end, 2)


def test_equal_fields_share_their_values_so_that_many_crons_stay_small() -> None:
    one, other = Cron("*/5 1 * * *"), Cron("*/5 2 * * *", "Europe/Berlin")
    assert one._walls.minutes is other._walls.minutes
    assert one._walls.days is other._walls.days


def test_a_schedule_that_falls_into_every_gap_is_searched_backwards_in_bounded_time() -> None:
    no_more = Cron("* 2 8-14 3 */7", tz="America/New_York")
    now = datetime(2026, 11, 30, tzinfo=UTC)
    began = time.process_time()
    assert no_more.next_after(now) is None
    assert no_more.latest_at(now) == datetime(2006, 3, 12, 7, 59, tzinfo=UTC)
    assert no_more.last_between(datetime(2007, 1, 1, tzinfo=UTC), now, 3) == []
    assert time.process_time() - began < 2, "each step back looked four hundred years ahead again"


@pytest.mark.parametrize("piece", [1, 500_000, 999_999])
def test_within_a_second_every_instant_has_one_answer(piece: int) -> None:
    cron, at = Cron("* * * * * *", seconds=True), datetime(2026, 11, 30, 9, 0, 7, tzinfo=UTC)
    within = at + timedelta(microseconds=piece)
    assert cron.next_after(within) == cron.next_after(at) == at + timedelta(seconds=1)
    assert cron.latest_at(within) == cron.latest_at(at) == at
    assert cron.latest_at(at - timedelta(microseconds=piece)) == at - timedelta(seconds=1)
