"""Rings by name: what LIVELOCK says of them, and those that wait for an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import cycle, islice
from pathlib import Path

import pytest

from dig import Finding, Inject, InteractionGraph, Watch
from dig.detectors import explain, standard
from dig.detectors.describe import finding_text
from dig.detectors.patterns.livelock import HealLivelock
from dig.detectors.rings import Ring, ring_before, rings_without_answer
from dig.show.gate.checked import check_run
from dig.show.runs.summary import follow_run, stored_answers
from dig.traces.journal.reader import read_records
from tests.cases.turns import around, passed
from tests.histories import arrive, deliver, emit, final, row, trace, turn
from tests.oracle import Row
from tests.traces.runs import store

LIMITS = {"livelock_turns": 25, "livelock_agents": 3}
NO_ANSWER = "and there is no answer."


def graph_of(folder: Path, rows: Iterable[Row]) -> tuple[InteractionGraph, list[Finding]]:
    """The graph of a trace, and its findings."""
    watch, findings = Watch(standard()), list[Finding]()
    for record in read_records(store(folder / "t.dig.jsonl", rows)):
        findings += watch.feed(record)
    return watch.graph, findings


def livelock(folder: Path, *agents: str) -> tuple[InteractionGraph, Finding]:
    """The graph and the one LIVELOCK of agents that hand on to each other in this order."""
    rows = trace(passed(*agents), agents=dict.fromkeys(agents), limits=LIMITS)
    graph, findings = graph_of(folder, rows)
    (finding,) = [one for one in findings if one.pattern == "LIVELOCK"]
    return graph, finding


@pytest.mark.parametrize(
    ("agents", "says"),
    [
        (["writer", "critic"], "writer and critic have gone round 12 times; 25 turns"),
        (["writer", "critic", "editor"],
         "writer, critic and editor have gone round 8 times; 25 turns"),
        (["writer", "critic#2"], "writer and critic have gone round 12 times; 25 turns"),
        # In no one order: ann calls bob, bob calls cyd, and each is answered.
        (["ann", "bob", "cyd", "bob"],
         "ann, bob, cyd have handed on to each other 25 times in a row"),
    ],
)  # fmt: skip
def test_livelock_names_the_ring_in_its_order(tmp_path: Path, agents: list[str], says: str) -> None:
    """In the description, the explanation and the note alike."""
    graph, finding = livelock(tmp_path, *islice(cycle(agents), 25))
    assert finding_text(finding, graph) == f"{says}, since activation v1"
    assert str(explain(graph, finding)).startswith(f"{says}, since activation v1.")
    (note,) = [wish.note for wish in HealLivelock().heal(graph, finding) if type(wish) is Inject]
    quoted = says
    for agent in {name.partition("#")[0] for name in agents}:
        quoted = re.sub(rf"\b{agent}\b", f"`{agent}`", quoted)
    assert note == f"{quoted}. Do not hand this back: decide, and submit what there is."


def test_without_the_graph_the_agents_are_named_as_the_evidence_has_them(tmp_path: Path) -> None:
    """A line of evidence cannot tell an order."""
    _, finding = livelock(tmp_path, *islice(cycle(["writer", "critic"]), 25))
    says = "critic, writer have handed on to each other 25 times in a row, since activation v1"
    assert finding_text(finding) == says


def test_a_ring_ends_where_the_order_breaks(tmp_path: Path) -> None:
    """Only the rounds of the newest order count, and neighbours of one agent are one step."""
    graph, _ = graph_of(tmp_path, trace(passed(*"cacbabbab"), limits=LIMITS))
    assert ring_before(graph, "v9") == Ring(("b", "a"), 2, 6)
    assert ring_before(graph, "v9", 2) is None
    assert ring_before(graph, "v1") is None


# --- without an answer ---


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_ring_of_five_rounds_without_an_answer_is_told(tmp_path: Path, size: int) -> None:
    """Whatever it is made of, far below the limit of LIVELOCK, and with any number of agents."""
    agents = "abcde"[:size]
    told = {}
    for rounds in (4, 5):
        rows = trace(around(agents, rounds * size), agents=agents, limits=LIMITS)
        told[rounds], _ = graph_of(tmp_path, rows)
    assert rings_without_answer(told[4]) == []
    names = f"{', '.join(agents[:-1])} and {agents[-1]}"
    says = f"{names} have gone round 5 times; {5 * size} turns, {NO_ANSWER}"
    assert [ring.remark for ring in rings_without_answer(told[5])] == [says]
    (ring,) = rings_without_answer(told[4], least=3)  # at a limit
    assert ring.rounds == 4


NO_ORDER = "abcdacbdcabdcbadbcda"


def test_agents_that_hand_on_in_no_order_are_told_after_as_many_turns(tmp_path: Path) -> None:
    """Five turns for each agent, as of a ring; what came before with others does not count."""
    told = {}
    for agents in (NO_ORDER[:-1], NO_ORDER, f"xyz{NO_ORDER}"):
        rows = trace(passed(*agents), agents=dict.fromkeys(agents), limits=LIMITS)
        graph, _ = graph_of(tmp_path, rows)
        told[agents] = [ring.remark for ring in rings_without_answer(graph)]
    says = f"a, b, c and d have handed on to each other 20 times, {NO_ANSWER}"
    assert [*told.values()] == [[], [says], [says]]


@pytest.mark.parametrize("last", ["a", ""])
def test_a_caller_of_several_agents_is_no_ring(tmp_path: Path, last: str) -> None:
    """It has every second turn, as each of them answers it."""
    agents = f"{'abacadac' * 12}{last}"
    rows = trace(passed(*agents), agents=dict.fromkeys(agents), limits={})
    graph, _ = graph_of(tmp_path, rows)
    assert rings_without_answer(graph) == []


def ends(session: bool, *last: Row | list[Row]) -> list[Row]:
    """Three agents go round five times, and then this happens."""
    ring = [*around("abc", 15), deliver(15, "x15", "a")]
    ring[-2]["to"] = ["a"]
    return trace(ring, *last, limits=LIMITS, session=session)


@pytest.mark.parametrize("session", [False, True])
def test_an_answer_makes_the_ring_a_collaboration(tmp_path: Path, session: bool) -> None:
    """A debate of five rounds that ends in an answer is nothing to speak of."""
    answer: list[Row | list[Row]] = [
        turn(16, "w", "a", "f", x15="consume"),
        final(16, "f", "w"),
        deliver(16, "f", None),
    ]
    graph, findings = graph_of(tmp_path, ends(session, *answer))
    assert (rings_without_answer(graph), findings) == ([], [])
    graph, _ = graph_of(tmp_path, ends(session))
    assert [ring.remark for ring in rings_without_answer(graph)] == [
        f"a, b and c have gone round 5 times; 15 turns, {NO_ANSWER}"
    ]


def test_of_a_session_only_the_ring_that_waits_for_an_answer_is_told(tmp_path: Path) -> None:
    """Another request, answered later, does not answer it."""
    other = [arrive(17, "q", None, "d"), turn(18, "w", "d", "f", q="consume")]
    rows = ends(True, *other, final(18, "f", "w"), deliver(18, "f", None))
    rows[0]["agents"] += ["d"]
    graph, _ = graph_of(tmp_path, rows)
    assert len(rings_without_answer(graph)) == 1


def test_agents_that_nobody_asked_may_chat(tmp_path: Path) -> None:
    """Nobody waits for their answer."""
    chat = passed(*islice(cycle("ab"), 20))
    unasked: list[Row | list[Row]] = [turn(0, "u", "a", "e"), emit(0, "e", "u", "a"), *chat[1:]]
    graph, _ = graph_of(tmp_path, trace(*unasked, limits=LIMITS))
    assert ring_before(graph, "v20") == Ring(("a", "b"), 10, 21)
    assert rings_without_answer(graph) == []


def test_check_and_the_verdict_say_it(tmp_path: Path) -> None:
    """The check passes all the same, since a ring is no finding."""
    rows = [*ends(False), {"t": 77, **row(16, "finish", outcome="stopped")}]
    rows[-1]["t"] = rows[-2]["t"] + 1
    path = store(tmp_path / "t.dig.jsonl", rows)
    says = f"a, b and c have gone round 5 times; 15 turns, {NO_ANSWER}"
    run = check_run(path, standard())
    assert (run.remarks, run.findings) == ([says], [])
    _, follower = follow_run(path)
    (step,) = stored_answers(path, follower.so_far, None).wrong
    ring = says.partition(";")[0]
    assert (step.us, step.says.partition(", without")[0]) == (1_000_000, f"from here on {ring}")
