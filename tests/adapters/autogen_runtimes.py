"""Core runtimes with scripted agents, and what is asked of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import autogen_core as core
from autogen_agentchat.teams._group_chat._sequential_routed_agent import SequentialRoutedAgent

from .harness import Scenario, Script


@dataclass
class Ask:
    text: str


@dataclass
class Tell:
    text: str


@dataclass
class Odd:
    """What nobody has a handler for."""

    text: str


Act = Callable[["Node", Any], Awaitable[Any]]
"""What an agent does with a message, and answers."""


class Node(core.RoutedAgent):  # type: ignore[misc]
    """An agent that does what it is told."""

    def __init__(self, script: Script, name: str, act: Act) -> None:
        super().__init__(name)
        self.script = script
        self.name = name
        self.act = act

    @core.message_handler  # type: ignore[untyped-decorator]
    async def on_ask(self, message: Ask, ctx: core.MessageContext) -> Tell | None:
        return await works(self, message)

    @core.event  # type: ignore[untyped-decorator]
    async def on_tell(self, message: Tell, ctx: core.MessageContext) -> None:
        await works(self, message)

    async def ask(self, agent: str, text: str, **more: Any) -> str:
        """Ask another agent, and wait for the answer."""
        answer = await self.send_message(Ask(text), core.AgentId(agent, "default"), **more)
        return answer.text if answer else ""

    async def tell(self, topic: str, text: str) -> None:
        """Tell everybody who listens."""
        await self.publish_message(Tell(text), core.TopicId(topic, "default"))


class OneByOne(SequentialRoutedAgent):  # type: ignore[misc]
    """The same, one message after the other."""

    def __init__(self, script: Script, name: str, act: Act) -> None:
        super().__init__(name, [Ask, Tell])
        self.script = script
        self.name = name
        self.act = act

    on_ask = Node.on_ask
    on_tell = Node.on_tell
    ask = Node.ask
    tell = Node.tell


async def works(node: Any, message: Any) -> Tell | None:
    async with node.script.turn(node.name, (type(message).__name__, message.text)):
        answer = await node.act(node, message)
        return None if answer is None else Tell(answer)


class Drops(core.DefaultInterventionHandler):  # type: ignore[misc]
    """Lets nothing through that says so."""

    async def on_send(self, message: Any, **more: Any) -> Any:
        return core.DropMessage if getattr(message, "text", "") == "secret" else message


class Net:
    """A runtime, whose agents are registered when it is driven.

    Attributes:
        runtime: The runtime; wrap it.
        heard: What has reached the collector.
    """

    def __init__(self, script: Script, acts: dict[str, Act], kind: Any = Node) -> None:
        self.script = script
        self.acts = acts
        self.kind = kind
        drops = [Drops()] if "drops" in acts else None
        self.runtime = core.SingleThreadedAgentRuntime(intervention_handlers=drops)
        self.heard: list[str] = []

    async def __aenter__(self) -> Net:
        await self.start()
        return self

    async def start(self) -> None:
        """Register the agents, and what the world outside hears by."""
        for name, act in self.acts.items():
            await self.kind.register(self.runtime, name, self._making(name, act))
            await self.runtime.add_subscription(core.TypeSubscription(name, name))
            await self.runtime.add_subscription(core.TypeSubscription("all", name))

        async def collect(agent: Any, message: Tell, ctx: core.MessageContext) -> None:
            self.heard.append(message.text)

        await core.ClosureAgent.register_closure(
            self.runtime, "collector", collect,
            subscriptions=lambda: [core.TypeSubscription("results", "collector")],
        )  # fmt: skip
        self.runtime.start()

    async def __aexit__(self, *error: object) -> None:
        if self.runtime._run_context is not None:
            await self.runtime.stop_when_idle()

    def _making(self, name: str, act: Act) -> Callable[[], Any]:
        return lambda: self.kind(self.script, name, act)

    async def ask(self, agent: str, text: str = "What now?", **more: Any) -> Any:
        answer = await self.runtime.send_message(Ask(text), core.AgentId(agent, "default"), **more)
        return answer.text if answer else None

    async def tell(self, topic: str, text: str = "Go") -> list[str]:
        await self.runtime.publish_message(Tell(text), core.TopicId(topic, "default"))
        await self.runtime.stop_when_idle()
        return self.heard


Nets = dict[int, Net]


def scenario(
    name: str, acts: dict[str, Act], ask: Callable[[Net], Awaitable[Any]], kind: Any = Node
) -> Scenario:
    """A runtime, its agents and what is asked."""
    nets: Nets = {}

    def build(script: Script) -> Any:
        net = Net(script, acts, kind)
        nets[id(net.runtime)] = net
        return net.runtime

    async def drive(runtime: Any) -> Any:
        async with asyncio.timeout(100), nets[id(runtime)] as net:
            return await ask(net)

    return Scenario(name, build, drive)


def says(text: str) -> Act:
    async def act(node: Any, message: Any) -> str:
        return text

    return act


async def raises(node: Any, message: Any) -> Any:
    raise ValueError("no model today")


async def asks_both(node: Any, message: Any) -> str:
    return " ".join(await asyncio.gather(node.ask("bob", "Left?"), node.ask("cyd", "Right?")))


async def asks_bob(node: Any, message: Any) -> Any:
    return f"Bob says: {await node.ask('bob', 'Well?')}"


async def catches(node: Any, message: Any) -> Any:
    try:
        return await node.ask("bob", "Well?")
    except ValueError as error:
        return f"No: {error}"


async def gives_up(node: Any, message: Any) -> Any:
    try:
        async with asyncio.timeout(0.05):
            return await node.ask("bob", "Well?")
    except TimeoutError:
        return "too late"


async def hands_on(node: Any, message: Any) -> None:
    await node.tell("bob", f"{message.text}, Ann")


async def concludes(node: Any, message: Any) -> None:
    await node.tell("results", f"{message.text}, Bob")


async def at_once(net: Net) -> Any:
    return await asyncio.gather(net.ask("ann", "One?"), net.ask("ann", "Two?"), net.ask("bob"))


async def cancelled(net: Net) -> Any:
    token = core.CancellationToken()
    asyncio.get_running_loop().call_later(0.15, token.cancel)
    try:
        return await net.ask("ann", cancellation_token=token)
    except asyncio.CancelledError:
        return "cancelled"


async def odd(net: Net) -> Any:
    answer = await net.runtime.send_message(Odd("?"), core.AgentId("ann", "default"))
    await net.runtime.publish_message(Odd("!"), core.TopicId("all", "default"))
    return answer


async def dropped(net: Net) -> Any:
    try:
        return await net.ask("ann", "secret")
    except Exception as error:
        return type(error).__name__, await net.ask("ann")


async def to_nobody(net: Net) -> Any:
    try:
        return await net.ask("nobody")
    except Exception as error:
        return str(error), await net.ask("ann")


async def stopped(net: Net) -> Any:
    """The runtime is stopped while an agent works, and messages lie in its queue."""
    for _ in range(3):
        await net.runtime.publish_message(Tell("Go"), core.TopicId("ann", "default"))
    await net.runtime.stop()
    await asyncio.sleep(5)
    return net.heard


async def keyed(net: Net) -> Any:
    """An agent of the same type with another key is another agent."""
    first = await net.runtime.send_message(Ask("?"), core.AgentId("bob", "left"))
    await net.runtime.publish_message(Tell("Go"), core.DefaultTopicId("bob", "right"))
    return first.text


WORK: dict[str, Act] = {"ann": asks_both, "bob": says("Yes"), "cyd": says("No")}
CHAIN: dict[str, Act] = {"ann": hands_on, "bob": concludes}

RUNTIMES = [
    scenario("asking", WORK, lambda net: net.ask("ann")),
    scenario("asking_in_turn", WORK, lambda net: net.ask("ann"), OneByOne),
    scenario("at_once", WORK, at_once),
    scenario("at_once_in_turn", WORK, at_once, OneByOne),
    scenario("telling", CHAIN, lambda net: net.tell("ann")),
    scenario("telling_all", CHAIN, lambda net: net.tell("all")),
    scenario("failing", {"ann": asks_bob, "bob": raises}, lambda net: net.ask("ann")),
    scenario("caught", {"ann": catches, "bob": raises}, lambda net: net.ask("ann")),
    scenario("failing_alone", {"ann": raises}, lambda net: net.tell("ann")),
    scenario("giving_up", {"ann": gives_up, "bob": says("Yes")}, lambda net: net.ask("ann")),
    scenario("cancelled", WORK, cancelled),
    scenario("odd", WORK, odd),
    scenario("dropped", {**WORK, "drops": says("no")}, dropped),
    scenario("to_nobody", WORK, to_nobody),
    scenario("stopped", CHAIN, stopped),
    scenario("keyed", WORK, keyed),
]
