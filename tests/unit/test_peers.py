"""The side-by-side benchmark: what it reads from an observer's lines, and what it makes of figures."""

from pathlib import Path

import pytest

from benchmarks.document import DOCUMENT
from benchmarks.peers import (
    apscheduler_peer,
    arq_peer,
    beat_peer,
    burst,
    idle,
    rq_peer,
    second,
    slotqueue_peer,
    table,
    taskiq_peer,
)
from benchmarks.peers.length import Growth
from benchmarks.peers.monitor import Lines, Read, arguments
from benchmarks.peers.peer import Message
from benchmarks.peers.results import Results, Subject
from benchmarks.peers.saq_peer import Slots
from benchmarks.peers.streaq_peer import Tasks

# Recorded, and shortened.
ARQ = rb"""
+1796055781.253880 [0 127.0.0.1:46696] "ZADD" "arq:queue" "1796055781241" "job-1:1796055781000"
+1796055781.646935 [0 127.0.0.1:46698] "ZSCORE" "arq:queue" "job-0:1796055781000"
+1796055781.688246 [0 127.0.0.1:46696] "ZREM" "arq:queue" "job-1:1796055781000"
"""
OURS = rb"""
+1796055836.226700 [0 127.0.0.1:57580] "EVALSHA" "0e35" "2" "arq:abort" "arq:queue" "\x80\x04\x95"
+1796055836.226794 [0 lua] "ZADD" "arq:queue" "NX" "1" "ran:job-0:2026-11-30T16:23:56" "2" "ran:job-1:2026-11-30T16:24"
"""
SAQ = rb"""
+1796055787.840774 [0 127.0.0.1:42424] "EVALSHA" "ea8b" "2" "saq:default:incomplete" "{\"function\": \"job-0\"}"
+1796055787.895194 [0 lua] "ZADD" "saq:default:incomplete" "1796055788" "saq:job:default:cron:job-0"
+1796055788.960600 [0 127.0.0.1:42440] "EVALSHA" "b88a" "2" "saq:default:incomplete" "saq:default:queued"
+1796055788.960650 [0 lua] "ZADD" "saq:default:incomplete" "0" "saq:job:default:cron:job-0"
+1796055788.960680 [0 lua] "RPUSH" "saq:default:queued" "saq:job:default:cron:job-0"
"""
STREAQ = rb"""
+1796055799.417132 [0 127.0.0.1:41252] "ZADD" "streaq:default:cron:schedule" "1796055800000" "job-0"
+1796055800.494600 [0 127.0.0.1:41258] "FCALL" "publish_delayed_tasks" "2" "streaq:default:queues:delayed:normal"
+1796055800.494672 [0 lua] "xadd" "streaq:default:queues:normal" "*" "task_id" "d05f9dcf719941e896adc6d05e312d79"
"""
TASKIQ = rb"""
+1796055821.103659 [0 127.0.0.1:60684] "XADD" "taskiq" "*" "data" "{\"task_id\": \"8473\", \"args\": [\"job-0\"]}"
"""
BEAT = rb"""
+1796057224.857630 [0 127.0.0.1:55718] "LLEN" "celery"
+1796057224.955474 [0 127.0.0.1:55718] "LPUSH" "celery" "{\"headers\": {\"argsrepr\": \"['job-0']\"}}"
"""
RQ = rb"""
+1796057125.565881 [0 127.0.0.1:40182] "RPUSH" "rq:queue:default" "4f892647"
+1796057125.565907 [0 127.0.0.1:40182] "ZADD" "rq:cron_job:job-0:jobs" "1796057125.555548" "4f892647"
+1796057125.565915 [0 127.0.0.1:40182] "ZREMRANGEBYRANK" "rq:cron_job:job-0:jobs" "0" "-1001"
+1796057125.565940 [0 127.0.0.1:40182] "ZADD" "rq:cron_jobs" "1796057125.555548" "job-0"
"""
APSCHEDULER = rb"""
+1796057125.565881 [0 127.0.0.1:40182] "RPUSH" "queue" "job-0"
"""


