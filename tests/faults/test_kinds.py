"""Every kind does what its row of the catalogue says, in the simulator, and the same on the bus."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS
from dig.faults.inject.faulty_team import FaultyTeam
from dig.graph.behaviour import same_behaviour
from dig.graph.records import Deliver, Emit, End, Expire, Join, Leave, Start
from dig.lab.run_pair import Played, play
from dig.runtime import Bus, Decision, NewEvent, Setup, View
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from tests.helpers import backends

from .plays import STEADY, on_bus, simulated, twin

TARGET = "agent-2"
SPLITTER = "agent-1"


class Seen:
    """What a faulted run did, next to its twin."""

    def __init__(self, played: Played, alone: Played) -> None:
        self.played, self.alone = played, alone
        self.injections = played.injections
        self.starts = _by(played, Start, "activation")
        self.ends = _by(played, End, "activation")
        self.emits = _by(played, Emit, "event")

    def touched(self) -> Sequence[Any]:
        """The records that the faults changed."""
        return [self.played.records[injection.t] for injection in self.injections]

    def of(self, kind: type) -> list[Any]:
        return [record for record in self.played.records if isinstance(record, kind)]

    def twins(self, record: Any) -> Any:
        """The record of the twin at the same place."""
        return self.alone.records[record.t]


def _by(played: Played, kind: type, key: str) -> dict[str, Any]:
    return {getattr(r, key): r for r in played.records if isinstance(r, kind)}


def lost(seen: Seen) -> bool:
    """Each message was called back before it arrived."""
    gone = {record.event for record in seen.of(Expire)}
    arrived = {record.event for record in seen.of(Deliver)}
    return {r.event for r in seen.touched()} == gone and not gone & arrived


def late(seen: Seen) -> bool:
    """Each message arrived 20 s after it was sent."""
    sent = {record.event: record.ts for record in seen.touched()}
    took = {r.ts - sent[r.event] for r in seen.of(Deliver) if r.event in sent}
    return {round(seconds, 6) for seconds in took} == {20.0}


def twice(seen: Seen) -> bool:
    """Each activation sent each message twice."""
    ends = seen.touched()
    payloads = [[repr(seen.emits[event].payload) for event in end.outputs] for end in ends]
    return all(n % 2 == 0 for some in payloads for n in Counter(some).values())


def astray(seen: Seen) -> bool:
    """Each message went to somebody of the team for whom it was not meant."""
    first = seen.touched()[0]
    return all(set(r.to) < {*seen.played.run.names} - {TARGET} for r in seen.touched()) and not (
        set(first.to) & set(seen.twins(first).to)
    )


def to_nobody(seen: Seen) -> bool:
    """Each message was addressed to somebody who is not there, and went to nobody."""
    astray = {r.event for r in seen.touched()}
    named = all("-assistant" in name for r in seen.touched() for name in r.to)
    return named and not astray & {record.event for record in seen.of(Deliver)}


def damaged(seen: Seen) -> bool:
    """The first message has another payload than in the twin, and is the same otherwise."""
    first = seen.touched()[0]
    there = seen.twins(first)
    return bool(first.payload != there.payload and replace(first, payload=there.payload) == there)


def stale(seen: Seen) -> bool:
    """Each message says what the first of its type has said."""
    first = next(r for r in seen.of(Emit) if r.type == seen.touched()[0].type and r.by)
    return all(r.payload == first.payload != seen.twins(r).payload for r in seen.touched()[:1])


def cut_off(seen: Seen) -> bool:
    """Each activation took as long as a host allows, and failed."""
    took = [(seen.ends[r.activation].ts - r.ts, r) for r in seen.touched()[:1]]
    return all(round(s) == 60 and seen.ends[r.activation].error for s, r in took)


def failed(seen: Seen) -> bool:
    return all(record.error and not record.outputs for record in seen.touched())


def gone(seen: Seen) -> bool:
    """It left, and did nothing afterwards."""
    (left,) = seen.of(Leave)
    after = [r for r in seen.of(Start) if r.agent == TARGET and r.t > left.t]
    return left.agent == TARGET and left.ts == 3.0 and not after and not seen.of(Join)


def slower(seen: Seen) -> bool:
    """The first activation that it acted on took 20 times as long."""
    start = seen.touched()[0]
    ends = {r.activation: r for r in seen.alone.records if isinstance(r, End)}
    took = seen.ends[start.activation].ts - start.ts
    return bool(abs(took - 20 * (ends[start.activation].ts - start.ts)) < 0.001)


def silent(seen: Seen) -> bool:
    fates = {fate.fate for end in seen.touched() for fate in end.fates}
    return fates == {"consume"} and not any(end.outputs for end in seen.touched())


def kept(seen: Seen) -> bool:
    return not any(end.fates or end.outputs for end in seen.touched())


def passed_on(seen: Seen) -> bool:
    """All inputs went to one other agent each."""
    fates = [fate for end in seen.touched() for fate in end.fates]
    whole = all(
        len(end.fates) == len(seen.starts[end.activation].inputs) and not end.outputs
        for end in seen.touched()
    )
    others = {*seen.played.run.names} - {TARGET}
    return whole and all(f.fate == "reroute" and len({*f.to} & others) == 1 for f in fates)


def early(seen: Seen) -> bool:
    """One answer, before the twin's, that does not cover everything."""
    (end,) = seen.touched()
    answer = seen.emits[end.outputs[0]]
    return bool(answer.final and answer.payload["covers"] != [[0, 5000]])


