"""Eight shapes of AutoGen: six chats of a team, and two runtimes with agents of one's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import autogen_core as core
from autogen_agentchat import conditions
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import HandoffMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat, Swarm

from .shapes import Shape, Watch, at_once, each, think

To = tuple[str, str]
"""A handoff: to whom, and with which words."""

Say = Callable[[list[str], int], str | To]
"""What a participant says to what it hears, in its turn number so and so of all."""


class Participant(BaseChatAgent):  # type: ignore[misc]
    """A participant of a chat, with a fake model."""

    produced_message_types = (TextMessage, HandoffMessage)

    def __init__(self, name: str, say: Say) -> None:
        super().__init__(name, f"This is {name}.")
        self._say = say
        self._turns = 0

    async def on_messages(self, messages: Sequence[Any], token: core.CancellationToken) -> Response:
        heard = [str(message.content) for message in messages]
        self._turns += 1
        await think(f"{self.name} {heard} {self._turns}")
        said = self._say(heard, self._turns)
        if isinstance(said, str):
            return Response(chat_message=TextMessage(content=said, source=self.name))
        to, words = said
        handoff = HandoffMessage(content=words, target=to, source=self.name)
        return Response(chat_message=handoff)

    async def on_reset(self, token: core.CancellationToken) -> None:
        self._turns = 0


async def ask(team: Any, *tasks: Any) -> list[str]:
    """Give a team its tasks, one after the other; the last word to each."""
    return [str((await team.run(task=task)).messages[-1].content) for task in tasks]


async def debate(watch: Watch, broken: bool) -> Any:
    def judge(heard: list[str], turn: int) -> str:
        if turn % 3:
            return f"Go on, this was round {turn}."
        # The mistake: the chat ends at another spelling.
        return "Decided: tea." if broken else "DECIDED: tea."

    chat = RoundRobinGroupChat(
        [
            Participant("pro", lambda heard, turn: f"Reason {turn} for tea."),
            Participant("con", lambda heard, turn: f"Reason {turn} against it."),
            Participant("judge", judge),
        ],
        termination_condition=conditions.TextMentionTermination("DECIDED")
        | conditions.MaxMessageTermination(150),
    )
    return await ask(watch(chat), "Tea or coffee?", "Really?")


async def hand_over_to_a_person(watch: Watch, broken: bool) -> Any:
    def desk(other: str) -> Say:
        def say(heard: list[str], turn: int) -> str | To:
            if broken:
                return other, ""  # the mistake: each desk believes that the other is responsible
            number = next((one for one in heard if one.startswith("number")), "")
            return f"Paid back, {number}. DONE" if number else ("user", "Which number?")

        return say

    chat = Swarm(
        [
            Participant("triage", lambda heard, turn: ("refunds", "")),
            Participant("refunds", desk("billing")),
            Participant("billing", desk("refunds")),
        ],
        termination_condition=conditions.HandoffTermination("user")
        | conditions.TextMentionTermination("DONE")
        | conditions.MaxMessageTermination(40),
    )
    team = watch(chat)
    said = await ask(team, "I was charged twice.")
    if broken:
        return said
    await asyncio.sleep(600)  # a person looks for the bill
    number = HandoffMessage(content="number 7", source="user", target="refunds")
    return said + await ask(team, number)


async def shared_thread(watch: Watch, broken: bool) -> Any:
    """A blackboard: all read one thread, and a model chooses who writes next."""

    def choose(thread: Sequence[Any]) -> str:
        done = {message.source for message in thread}
        if broken and "coder" in done:
            return "coder"  # the mistake: the tester is never chosen
        return next(name for name in ("planner", "coder", "tester") if name not in done)

    chat = SelectorGroupChat(
        [
            Participant("planner", lambda heard, turn: "First a test, then the code."),
            Participant("coder", lambda heard, turn: "Here is the code."),
            Participant("tester", lambda heard, turn: "All tests pass. DONE"),
        ],
        model_client=None,
        selector_func=choose,
        allow_repeated_speaker=True,
        termination_condition=conditions.TextMentionTermination("DONE")
        | conditions.MaxMessageTermination(40),
    )
    return await ask(watch(chat), "Sort this list.")


async def long_debate(watch: Watch, broken: bool) -> Any:
    """Twelve rounds, which is what a judge was told to hear."""

    def judge(heard: list[str], turn: int) -> str:
        if broken and turn == 5:  # the mistake: nothing is done about an answer that is too long
            raise OverflowError("the context is longer than the model's window")
        return "DECIDED: tea." if turn % 12 == 0 else f"Round {turn} was heard."

    chat = RoundRobinGroupChat(
        [
            Participant("pro", lambda heard, turn: f"Reason {turn} for tea."),
            Participant("con", lambda heard, turn: f"Reason {turn} against it."),
            Participant("judge", judge),
        ],
        termination_condition=conditions.TextMentionTermination("DECIDED"),
    )
    return await ask(watch(chat), "Tea or coffee?")


async def brainstorm(watch: Watch, broken: bool) -> Any:
    """Seven messages, which is all the time that there is: the team's only end."""

    def says(name: str) -> Say:
        # The mistake: one of the models has an account that is empty, and says nothing.
        return lambda heard, turn: "" if broken and name == "cyd" else f"Idea {turn} of {name}."

    chat = RoundRobinGroupChat(
        [Participant(name, says(name)) for name in ("ann", "bob", "cyd")],
        termination_condition=conditions.MaxMessageTermination(7),
    )
    return await ask(watch(chat), "A name for a boat?", "A name for a cat?")


