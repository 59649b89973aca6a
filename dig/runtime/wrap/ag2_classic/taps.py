"""What stands in place of the methods that messages come through, while a team is wrapped.

They are attributes of the agents themselves, since AG2 looks all of them up there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from autogen import ConversableAgent

from dig.runtime.wrap import Session

from .chat import Handoff
from .members import ASKS_MODEL, READS, group_chats, is_agent, with_members
from .notes import showing
from .play import Script, play, play_now
from .scripts import Scripts

Play = Callable[[Script, Callable[[], Any], Session], Any]

PLAYS: tuple[tuple[str, Play], ...] = (("", play_now), ("a_", play))
"""AG2 has each method twice, and the one that is awaited begins with `a_`."""


class Taps:
    """The taps of one team."""

    def __init__(self, session: Session, handoff: Handoff | None) -> None:
        """Begin without agents."""
        self._session = session
        self._heals = session.mode == "heal"
        self._scripts = Scripts(session, handoff)
        self._tapped: list[tuple[Any, str, Any]] = []
        self._known: dict[int, Any] = {}  # by id; kept alive in here

    def restore(self) -> None:
        """Take them away again, where nobody has put anything else."""
        for owner, name, tap in reversed(self._tapped):
            if vars(owner).get(name) is tap:
                delattr(owner, name)
        self._tapped.clear()
        self._known.clear()

    def follow(self, pattern: Any) -> None:
        """Know the agents that a pattern makes for each of its chats."""

        def prepare(whole: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            made = whole(*args, **kwargs)
            self._meet(*made)
            return made

        self._tap(pattern, "prepare_group_chat", prepare)

    def know(self, agent: Any) -> None:
        """An agent is seen, perhaps for the first time, with those of its group chat."""
        if not isinstance(agent, ConversableAgent) or id(agent) in self._known:
            return
        self._known[id(agent)] = agent
        for prefix, plays in PLAYS:
            self._tap(agent, prefix + "initiate_chat", partial(self._initiate, plays))
            self._tap(agent, prefix + "receive", partial(self._receive, plays))
            if is_agent(agent):
                self._tap(agent, prefix + "generate_reply", partial(self._speak, plays, agent))
            for chat in group_chats(agent) if self._heals else ():
                self._tap(chat, prefix + "select_speaker", partial(self._select, plays))
        if self._heals:
            self._tap(agent, READS, partial(self._read, agent))
            self._tap(agent, ASKS_MODEL, showing)
        for member in with_members(agent):
            self.know(member)

    def _tap(self, owner: Any, name: str, stand_in: Callable[..., Any]) -> None:
        whole = getattr(owner, name)

        @wraps(whole)
        def tap(*args: Any, **kwargs: Any) -> Any:
            return stand_in(whole, *args, **kwargs)

        setattr(owner, name, tap)
        self._tapped.append((owner, name, tap))

    def _initiate(self, plays: Play, whole: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A chat begins, with somebody who is known from now on."""
        self._meet(*args[:1], kwargs.get("recipient"))
        return plays(self._scripts.chatting(), partial(whole, *args, **kwargs), self._session)

    def _receive(self, plays: Play, whole: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
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
        self, plays: Play, agent: Any, whole: Callable[..., Any], *args: Any, **kwargs: Any
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

    def _select(self, plays: Play, whole: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A group chat looks for who is next."""
        return plays(self._scripts.selecting(), partial(whole, *args, **kwargs), self._session)

    def _read(self, agent: Any, whole: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """An agent looks at what it replies to, for the last time before it decides."""
        return self._scripts.told(agent, whole(*args, **kwargs))
