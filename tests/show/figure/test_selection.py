"""Which part of a run is drawn."""

from __future__ import annotations

from typing import Any

import pytest

from dig.errors import SettingsError
from dig.show.figure import selection
from tests.histories import arrive, trace, turn
from tests.traces.runs import solved

from .pictures import chosen

WAITING = trace(
    arrive(0, "p", None, "ab"),
    turn(1, "v", "a", "q", p="consume"),
    arrive(1, "q", "v", "b"),
    turn(2, "w", "b", p="delay", q="delay"),
    arrive(3, "r", None, "b"),
    turn(4, "x", "b", "s", p="delay", q="consume", r="discard"),
    arrive(4, "s", "x", "a"),
)


@pytest.mark.parametrize(
    ("wanted", "nodes"),
    [
        ({}, "p v q w r x s"),
        ({"cleaned": True}, "p v q x s"),
        ({"at": 6}, "p v q"),
        ({"first": 8}, "w r x s"),
        ({"last": 3}, "p"),
        ({"first": 9, "last": 11}, "w r"),
        ({"focus": "q", "hops": 1}, "v q w x"),
        ({"focus": "q", "hops": 2}, "p v q w x s"),
        ({"focus": "s", "hops": 1}, "x s"),
        ({"focus": "q", "hops": 9, "cleaned": True}, "p v q x s"),
    ],
)
def test_a_part_of_a_run_has_the_nodes_that_were_asked_for(
    wanted: dict[str, Any], nodes: str
) -> None:
    """Raw or cleaned, at a time, in a window, or what is causally near a node or beside it."""
    assert list(chosen(WAITING, **wanted).nodes) == nodes.split()


def test_the_time_line_of_a_cleaned_graph_has_the_waits() -> None:
    """Who was at work when is what it is about, and who only waited was at work."""
    found = chosen(WAITING, cleaned=True)
    assert "w" not in found.nodes and list(found.turns) == ["v", "w", "x"]


def test_edges_lead_from_node_to_node_and_have_their_fates() -> None:
    found = chosen(WAITING, first=9)
    assert [(one.source, one.target, one.fate) for one in found.links] == [
        ("x", "s", None),
        ("r", "x", "discard"),
    ]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"at": 99}, "--at 99: there is no record 99; the last one is 15"),
        ({"first": 99}, "--from 99: there is no record 99; the last one is 15"),
        ({"first": 9, "last": 3}, "--from 9 comes after --to 3"),
        ({"focus": "zz"}, "no event or activation 'zz'"),
        ({"focus": "w", "cleaned": True}, "w is not in the part of the run that is wanted"),
        ({"last": 0}, "there is nothing to draw"),
        ({"focus": "w", "finding": 3}, "--focus and --finding"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        chosen(WAITING, **wanted)


def test_more_than_can_be_read_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture of too much is a grey square; the sentence names the ways to less."""
    monkeypatch.setattr(selection, "MOST_ITEMS", 12)
    with pytest.raises(SettingsError, match="--focus ID, --finding T, --fold, or --cleaned"):
        chosen(WAITING)
    assert chosen(WAITING, last=5).nodes


def test_the_limit_holds_for_a_run_that_is_just_too_large() -> None:
    events = [arrive(0, f"e{i}", None, "") for i in range(selection.MOST_ITEMS + 1)]
    with pytest.raises(SettingsError, match="3,001 nodes and edges"):
        chosen(trace(*events))
    assert len(chosen(trace(*events[:-1])).nodes) == selection.MOST_ITEMS


def test_a_finished_run_is_drawn_to_its_end() -> None:
    assert chosen(solved()).span == (0, len(solved()) - 1)
