"""VOID and FAIL: answers that are none, turns that fail, and what healing says about them.

What is raised when stands in the cases and random traces beside the oracle.
"""

from __future__ import annotations

from typing import Any

import pytest

from dig import Fate
from dig.detectors import explain, standard, standard_healers
from dig.detectors.finding import Finding
from dig.detectors.mended import Mending
from dig.detectors.policy import HEAL_ALL, Policy
from dig.detectors.watch import Watch
from dig.graph.records import FindingRow, HealRow, Limits
from dig.monitor.messages import Raised
from tests.helpers import Stage, answer, found_again, of, out, rows

LOOPS = Limits(loop_limit=2, livelock_turns=2, livelock_agents=2)


def staged(agents: str = "abc", policy: Policy | None = None, **settings: Any) -> Stage:
    healing = {"healers": standard_healers(), "policy": policy or Policy()}
    return Stage(agents, detectors=standard(), **healing, **settings)


def fails(stage: Stage, agent: str, error: str = "broken", **whose: Any) -> str:
    """An agent fails and keeps its inputs; the id of the activation."""
    started = stage.start(agent)
    kept = [Fate(event.id, "delay") for event in started.events]
    stage.monitor.end(started.activation, kept, error=error, **whose)
    return started.activation


def found(stage: Stage) -> list[tuple[str, str | None, str]]:
    told: list[FindingRow] = rows(stage.sink, "finding")
    return [(row.pattern, row.stage, row.severity) for row in told]


def done(stage: Stage, *patterns: str) -> list[tuple[str, Any]]:
    """What was done, about all patterns or some."""
    healed: list[HealRow] = rows(stage.sink, "heal")
    about = {row.t: row.pattern for row in rows(stage.sink, "finding")}
    kept = [row for row in healed if not patterns or about[row.finding] in patterns]
    return [(row.action, row.to) for row in kept]


# -- VOID ---


@pytest.mark.parametrize(
    ("payload", "how", "severity"),
    [
        ("  \n", "blank", "error"),
        (" What is it?\n", "echo", "warning"),
        ('{"name": "find", "arguments": {}}', "call", "error"),
        (' {"parameters": 1, "name": ""} ', "call", "error"),
        ('{"name": 1, "arguments": {}}', None, ""),
        ('{"name": "find"}', None, ""),
        ("[" * 100_000, None, ""),
        ({"name": "find", "arguments": {}}, None, ""),
        ("It is fine.", None, ""),
        (None, None, ""),
    ],
)
def test_an_answer_that_says_nothing_is_void(payload: Any, how: str | None, severity: str) -> None:
    """Blanks at the ends do not count; only a text can be void."""
    stage = Stage("a", detectors=standard())
    stage.give("a", "What is it? ")
    stage.turn("a", answer(payload))
    expected = [] if how is None else [("VOID", None, severity)]
    assert found(stage) == expected
    if how is not None:
        assert rows(stage.sink, "finding")[0].evidence == {"how": how}


def test_only_what_the_answer_goes_back_to_is_an_echo() -> None:
    """A question that somebody else was asked may well be an answer."""
    stage = Stage("ab", detectors=standard(), session=True)
    stage.give("a", "one")
    stage.give("b", "two")
    stage.turn("a", answer("two"))
    assert found(stage) == []


def test_a_void_answer_goes_back_once() -> None:
    """The second one is accepted, with the note beside it: the submitter was told already."""
    stage = staged("a")
    stage.give("a")
    stage.turn("a", answer(""))
    assert done(stage) == [("reroute", ("a",))] and not stage.graph.is_over
    started = stage.start("a")
    assert "is empty" in started.events[-1].notes[0]
    stage.finish(started, answer(""))
    assert done(stage)[1:] == [("inject", None)] and stage.graph.is_over


def test_a_void_answer_to_another_problem_goes_back_as_well() -> None:
    """In a session each problem has a right to it."""
    stage = staged("a", session=True)
    for _ in range(2):
        stage.give("a")
        stage.turn("a", answer(""))
        stage.turn("a", answer("done"))
    assert [action for action, _ in done(stage)] == ["reroute", "reroute"]


