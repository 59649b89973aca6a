"""The graph against the oracle on random traces, and against small ones judged by hand."""

from __future__ import annotations

import gc
import pickle
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig._util.ranges import RangeSet
from dig.errors import RecordError, RuleError
from dig.graph.codec import decode
from dig.graph.coverage import provenance
from dig.graph.graph import InteractionGraph
from dig.graph.state import EventState
from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row, State
from tests.random_traces import break_trace, random_trace
from tests.strategies import traces


def graph_of(rows: Iterable[Row]) -> InteractionGraph:
    return InteractionGraph.of(map(decode, rows))


# -- random traces: the same state as the oracle's ---


def seen_by_oracle(state: State) -> dict[str, Any]:
    """What is compared after every record; lists are in order."""
    events = [*state.emits]
    return {
        "work": [e for e in events if state.is_work(e)],
        "open": state.open_events,
        "orphans": [(e, state.orphaned[e]) for e in state.by_generation(state.orphaned)],
        "copies": {e: state.copies[e] for e in events},
        "flight": {e: state.flight[e] for e in events},
        "flying": [e for e in events if state.flight[e]],
        "consumed": {e for e in events if e in state.consumed},
        "bounced": state.bounced,
        "accepted": set(state.accepted),
        "present": state.present,
        "buffers": state.buffers,
        "incoming": {a: {e for e in events if a in state.flight[e]} for a in state.present},
        "busy": state.running,
        "roots": state.roots,
        "sources": state.sources,
        "answered": state.by_generation(state.answered),
    }


def seen_by_graph(graph: InteractionGraph) -> dict[str, Any]:
    """The same, as the graph has it."""
    names = graph.history.event_ids
    events = [graph.event(name) for name in names]
    ended = [v for n, v in enumerate(graph.history.activation_ids) if graph.history.t_end[n] >= 0]
    return {
        "work": [name for n, name in enumerate(names) if graph.history.is_work(n)],
        "open": [event.id for event in graph.open_events()],
        "orphans": [*graph.orphans().items()],
        "copies": {event.id: set(event.copies) for event in events},
        "flight": {event.id: set(event.flight) for event in events},
        "flying": [event.id for event in graph.flying()],
        "consumed": {event.id for event in events if event.consumed},
        "bounced": {e for e in names if graph.is_bounced(e)},
        "accepted": {e for e in names if graph.is_accepted(e)},
        "present": set(graph.agents),
        "buffers": {name: list(agent.buffer) for name, agent in graph.agents.items()},
        "incoming": {name: set(agent.incoming) for name, agent in graph.agents.items()},
        "busy": {a: s.activation.id for a, s in graph.agents.items() if s.activation is not None},
        "roots": {name: graph.roots(name) for name in [*names, *ended]},
        "sources": {e: graph.sources(e) for e in names},
        "answered": [
            names[n]
            for source, n in enumerate(graph.history.source_events)
            if not graph.problems.unanswered_sources(RangeSet.single(source))
        ],
    }


def picture(graph: nx.DiGraph[str]) -> tuple[dict[str, Any], dict[Any, Any]]:
    """A networkx graph in a form that can be compared: nodes and edges with attributes."""
    edges = {(source, target): label for source, target, label in graph.edges(data=True)}
    return {name: about for name, about in graph.nodes(data=True)}, edges  # noqa: C416  # mypy


@given(traces(most=40))
def test_the_state_is_the_oracles_after_every_record(rows: list[Row]) -> None:
    """Buffers, flights, fates, R(t), orphans, lineage, sources: all as defined, at any time."""
    graph = InteractionGraph()
    for one, expected in zip(rows, State.each(rows), strict=True):
        graph.apply(decode(one))
        assert seen_by_graph(graph) == seen_by_oracle(expected), f"after record {one['t']}"


@given(traces(most=40))
def test_the_pictures_are_the_oracles_after_every_record(rows: list[Row]) -> None:
    """The graph as it stands, raw and cleaned, has the oracle's nodes, edges and labels."""
    graph = InteractionGraph()
    for one, expected in zip(rows, State.each(rows), strict=True):
        graph.apply(decode(one))
        assert picture(graph.to_networkx()) == picture(expected.graph), f"after record {one['t']}"
        cleaned = graph.cleaned().to_networkx()
        assert picture(cleaned) == picture(expected.cleaned()), f"cleaned, {one['t']}"


