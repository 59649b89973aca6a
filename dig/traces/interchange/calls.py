"""Calls with awaited answers, and hand-offs, as records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dig.graph.records import HANDOFF, REQUEST_FAILED, Failure

from .scribe import Scribe
from .turn_writer import TurnOutput, TurnWriter


@dataclass(eq=False)
class CallTurn:
    """The turn of an agent.

    Attributes:
        agent: The agent's name, or an instance.
        request: The request from outside that it works for.
        caller: The turn that gets its answer; ``None``: the outside gets it.
        activation: The activation in progress; empty: there is none.
        latest: The activation that ended it.
        awaited: The number of its calls that have no answer yet.
        is_open: Whether it goes on.
        has_failed: Whether it ended with an error.
    """

    agent: str
    request: str
    caller: CallTurn | None
    activation: str = ""
    latest: str = ""
    awaited: int = 0
    is_open: bool = True
    has_failed: bool = False


class Calls(TurnWriter):
    """Writes turns with calls.

    Attributes:
        has_answer: Whether an answer was given to the outside.
    """

    def __init__(self, scribe: Scribe) -> None:
        super().__init__(scribe)
        self.has_answer = False

    def request(self, agent: str, payload: Any) -> CallTurn:
        """Write a request from outside."""
        instance = self._scribe.reserve(agent)
        problem = TurnOutput(self.new_id("e"), [instance], "problem", payload)
        self.emit(problem, None)
        self.deliver(problem)
        return CallTurn(instance, problem.event, None)

    def call(self, turn: CallTurn, agent: str, payload: Any) -> CallTurn:
        """Write the call of an agent; the turn goes on."""
        instance, turn.awaited = self._scribe.reserve(agent), turn.awaited + 1
        message = TurnOutput(self.new_id("e"), [instance], "message", payload)
        self.end(turn, message, goes_on=True)
        self.deliver(message)
        return CallTurn(instance, turn.request, turn)

    def hand_over(self, turn: CallTurn, agent: str, payload: Any, usage: Any = None) -> CallTurn:
        """End a turn with a hand-off to an agent; the caller gets the answer of the next agent."""
        instance = self._scribe.reserve(agent)
        self._end(turn, TurnOutput(self.new_id("e"), [instance], HANDOFF, payload), usage=usage)
        return CallTurn(instance, turn.request, turn.caller)

    def answer(
        self, turn: CallTurn, payload: Any, *, error: str = "", failure: Failure | None = "error",
        **more: Any,
    ) -> None:  # fmt: skip
        """End a turn with an answer, or with a notice of an error.

        Args:
            turn: The turn.
            payload: The answer, if it is known.
            error: The error; empty: there was none.
            failure: The end of the request by the error; ``None``: its own caller ended it.
            more: Further fields of the record of the end.
        """
        caller, event, answers = turn.caller, self.new_id("e"), list[TurnOutput]()
        if caller is not None:
            to = [caller.agent] if caller.is_open else []
            type = "message" if to and not error else "notice"
            answers = [TurnOutput(event, to, type, {"error": error} if error else payload)]
        elif not error:
            answers, self.has_answer = [TurnOutput(event, None, "solution", payload)], True
        self._end(turn, *answers, error=error or None, **more)
        turn.has_failed = bool(error)
        if caller is not None:
            caller.awaited -= 1
            if caller.is_open and caller.awaited <= 0:
                if caller.activation:  # an activation cannot see what came after its start
                    self.end(caller, goes_on=True)
                self.begin(caller)
        elif error and failure is not None:
            blamed = None if more.get("cancelled") else more.get("because") or turn.latest
            detail = {"how": failure, "event": turn.request, "activation": blamed, "error": error}
            self._scribe.incident(REQUEST_FAILED, detail)

    def _end(self, turn: CallTurn, *outputs: TurnOutput, **more: Any) -> None:
        self.begin(turn)
        turn.latest, turn.is_open = turn.activation, False
        self.end(turn, *outputs, **more)
        self.deliver(*outputs)
        self._scribe.release(turn.agent)