def test_an_echo_is_only_told() -> None:
    """It is a warning: the answer is accepted, with a note beside it."""
    stage = staged("a", policy=HEAL_ALL)
    stage.give("a", "What?")
    stage.turn("a", answer("What?"))
    assert done(stage) == [("inject", None)] and stage.graph.is_over


def test_a_session_forgets_what_is_answered() -> None:
    """Memory stays flat over any number of requests, and a check finds what was found live."""
    detectors = standard()
    stage = Stage("ab", detectors=detectors, session=True, keep=4)
    for number in range(100):
        stage.give("ab", f"What is {number}?")
        fails(stage, "b")
        stage.turn("a", answer(f"It is {number}."))
        stage.monitor.leave("b")
        stage.monitor.join("b")
    parts = {one.pattern: vars(one) for one in detectors}
    assert len(parts["VOID"]["_requests"]) < 30
    assert len(parts["FAIL"]["_ends"]["b"]) < 30 and len(parts["FAIL"]["_by_work"]) < 60
    assert {told[1] for told in found(stage)} == {"turn"}, "a did it itself"
    told = [(row["pattern"], row["stage"], row["severity"], row["subject"], row["evidence"])
            for row in found_again(stage.sink, Watch(standard()))]  # fmt: skip
    assert told == [(row.pattern, row.stage, row.severity, row.subject, row.evidence)
                    for row in rows(stage.sink, "finding")]  # fmt: skip


# -- FAIL ---


def test_a_turn_that_fails_is_a_notice_and_is_not_healed() -> None:
    """Its host tries it again; one that passes an error on, or was called off, is no failure."""
    stage = staged(policy=HEAL_ALL)
    stage.give("abc")
    first = fails(stage, "a", "b" * 300)
    fails(stage, "b", because=first)
    fails(stage, "c", cancelled=True)
    assert found(stage) == [("FAIL", "turn", "notice")] and done(stage) == []
    assert rows(stage.sink, "finding")[0].evidence == {"agent": "a", "error": "b" * 200}


def split(stage: Stage) -> None:
    """One gives two others a part each; the first of these fails."""
    stage.give("a")
    stage.turn("a", out("b", "part"), out("c", "other part"))
    fails(stage, "b")


def test_an_answer_without_what_failed_has_a_note_beside_it() -> None:
    """It says which agent failed, and that its part may be missing."""
    stage = staged()
    split(stage)
    stage.turn("c", answer())
    assert ("FAIL", "answer", "warning") in found(stage)
    notes = [row.note for row in rows(stage.sink, "heal") if row.about["pattern"] == "FAIL"]
    assert len(notes) == 1 and "the last that `b` did for it was to fail (`a2`)" in notes[0]


def test_what_an_agent_does_after_its_failure_counts() -> None:
    """A turn that is tried again, and goes well, leaves nothing behind."""
    stage = Stage("abc", detectors=standard())
    split(stage)
    stage.turn("b", out("c"))
    stage.turn("c", answer())
    assert "answer" not in [stage for _, stage, _ in found(stage)]


@pytest.mark.parametrize(("said", "is_good"), [("part", True), ("another part", False)])
def test_a_third_agent_makes_good_what_another_failed_to_do(said: str, is_good: bool) -> None:
    """It consumed the same work, or work that says the same."""
    stage = Stage("abcd", detectors=standard())
    split(stage)
    stage.turn("c", out("d", said), out("a"))
    stage.turn("d", out("a"))
    stage.turn("a", answer())
    assert ("FAIL", "answer", "warning") in found(stage) or is_good
    assert is_good == ("answer" not in [stage for _, stage, _ in found(stage)])


def test_a_request_that_failed_is_an_error_and_nothing_waits_for_it() -> None:
    """There is no MC and no DL after it; a later answer to it mends it."""
    stage = staged(session=True, limits=Limits(mc_window_s=1, dl_window_s=1))
    stage.give("a")
    failed = fails(stage, "a")
    stage.monitor.request_failed("error", event="e1", activation=failed, error="x" * 300)
    stage.wait(100.0)
    assert found(stage)[1:] == [("FAIL", "request", "error")] and done(stage) == []
    [row] = rows(stage.sink, "finding")[1:]
    assert row.subject == {"event": "e1"}
    assert row.evidence == {"how": "error", "activation": failed, "error": "x" * 200}
    stage.turn("a", answer())
    watch, mending, told = Watch(standard()), Mending(), list[Finding]()
    for record in stage.sink:
        raised = watch.feed(record)
        mending.look(watch.graph, record)
        for one in raised:
            told.append(one)
            mending.add(watch.graph, one)
    assert [one.stage for one in told] == ["turn", "request"] and mending.mended == [False, True]


