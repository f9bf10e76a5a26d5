"""The pace of a queue: believed when it is slow, and not for a single message that was quick."""

from __future__ import annotations

from slotqueue.pace import Pace


class Quick:
    """Says its pace."""

    seconds_a_message = 0.01


def test_a_pace_is_believed_when_it_is_slower_and_slowly_when_it_is_quicker() -> None:
    pace = Pace({})
    assert pace.batch == 20
    pace.learn(10, 0.01)
    assert 20 < pace.batch < 40
    for _ in range(20):
        pace.learn(10, 0.01)
    assert pace.batch > 900
    pace.learn(10, 1.0)
    assert pace.batch == 10


def test_a_single_message_says_nothing_of_a_pace_unless_it_was_slow() -> None:
    pace = Pace({"arq": Quick()})  # type: ignore[dict-item]
    pace.learn(1, 0.015)
    assert pace.batch == 100
    pace.learn(1, 0.2)
    assert pace.batch == 5


def test_who_loses_a_whole_burst_takes_more_of_it_at_once() -> None:
    pace = Pace({})
    sizes = []
    for _ in range(6):
        sizes.append(pace.batch)
        pace.lose()
    assert sizes == [20, 40, 80, 160, 320, 400]
    assert not pace.is_room_behind(1)


def test_what_was_done_in_part_before_may_only_be_slower_than_was_thought() -> None:
    pace = Pace({"celery": Quick()})  # type: ignore[dict-item]
    pace.learn(100, 0.1, is_part=True)
    assert pace.batch == 100
    pace.learn(100, 2.0, is_part=True)
    assert pace.batch == 50


def test_more_is_claimed_while_what_waits_takes_three_seconds_at_most() -> None:
    pace = Pace({"celery": Quick()})  # type: ignore[dict-item]
    assert pace.is_room_behind(300)
    assert not pace.is_room_behind(301)
