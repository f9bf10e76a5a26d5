"""The slip of a message: what it says survives the way through any queue."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotqueue.messages import Slip

TERMS = "c d a 60000 300000 5 86400000 86400000 0 60000 3600000"
texts = st.text(max_size=40)


@given(texts, st.integers(0, 99), st.integers(0, 2**45), st.integers(0, 2**45), texts, texts)
def test_the_text_form_is_json_and_reads_back(key: str, n: int, fire: int, start: int, task: str, version: str) -> None:
    slip = Slip(key, n, fire, start, task, version, TERMS)
    assert json.loads(slip.to_json()) == [key, n, fire, start, task, version, TERMS]
    assert Slip.from_json(slip.to_json()) == slip


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", "null", '["k", 0, 1]'),
        '["k", 0, 1, 1, "t", "v", "damaged"]',
        '["k", "x", 1, 1, "t", "v", ""]',
    ],
)
def test_what_is_no_slip_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own errors are ValueErrors too
        Slip.from_json(text)