def test_a_request_that_fails_after_the_answer_is_told() -> None:
    """An error after the answer, while the team goes down for instance."""
    stage = Stage("a", detectors=standard())
    stage.give("a")
    stage.turn("a", answer())
    stage.monitor.request_failed("timeout")
    [row] = rows(stage.sink, "finding")
    assert (row.subject, row.evidence["how"], row.severity) == ({}, "timeout", "error")


def test_each_stage_is_explained() -> None:
    """A sentence, and the way to what failed."""
    stage = Stage("abc", detectors=standard())
    split(stage)
    [raised] = [one.finding for one in of(Raised, stage.turn("c", answer())) if one.finding.stage]
    stage.monitor.request_failed("limit", event="e1")
    assert raised.pattern == "FAIL"
    told = explain(stage.graph, raised)
    assert "does without what failed: a2" in told.text and len(told.paths) == 2


# -- healing of repetitions, and of what is worth a warning ---


def say(stage: Stage, times: int, to: str) -> None:
    for _ in range(times):
        stage.give("a", "again")
        stage.turn("a", out(to, "the same"))


def test_what_is_said_for_too_long_goes_to_another_agent() -> None:
    """As a warning it has a note beside it; as an error the event goes elsewhere."""
    stage = staged("abc", limits=LOOPS)
    say(stage, 8, "b")
    assert done(stage, "LOOP") == [("inject", None), ("inject", None), ("reroute", ("c",))]


def test_where_there_is_no_other_agent_the_answer_is_asked_for() -> None:
    """A note beside the message, and a system event to the agent that says the same."""
    stage = staged("ab", limits=LOOPS)
    say(stage, 8, "b")
    assert done(stage, "LOOP")[2:] == [("inject", None), ("create", ("a",))]


def test_agents_that_go_round_for_long_are_asked_for_the_answer() -> None:
    """A notice is left alone, a warning is a note, an error wakes those that go round."""
    stage = staged("abc", limits=LOOPS)
    stage.give("a")
    for turn in range(32):
        stage.turn("ab"[turn % 2], out("ba"[turn % 2], turn))
    told = [severity for pattern, _, severity in found(stage) if pattern == "LIVELOCK"]
    assert told == ["notice", "notice", "warning", "warning", "error"]
    assert done(stage, "LIVELOCK") == [*[("inject", None)] * 3, ("create", ("a", "b"))]


def test_a_deadlock_beside_an_agent_at_work_is_told_and_not_healed() -> None:
    """To wake the others would not help the one that takes long; when it ends, it is an error."""
    limits = Limits(dl_window_s=1, activation_limit_s=2)
    stage = staged("ab", limits=limits)
    stage.give("b")
    stage.give("a")
    started = stage.start("a")
    stage.wait(5.0)
    assert found(stage) == [("DL", None, "warning")] and done(stage) == []
    stage.finish(started)
    stage.wait(5.0)
    assert found(stage)[1:] == [("DL", None, "error")] and done(stage) == [("create", ("a", "b"))]


def test_an_agent_that_waits_for_a_person_holds_a_deadlock_back() -> None:
    """However long it lasts; from its end on there is a whole window."""
    stage = staged("ab", limits=Limits(dl_window_s=3, activation_limit_s=2))
    stage.give("b")
    stage.give("a")
    started = stage.start("a")
    stage.monitor.waits(activation=started.activation)
    stage.wait(100.0)
    assert found(stage) == []
    stage.finish(started, fate="delay")
    stage.wait(2.0)
    assert found(stage) == []
    stage.wait(2.0)
    assert found(stage) == [("DL", None, "error")]


def test_a_turn_that_fails_begins_idle_windows_anew() -> None:
    """It is tried again: what waits is no deadlock yet."""
    stage = staged("ab", limits=Limits(dl_window_s=3))
    stage.give("a")
    for _ in range(4):
        stage.wait(2.0)
        fails(stage, "a")
    assert {pattern for pattern, _, _ in found(stage)} == {"FAIL"}
