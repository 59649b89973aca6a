"""Cases that together come through every call that AG2's adapter makes of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from ag2.network import EV_TEXT, Envelope

from dig import Hold, InteractionGraph, Reroute
from dig.detectors import standard
from dig.detectors.interventions import Intervention
from dig.monitor.messages import Pending
from dig.runtime.host import Setup

from . import ag2_teams as teams
from .framework_cases import Case, Wrap
from .harness import Scenario
from .test_ag2_healing import ask_and_wait, early_team, is_told, twice_asked
from .test_ag2_limits import talking
from .test_ag2_waiting import ASKS, directly, hooked

PLAIN = ["between_agents", "delegating", "failing"]


class Passing:
    """A gate that keeps every message, and decides after a while.

    Args:
        after_s: How long it takes, in seconds.
    """

    name = "passing"

    def __init__(self, after_s: float = 0.0) -> None:
        self.after_s = after_s

    def hold(self, monitored: InteractionGraph, event: Pending) -> Hold | None:
        return None if event.type == "notice" else Hold(60.0)

    async def decide(self, event: Pending) -> Iterable[Intervention]:
        if self.after_s:
            await asyncio.sleep(self.after_s)
        return ()


class SendingBack(Passing):
    """A gate that keeps answers, and sends them back."""

    def hold(self, monitored: InteractionGraph, event: Pending) -> Hold | None:
        return Hold(60.0) if event.final else None

    async def decide(self, event: Pending) -> Iterable[Intervention]:
        await super().decide(event)
        return [Reroute(event.id, "Look at it again.", (event.sender or "",))]


def behind(gate: Passing) -> Callable[[], Setup]:
    return lambda: Setup(detectors=standard, healers=dict, gates=[gate])


def passed_on() -> Scenario:
    """Ann hands over to Bob, and he to Cyd, what none of them has touched."""
    acts: dict[str, Any] = {
        "ann": lambda texts, number: teams.call("hand_to", agent="bob"),
        "bob": lambda texts, number: teams.call("hand_to", agent="cyd"),
        "cyd": lambda texts, number: teams.call("finish", summary="Done"),
    }
    return teams.scenario("passed_on", acts, lambda team: team.workflow(("user", "ann")))


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
        heard = await team.user.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=teams.is_said, timeout=60
        )
        await asyncio.sleep(1)
        return teams.shown(team.hub, heard)

    acts: dict[str, Any] = {"ann": lambda texts, number: teams.call("tell", text="By the way")}
    return teams.scenario("saying", acts, ask)


def asking_beside() -> Scenario:
    """Ann asks Bob something and answers at once; Bob says something when he is done."""

    async def ask(team: teams.Team) -> Any:
        async def tell_bob(text: str) -> str:
            """Have Bob do something."""
            channel = await team.clients["ann"].open(type="conversation", target="bob")
            await channel.send(text)
            return "Half of it"

        team.clients["ann"].agent.add_tool(tell_bob)
        return await team.workflow(("user", "ann"))

    def ann(texts: list[str], number: int) -> Any:
        return teams.call("tell_bob", text="The second half") if number == 1 else ""

    async def bob(texts: list[str], number: int) -> str:
        await asyncio.sleep(5)
        return "Done"

    return teams.scenario("asking_beside", {"ann": ann, "bob": bob}, ask)


def leaving(wait_s: float, bob: teams.Act) -> Scenario:
    """Somebody asks, and closes the hub before there is an answer."""

    async def ask(team: teams.Team) -> Any:
        channel = await team.user.open(
            type="workflow", target=["ann", "bob"], knobs={"graph": team.graph(*teams.PAIR)}
        )
        await team.user.send(channel.channel_id, "Well?")
        await asyncio.sleep(wait_s)
        return "gone"

    return teams.scenario("leaving", {"ann": teams.says("A part"), "bob": bob}, ask)


async def slowly(texts: list[str], number: int) -> str:
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
        return await teams.consult(team)

    def ann(texts: list[str], number: int) -> Any:
        return teams.call("delegate", target="bob", prompt="?", timeout=5)

    return teams.scenario("disconnecting", {"ann": ann, "bob": teams.says("never")}, ask)


def silent(wrap: Wrap) -> Scenario:
    """Ann has the floor and says nothing, until she is told."""

    def ann(texts: list[str], number: int) -> Any:
        return "Here I am" if is_told(texts) else ""

    asked = teams.scenario("silent", {"ann": ann, "bob": teams.says("The whole")}, ask_and_wait)
    wrapped = Scenario(asked.name, lambda script: wrap(asked.build(script)), asked.drive)
    return wrap.ticking(wrapped) if isinstance(wrap, teams.Watched) else wrapped


CASES = [
    Case(talking(ends_by_tool=True)),
    *(Case(asked) for asked in teams.SCENARIOS if asked.name in PLAIN),
    Case(saying()),
    Case(disconnecting()),
    Case(leaving(3, slowly)),
    Case(leaving(3, teams.says("The whole")), behind(Passing(30))),
    Case(passed_on(), behind(Passing())),
    Case(twice_asked(), options={"same_work": True}),
    Case(early_team()),
    Case(hooked(directly, ASKS[0])),
    Case(asking_beside(), behind(SendingBack(8)), lost=("turn.hand_over", 1)),
    Case(silent),
]
