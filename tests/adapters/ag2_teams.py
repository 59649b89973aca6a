"""Agents of an AG2 hub with scripted models, and what is asked of them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import fast_depends.utils
from ag2 import Agent, network
from ag2.config import LLMClient, ModelConfig
from ag2.events import ModelMessage, ModelRequest, ModelResponse, ToolCallEvent, ToolCallsEvent
from ag2.knowledge import MemoryKnowledgeStore

from dig.adapters import ag2

from .framework_watch import Watched as Framework
from .harness import Scenario, Script


class Watched(Framework):
    """Wraps hubs."""

    adapter = ag2


logging.getLogger("ag2").setLevel(logging.CRITICAL)  # it logs what handlers raise


async def _here(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return call(*args, **kwargs)


fast_depends.utils.run_in_threadpool = _here  # a thread has no virtual time

Act = Callable[[list[str], int], Any]
"""What an agent's model does: `(texts of the request, number of its turn) -> text or tool call`."""


def call(name: str, **arguments: Any) -> ToolCallEvent:
    return ToolCallEvent(name=name, arguments=json.dumps(arguments))


class Model(ModelConfig, LLMClient):  # type: ignore[misc]
    """A model that does what it is told; after a tool has run it says nothing more."""

    provider = None
    model = "scripted"

    def __init__(self, script: Script, name: str, act: Act) -> None:
        self.script = script
        self.name = name
        self.act = act

    def copy(self) -> Model:
        return self

    def create(self) -> Model:
        return self

    def create_files_client(self) -> Any:
        raise NotImplementedError

    async def __call__(self, messages: Any, context: Any, **more: Any) -> ModelResponse:
        if not isinstance(messages[-1], ModelRequest):  # the result of a tool
            return await said(context, result_of(messages[-1]))
        texts = [getattr(part, "content", "") for part in messages[-1].parts]
        does = await self.script.act(self.name, self.act, texts)
        if isinstance(does, str):
            return await said(context, does)
        return ModelResponse(tool_calls=ToolCallsEvent(does if isinstance(does, list) else [does]))


async def said(context: Any, text: str) -> ModelResponse:
    message = ModelMessage(text)
    await context.send(message)
    return ModelResponse(message)


def result_of(event: Any) -> str:
    """What a model says to the results of its tools: what it was answered, if it asked somebody."""
    found = []
    for result in getattr(event, "results", [event]):
        for part in getattr(getattr(result, "result", None), "parts", []):
            text = getattr(part, "content", "")
            if isinstance(text, str) and not text.startswith("posted"):
                found.append(text)
    return " ".join(found)


async def hand_to(agent: str) -> network.Handoff:
    """Hand over to somebody."""
    return network.Handoff(target=agent)


async def finish(summary: str) -> network.Finish:
    """End the work."""
    return network.Finish(summary=summary)


class Team:
    """A hub whose agents come when it is driven.

    Attributes:
        hub: The hub; wrap it.
        acts: What the models do, by name.
    """

    def __init__(self, script: Script, acts: dict[str, Act]) -> None:
        self.script = script
        self.acts = acts
        self.hub = network.Hub(
            MemoryKnowledgeStore(), ttl_sweep_interval=0, expectation_sweep_interval=0
        )
        kinds = (
            network.ConsultingAdapter,
            network.ConversationAdapter,
            network.DiscussionAdapter,
            network.WorkflowAdapter,
        )
        for adapter in kinds:
            self.hub.register_adapter(adapter())
        self.clients: dict[str, Any] = {}
        self.user: Any = None
        self.link: Any = None

    async def __aenter__(self) -> Team:
        for name, act in self.acts.items():
            agent = Agent(name, config=Model(self.script, name, act), tools=[hand_to, finish])
            self.clients[name] = await self.hub.register(agent)
        self.link = network.HubClient(network.LocalLink(self.hub))
        self.user = await self.link.register_human(network.Passport(name="user"))
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.link.close()
        await self.hub.close()

    def graph(
        self, *turns: tuple[str, str], first: Sequence[Any] = (), **options: Any
    ) -> dict[str, Any]:
        """A workflow in which a user begins, and who speaks after whom is given.

        Args:
            turns: Who speaks, and who does then.
            first: Transitions that go before these.
            options: Those of the graph.
        """
        ids = {"user": self.user.agent_id} | {n: c.agent_id for n, c in self.clients.items()}
        steps = [
            network.Transition(when=network.FromSpeaker(ids[a]), then=network.AgentTarget(ids[b]))
            for a, b in turns
        ]
        graph = network.TransitionGraph(
            initial_speaker=ids["user"], transitions=[*first, *steps],
            **{"default_target": network.TerminateTarget("done"), **options},
        )  # fmt: skip
        built: dict[str, Any] = graph.to_dict()
        return built

    async def begin(
        self, *turns: tuple[str, str], says: str = "Go", agents: Iterable[str] = (), **options: Any
    ) -> str:
        """Ask a workflow something, and give the id of its channel."""
        knobs = {"graph": self.graph(*turns, **options)}
        target = [*(agents or self.clients)]
        channel = await self.user.open(type="workflow", target=target, knobs=knobs)
        await self.user.send(channel.channel_id, says)
        return str(channel.channel_id)

    async def workflow(
        self, *turns: tuple[str, str], says: str = "Go", wait: float = 60, **options: Any
    ) -> Any:
        """Ask a workflow something, and tell all that is said until it is closed."""
        return await self.heard(await self.begin(*turns, says=says, **options), wait)

    async def answer(self, channel_id: str, wait: float = 60) -> Any:
        """What is said next in a channel."""
        return await self.user.wait_for_channel_event(
            channel_id=channel_id, predicate=is_said, timeout=wait
        )

    def gives_out(self, agent: str, says: str = "half of it") -> None:
        """An agent gets a tool that gives Bob a part, and does not wait for him."""

        async def give_out(part: str) -> str:
            """Have Bob do something."""
            channel = await self.clients[agent].open(type="conversation", target="bob")
            await channel.send(part)
            return says

        self.clients[agent].agent.add_tool(give_out)

    async def conversation(self, agent: str, *says: str, wait: float = 60) -> Any:
        """Talk to an agent."""
        channel = await self.user.open(type="conversation", target=agent)
        answers = []
        for text in says:
            await self.user.send(channel.channel_id, text)
            answers.append(await self.answer(channel.channel_id, wait))
        return [shown(self.hub, answer) for answer in answers]

    async def heard(self, channel_id: str, wait: float) -> list[Any]:
        """What a user hears in a channel until it is closed, or nobody speaks for a while."""
        told: list[Any] = []
        while True:
            try:
                envelope = await self.user.wait_for_channel_event(
                    channel_id=channel_id, predicate=lambda envelope: True, timeout=wait
                )
            except TimeoutError:
                return [*told, "silence"]
            if is_said(envelope):
                told.append(shown(self.hub, envelope))
            if envelope.event_type == network.EV_CHANNEL_CLOSED:
                return [*told, envelope.event_data.get("reason")]


