"""What wrapping adds to a message of an AG2 classic group chat, in CPU time of its thread.

Agents take turns, and reply at once, so a message here is nothing but its cost: a real one takes a
model's seconds. AG2 classic and AG2 1.x have one name, so an environment has one of them only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

import dig
from dig.adapters import Mode

from .measure import Table
from .wrapped import TEXT, Say, compared, small, speaking

LENGTH = 100
WARM_UP = 10
TITLE = "A message in a wrapped group chat of AG2 classic"


def wrapping(quick: bool) -> Table:
    """Time from one agent's reply to the next one's: a message to all, and who is next."""
    if find_spec("autogen") is None:
        missing = "not installed: pip install -e '.[ag2-classic]', in an environment of its own"
        return Table(TITLE, ("team",), [(missing,)])
    chats = 2 if quick else 10
    return compared(
        f"{TITLE}, {chats * LENGTH} of them, us of CPU time",
        "group of five", times, chats,
        "seven detectors; a bare message is AG2's own cost of one, shown to nobody",
    )  # fmt: skip


async def times(
    mode: Mode | None, is_kept: bool, length: int = LENGTH, say: Say = small
) -> list[float]:
    """How long each message took, in microseconds, after some to warm up."""
    from autogen import ConversableAgent, GroupChat, GroupChatManager
    from autogen.io import IOStream

    moments: list[float] = []
    speak = speaking(say)
    members = [_agent(f"agent_{number}", moments, speak) for number in range(5)]
    rounds = length + WARM_UP + 2
    chat = GroupChat(members, [], max_round=rounds, speaker_selection_method="round_robin")
    manager = GroupChatManager(chat, llm_config=False, silent=True)
    user = ConversableAgent("user", llm_config=False)
    with TemporaryDirectory() as folder, IOStream.set_default(_Deaf()):
        if mode is not None:
            dig.wrap(manager, mode=mode, journal=folder if is_kept else None)
        await user.a_initiate_chat(manager, message=TEXT, silent=True)
        dig.unwrap(manager)
    return [(after - before) * 1e6 for before, after in pairwise(moments)][WARM_UP:]


def _agent(name: str, moments: list[float], speak: Callable[[int], Any]) -> Any:
    from autogen import ConversableAgent

    def reply(*given: Any, **more: Any) -> tuple[bool, str]:
        moments.append(time.thread_time())
        return True, speak(len(moments))

    agent = ConversableAgent(name, llm_config=False, human_input_mode="NEVER")
    agent.register_reply([ConversableAgent, None], reply)
    return agent


class _Deaf:
    """Where AG2 shows nothing of what happens."""

    def print(self, *objects: Any, **more: Any) -> None: ...

    def send(self, event: Any) -> None: ...

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        return ""
