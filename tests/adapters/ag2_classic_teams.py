"""Agents of AG2 classic with scripted models, their chats, and a session around them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

from autogen import ConversableAgent, GroupChat, GroupChatManager
from autogen.io import IOStream
from autogen.testing import ToolCall
from autogen.testing.test_agent import FakeClient, FakeClientResponse, convert_fake_message

from dig.adapters import ag2_classic as adapter

from .framework_watch import Watched as Framework
from .harness import Scenario, Script

logging.getLogger("autogen").setLevel(logging.CRITICAL)  # it tells of every custom model

Act = Callable[[list[Any], int], Any]
"""What a model does: `(contents of the messages, number of the call) -> text, message or error`."""


class Watched(Framework):
    adapter = adapter

    def must_be_sound(self) -> None:
        """As elsewhere, once the agents are their own again."""
        self.detach()
        super().must_be_sound()


class Model(FakeClient):  # type: ignore[misc]
    """AG2's own fake client, which can see what it is asked."""

    def __init__(self, acts: Sequence[Act]) -> None:
        super().__init__(())
        self.acts = acts
        self.number = 0
        self.asked: list[list[Any]] = []

    def create(self, **params: Any) -> Any:
        self.number += 1
        contents = [message.get("content") for message in params["messages"]]
        self.asked.append(contents)
        said = self.acts[min(self.number, len(self.acts)) - 1](contents, self.number)
        if isinstance(said, BaseException):
            raise said
        return FakeClientResponse(choices=[convert_fake_message(said)])


def says(text: str) -> Act:
    return lambda contents, number: text


def calls(name: str, **arguments: Any) -> Act:
    return lambda contents, number: ToolCall(name, **arguments).to_message()


def told(contents: Sequence[Any]) -> list[str]:
    """The notes in what a model was given."""
    return [one for one in contents if isinstance(one, str) and one.startswith("[monitor]")]


def unless_told(before: Act, after: Act) -> Act:
    """One thing without a note, and another with one."""
    return lambda contents, number: (after if told(contents) else before)(contents, number)


CONFIG = {"config_list": [{"model": "scripted", "model_client_cls": "Scripted"}]}


class Scripted(ConversableAgent):  # type: ignore[misc]
    """An agent whose model stays the scripted one, when AG2 makes another for its tools."""

    script: Model | None = None

    @property
    def client(self) -> Model | None:
        return self.script

    @client.setter
    def client(self, other: Any) -> None:
        pass


def agent(script: Script, name: str, *acts: Act, **more: Any) -> Any:
    """An agent that thinks for a while, when it is awaited, and then asks its model."""
    config = {"llm_config": deepcopy(CONFIG) if acts else False, **more}
    made = Scripted(name, human_input_mode="NEVER", **config)

    async def a_think(
        self: Any, messages: Any = None, sender: Any = None, config: Any = None
    ) -> Any:
        async with script.turn(name, messages[-1].get("content")):
            return False, None

    made.register_reply([ConversableAgent, None], a_think, position=2)
    made._reply_func_list[2]["ignore_async_in_sync_chat"] = True
    if acts:
        made.script = Model(acts)
    return made


def ends(message: Any) -> bool:
    return "TERMINATE" in str(message.get("content"))


def manager(agents: Sequence[Any], select: Any = "round_robin", **more: Any) -> Any:
    """What manages a group chat; it ends when somebody says so, or after ten rounds."""
    chat = GroupChat(list(agents), [], speaker_selection_method=select, **{"max_round": 10, **more})
    return GroupChatManager(chat, is_termination_msg=ends, llm_config=False, silent=True)


class Heard(IOStream):  # type: ignore[misc]
    """What AG2 shows to whoever looks on."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def print(self, *objects: Any, **more: Any) -> None:
        self.events.append(("print", repr(objects)))

    def send(self, event: Any) -> None:
        content = getattr(event, "content", None)
        self.events.append((type(event).__name__, repr(getattr(content, "content", ""))))

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        return "exit"


def shown(result: Any) -> Any:
    """All of a result that a host would look at."""
    return [result.chat_history, result.summary, result.cost, result.human_input]


def said(first: Any) -> Any:
    """What was said in a group chat, if that is one."""
    return first.groupchat.messages if isinstance(first, GroupChatManager) else []


async def ask(team: Any, message: Any = "What now?", **more: Any) -> Any:
    result = await team.user.a_initiate_chat(team.first, message=message, **more)
    return [shown(result), said(team.first)]


async def ask_now(team: Any, message: Any = "What now?", **more: Any) -> Any:
    """The same, not awaited."""
    result = team.user.initiate_chat(team.first, message=message, **more)
    return [shown(result), said(team.first)]


def team(user: Any, first: Any, *others: Any, wrap: Any = None) -> Any:
    """Who begins, and to whom: `wrap` is what a user would wrap."""
    return SimpleNamespace(user=user, first=first, others=others, wrap=wrap or user)


class Wrapping:
    """Wraps what a team is wrapped by, and hands on the rest of it."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched

    def __call__(self, built: Any) -> Any:
        assert self.watched(built.wrap) is built.wrap
        return built


def scenario(build: Callable[[Script], Any], drive: Any = ask, name: str = "") -> Scenario:
    """A team and what is asked of it, with all that it shows meanwhile."""

    async def driven(built: Any) -> Any:
        heard = Heard()
        with IOStream.set_default(heard):
            try:
                return [await drive(built), heard.events]
            finally:
                built.heard = heard.events

    return Scenario(name or f"{build.__name__}-{drive.__name__}", build, driven)
