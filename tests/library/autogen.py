"""Eight shapes of AutoGen: six chats of a team, and two runtimes with agents of one's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import autogen_core as core
from autogen_agentchat import conditions
from autogen_agentchat.messages import HandoffMessage
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat, Swarm

from tests.adapters.autogen_runtimes import Net, OneByOne
from tests.adapters.autogen_teams import Act, Agent, To, agents, says
from tests.adapters.harness import Script

from .shapes import Shape, Watch, at_once, each, think

Say = Callable[[list[str], int], Any]
"""What a participant says to what it hears, in its turn number so and so of all; or `To` whom."""


def participants(**says: Say) -> list[Agent]:
    """Participants of a chat, with fake models."""

    def thinks(name: str, say: Say) -> Act:
        async def act(heard: list[str], turn: int) -> Any:
            await think(f"{name} {heard} {turn}")
            return say(heard, turn)

        return act

    return agents(Script(), **{name: thinks(name, say) for name, say in says.items()})


async def ask(team: Any, *tasks: Any) -> list[str]:
    """Give a team its tasks, one after the other; the last word to each."""
    return [str((await team.run(task=task)).messages[-1].content) for task in tasks]


def pro(heard: list[str], turn: int) -> str:
    return f"Reason {turn} for tea."


def con(heard: list[str], turn: int) -> str:
    return f"Reason {turn} against it."


async def debate(watch: Watch, broken: bool) -> Any:
    def judge(heard: list[str], turn: int) -> str:
        if turn % 3:
            return f"Go on, this was round {turn}."
        # The mistake: the chat ends at another spelling.
        return "Decided: tea." if broken else "DECIDED: tea."

    chat = RoundRobinGroupChat(
        participants(pro=pro, con=con, judge=judge),
        termination_condition=conditions.TextMentionTermination("DECIDED")
        | conditions.MaxMessageTermination(150),
    )
    return await ask(watch(chat), "Tea or coffee?", "Really?")


async def hand_over_to_a_person(watch: Watch, broken: bool) -> Any:
    def desk(other: str) -> Say:
        def say(heard: list[str], turn: int) -> str | To:
            if broken:
                return To(other)  # the mistake: each desk believes that the other is responsible
            number = next((one for one in heard if one.startswith("number")), "")
            return f"Paid back, {number}. DONE" if number else To("user", said="Which number?")

        return say

    chat = Swarm(
        participants(
            triage=lambda heard, turn: To("refunds"),
            refunds=desk("billing"),
            billing=desk("refunds"),
        ),
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
        participants(
            planner=says("First a test, then the code."),
            coder=says("Here is the code."),
            tester=says("All tests pass. DONE"),
        ),
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
        participants(pro=pro, con=con, judge=judge),
        termination_condition=conditions.TextMentionTermination("DECIDED"),
    )
    return await ask(watch(chat), "Tea or coffee?")


async def brainstorm(watch: Watch, broken: bool) -> Any:
    """Seven messages, which is all the time that there is: the team's only end."""

    def idea(name: str) -> Say:
        # The mistake: one of the models has an account that is empty, and says nothing.
        return lambda heard, turn: "" if broken and name == "cyd" else f"Idea {turn} of {name}."

    chat = RoundRobinGroupChat(
        participants(**{name: idea(name) for name in ("ann", "bob", "cyd")}),
        termination_condition=conditions.MaxMessageTermination(7),
    )
    return await ask(watch(chat), "A name for a boat?", "A name for a cat?")


# --- runtimes ---------------------------------------------------------------------------------


@dataclass
class Note:
    text: str


async def colleagues(watch: Watch, broken: bool) -> Any:
    """A router asks the expert that a question begins with; one question after the other."""

    async def router(node: Any, message: Any) -> str:
        await think(message.text, 0.2)
        expert, _, question = message.text.partition(" ")
        return str(await node.ask(expert, question))

    def expert(name: str, colleague: str) -> Any:
        async def answer(node: Any, message: Any) -> str:
            await think(f"{name} {message.text}", 0.2)
            asked = f"{message.text} as {name} sees it"
            return f"{name} with {await node.ask(colleague, asked)}" if colleague else name

        return answer

    back = "law" if broken else ""  # the mistake: who is asked asks back, and both are busy
    acts = {"router": router, "law": expert("law", "tax"), "tax": expert("tax", back)}
    net = Net(Script(), acts, OneByOne)
    watch(net.runtime)

    async def ask_router(question: str) -> str:
        return str(await net.ask("router", question))

    await net.start()
    answers = [
        *await each(ask_router, "tax may I?", "law may I?"),
        *await at_once(ask_router, "law may we?", "tax must we?"),
    ]
    await net.runtime.stop()
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
