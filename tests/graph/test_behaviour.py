"""Behaviour: what counts as the same, strictly and causally, and what does not."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given

from dig.errors import UndecidedError
from dig.graph.behaviour import (
    ActivationEnd,
    ActivationStart,
    Behaviour,
    Generation,
    same_behaviour,
    signature,
)
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from tests.behaviours import are_alike, bare, behaviour_of, check_same, graph_of, renamed, storm
from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row, State
from tests.strategies import traces


def two_parts(first: str = "b", second: str = "c", **more: str) -> list[Row]:
    """`a` splits a problem; two agents solve a part each, one after the other."""
    fates = {"q": "consume", "r": "consume"} | more
    return trace(
        arrive(0, "p", None, "a"),
        turn(1, "v", "a", "q r", p="consume"),
        emit(1, "q", "v", first),
        emit(1, "r", "v", second),
        deliver(1, "q", first),
        deliver(1, "r", second),
        turn(2, "w", first, "s", q=fates["q"]),
        arrive(2, "s", "w", "a"),
        turn(3, "x", second, "t", r=fates["r"]),
        arrive(3, "t", "x", "a"),
    )


# --- what makes no difference ---


def test_storm_of_random_runs() -> None:
    """Renamed and commuted runs are the same; what is changed is judged as networkx judges it."""
    done = storm(seed=1, count=40)
    assert done["commuted"] > 400
    assert done["moved, and alike again"] < done["moved"] / 2


@given(traces(most=40))
def test_a_behaviour_is_the_graph_of_the_run(rows: list[Row]) -> None:
    """Nodes, edges and fates are those of the slow reconstruction from the definitions."""
    state, behaviour = State.of(rows), behaviour_of(rows)
    names = behaviour.names
    assert names is not None
    found: dict[tuple[str, str], str | None] = {}
    for v, beginning in enumerate(behaviour.beginnings):
        fates = behaviour.fates.get(v) or [None] * len(beginning.events)
        for e, fate in zip(beginning.events, fates, strict=True):
            found[names.events[e], names.activations[v]] = fate
    made = [step for step in behaviour.steps if isinstance(step, Generation)]
    for n, step in enumerate(made):
        if step.by is not None:
            found[names.activations[step.by], names.events[n]] = None
    edges = state.graph.edges(data=True)
    assert found == {(source, target): keys.get("fate") for source, target, keys in edges}


@given(traces(most=40))
def test_rows_that_change_no_graph_are_no_behaviour(rows: list[Row]) -> None:
    """What a monitor raised, healed or noted does not count, in either notion."""
    check_same(behaviour_of(rows), behaviour_of(bare(rows)), strict=True)


def test_names_payloads_types_and_times_do_not_count() -> None:
    """Neither notion sees who it was, what was said, or how long it took."""
    rows = two_parts()
    other = renamed(rows, random.Random(3))
    assert {r.get("agent") for r in rows}.isdisjoint(r["agent"] for r in other if "agent" in r)
    check_same(behaviour_of(rows), behaviour_of(other), strict=True)


def test_who_took_which_part_does_not_count_but_that_they_were_two_does() -> None:
    """Agents are anonymous, and still it matters which activations are of the same one."""
    one = behaviour_of(two_parts("b", "c"))
    assert same_behaviour(one, behaviour_of(two_parts("c", "b")), strict=True)
    same_agent = Behaviour(
        step._replace(agent=1) if isinstance(step, ActivationStart) and step.agent == 2 else step
        for step in one.steps
    )
    assert not same_behaviour(one, same_agent)
    assert not same_behaviour(one, same_agent, strict=True)


def test_independent_work_may_come_in_any_order_but_not_strictly() -> None:
    """Two agents who work at once: which of them begins first is no causal difference."""
    rows = trace(
        arrive(0, "p", None, "a"),
        arrive(0, "q", None, "b", "notice"),
        start(1, "v", "a", "p"),
        start(1, "w", "b", "q"),
        end(2, "v", p="consume"),
        end(2, "w", q="consume"),
    )
    one = behaviour_of(rows)
    for order in permutations(range(2)):
        starts, ends = [rows[5 + i] for i in order], [rows[7 + i] for i in reversed(order)]
        other = behaviour_of([{**r, "t": t} for t, r in enumerate([*rows[:5], *starts, *ends])])
        assert same_behaviour(one, other)
        assert same_behaviour(one, other, strict=True) == (starts + ends == rows[5:])


def test_the_order_in_a_buffer_is_no_behaviour() -> None:
    """An activation is shown its whole buffer; in what order it filled is not in the graph."""
    one = trace(arrive(0, "p", None, "a"), arrive(0, "q", None, "a"),
                turn(1, "v", "a", p="consume", q="delay"))  # fmt: skip
    other = trace(emit(0, "p", None, "a"), emit(0, "q", None, "a"), deliver(0, "q", "a"),
                  deliver(0, "p", "a"), turn(1, "v", "a", q="delay", p="consume"))  # fmt: skip
    assert same_behaviour(behaviour_of(one), behaviour_of(other), strict=True)


# --- what makes one ---


def test_a_fate_makes_a_difference() -> None:
    """To use an event is not to drop it."""
    one, other = behaviour_of(two_parts()), behaviour_of(two_parts(q="discard"))
    assert not same_behaviour(one, other)
    assert signature(one) != signature(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (emit(0, "p", None, "b"), emit(0, "p", "system", "b")),
        (emit(0, "p", None, "b"), emit(0, "p", None, "b", "notice")),
    ],
    ids=["healing made it", "it is a notice"],
)
def test_the_kind_of_an_event_makes_a_difference(one: Row, other: Row) -> None:
    """Where an event comes from, and whether it is plumbing, is part of the structure."""
    assert not same_behaviour(behaviour_of(trace(one)), behaviour_of(trace(other)))


def test_an_answer_is_not_a_message_and_an_accepted_one_not_a_pending_one() -> None:
    """Submitting, and being heard, are behaviour."""
    begin = [*arrive(0, "p", None, "a"), *turn(1, "v", "a", "f", p="consume")]
    message = trace([*begin, emit(1, "f", "v")])
    answer = trace([*begin, final(1, "f", "v")])
    accepted = trace([*begin, final(1, "f", "v"), deliver(1, "f", None)])
    runs = [behaviour_of(rows) for rows in (message, answer, accepted)]
    assert [[same_behaviour(a, b) for a in runs] for b in runs] == [
        [a is b for a in runs] for b in runs
    ]


def test_an_activation_that_never_ended_is_another_one() -> None:
    """Its edges have no fates, and it is not one that did nothing either."""
    begin = [*arrive(0, "p", None, "a"), start(1, "v", "a", "p")]
    runs = [trace(begin), trace([*begin, end(1, "v")]), trace(begin[:2], start(1, "v", "b"))]
    runs.append(trace(begin[:2], start(1, "v", "b"), end(1, "v")))
    found = [behaviour_of(rows) for rows in runs]
    assert [[same_behaviour(a, b) for a in found] for b in found] == [
        [a is b for a in found] for b in found
    ]


def test_an_agents_own_order_makes_a_difference() -> None:
    """One who first reads and then sends does not behave like one who first sends."""

    def run(*turns: list[Row]) -> Behaviour:
        return behaviour_of(trace(*turns))

    read = [*arrive(0, "p", None, "a"), *turn(0, "v", "a", p="consume")]
    send = [*turn(0, "w", "a", "q"), emit(0, "q", "w")]
    assert not same_behaviour(run(read, send), run(send, read))


# --- what looks alike to a glance ---


def cycles(*lengths: int) -> Behaviour:
    """Events in circles: each activation, of an agent of its own, uses two neighbours."""
    steps: list[Generation | ActivationStart | ActivationEnd] = []
    steps += [Generation("outside", None, ())] * sum(lengths)
    first = number = 0
    for length in lengths:
        for i in range(length):
            pair = tuple(sorted((first + i, first + (i + 1) % length)))
            steps += [ActivationStart(number, pair), ActivationEnd(number, ("consume", "consume"))]
            number += 1
        first += length
    return Behaviour(steps)


def test_one_large_circle_is_not_two_small_ones() -> None:
    """Every node has the same surroundings in both: only the exact test tells them apart."""
    one, two = cycles(6), cycles(3, 3)
    assert signature(one) == signature(two)
    assert not same_behaviour(one, two)
    assert not are_alike(one, two)
    assert same_behaviour(two, cycles(3, 3))
    assert same_behaviour(cycles(4, 3), cycles(3, 4))


def test_many_parts_that_are_all_alike_are_compared_at_once() -> None:
    """A thousand messages that nobody read, in another order, are no search."""

    def run(order: list[int]) -> InteractionGraph:
        names = [f"q{i}" for i in order]
        rows = trace(arrive(0, "p", None, "a"), turn(1, "v", "a", " ".join(names), p="consume"),
                     [emit(1, name, "v", "b") for name in names])  # fmt: skip
        return graph_of(rows)

    order = list(range(1000))
    assert same_behaviour(run(order), run(order[::-1]), limit_s=0.1)


def test_a_comparison_that_takes_too_long_says_so() -> None:
    """The limit is an error of its own, never a verdict."""
    with pytest.raises(UndecidedError, match=r"0\.0001 s were not enough"):
        same_behaviour(cycles(6, 6), cycles(12), limit_s=0.0001)


def test_a_stopwatch_replaces_the_count_of_work() -> None:
    """With a clock the limit is in its seconds, and it is asked all along."""
    ticks = iter(range(1000))
    with pytest.raises(UndecidedError, match="3 s"):
        same_behaviour(cycles(9, 3), cycles(6, 6), limit_s=3, stopwatch=lambda: float(next(ticks)))


def test_the_strict_notion_needs_no_time() -> None:
    """It compares steps; no limit can make it fail."""
    assert not same_behaviour(cycles(6, 6), cycles(12), strict=True, limit_s=0)


# --- what it is asked of ---


def test_graphs_records_and_behaviours_will_all_do() -> None:
    """Whoever has any of them need not make another."""
    rows = two_parts()
    records = [decode(r) for r in rows]
    assert signature(records) == signature(graph_of(rows)) == signature(behaviour_of(rows))
    assert same_behaviour(iter(records), InteractionGraph.of(records))


def test_empty_runs_are_the_same() -> None:
    """Nothing behaves like nothing."""
    check_same(behaviour_of(trace()), behaviour_of(trace(agents="xyz")), strict=True)
    assert not same_behaviour(behaviour_of(trace()), behaviour_of(trace(emit(0, "p", None))))


def test_agents_who_come_and_go_unnoticed_leave_no_mark() -> None:
    """What never touches an event or an activation is not in the graph."""
    rows = two_parts()
    quiet = [*rows, {**row(4, "join", agent="z"), "t": len(rows)}]
    check_same(behaviour_of(rows), behaviour_of(quiet), strict=True)
