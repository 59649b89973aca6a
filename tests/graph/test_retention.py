"""Letting go: of nothing that a verdict will ever ask for; what stays, says what it said before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.detectors import standard
from dig.detectors.describe import explain
from dig.detectors.finding import Finding
from dig.detectors.watch import Watch
from dig.errors import RuleError, SettingsError
from dig.graph.behaviour import Behaviour
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from tests import histories
from tests.histories import arrive, deliver, emit, end, final, start, trace, turn
from tests.oracle import Row
from tests.retaining_traces import found_letting_go, session_rows


def graph_of(rows: list[Row]) -> InteractionGraph:
    return InteractionGraph.of(map(decode, rows))


def found_in(rows: list[Row]) -> tuple[list[Finding], Watch]:
    """All that is found, and the watch that has seen all of it."""
    watch = Watch(standard())
    return [finding for row in rows for finding in watch.feed(decode(row))], watch


def answered(name: str = "p", agent: str = "a") -> list[Row]:
    """A request, answered at once."""
    v, e = f"v{name}", f"e{name}"
    asked = [*arrive(0, name, None, agent), *turn(0, v, agent, e, **{name: "consume"})]
    return [*asked, final(0, e, v), deliver(0, e, None)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("number", range(300))
def test_findings_are_the_same_whatever_is_let_go_of(number: int) -> None:
    """In a random session, the graph lets go of what it can at random moments."""
    rows = session_rows(number)
    kept, watch = found_letting_go(rows, number, keep=(0, 5, 30)[number % 3], often=0.4)
    assert kept == found_letting_go(rows, number, keep=0, often=0.0)[0]
    assert watch.graph.event_count == sum(row["kind"] == "emit" for row in rows)


@given(st.integers(0, 10**6), st.integers(0, 80), st.floats(0.05, 1))
def test_findings_are_the_same_however_much_is_kept(number: int, keep: int, often: float) -> None:
    """However many records stay, and however often the others are let go of."""
    rows = session_rows(number)
    kept, _ = found_letting_go(rows, number, keep, often)
    assert kept == found_letting_go(rows, number, keep=0, often=0.0)[0]


def test_an_answered_request_is_gone() -> None:
    """With its answer and the activation between them; the counts still have them."""
    graph = graph_of(trace(*answered("p"), *arrive(1, "q", None, "b"), session=True))
    graph.evict(0)
    assert list(graph.history.event_ids) == ["q"] and len(graph.history.activation_ids) == 0
    assert (graph.event_count, graph.activation_count) == (3, 1)
    assert graph.knows("q") and not graph.knows("p")


def test_the_latest_records_stay() -> None:
    """So many as are asked for."""
    rows = trace(*answered("p"), *answered("q"), session=True)
    graph = graph_of(rows)
    graph.evict(len(answered("q")))
    assert list(graph.history.event_ids) == ["q", "eq"]
    assert graph.to_networkx().number_of_edges() == 2


def test_a_request_that_was_worked_on_stays_until_it_is_answered() -> None:
    """Whoever consumed it may still answer it, so all behind it stays."""
    rows = trace(
        arrive(0, "p", None, "a"), turn(0, "v", "a", "e", p="consume"),
        arrive(0, "e", "v", "b"), turn(0, "w", "b", e="consume"), session=True,
    )  # fmt: skip
    graph = graph_of(rows)
    graph.evict(0)
    assert graph.ancestors("w") == {"v"} and graph.roots("w") == {"v"}


def test_who_is_behind_what_lies_in_a_buffer_is_still_known() -> None:
    """Its generator and its roots, though not what they did."""
    rows = trace(
        arrive(0, "p", None, "a"), turn(0, "v", "a", "e", p="consume"), arrive(0, "e", "v", "b"),
        turn(0, "w", "b", "f", e="consume"), arrive(0, "f", "w", "ca"),
        turn(0, "x", "a", "g", f="consume"), final(0, "g", "x"), deliver(0, "g", None),
        session=True,
    )  # fmt: skip
    graph = graph_of(rows)
    graph.evict(0)
    event = graph.event("f")
    assert (event.by, graph.history.sender(event.n)) == ("w", "b")
    assert graph.roots("f") == {"v"} and graph.roots("w") == {"v"}
    assert list(event.copies) == ["c"] and graph.sources("f") == {"p"} and not graph.knows("p")
    w = graph.history.activation("w")
    assert w is not None and not list(graph.history.edges(w)) and not graph.knows("e")


def test_what_is_gone_cannot_be_named() -> None:
    """A record that names it is refused, as one that names nothing."""
    graph = graph_of(trace(*answered("p"), session=True))
    graph.evict(0)
    row = {"t": graph.t + 1, "ts": 0, "kind": "redirect", "event": "p", "to": ["a"]}
    with pytest.raises(RuleError, match="there is no event 'p'"):
        graph.apply(decode(row))


def test_what_is_only_shown_any_more_cannot_be_named() -> None:
    """A lost event that is let go of, while whoever lost it is kept since that was lately."""
    rows = trace(
        arrive(0, "p", None, "a"), turn(0, "v", "a", p=()), emit(9, "n", "system"),
        session=True, limits={"oe_window_s": 2, "mc_window_s": 4},
    )  # fmt: skip
    findings, watch = found_in(rows)
    graph = watch.graph
    assert len(findings) == 2 and graph.orphans() == {"p": "no_recipient"}
    graph.evict(2)
    assert graph.orphans() == {} and {*graph.to_networkx().nodes} >= {"p", "v"}
    assert not graph.knows("p")
    sent_on = {"t": graph.t + 1, "ts": 9, "kind": "redirect", "event": "p", "to": ["b"]}
    with pytest.raises(RuleError, match="there is no event 'p'"):
        graph.apply(decode(sent_on))


def test_a_request_that_nobody_can_answer_is_given_up_when_all_was_told() -> None:
    """It is lost, nobody consumed it, and both OE and MC have been raised."""
    limits = {"oe_window_s": 2, "mc_window_s": 4}
    watch = Watch(standard())
    lost = trace(emit(0, "p", None, ""), session=True, limits=limits)
    for row in lost:
        watch.feed(decode(row))
    graph, found = watch.graph, list[str]()
    for ts in (1, 3, 5):
        graph.evict(0)
        assert graph.orphans() == {"p": "no_recipient"}
        row = {"t": graph.t + 1, "ts": ts, "kind": "join", "agent": f"new {ts}"}
        found += [finding.pattern for finding in watch.feed(decode(row))]
    assert found == ["OE", "MC"]
    graph.evict(0)
    assert not graph.knows("p") and graph.orphans() == {} and not graph.problems.waiting


def test_what_somebody_means_to_send_on_stays() -> None:
    """With all that is to be said about it then, though it is closed."""
    rows = trace(*answered("p"), arrive(9, "q", None, "b"), session=True)
    graph = graph_of(rows)
    graph.evict(0, {"p"})
    row = {"t": graph.t + 1, "ts": 9, "kind": "redirect", "event": "p", "to": ["c"]}
    graph.apply(decode(row))
    assert list(graph.event("p").flight) == ["c"] and graph.event("p").consumed


def test_what_stays_of_a_closed_event_has_its_roots_and_sources() -> None:
    """Also where all that led to them is gone."""
    rows = trace(
        arrive(0, "p", None, "a"), turn(0, "v", "a", "e", p="consume"), arrive(0, "e", "v", "b"),
        turn(0, "w", "b", "f", e="consume"), arrive(0, "f", "w", "a"),
        turn(0, "x", "a", "g", f="consume"), final(0, "g", "x"), deliver(0, "g", None),
        session=True,
    )  # fmt: skip
    graph = graph_of(rows)
    graph.evict(0, {"p", "f"})
    assert not graph.knows("e") and not graph.event("f").copies
    assert graph.roots("f") == {"v"} and graph.sources("f") == {"p"}
    graph.evict(0, {"f"})
    assert graph.roots("f") == {"v"} and not graph.sources("f")


def test_an_answer_that_is_not_accepted_yet_answers_what_it_did_before() -> None:
    """A submitter with inputs has no other requests of its agent behind it, whatever is gone."""
    rows = trace(
        arrive(0, "p", None, "a"), turn(0, "v", "a", p="consume"),
        start(0, "w", "b"), end(0, "w", "e"), arrive(0, "e", "w", "a"),
        turn(0, "x", "a", "f", e="consume"), final(0, "f", "x"), session=True,
    )  # fmt: skip
    graph = graph_of(rows)
    graph.evict(0)
    row = {"t": graph.t + 1, "ts": 0, "kind": "deliver", "event": "f", "to": None}
    graph.apply(decode(row))
    assert list(graph.problems.waiting) == [0] and graph.history.event_ids[0] == "p"


@pytest.mark.parametrize("number", range(40))
def test_what_is_gone_is_not_told_otherwise(number: int) -> None:
    """An explanation never says of what is gone that it was not, and marks a path that is cut."""
    rows = session_rows(number)
    _, letting_go = found_letting_go(rows, number, keep=5, often=0.4)
    findings, whole = found_in(rows)
    for finding in findings:
        told, known = (explain(one.graph, finding) for one in (letting_go, whole))
        assert told.text.count("nobody has seen") <= known.text.count("nobody has seen")
        if finding.pattern == "LOOP" and len(told.paths) < len(known.paths):
            continue  # of two messages that say the same, the one that is gone has no path
        if finding.stage == "request" and told.paths != known.paths:
            continue  # its latest turn is gone, so the path leads to the request
        assert len(told.paths) == len(known.paths)
        for path, all_of_it in zip(told.paths, known.paths, strict=True):
            assert path.text.startswith("...") or path.nodes[0] == all_of_it.nodes[0]


def test_a_graph_that_has_let_go_of_something_is_not_compared() -> None:
    """Its behaviour would be that of another run."""
    graph = graph_of(trace(*answered("p"), session=True))
    assert len(Behaviour.of(graph).steps) == 4
    graph.evict(0)
    with pytest.raises(SettingsError, match="has let go of 2 events: compare its trace"):
        Behaviour.of(graph)


def test_an_index_for_explanations_is_made_anew() -> None:
    """Who saw an event is right after numbers have changed."""
    rows = trace(*answered("p"), arrive(0, "q", None, "b"), start(0, "w", "b", "q"), session=True)
    graph = graph_of(rows)
    assert [*graph.history.sightings(0)] == [0]
    graph.evict(0)
    assert [*graph.history.sightings(0)] == [0] and graph.history.event_ids[0] == "q"
    assert list(graph.activations) == ["w"] and graph.activations["w"].n == 0


def test_what_was_lost_stays_until_its_window_has_passed() -> None:
    """Until then OE can be raised about it, also if no detector has asked for it to stay."""
    joins = [histories.row(ts, "join", agent=f"d{ts}") for ts in (9, 10)]
    rows = trace(emit(0, "lost", None), joins, session=True, limits={"oe_window_s": 10})
    graph = graph_of(rows[:-1])
    graph.evict(0)
    assert graph.knows("lost")
    graph.apply(decode(rows[-1]))
    graph.evict(0)
    assert not graph.knows("lost")
