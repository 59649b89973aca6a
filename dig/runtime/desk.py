"""What the bus keeps for each agent and each question, and how it calls what is not its own."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from dig.errors import DigError

from .agents import Agent

_T = TypeVar("_T")


class Desk:
    """Where one agent works from its coming to its leaving."""

    def __init__(self, name: str, agent: Agent) -> None:
        """Set up a desk without mail."""
        self.name = name
        self.agent = agent
        self.mail = anyio.Event()
        self.scope = anyio.CancelScope()


class Question:
    """Somebody waits for the answer to a problem."""

    def __init__(self) -> None:
        """Begin without an answer."""
        self.settled = anyio.Event()
        self.answered = False
        self.answer: Any = None


async def attempt(work: Callable[[], Awaitable[_T]]) -> tuple[_T | None, str | None]:
    """Do what must not end the team, whatever it raises.

    Returns:
        What came of it, and ``None``; or ``None``, and what it raised.
    """
    try:
        return await work(), None
    except DigError as error:  # a sentence of ours; its type says nothing more
        return None, str(error)
    except Exception as error:
        return None, repr(error)
    except anyio.get_cancelled_exc_class() as error:
        # If nobody has cancelled us, it awaited what somebody else cancelled.
        if anyio.current_effective_deadline() == -math.inf:
            raise
        return None, repr(error)
