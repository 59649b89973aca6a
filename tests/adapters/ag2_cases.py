"""AG2: what `test_conformance` has to know of it, and cases for all of its adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ag2 import Agent
from ag2.network import EV_TEXT, AgentClient, Envelope, Hub

from dig import Limits, Reroute
from dig.adapters import ag2 as adapter
from dig.adapters.ag2 import hub

from . import ag2_teams as teams
from . import test_ag2 as own
from .ag2_teams import consult, says
from .conformance import Framework, Refused, Waiting
from .framework_cases import Case, Cases, Wrap
from .framework_faults import PARTS
from .framework_gates import Keeper, answers, behind, usher
from .framework_signatures import Pair
from .framework_watch import limited, ticking
from .harness import Scenario, Script
from .test_ag2_budget import RING, speak

PLAIN = ["between_agents", "delegating", "failing"]


def passed_on() -> Scenario:
    """Ann hands over to Bob, and he to Cyd, what none of them has touched."""
    acts: dict[str, Any] = {
        "ann": lambda texts, number: teams.call("hand_to", agent="bob"),
        "bob": lambda texts, number: teams.call("hand_to", agent="cyd"),
        "cyd": lambda texts, number: teams.call("finish", summary="Done"),
    }
    return teams.scenario("passed_on", acts, own.in_workflow)


def saying() -> Scenario:
    """Ann speaks in the midst of her turn, and has nothing to add."""

    async def ask(team: teams.Team) -> Any:
        async def tell(text: str) -> str:
            """Say something at once."""
            await team.hub.post_envelope(Envelope(
                channel_id=channel.channel_id, sender_id=team.clients["ann"].agent_id,
                audience=None, event_type=EV_TEXT, event_data={"text": text},
            ))  # fmt: skip
            return "posted"

        team.clients["ann"].agent.add_tool(tell)
        channel = await team.user.open(type="conversation", target="ann")
        await team.user.send(channel.channel_id, "Well?")
        heard = await team.answer(channel.channel_id)
        await asyncio.sleep(1)
        return teams.shown(team.hub, heard)

    acts: dict[str, Any] = {"ann": lambda texts, number: teams.call("tell", text="By the way")}
    return teams.scenario("saying", acts, ask)


def asking_beside() -> Scenario:
    """Ann asks Bob something and answers at once; Bob says something when he is done."""

    async def ask(team: teams.Team) -> Any:
        team.gives_out("ann")
        return await own.in_workflow(team)

    def ann(texts: list[str], number: int) -> Any:
        return teams.call("give_out", part="The second half") if number == 1 else ""

    async def bob(texts: list[str], number: int) -> str:
        await asyncio.sleep(5)
        return "Done"

    return teams.scenario("asking_beside", {"ann": ann, "bob": bob}, ask)


def leaving(bob: teams.Act) -> Scenario:
    """Somebody asks, and closes the hub before there is an answer."""

    async def ask(team: teams.Team) -> Any:
        await team.begin(*teams.PAIR, says="Well?")
        await asyncio.sleep(3)
        return "gone"

    return teams.scenario("leaving", {"ann": says("A part"), "bob": bob}, ask)


async def sleeps(texts: list[str], number: int) -> str:
    await asyncio.sleep(60)
    return "Too late"


def disconnecting() -> Scenario:
    """Bob accepts an invitation, and is gone before he is asked anything."""

    async def ask(team: teams.Team) -> Any:
        bob = team.clients["bob"]

        async def accept(envelope: Any) -> None:
            await bob._run_default_handler(envelope)
            await team.hub._endpoint_for(bob.agent_id).close()
            team.hub._agent_to_endpoint.pop(bob.agent_id)

        bob.on_envelope(accept)
        return await consult(team)

    def ann(texts: list[str], number: int) -> Any:
        return teams.call("delegate", target="bob", prompt="?", timeout=5)

    return teams.scenario("disconnecting", {"ann": ann, "bob": says("never")}, ask)


def silent(wrap: Wrap) -> Scenario:
    return ticking(own.silent_team(), wrap)


SENT_BACK = Keeper(
    keeps=answers, after_s=8.0, hold_s=60.0,
    wishes=[lambda event: Reroute(event, "Look at it again.", ("ann",))],
)  # fmt: skip


def circle(answer: str | None) -> Scenario:
    """A ring of two agents, in which Ann hands back an answer if she is asked to, or hands over."""
    acts = {name: speak(answer, name) for name in ("ann", "bob")}
    return teams.scenario("circle", acts, lambda team: team.workflow(*RING, max_turns=6))


CASES = [
    Case(own.talking(ends_by_tool=True), limited(1)),
    *(Case(circle(answer), limited(2)) for answer in ("half", None)),
    Case(own.talking(ends_by_tool=True)),
    *(Case(asked) for asked in teams.SCENARIOS if asked.name in PLAIN),
    Case(saying()),
    Case(disconnecting()),
    Case(leaving(sleeps)),
    Case(leaving(says("The whole")), behind(usher(after_s=30))),
    Case(passed_on(), behind(usher())),
    Case(own.twice_asked(), options={"same_work": True}),
    Case(own.early_team()),
    Case(own.hooked(consult, own.ASKS[0])),
    Case(asking_beside(), behind(SENT_BACK), lost=("turn.hand_over", 1)),
    Case(silent),
]


async def both(team: teams.Team) -> Any:
    return await asyncio.gather(team.workflow(*teams.PAIR), team.conversation("cyd", "1", "2"))


async def at_once(team: teams.Team) -> Any:
    return await asyncio.gather(*(team.conversation(name, "?") for name in team.clients))


def is_over(watched: Any) -> bool:
    """What lies in an agent's queue when the hub is closed is lost, and stays open."""
    seen = watched.session.statistics()
    is_quiet = (seen.open_turns, seen.faults, seen.missed) == (0, 0, 0)
    return is_quiet and not watched.session.monitor.graph.activations


