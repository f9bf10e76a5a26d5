"""The benchmark of growth: what it counts, and how it tells winners from others."""

from pathlib import Path

import pytest

from benchmarks import document, growth, replicas
from benchmarks.counters import Counters, read
from benchmarks.peers.peer import Message
from benchmarks.report import Figure

# Of a server's own answer, shortened.
INFO = """
# Stats\r
total_commands_processed:464\r
total_net_input_bytes:70034\r
# CPU\r
used_cpu_sys:1.5\r
used_cpu_user:0.25\r
used_cpu_sys_children:9\r
# Commandstats\r
cmdstat_evalsha:calls=58,usec=8029,usec_per_call=138.43,rejected_calls=0,failed_calls=7\r
cmdstat_client|setname:calls=4,usec=9,usec_per_call=2.25,rejected_calls=0,failed_calls=0\r
"""


def test_what_a_server_counts_is_read_from_its_answer() -> None:
    assert read(INFO) == Counters(commands=62, scripts=58, received=70034, seconds=1.75)
    assert Counters(9, 5, 3, 2).since(Counters(4, 3, 2, 1)) == Counters(5, 2, 1, 1)


def test_scripts_are_told_apart_by_who_enqueued_the_slot() -> None:
    claims = [Message(9.9, "", None, "h:1"), Message(10.0, "", None, "h:2"), Message(10.1, "", None, "h:3")]
    won = [Message(10.2, "", None, "h:11"), Message(10.2, "job-0", 10, "h:11"), Message(10.6, "", None, "h:2")]
    holders = {1: 0, 11: 0, 2: 1, 3: 2}
    assert replicas.split([*claims, *won], holders, 3) == (2, 1)
    assert replicas.split([claims[0], *won[:2]], holders, 1) == (2, None)


def test_costs_stand_a_slot_and_replica() -> None:
    cost = replicas.Cost(2, 10, 10.0, Counters(400, 60, 20_000, 0.05), 0.1, 2, 0, 0, split=(4, 2))
    made = growth.second_table([cost])
    assert made[4] == "| 2 | 3.0 | 4.0 | 2.0 | 2.00 | 5 | 10 | 2 | 0 | 0 |"


def test_a_target_of_nothing_can_be_missed() -> None:
    assert str(Figure("missing", 0, "", 0)).endswith("target <= 0 : ok")
    assert str(Figure("missing", 2000, "", 0)).endswith("target <= 0 : MISSED")
    assert " 2,000 " in str(Figure("missing", 2000, "", 0))


def test_a_part_of_the_document_is_put_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    marks = "<!-- made by `python -m benchmarks {}`: begin -->\nold\n<!-- end -->\n"
    page.write_text(f"Before.\n{marks.format('peers')}Between.\n{marks.format('replicas')}After.\n", encoding="utf-8")
    document.insert("replicas", "new\n", page)
    text = page.read_text(encoding="utf-8")
    assert text.count("old") == 1
    assert "Between.\n<!-- made by `python -m benchmarks replicas`: begin -->\n\nnew\n\n<!-- end -->\nAfter." in text
    with pytest.raises(LookupError):
        document.insert("others", "new", page)


def test_the_page_has_a_place_for_the_tables(tmp_path: Path) -> None:
    copy = tmp_path / "benchmarks.md"
    copy.write_text(document.DOCUMENT.read_text(encoding="utf-8"), encoding="utf-8")
    document.insert("replicas", "made\n", copy)
