"""The metrics of one answer, with values that were worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.lab.benchmark.answer_file import Answer, CausalStep, RootCause
from dig.lab.benchmark.scores_answers import METRICS, Truth, agreement, marks

TRUTH = Truth(
    causes=frozenset({("b", "drop")}),
    nodes=frozenset({"b", "a", "task", "outcome"}),
    edges=frozenset({("b", "task"), ("task", "a"), ("a", "outcome")}),
    alarms=frozenset({"outcome"}),
)
CONCERNED = [{"a"}, {"b"}, {"a", "b"}, {"outcome"}]
"""The components that records 0 to 3 are about."""


def answer(causes: str, steps: str = "", *evidence: int) -> Answer:
    """`b/drop c/slow`, `b-a a-outcome`, all with the same evidence."""
    pairs = [cause.split("/") for cause in causes.split()]
    ways = [step.split("-") for step in steps.split()]
    return Answer(
        root_causes=tuple(RootCause(component=c, kind=k, evidence=evidence) for c, k in pairs),
        propagation=tuple(CausalStep(source=s, target=t, evidence=evidence) for s, t in ways),
    )


def rounded(given: Answer, truth: Truth = TRUTH) -> dict[str, float]:
    return {name: round(value, 3) for name, value in marks(given, truth, CONCERNED).items()}


def test_all_metrics_are_there_in_their_order() -> None:
    """What is measured is what the table of metrics says."""
    with_decoys = replace(TRUTH, innocent=frozenset({"c"}))
    assert [*marks(Answer(), with_decoys, CONCERNED)] == [*METRICS]


def test_a_right_answer_is_right_in_all() -> None:
    """Cause, way and evidence are the true ones."""
    given = Answer(
        root_causes=(RootCause(component="b", kind="drop", evidence=(1, 2)),),
        propagation=(
            CausalStep(source="b", target="task", evidence=(1,)),
            CausalStep(source="task", target="a", evidence=(0,)),
            CausalStep(source="a", target="outcome", evidence=(3,)),
        ),
    )
    assert set(rounded(given).values()) == {1.0}


def test_a_partly_right_answer() -> None:
    """One of two named causes is true; two of three steps; worked out by hand.

    Components named: b, c, task, a, outcome: five, of which all four true ones.
    Evidence: record 1 is about b (b/drop, b-task, b-a); not about c/slow nor a-outcome.
    """
    assert rounded(answer("b/drop c/slow", "b-task b-a a-outcome", 1)) == {
        "exact": 0,
        "precision": 0.5,
        "recall": 1,
        "f1": 0.667,
        "any_agent": 1,
        "path": 1,
        "path_kind": 1,
        "path_true": 0,
        "node_f1": 0.889,
        "edge_f1": 0.667,
        "evidence": 0.6,
        "agent": 1,
        "step": 1,
    }


def test_a_right_agent_with_a_wrong_kind() -> None:
    """The component alone anchors `any_agent` and `path`; the kind is asked for by `path_kind`."""
    found = rounded(answer("b/slow", "b-task task-a a-outcome", 2))
    assert (found["any_agent"], found["path"], found["path_true"]) == (1, 1, 1)
    assert (found["exact"], found["recall"], found["path_kind"]) == (0, 0, 0)


def test_a_path_must_begin_at_a_true_cause_and_end_at_an_alarm() -> None:
    """Neither a way from somebody else nor one that ends before the alarm counts."""
    assert rounded(answer("c/drop", "c-outcome"))["path"] == 0
    assert rounded(answer("b/drop", "b-a outcome-b"))["path"] == 0
    assert rounded(answer("c/drop b/slow", "c-outcome b-a"))["path"] == 0
    assert rounded(answer("b/drop", "b-c c-d d-outcome d-b"))["path"] == 1


def test_an_alarm_at_the_cause_itself_needs_no_step_if_there_is_no_other() -> None:
    """Else a way to the other alarm is asked for."""
    alone = Truth(TRUTH.causes, TRUTH.nodes, TRUTH.edges, frozenset({"b"}))
    both = Truth(TRUTH.causes, TRUTH.nodes, TRUTH.edges, frozenset({"b", "outcome"}))
    assert rounded(answer("b/drop"), alone)["path"] == 1
    assert rounded(answer("b/drop"), both)["path"] == 0


def test_nothing_answered_is_nothing_right() -> None:
    """An empty answer about a run with a fault has 0 in every metric."""
    assert set(rounded(Answer()).values()) == {0.0}


def test_empty_against_empty_is_one() -> None:
    """Where nothing was wrong, nothing is the right answer, and anything else is wrong."""
    nothing = Truth(frozenset(), frozenset(), frozenset(), frozenset())
    assert set(rounded(Answer(), nothing).values()) == {1.0}
    found = rounded(answer("b/drop", "b-outcome"), nothing)
    assert {name: value for name, value in found.items() if name != "evidence"} == {
        name: 0.0 for name in METRICS if name not in ("evidence", "innocents")
    }


@pytest.mark.parametrize(
    ("evidence", "share"),
    [((), 0.0), ((1,), 1.0), ((1, 2), 1.0), ((0,), 0.0), ((0, 1), 0.5), ((1, 4), 0.5), ((99,), 0)],
)
def test_evidence_must_exist_and_be_about_the_component(
    evidence: tuple[int, ...], share: float
) -> None:
    """Records 1 and 2 are about b; there is no record 4."""
    assert rounded(answer("b/drop", "", *evidence))["evidence"] == share


def test_a_claim_without_evidence_lowers_the_share() -> None:
    """Who proves one claim of two has proved half."""
    given = Answer(
        root_causes=(
            RootCause(component="b", kind="drop", evidence=(1,)),
            RootCause(component="a", kind="drop"),
        )
    )
    assert rounded(given)["evidence"] == 0.5


SETS = st.frozensets(st.integers(0, 6))


@given(SETS, SETS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(
    said: frozenset[int], true: frozenset[int]
) -> None:
    """For all sets; and it is 1 exactly if they are equal."""
    precision, recall, f1 = agreement(said, true)
    both = precision + recall
    assert f1 == pytest.approx(2 * precision * recall / both if both else 0)
    assert (f1 == 1) == (said == true)


AGENTS = st.sampled_from(["a", "b", "c", "task", "outcome"])
ANSWERS = st.builds(
    Answer,
    root_causes=st.lists(
        st.builds(
            RootCause,
            component=AGENTS,
            kind=st.sampled_from(["drop", "slow"]),
            evidence=st.lists(st.integers(0, 5), max_size=3).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
    propagation=st.lists(st.builds(CausalStep, source=AGENTS, target=AGENTS), max_size=5).map(
        tuple
    ),
)


@given(ANSWERS)
def test_metrics_bound_each_other(given: Answer) -> None:
    """Each is from 0 to 1; to follow a path is to have named its beginning."""
    found = marks(given, TRUTH, CONCERNED)
    assert all(0 <= value <= 1 for value in found.values())
    assert found["path_true"] <= found["path"] <= found["any_agent"]
    assert found["path_kind"] <= min(found["path"], float(found["recall"] > 0))
    assert found["exact"] <= found["f1"]
