"""Faults around a team of async callables."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

import dig
from dig.errors import SettingsError
from dig.faults import Fault, GameDay, around
from dig.faults.inject.payload_changes import GARBAGE
from dig.graph.records import Start
from tests.helpers import Recorder, backends

from .plays import AROUND

Team = dict[str, Any]


def team() -> Team:
    """A boss who asks two others; the answer is what they say."""
    agents: Team = {}

    async def boss(question: str) -> str:
        return f"{await agents['ann'](question)} {await agents['bob'](question)}"

    async def ann(question: str) -> str:
        await anyio.sleep(1)
        return f"ann: {question}"

    async def bob(question: str) -> str:
        return f"bob: {question}"

    agents.update(boss=boss, ann=ann, bob=bob)
    return agents


def on(backend: str, what: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run something on a loop in virtual time."""
    name, options = backends()[backend]()
    return anyio.run(what, backend=name, backend_options=options)


async def asked(agents: Team, question: str) -> str | None:
    """What the boss answers; the error, if there is one instead."""
    try:
        answer: str | None = await agents["boss"](question)
        return answer
    except Exception as error:
        return repr(error)


CASES: dict[str, tuple[str, list[str | None], float]] = {
    "drop": ("target=boss", ["TimeoutError('no answer from ann')"] * 2, 0),
    "delay": ("target=ann seconds=5", ["ann: 1 bob: 1", "ann: 2 bob: 2"], 12),
    "duplicate": ("target=boss copies=2", ["ann: 1 bob: 1", "ann: 2 bob: 2"], 6),
    "misaddress": ("target=boss", ["bob: 1 ann: 1", "bob: 2 ann: 2"], 2),
    "address_nobody": ("target=boss", ["LookupError('there is no agent ann-assistant')"] * 2, 0),
    "corrupt": ("target=bob", [f"ann: 1 {GARBAGE}", f"ann: 2 {GARBAGE}"], 2),
    "replay_stale": ("target=bob", ["ann: 1 bob: 1", "ann: 2 bob: 1"], 2),
    "stall": ("target=bob seconds=7", ["ann: 1 bob: 1", "ann: 2 bob: 2"], 16),
    "crash": ("target=bob end=1.5", ["RuntimeError('bob has failed')", "ann: 2 bob: 2"], 2),
    "leave": ("target=ann", ["LookupError('ann has left the team')"] * 2, 0),
    "slow": ("target=ann factor=3", ["ann: 1 bob: 1", "ann: 2 bob: 2"], 6),
    "silent": ("target=bob", ["ann: 1 None", "ann: 2 None"], 2),
    "hoard": ("target=bob end=30", ["ann: 1 bob: 1", "ann: 2 bob: 2"], 31),
    "pass_on": ("target=bob", ["ann: 1 ann: 1", "ann: 2 ann: 2"], 4),
    "never_submit": ("target=boss", [None, None], 2),
    "discard_needed": ("target=bob", ["ann: 1 None", "ann: 2 bob: 2"], 2),
}


def test_every_kind_that_carries_is_tried() -> None:
    assert {*CASES} == {*AROUND}