@pytest.mark.parametrize(
    "read, mark, lines, expected",
    [
        pytest.param(
            arq_peer.read,
            '"ZADD" "arq:queue"',
            ARQ,
            [(1796055781.25388, "job-1", 1796055781, "127.0.0.1:46696")],
            id="arq",
        ),
        pytest.param(
            slotqueue_peer.read,
            '"ZADD" "arq:queue"',
            OURS,
            [
                (1796055836.226794, "job-0", 1796055836, "127.0.0.1:57580"),
                (1796055836.226794, "job-1", 1796055840, "127.0.0.1:57580"),
            ],
            id="slotqueue",
        ),
        pytest.param(
            Slots().read,
            ' "saq:default:',
            SAQ,
            [(1796055788.96068, "job-0", 1796055788, "127.0.0.1:42440")],
            id="saq",
        ),
        pytest.param(
            Tasks().read,
            "streaq:default:",
            STREAQ,
            [(1796055800.494672, "job-0", 1796055800, "127.0.0.1:41258")],
            id="streaq",
        ),
        pytest.param(
            taskiq_peer.read,
            '"XADD" "taskiq"',
            TASKIQ,
            [(1796055821.103659, "job-0", None, "127.0.0.1:60684")],
            id="taskiq",
        ),
        pytest.param(
            beat_peer.read,
            '"LPUSH" "celery"',
            BEAT,
            [(1796057224.955474, "job-0", None, "127.0.0.1:55718")],
            id="beat",
        ),
        pytest.param(
            rq_peer.read,
            '"ZADD" "rq:cron_job:',
            RQ,
            [(1796057125.565907, "job-0", None, "127.0.0.1:40182")],
            id="rq",
        ),
        pytest.param(
            apscheduler_peer.read,
            '"RPUSH" "queue"',
            APSCHEDULER,
            [(1796057125.565881, "job-0", None, "127.0.0.1:40182")],
            id="apscheduler",
        ),
    ],
)
def test_messages_are_read_from_what_the_server_tells(
    read: Read, mark: str, lines: bytes, expected: list[tuple[float, str, float | None, str]]
) -> None:
    assert list(Lines(read, mark.encode()).messages(lines.splitlines())) == expected


def test_commands_of_scripts_are_not_sent() -> None:
    lines = Lines(slotqueue_peer.read, b"arq:queue")
    list(lines.messages(OURS.splitlines()))
    assert lines.sent == 1


def test_arguments_come_without_their_escapes() -> None:
    assert arguments(rb'"SET" "a \"b\" \\ \n" "\xc3\xa9" ""') == ["SET", 'a "b" \\ \n', "é", ""]


def test_lateness_counts_from_the_slot_else_the_second_else_the_first_of_its_sender() -> None:
    named = [Message(10.25, "job-0", 10), Message(10.5, "job-0", 11)]
    assert second.lateness(named, aligned=True) == [0.25, 0]
    assert second.lateness([Message(10.25, "job-0")], aligned=True) == [0.25]
    drifting = [
        Message(10.25, "job-0", None, "a"),
        Message(10.5, "job-0", None, "b"),
        Message(11.5, "job-0", None, "a"),
    ]
    assert second.lateness(drifting, aligned=False) == [0, 0, 0.25]


def test_a_burst_ends_with_the_first_message_of_its_last_job() -> None:
    found = [Message(11, "job-0"), Message(13, "job-1"), Message(15, "job-0")]
    assert burst.judged(found, 2, at=10) == {"twice": 1, "missing": 0, "seconds": 3}
    assert burst.judged(found, 3, at=10) == {"twice": 1, "missing": 1}


def test_a_growing_queue_tells_when_each_entry_was_seen_first() -> None:
    growth = Growth()
    for length, at in ((0, 1.0), (2, 2.0), (2, 3.0), (3, 4.0)):
        growth.saw(length, at)
    assert growth.instants(3) == [2, 2, 4]


def test_a_replica_is_at_rest_once_its_use_stays_what_it_is() -> None:
    starting = [(0.1 * step, 0.1 * step) for step in range(11)]
    waiting = [(1 + 0.1 * step, 1 + 0.01 * step) for step in range(1, 100)]
    samples = [*starting, *waiting]
    use = idle.slope(samples[50:])
    assert use == pytest.approx(0.1)
    assert idle.at_rest(samples, use) == pytest.approx(1, abs=0.11)


def _results() -> Results:
    ours = Subject("ours", {"ours": "1"}, "as it is", "a.md", "")
    ours.add("second", {"late p50": 1.0, "messages a slot": 1})
    ours.add("second", {"late p50": 1.6, "messages a slot": 1})
    ours.add("burst 1,000", {"seconds": 0.5, "twice": 0, "missing": 0})
    theirs = Subject("theirs", {}, "as it is", "b.md", "A remark.")
    theirs.add("second", {"late p50": 1.04, "messages a slot": 3})
    theirs.add("burst 1,000", {"twice": 7, "missing": 2})
    theirs.failures["killed"] = "replica 0 ended with 1"
    return Results("a machine", "2026-01-31", {"ours": ours, "theirs": theirs})


def test_the_best_of_each_column_is_bold_whosever_it_is() -> None:
    made = table.made(_results())
    assert "Measured on 2026-01-31: a machine." in made
    assert "| | late p50, ms | messages a slot |" in made
    assert "| ours | 1.3 (1.0 to 1.6) | **1.00** |" in made
    assert "| theirs | **1.0** | 3.00 |" in made


def test_what_is_missing_or_failed_is_said() -> None:
    made = table.made(_results())
    assert "| theirs | not all in 60 s | 7 | 2 |" in made
    assert "| theirs | failed | failed |" in made
    assert "failed: killed: replica 0 ended with 1" in made


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    _results().save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == _results()


def test_the_document_says_what_the_results_say(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    copy = tmp_path / "benchmarks.md"
    copy.write_text(text, encoding="utf-8")
    table.insert(Results.load(), copy)
    assert copy.read_text(encoding="utf-8") == text, "make bench ARGS='peers --plot-only'"
