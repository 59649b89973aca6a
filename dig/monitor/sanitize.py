"""Incoming values: checked, plain JSON, within the limit of size, without secrets.

All of it is checked before anything of it happens, so that the journal, the agents and the sinks
see the same, and what is refused has left no trace.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from dig._util.json_values import copy_value, dumps
from dig._util.redaction import mask_secrets, may_hold_secrets, redact
from dig.errors import DecisionError, PayloadError, RequestError
from dig.graph.graph import InteractionGraph
from dig.graph.records import FAILURES, FATES, Fate

from .messages import Output

MOST_BYTES = 16 * 1024 * 1024
"""The largest payload, as it stands in a trace; a reader takes lines that are a little longer."""

MOST_IN_ERROR = 20_000
"""Characters of an error that are kept: it may quote all that a model has said."""

_NOBODY = ()  # Python has one empty tuple


class Sanitizer:
    """Makes the monitor's own copies of incoming values."""

    def __init__(self, redacts: bool) -> None:
        """Begin; `redacts`: secrets are masked (see `dig._util.redaction`)."""
        self._redacts = redacts

    def value(self, value: Any, place: str = "payload") -> Any:
        """Copy a value; `place` names the value in an error.

        Raises:
            PayloadError: The value is not plain JSON, or too large; the message names the place.
        """
        if value is None:
            return None
        copy, texts, most_bytes = copy_value(value, place)
        # The exact size is computed only where the bound is too large: it costs a walk and a text.
        if most_bytes > MOST_BYTES and (size := len(dumps(copy))) > MOST_BYTES:
            raise PayloadError(
                f"{place} has {size:,} bytes as JSON, and at most {MOST_BYTES:,} go into an event; "
                "keep it elsewhere, and send where it is"
            )
        return redact(copy) if self._redacts and may_hold_secrets(texts) else copy

    def mask(self, value: Any) -> Any:
        """Mask secrets in words of the monitor's parts, which may quote payloads."""
        if not (self._redacts and may_hold_secrets((repr(value),))):
            return value
        return redact(value)

    def external(self, output: Output) -> Output:
        """A copy of an event from outside.

        Raises:
            DecisionError: The output is final, or not put together right.
            PayloadError: The payload is not plain JSON, or too large.
        """
        check_decision((), (), (output,), outside=True)
        return self._output(output)

    def ending(
        self, inputs: Collection[str], fates: Sequence[Fate], outputs: Sequence[Output],
        usage: Any, error: str | None,
    ) -> tuple[list[Output], Any, str | None]:  # fmt: skip
        """Copy the outputs, usage and error of an activation's end.

        Args:
            inputs: The events that it sees.
            fates: The fates of its events.
            outputs: The outputs that it generates.
            usage: The cost of the activation, plain JSON.
            error: The error's text, if the activation failed.

        Returns:
            The outputs, the usage and the error.

        Raises:
            DecisionError: The fates or outputs do not fit the activation.
            PayloadError: A payload or the usage is not plain JSON, or too large.
        """
        check_decision(inputs, fates, outputs)
        copies = [*map(self._output, outputs)]
        if usage is not None:
            usage = self.value(usage, "usage")
        return copies, usage, error if error is None else self.error(error)

    def error(self, text: str) -> str:
        """Make an error's text fit to keep: without secrets, and cut."""
        if self._redacts:
            text = mask_secrets(text)
        return text if len(text) <= MOST_IN_ERROR else f"{text[: MOST_IN_ERROR - 1]}…"

    def _output(self, output: Output) -> Output:
        payload, to = self.value(output.payload), tuple(output.to)
        if payload is output.payload and to is output.to:
            return output  # neither can change
        return Output(payload, to, output.type, output.final, output.policy, output.traceparent)


def check_decision(
    inputs: Collection[str], fates: Sequence[Fate], outputs: Sequence[Output],
    *, outside: bool = False,
) -> None:  # fmt: skip
    """Check fates and outputs against the inputs of their activation.

    Args:
        inputs: The events that the activation sees.
        fates: The fates of its events.
        outputs: The outputs that it generates.
        outside: Whether there is no activation, as for an event from outside.

    Raises:
        DecisionError: One does not fit; the message says which one, and why.
    """
    open_inputs = set(inputs)
    for fate in fates:
        if fate.event not in open_inputs:
            again = "a second time" if fate.event in inputs else "which is not in front of it"
            raise DecisionError(f"the decision names event {fate.event!r}, {again}")
        open_inputs.remove(fate.event)
        if fate.fate not in FATES:
            raise DecisionError(f"{fate.fate!r} is no fate; choose one of {', '.join(FATES)}")
        if fate.to is not _NOBODY and not are_names(fate.to):
            raise DecisionError(
                f"the reroute of {fate.event!r} must be a list of agents' names, not {fate.to!r}"
            )
    has_answer = False
    for output in outputs:
        if not isinstance(output, Output):
            raise DecisionError(f"{output!r:.60} is no Output; write Output(payload, to=[...])")
        if not isinstance(output.type, str) or not output.type:
            raise DecisionError(f"an event's type must be a name, not {output.type!r}")
        if not (output.traceparent is None or isinstance(output.traceparent, str)):
            raise DecisionError(f"a traceparent must be a string, not {output.traceparent!r}")
        if not are_names(output.to):
            raise DecisionError(
                f"an event's recipients must be a list of agents' names, not {output.to!r}"
            )
        has_answer = has_answer or bool(output.final)
    if has_answer and (outside or len(outputs) > 1):
        raise DecisionError("a final event must be the only output of an activation")


# --- what a host reports besides the graph ---


def waiting_detail(
    graph: InteractionGraph, activation: str | None, event: str | None
) -> dict[str, Any]:
    """The detail of an incident `waits`.

    Raises:
        RequestError: There is no such activation in progress, no such event, or both are named.
    """
    if event is None and activation in graph.running:
        return {"activation": activation}
    if activation is None and event is not None and graph.knows(event):
        return {"event": event}
    raise RequestError(
        f"activation {activation!r:.60} and event {event!r:.60} cannot wait: name an activation in "
        "progress, or an event, and not both"
    )


def failure_detail(
    graph: InteractionGraph,
    failure: str,
    event: str | None,
    activation: str | None,
    error: str | None,
) -> dict[str, Any]:
    """The detail of an incident `request_failed`, without anything unknown to the graph.

    Raises:
        RequestError: There is no such way to fail, or the event is not from outside.
    """
    if failure not in FAILURES:
        raise RequestError(
            f"{failure!r:.60} is no way to fail; choose one of {', '.join(FAILURES)}"
        )
    if event is not None and graph.knows(event) and graph.event(event).by is not None:
        raise RequestError(f"event {event!r:.60} is not from outside, so it poses no request")
    is_known = {
        "event": event is not None and graph.knows(event),
        "activation": activation is not None and graph.history.activation(activation) is not None,
        "error": error is not None,
    }
    named = {"event": event, "activation": activation, "error": error}
    return {"how": failure} | {key: value for key, value in named.items() if is_known[key]}


# --- names ---


def are_names(names: object) -> bool:
    """Whether a value is a list or tuple of names; a single name is not."""
    if not isinstance(names, tuple | list):
        return False
    for name in names:  # noqa: SIM110 (a generator costs more than the loop)
        if not isinstance(name, str):
            return False
    return True