@pytest.mark.parametrize("wrapped", ["before", "after", "never"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("kind", CASES)
def test_a_kind_does_what_it_says(kind: str, backend: str, wrapped: str) -> None:
    """Two questions are answered otherwise, or later; afterwards all is as it was."""
    words, answers, seconds = CASES[kind]

    async def day() -> None:
        agents = team()
        before = dict(agents)
        if wrapped == "before":
            dig.wrap(agents)
        began = anyio.current_time()
        faults = [Fault.parse(f"{kind} {words}")]
        with around(agents, faults, seed=1, clock=anyio.current_time) as faulty:
            if wrapped == "after":
                dig.wrap(agents)
            assert [await asked(agents, "1"), await asked(agents, "2")] == answers
            assert anyio.current_time() - began == pytest.approx(seconds)
            assert {act.agent for act in faulty.acts} == {faults[0].target}
            if wrapped == "after":
                dig.unwrap(agents)
        acts = len(faulty.acts)
        assert await asked(agents, "3") == "ann: 3 bob: 3"
        assert len(faulty.acts) == acts
        dig.unwrap(agents)
        assert agents == before

    on(backend, day)


@pytest.mark.parametrize("kind", AROUND)
def test_without_effect_nothing_changes(kind: str) -> None:
    """Each target answers as it does alone, in the same time."""
    parameters = {"probability": 0.0}

    async def day() -> None:
        agents = team()
        faults = [Fault(kind=kind, target=name, parameters=parameters) for name in agents]
        began = anyio.current_time()
        with around(agents, faults, clock=anyio.current_time) as faulty:
            assert await asked(agents, "1") == "ann: 1 bob: 1"
        assert (anyio.current_time(), faulty.acts) == (began + 1, [])

    on("asyncio", day)


def test_the_monitor_sees_what_comes_of_a_fault() -> None:
    """Its calls are in the graph as they were made: to the wrong agent, or not at all."""

    seen = Recorder()

    async def day() -> None:
        agents = team()
        dig.wrap(agents, sink=seen)
        with around(agents, [Fault(kind="misaddress", target="boss")], seed=1):
            await asked(agents, "1")
        dig.unwrap(agents)

    on("asyncio", day)
    order = [record.agent for record in seen if isinstance(record, Start)]
    assert [name for name in order if name != "boss"] == ["bob", "ann"]


def test_objects_and_their_methods_can_be_targets() -> None:
    """Of an object that is a team each method is an agent; of one in a list all methods."""

    class Desk:
        name = "desk"

        async def ask(self, question: str) -> str:
            return question

        async def look(self) -> str:
            return "seen"

    async def day() -> list[Any]:
        desk, listed = Desk(), [Desk()]
        with around(desk, [Fault(kind="silent", target="ask")]):
            first = [await desk.ask("1"), await desk.look()]
        with around(listed, [Fault(kind="silent", target="desk")]):
            second = [await listed[0].ask("1"), await listed[0].look()]
        return [*first, *second, await desk.ask("2"), await listed[0].look()]

    assert on("asyncio", day) == [None, "seen", None, None, "2", "seen"]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("split_twice target=boss", "cannot be put round async callables: calls do not tell"),
        ("crash target=eve", "crash has the target 'eve', who is not in the team: boss, ann, bob"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_changed(fault: str, says: str) -> None:
    agents = team()
    before = dict(agents)
    with pytest.raises(SettingsError, match=says):
        around(agents, [Fault.parse(fault)])
    assert agents == before


def test_what_is_no_team_or_lets_nothing_be_replaced_is_left_alone() -> None:
    """With a word about what is wrong; what was replaced before that is put back."""
    with pytest.raises(SettingsError, match="there is no async callable"):
        around(object(), [])

    class Half(dict[str, Any]):
        def __setitem__(self, name: str, agent: Any) -> None:
            if name == "ann" and agent is not own["ann"]:
                raise TypeError("ann stays")
            super().__setitem__(name, agent)

    own = team()
    half = Half(own)
    with pytest.raises(SettingsError, match="agent 'ann' cannot be replaced"):
        around(half, [Fault(kind="crash", target="bob")])
    assert half == own


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_agent_that_hoards_for_ever_can_be_cancelled(backend: str) -> None:
    async def day() -> bool:
        agents = team()
        with around(agents, [Fault(kind="hoard", target="bob")]):
            with anyio.move_on_after(3600) as scope:
                await agents["boss"]("1")
        return scope.cancelled_caught

    assert on(backend, day)


def test_calls_at_the_same_time_are_told_apart() -> None:
    """Who calls is known in tasks that a callable has started, too."""

    async def day() -> GameDay:
        agents = team()

        async def boss(question: str) -> str:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agents["ann"], question)
                tasks.start_soon(agents["bob"], question)
            return "done"

        agents["boss"] = boss
        with around(agents, [Fault(kind="delay", target="boss")], clock=anyio.current_time) as day:
            assert await asked(agents, "1") == "done"
        return day

    acts = [act.what for act in on("asyncio", day).acts]
    assert sorted(acts)[-1].startswith("gave an answer that was delayed by 90 s")
    assert sum("and the call was delayed" in what for what in acts) == 2
