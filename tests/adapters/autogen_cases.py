"""Cases that together come through every call that AutoGen's adapter makes of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import SingleThreadedAgentRuntime, TopicId

from dig.detectors import standard
from dig.runtime.host import Setup

from . import autogen_runtimes as runtimes
from . import autogen_teams as teams
from .autogen_runtimes import RUNTIMES, Act, Net, says
from .autogen_teams import ask
from .framework_cases import Case, Wrap
from .framework_gates import Usher, behind
from .framework_watch import ticking
from .harness import Scenario, Script
from .test_autogen_healing import ask_two, early, early_once, ping_pong
from .test_autogen_relief import ladder, relieved
from .test_autogen_waiting import dropped_and_asking, go_on, stopped_graph, with_person
from .test_gates import Keeper

PLAIN = [
    "several_first-ask", "swarm-cancelled", "graph-ask_twice", "graph-cancelled", "dropping-ask",
    "failing-ask", "failing-caught_and_again", "choosing_wrong-ask", "nested-ask",
    "telling", "stopped", "odd", "caught", "at_once_in_turn",
]  # fmt: skip
OUTSIDE: dict[str, Any] = {"outside": {"collector"}}


def keeping(*kept: Any, after_s: float = 5.0) -> Callable[[], Setup]:
    """Makes a setup in which nothing but a gate intervenes, which keeps some payloads."""
    return lambda: Setup(detectors=standard, healers=dict, gates=[Keeper(*kept, after_s=after_s)])


async def ask_ann(net: Net) -> Any:
    return await net.ask("ann")


async def tell_ann(net: Net) -> Any:
    return await net.tell("ann")


def net(name: str, acts: dict[str, Act], ask: Any = ask_ann) -> Scenario:
    return runtimes.scenario(name, acts, ask)


async def slow(node: Any, message: Any) -> str:
    await asyncio.sleep(5)
    return "Yes"


async def tells_and_waits(node: Any, message: Any) -> None:
    await node.tell("bob", "Go")
    await asyncio.sleep(20)


def passes_on(to: str) -> Act:
    async def act(node: Any, message: Any) -> None:
        await node.tell(to, message.text)

    return act


def as_it_is(message: Any, notes: tuple[str, ...]) -> Any:
    return message


passing_on = net(
    "passing_on",
    {"ann": passes_on("bob"), "bob": passes_on("cyd"), "cyd": passes_on("results")},
    tell_ann,
)


async def tells_twice(node: Any, message: Any) -> None:
    await node.tell("bob", "One")
    await asyncio.sleep(5)
    await node.tell("bob", "Two")


telling_twice = net("telling_twice", {"ann": tells_twice, "bob": passes_on("results")}, tell_ann)


async def beside(node: Any, message: Any) -> str:
    await node.tell("results", "A word in between")
    return "the answer"


async def nothing(node: Any, message: Any) -> None: ...


async def tell_and_wait(net: Net) -> Any:
    await net.runtime.publish_message(runtimes.Tell("Go"), TopicId("ann", "default"))
    await asyncio.sleep(60)
    return net.heard


def silent(wrap: Wrap) -> Scenario:
    """Nobody answers, and who is told of that has nothing to say either."""
    return ticking(net("silent", {"ann": nothing}, tell_and_wait), wrap)


async def ask_briefly(team: Any) -> Any:
    """Somebody does not wait for long, which is long enough for the agents themselves."""
    async with asyncio.timeout(4.5):
        return await ask(team)


async def leave(team: Any) -> Any:
    """Whoever asks has the whole program end before there is an answer."""
    asking = asyncio.ensure_future(ask(team))
    await asyncio.sleep(2)
    return "gone" if not asking.done() else "answered"


def unwrapped(wrap: Wrap) -> Scenario:
    """The team gets back what is its own while somebody speaks."""

    async def drive(team: Any) -> Any:
        asking = asyncio.ensure_future(ask(team))
        await asyncio.sleep(0.05)
        if isinstance(wrap, teams.Watched):
            wrap.detach()
        return await asking

    asked = teams.scenario(teams.round_robin, drive)
    return Scenario(asked.name, lambda script: wrap(asked.build(script)), asked.drive)


def nobody(script: Script) -> Any:
    """The manager raises before anybody has spoken."""
    team = teams.choosing_wrong(script)
    team._selector_func = lambda thread: "nobody"
    return team


def guarded(script: Script) -> Any:
    """It comes to a limit before somebody says that it is done."""
    return RoundRobinGroupChat(
        teams.agents(script, **teams.WORK), termination_condition=teams.until(3)
    )


def failing_elsewhere(script: Script) -> Any:
    """One branch fails, and the runtime lets the other one speak to its end."""
    team = teams.failing_beside(script)
    team._runtime, team._embedded_runtime = SingleThreadedAgentRuntime(), False
    return team


async def ask_and_wait(team: Any) -> Any:
    team._runtime.start()
    try:
        return await ask(team)
    except RuntimeError as error:
        await asyncio.sleep(5)
        await team._runtime.stop_when_idle()
        return str(error).splitlines()[0]


async def asks_in_vain(node: Any, message: Any) -> str:
    return str(await node.ask("bob", "secret"))


dropped: dict[str, Act] = {"ann": asks_in_vain, "bob": slow, "drops": slow}

CASES = [
    Case(net("dropped", dropped)),
    *(Case(teams.scenario(build)) for build in (nobody, guarded)),
    Case(teams.scenario(failing_elsewhere, ask_and_wait)),
    *(Case(one) for one in teams.SCENARIOS if one.name in PLAIN),
    *(Case(one, options=OUTSIDE) for one in RUNTIMES if one.name in PLAIN),
    Case(teams.scenario(teams.swarm), options={"handoff": lambda message: True}),
    Case(teams.scenario(teams.swarm), options={"tools": True}),
    Case(teams.scenario(ping_pong)),
    Case(teams.scenario(stopped_graph, go_on)),
    Case(teams.scenario(dropped_and_asking)),
    Case(teams.scenario(with_person)),
    Case(teams.scenario(early)),
    Case(teams.scenario(early_once, ask_two)),
    Case(teams.scenario(teams.round_robin, teams.ask_twice), behind(Usher())),
    Case(teams.scenario(teams.graph, teams.ask_twice), lost=("turn.hand_over", 1)),
    Case(telling_twice, options=OUTSIDE, lost=("turn.call", 1)),
    Case(teams.scenario(teams.round_robin), behind(Usher("Welcome."))),
    Case(teams.scenario(teams.round_robin, teams.cancelled), keeping("A part")),
    Case(teams.scenario(teams.round_robin, ask_briefly), keeping("A part")),
    Case(teams.scenario(teams.round_robin, leave), keeping("A part")),
    Case(unwrapped),
    Case(net("giving_up", {"ann": runtimes.gives_up, "bob": slow})),
    Case(net("waiting", {"ann": tells_and_waits, "bob": nothing}, tell_ann), options=OUTSIDE),
    Case(passing_on, behind(Usher()), OUTSIDE),
    Case(passing_on, behind(Usher("Welcome.")), {**OUTSIDE, "annotate": as_it_is}),
    Case(net("asking", {"ann": runtimes.asks_bob, "bob": says("Yes")}), behind(Usher())),
    Case(telling_twice, behind(Usher()), OUTSIDE),
    Case(net("beside", {"ann": beside}), options=OUTSIDE),
    Case(relieved, ladder, {"allow": {"reassign"}}),
    Case(silent, options={**OUTSIDE, "deliver": lambda agent, note: None}),
]
