"""AG2, wrapped: it is used as before; what it holds, refuses, and gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from ag2 import Agent
from ag2.network import AgentClient, Hub

import dig
from dig import Hold, InteractionGraph
from dig.adapters import ag2 as adapter
from dig.detectors import standard, standard_healers
from dig.detectors.interventions import Inject, Intervention
from dig.errors import SettingsError
from dig.graph.records import Emit, End, Start
from dig.monitor.messages import Pending
from dig.runtime.host import Setup

from .ag2_teams import CHAIN, PAIR, Act, Team, Watched, call, says, scenario
from .harness import Script, play

WORK = scenario("chain", CHAIN, lambda team: team.workflow(*PAIR))


def test_only_hubs_are_wrapped_and_the_message_says_what_to_wrap_instead() -> None:
    with pytest.raises(SettingsError, match="Agent is no hub; wrap the Hub"):
        dig.wrap(Agent("ann"))


def test_what_a_hub_cannot_do_is_refused_if_it_is_demanded() -> None:
    with pytest.raises(SettingsError, match="an AG2 hub cannot reroute; it can: annotate, bounce"):
        dig.wrap(Team(Script(), {}).hub, require={"reroute"})


def test_a_hub_that_is_put_together_in_another_way_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(Hub, "_dispatch")
    with pytest.raises(SettingsError, match="no _dispatch"):
        adapter.plan(Team(Script(), {}).hub)


def test_unwrapping_gives_hub_agents_and_class_back_as_they_were() -> None:
    receive = AgentClient.receive

    async def drive() -> None:
        team = Team(Script(), CHAIN)
        async with team:
            agents = [client.agent for client in team.clients.values()]
            before = [{**vars(one)} for one in (team.hub, *agents)]
            assert dig.wrap(team.hub) is team.hub
            await team.workflow(*PAIR)
            assert dig.unwrap(team.hub) is team.hub
            assert [vars(one).keys() for one in (team.hub, *agents)] == [
                one.keys() for one in before
            ]
            assert AgentClient.receive is receive
            assert len(await team.workflow(*PAIR)) == 3

    asyncio.run(drive())


def test_another_hub_is_not_seen() -> None:
    watched = Watched()
    watched(Team(Script(), CHAIN).hub)
    assert play(WORK).returned is not None
    assert watched.session.statistics().requests == 0
    watched.detach()


class Slow:
    """A gate that keeps what goes to Bob for five seconds."""

    name = "slow"

    def hold(self, monitored: InteractionGraph, event: Pending) -> Hold | None:
        return Hold(60.0) if "bob" in monitored.event(event.id).flight else None

    async def decide(self, event: Pending) -> Iterable[Intervention]:
        await asyncio.sleep(5)
        return [Inject(event.id, "It is late.")]


def test_a_gate_keeps_a_message_and_agents_that_are_not_concerned_go_on() -> None:
    moments: dict[str, float] = {}
    seen: list[str] = []

    def act(name: str) -> Act:
        def acts(texts: list[str], number: int) -> str:
            moments[name] = asyncio.get_running_loop().time()
            seen.extend(texts)
            return f"{name} says so"

        return acts

    async def both(team: Team) -> Any:
        return await asyncio.gather(team.workflow(*PAIR), team.conversation("cyd", "1", "2"))

    setup = Setup(detectors=standard, healers=standard_healers, gates=[Slow()])
    asked = scenario("both", {name: act(name) for name in ("ann", "bob", "cyd")}, both)
    bare = play(asked).returned
    watched = Watched("heal", setup)
    assert play(asked, watched).returned == bare
    assert moments["bob"] - moments["ann"] >= 5 and moments["cyd"] < moments["bob"] - 2
    assert "[monitor] It is late." in seen
    watched.must_be_sound()


def test_requests_that_overlap_are_problems_of_their_own() -> None:
    async def at_once(team: Team) -> Any:
        return await asyncio.gather(*(team.conversation(name, "?") for name in team.clients))

    acts = {name: says(f"{name} says so") for name in ("ann", "bob", "cyd")}
    watched = Watched()
    outcome = play(scenario("at once", acts, at_once), watched)
    assert outcome.peak == 3
    assert watched.session.statistics().requests == 3 and watched.patterns == []
    watched.must_be_sound()


def test_an_answer_is_in_the_lineage_of_whom_its_agent_has_asked() -> None:
    acts: dict[str, Any] = {
        "ann": lambda texts, number: call("delegate", target="bob", prompt="?"),
        "bob": says("Yes"),
    }

    async def ask(team: Team) -> Any:
        return (await team.clients["ann"].agent.ask("Well?")).body

    watched = Watched()
    play(scenario("delegating", acts, ask), watched)
    (final,) = (r for r in watched.records if isinstance(r, Emit) and r.final)
    (last,) = (r for r in watched.records if isinstance(r, Start) and r.activation == final.by)
    ends = [r for r in watched.records if isinstance(r, End) and {*r.outputs} & {*last.inputs}]
    starts = {r.activation: r.agent for r in watched.records if isinstance(r, Start)}
    assert {starts[end.activation] for end in ends} == {"ann#2", "bob"}
    watched.must_be_sound()