@given(traces(most=40))
def test_a_whole_graph_remembers_how_it_stood_after_every_record(rows: list[Row]) -> None:
    """`at(t)`, raw and cleaned, forgets what came after the record at `t`."""
    graph = graph_of(rows)
    for t, expected in enumerate(State.each(rows)):
        assert picture(graph.at(t).to_networkx()) == picture(expected.graph), f"at({t})"
        cleaned = graph.at(t).cleaned().to_networkx()
        assert picture(cleaned) == picture(expected.cleaned()), f"at({t}), cleaned"


@given(traces())
def test_a_graph_is_bipartite_and_has_no_cycle(rows: list[Row]) -> None:
    """Edges lead from events to activations or back, and never into the past."""
    graph = graph_of(rows).to_networkx()
    kinds = graph.nodes(data="kind")
    for source, target in graph.edges:
        assert {kinds[source], kinds[target]} == {"event", "activation"}
    assert nx.is_directed_acyclic_graph(graph)


@given(traces())
def test_ancestors_are_the_activations_with_a_causal_path(rows: list[Row]) -> None:
    """Only productive edges make a causal path."""
    graph = graph_of(rows)
    cleaned = State.of(rows).cleaned()
    activations = graph.history.activation_ids
    for v in activations:
        before = nx.ancestors(cleaned, v) if v in cleaned else set()
        assert graph.ancestors(v) == before & set(activations)


def behind(graph: InteractionGraph, final: str) -> set[str]:
    found = provenance(graph, graph.event(final).n)
    return {graph.history.activation_ids[v] for v in found.activations}


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_a_final_event_lost_and_answers_what_the_oracle_says(
    seed: int, session: bool, memory: bool
) -> None:
    """What stands behind one that was just generated, `uncovered` and `asked` are as defined."""
    rows = random_trace(random.Random(seed), session=session, memory=memory)
    graph = InteractionGraph()
    for t, one in enumerate(rows):
        graph.apply(decode(one))
        if one["kind"] == "emit" and one["final"]:
            state, event = State.of(rows, at=t), one["event"]
            assert behind(graph, event) == state.behind(event)
            assert graph.uncovered_work(event) == state.uncovered(event)
            if session:
                asked = state.asked(event) - state.answered  # a failed request is asked for, too
                assert list(graph.asked_problems(event)) == state.by_generation(asked)


@given(st.integers(0, 2**32 - 1))
def test_a_refused_record_leaves_the_graph_as_it_was(seed: int) -> None:
    """Not the smallest part of the state changes, and the right record is still taken."""
    rng = random.Random(seed)
    rows = random_trace(rng)
    broken, index, kind = break_trace(rng, rows)
    graph = graph_of(rows[:index])
    before = pickle.dumps(graph)
    with pytest.raises((RecordError, RuleError)):
        graph.apply(decode(broken[index]))
    assert pickle.dumps(graph) == before, kind
    for one in rows[index:]:
        graph.apply(decode(one))
    assert seen_by_graph(graph) == seen_by_oracle(State.of(rows))


# -- the five canonical actions ---


def fates_of(graph: InteractionGraph, activation: str) -> dict[str, str | None]:
    """The fate on each delivery edge of an activation."""
    picture = graph.to_networkx()
    return {e: picture.edges[e, activation].get("fate") for e in picture.predecessors(activation)}


def buffer(graph: InteractionGraph, agent: str) -> list[str]:
    return list(graph.agents[agent].buffer)


def flight(graph: InteractionGraph, event: str) -> set[str]:
    return set(graph.event(event).flight)


def facing(*parts: Row | list[Row], **keys: Any) -> list[Row]:
    """`e0` and `e1` lie in front of `a`; then the parts."""
    return trace(arrive(0, "e0", None, "a"), arrive(0, "e1", None, "a"), *parts, **keys)


def test_respond_consumes_every_input_and_generates() -> None:
    """RESPOND: the inputs leave the buffer for good, the outputs are generated."""
    graph = graph_of(
        facing(turn(1, "v", "a", "x", e0="consume", e1="consume"), emit(1, "x", "v", "b"))
    )
    assert fates_of(graph, "v") == {"e0": "consume", "e1": "consume"}
    assert buffer(graph, "a") == []
    assert flight(graph, "x") == {"b"}
    assert [e.id for e in graph.open_events()] == ["x"]
    assert graph.to_networkx().edges["v", "x"] == {"kind": "generation", "t": 7}


