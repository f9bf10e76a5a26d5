"""The documents promise what the tests of faults have shown, no more and no less."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.arrows import GUARDED, IN_PROCESS, UNGUARDED
from tests.faults.table import DOCUMENTS, table, written_in
from tests.fleet.orders import Arrow


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_the_table_of_guarantees_is_the_one_that_is_tested(document: Path) -> None:
    assert written_in(document) == table(), "run `python -m tests.faults.table`"


def test_every_arrow_is_in_the_table() -> None:
    assert [fault.arrow for fault in GUARDED] == list(Arrow)
    assert {fault.arrow for fault in UNGUARDED} < set(Arrow)
    assert {fault.arrow for fault in IN_PROCESS} < set(Arrow)
