"""What the bus keeps for each agent, question and follower; how it calls what is not its own."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import anyio

from dig.errors import DigError, StopRunError
from dig.monitor.messages import Answered, Started
from dig.monitor.sinks import FanOut, Sink

from .agents import Agent, Decision, View

_T = TypeVar("_T")

Around = Callable[[Started], AbstractContextManager[object]]
"""Makes what is entered while an agent acts: a trace context that becomes current, for instance."""


GAVE_UP = "gave up"
"""The incident when an agent finds out that nobody can go on."""


class Desk:
    """Where one agent works from its coming to its leaving."""

    def __init__(self, name: str, agent: Agent) -> None:
        """Set up a desk without mail."""
        self.name = name
        self.agent = agent
        self.mail = anyio.Event()
        self.scope = anyio.CancelScope()

    async def act(
        self, view: View, tell: Callable[[str, str, str], None], stop: Callable[[str], None]
    ) -> Decision:
        """Have the agent decide; the run is stopped if it finds out that nobody can go on.

        Args:
            view: What it is shown.
            tell: Is told who found that out, what, and what to call it.
            stop: Stops the run, for a reason.
        """
        try:
            return await self.agent.act(view)
        except StopRunError as error:
            tell(self.name, str(error), GAVE_UP)
            stop(str(error))
            raise


class Question:
    """Somebody waits for the answer to a problem."""

    def __init__(self) -> None:
        """Begin without an answer."""
        self.settled = anyio.Event()
        self.answered = False
        self.answer: Any = None

    async def wait(self, over: anyio.Event) -> None:
        """Wait for the answer, but no longer than the run lasts."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._give_up, over)
            await self.settled.wait()
            tasks.cancel_scope.cancel()

    async def _give_up(self, over: anyio.Event) -> None:
        await over.wait()
        self.settled.set()


def settle(questions: dict[str, Question], answered: Answered) -> None:
    """Give an answer to those who wait for it."""
    for event in answered.problems:
        question = questions.pop(event, None)
        if question is not None:
            question.answered = True
            question.answer = answered.payload
            question.settled.set()


class Onlookers(FanOut):
    """Who follows a run on the bus: followers that are asked around every activation, too."""

    def __init__(self, sink: Sink) -> None:
        """Begin with the one who writes the records down."""
        super().__init__(sink)
        self._arounds: list[Around] = []

    def add(self, sink: Sink, around: Around | None = None) -> None:
        """Add one.

        Args:
            sink: Is given every record after those before it; what it raises ends the run.
            around: Makes a context manager that is entered while an agent acts; what that
                raises becomes an incident, and the agent acts without it.
        """
        super().add(sink)
        if around is not None:
            self._arounds.append(around)

    def around(
        self, started: Started, tell: Callable[[str, str], None]
    ) -> AbstractContextManager[object]:
        """What is entered while an agent acts; `tell` is told who failed, and how."""
        return Acting(self._arounds, started, tell) if self._arounds else nullcontext()


class Acting:
    """Everything that is entered around one activation; who only looks on cannot stop a team."""

    def __init__(
        self, arounds: Sequence[Around], started: Started, tell: Callable[[str, str], None]
    ) -> None:
        """Prepare; `tell` is told who failed, and how."""
        self._arounds = arounds
        self._started = started
        self._tell = tell
        self._entered: list[AbstractContextManager[object]] = []

    def __enter__(self) -> None:
        """Enter one after the other."""
        for around in self._arounds:
            try:
                scope = around(self._started)
                scope.__enter__()
            except Exception as error:
                self._fail(around, error)
            else:
                self._entered.append(scope)

    def __exit__(self, *what: Any) -> None:
        """Leave in the reverse order."""
        for scope in reversed(self._entered):
            try:
                scope.__exit__(*what)
            except Exception as error:
                self._fail(scope, error)

    def _fail(self, who: object, error: Exception) -> None:
        name = getattr(who, "__qualname__", type(who).__name__)
        self._tell(f"around {name}", f"raised {error!r}")


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
