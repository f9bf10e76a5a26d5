"""Bugs to plant in slotqueue's own scripts: the checker must find each of them."""

from __future__ import annotations

from collections.abc import Collection

import slotqueue.store.redis
from slotqueue.store import scripts

# Name -> verb -> what stands in its script, and what stands there instead.
BUGS: dict[str, dict[str, list[tuple[str, str]]]] = {
    "done marker not written": {
        "finish": [("redis.call('SET', slot.done, worker, 'PX', record.terms.retention)", "do return 'yes' end")],
    },
    "claim without NX": {
        "claim": [
            ("local is_taken = owner and owner ~= replica", "local is_taken = false"),
            (
                "if owner or redis.call('EXISTS', slot.done, slot.record) > 0 then return answer_again",
                "if false then return answer_again",
            ),
            (
                "redis.call('SET', slot.claim, replica, 'NX', 'PX', group.life)",
                "redis.call('SET', slot.claim, replica, 'PX', group.life)",
            ),
        ],
    },
    "sweep ignoring the lease": {
        "overdue": [("'-inf', now,", "'-inf', '+inf',")],
        "take_over": [("if not deadline or tonumber(deadline) > now then", "if not deadline then")],
    },
    "an end counted twice": {
        "finish": [
            ("close(slot, record.terms, 'done')", "reckon('done ' .. slot.job) close(slot, record.terms, 'done')")
        ],
    },
}


def plant(names: Collection[str]) -> None:
    """Plant bugs in this process, before any script was sent."""
    if not names:
        return
    source_of = scripts.source_of

    def planted(verb: str) -> str:
        source = source_of(verb)
        for name in names:
            for right, wrong in BUGS[name].get(verb, ()):
                assert right in source, f"{verb}.lua has changed: plant {name!r} anew"
                source = source.replace(right, wrong)
        return source

    setattr(slotqueue.store.redis, "source_of", planted)  # noqa: B010 - what the runner of scripts calls