def is_said(envelope: Any) -> bool:
    return envelope.event_type in (network.EV_TEXT, network.EV_PACKET)


def shown(hub: network.Hub, envelope: Any) -> tuple[Any, ...]:
    data = envelope.event_data
    routing = data.get("routing", {})
    said = data.get("text", data.get("body", "")) or routing.get("summary", "")
    return hub.name_for(envelope.sender_id), routing.get("kind", "text"), said


def is_told(texts: list[str]) -> bool:
    return any(text.startswith("[monitor]") for text in texts)


def says(text: str) -> Act:
    return lambda texts, number: text


def scenario(name: str, acts: dict[str, Act], ask: Callable[[Team], Any]) -> Scenario:
    """A hub, its agents and what is asked; a team is made when it is built, for its hub."""
    teams: dict[int, Team] = {}

    def build(script: Script) -> Any:
        team = Team(script, acts)
        teams[id(team.hub)] = team
        return team.hub

    async def drive(hub: Any) -> Any:
        async with teams[id(hub)] as team:
            return await ask(team)

    return Scenario(name, build, drive)


async def consult(team: Team) -> Any:
    """An agent is asked directly, and delegates."""
    reply = await team.clients["ann"].agent.ask("Ask Bob.")
    return reply.body


async def two_conversations(team: Team) -> Any:
    return await asyncio.gather(
        team.conversation("ann", "One", "Two"), team.conversation("bob", "Three")
    )


async def discussion(team: Team) -> Any:
    channel = await team.user.open(type="discussion", target=["ann", "bob"])
    heard = []
    for text in ("First", "Second"):
        await team.user.send(channel.channel_id, text)
        for _ in range(2):
            heard.append(await team.answer(channel.channel_id))
    await channel.close()
    return [shown(team.hub, envelope) for envelope in heard]


async def between_agents(team: Team) -> Any:
    """Ann's code speaks to Bob, and the two go on until one is silent."""
    channel = await team.clients["ann"].open(type="conversation", target="bob")
    await channel.send("Hello")
    await asyncio.sleep(30)
    wal = await team.hub.read_wal(channel.channel_id)
    return [shown(team.hub, envelope) for envelope in wal if is_said(envelope)]


async def consulting(team: Team) -> Any:
    channel = await team.user.open(type="consulting", target="ann")
    await team.user.send(channel.channel_id, "Well?")
    return await team.heard(channel.channel_id, 60)


def until(number: int, text: str = "Aha") -> Act:
    return lambda texts, turn: text if turn < number else ""


CHAIN = {"ann": says("A first part"), "bob": says("The whole")}
PAIR = (("user", "ann"), ("ann", "bob"))

SCENARIOS = [
    scenario("chain", CHAIN, lambda team: team.workflow(*PAIR)),
    scenario(
        "handoffs",
        {
            "ann": lambda texts, number: call("hand_to", agent="bob"),
            "bob": lambda texts, number: call("finish", summary="Done"),
        },
        lambda team: team.workflow(("user", "ann")),
    ),
    scenario("two_conversations", CHAIN, two_conversations),
    scenario("discussion", CHAIN, discussion),
    scenario("consulting", CHAIN, consulting),
    scenario("between_agents", {"ann": until(2), "bob": until(9)}, between_agents),
    scenario(
        "delegating",
        {"ann": lambda texts, n: call("delegate", target="bob", prompt="?"), "bob": says("Yes")},
        consult,
    ),
    scenario(
        "failing",
        {"ann": lambda texts, number: ValueError("no model"), "bob": says("x")},
        lambda team: team.workflow(*PAIR, wait=5),
    ),
]
