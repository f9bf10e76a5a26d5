"""Redis's clock as this process estimates it."""

from __future__ import annotations

from slotqueue.clock import RedisClock


class Monotonic:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def heard(clock: RedisClock, monotonic: Monotonic, now_ms: int, round_trip: float = 0.002) -> float:
    sent = monotonic.at
    monotonic.at += round_trip
    return clock.observe(sent, now_ms)


def test_the_estimate_runs_on_the_monotonic_clock_from_the_middle_of_the_round_trip() -> None:
    monotonic = Monotonic()
    clock = RedisClock(monotonic)
    heard(clock, monotonic, 5_000_000, round_trip=0.010)
    assert abs(clock.now_ms() - 5_000_005) <= 1
    monotonic.at += 60
    assert abs(clock.now_ms() - 5_060_005) <= 1


def test_a_quicker_answer_is_trusted_more_than_a_slow_one() -> None:
    monotonic = Monotonic()
    clock = RedisClock(monotonic)
    heard(clock, monotonic, 5_000_000, round_trip=0.002)
    before = clock.uncertain_ms
    heard(clock, monotonic, 5_000_002, round_trip=0.200)
    assert clock.uncertain_ms == before


def test_a_step_of_rediss_clock_is_seen_followed_and_breaks_contact() -> None:
    monotonic = Monotonic()
    clock = RedisClock(monotonic)
    heard(clock, monotonic, 5_000_000)
    monotonic.at += 10
    assert heard(clock, monotonic, 5_010_002) == 0.0
    assert clock.contact_ms() >= 10_000
    monotonic.at += 1
    step = heard(clock, monotonic, 5_071_004)
    assert 59_000 < step < 61_000
    assert clock.contact_ms() < 10
    assert abs(clock.now_ms() - 5_071_005) <= 2


def test_contact_is_broken_by_an_error_and_by_silence() -> None:
    monotonic = Monotonic()
    clock = RedisClock(monotonic)
    assert clock.contact_ms() == 0
    heard(clock, monotonic, 5_000_000)
    monotonic.at += 8
    assert clock.contact_ms() >= 8000
    clock.lose_contact()
    assert clock.contact_ms() == 0
    heard(clock, monotonic, 5_008_002)
    monotonic.at += 60
    heard(clock, monotonic, 5_068_004)
    assert clock.contact_ms() < 10


def test_drift_is_followed() -> None:
    monotonic = Monotonic()
    clock = RedisClock(monotonic)
    now = 5_000_000.0
    for _ in range(100):
        heard(clock, monotonic, int(now))
        monotonic.at += 5
        now += 5002.5
    assert abs(clock.now_ms() - now) <= 5
