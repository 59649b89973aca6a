"""An activation in words, for a language model to read."""

from __future__ import annotations

from collections.abc import Iterator

from dig._util.text import one_line
from dig.runtime.llm.encoding import encode_json
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

MOST_PAYLOAD = 400
"""The most characters of a payload."""

DID = {"consume": "used", "delay": "kept for later", "reroute": "passed on", "discard": "discarded"}


def describe_activation(run: RecordedRun, activation: RecordedActivation) -> str:
    """Describe an activation: the inputs, the fates, and the generated events."""
    return "\n".join(_lines(run, activation))


def payload_text(payload: object, most: int = MOST_PAYLOAD) -> str:
    """Return a payload as JSON on a line, cut."""
    return one_line(encode_json(payload), most)


def _lines(run: RecordedRun, activation: RecordedActivation) -> Iterator[str]:
    end = activation.end
    until = f"to {end.us / 1e6:.1f} s" if end else "on, and it never ended"
    yield f"activation {activation.id}, from {activation.us / 1e6:.1f} s {until}"
    fates = end.fates if end else ()
    passed = {fate.event: f" to {', '.join(fate.to)}" for fate in fates if fate.to}
    fate_of = {} if activation.has_failed else run.fates(activation.id)
    for name in activation.inputs:
        event = run.events[name]
        by = event.agent or event.by or "the environment"
        did, to = DID.get(fate_of.get(name, ""), "was given"), passed.get(name, "")
        yield f"{did} {event.type} {name} from {by}{to}: {payload_text(event.payload)}"
    if end is not None and end.error is not None:
        yield f"failed: {one_line(end.error, MOST_PAYLOAD)}"
    for event in run.outputs(activation):
        yield f"{_sent(event)}: {payload_text(event.payload)}"
    if not activation.outputs:
        yield "sent nothing"


def _sent(event: RecordedEvent) -> str:
    if event.final:
        status = "which was accepted" if event.accepted_t is not None else "which was not accepted"
        return f"gave the answer {event.id}, {status}"
    suffix = "" if event.arrivals else ", where it never arrived"
    return f"sent {event.type} {event.id} to {', '.join(event.to)}{suffix}"