def no_answer(seen: Seen) -> bool:
    """The activation that had the answer consumed what the twin's did, and generated nothing."""
    first = seen.touched()[0]
    there = seen.twins(first)
    final = seen.alone.records[there.t + 1]
    return bool(first.fates == there.fates and not first.outputs and final.final)


def thrown_away(seen: Seen) -> bool:
    """One event was thrown away."""
    (end,) = seen.touched()
    fates = [fate.fate for one in seen.of(End) for fate in one.fates]
    return [f.fate for f in end.fates].count("discard") == fates.count("discard") == 1


def split_again(seen: Seen) -> bool:
    """Each part was handed out twice, to two different agents."""
    (end,) = seen.touched()
    parts: dict[str, list[str]] = {}
    for event in end.outputs:
        parts.setdefault(repr(seen.emits[event].payload), []).extend(seen.emits[event].to)
    return len(parts) >= 2 and all(len(set(to)) == len(to) == 2 for to in parts.values())


def shared(seen: Seen) -> bool:
    """Each part of the first split went to the splitter too."""
    first = seen.touched()[0]
    parts = [e for e in seen.of(Emit) if e.by == first.by]
    return all(SPLITTER in part.to for part in parts) and any(len(p.to) == 2 for p in parts)


def merged(seen: Seen) -> bool:
    """Two or more, that lay there or that it had counted itself, were sent as one."""
    for end in seen.touched():
        used = [seen.emits[fate.event].type for fate in end.fates if fate.fate == "consume"]
        made = [seen.emits[event].type for event in end.outputs]
        if used.count("solution") + used.count("raw_data") < 2 or made.count("solution") != 1:
            return False
    return True


CASES: dict[str, tuple[str, Callable[[Seen], bool]]] = {
    "drop": ("target=agent-2", lost),
    "delay": ("target=agent-2 seconds=20", late),
    "duplicate": ("target=agent-2", twice),
    "misaddress": ("target=agent-2", astray),
    "address_nobody": ("target=agent-2", to_nobody),
    "corrupt": ("target=agent-2", damaged),
    "replay_stale": ("target=agent-1", stale),
    "stall": ("target=agent-2", cut_off),
    "crash": ("target=agent-2", failed),
    "leave": ("target=agent-2 start=3", gone),
    "slow": ("target=agent-2", slower),
    "silent": ("target=agent-2", silent),
    "hoard": ("target=agent-2", kept),
    "pass_on": ("target=agent-2", passed_on),
    "submit_early": ("target=agent-2", early),
    "never_submit": ("target=agent-1", no_answer),
    "discard_needed": ("target=agent-2", thrown_away),
    "split_twice": ("target=agent-1", split_again),
    "work_on_others_part": ("target=agent-1", shared),
    "merge_across_lineages": ("target=agent-1", merged),
}


def test_every_kind_is_tried() -> None:
    """`ignore_notes` has tests of its own, below."""
    assert {*CASES, "ignore_notes"} == {*KINDS}


@pytest.mark.parametrize("kind", CASES)
def test_a_kind_does_what_it_says(kind: str) -> None:
    words, does = CASES[kind]
    played = play(STEADY, [Fault.parse(f"{kind} {words}")])
    assert played.injections
    alone = twin(STEADY.seed)
    assert does(Seen(played, alone))
    assert not _holds(does, Seen(replace(alone, injections=played.injections), alone))