async def in_docs(lines: Sequence[Any]) -> int:
    acts = {"planner": teams.CHAIN["ann"], "writer": teams.CHAIN["bob"]}
    async with teams.Team(Script(), acts) as team:
        knobs = {"graph": team.graph(("user", "planner"), ("planner", "writer"))}
        names: dict[str, Any] = {"hub": team.hub, "user": team.user, "knobs": knobs}
        await eval(lines[0], names)
        assert names["channel"].metadata.knobs == knobs
        assert len(await team.workflow(("user", "planner"), ("planner", "writer"))) == 3
    return 1


NAMES = ("ann", "bob", "cyd")
FRAMEWORKS = [
    Framework(
        "ag2", teams.Watched, package="ag2", scenarios=teams.SCENARIOS,
        cancelled=("between_agents", "consulting", "delegating", "failing"),
        cancelled_in="heal", is_over=is_over,
        going_round=[own.ping_pong], unsolved="round and round", solved="solved",
        asking=[own.twice_asked()], told="once is enough", crowded=own.crowded,
        faults=Cases(adapter, teams.Watched, CASES, most=4, graph="graph"), at_least=45,
        fragile=("handoffs", "between_agents", "delegating", "failing"),
        parts=(*PARTS, "handoff"),
        unhealed=[(own.early_team(), None)],
        tapped=teams.SCENARIOS,
        # The method of the class, which all hubs share.
        replaced=lambda: [Pair(AgentClient.receive, hub._receive_patched)],
        refused=[
            Refused(lambda: Agent("ann"), "Agent is no hub; wrap the Hub"),
            Refused(
                lambda: Hub(None), "an AG2 hub cannot reroute; it can: annotate, bounce",
                {"require": {"reroute"}},
            ),
        ],
        lacks=(Hub, "_dispatch", "no _dispatch"),
        at_once=teams.scenario("at_once", {n: says(f"{n} says so") for n in NAMES}, at_once),
        beside=(teams.scenario("both", {n: says("So") for n in NAMES}, both), "bob", "cyd", {}),
        waiting=[
            Waiting(
                teams.scenario(
                    "asking", {"ann": says("Which?"), "bob": says("Done")}, own.two_turns
                ),
                waits=0, answers=2,
            ),
            *(
                Waiting(own.hooked(*asked, one))
                for asked in ([consult], [own.in_workflow], [consult, own.DELEGATES])
                for one in own.ASKS
            ),
            Waiting(
                own.hooked(own.all_at_once, own.ASKS[1]), own.MANY, own.MANY,
                Limits(dl_window_s=2, mc_window_s=2, activation_limit_s=5),
            ),
            Waiting(
                own.hooked(own.slowly, own.ASKS[0]), overdue_s=20,
                limits=Limits(mc_window_s=5, activation_limit_s=10),
            ),
        ],
        failing=own.FAILING,
        example=(
            ("ER", "MC"),
            ("none: max_turns", "Paid back.", "none: nobody speaks", "A text about rain."),
        ),
        docs=in_docs,
    )
]  # fmt: skip
