"""The hierarchical graph: its rules, its repair, and the draft that texts alone give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.diagnosis.conversations.hierarchy import (
    AgentPart,
    HierarchicalGraph,
    HierarchyEdge,
    Subtask,
    covers,
    draft_graph,
    repair_subtasks,
    step_edge,
)
from dig.diagnosis.conversations.reading import DataEdge
from tests.diagnosis.conversations.talks import BRIDGES, LOOP, talk

CASE = talk(LOOP)
GRAPH = HierarchicalGraph(
    (Subtask("s1", "", "", 0, 3), Subtask("s2", "", "", 4, 6), Subtask("s3", "", "", 7, 8)), 8,
    (AgentPart("s1", "Orchestrator"), AgentPart("s1", "Browser"), AgentPart("s2", "Browser")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("edge", "is_kept"),
    [
        (("subtask", "s1", "s2", "data_dependency"), True),
        (("subtask", "s1", "s3", "data_dependency"), False),
        (("subtask", "s2", "s1", "data_dependency"), False),
        (("subtask", "s1", "s2", "observation"), False),
        (("agent", "Orchestrator", "browser ", "decision", "s1"), True),
        (("agent", "Orchestrator", "Browser", "decision", "s2"), False),
        (("agent", "Orchestrator", "Browser", "decision", None), False),
        (("agent", "Browser", "Browser", "memory", "s1"), False),
        (("agent", "Orchestrator", "Browser", "data_dependency", "s1"), False),
        (("step", 2, 5, "number"), True),
        (("step", 5, 2, "number"), False),
        (("step", 5, 5, "number"), False),
        (("step", -1, 5, "number"), False),
        (("step", 2, 9, "number"), False),
    ],
)
def test_edges_follow_the_rules_or_are_dropped(edge: Any, is_kept: bool) -> None:
    """An edge against the rules is left out and counted."""
    found = GRAPH.with_edges([HierarchyEdge(*edge)])
    assert (len(found.edges), found.dropped) == ((1, 0) if is_kept else (0, 1))


def test_parts_that_nobody_has_are_dropped() -> None:
    """An agent has a part in a subtask only if it speaks there."""
    parts = [AgentPart("s1", "human"), AgentPart("s2", "human"), AgentPart("s9", "Browser")]
    found = GRAPH.with_parts(CASE, parts)
    assert (found.agents, found.dropped) == ((parts[0],), 2)


@pytest.mark.parametrize(
    ("ranges", "made"),
    [
        ([(0, 8)], [(0, 8)]),
        ([(0, 3), (4, 8)], [(0, 3), (4, 8)]),
        ([(0, 2), (4, 8)], [(0, 3), (4, 8)]),
        ([(0, 4), (3, 8)], [(0, 4), (5, 8)]),
        ([(2, 3), (4, 6)], [(0, 3), (4, 8)]),
        ([(4, 20), (-3, 3)], [(0, 3), (4, 8)]),
        ([(0, 8), (2, 4)], [(0, 8)]),
        ([(9, 12)], [(0, 8)]),
        ([], [(0, 8)]),
    ],
)
def test_ranges_are_repaired(ranges: list[tuple[int, int]], made: list[tuple[int, int]]) -> None:
    """Gaps go to the earlier subtask, overlaps to the first, and what is outside is cut."""
    given = [Subtask(f"x{n}", "", "", *one) for n, one in enumerate(ranges)]
    found = repair_subtasks(given, 9)
    assert [(one.first, one.last) for one in found] == made
    assert [one.id for one in found] == [f"s{n}" for n in range(1, len(made) + 1)]


@given(
    ranges=st.lists(st.tuples(st.integers(-3, 30), st.integers(-3, 30))), count=st.integers(1, 20)
)
def test_repaired_ranges_cover_all_steps(ranges: list[tuple[int, int]], count: int) -> None:
    """Whatever is given, each step is in one subtask, and good ranges stay as they are."""
    given = [Subtask(f"s{n}", "", "", *one) for n, one in enumerate(ranges, 1)]
    found = repair_subtasks(given, count)
    assert covers(found, count) is None
    if covers(given, count) is None:
        assert found == tuple(given)


def test_ranges_that_do_not_cover_are_told() -> None:
    """The sentence names the subtask, for a model to read."""
    subtasks = [Subtask("s1", "", "", 0, 3), Subtask("s2", "", "", 5, 8)]
    assert covers(subtasks, 9) == "subtask s2 must begin at step 4 and end there or later"
    assert covers(subtasks[:1], 9) == "the last subtask must end at step 8"
    assert covers([subtasks[0], Subtask("s1", "", "", 4, 8)], 9) == "two subtasks have one id"
    assert covers([], 9) == "there is no subtask"


@pytest.mark.parametrize("rows", [LOOP, BRIDGES, LOOP * 20])
def test_a_draft_follows_the_rules(rows: Any) -> None:
    """It covers all steps, has at most eight subtasks, and none of its edges is dropped."""
    case = talk(rows)
    found = draft_graph(case)
    assert covers(found.subtasks, len(rows)) is None and 1 <= len(found.subtasks) <= 8
    assert found.dropped == 0
    assert {one.level for one in found.edges} <= {"subtask", "agent", "step"}
    assert len([one for one in found.edges if one.level == "subtask"]) == len(found.subtasks) - 1


def test_a_part_says_what_an_agent_saw_and_did() -> None:
    """The step before it, its words, its code, and the output of the tool."""
    found = next(one for one in draft_graph(talk()).agents if one.agent == "Map_Expert")
    assert found.observation.startswith("Task: How many bridges")
    assert found.thought.startswith("I look them up")
    assert found.action == "print(lookup('bridges', 'Arvo'))"
    assert found.result.startswith("exitcode: 1")


def test_recorded_lineage_allows_no_other_edge() -> None:
    """An edge between steps along which no event went is dropped, whoever draws it."""
    talk_ = replace(talk(), lineage=(DataEdge(0, 1, "e1", "text"), DataEdge(1, 4, "e2", "text")))
    graph = draft_graph(talk_)
    assert [one.data for one in graph.edges if one.level == "step"] == ["e1", "e2"]
    more = graph.with_edges([step_edge(1, 4, "17", "number"), step_edge(3, 4, "17", "number")])
    assert more.dropped == 1 and [one.data for one in more.edges][-1] == "17"