def _holds(does: Callable[[Seen], bool], seen: Seen) -> bool:
    """Whether it is so in a run that may lack everything that is looked at."""
    try:
        return does(seen)
    except (AttributeError, IndexError, KeyError, ValueError):
        return False


def test_who_leaves_comes_back_at_the_end_of_the_window() -> None:
    """With nothing in front of it, and works again."""
    seen = Seen(play(STEADY, [Fault.parse("leave target=agent-2 start=1 end=2")]), twin(1))
    (back,) = seen.of(Join)
    assert (back.agent, back.ts) == (TARGET, 2.0)
    assert len(seen.injections) == 1


HEALED = TeamRun(agents=6, size=10_000, seed=25, method="dig")


def test_notes_can_be_ignored() -> None:
    """Of two runs that need healing, the one whose agent does not read is another one."""
    deaf = [Fault(kind="ignore_notes", target=name) for name in HEALED.names]
    played, alone = play(HEALED, deaf), play(HEALED)
    assert played.injections
    first = played.injections[0].t
    assert played.records[:first] == alone.records[:first]
    assert played.records != alone.records
    assert play(replace(HEALED, method="mas"), deaf).injections == ()  # nobody says anything


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("kind", CASES)
def test_on_the_bus_a_kind_does_the_same(kind: str, backend: str) -> None:
    """The same acts in the same activations, and cooperatively the same run."""
    run = replace(STEADY, size=2000, profile=replace(Profile.perfect(), think_spread=0.5))
    faults = [Fault.parse(f"{kind} {CASES[kind][0]}")]
    there, live = simulated(run, faults), on_bus(run, faults, backend)
    assert [_told(act) for act in there.acts] == [_told(act) for act in live.acts]
    assert there.acts
    assert same_behaviour(there.records, live.records)


def _told(act: Any) -> tuple[Any, ...]:
    return act.fault, act.agent, act.turn, act.what, act.place


@pytest.mark.parametrize("kind", CASES)
def test_an_act_is_a_deed_of_its_agent(kind: str) -> None:
    """Reports write it behind the name of the agent."""
    run = replace(STEADY, size=2000)
    for act in simulated(run, [Fault.parse(f"{kind} {CASES[kind][0]}")]).acts:
        first = act.what.split()[0]
        assert first.endswith("ed") or first in _VERBS, act.what


_VERBS = {"did", "gave", "hung", "kept", "left", "put", "sent", "threw", "took", "was"}


def test_an_agent_that_keeps_the_answer_back_says_how_much_it_took() -> None:
    (act,) = simulated(STEADY, [Fault(kind="never_submit", target=STEADY.names[0])]).acts[:1]
    assert re.fullmatch(r"took \d+ messages? and kept the answer back", act.what)


ACTS = {
    "crash": ("error", None, {"adder": 4}),
    "silent": ("stopped", None, {}),
    "slow factor=3": ("submitted", 3, {}),
    "stall seconds=5": ("submitted", 3, {}),
    "corrupt": ("submitted", "\ufffd" * 8, {}),
}
SECONDS = {"slow factor=3": 3.0, "stall seconds=5": 6.0}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("words", ACTS)
def test_an_agent_that_is_an_async_function_can_be_the_target(words: str, backend: str) -> None:
    """A user's own, on a bus whose clock goes twice as fast: it takes one second of it to add."""

    async def asker(view: View) -> Decision:
        event = view.events[0]
        if event.type == "problem":
            return Decision.respond(view, NewEvent(payload=event.payload, to=["adder"]))
        return Decision.submit(view, event.payload)

    async def adder(view: View) -> Decision:
        await anyio.sleep(0.5)
        return Decision.respond(view, NewEvent(payload=sum(view.events[0].payload), to=["asker"]))

    kind, *told = words.split()
    fault = Fault.parse(" ".join([kind, "target=adder", *told]))
    injected = FaultyTeam({"asker": asker, "adder": adder}, [fault], speed=2.0)
    bus = Bus(injected.team, Setup(speed=2.0))
    name, options = backends()[backend]()
    result = anyio.run(bus.run, [1, 2], backend=name, backend_options=options)
    assert (result.outcome, result.answer, dict(result.failures)) == ACTS[words]
    assert result.seconds == pytest.approx(SECONDS.get(words, result.seconds))
    assert injected.acts
