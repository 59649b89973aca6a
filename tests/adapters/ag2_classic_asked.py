"""What is asked of teams of AG2 classic, one scenario for each way to chat."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen.agentchat import a_initiate_chats, a_initiate_group_chat, initiate_group_chat
from autogen.agentchat.group import (
    AgentTarget,
    OnCondition,
    StringLLMCondition,
    TerminateTarget,
)
from autogen.agentchat.group.patterns import DefaultPattern

from dig.adapters.ag2_classic import agents as members

from .ag2_classic_teams import (
    agent,
    ask,
    ask_now,
    calls,
    ends,
    manager,
    says,
    scenario,
    shown,
    team,
)
from .harness import Script


def chat(script: Script) -> Any:
    """Two agents that reply to each other until one says that it is enough."""
    user = agent(script, "user", says("Go on"), is_termination_msg=ends)
    return team(user, agent(script, "ann", says("One"), says("Two"), says("Three TERMINATE")))


async def bounded(built: Any) -> Any:
    return await ask(built, max_turns=2)


async def bounded_now(built: Any) -> Any:
    return await ask_now(built, max_turns=2)


def group(script: Script) -> Any:
    """Three take turns; somebody outside begins."""
    acts = {"ann": says("A"), "bob": says("B"), "cyd": says("C TERMINATE")}
    members = [agent(script, name, act) for name, act in acts.items()]
    return team(agent(script, "user"), manager(members))


def member_begins(script: Script) -> Any:
    """A member of the group begins, and the manager is wrapped."""
    user = agent(script, "user", says("And so?"), says("Enough TERMINATE"))
    found = manager([user, agent(script, "ann", says("Well"))])
    return team(user, found, wrap=found)


def selected(script: Script) -> Any:
    """A function says who is next, and nobody after the third."""
    members = [agent(script, name, says(name)) for name in ("ann", "bob", "cyd")]

    def select(last: Any, chat: Any) -> Any:
        order = {"user": 0, "ann": 0, "bob": 2}
        known = len(chat.messages)
        return (
            members[order.get(last.name, 0)]
            if known == 1
            else (members[1] if known == 2 else members[2] if known == 3 else None)
        )

    return team(agent(script, "user"), manager(members, select))


class Selector:
    """A model that says who is next, in a chat of its own that AG2 makes for it."""

    def __init__(self, config: Any, **more: Any) -> None:
        self.model = "selector"

    def create(self, params: Any) -> Any:
        told = " ".join(str(message.get("content")) for message in params["messages"])
        from types import SimpleNamespace as One

        name = "bob" if "I am ann" in told else "ann"
        choice = One(message=One(content=name, function_call=None, tool_calls=None))
        return One(choices=[choice], model=self.model, cost=0)

    def message_retrieval(self, response: Any) -> list[str]:
        return [choice.message.content for choice in response.choices]

    def cost(self, response: Any) -> float:
        return 0.0

    @staticmethod
    def get_usage(response: Any) -> dict[str, Any]:
        return {}


def auto(script: Script) -> Any:
    """A model says who is next."""
    acts = {"ann": says("I am ann"), "bob": says("I am bob TERMINATE"), "cyd": says("never")}
    members = [agent(script, name, act) for name, act in acts.items()]
    config = {"config_list": [{"model": "selector", "model_client_cls": "Selector"}]}
    found = manager(
        members, "auto",
        select_speaker_auto_llm_config=config, select_speaker_auto_model_client_cls=Selector,
    )  # fmt: skip
    return team(agent(script, "user"), found)


def tools(script: Script) -> Any:
    """Who has begun carries out the tools that the other one calls."""
    user = agent(script, "user", is_termination_msg=ends)
    ann = agent(script, "ann", calls("add", a=1, b=2), says("Three TERMINATE"))

    def add(a: int, b: int) -> int:
        return a + b

    user.register_function({"add": add})
    return team(user, ann)


def nested(script: Script) -> Any:
    """An agent asks two others before it answers, one after the other."""
    bob, cyd = agent(script, "bob", says("From bob")), agent(script, "cyd", says("From cyd"))
    ann = agent(script, "ann", says("never"))
    user = agent(script, "user", is_termination_msg=lambda message: True)
    asked = [
        {"recipient": bob, "message": "First?", "max_turns": 1, "chat_id": 1},
        {"recipient": cyd, "message": "Second?", "max_turns": 1, "chat_id": 2,
         "prerequisites": [1]},
    ]  # fmt: skip
    ann.register_nested_chats(asked, trigger=user, use_async=True)
    return team(user, ann)


def nested_now(script: Script) -> Any:
    """The same, in the midst of a chat that is awaited, but not awaited itself."""
    bob = agent(script, "bob", says("From bob"), says("More"))
    ann = agent(script, "ann", says("And?"))
    user = agent(script, "user", is_termination_msg=lambda message: True)
    ann.register_nested_chats(
        [{"recipient": bob, "message": "First?", "max_turns": 2}], trigger=user
    )
    return team(user, ann)


def several(script: Script) -> Any:
    """Somebody outside begins several chats at once."""
    others = [agent(script, name, says(name)) for name in ("ann", "bob")]
    return team(agent(script, "user", is_termination_msg=lambda message: True), *others)


async def all_at_once(built: Any) -> Any:
    queue = [
        {"chat_id": n, "sender": built.user, "recipient": one, "message": f"Question {n}"}
        for n, one in enumerate([built.first, *built.others])
    ]
    return [shown(result) for result in (await a_initiate_chats(queue)).values()]


async def thrice(built: Any) -> Any:
    """The same agents in several chats at once."""
    asked = (ask(built, f"Question {n}", clear_history=False) for n in range(3))
    return await asyncio.gather(*asked)


def failing(script: Script) -> Any:
    """A model fails in the midst of a group chat."""
    members = [agent(script, "ann", says("A")), agent(script, "bob", _fails)]
    return team(agent(script, "user"), manager(members))


def _fails(contents: Any, number: int) -> Any:
    return ValueError("no model")


def interrupted(script: Script) -> Any:
    """A model is interrupted in the midst of a group chat, and the group's admin takes over."""
    admin = agent(script, "Admin", says("I take over TERMINATE"))
    found = manager([agent(script, "ann", lambda contents, number: KeyboardInterrupt()), admin])
    for one in members.group_chats(found):
        one.admin_name = "Admin"
    return team(agent(script, "user"), found)


