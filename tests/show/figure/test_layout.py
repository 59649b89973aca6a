"""Where nodes stand: nothing overlaps, and edges lead to the right."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given

from dig.errors import SettingsError
from dig.graph.records import SYSTEM
from dig.show.figure.layout import OUTSIDE, Layout, lay_out
from dig.show.figure.scene import Box
from dig.show.figure.selection import RunPart, Selection, select
from tests.histories import arrive, deliver, emit, trace, turn
from tests.oracle import Row
from tests.strategies import traces

from .pictures import scene, source


def placed(rows: list[Row], wanted: RunPart) -> tuple[Selection, Layout] | None:
    run = source(rows)
    try:
        selection = select(run, wanted)
    except SettingsError:  # a trace of nothing
        return None
    history = run.graph.history
    agents = list(dict.fromkeys((*run.graph.run.agents, *history.agents.names)))
    return selection, lay_out(run, selection, agents)


def check(selection: Selection, layout: Layout) -> None:
    for link in selection.links:
        assert layout.at[link.source][0] < layout.at[link.target][0]
    apart = 2 * layout.radius
    for (ax, ay), (bx, by) in combinations(layout.at.values(), 2):
        assert abs(ax - bx) >= apart or abs(ay - by) >= apart
    for one, (x, y) in layout.at.items():
        node = selection.nodes[one]
        assert layout.radius <= x <= layout.width - layout.radius
        lanes = [lane for lane, (top, height) in layout.lanes.items() if top < y < top + height]
        assert len(lanes) == 1
        if node["kind"] == "activation":
            assert lanes == [node["agent"]]


@given(traces())
def test_nothing_overlaps_in_any_trace(rows: list[Row]) -> None:
    """Raw and cleaned, whole and a part, for as wild a trace as there is."""
    for wanted in (RunPart(), RunPart(cleaned=True), RunPart(first=len(rows) // 2)):
        if found := placed(rows, wanted):
            check(*found)


def test_many_outputs_are_stacked_in_several_columns() -> None:
    """Of a hundred parts of a problem each has its place, in the lane of who made them."""
    parts = [f"q{i}" for i in range(100)]
    rows = trace(
        arrive(0, "p", None, "a"),
        turn(1, "v", "a", " ".join(parts), p="consume"),
        *(emit(1, part, "v", "b") for part in parts),
        *(deliver(1, part, "b") for part in parts),
        turn(2, "w", "b", "s", **dict.fromkeys(parts, "consume")),
        arrive(2, "s", "w", "a"),
    )
    found = placed(rows, RunPart())
    assert found is not None
    check(*found)
    at = found[1].at
    columns = {at[part][0] for part in parts}
    assert 5 < len(columns) < 12
    assert at["v"][0] < min(columns) < max(columns) < at["w"][0]


def test_what_comes_from_outside_and_from_healing_has_a_lane_of_its_own() -> None:
    """And only if there is any."""
    rows = trace(
        arrive(0, "p", None, "a"),
        turn(1, "v", "a", p="delay"),
        [{**arrive(2, "n", None, "a", "system")[0], "by": "system"}],
    )
    both = placed(rows, RunPart())
    assert both is not None and list(both[1].lanes) == [OUTSIDE, "a", "b", "c", SYSTEM]
    late = placed(rows, RunPart(last=2))
    assert late is not None and list(late[1].lanes) == [OUTSIDE, "a", "b", "c"]


def test_the_bars_of_one_agent_do_not_overlap() -> None:
    """One turn of an agent ends before its next one begins, and so do their bars."""
    rows = trace(
        arrive(0, "p", None, "a"),
        *(turn(i, f"v{i}", "a", p="delay") for i in range(1, 9)),
    )
    found = [s for s in scene(rows).shapes if isinstance(s, Box) and "waits" in s.title]
    bars = found[8:]  # those before stand in the graph
    assert len(bars) == 8
    ends = [bar.at[0] + bar.size[0] for bar in bars]
    assert all(end <= bar.at[0] for end, bar in zip(ends, bars[1:], strict=False))
