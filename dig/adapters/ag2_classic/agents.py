"""The replacements of the methods that messages come through, while a team is wrapped.

They are attributes of the agents themselves, since AG2 looks all of them up there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from autogen import ConversableAgent, GroupChat, GroupChatManager
from autogen.agentchat.group.patterns.pattern import Pattern

from dig.adapters.base import Patches, Session, need_attributes
from dig.errors import SettingsError

from .chat import Handoff, is_agent, showing
from .scripts import ChatScripts, Script, play, play_now

ASKS_MODEL = "_generate_oai_reply_from_client"
"""The method that every request to an agent's model passes; not public."""

READS = "process_all_messages_before_reply"
"""The method that returns the messages an agent replies to, after all hooks have seen them."""

SPOKEN_TO = ("initiate_chat", "receive", "generate_reply", "get_human_input")
"""The methods that AG2 has twice, as `PLAYS` says."""

OF_AGENT = (
    "_reply_func_list", "_is_termination_msg", "_max_consecutive_auto_reply_dict",
    "_consecutive_auto_reply_counter",
)  # fmt: skip
"""Attributes of an agent that are read, and are not public."""


def of(team: Any) -> list[Any]:
    """The agents and managers of a team that are known before it is asked anything.

    Raises:
        SettingsError: The object is no team, or two agents are called the same.
    """
    methods = (prefix + name for name in SPOKEN_TO for prefix, _ in PLAYS)
    need_attributes("AG2", (ConversableAgent,), (ASKS_MODEL, READS, *methods))
    if is_pattern(team):
        found = [*team.agents, *([team.user_agent] if team.user_agent else [])]
    elif isinstance(team, ConversableAgent):
        found = [team]
    else:
        raise SettingsError(
            f"{type(team).__name__} is no team of AG2 classic; wrap a GroupChatManager, a pattern "
            "of a group chat, or the agent that begins a chat"
        )
    found = [member for agent in found for member in with_members(agent)]
    found = list({id(agent): agent for agent in found}.values())
    need_attributes("AG2", found, OF_AGENT)
    twice = [name for name, count in Counter(agent.name for agent in found).items() if count > 1]
    if twice:
        raise SettingsError(f"two agents are called {twice[0]!r}; give each its own name")
    return found


def with_members(agent: Any) -> list[Any]:
    """An agent, and if it manages a group chat, those that take part in it."""
    if not isinstance(agent, ConversableAgent):
        return []  # whatever else can be in a group chat is not asked in the same way
    if not isinstance(agent, GroupChatManager):
        return [agent]
    inner = [member for one in agent.groupchat.agents for member in with_members(one)]
    return [agent, *inner]


def group_chats(agent: Any) -> list[Any]:
    """The group chats that an agent manages: AG2 gives a copy to each way of running one."""
    if not isinstance(agent, GroupChatManager):
        return []
    configs = [function["config"] for function in agent._reply_func_list]
    return [config for config in configs if isinstance(config, GroupChat)]


def is_pattern(team: Any) -> bool:
    """Whether the team's manager and some of its agents are made anew for each chat."""
    return isinstance(team, Pattern)


Play = Callable[[Script, Callable[[], Any], Session], Any]

PLAYS: tuple[tuple[str, Play], ...] = (("", play_now), ("a_", play))
"""AG2 has each method twice, and the one that is awaited begins with `a_`."""


class AgentPatches:
    """The patches of one team."""

    def __init__(self, session: Session, handoff: Handoff | None) -> None:
        """Begin without agents."""
        self._session = session
        self._heals = session.mode == "heal"
        self._scripts = ChatScripts(session, handoff)
        self._patches = Patches()
        self._known: dict[int, Any] = {}  # by id; kept alive in here

    def restore(self) -> None:
        """Restore the methods, except those that other code has replaced since."""
        self._patches.restore()
        self._known.clear()

    def follow(self, pattern: Any) -> None:
        """Know the agents that a pattern makes for each of its chats."""

        def prepare(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            self._meet(*made)
            return made

        self._patches.patch(pattern, "prepare_group_chat", prepare)

    def know(self, agent: Any) -> None:
        """An agent is seen, perhaps for the first time, with those of its group chat."""
        if not isinstance(agent, ConversableAgent) or id(agent) in self._known:
            return
        self._known[id(agent)] = agent
        for prefix, plays in PLAYS:
            self._patches.patch(agent, prefix + "initiate_chat", self._initiate, plays)
            self._patches.patch(agent, prefix + "receive", self._receive, plays)
            if is_agent(agent):
                self._patches.patch(agent, prefix + "generate_reply", self._speak, plays, agent)
                self._patches.patch(agent, prefix + "get_human_input", self._ask_person, agent)
            for chat in group_chats(agent) if self._heals else ():
                self._patches.patch(chat, prefix + "select_speaker", self._select, plays)
        for chat in group_chats(agent):
            self._patches.patch(chat, "manual_select_speaker", self._ask_for_next)
        if self._heals:
            self._patches.patch(agent, READS, self._read, agent)
            self._patches.patch(agent, ASKS_MODEL, showing)
        for member in with_members(agent):
            self.know(member)

    def _initiate(
        self, original: Callable[..., Any], plays: Play, *args: Any, **kwargs: Any
    ) -> Any:
        """A chat begins; its recipient is known from now on."""
        self._meet(*args[:1], kwargs.get("recipient"))
        return plays(self._scripts.chatting(), partial(original, *args, **kwargs), self._session)

    def _receive(self, original: Callable[..., Any], plays: Play, *args: Any, **kwargs: Any) -> Any:
        """An agent receives a message: in a chat, or without one."""
        self._meet(*args[1:2], kwargs.get("sender"))
        here = self._scripts.here
        if here is not None and here.speaker is None:
            return original(*args, **kwargs)
        return plays(self._scripts.chatting(), partial(original, *args, **kwargs), self._session)

    def _meet(self, *agents: Any) -> None:
        for agent in agents:
            if id(agent) not in self._known:
                self._session.guard.run(self.know, agent, default=None)

    def _speak(
        self, original: Callable[..., Any], plays: Play, agent: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """An agent is asked for a reply."""
        here = self._scripts.here
        if here is not None and here.speaker is agent:
            return original(*args, **kwargs)  # by itself, in the midst of its turn
        messages, sender = (*args, None, None)[:2]
        messages, sender = kwargs.get("messages", messages), kwargs.get("sender", sender)
        self._meet(sender)
        script = self._scripts.speaking(agent, messages, sender)
        return plays(script, partial(original, *args, **kwargs), self._session)

    def _ask_person(
        self, original: Callable[..., Any], agent: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """An agent waits for what a person types."""
        self._scripts.asks_person(agent)
        return original(*args, **kwargs)

    def _ask_for_next(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A group chat asks a person to select the next speaker (`AskUserTarget`, `manual`)."""
        self._scripts.asks_for_next()
        return original(*args, **kwargs)

    def _select(self, original: Callable[..., Any], plays: Play, *args: Any, **kwargs: Any) -> Any:
        """A group chat selects the next speaker."""
        return plays(self._scripts.selecting(), partial(original, *args, **kwargs), self._session)

    def _read(self, original: Callable[..., Any], agent: Any, *args: Any, **kwargs: Any) -> Any:
        """An agent looks at what it replies to, for the last time before it decides."""
        return self._scripts.told(agent, original(*args, **kwargs))