def alone(script: Script) -> Any:
    ann = agent(script, "ann", says("Here I am"))
    return team(agent(script, "user"), ann, wrap=ann)


async def reply(built: Any) -> Any:
    """An agent is asked for a reply, outside of any chat."""
    messages = [{"role": "user", "content": "Who are you?"}]
    return [
        await built.first.a_generate_reply(messages), built.first.generate_reply(messages=messages)
    ]  # fmt: skip


async def sent(built: Any) -> Any:
    """A message is sent without a chat."""
    await built.user.a_send("Who are you?", built.first, request_reply=True)
    return built.first.chat_messages[built.user]


def desks(script: Script) -> Any:
    """Agents that hand over by calling a tool, in a pattern."""
    ann = agent(script, "ann", calls("transfer_to_bob_1"))
    bob = agent(script, "bob", says("Solved"))
    return hand_over(ann, bob)


def hand_over(*agents: Any) -> Any:
    """Each agent can hand over to each of the others, by `transfer_to_NAME_1` and so on."""
    for one in agents:
        for other in agents:
            if other is not one:
                condition = StringLLMCondition(prompt=f"Hand over to {other.name}.")
                handoff = OnCondition(target=AgentTarget(other), condition=condition)
                one.handoffs.add_llm_condition(handoff)
        one.handoffs.set_after_work(TerminateTarget())
    pattern = DefaultPattern(initial_agent=agents[0], agents=list(agents))
    return team(agents[0], agents[1], wrap=pattern)


async def in_group(built: Any) -> Any:
    result, context, last = await a_initiate_group_chat(built.wrap, "I was charged twice.")
    return [shown(result), context.to_dict(), last.name]


async def in_group_now(built: Any) -> Any:
    result, context, last = initiate_group_chat(built.wrap, "I was charged twice.")
    return [shown(result), context.to_dict(), last.name]


SCENARIOS = [
    scenario(chat),
    scenario(chat, ask_now),
    scenario(chat, bounded),
    scenario(chat, bounded_now),
    scenario(chat, thrice),
    scenario(group),
    scenario(group, ask_now),
    scenario(member_begins),
    scenario(selected),
    scenario(auto),
    scenario(auto, ask_now),
    scenario(tools),
    scenario(nested),
    scenario(nested_now),
    scenario(several, all_at_once),
    scenario(failing),
    scenario(failing, ask_now),
    scenario(alone, reply),
    scenario(alone, sent),
    scenario(desks, in_group),
    scenario(desks, in_group_now),
]
