"""How notes speak: of ids and names, quoted and cut, and of what the graph knows about them.

A note never quotes what an agent wrote: what stands in a payload can be anything. So can a name,
and the type of an event is an agent's to choose: each stays on its line and in its quotation marks.
What some servers would take for the beginning of a role (`<|im_start|>`, `[INST]`) is written with
round brackets, since a framework puts notes into prompts as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from dig._util.text import one_line
from dig.graph.graph import InteractionGraph

MOST_LISTED = 12
MOST_QUOTED = 3
MOST_CHARACTERS = 64

_HARMLESS = str.maketrans("`<>[]", "'()()")


def quoted(name: object) -> str:
    """An id or an agent's name as a note shows it."""
    shown = one_line(name, MOST_CHARACTERS).translate(_HARMLESS)
    return f"`{shown}`"


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
    """Who made what, in some activations."""
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
    """Where some events come from."""
    shown = "; ".join(f"{quoted(e)} from {ancestry(graph, e)}" for e in events[:MOST_QUOTED])
    more = f"; and {len(events) - MOST_QUOTED} more" if len(events) > MOST_QUOTED else ""
    return shown + more
