"""Detectors change nothing, so their order among themselves decides no more than the order."""

from __future__ import annotations

import random

from dig.detectors import standard
from dig.detectors.watch import Watch
from dig.graph.codec import decode
from tests.histories import arrive, deliver, final, row, start, trace, turn
from tests.oracle import Row
from tests.random_traces import random_trace


def found(rows: list[Row], step: int) -> list[str]:
    watch = Watch(standard()[::step])
    raised = [finding.row() for one in rows for finding in watch.feed(decode(one))]
    return sorted(map(str, raised))


def test_the_order_of_detectors_decides_nothing_else() -> None:
    """Backwards they find the same."""
    for seed in range(60):
        rows = random_trace(random.Random(f"order {seed}"), length=40, session=True)
        assert found(rows, 1) == found(rows, -1)


def test_asking_for_open_events_parts_no_problem() -> None:
    """An early answer to one of two problems that were merged asks about that one only."""
    rows = trace(
        arrive(0, "p", None, "a"),
        arrive(0, "q", None, "b"),
        turn(1, "v", "a", "x", p="consume"),
        arrive(1, "x", "v", "c"),
        turn(1, "w", "b", "y", q="consume"),
        arrive(1, "y", "w", "c"),
        turn(2, "m", "c", "z", x="consume", y="consume"),
        arrive(2, "z", "m", "c"),
        start(3, "u", "a"),
        row(3, "end", activation="u", fates=[], outputs=["f"]),
        final(3, "f", "u"),
        deliver(3, "f", None),
        row(60, "incident", what="x", detail=None),
        session=True,
        memory=True,
        limits={"dl_window_s": 10},
    )
    assert found(rows, 1) == found(rows, -1)
    assert sum("'DL'" in one for one in found(rows, 1)) == 1