def test_wait_delays_every_input_and_changes_nothing() -> None:
    """WAIT: the buffer is as it was."""
    graph = graph_of(facing(turn(1, "v", "a", e0="delay", e1="delay")))
    assert fates_of(graph, "v") == {"e0": "delay", "e1": "delay"}
    assert buffer(graph, "a") == ["e0", "e1"]
    assert [e.id for e in graph.open_events()] == ["e0", "e1"]


def test_reroute_sends_the_same_event_on() -> None:
    """REROUTE: the selected input is on its way to the new recipients; the rest stays."""
    graph = graph_of(facing(turn(1, "v", "a", e0=("b", "c"), e1="delay")))
    assert fates_of(graph, "v") == {"e0": "reroute", "e1": "delay"}
    assert buffer(graph, "a") == ["e1"]
    assert flight(graph, "e0") == {"b", "c"}


def test_discard_throws_the_selected_input_away() -> None:
    """DISCARD: the selected input is orphaned; the rest stays."""
    graph = graph_of(facing(turn(1, "v", "a", e0="discard", e1="delay")))
    assert fates_of(graph, "v") == {"e0": "discard", "e1": "delay"}
    assert buffer(graph, "a") == ["e1"]
    assert graph.orphans() == {"e0": "discarded"}


def test_submit_generates_one_final_event_and_nothing_else() -> None:
    """SUBMIT: the final event has no flight; when it is accepted, the run is over."""
    rows = facing(turn(1, "v", "a", "f", e0="consume", e1="consume"), final(1, "f", "v"))
    graph = graph_of(rows)
    assert flight(graph, "f") == set()
    assert (graph.open_events(), graph.is_over) == ([], False)
    graph.apply(decode({"t": len(rows), **deliver(2, "f", None)}))
    assert graph.is_accepted("f") and graph.is_over


# -- decisions of other shapes ---


def test_an_agent_may_mix_fates() -> None:
    """Consume one, wait on another, reroute a third and discard a fourth."""
    rows = trace(
        *[arrive(0, f"e{n}", None, "a") for n in range(4)],
        start(1, "v", "a", "e0 e1 e2 e3"),
        end(1, "v", "x", e3="discard", e2=("b",), e0="consume", e1="delay"),
        emit(1, "x", "v", "a"),
    )
    graph = graph_of(rows)
    expected = {"e0": "consume", "e1": "delay", "e2": "reroute", "e3": "discard"}
    assert fates_of(graph, "v") == expected
    assert buffer(graph, "a") == ["e1"]
    assert [e.id for e in graph.open_events()] == ["e1", "e2", "x"]
    assert graph.roots("x") == {"v"}
    assert graph.sources("x") == {"e0"}


def test_silence_loses_nothing() -> None:
    """An input that a decision does not name is delayed; a note of the system was read."""
    rows = facing(
        arrive(0, "s", "system", "a", "system"), start(1, "v", "a", "e0 e1 s"), end(1, "v")
    )
    graph = graph_of(rows)
    assert fates_of(graph, "v") == {"e0": "delay", "e1": "delay", "s": "consume"}
    assert buffer(graph, "a") == ["e0", "e1"]


def test_an_event_may_be_rerouted_to_oneself() -> None:
    """Who reroutes an event does not hold it any more, and so may get it again."""
    rows = facing(turn(1, "v", "a", e0=("a",), e1="delay"))
    assert flight(graph_of(rows), "e0") == {"a"}
    again = graph_of([*rows, {"t": len(rows), **deliver(2, "e0", "a")}])
    assert buffer(again, "a") == ["e1", "e0"]


def test_a_reroute_to_those_who_hold_the_event_leads_nowhere() -> None:
    """Nobody holds an event twice; the rerouted copy is gone, the other one stays."""
    rows = trace(arrive(0, "e", None, "ab"), turn(1, "v", "a", e=("b", "ghost")))
    graph = graph_of(rows)
    assert (flight(graph, "e"), set(graph.event("e").copies)) == (set(), {"b"})
    assert [e.id for e in graph.open_events()] == ["e"]


def test_recipients_who_are_absent_or_hold_it_are_ignored_for_good() -> None:
    """An agent that joins later does not get what was sent before."""
    rows = trace(
        emit(0, "e", None, "abz"),
        deliver(0, "e", "a"),
        row(0, "redirect", event="e", to=["a", "c"]),
        row(0, "join", agent="z"),
    )
    assert flight(graph_of(rows), "e") == {"c"}


# -- loss, and coming back ---


