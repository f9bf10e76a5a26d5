"""Redis's clock as this process estimates it."""

from __future__ import annotations

import time

import pytest

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


def test_an_instant_has_surely_come_once_the_quickest_of_the_latest_answers_says_so() -> None:
    monotonic = Monotonic()
    clock = RedisClock(monotonic)
    ahead = 5_000_000 - monotonic.at * 1000
    for there, back in ((0.004, 0.004), (0.0005, 0.0005), (0.003, 0.009)):
        sent, monotonic.at = monotonic.at, monotonic.at + there + back
        clock.observe(sent, (sent + there) * 1000 + ahead, precision_ms=0.001)
    late = clock.surely_at(monotonic.at * 1000 + ahead + 50) - (monotonic.at + 0.05)
    assert 0.0005 <= late < 0.00051, "never early, and late by the way back of the quickest answer"
    monotonic.at += 20
    late = clock.surely_at(monotonic.at * 1000 + ahead) - monotonic.at
    assert 0.002 < late < 0.003, "what is known is known less well as time goes by"


def test_a_clock_that_was_set_back_comes_to_an_instant_later() -> None:
    monotonic = Monotonic()
    clock = RedisClock(monotonic)
    for now_ms in (5_000_000, 5_000_102, 5_000_004):
        heard(clock, monotonic, now_ms, round_trip=0.002)
        monotonic.at += 0.1
    monotonic.at -= 0.1
    assert clock.surely_at(5_000_004) == pytest.approx(monotonic.at)
    assert RedisClock(monotonic).surely_at(time.time() * 1000 + 500) == pytest.approx(monotonic.at + 0.5, abs=0.1)
