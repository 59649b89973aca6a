"""AutoGen: what `test_conformance` has to know of it, and cases for all of its adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from autogen_agentchat.base import TerminationCondition
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import AgentId, SingleThreadedAgentRuntime

import dig
from dig.adapters import autogen as adapter
from dig.adapters.autogen.group import BounceableTermination
from dig.graph.records import Limits
from dig.runtime.setup import Setup

from . import autogen_runtimes as runtimes
from . import autogen_teams as teams
from . import test_autogen as own
from .autogen_runtimes import RUNTIMES, Act, Net, says
from .autogen_teams import ask
from .conformance import Framework, Refused, Waiting
from .framework_cases import Case, Cases, Wrap
from .framework_gates import Keeper, behind, usher
from .framework_signatures import Pair
from .framework_watch import ladder, limited, ticking
from .harness import Scenario, Script
from .test_autogen_interface import FAILING, nobody
from .test_autogen_runtimes import ASKS_TWO, ask_ann, crowded, tell_and_wait

PLAIN = [
    "several_first-ask", "swarm-cancelled", "graph-ask_twice", "graph-cancelled", "dropping-ask",
    "failing-ask", "failing-caught_and_again", "choosing_wrong-ask", "nested-ask",
    "telling", "stopped", "odd", "caught", "at_once_in_turn",
]  # fmt: skip
OUTSIDE: dict[str, Any] = {"outside": {"collector"}}


def keeping(*kept: Any, after_s: float = 5.0) -> Callable[[], Setup]:
    """Makes a setup in which nothing but a gate intervenes, which keeps some payloads."""
    return behind(Keeper(*kept, after_s=after_s))


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
    *(Case(teams.scenario(teams.swarm), limited(turns)) for turns in (1, 2)),
    Case(teams.scenario(own.ping_pong), limited(3)),
    Case(net("dropped", dropped)),
    *(Case(teams.scenario(build)) for build in (nobody, guarded)),
    Case(teams.scenario(failing_elsewhere, ask_and_wait)),
    *(Case(one) for one in teams.SCENARIOS if one.name in PLAIN),
    *(Case(one, options=OUTSIDE) for one in RUNTIMES if one.name in PLAIN),
    Case(teams.scenario(teams.swarm), options={"handoff": lambda message: True}),
    Case(teams.scenario(teams.swarm), options={"tools": True}),
    Case(teams.scenario(own.ping_pong)),
    Case(teams.scenario(own.stopped_graph, own.go_on)),
    Case(teams.scenario(own.dropped_and_asking)),
    Case(teams.scenario(own.with_person)),
    Case(teams.scenario(own.early)),
    Case(teams.scenario(own.early_once, own.ask_two)),
    Case(teams.scenario(teams.round_robin, teams.ask_twice), behind(usher())),
    Case(teams.scenario(teams.graph, teams.ask_twice), lost=("turn.hand_over", 1)),
    Case(telling_twice, options=OUTSIDE, lost=("turn.call", 1)),
    Case(teams.scenario(teams.round_robin), behind(usher("Welcome."))),
    Case(teams.scenario(teams.round_robin, teams.cancelled), keeping("A part")),
    Case(teams.scenario(teams.round_robin, ask_briefly), keeping("A part")),
    Case(teams.scenario(teams.round_robin, leave), keeping("A part")),
    Case(unwrapped),
    Case(net("giving_up", {"ann": runtimes.gives_up, "bob": slow})),
    Case(net("waiting", {"ann": tells_and_waits, "bob": nothing}, tell_ann), options=OUTSIDE),
    Case(passing_on, behind(usher()), OUTSIDE),
    Case(passing_on, behind(usher("Welcome.")), {**OUTSIDE, "annotate": as_it_is}),
    Case(net("asking", {"ann": runtimes.asks_bob, "bob": says("Yes")}), behind(usher())),
    Case(telling_twice, behind(usher()), OUTSIDE),
    Case(net("beside", {"ann": beside}), options=OUTSIDE),
    Case(own.HANGING.asked, ladder, {"allow": {"reassign"}}),
    Case(silent, options={**OUTSIDE, "deliver": lambda agent, note: None}),
]
SCENARIOS = [*teams.SCENARIOS, *RUNTIMES]


async def in_docs(lines: Sequence[Any]) -> int:
    names: dict[str, Any] = {"team": teams.round_robin(Script())}
    await eval(lines[0], names)
    assert names["result"].messages[-1].content == "TERMINATE"
    async with Net(Script(), {"planner": says("It rains.")}) as net:
        planner = AgentId("planner", "default")
        question = runtimes.Ask("?")
        names = {"dig": dig, "runtime": net.runtime, "planner": planner, "question": question}
        await eval(lines[1], names)
        assert names["answer"].text == "It rains."
    dig.unwrap(net.runtime)
    return 2


def options(asked: Scenario) -> dict[str, Any]:
    return OUTSIDE if asked in RUNTIMES else {}


def refused(team: Callable[[], Any], why: str, **options: Any) -> Refused:
    return Refused(team, why, options)


def chat() -> Any:
    return teams.round_robin(Script())


runtime = SingleThreadedAgentRuntime


FRAMEWORKS = [
    Framework(
        "autogen", teams.Watched, package="autogen-core", scenarios=SCENARIOS,
        marks=[pytest.mark.filterwarnings("ignore:Multiple handoffs detected")],
        cancelled=("selector-ask", "limited-ask", "telling", "asking_in_turn"),
        is_over=lambda watched: watched.session.statistics().open_turns == 0,
        going_round=[teams.scenario(own.ping_pong)],
        unsolved="Maximum number of messages 40", solved="I do it.",
        asking=[net("twice", ASKS_TWO, ask_ann)], told="once is enough", crowded=crowded,
        faults=Cases(
            adapter, teams.Watched, CASES, most=6, caller="turn", sender="turn", waiting="turn"
        ),
        at_least=80,
        fragile=(
            "swarm-ask", "dropping-ask", "graph-ask_twice", "several_first-ask",
            "failing-caught_and_again", "round_robin-cancelled", "at_once_in_turn", "telling_all",
            "caught", "giving_up", "odd",
        ),
        options=options,
        unhealed=[(teams.scenario(own.ping_pong), None)],
        unheld=[teams.scenario(teams.graph, teams.ask_twice)],
        tapped=SCENARIOS,
        # The condition of a manager, which is an object.
        replaced=lambda: [Pair(TerminationCondition.__call__, BounceableTermination.__call__)],
        refused=[
            refused(
                lambda: teams.assistant(Script(), "ann", teams.says("x")),
                "AssistantAgent is no team or runtime",
            ),
            refused(chat, "outside= is for runtimes", outside=["collector"]),
            refused(chat, "an AutoGen team cannot reroute", require={"reroute"}),
            refused(chat, "handoff='x' is no function", handoff="x"),
            refused(runtime, "handoff= is for teams", handoff=bool),
            refused(runtime, "'collector' is no set of names", outside="collector"),
            refused(runtime, "allow can name bounce", allow=["tell"]),
            refused(runtime, "an AutoGen runtime cannot bounce", require={"bounce"}),
            refused(runtime, "tools= is for teams", tools=True),
        ],
        lacks=(SingleThreadedAgentRuntime, "_get_agent", "no _get_agent"),
        at_once=next(one for one in RUNTIMES if one.name == "at_once"),
        beside=(teams.scenario(teams.graph), "bob", "cyd", {}),
        waiting=[
            Waiting(teams.scenario(own.asking_branch), 0),
            Waiting(teams.scenario(own.stopped_graph, own.go_on), 0, 2),
            Waiting(teams.scenario(own.dropped_and_asking), 0),
            Waiting(teams.scenario(own.with_person)),
            Waiting(teams.scenario(own.many), own.MANY),
            Waiting(
                teams.scenario(own.choosing_slowly), overdue_s=59,
                limits=Limits(mc_window_s=5, activation_limit_s=20),
            ),
        ],
        failing=FAILING,
        hanging=own.HANGING,
        example=(
            ("ER", "ET"),
            ("Transferred to.*", "Paid back. DONE", "(?!.*snow).*", ".*snows on 12.*"),
        ),
        docs=in_docs,
    )
]  # fmt: skip
