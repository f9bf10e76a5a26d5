"""What holds for every schedule, zone and instant; the rule for clock changes against a walk through the minutes."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from slotqueue.errors import InvalidSchedule
from slotqueue.schedules import Cron, Every, newest_between

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

# Zone and an instant near a change of its clocks: an hour, half an hour, a day skipped, a day repeated, an hour at
# midnight, a change of standard time by half an hour, a shift that ends off the minute.
CHANGES = [
    ("UTC", "2026-03-08T07:00"),
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("Europe/Berlin", "2026-10-25T01:00"),
    ("Europe/Dublin", "2026-03-29T01:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("Pacific/Kwajalein", "1969-09-30T13:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00"),
    ("America/Havana", "2026-11-01T05:00"),
    ("Asia/Pyongyang", "2018-05-04T15:00"),
    ("Asia/Pyongyang", "2015-08-14T15:00"),
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("Africa/Monrovia", "1972-01-07T00:44:30"),
    ("Asia/Kathmandu", "1985-12-31T18:30"),
]


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> str:
    def term() -> str:
        first = draw(st.integers(low, high))
        last = draw(st.integers(first, high))
        step = draw(st.integers(1, high))
        return draw(st.sampled_from(["*", f"*/{step}", str(first), f"{first}-{last}", f"{first}-{last}/{step}"]))

    return ",".join(term() for _ in range(draw(st.integers(1, 2))))


@st.composite
def crons(draw: st.DrawFn, zone: str | None = None) -> Cron:
    days = draw(st.one_of(st.just("*"), fields(1, 31)))
    months = draw(st.one_of(st.just("*"), fields(1, 12)))
    weekdays = draw(st.one_of(st.just("*"), fields(0, 7), st.sampled_from(["sat-sun", "fri-mon", "5L", "1#2"])))
    expression = f"{draw(fields(0, 59))} {draw(fields(0, 23))} {days} {months} {weekdays}"
    tz = zone or draw(st.sampled_from([tz for tz, _ in CHANGES]))
    try:
        return Cron(expression, tz)
    except InvalidSchedule:
        assume(condition=False)
        raise


def everies() -> st.SearchStrategy[Every]:
    return st.integers(1, 400_000).flatmap(
        lambda period: st.builds(Every, st.just(period), offset=st.integers(0, period - 1))
    )


@st.composite
def asked(draw: st.DrawFn) -> tuple[Cron | Every, datetime, datetime, datetime]:
    """Return a schedule and three instants in order, near a change of its clocks."""
    tz, change = draw(st.sampled_from(CHANGES))
    schedule = draw(st.one_of(crons(tz), crons(tz), everies()))
    middle = datetime.fromisoformat(change).replace(tzinfo=UTC)
    near = st.timedeltas(-3 * HOUR, 3 * HOUR) | st.timedeltas(-2 * DAY, 2 * DAY)
    start, mid, end = sorted(middle + draw(near) for _ in range(3))
    return schedule, start, mid, end


some = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


@some
@given(asked())
def test_a_window_may_be_cut_anywhere(given: tuple[Cron | Every, datetime, datetime, datetime]) -> None:
    schedule, start, mid, end = given
    limit = timedelta(hours=6) if isinstance(schedule, Every) and schedule.period < timedelta(seconds=60) else 4 * DAY
    end = min(end, start + limit)
    mid = min(mid, end)
    whole = list(schedule.between(start, end))
    assert whole == [*schedule.between(start, mid), *schedule.between(mid, end)]
    assert whole == sorted(set(whole))
    assert all(start <= fire < end and fire.tzinfo is UTC and fire.microsecond == 0 for fire in whole)


@some
@given(asked())
def test_next_is_strictly_later_and_the_first_that_between_yields(
    given: tuple[Cron | Every, datetime, datetime, datetime],
) -> None:
    schedule, start, mid, _ = given
    following = schedule.next_after(start)
    if following is None:
        assert list(schedule.between(start + timedelta(microseconds=1), mid)) == []
        return
    assert following > start
    assert next(iter(schedule.between(start + timedelta(microseconds=1), following + MINUTE))) == following
    assert schedule.latest_at(following) == following


@some
@given(asked())
def test_latest_is_not_later_and_nothing_lies_between_it_and_now(
    given: tuple[Cron | Every, datetime, datetime, datetime],
) -> None:
    schedule, start, _, _ = given
    latest = schedule.latest_at(start)
    assume(latest is not None)
    assert latest is not None
    assert latest <= start
    following = schedule.next_after(latest)
    assert following is None or following > start
    assert next(iter(schedule.between(latest, start + timedelta(microseconds=1)))) == latest


class OnlyLatest:
    """The least that a schedule must offer to be stepped through backwards."""

    def __init__(self, schedule: Cron | Every) -> None:
        self.latest_at: Callable[[datetime], datetime | None] = schedule.latest_at


@some
@given(asked(), st.integers(0, 20))
def test_the_newest_are_the_tail_of_between(
    given: tuple[Cron | Every, datetime, datetime, datetime], count: int
) -> None:
    schedule, start, _, end = given
    end = min(end, start + timedelta(hours=12))
    tail = list(schedule.between(start, end))[-count:] if count else []
    assert schedule.last_between(start, end, count) == tail
    assert newest_between(schedule, start, end, count) == tail
    assert newest_between(OnlyLatest(schedule), start, end, count) == tail


# ---- the rule for clock changes, once more and differently: each minute is looked at


def allowed(field: str, low: int, high: int) -> set[int]:
    values: set[int] = set()
    for term in field.split(","):
        span, _, step = term.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        values |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    return values


def matches(expression: str) -> Callable[[datetime], bool]:
    minute, hour, day, month, weekday = expression.split()
    minutes, hours, days = allowed(minute, 0, 59), allowed(hour, 0, 23), allowed(day, 1, 31)
    months, weekdays = allowed(month, 1, 12), {value % 7 for value in allowed(weekday, 0, 7)}
    is_both = day.startswith("*") or weekday.startswith("*")

    def match(wall: datetime) -> bool:
        on_day, on_weekday = wall.day in days, wall.isoweekday() % 7 in weekdays
        is_day = on_day and on_weekday if is_both else on_day or on_weekday
        return is_day and wall.month in months and wall.hour in hours and wall.minute in minutes

    return match


def fires_by_looking(cron: Cron, start: datetime, end: datetime) -> list[datetime]:
    """Return the fire times in [start, end) of a zone whose offsets and changes are on whole minutes."""
    minute, hour, *_ = cron.expression.split()
    is_fixed = not minute.startswith("*") and not hour.startswith("*")
    match, zone = matches(cron.expression), ZoneInfo(cron.tz)
    found, at = [], start
    while at < end:
        local, before = at.astimezone(zone), (at - MINUTE).astimezone(zone)
        wall, previous = local.replace(tzinfo=None, fold=0), before.replace(tzinfo=None, fold=0)
        fires = match(wall) and not (is_fixed and local.fold)
        skipped = previous + MINUTE
        while is_fixed and skipped < wall:
            fires = fires or match(skipped)
            skipped += MINUTE
        if fires:
            found.append(at)
        at += MINUTE
    return found


@st.composite
def plain_crons_near_a_change(draw: st.DrawFn) -> tuple[Cron, datetime]:
    tz, change = draw(st.sampled_from([change for change in CHANGES if change[0] != "Africa/Monrovia"]))
    days, weekdays = (draw(st.one_of(st.just("*"), fields(*span))) for span in ((1, 31), (0, 7)))
    expression = f"{draw(fields(0, 59))} {draw(fields(0, 23))} {days} * {weekdays}"
    try:
        cron = Cron(expression, tz)
    except InvalidSchedule:
        assume(condition=False)
        raise
    start = datetime.fromisoformat(change).replace(tzinfo=UTC) + draw(st.integers(-2000, 100)) * MINUTE
    return cron, start


@some
@given(plain_crons_near_a_change())
def test_the_rule_for_clock_changes_agrees_with_looking_at_each_minute(given: tuple[Cron, datetime]) -> None:
    cron, start = given
    end = start + 36 * HOUR
    assert list(cron.between(start, end)) == fires_by_looking(cron, start, end)


# ---- against cronsim itself


@some
@given(crons("UTC"), st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)))
def test_without_clock_changes_cronsim_says_the_same(cron: Cron, asked_at: datetime) -> None:
    assume(not re.search(r"\b(\d+)-\1/", cron.expression))  # 1-1/5 is 1-59/5 to cronsim
    fields = cron.expression.replace("SAT-SUN", "6-7").replace("FRI-MON", "5,6,7,1")
    theirs = next(CronSim(fields, asked_at.replace(tzinfo=UTC)), None)
    assert cron.next_after(asked_at.replace(tzinfo=UTC)) == theirs


def test_cronsim_still_answers_what_is_not_later_inside_a_fold() -> None:
    """The reason for a rule of our own; should cronsim change, think again."""
    second_pass = datetime(2026, 11, 1, 6, 10, tzinfo=UTC)
    theirs = next(CronSim("30 1 * * *", second_pass.astimezone(ZoneInfo("America/New_York"))))
    assert theirs.astimezone(UTC) < second_pass
    assert Cron("30 1 * * *", "America/New_York").next_after(second_pass) == datetime(2026, 11, 2, 6, 30, tzinfo=UTC)


def test_cronsim_still_loses_an_hour_where_clocks_shift_by_half_an_hour() -> None:
    midnight = datetime(2026, 10, 3, 13, 30, tzinfo=UTC)
    theirs = next(CronSim("0 */3 * * *", midnight.astimezone(ZoneInfo("Australia/Lord_Howe"))))
    assert theirs.astimezone(UTC) == datetime(2026, 10, 3, 19, tzinfo=UTC)
    assert Cron("0 */3 * * *", "Australia/Lord_Howe").next_after(midnight) == datetime(2026, 10, 3, 16, tzinfo=UTC)


@some
@given(st.text(st.sampled_from("0123456789*/-,LW#@?. \tmonjandec"), max_size=30), st.booleans())
def test_any_text_is_a_schedule_or_refused_and_nothing_else(text: str, seconds: bool) -> None:
    try:
        cron = Cron(text, seconds=seconds)
    except InvalidSchedule:
        return
    assert cron.next_after(datetime(2026, 1, 1, tzinfo=UTC)) is not None


@some
@given(st.lists(st.text(st.sampled_from("0123456789*/-,LW#sun"), min_size=1, max_size=6), min_size=5, max_size=5))
def test_any_five_fields_are_a_schedule_or_refused_and_nothing_else(words: list[str]) -> None:
    try:
        cron = Cron(" ".join(words))
    except InvalidSchedule:
        return
    assert cron.next_after(datetime(2026, 1, 1, tzinfo=UTC)) is not None


@pytest.mark.parametrize(
    "days, months, weekdays", [("*/29", "2", "1#5"), ("*/30", "2", "*"), ("31", "2-2", "*/3"), ("28-31", "*/2", "*/6")]
)
def test_the_check_for_dates_that_never_come_agrees_with_a_whole_calendar(
    days: str, months: str, weekdays: str
) -> None:
    """400 years of dates, looked at one by one."""
    nth = 0
    if "#" in weekdays:
        weekday, _, nth_text = weekdays.partition("#")
        nth, weekdays = int(nth_text), weekday
    match = matches(f"0 0 {days} {months} {weekdays}")
    first = date(2000, 1, 1).toordinal()
    dates = (datetime.fromordinal(first + index) for index in range(146_097))
    comes = any(match(day) and (nth == 0 or (day.day + 6) // 7 == nth) for day in dates)
    weekdays = f"{weekdays}#{nth}" if nth else weekdays
    try:
        Cron(f"0 0 {days} {months} {weekdays}")
    except InvalidSchedule:
        assert not comes
    else:
        assert comes
