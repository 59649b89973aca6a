"""AutoGen, wrapped: it is used as before; what it holds, refuses, and gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from autogen_agentchat.teams import BaseGroupChat
from autogen_core import SingleThreadedAgentRuntime

import dig
from dig import Hold, InteractionGraph
from dig.adapters import autogen as adapter
from dig.detectors import standard, standard_healers
from dig.detectors.interventions import Inject, Intervention
from dig.errors import SettingsError
from dig.graph.records import Emit, End, Start
from dig.monitor.messages import Pending
from dig.runtime.host import Setup

from .autogen_runtimes import RUNTIMES, Act, Net, concludes, hands_on, scenario
from .autogen_teams import SCENARIOS, Watched, agents, ask, assistant, graph, round_robin, says
from .autogen_teams import scenario as chat
from .harness import Script, play

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")


def test_an_agent_is_no_team_and_the_message_says_so() -> None:
    with pytest.raises(SettingsError, match="AssistantAgent is no team or runtime"):
        dig.wrap(assistant(Script(), "ann", says("x")))


@pytest.mark.parametrize(
    ("team", "options", "why"),
    [
        (round_robin(Script()), {"outside": ["collector"]}, "outside= is for runtimes"),
        (round_robin(Script()), {"require": {"reroute"}}, "an AutoGen team cannot reroute"),
        (round_robin(Script()), {"handoff": "x"}, "handoff='x' is no function"),
        (SingleThreadedAgentRuntime(), {"handoff": bool}, "handoff= is for teams"),
        (SingleThreadedAgentRuntime(), {"outside": "collector"}, "'collector' is no set of names"),
        (SingleThreadedAgentRuntime(), {"allow": ["tell"]}, "allow can name bounce"),
        (SingleThreadedAgentRuntime(), {"require": {"bounce"}}, "an AutoGen runtime cannot bounce"),
    ],
)
def test_what_cannot_be_is_refused(team: Any, options: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        dig.wrap(team, **options)


def test_a_team_that_is_put_together_in_another_way_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(SingleThreadedAgentRuntime, "_get_agent")
    with pytest.raises(SettingsError, match="no _get_agent"):
        adapter.plan(round_robin(Script()))


def parts(team: Any) -> list[Any]:
    """All that a wrapper may have touched."""
    runtime = team._runtime if isinstance(team, BaseGroupChat) else team
    return [runtime, *runtime._instantiated_agents.values()]


def test_unwrapping_gives_a_team_back_as_it_was() -> None:
    async def drive() -> None:
        team = round_robin(Script())
        bare = round_robin(Script())
        assert dig.wrap(team) is team
        assert dig.wrap(team) is team
        first = await ask(team)
        assert dig.unwrap(team) is team
        assert first == await ask(bare)
        for mine, other in zip(parts(team), parts(bare), strict=True):
            assert vars(mine).keys() == vars(other).keys()
            assert "autogen/taps" not in repr([vars(one) for one in parts(team)])
        assert await ask(team, "And then?") == await ask(bare, "And then?")

    asyncio.run(drive())


def test_two_teams_of_one_runtime_may_be_unwrapped_in_any_order() -> None:
    async def drive() -> None:
        runtime = SingleThreadedAgentRuntime()
        one, two = (
            type(team)(team._participants, max_turns=2, runtime=runtime, name=f"team-{number}")
            for number, team in enumerate((round_robin(Script()), round_robin(Script())))
        )
        runtime.start()
        dig.wrap(one)
        dig.wrap(two)
        sessions = [dig.session_of(team) for team in (one, two)]
        await asyncio.gather(ask(one), ask(two))
        dig.unwrap(one)
        await asyncio.gather(ask(one), ask(two))
        dig.unwrap(two)
        await ask(one)
        await runtime.stop_when_idle()
        assert [session.statistics().requests for session in sessions] == [1, 2]

    asyncio.run(drive())


class Slow:
    """A gate that keeps what goes to somebody for five seconds."""

    name = "slow"

    def __init__(self, to: str) -> None:
        self.to = to

    def hold(self, monitored: InteractionGraph, event: Pending) -> Hold | None:
        return Hold(60.0) if self.to in monitored.event(event.id).flight else None

    async def decide(self, event: Pending) -> Iterable[Intervention]:
        await asyncio.sleep(5)
        return [Inject(event.id, "It is late.")]


def slowed(to: str) -> Setup:
    return Setup(detectors=standard, healers=standard_healers, gates=[Slow(to)])


def test_a_gate_keeps_a_message_and_agents_that_are_not_concerned_go_on() -> None:
    moments: dict[str, float] = {}
    seen: list[str] = []

    def build(script: Script) -> Any:
        team = graph(script)
        for agent in team._participants:
            agent.act = act(agent.name)
        return team

    def act(name: str) -> Any:
        def acts(texts: list[str], number: int) -> str:
            moments[name] = asyncio.get_running_loop().time()
            seen.extend(texts)
            return f"{name} says so"

        return acts

    watched = Watched("heal", slowed("bob"))
    assert "dan says so" in str(play(chat(build), watched).returned)
    assert moments["bob"] - moments["ann"] >= 5 and moments["cyd"] < moments["bob"] - 3
    assert "[monitor] It is late." in seen
    watched.must_be_sound()


def test_what_is_published_for_somebody_waits_behind_what_is_held_for_it() -> None:
    seen: list[tuple[str, str, bool]] = []

    def listens(name: str) -> Act:
        async def act(node: Any, message: Any) -> None:
            late = asyncio.get_running_loop().time() - began[0] >= 5
            seen.append((name, message.text, late))

        return act

    async def ann(node: Any, message: Any) -> None:
        for text in ("One", "Two"):
            await node.tell("bob", text)
        await node.tell("cyd", "Three")

    async def tell(net: Net) -> Any:
        began.append(asyncio.get_running_loop().time())
        return await net.tell("ann")

    began: list[float] = []
    acts: dict[str, Act] = {"ann": ann, "bob": listens("bob"), "cyd": listens("cyd")}
    watched = Watched("heal", slowed("bob"), outside={"collector"})
    play(scenario("held", acts, tell), watched)
    assert seen == [("cyd", "Three", False), ("bob", "One", True), ("bob", "Two", True)]
    watched.must_be_sound()


def test_a_run_that_is_cancelled_does_not_wait_for_a_gate() -> None:
    asked = next(one for one in SCENARIOS if one.name == "round_robin-cancelled")
    watched = Watched("heal", slowed("bob"))
    assert play(asked, watched).elapsed < 3
    watched.must_be_sound()


def test_requests_that_overlap_are_problems_of_their_own() -> None:
    asked = next(one for one in RUNTIMES if one.name == "at_once")
    watched = Watched()
    assert play(asked, watched).peak > 2
    assert watched.session.statistics().requests == 3 and watched.patterns == []
    watched.must_be_sound()


def test_an_answer_is_in_the_lineage_of_whom_its_agent_was_told_by() -> None:
    async def tell(net: Net) -> Any:
        return await net.tell("ann")

    watched = Watched(outside={"collector"})
    play(scenario("telling", {"ann": hands_on, "bob": concludes}, tell), watched)
    (final,) = (r for r in watched.records if isinstance(r, Emit) and r.final)
    (last,) = (r for r in watched.records if isinstance(r, Start) and r.activation == final.by)
    (before,) = (r for r in watched.records if isinstance(r, End) and {*r.outputs} & {*last.inputs})
    starts = {r.activation: r.agent for r in watched.records if isinstance(r, Start)}
    assert (last.agent, starts[before.activation]) == ("bob", "ann")


def test_people_may_be_named_agents_of_a_team() -> None:
    def build(script: Script) -> Any:
        return type(round_robin(script))(agents(script, user=says("I am here")), max_turns=1)

    watched = Watched()
    assert play(chat(build), watched) == play(chat(build))
    watched.must_be_sound()
