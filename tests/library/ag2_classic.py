"""Six shapes of AG2 classic: chats of two, group chats, hand-offs and nested chats."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen import ConversableAgent
from autogen.io import IOStream
from autogen.testing import ToolCall, tools_message

from tests.adapters.ag2_classic_asked import all_at_once, hand_over, in_group
from tests.adapters.ag2_classic_teams import Heard, agent, calls, ends, manager, says, team
from tests.adapters.harness import Script

from .shapes import Shape, Watch, each, think


async def asked(built: Any, watch: Watch, *questions: str, **more: Any) -> list[str]:
    """The answers to questions, each in a chat of its own."""
    watch(built.wrap)

    async def ask(question: str) -> str:
        result = await built.user.a_initiate_chat(built.first, message=question, **more)
        return str(result.chat_history[-1]["content"])

    with IOStream.set_default(Heard()):
        return await each(ask, *questions)


def before(made: Any, work: Any) -> Any:
    """An agent that does some work of its own before its model is asked: `work(sender)`."""

    async def works(self: Any, messages: Any = None, sender: Any = None, config: Any = None) -> Any:
        await work(sender)
        return False, None

    made.register_reply([ConversableAgent, None], works, position=2)
    return made


async def interview(watch: Watch, broken: bool) -> Any:
    def answer(contents: list[Any], number: int) -> str:
        # The mistake: the end is spelt in another way than the one who asks listens for.
        last = "Terminate" if broken else "TERMINATE"
        return f"Point {number}" if number % 4 else f"That was all. {last}"

    script = Script()
    host = agent(script, "host", lambda contents, n: f"And {n}?", is_termination_msg=ends)
    built = team(host, agent(script, "guest", answer))
    return await asked(built, watch, "What is new?", "What else?", max_turns=80)


async def round_table(watch: Watch, broken: bool) -> Any:
    def choose(last: Any, chat: Any) -> Any:
        spoken = {message.get("name") for message in chat.messages}
        if broken and "coder" in spoken:  # the mistake: the tester is never chosen
            return chat.agents[0 if last.name == "coder" else 1]
        return next(one for one in chat.agents if one.name not in spoken)

    script = Script()
    acts = {"planner": "A test first", "coder": "The code", "tester": "It passes TERMINATE"}
    members = [agent(script, name, says(text)) for name, text in acts.items()]
    built = team(agent(script, "user"), manager(members, choose, max_round=30))
    watch(built.wrap)
    with IOStream.set_default(Heard()):
        await built.user.a_initiate_chat(built.first, message="Sort this list.")
    return built.first.groupchat.messages[-1]["content"]


async def pattern(watch: Watch, broken: bool) -> Any:
    script = Script()
    # The mistake: each desk believes that the other is responsible.
    refunds = calls("transfer_to_triage_1") if broken else says("Paid back")
    triage = agent(script, "triage", calls("transfer_to_refunds_1"))
    built = hand_over(triage, agent(script, "refunds", refunds))
    watch(built.wrap)
    with IOStream.set_default(Heard()):
        return (await in_group(built))[0][1]


async def two_desks(watch: Watch, broken: bool) -> Any:
    script, names = Script(), ["transfer_to_law_1", "transfer_to_tax_2"]
    both = tools_message(*map(ToolCall, names))  # the mistake: AG2 drops the first one
    triage = agent(script, "triage", (lambda contents, n: both) if broken else calls(names[0]))
    law = agent(script, "law", calls("transfer_to_tax_2"))
    built = hand_over(triage, law, agent(script, "tax", says("Law and tax allow it")))
    watch(built.wrap)
    with IOStream.set_default(Heard()):
        return (await in_group(built))[0][1]


async def research(watch: Watch, broken: bool) -> Any:
    """An agent has another one look something up before it answers."""

    async def look_up(sender: Any) -> None:
        if sender is user:
            chat = ann.a_initiate_chat(library, message="Rain?", max_turns=1, silent=True)
            if broken:  # the mistake: it is begun in the background, and never awaited
                tasks.append(asyncio.create_task(chat))
                await asyncio.sleep(0)
            else:
                await chat

    async def slow(sender: Any) -> None:
        await think("a long book", 8.0)

    script, tasks = Script(), list[Any]()
    user = agent(script, "user", is_termination_msg=lambda message: True)
    library = before(agent(script, "library", says("It rains")), slow)
    ann = before(agent(script, "ann", says("Take a coat")), look_up)
    return await asked(team(user, ann), watch, "What now?", "And now?")


async def two_opinions(watch: Watch, broken: bool) -> Any:
    """Two are asked at once; one of them hears what the other one has found."""
    found = {"ann": asyncio.Event(), "bob": asyncio.Event()}

    async def ann(sender: Any) -> None:
        if broken:
            await found["bob"].wait()  # the mistake: both wait for the other one
        await think("ann")
        found["ann"].set()

    async def bob(sender: Any) -> None:
        await found["ann"].wait()
        await think("bob")
        found["bob"].set()

    script = Script()
    user = agent(script, "user", is_termination_msg=lambda message: True)
    first = before(agent(script, "ann", says("It is fine")), ann)
    built = team(user, first, before(agent(script, "bob", says("I agree")), bob))
    watch(built.wrap)
    with IOStream.set_default(Heard()):
        return [summary for _, summary, *_ in await all_at_once(built)]


SHAPES = [
    Shape(
        "interview", "Two agents talk, until one says that this was all.", interview,
        ["That was all. TERMINATE"] * 2,
        "The end is spelt in another way than the host listens for.", ("LIVELOCK",),
    ),
    Shape(
        "round table", "A planner, a coder and a tester are chosen by a function.", round_table,
        "It passes TERMINATE", "Two are chosen in turn for ever, and say the same.", ("LOOP",),
    ),
    Shape(
        "pattern of desks", "Triage hands a customer over to refunds.", pattern, "Paid back",
        "Two desks hand a customer to each other without a word.", ("ER",),
    ),
    Shape(
        "one desk after the other", "Triage hands over to law, and law to tax.", two_desks,
        "Law and tax allow it", "Triage hands over to both at once, and AG2 drops one.",
        ("ET", "OE"),
    ),
    Shape(
        "research", "An agent has a library look something up before it answers.", research,
        ["Take a coat"] * 2, "The look-up is begun in the background; nothing awaits it.", ("ET",),
    ),
    Shape(
        "two opinions", "Two agents are asked at once; one waits for the other's result.",
        two_opinions, ["It is fine", "I agree"], "Both wait for the other one's result.", ("DL",),
    ),
]  # fmt: skip