# --- runtimes ---------------------------------------------------------------------------------


@dataclass
class Ask:
    text: str


@dataclass
class Note:
    text: str


class Expert(core.RoutedAgent):  # type: ignore[misc]
    """Answers what it is asked, one question after the other; it may ask a colleague first."""

    def __init__(self, name: str, colleague: str = "") -> None:
        super().__init__(name)
        self._name = name
        self._colleague = colleague
        self._free = asyncio.Lock()

    @core.message_handler  # type: ignore[untyped-decorator]
    async def on_ask(self, message: Ask, ctx: core.MessageContext) -> Note:
        async with self._free:
            await think(f"{self._name} {message.text}", 0.2)
            if self._colleague:
                asked = Ask(f"{message.text} as {self._name} sees it")
                answer = await self.send_message(asked, core.AgentId(self._colleague, "default"))
                return Note(f"{self._name} with {answer.text}")
            return Note(self._name)


class Router(core.RoutedAgent):  # type: ignore[misc]
    """Asks the expert for what the question begins with."""

    @core.message_handler  # type: ignore[untyped-decorator]
    async def on_ask(self, message: Ask, ctx: core.MessageContext) -> Note:
        await think(message.text, 0.2)
        expert, _, question = message.text.partition(" ")
        answer: Note = await self.send_message(Ask(question), core.AgentId(expert, "default"))
        return answer


async def colleagues(watch: Watch, broken: bool) -> Any:
    runtime = watch(core.SingleThreadedAgentRuntime())
    back = "law" if broken else ""  # the mistake: who is asked asks back, and both are busy
    await Router.register(runtime, "router", lambda: Router("router"))
    await Expert.register(runtime, "law", lambda: Expert("law", "tax"))
    await Expert.register(runtime, "tax", lambda: Expert("tax", back))
    runtime.start()

    async def ask_router(question: str) -> str:
        answer = await runtime.send_message(Ask(question), core.AgentId("router", "default"))
        return str(answer.text)

    answers = [
        *await each(ask_router, "tax may I?", "law may I?"),
        *await at_once(ask_router, "law may we?", "tax must we?"),
    ]
    await runtime.stop()
    return answers


class Subscriber(core.RoutedAgent):  # type: ignore[misc]
    """Publishes what it makes of each note that is published, to a topic of the same source."""

    def __init__(self, name: str, topic: str, least_s: float = 1.0, source: str = "") -> None:
        super().__init__(name)
        self._name = name
        self._topic = topic
        self._least_s = least_s
        self._source = source

    @core.event  # type: ignore[untyped-decorator]
    async def on_note(self, message: Note, ctx: core.MessageContext) -> None:
        await think(f"{self._name} {message.text}", self._least_s)
        assert ctx.topic_id is not None
        said = Note(f"{self._name}: {message.text}")
        source = self._source or ctx.topic_id.source
        await self.publish_message(said, core.TopicId(self._topic, source))


class Merger(core.RoutedAgent):  # type: ignore[misc]
    """Publishes the parts of an answer when it has both."""

    def __init__(self) -> None:
        super().__init__("merger")
        self._parts: list[str] = []

    @core.event  # type: ignore[untyped-decorator]
    async def on_note(self, message: Note, ctx: core.MessageContext) -> None:
        self._parts.append(message.text)
        if len(self._parts) == 2:
            text = " + ".join(sorted(self._parts))
            self._parts.clear()
            await self.publish_message(Note(text), core.TopicId("results", "default"))


