"""What the notes of healing say, as data: `about` in the rows of kind `heal`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dig import Create, Inject, Reroute
from dig.detectors.interventions import Intervention, Refuse
from dig.graph.codec import decode, to_row
from dig.graph.records import Record
from tests.helpers import Heals, Sees, Stage, flag, out, rows


def healed(
    wishes: Sequence[Intervention], evidence: Any = None, agents: Sequence[str] = "abc"
) -> Stage:
    """The first agent sends e2 to the second; a finding about e2 has this evidence."""

    def look(graph: Any, record: Record) -> Any:
        if getattr(record, "event", None) != "e2" or record.kind != "emit":
            return []
        return [replace(flag(record, event="e2"), evidence=evidence or {}, severity="error")]

    stage = Stage(agents, detectors=[Sees(look)], healers={"SEEN": Heals(lambda g, f: wishes)})
    stage.give([agents[0]])  # type: ignore[arg-type]
    stage.turn(agents[0], out(agents[1]))
    return stage


@pytest.mark.parametrize(
    "wish", [Inject("e2", "look"), Reroute("e2", "there", ("c",)), Create("wake up", ("c",))]
)
def test_a_heal_row_names_pattern_events_and_agents(wish: Intervention) -> None:
    """The agents are those that the finding names, and those that made what it names."""
    stage = healed([wish], {"cause": "no reader", "earlier": ["e1"], "waiting": {"b": ["e2"]}})
    [row] = rows(stage.sink, "heal")
    assert row.about == {"pattern": "SEEN", "events": ["e2", "e1"], "agents": ["a", "b"]}
    assert decode(to_row(row)) == row


def test_a_refusal_says_nothing_about_events() -> None:
    """There is no note, so its row has no `about` either."""
    [row] = rows(healed([Refuse("not worth it")]).sink, "heal")
    assert (row.action, row.about) == ("refused", None)
    assert "about" not in to_row(row)


def test_an_activation_stands_for_its_agent_and_an_instance_for_itself() -> None:
    """A program that reads the row can address the very instance."""
    stage = healed([Inject("e2", "look")], {"by": ["a1"], "path": ["b#3"]}, ["a#2", "b#3"])
    [row] = rows(stage.sink, "heal")
    assert row.about == {"pattern": "SEEN", "events": ["e2"], "agents": ["a#2", "b#3"]}


@pytest.mark.parametrize("evidence", [["e1", [7, None]], {"x": {"y": [{"z": "e1"}], "e9": "e99"}}])
def test_evidence_of_any_shape_is_read(evidence: Any) -> None:
    """What is no event, activation or agent is left out."""
    [row] = rows(healed([Inject("e2", "look")], evidence).sink, "heal")
    assert row.about == {"pattern": "SEEN", "events": ["e2", "e1"], "agents": ["a"]}


def test_of_many_agents_the_first_hundred_are_named() -> None:
    """As in evidence, `more` says that some were left out."""
    agents = [f"n{i}" for i in range(150)]
    waiting = {"first": agents[:80], "second": agents[80:]}
    [row] = rows(healed([Inject("e2", "look")], waiting, agents).sink, "heal")
    assert (row.about["agents"], row.about["more"]) == (agents[:100], True)
