"""The parts of a note to agents: ids and names, quoted and cut, with what the graph knows of them.

A note never quotes a payload, which can be anything. So can a name and the type of an event: each
stays on its line and inside its quotation marks. Text that some servers take for the beginning of a
role (`<|im_start|>`, `[INST]`) is written with round brackets, since a framework puts notes into
prompts as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from dig._util.text import one_line
from dig.graph.graph import InteractionGraph

from .finding import Finding
from .interventions import Inject

MOST_LISTED = 12
MOST_QUOTED = 3
MOST_CHARACTERS = 64

_HARMLESS = str.maketrans("`<>[]", "'()()")


def quoted(name: object) -> str:
    """An id or an agent's name as a note shows it."""
    return f"`{harmless(one_line(name, MOST_CHARACTERS))}`"


def harmless(text: str) -> str:
    """A text that can end no quotation in a note, and begin no role and no link."""
    return text.translate(_HARMLESS)


def listed(names: Sequence[object]) -> str:
    """Some ids as a note lists them, cut where there are many."""
    if not names:
        return "nothing"
    shown = ", ".join(quoted(name) for name in names[:MOST_LISTED])
    more = len(names) - MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def described(graph: InteractionGraph, events: Sequence[str]) -> str:
    """Some events with what is known of them; of many, the first few, and the others' ids."""
    first = "; ".join(_described(graph, event) for event in events[:MOST_QUOTED])
    others = events[MOST_QUOTED:]
    return f"{first}; {listed(others)}" if others else first or "nothing"


def _described(graph: InteractionGraph, name: str) -> str:
    event = graph.event(name)
    sender = graph.history.sender(event.n)
    known = [quoted(event.type) + (f" from {quoted(sender)}" if sender else " from outside")]
    if event.copies:
        known.append(f"in front of {listed(list(event.copies))}")
    if event.flight:
        known.append(f"on its way to {listed(list(event.flight))}")
    if event.discarded_by:
        known.append(f"discarded by {listed(list(event.discarded_by))}")
    return f"{quoted(name)} ({', '.join(known)})"


def made(graph: InteractionGraph, activations: Sequence[str]) -> str:
    """The agent and the outputs of each of some activations."""
    h = graph.history
    known = [h.activation(activation) for activation in activations[:MOST_QUOTED]]
    made = [(h.agent(v), [h.event_ids[n] for n in h.outputs(v)]) for v in known if v is not None]
    shown = " and ".join(f"{quoted(agent)} made {listed(events)}" for agent, events in made)
    return f"{shown} and others more" if len(activations) > len(made) else shown


def ancestry(graph: InteractionGraph, event: str) -> str:
    """The root activations of an event, with their agents."""
    h, roots = graph.history, graph.root_numbers(event)
    first = [h.root_activations[number] for number in islice(roots, MOST_QUOTED)]
    shown = [f"{quoted(h.activation_ids[v])} of {quoted(h.agent(v))}" for v in first]
    more = f" and {len(roots) - MOST_QUOTED} more" if len(roots) > MOST_QUOTED else ""
    return ", ".join(shown) + more


def ancestries(graph: InteractionGraph, events: Sequence[str]) -> str:
    """The root activations of some events."""
    shown = "; ".join(f"{quoted(e)} from {ancestry(graph, e)}" for e in events[:MOST_QUOTED])
    more = f"; and {len(events) - MOST_QUOTED} more" if len(events) > MOST_QUOTED else ""
    return shown + more


def into_outputs(graph: InteractionGraph, finding: Finding, note: str) -> Iterator[Inject]:
    """The note beside each output, not delivered yet, of the activation that a finding is about."""
    v = graph.history.activation(finding.subject["activation"])
    for n in graph.history.outputs(v) if v is not None else ():
        event = graph.event(graph.history.event_ids[n])
        if event.flight or event.final or event.cause:
            yield Inject(event.id, note)