@pytest.mark.parametrize(
    ("cause", "rows"),
    [
        ("no_recipient", trace(emit(0, "e", None, "z"))),
        (
            "no_recipient",
            trace(emit(0, "e", None, "a"), row(1, "redirect", event="e", to=[])),
        ),
        ("no_recipient", trace(arrive(0, "e", None, "a"), turn(1, "v", "a", e=("z",)))),
        ("discarded", trace(arrive(0, "e", None, "a"), turn(1, "v", "a", e="discard"))),
        ("left", trace(arrive(0, "e", None, "a"), row(1, "leave", agent="a"))),
        ("left", trace(emit(0, "e", None, "a"), row(1, "leave", agent="a"))),
        ("expired", trace(emit(0, "e", None, "a"), row(1, "expire", event="e"))),
    ],
)
def test_an_orphan_has_the_cause_of_the_record_that_made_it_one(
    cause: str, rows: list[Row]
) -> None:
    """Later records do not change the cause."""
    assert graph_of(rows).orphans() == {"e": cause}
    later = [row(2, "redirect", event="e", to=["z"]), row(3, "expire", event="e")]
    more = [{**one, "t": len(rows) + n} for n, one in enumerate(later)]
    assert graph_of([*rows, *more]).orphans() == {"e": cause}


def test_an_orphan_may_be_revived() -> None:
    """Sent to somebody again, it is open; lost again, it has the new cause."""
    rows = trace(
        emit(0, "e", None, "a"),
        row(1, "expire", event="e"),
        row(2, "redirect", event="e", to=["b"]),
    )
    graph = graph_of(rows)
    assert (graph.orphans(), [e.id for e in graph.open_events()]) == ({}, ["e"])
    graph.apply(decode({"t": 4, **row(3, "leave", agent="b")}))
    assert graph.orphans() == {"e": "left"}


def test_what_was_consumed_may_be_sent_on_but_is_never_open_again() -> None:
    """A redirect of a used event delivers it; it is work no more."""
    rows = trace(
        arrive(0, "e", None, "a"),
        turn(1, "v", "a", e="consume"),
        row(2, "redirect", event="e", to=["b"]),
        deliver(2, "e", "b"),
        turn(3, "w", "b", e="discard"),
    )
    for t in range(len(rows)):
        graph = graph_of(rows[: t + 1])
        assert bool(graph.open_events()) == (1 <= t < 4)
        assert graph.orphans() == {}


def test_expiry_calls_back_what_is_on_its_way_and_leaves_the_copies() -> None:
    """Who has the event keeps it."""
    rows = trace(emit(0, "e", None, "ab"), deliver(0, "e", "a"), row(1, "expire", event="e"))
    graph = graph_of(rows)
    assert (flight(graph, "e"), buffer(graph, "a")) == (set(), ["e"])
    assert (graph.orphans(), [e.id for e in graph.open_events()]) == ({}, ["e"])


def test_an_agent_that_leaves_takes_its_activation_and_its_buffer_along() -> None:
    """The activation never ends: its edges keep no fate, and it has no end to come."""
    rows = trace(
        arrive(0, "e0", None, "a"),
        emit(0, "e1", None, "ab"),
        start(1, "v", "a", "e0"),
        row(2, "leave", agent="a"),
    )
    graph = graph_of(rows)
    assert fates_of(graph, "v") == {"e0": None}
    assert "t_end" not in graph.to_networkx().nodes["v"]
    assert (graph.orphans(), flight(graph, "e1")) == ({"e0": "left"}, {"b"})
    assert (dict(graph.activations), set(graph.agents)) == ({}, {"b", "c"})
    with pytest.raises(RuleError, match="'v' is not an activation in progress"):
        graph.apply(decode({"t": len(rows), **end(3, "v")}))


def test_an_agent_that_returns_starts_with_nothing() -> None:
    """Neither its buffer nor what was on its way to it comes back with it."""
    rows = trace(
        arrive(0, "e0", None, "a"),
        emit(0, "e1", None, "a"),
        row(1, "leave", agent="a"),
        row(2, "join", agent="a"),
    )
    agent = graph_of(rows).agents["a"]
    assert (dict(agent.buffer), dict(agent.incoming), agent.activation) == ({}, {}, None)


# -- answers ---


