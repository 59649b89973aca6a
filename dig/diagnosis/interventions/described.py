"""An activation in words, for a language model to read."""

from __future__ import annotations

from collections.abc import Iterator

from dig._util.text import one_line
from dig.runtime.llm.encoding import encoded
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

MOST_PAYLOAD = 400
"""The number of characters of a payload that are shown."""

DID = {"consume": "used", "delay": "kept for later", "reroute": "passed on", "discard": "discarded"}


def described(run: RecordedRun, activation: RecordedActivation) -> str:
    """The account of an activation: its inputs, their fates, and the events it generated."""
    return "\n".join(_lines(run, activation))


def shown_payload(payload: object, most: int = MOST_PAYLOAD) -> str:
    """A payload as JSON on one line, cut."""
    return one_line(encoded(payload), most)


def _lines(run: RecordedRun, activation: RecordedActivation) -> Iterator[str]:
    end = activation.end
    until = f"to {end.us / 1e6:.1f} s" if end else "on, and it never ended"
    yield f"activation {activation.id}, from {activation.us / 1e6:.1f} s {until}"
    passed = {one.event: f" to {', '.join(one.to)}" for one in end.fates if one.to} if end else {}
    fates = {} if activation.has_failed else run.fates(activation.id)
    for name in activation.inputs:
        event = run.events[name]
        by = event.agent or event.by or "the environment"
        did, to = DID.get(fates.get(name, ""), "was given"), passed.get(name, "")
        yield f"{did} {event.type} {name} from {by}{to}: {shown_payload(event.payload)}"
    if end is not None and end.error is not None:
        yield f"failed: {one_line(end.error, MOST_PAYLOAD)}"
    for event in run.outputs(activation):
        yield f"{_sent(event)}: {shown_payload(event.payload)}"
    if not activation.outputs:
        yield "sent nothing"


def _sent(event: RecordedEvent) -> str:
    if event.final:
        how = "which was accepted" if event.accepted_t is not None else "which was not accepted"
        return f"gave the answer {event.id}, {how}"
    lost = "" if event.arrivals else ", where it never arrived"
    return f"sent {event.type} {event.id} to {', '.join(event.to)}{lost}"
