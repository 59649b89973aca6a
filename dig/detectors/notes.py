"""The parts of a note to agents: ids, names and words, quoted and cut.

A note quotes ids, names, types of events and, of work that is missing, the first words of its
payload. All these can be anything: each is cut, stays on its line and inside its quotation marks.
Text that some servers take for the beginning of a role (`<|im_start|>`, `[INST]`) is written with
round brackets, since a framework puts notes into prompts as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from dig._util.text import cut, one_line, value_text
from dig.graph.graph import InteractionGraph
from dig.graph.records import HANDOFF, NOTICE, TOOL_CALL

from .finding import JUDGE, Finding
from .interventions import Create, Inject, Reroute

PREFIX = f"{JUDGE}:"


MOST_LISTED = 12
MOST_QUOTED = 3
MOST_CHARACTERS = 64
MOST_COMPARED = 1_000

_HARMLESS = str.maketrans("`<>[]", "'()()")


def quote(name: object) -> str:
    """Quote an id or an agent's name for a note."""
    return f"`{harmless(one_line(name, MOST_CHARACTERS))}`"


def harmless(text: str) -> str:
    """Replace characters with a meaning in prompts: quotations, roles, links."""
    return text.translate(_HARMLESS)


def quote_all(names: Sequence[object]) -> str:
    """Quote several ids for a note, cut if there are many."""
    if not names:
        return "nothing"
    return cut([*map(quote, names[:MOST_LISTED])], most=MOST_LISTED, of=len(names))


def describe_events(graph: InteractionGraph, events: Sequence[str]) -> str:
    """Describe the state of some events; of many, the first few, and the others' ids."""
    first = "; ".join(_describe_event(graph, event) for event in events[:MOST_QUOTED])
    remaining = events[MOST_QUOTED:]
    return f"{first}; {quote_all(remaining)}" if remaining else first or "nothing"


def _describe_event(graph: InteractionGraph, name: str) -> str:
    event = graph.event(name)
    sender = graph.history.sender(event.n)
    parts = [quote(event.type) + (f" from {quote(sender)}" if sender else " from outside")]
    if event.copies:
        parts.append(f"in front of {quote_all(list(event.copies))}")
    if event.flight:
        parts.append(f"on its way to {quote_all(list(event.flight))}")
    if event.discarded_by:
        parts.append(f"discarded by {quote_all(list(event.discarded_by))}")
    return f"{quote(name)} ({', '.join(parts)})"


def as_system_event(graph: InteractionGraph, wish: Reroute) -> Create:
    """Turn a reroute into words, for a host without rerouting.

    Work that was to be given to another agent stays where it is, so no word asks for it twice.
    """
    note, gives_work = wish.note, wish.action != "reroute"
    if note and (gives_work or quote(wish.event) not in note):
        event = describe_events(graph, [wish.event])
        about = f"About {event}: {note}"
        note = f"{event} is not done yet, and is still with its agent." if gives_work else about
    return Create(note, wish.to, wish.without)


def reader(graph: InteractionGraph, event: str) -> str | None:
    """The event to put a note about an event beside.

    A tool reads no notes: what is said about a call of one is for the agent that calls, beside the
    continuation of its turn.

    Returns:
        The event itself, that continuation, or ``None`` if the agent has no turn that goes on.
    """
    state, h = graph.event(event), graph.history
    if state.type != TOOL_CALL:
        return event
    # The turn of the calling agent goes on with a notice to itself, which the agent reads.
    v = h.generator[state.n]
    for n in h.outputs(v):
        other = graph.event(h.event_ids[n])
        if other.type == NOTICE and h.agent(v) in (*other.flight, *other.copies):
            return other.id
    return None


def absent(graph: InteractionGraph, event: str) -> str:
    """The missing recipients of an event, and the agents of the team.

    Empty, if all are there, or the names are not known any more.
    """
    from difflib import get_close_matches  # only where something was sent to nobody

    present = list(graph.agents)
    missing = [name for name in graph.event(event).sent_to if name not in graph.agents]
    if not missing:
        return ""
    verb = "is" if len(missing) == 1 else "are"
    text = f"{quote_all(missing)} {verb} not there; present are {quote_all(present)}"
    misspelt = missing[0][:MOST_CHARACTERS]
    # The comparison is quadratic in the length of names, and names come from outside.
    near = [name for name in present[:MOST_COMPARED] if len(name) <= MOST_CHARACTERS]
    close = get_close_matches(misspelt, near, 1)
    return f"{text}; did you mean {quote(close[0])}? " if close else f"{text}. "


def nobody_takes(graph: InteractionGraph, event: str) -> str:
    """The reason why a lost event never had a recipient; empty: the event had one."""
    state = graph.event(event)
    if state.cause != "no_recipient" or any(name in graph.agents for name in state.sent_to):
        return ""
    if state.type == HANDOFF and not state.sent_to:  # the framework carried out another one
        return ""
    if not state.sent_to:
        return f"nobody takes {quote(state.type)}"
    return f"there is no {quote_all(state.sent_to)}; the team has {quote_all(list(graph.agents))}"


def words(work: Iterable[tuple[str, object]]) -> str:
    """The first words of some events' payloads, as a sentence of a note.

    Args:
        work: The id and the payload of each event; those without a payload are left out.
    """
    shown: list[str] = []
    for event, payload in work:
        text = value_text(payload) if isinstance(payload, dict | list | tuple) else payload
        shown += [] if payload is None else [f"{quote(event)} says {quote(text)}"]
    says = "; ".join(shown)
    return f"Work is missing, in its own words (quoted and cut): {says}. " if shown else ""


def list_outputs(graph: InteractionGraph, activations: Sequence[str]) -> str:
    """The agent and the outputs of each of some activations."""
    h = graph.history
    numbers = [v for v in map(h.activation, activations[:MOST_QUOTED]) if v is not None]
    outputs = {v: quote_all([h.event_ids[n] for n in h.outputs(v)]) for v in numbers}
    shown = " and ".join(f"{quote(h.agent(v))} made {events}" for v, events in outputs.items())
    return f"{shown} and others more" if len(activations) > len(outputs) else shown


def ancestry(graph: InteractionGraph, event: str) -> str:
    """The root activations of an event, with the agents."""
    h, roots = graph.history, graph.root_numbers(event)
    first = [h.root_activations[number] for number in islice(roots, MOST_QUOTED)]
    shown = [f"{quote(h.activation_ids[v])} of {quote(h.agent(v))}" for v in first]
    return cut(shown, most=MOST_QUOTED, of=len(roots))


def ancestries(graph: InteractionGraph, events: Sequence[str]) -> str:
    """The root activations of some events."""
    shown = [f"{quote(e)} from {ancestry(graph, e)}" for e in events[:MOST_QUOTED]]
    return cut(shown, "; ", most=MOST_QUOTED, of=len(events))


def into_outputs(graph: InteractionGraph, finding: Finding, note: str) -> Iterator[Inject]:
    """Put a note beside each undelivered output of the activation in a finding."""
    v = graph.history.activation(finding.subject["activation"])
    # A note beside a delivered event would come too late, since the recipient may have read it.
    for n in graph.history.outputs(v) if v is not None else ():
        event = graph.event(graph.history.event_ids[n])
        if event.flight or event.final or event.cause:
            yield Inject(event.id, note)
