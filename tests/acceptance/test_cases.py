"""Each failure in the field that is listed has its tests, and the page says so."""

from __future__ import annotations

import pytest

from tests.acceptance.cases import CASES, PAGE, Case, exists, page


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.threads.split()[0])
def test_every_case_has_tests(case: Case) -> None:
    assert case.tests
    assert [test for test in case.tests if not exists(test)] == []


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.acceptance.cases`"
