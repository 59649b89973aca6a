"""AutoGen, wrapped: random teams and runtimes, with and without, for many seeds."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from typing import Any

import pytest
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, Swarm

from .autogen_runtimes import RUNTIMES, Act, Net, Node, OneByOne
from .autogen_runtimes import scenario as runtime
from .autogen_teams import DONE, SCENARIOS, To, Watched, agents, ask_twice, until
from .harness import Scenario, Script, cancelled_everywhere, play

NAMES = ("ann", "bob", "cyd", "dan")
SEEDS = range(15)


def chance(*seed: Any) -> Random:
    return Random(" ".join(map(str, seed)))


def speaks(seed: int, name: str) -> Any:
    """Somebody who hands over, says something, ends the chat, or raises."""

    def act(texts: list[str], number: int) -> Any:
        draw = chance(seed, name, number)
        return draw.choice([
            To(draw.choice(NAMES)), To(draw.choice(NAMES), said="Yours"), f"{name} {number}",
            f"{name} {number}", DONE, *([ValueError("no model today")] if seed % 3 == 0 else []),
        ])  # fmt: skip

    return act


def swarm(seed: int, script: Script) -> Any:
    acts = {name: speaks(seed, name) for name in NAMES}
    return Swarm(agents(script, **acts), termination_condition=until(9))


def graph(seed: int, script: Script) -> Any:
    """A graph without rounds, whose joins wait for all or for one."""
    draw, built = chance(seed), DiGraphBuilder()
    acts: dict[str, Any] = {
        name: lambda texts, number, name=name: f"{name} after {len(texts)}" for name in NAMES
    }
    team = agents(script, **acts)
    for agent in team:
        built.add_node(agent, activation=draw.choice(["all", "any"]))
    for place, agent in enumerate(team):
        for further in team[place + 1 :]:
            if draw.random() < 0.6:
                built.add_edge(agent, further)
    return GraphFlow(team, graph=built.build(), termination_condition=until(9))


def working(seed: int, name: str) -> Act:
    """Somebody who asks, tells, and fails; less and less of it, the deeper it goes."""

    async def act(node: Any, message: Any) -> str:
        depth = message.text.count(">")
        draw, said = chance(seed, name, message.text), [name]
        for _ in range(draw.randint(0, 2 if depth < 3 else 0)):
            to, text = draw.choice(NAMES), f"{message.text}>{draw.randint(0, 3)}"
            match draw.choice(["ask", "ask", "both", "tell", "fail"]):
                case "ask":
                    said.append(await asked(node, to, text))
                case "both":
                    pair = (asked(node, one, text) for one in draw.sample(NAMES, 2))
                    said += await asyncio.gather(*pair)
                case "tell":
                    await node.tell(draw.choice([to, "all", "nobody"]), text)
                case _:
                    raise ValueError(f"{name} fails")
        return " ".join(said)

    return act


async def asked(node: Any, to: str, text: str) -> str:
    """An answer, or why there is none; agents that work in turn may wait for each other."""
    try:
        async with asyncio.timeout(7):
            return str(await node.ask(to, text))
    except (ValueError, TimeoutError) as error:
        return type(error).__name__


async def ask_all(net: Net) -> Any:
    answers = (net.ask(name, name) for name in NAMES[:2])
    return await asyncio.gather(*answers, return_exceptions=True)


def scenarios(seed: int) -> list[Scenario]:
    acts = {name: working(seed, name) for name in NAMES}
    return [
        Scenario("swarm", partial(swarm, seed), ask_twice),
        Scenario("graph", partial(graph, seed), ask_twice),
        runtime("runtime", acts, ask_all, OneByOne if seed % 2 else Node),
    ]


@pytest.mark.parametrize("place", range(3), ids=["swarm", "graph", "runtime"])
def test_random_teams_are_the_same_with_a_wrapper_that_observes(place: int) -> None:
    for seed in SEEDS:
        asked = scenarios(seed)[place]
        watched = Watched()
        assert play(asked, watched, seed=seed) == play(asked, seed=seed), seed
        watched.must_be_sound()


@pytest.mark.parametrize("name", ["selector-ask", "limited-ask", "telling", "asking_in_turn"])
def test_a_request_that_is_cancelled_anywhere_ends_the_same(name: str) -> None:
    known = {one.name: one for one in (*SCENARIOS, *RUNTIMES)}
    watched = Watched()
    for step, bare, mine in cancelled_everywhere(known[name], watched):
        assert mine == bare, f"cancelled at step {step}"
        watched.detach()
        seen = watched.session.statistics()
        assert (seen.open_turns, seen.faults, seen.missed) == (0, 0, 0), f"at step {step}"
