"""From testimony to an answer: each rule, as a table, and what holds for any testimony."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.diagnosis.conversations.hierarchy import HierarchicalGraph, Subtask, draft_graph
from dig.diagnosis.stages.deciding import (
    Decided,
    Deviations,
    ModelTestimony,
    Screened,
    can_be_blamed,
    decide,
    deviating,
)
from tests.diagnosis.conversations.talks import BRIDGES, LOOP, talk

TALK = talk(LOOP)
"""Steps: 0 human; 1, 2, 4, 6, 8 the planner; 3, 5, 7 the worker, which fails."""
SUBTASKS = (Subtask("s1", "", "", 0, 3), Subtask("s2", "", "", 4, 6), Subtask("s3", "", "", 7, 8))
GRAPH = draft_graph(TALK, subtasks=SUBTASKS)
NO_LOOP = replace(GRAPH, loops=())
PLANNER, WORKER = "Orchestrator", "Browser"


def said(*steps: int, subtasks: str = "s1 s2", agents: str = "both") -> Deviations:
    """These steps deviate, and so do both agents in these subtasks."""
    ids = frozenset(subtasks.split())
    named = {"both": (PLANNER, WORKER), "none": ()}.get(agents, (agents,))
    pairs = frozenset((one, agent) for one in ids for agent in named)
    return Deviations(ids, pairs, frozenset(steps))


def decided(
    deviations: Deviations,
    screened: dict[int, Screened] | None = None,
    verdict: tuple[str, int] | None = None,
    graph: HierarchicalGraph = GRAPH,
) -> Decided:
    return decide(TALK, graph, ModelTestimony(deviations, screened or {}, verdict))


@pytest.mark.parametrize(
    ("deviations", "candidates"),
    [
        (said(2, 3, 7), (2, 3)),
        (said(2, 3, 7, agents=WORKER), (3,)),
        (said(2, 3, 7, agents="none"), (2, 3)),
        (said(2, 3, 7, subtasks="s3", agents="none"), (7,)),
        (said(2, 3, subtasks="s3"), (2, 3)),
        (said(2, 3, 7, agents=" browser "), (3,)),
        (said(), ()),
        (said(0, 99, -1), ()),
    ],
)
def test_candidates_deviate_on_all_levels(deviations: Deviations, candidates: tuple[int]) -> None:
    """Steps in agents in subtasks; the condition on agents goes first, then that on subtasks."""
    assert deviating(TALK, GRAPH, deviations) == candidates


S = Screened
TABLE: list[tuple[str, Deviations, dict[int, Screened], Any, int | None, dict[int, str]]] = [
    # what, deviations, screened, verdict, answer, statuses
    ("nothing deviates", said(), {}, None, None, {}),
    ("not screened", said(2, 4), {}, None, 2, {2: "open", 4: "open"}),
    ("local", said(4, 6), {4: S(), 6: S()}, None, 4, {4: "origin", 6: "origin"}),
    ("the verdict decides between origins", said(4, 6), {4: S(), 6: S()}, (PLANNER, 6), 6,
     {4: "origin", 6: "origin"}),
    ("a verdict about no origin is not followed", said(4, 6), {4: S(), 6: S((4,))}, (PLANNER, 6),
     4, {4: "origin", 6: "propagated"}),
    ("a verdict about no candidate is not followed", said(4), {4: S()}, (PLANNER, 2), 4,
     {4: "origin"}),
    ("an upstream step joins", said(4), {4: S((2,))}, None, 2, {2: "open", 4: "propagated"}),
    ("an origin goes before an open step", said(4, 6), {4: S((2,)), 6: S()}, None, 6,
     {2: "open", 4: "propagated", 6: "origin"}),
    ("upstream must lie before, exist, and be no outsider's", said(4),
     {4: S((4, 6, 99, -1, 0))}, None, 4, {4: "origin"}),
    ("a chain of causes", said(2, 4, 6), {2: S(), 4: S((2,)), 6: S((4,))}, None, 2,
     {2: "origin", 4: "propagated", 6: "propagated"}),
    ("the planner's loop", said(2, 7, subtasks="s1 s3"),
     {7: S(loop=True, responsible="planner")}, None, 4,
     {2: "open", 4: "origin", 7: "propagated"}),
    ("the worker's loop", said(7, subtasks="s3"), {7: S(loop=True, responsible="executor")}, None,
     3, {3: "origin", 7: "propagated"}),
    ("nobody's loop", said(4), {4: S(loop=True)}, None, 4, {4: "origin"}),
    ("a loop at its own origin", said(4), {4: S((2,), True, "planner")}, None, 4,
     {2: "open", 4: "origin"}),
    ("data spoilt before", said(6), {6: S(spoilt_at=3)}, None, 3, {3: "origin", 6: "propagated"}),
    ("data spoilt here", said(6), {6: S(spoilt_at=6)}, None, 6, {6: "origin"}),
    ("data spoilt later are ignored", said(4), {4: S(spoilt_at=6)}, None, 4, {4: "origin"}),
    ("data spoilt by the outside are ignored", said(4), {4: S(spoilt_at=0)}, None, 4,
     {4: "origin"}),
    ("a screened step keeps its own status", said(2, 4), {2: S((1,)), 4: S(spoilt_at=2)}, None, 1,
     {1: "open", 2: "propagated", 4: "propagated"}),
    ("put right", said(2, 4), {2: S(recovered_at=7), 4: S()}, None, 4,
     {2: "recovered", 4: "origin"}),
    ("put right in a subtask that deviates", said(2, 4), {2: S(recovered_at=5), 4: S()}, None, 2,
     {2: "origin", 4: "origin"}),
    ("put right by a candidate", said(2, 7, subtasks="s1 s3"), {2: S(recovered_at=7), 7: S()},
     None, 2, {2: "origin", 7: "origin"}),
    ("put right by a candidate elsewhere", said(2, 7, subtasks=""), {2: S(recovered_at=7)}, None, 2,
     {2: "origin", 7: "open"}),
    ("put right before", said(6), {6: S(recovered_at=1)}, None, 6, {6: "origin"}),
    ("put right after the end", said(6), {6: S(recovered_at=99)}, None, 6, {6: "origin"}),
    ("all was put right: the last", said(2, 4), {2: S(recovered_at=8), 4: S(recovered_at=8)}, None,
     4, {2: "recovered", 4: "recovered"}),
    ("open goes before recovered", said(2, 4), {2: S(recovered_at=8)}, None, 4,
     {2: "recovered", 4: "open"}),
    ("testimony about others is ignored", said(4), {4: S(), 6: S()}, None, 4, {4: "origin"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("deviations", "screened", "verdict", "answer", "statuses"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_each_rule(
    deviations: Deviations, screened: dict[int, Screened], verdict: tuple[str, int] | None,
    answer: int | None, statuses: dict[int, str],
) -> None:  # fmt: skip
    """ModelTestimony gives this answer, and these statuses."""
    found = decided(deviations, screened, verdict)
    assert (found.step, found.statuses) == (answer, statuses)


def test_a_loop_that_the_texts_do_not_show_is_ignored() -> None:
    """A model cannot make a loop; the note says so."""
    found = decided(said(4), {4: Screened(loop=True, responsible="executor")}, graph=NO_LOOP)
    assert found.statuses == {4: "origin"}
    assert "the texts show none" in found.notes[0]


def test_impossible_data_are_noted() -> None:
    """The note names both steps."""
    assert "step 6" in decided(said(4), {4: Screened(spoilt_at=6)}).notes[0]
    assert decided(said(4), {4: Screened(spoilt_at=2)}).notes == ()


def test_the_agent_is_the_speaker() -> None:
    """A verdict with another name is followed as to the step, and noted; spelling is no matter."""
    (note,) = decided(said(4), {4: Screened()}, (WORKER, 4)).notes
    assert WORKER in note and PLANNER in note
    assert decided(said(4), {4: Screened()}, (" orchestrator", 4)).notes == ()


NUMBERS = st.integers(-2, 11)
SCREENED = st.builds(
    Screened, st.lists(NUMBERS, max_size=3).map(tuple), st.booleans(),
    st.sampled_from(["none", "planner", "executor"]), st.none() | NUMBERS, st.none() | NUMBERS,
)  # fmt: skip


@given(
    steps=st.frozensets(NUMBERS), subtasks=st.frozensets(st.sampled_from(["s1", "s2", "s3", "x"])),
    agents=st.frozensets(st.tuples(st.sampled_from(["s1", "s2"]), st.sampled_from(["Browser"]))),
    screened=st.dictionaries(NUMBERS, SCREENED),
    verdict=st.none() | st.tuples(st.sampled_from([PLANNER, "x"]), NUMBERS),
)  # fmt: skip
def test_no_step_is_answered_that_was_not_shown(
    steps: frozenset[int], subtasks: frozenset[str], agents: frozenset[tuple[str, str]],
    screened: dict[int, Screened], verdict: tuple[str, int] | None,
) -> None:  # fmt: skip
    """Whatever is testified, an answer is a candidate, and a step of a planner or worker."""
    found = decided(Deviations(subtasks, agents, steps), screened, verdict)
    assert all(can_be_blamed(TALK, step) for step in found.statuses)
    assert found.step is None or found.step in found.statuses
    assert found.step is not None or "propagated" in {*found.statuses.values(), "propagated"}
    if found.step is not None and "origin" in found.statuses.values():
        assert found.statuses[found.step] == "origin"


def test_steps_of_tools_are_blamed_only_if_there_is_nobody_else() -> None:
    """A terminal is no candidate, but where only tools speak one of them is."""
    assert not can_be_blamed(talk(BRIDGES), 2)
    assert can_be_blamed(talk([BRIDGES[2]]), 0)
