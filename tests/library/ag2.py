"""Six shapes of AG2 1.x: workflows, discussions and conversations of the agents of a hub."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.adapters.ag2_teams import Act, Team, call, discussion, is_said
from tests.adapters.harness import Script

from .shapes import Shape, Watch, at_once, each, think


def thinks(say: Callable[[list[str], int], Any], least_s: float = 1.0) -> Act:
    """An agent whose model takes its time."""

    async def act(texts: list[str], turn: int) -> Any:
        await think(f"{texts} {turn}", least_s)
        return say(texts, turn)

    return act


def says(text: str, least_s: float = 1.0) -> Act:
    """An agent that says one thing."""
    return thinks(lambda texts, turn: text, least_s)


async def relay(watch: Watch, broken: bool) -> Any:
    def edit(texts: list[str], turn: int) -> Any:
        # The mistake: the model's service refuses, and the exception is only logged.
        return ConnectionError("no service") if broken else "The edited text"

    async with Team(Script(), {"writer": says("A draft"), "editor": thinks(edit)}) as team:
        watch(team.hub)
        ways = (("user", "writer"), ("writer", "editor"))
        return await each(lambda text: team.workflow(*ways, says=text), "On rain", "On snow")


async def desks(watch: Watch, broken: bool) -> Any:
    def refunds(texts: list[str], turn: int) -> Any:
        if not broken:
            return call("finish", summary="Paid back")
        # The mistake: each desk believes that the other is responsible.
        return call("finish", summary="I give up") if turn > 8 else call("hand_to", agent="triage")

    to_refunds = thinks(lambda texts, turn: call("hand_to", agent="refunds"))
    async with Team(Script(), {"triage": to_refunds, "refunds": thinks(refunds)}) as team:
        watch(team.hub)
        return (await team.workflow(("user", "triage")))[-2][-1]


async def circle(watch: Watch, broken: bool) -> Any:
    """An agent that is silent in a discussion keeps all agents after it waiting."""
    second = says("" if broken else "Bob agrees")  # the mistake: nothing to add is no word at all
    async with Team(Script(), {"ann": says("Ann has an idea"), "bob": second}) as team:
        watch(team.hub)
        return [said for _, _, said in await discussion(team)]


async def consultation(watch: Watch, broken: bool) -> Any:
    """An agent delegates a question; while it works on a message, AG2 keeps the answer."""

    def ann(texts: list[str], turn: int) -> Any:
        return call("delegate", target="bob", prompt="May they?", timeout=600)

    async with Team(Script(), {"ann": thinks(ann), "bob": says("Yes, they may")}) as team:
        watch(team.hub)
        if broken:  # the mistake: what works when she is asked is put into a workflow
            return await team.workflow(("user", "ann"), wait=900)
        reply = await team.clients["ann"].agent.ask("Ask Bob.")
        return reply.body


async def subcontractor(watch: Watch, broken: bool) -> Any:
    """A planner gives a part of the work to another agent, in a channel of its own."""

    async def give_out(part: str) -> str:
        """Have Bob do something."""
        if not broken:
            return str((await team.clients["bob"].agent.ask(part)).body)
        # The mistake: it sends him a message, and does not wait for his answer.
        channel = await team.clients["planner"].open(type="conversation", target="bob")
        await channel.send(part)
        return "All of it"

    planner = thinks(lambda texts, turn: call("give_out", part="the second half"))
    bob = says("All of it", 12.0)
    async with Team(Script(), {"planner": planner, "bob": bob}) as team:
        team.clients["planner"].agent.add_tool(give_out)
        watch(team.hub)
        return (await team.workflow(("user", "planner"), wait=120))[0][-1]


async def help_desk(watch: Watch, broken: bool) -> Any:
    """Three customers talk to two agents, two of them to the same one."""

    async def bills(texts: list[str], turn: int) -> str:
        if broken and "Why" in str(texts):
            await asyncio.Event().wait()  # the mistake: a connection hangs, without a timeout
        await think(str(texts))
        return "Paid back"

    async def talk(asked: str) -> Any:
        name, _, text = asked.partition(" ")
        channel = await team.user.open(type="conversation", target=name)
        await team.user.send(channel.channel_id, text)
        answer = await team.user.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=is_said, timeout=900
        )
        return answer.event_data["text"]

    async with Team(Script(), {"bills": bills, "repairs": says("Mended")}) as team:
        watch(team.hub)
        return await at_once(talk, "bills Why two?", "bills And I?", "repairs A lamp")


SHAPES = [
    Shape(
        "relay", "A workflow: a writer, then an editor.", relay,
        [[("writer", "text", "A draft"), ("editor", "text", "The edited text"), "done"]] * 2,
        "The editor's model fails, which AG2 logs; the workflow waits.", ("MC",),
        ("FAIL turn: editor",),
    ),
    Shape(
        "desks of a hub", "Triage hands a customer over to refunds.", desks, "Paid back",
        "Two desks hand a customer to each other without a word.", ("ER",),
    ),
    Shape(
        "discussion", "A person and two agents speak in turn, for two rounds.", circle,
        ["Ann has an idea", "Bob agrees"] * 2,
        "An agent that has nothing to add says nothing, and the others wait.", ("MC",),
    ),
    Shape(
        "consultation", "An agent is asked, delegates the question, and gives the answer.",
        consultation, "Yes, they may",
        "It delegates while it works on a message of a workflow, and both wait.", ("DL", "ET"),
    ),
    Shape(
        "subcontractor", "A planner has another agent do a part, and waits for it.",
        subcontractor, "All of it", "The planner does not wait.", ("ET",),
    ),
    Shape(
        "help desk", "Three customers talk to two agents at once.", help_desk,
        ["Paid back", "Paid back", "Mended"],
        "A model's connection hangs, and the call has no timeout.", ("DL", "MC"),
    ),
]  # fmt: skip