async def collector(runtime: Any) -> list[str]:
    """What the world outside of a runtime hears."""
    heard: list[str] = []

    async def collect(agent: Any, message: Note, ctx: core.MessageContext) -> None:
        heard.append(message.text)

    await core.ClosureAgent.register_closure(
        runtime, "collector", collect,
        subscriptions=lambda: [core.TypeSubscription("results", "collector")],
    )  # fmt: skip
    return heard


async def publish(runtime: Any, notes: dict[str, str]) -> None:
    """Publish news, each with the source of its topic; and wait."""
    runtime.start()
    for source, text in notes.items():
        await runtime.publish_message(Note(text), core.TopicId("news", source))
    await runtime.stop_when_idle()


async def pub_sub(watch: Watch, broken: bool) -> Any:
    runtime = watch(core.SingleThreadedAgentRuntime(), outside={"collector"})
    heard = await collector(runtime)
    topic = "drfats" if broken else "drafts"  # the mistake: nothing subscribes to that
    await Subscriber.register(runtime, "writer", lambda: Subscriber("writer", topic))
    await Subscriber.register(runtime, "editor", lambda: Subscriber("editor", "results"))
    await runtime.add_subscription(core.TypeSubscription("news", "writer"))
    await runtime.add_subscription(core.TypeSubscription("drafts", "editor"))
    await publish(runtime, {"default": "It rains."})
    await publish(runtime, {"default": "It snows."})
    return heard


async def batching_desk(watch: Watch, broken: bool) -> Any:
    """Two customers at once; the parts of each one's answer are merged."""
    runtime = watch(core.SingleThreadedAgentRuntime(), outside={"collector"})
    heard = await collector(runtime)
    await Merger.register(runtime, "merger", Merger)
    source = "default" if broken else ""  # the mistake: one merger for all customers
    await Subscriber.register(runtime, "law", lambda: Subscriber("law", "parts", 1, source))
    await Subscriber.register(runtime, "tax", lambda: Subscriber("tax", "parts", 9, source))
    for name in ("law", "tax"):
        await runtime.add_subscription(core.TypeSubscription("news", name))
    await runtime.add_subscription(core.TypeSubscription("parts", "merger"))
    await publish(runtime, {"ann": "May I?", "bob": "May we?"})
    return sorted(heard)


SHAPES = [
    Shape(
        "debate", "Two debaters and a judge take three rounds, then the judge decides.", debate,
        ["DECIDED: tea."] * 2,
        "The judge's decision is spelt in another way than the chat's end.",
        ("FAIL request", "LIVELOCK"),
        ("FAIL request: limit of nobody", "LIVELOCK: con, judge, pro"),
    ),
    Shape(
        "hand-over to a person", "A desk asks the customer, who answers after ten minutes.",
        hand_over_to_a_person, ["Which number?", "Paid back, number 7. DONE"],
        "Two desks hand a customer to each other without a word.", ("ER", "FAIL request"),
        ("FAIL request: limit of nobody",),
    ),
    Shape(
        "shared thread", "Three read one thread, and a model chooses who writes next.",
        shared_thread, ["All tests pass. DONE"],
        "The same one is chosen for ever, and says the same.",
        ("FAIL request", "LOOP"),
        ("FAIL request: limit of nobody", "LIVELOCK: coder, planner", "LOOP: coder"),
    ),
    Shape(
        "colleagues", "A router asks experts, of whom one asks another; each has one customer.",
        colleagues, ["tax", "law with tax", "law with tax", "tax"],
        "The expert that is asked asks back, and both are busy.", ("DL",),
    ),
    Shape(
        "publish and subscribe", "A writer and an editor listen to topics, and publish.", pub_sub,
        ["editor: writer: It rains.", "editor: writer: It snows."],
        "The name of a topic is misspelt, and nothing subscribes to it.", ("MC", "OE"),
    ),
    Shape(
        "merging desk", "Two experts work for two customers; the parts are merged for each.",
        batching_desk, ["law: May I? + tax: May I?", "law: May we? + tax: May we?"],
        "The parts of both customers go to one merger, which mixes them.", (),
    ),
    Shape(
        "long debate", "Two debaters and a judge take twelve rounds, then the judge decides.",
        long_debate, ["DECIDED: tea."],
        "The judge's model fails in the fifth round.", ("FAIL request",),
        ("FAIL turn: judge", "FAIL request: error of judge"),
    ),
    Shape(
        "brainstorm", "Three say what comes to mind, seven messages long.", brainstorm,
        ["Idea 2 of cyd.", "Idea 4 of cyd."],
        "The last of them says nothing.", ("VOID",), ("VOID: blank of cyd",),
    ),
]  # fmt: skip
