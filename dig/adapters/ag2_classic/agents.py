"""What stands in place of the methods that messages come through, while a team is wrapped.

They are attributes of the agents themselves, since AG2 looks all of them up there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from autogen import ConversableAgent

from dig.adapters import Session
from dig.adapters.base.patching import Taps

from .chat import Handoff
from .members import ASKS_MODEL, READS, group_chats, is_agent, with_members
from .notes import showing
from .play import Script, play, play_now
from .scripts import Scripts

Play = Callable[[Script, Callable[[], Any], Session], Any]

PLAYS: tuple[tuple[str, Play], ...] = (("", play_now), ("a_", play))
"""AG2 has each method twice, and the one that is awaited begins with `a_`."""


class ChatTaps:
    """The taps of one team."""

    def __init__(self, session: Session, handoff: Handoff | None) -> None:
        """Begin without agents."""
        self._session = session
        self._heals = session.mode == "heal"
        self._scripts = Scripts(session, handoff)
        self._taps = Taps()
        self._known: dict[int, Any] = {}  # by id; kept alive in here

    def restore(self) -> None:
        """Take them away again, where nobody has put anything else."""
        self._taps.restore()
        self._known.clear()

    def follow(self, pattern: Any) -> None:
        """Know the agents that a pattern makes for each of its chats."""

        def prepare(whole: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            made = whole(*args, **kwargs)
            self._meet(*made)
            return made

        self._taps.tap(pattern, "prepare_group_chat", prepare)

    def know(self, agent: Any) -> None:
        """An agent is seen, perhaps for the first time, with those of its group chat."""
        if not isinstance(agent, ConversableAgent) or id(agent) in self._known:
            return
        self._known[id(agent)] = agent
        for prefix, plays in PLAYS:
            self._taps.tap(agent, prefix + "initiate_chat", self._initiate, plays)
            self._taps.tap(agent, prefix + "receive", self._receive, plays)
            if is_agent(agent):
                self._taps.tap(agent, prefix + "generate_reply", self._speak, plays, agent)
                self._taps.tap(agent, prefix + "get_human_input", self._ask_person, agent)
            for chat in group_chats(agent) if self._heals else ():
                self._taps.tap(chat, prefix + "select_speaker", self._select, plays)
        for chat in group_chats(agent):
            self._taps.tap(chat, "manual_select_speaker", self._ask_for_next)
        if self._heals:
            self._taps.tap(agent, READS, self._read, agent)
            self._taps.tap(agent, ASKS_MODEL, showing)
        for member in with_members(agent):
            self.know(member)

    def _initiate(self, whole: Callable[..., Any], plays: Play, *args: Any, **kwargs: Any) -> Any:
        """A chat begins, with somebody who is known from now on."""
        self._meet(*args[:1], kwargs.get("recipient"))
        return plays(self._scripts.chatting(), partial(whole, *args, **kwargs), self._session)

    def _receive(self, whole: Callable[..., Any], plays: Play, *args: Any, **kwargs: Any) -> Any:
        """A message comes from somebody: in a chat, or without one."""
        self._meet(*args[1:2], kwargs.get("sender"))
        here = self._scripts.here
        if here is not None and here.speaker is None:
            return whole(*args, **kwargs)
        return plays(self._scripts.chatting(), partial(whole, *args, **kwargs), self._session)

    def _meet(self, *agents: Any) -> None:
        for agent in agents:
            if id(agent) not in self._known:
                self._session.step(self.know, agent, otherwise=None)

    def _speak(
        self, whole: Callable[..., Any], plays: Play, agent: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """An agent is asked for a reply."""
        here = self._scripts.here
        if here is not None and here.speaker is agent:
            return whole(*args, **kwargs)  # by itself, in the midst of its turn
        messages, sender = (*args, None, None)[:2]
        messages, sender = kwargs.get("messages", messages), kwargs.get("sender", sender)
        self._meet(sender)
        script = self._scripts.speaking(agent, messages, sender)
        return plays(script, partial(whole, *args, **kwargs), self._session)

    def _ask_person(self, whole: Callable[..., Any], agent: Any, *args: Any, **kwargs: Any) -> Any:
        """An agent waits for what a person types."""
        self._scripts.asks_person(agent)
        return whole(*args, **kwargs)

    def _ask_for_next(self, whole: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A group chat asks a person to say who is next (`AskUserTarget`, `manual`)."""
        self._scripts.asks_for_next()
        return whole(*args, **kwargs)

    def _select(self, whole: Callable[..., Any], plays: Play, *args: Any, **kwargs: Any) -> Any:
        """A group chat looks for who is next."""
        return plays(self._scripts.selecting(), partial(whole, *args, **kwargs), self._session)

    def _read(self, whole: Callable[..., Any], agent: Any, *args: Any, **kwargs: Any) -> Any:
        """An agent looks at what it replies to, for the last time before it decides."""
        return self._scripts.told(agent, whole(*args, **kwargs))
