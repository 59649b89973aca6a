"""Explanations: sentences, and paths that are really there."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from typing import Any

import pytest

from dig.detectors import standard
from dig.detectors.describe import explain
from dig.detectors.finding import Explanation, Finding
from dig.detectors.watch import Watch
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from tests.failing import at_limit, request_failed
from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row
from tests.oracle_findings import PATTERNS
from tests.random_traces import random_trace


def watched(rows: list[Row]) -> tuple[InteractionGraph, list[tuple[Finding, Explanation]]]:
    """The graph, and its findings with their explanations of the moment of raising."""
    watch = Watch(standard())
    found = []
    for one in rows:
        record = decode(one)
        found += [(finding, explain(watch.graph, finding)) for finding in watch.feed(record)]
    return watch.graph, found


@pytest.fixture(scope="module")
def explained() -> list[tuple[InteractionGraph, Finding, Explanation]]:
    """Findings of every pattern, with the whole graph and their explanation when raised."""
    made = []
    for seed in range(120):
        graph, found = watched(random_trace(random.Random(f"explain {seed}"), length=50))
        made += [(graph, finding, explanation) for finding, explanation in found]
    assert {finding.pattern for _, finding, _ in made} >= set(PATTERNS)
    return made


def test_an_explanation_does_not_change_as_the_graph_grows(
    explained: list[tuple[InteractionGraph, Finding, Explanation]],
) -> None:
    """What came after a finding is no reason for it."""
    for graph, finding, then in explained:
        assert explain(graph, finding) == then


def test_missing_work_names_the_agent_that_was_not_started_and_who_sent_it() -> None:
    """A branch that was skipped: only the agent before which the work lies never ran."""
    rows = trace(
        arrive(0, "p", None, "a"),
        turn(1, "v", "a", "q k", p="consume"),
        [
            emit(1, "q", "v", "b"),
            emit(1, "k", "v", "a"),
            deliver(1, "q", "b"),
            deliver(1, "k", "a"),
        ],
        turn(2, "w", "a", "f", k="consume"),
        final(2, "f", "w"),
    )
    graph, found = watched(rows)
    ((early, explanation),) = ((f, e) for f, e in found if f.pattern == "ET")
    assert (
        explanation.now
        == "q lies in front of b, to which a sent it, and which has not been started."
    )
    assert str(explanation).startswith(f"{explanation.text} {explanation.now}")
    for one in (start(3, "x", "b", "q"), end(3, "x", q="consume")):
        graph.apply(decode({"t": graph.t + 1, **one}))
    assert explain(graph, early).now == ""


def test_a_path_leads_along_edges_that_were_there(
    explained: list[tuple[InteractionGraph, Finding, Explanation]],
) -> None:
    """Two neighbours are joined by an edge; only the hands that an event went through share it."""
    count = 0
    for graph, finding, explanation in explained:
        edges = graph.at(finding.t).to_networkx().edges
        for path in explanation.paths:
            for before, after in pairwise(path.nodes):
                count += 1
                assert (before, after) in edges or finding.pattern == "ER"
        if finding.pattern == "ER":
            event, *hands = explanation.paths[0].nodes[-len(finding.evidence["path"]) - 1 :]
            assert [graph.history.agent(graph.history.activation(v) or 0) for v in hands] == (
                finding.evidence["path"]
            )
            assert all(edges[event, v]["fate"] == "reroute" for v in hands)
    assert count > 500


def test_every_pattern_has_a_path_where_there_is_one(
    explained: list[tuple[InteractionGraph, Finding, Explanation]],
) -> None:
    """Only a team in which nobody has worked has nothing to show, and a request without a name."""
    for _, finding, explanation in explained:
        assert explanation.paths or finding.evidence == {"last": None} or not finding.subject
        assert re.search(r"\.$", explanation.text)


def explain_last(*parts: Row | list[Row], **keys: Any) -> str:
    _, found = watched(trace(*parts, **keys))
    return str(found[-1][1])


def test_an_early_answer_is_explained_by_the_work_that_is_open() -> None:
    """Who has the open work, and how it came there."""
    text = explain_last(
        arrive(0, "e", None, "a"),
        turn(1, "v", "a", "x y", e="consume"),
        [emit(1, "x", "v", "b"), emit(1, "y", "v", "c")],
        [deliver(1, "x", "b"), deliver(1, "y", "c")],
        start(2, "w", "c", "y"),
        turn(3, "u", "b", "z", x="consume"),
        final(3, "z", "u"),
    )
    assert text == (
        "answer z was submitted too early; still open: y. y is in front of w of c.\n"
        "  path: e -> v of a -> y -> w of c"
    )


def test_reroutes_are_explained_by_the_hands_they_went_through() -> None:
    """The path names the activations, not only the agents."""
    text = explain_last(
        arrive(0, "e", None, "a"),
        turn(1, "v", "a", e=("b",)),
        deliver(1, "e", "b"),
        turn(2, "w", "b", e=("a",)),
        limits={"reroute_limit": 1},
    )
    assert text == (
        "e was passed on 2 times and not consumed: by a, b.\n"
        "  path: e -> v of a (reroute) -> w of b (reroute)"
    )


def test_a_limit_is_explained_by_the_way_to_the_latest_turn() -> None:
    """The first turn of a request says nothing about a limit that many turns have reached."""
    finding, told = watched(at_limit())[1][-1]
    assert (finding.pattern, finding.stage) == ("FAIL", "request")
    (path,) = told.paths
    assert path.text.startswith("p -> a0 of writer") and path.text.endswith("a3 of critic")


def test_a_path_that_another_one_begins_with_is_left_out() -> None:
    """The request leads to the turn that has ended the request."""
    bad = end(1, "v", p="consume") | {"error": "ValueError: no"}
    rows = [*arrive(0, "p", None, "a"), start(1, "v", "a", "p"), bad]
    told = explain_last(*rows, request_failed(1, "error", "p", "v", "ValueError: no"))
    assert told.splitlines()[1:] == ["  path: p -> v of a"]


def test_an_error_that_evidence_has_cut_ends_with_three_full_stops() -> None:
    """Not inside a word."""
    bad = end(1, "v", p="consume") | {"error": "ValueError: " + "long " * 50}
    said = explain_last(arrive(0, "p", None, "a"), start(1, "v", "a", "p"), bad)
    assert said.splitlines()[0].endswith(" long long ...")


def test_work_of_two_origins_is_explained_by_both() -> None:
    """One path from each root; a long one is cut in the middle."""
    text = explain_last(
        arrive(0, "e", None, "ab"),
        turn(1, "v", "a", "x", e="consume"),
        arrive(1, "x", "v", "c"),
        turn(1, "w", "b", "y", e="consume"),
        arrive(1, "y", "w", "c"),
    )
    assert text == (
        "y came to c beside x, of other origin. "
        "y goes back to w, x to v, and no activation is behind both.\n"
        "  path: w of b -> y\n"
        "  path: v of a -> x"
    )


def test_a_long_path_is_cut_in_the_middle() -> None:
    """The beginning and the end are what counts; the nodes are all there for a program."""
    parts: list[Row | list[Row]] = [arrive(0, "e0", None, "a")]
    for i in range(20):
        parts.append(turn(1, f"v{i}", "a", f"e{i + 1}", **{f"e{i}": "consume"}))
        parts.append(arrive(1, f"e{i + 1}", f"v{i}", "a"))
    parts.append(row(99, "incident", what="x", detail=None))
    _, found = watched(trace(*parts, limits={"dl_window_s": 5}))
    (path,) = found[0][1].paths
    assert len(path.nodes) == 41
    assert str(path) == (
        "e0 -> v0 of a -> e1 -> (33 more) -> e18 -> v18 of a -> e19 -> v19 of a -> e20"
    )


def test_a_finding_of_ones_own_is_explained_by_what_it_names() -> None:
    """Ids anywhere in subject and evidence become paths; what is no id is just told."""
    graph, _ = watched(
        trace(
            arrive(0, "e", None, "a"),
            turn(1, "v", "a", "x", e="consume"),
            arrive(1, "x", "v", "b"),
            start(2, "w", "b", "x"),
        )
    )
    found = Finding("MINE", graph.t, graph.now, {"agent": "b"}, {"events": ["x"], "times": 3})
    assert str(explain(graph, found)) == (
        "about agent b; events: x; times: 3\n  path: e -> v of a -> x -> w of b"
    )


def test_an_explanation_of_ones_own_is_used() -> None:
    """`why` explains a finding better than its evidence can."""
    why = Explanation("because")
    found = Finding("MINE", 0, 0, {}, {}, why=lambda graph, finding: why)
    assert explain(InteractionGraph(), found) == why


def test_waiting_work_is_explained_by_who_waits_with_it() -> None:
    """A deadlock shows the way to what each agent holds."""
    text = explain_last(
        arrive(0, "e", None, "a"),
        turn(1, "v", "a", "x", e="consume"),
        arrive(1, "x", "v", "b"),
        start(2, "w", "b", "x"),
        end(2, "w", x="delay"),
        row(20, "incident", what="x", detail=None),
        limits={"dl_window_s": 5},
    )
    assert text == (
        "work is waiting, and nobody makes progress: b holds x. x was delayed by w of b.\n"
        "  path: e -> v of a -> x -> w of b (delay)"
    )