def test_a_bounced_answer_is_an_event_like_any_other_but_no_work() -> None:
    """It comes back into the submitter's buffer, is not open, and is never accepted."""
    rows = trace(
        arrive(0, "e", None, "a"),
        turn(1, "v", "a", "f", e="consume"),
        final(1, "f", "v"),
        row(1, "redirect", event="f", to=["a"]),
        deliver(1, "f", "a"),
    )
    graph = graph_of(rows)
    assert graph.is_bounced("f") and not graph.is_accepted("f")
    assert (buffer(graph, "a"), graph.open_events()) == (["f"], [])
    with pytest.raises(RuleError, match="was bounced, so it cannot be accepted"):
        graph.apply(decode({"t": len(rows), **deliver(2, "f", None)}))


def test_an_answer_that_is_on_its_way_back_may_still_be_accepted() -> None:
    """It is bounced when it arrives, not before; accepted, it is on its way to nobody."""
    rows = trace(
        arrive(0, "e", None, "a"),
        turn(1, "v", "a", "f", e="consume"),
        final(1, "f", "v"),
        row(1, "redirect", event="f", to=["a"]),
        deliver(1, "f", None),
    )
    graph = graph_of(rows)
    assert graph.is_accepted("f") and not graph.is_bounced("f")
    assert (flight(graph, "f"), dict(graph.agents["a"].incoming)) == (set(), {})


def test_only_a_session_goes_on_after_an_answer() -> None:
    """Elsewhere nothing but findings, healings, incidents and `finish` may follow."""
    rows = trace(
        arrive(0, "e0", None, "a"),
        turn(1, "v", "a", "f", e0="consume"),
        final(1, "f", "v"),
        deliver(1, "f", None),
        row(2, "incident", what="x", detail=None),
        emit(2, "e1", None, "b"),
    )
    with pytest.raises(RuleError, match="no `emit` may follow an accepted final event"):
        graph_of(rows)
    graph = graph_of([{**rows[0], "session": True}, *rows[1:]])
    assert [e.id for e in graph.open_events()] == ["e1"]
    assert graph.asked_problems("f") == ()  # asked already


# -- what the graph is asked for ---


def test_an_unknown_id_is_a_key_error() -> None:
    """Whoever asks for what there is not is told its name."""
    graph = graph_of(facing(start(1, "v", "a", "e0 e1")))
    for ask in (graph.event, graph.roots, graph.sources, graph.is_accepted, graph.ancestors):
        with pytest.raises(KeyError, match="nobody"):
            ask("nobody")
    with pytest.raises(KeyError, match="v"):
        graph.event("v")
    with pytest.raises(KeyError, match="e0"):
        graph.ancestors("e0")


def test_the_state_cannot_be_written_to() -> None:
    """Agents and activations are handed out read-only."""
    graph = graph_of(facing())
    for mapping in (graph.agents, graph.activations):
        with pytest.raises(TypeError, match="does not support item assignment"):
            mapping["x"] = mapping.get("a")  # type: ignore[index]


def pipeline(problems: int) -> list[Row]:
    """`a` passes each problem on to `b`, which uses it up; one record after the other."""
    parts: list[Row | list[Row]] = []
    for n in range(problems):
        parts += [
            arrive(n, f"p{n}", None, "a"),
            turn(n, f"v{n}", "a", f"x{n}", **{f"p{n}": "consume"}),
            arrive(n, f"x{n}", f"v{n}", "b"),
            turn(n, f"w{n}", "b", **{f"x{n}": "consume"}),
        ]
    return trace(*parts)


def live_events() -> int:
    """How many objects there are that stand for an event that may still change."""
    gc.collect()
    return Counter(map(type, gc.get_objects()))[EventState]


@pytest.mark.parametrize("session", [False, True])
def test_memory_follows_the_frontier(session: bool) -> None:
    """What is used up costs no object: a long run has as few as a short one."""
    rows = pipeline(500)
    before = live_events()
    graph = graph_of([{**rows[0], "session": session}, *rows[1:]])
    assert live_events() - before <= 2  # the last activation and the last record hold theirs
    assert graph.event("p0").consumed


def test_of_problems_that_are_alike_only_those_that_are_asked_about_are_unanswered() -> None:
    """Three problems of which one event is made are kept as one; two of them are two."""
    asked = [arrive(0, name, None, "a") for name in ("p", "q", "r")]
    merged = turn(0, "v", "a", "m", p="consume", q="consume", r="consume")
    graph = graph_of(trace(*asked, merged, arrive(0, "m", "v", "b"), session=True))
    assert graph.unanswered_sources(graph.event("m").sources) == ["p", "q", "r"]
    assert graph.unanswered_sources(RangeSet((0, 2))) == ["p", "q"]
