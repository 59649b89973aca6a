"""Turns, calls and answers as records, as a wrapped team leaves records.

A turn that calls is a chain of activations with continuations (docs/trace-format.md, section 7).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dig.graph.records import HANDOFF, REQUEST_FAILED, Failure, Fate

from .scribe import Scribe


@dataclass(eq=False)
class CallTurn:
    """The turn of an agent.

    Attributes:
        agent: The agent's name, or an instance.
        request: The request from outside that it works for.
        caller: The turn that gets its answer; ``None``: the outside gets it.
        activation: Its latest activation; empty: it has not begun.
        is_busy: Whether that activation is in progress.
        awaited: The number of its calls that have no answer yet.
        is_open: Whether it goes on.
        has_failed: Whether it ended with an error.
    """

    agent: str
    request: str
    caller: CallTurn | None
    activation: str = ""
    is_busy: bool = False
    awaited: int = 0
    is_open: bool = True
    has_failed: bool = False


class _Output(NamedTuple):
    event: str
    to: Sequence[str] | None  # `None`: the outside
    type: str
    payload: Any = None


class Calls:
    """Writes turns, in order of time.

    Attributes:
        has_answer: Whether an answer was given to the outside.
    """

    def __init__(self, scribe: Scribe) -> None:
        self.has_answer, self._scribe = False, scribe
        self._counts: Counter[str] = Counter()

    def request(self, agent: str, payload: Any) -> CallTurn:
        """Write a request from outside."""
        problem = _Output(self._new_id("e"), [self._scribe.reserve(agent)], "problem", payload)
        self._emit([problem], None)
        return CallTurn(problem.to[0], problem.event, None)  # type: ignore[index]  # not None

    def begin(self, turn: CallTurn) -> None:
        """Start an activation of a turn, if none is in progress; all inputs will be consumed."""
        if not turn.is_busy:
            turn.activation, turn.is_busy = self._new_id("a"), True
            self._scribe.start(turn.activation, turn.agent)

    def call(self, turn: CallTurn, agent: str, payload: Any) -> CallTurn:
        """Write the call of an agent; the turn goes on."""
        instance, turn.awaited = self._scribe.reserve(agent), turn.awaited + 1
        self._go_on(turn, _Output(self._new_id("e"), [instance], "message", payload))
        return CallTurn(instance, turn.request, turn)

    def hand_over(self, turn: CallTurn, agent: str, payload: Any, usage: Any = None) -> CallTurn:
        """End a turn with a hand-off to an agent; the caller gets the answer of the next agent."""
        instance = self._scribe.reserve(agent)
        self._end(turn, _Output(self._new_id("e"), [instance], HANDOFF, payload), usage=usage)
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
        caller, event, answers = turn.caller, self._new_id("e"), list[_Output]()
        if caller is not None:
            to = [caller.agent] if caller.is_open else []
            answers = [_Output(event, to, "notice", {"error": error})] if error else [
                _Output(event, to, "message" if to else "notice", payload)]  # fmt: skip
        elif not error:
            answers, self.has_answer = [_Output(event, None, "solution", payload)], True
        self._end(turn, *answers, error=error or None, **more)
        turn.has_failed = bool(error)
        if caller is not None:
            caller.awaited -= 1
            if caller.is_open and caller.awaited <= 0:
                if caller.is_busy:  # an activation cannot see what came after its start
                    self._go_on(caller)
                self.begin(caller)
        elif error and failure is not None:
            blamed = None if more.get("cancelled") else more.get("because") or turn.activation
            detail = {"how": failure, "event": turn.request, "activation": blamed, "error": error}
            self._scribe.incident(REQUEST_FAILED, detail)

    # --- pieces ---

    def _go_on(self, turn: CallTurn, *outputs: _Output) -> None:
        self._close(turn, *outputs, _Output(self._new_id("onward"), [turn.agent], "notice"))

    def _end(self, turn: CallTurn, *outputs: _Output, **more: Any) -> None:
        self._close(turn, *outputs, **more)
        turn.is_open = False
        self._scribe.release(turn.agent)

    def _close(self, turn: CallTurn, *outputs: _Output, **more: Any) -> None:
        self.begin(turn)
        inputs = self._scribe.graph.activations[turn.activation].inputs
        fates = [Fate(event.id, "consume") for event in inputs]
        self._scribe.end(turn.activation, fates, [output.event for output in outputs], **more)
        turn.is_busy = False
        self._emit(outputs, turn.activation)

    def _emit(self, outputs: Sequence[_Output], by: str | None) -> None:
        for event, to, type, payload in outputs:
            more = {} if payload is None else {"payload": payload}
            self._scribe.emit(event, by, to or (), type, final=to is None, **more)
        for output in outputs:
            for agent in (None,) if output.to is None else output.to:
                self._scribe.deliver(output.event, agent)

    def _new_id(self, stem: str) -> str:
        self._counts[stem] += 1
        return f"{stem}{self._counts[stem]}"
