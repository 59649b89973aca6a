"""Each sign in a trace that was written by hand; a good run has none of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dig.diagnosis.signs.analysis import RunAnalysis, UsualTeam
from dig.diagnosis.signs.table import ROWS, find_signs
from dig.graph.codec import decode, encode
from dig.traces.run import RecordedRun
from tests import failing
from tests.diagnosis.written import Written, counts, good, part, usual
from tests.histories import row, trace

PARTS = (("q1", "problem", part(0, 10), "b"), ("q2", "problem", part(10, 20), "c"))


@pytest.fixture(scope="module")
def peers() -> UsualTeam:
    return usual()


def split() -> Written:
    """`a` has handed out two parts."""
    trace = Written()
    trace.act("a", *PARTS)
    return trace


def lost() -> Written:
    trace = split()
    trace.act("b", ("d1", "lost", part(0, 10), "b"))
    trace.expire("d1")
    return trace


def to_nobody() -> Written:
    trace = split()
    trace.act("b", ("d1", "raw_data", part(0, 10, data="x"), "b-assistant"))
    return trace


def left() -> Written:
    trace = split()
    trace.leave("b")
    return trace


def hung() -> Written:
    trace = split()
    trace.act("b", lasts=60, error="took longer than 60 s")
    return trace


def slow() -> Written:
    trace = split()
    trace.act("b", ("d1", "raw_data", part(0, 10, data="x"), "b"), lasts=30)
    return trace


def failed() -> Written:
    trace = split()
    trace.act("b", error="no")
    return trace


def given(*kinds: str) -> Written:
    """`a` gives parts to three agents, which send something of a kind back; none: nothing."""
    trace = Written("a", "b", "c", "d")
    parts = [(f"q{i}", "problem", part(i, i + 1), to) for i, to in enumerate("bcd")]
    trace.act("a", *parts)
    for i, (agent, kind) in enumerate(zip("bcd", kinds, strict=True)):
        trace.act(agent, *([(f"s{i}", kind, counts(i, i + 1), "a")] if kind else []))
    return trace


def swallowed() -> Written:
    trace = given("solution", "solution", "solution")
    trace.act("a")
    return trace


def withheld() -> Written:
    trace = good()
    trace.records = trace.records[:-5]
    trace.before["a"] = ["s1", "s2"]
    trace.act("a")
    return trace


def silent() -> Written:
    trace = split()
    trace.act("b")
    return trace


def late() -> Written:
    trace = split()
    trace.act("b", ("d1", "lost", part(0, 10, data="x"), "b"))
    trace.deliver("d1", "b", after_s=90)
    return trace


def unreadable() -> Written:
    trace = split()
    trace.act("b", ("d1", "raw_data", "####", "b"))
    return trace


def reading() -> Written:
    """`b` has read its part."""
    trace = split()
    trace.act("b", ("d1", "raw_data", part(0, 10, data="x"), "b"))
    return trace


def wrong_amounts() -> Written:
    trace = reading()
    trace.act("b", ("s1", "solution", counts(0, 10, 10.0), "a"))
    return trace


def grown() -> Written:
    trace = reading()
    trace.act("b", ("s1", "solution", counts(0, 20), "a"))
    return trace


def astray() -> Written:
    trace = reading()
    trace.act("b", ("s1", "solution", counts(0, 10), "c"))
    return trace


def stale() -> Written:
    trace = Written()
    trace.act("a", ("q1", "problem", part(0, 10), "b"), ("q2", "problem", part(0, 10), "c"))
    return trace


def dealt_twice() -> Written:
    trace = Written()
    trace.act("a", *PARTS, ("q3", "problem", part(10, 20), "b"))
    return trace


def passed_on() -> Written:
    trace = split()
    trace.act("b", q1="reroute")
    return trace


def unread() -> Written:
    trace = given("solution", "solution", "solution")
    trace.act("a", s0="discard")
    return trace


def refused() -> Written:
    trace = split()
    trace.act("b", q1="discard")
    trace.act("c", q2="discard")
    return trace


def discarded() -> Written:
    trace = split()
    trace.act("b", q1="discard")
    return trace


def waiting() -> Written:
    trace = split()
    trace.act("b", q1="delay")
    return trace


def kept() -> Written:
    trace = Written()
    trace.act("a", ("q1", "problem", part(0, 20), "b", "a"))
    return trace


def hasty() -> Written:
    trace = reading()
    trace.act("b", ("f", "answer", counts(0, 10)))
    return trace


SHOWING: dict[str, tuple[Callable[[], Written], str]] = {
    "unlike results of peers": (silent, "b"),
    "lost on the way": (lost, "b"),
    "to nobody": (to_nobody, "b"),
    "left": (left, "b"),
    "hung": (hung, "b"),
    "unreadable": (unreadable, "b"),
    "failed": (failed, "b"),
    "kept the answer": (withheld, "a"),
    "silent": (silent, "b"),
    "arrived late": (late, "b"),
    "wrong amounts": (wrong_amounts, "b"),
    "grown": (grown, "b"),
    "astray": (astray, "b"),
    "slow": (slow, "b"),
    "stale": (stale, "a"),
    "dealt out twice": (dealt_twice, "a"),
    "passed on": (passed_on, "b"),
    "threw away": (discarded, "b"),
    "thrown away by several": (refused, "a"),
    "waits on work": (waiting, "b"),
    "holds work": (waiting, "b"),
    "kept a copy": (kept, "a"),
    "hasty": (hasty, "b"),
    "unlike its siblings": (lambda: given("solution", "solution", "riddle"), "d"),
    "nothing for its giver": (lambda: given("solution", "solution", ""), "d"),
    "unread": (unread, "b"),
    "swallowed returns": (swallowed, "a"),
}
"""For each sign a trace that shows it, and the agent that it is about."""


@pytest.mark.parametrize("name", SHOWING)
def test_a_sign_is_shown_where_it_is(name: str, peers: UsualTeam) -> None:
    """It names the agent and a record about it; and a good run does not have it."""
    write, agent = SHOWING[name]
    trace = write()
    trace.finish()
    found = [one for one in trace.signs(peers) if one.name == name]
    assert {one.agent for one in found} == {agent}
    assert all(0 < one.t < len(trace.records) and 0 < one.weight <= 1 for one in found)
    assert name not in {one.name for one in good().signs(peers)}


def test_every_sign_has_a_trace_here() -> None:
    """But for the one that needs amounts of many runs, which a set of faults shows."""
    assert {*SHOWING} == {row.name for row in ROWS} - {"shared out otherwise"}


def test_without_good_runs_the_other_agents_are_the_measure() -> None:
    """A work that most agents do at once and one leaves is odd; where all leave it, it is not."""
    for idle, is_odd in (({"b"}, True), ({*"bcdefghijklmno"}, False)):
        trace = Written("a", *"bcdefghijklmno")
        agents = [*trace.before][1:]
        trace.act("a", *((f"q{one}", "problem", part(0, 20), one) for one in agents))
        for one in agents:
            said = [] if one in idle else [(f"d{one}", "raw_data", part(0, 20), one)]
            fates: Any = {f"q{one}": "delay" if one in idle else "consume"}
            trace.act(one, *said, **fates)
        names = {(one.name, one.agent) for one in trace.finish().signs()}
        assert (("waits on work", "b") in names) is is_odd


def test_signs_are_the_same_under_other_names(peers: UsualTeam) -> None:
    """Events and activations are named anew: the same signs about the same records."""
    trace = wrong_amounts().finish()
    before = [(one.name, one.agent, one.t) for one in trace.signs(peers)]
    new = {"s1": "e-17", "d1": "e-4", "v1": "act-9", "v3": "act-1", "q1": "work"}
    renamed = []
    for one in trace.records:
        line = encode(one)
        for old, other in new.items():
            line = line.replace(f'"{old}"', f'"{other}"')
        renamed.append(decode(json.loads(line)))
    trace.records = renamed
    assert [(one.name, one.agent, one.t) for one in trace.signs(peers)] == before


def test_idle_records_at_the_end_change_no_sign(peers: UsualTeam) -> None:
    """A note that nobody needs is sent and read after all else."""
    trace = grown()
    before = {(one.name, one.agent) for one in trace.signs(peers) if one.mechanism}
    trace.say("n", None, "notice", "all is well", "c")
    assert {(one.name, one.agent) for one in trace.signs(peers) if one.mechanism} == before
    assert isinstance(trace.run, RecordedRun)


def test_an_answer_to_another_problem_is_no_answer(peers: UsualTeam) -> None:
    """Of a session's two problems one is answered; the solution of the other one is kept."""
    trace = Written("a", "b", "c", whole=(0, 10))
    trace.say("p2", None, "problem", part(20, 30), "b")
    trace.say("s2", None, "solution", counts(20, 30), "b")
    trace.act("b", s2="consume", p2="delay")
    trace.act("a", ("f", "solution", counts(0, 10)))
    found = [
        one for one in trace.finish().signs(peers) if one.name in ("silent", "kept the answer")
    ]
    assert [(one.agent, one.mechanism) for one in found] == [("b", "withheld")]


@pytest.mark.parametrize("way", [{"cancelled": True}, {"because": "a4"}])
def test_an_error_of_another_agent_is_no_sign(way: dict[str, Any]) -> None:
    """A turn that was called off, or that passed an error on, speaks against nobody."""
    rows = failing.asked()
    (end,) = (one for one in rows if one["kind"] == "end" and one["activation"] == "a5")
    for one in ("cancelled", "because"):
        end.pop(one, None)
    rows.append({**end, **way})
    rows.remove(end)
    lines = trace(rows, row(99, "finish", outcome="error"), agents=failing.TEAM)
    found = find_signs(RunAnalysis(RecordedRun(map(decode, lines))))
    assert {sign.agent for sign in found if sign.name in ("failed", "hung", "holds work")} == {
        "hotels"
    }
