"""Interventions: what healing may do, by which means, and how often."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Literal, get_args

from dig.graph.graph import InteractionGraph

COOLDOWN_S = 1.0
"""Seconds before a healer says the same again where it could be said at once."""


@dataclass(frozen=True, slots=True)
class Inject:
    """Put a note beside the payload of an event; `to` restricts who is shown it."""

    event: str
    note: str
    to: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reroute:
    """Put a note beside the payload of a held event, and send it to others instead.

    It arrives after `in_s` seconds, or with the next event that does; until then it is on its way.
    What a gate sends arrives at once: it has kept the event for as long as it liked.
    """

    event: str
    note: str
    to: tuple[str, ...]
    in_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Create:
    """Make a system event with a note and deliver it to some agents."""

    note: str
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do nothing, and have it written down why."""

    reason: str


Act = Inject | Reroute | Create
Intervention = Act | Refuse

Fit = Callable[[InteractionGraph, Act], tuple[Intervention | None, str | None]]
"""Says what a host can do of an intervention: it, a lesser one or none; and why not all of it."""

Means = Literal["bounce", "redirect", "create", "note"]
"""A means of healing: to return an answer to its submitter, to send other work elsewhere, to make
a system event, or to put a note beside an event."""

MEANS: tuple[Means, ...] = get_args(Means)


def only(means: Collection[Means], fit: Fit | None = None) -> Fit | None:
    """A fit that leaves healing some means; what a host can do besides is asked afterwards.

    A reroute without its means is a note. Without notes a reroute and a system event have no words:
    the event still goes elsewhere, the agents are still woken. What nothing is left of is refused,
    with the reason.
    """
    if set(MEANS) <= set(means):
        return fit

    def fitted(graph: InteractionGraph, wish: Act) -> tuple[Intervention | None, str | None]:
        allowed = _allowed(graph, wish, means)
        if fit is None or isinstance(allowed, Refuse):
            return allowed, None
        return fit(graph, allowed)

    return fitted


def _allowed(graph: InteractionGraph, wish: Act, means: Collection[Means]) -> Intervention:
    if isinstance(wish, Reroute):
        if ("bounce" if graph.event(wish.event).final else "redirect") in means:
            return wish if "note" in means else replace(wish, note="")
        wish = Inject(wish.event, wish.note)
    needed = "create" if isinstance(wish, Create) else "note"
    if needed in means:
        return wish if "note" in means else replace(wish, note="")
    return Refuse(f"healing may not use the means {needed!r} in this run")


@dataclass(frozen=True, slots=True)
class Budget:
    """How many findings may be healed, so that healing always ends.

    A finding beyond it is still raised, and its healing recorded as refused. In a session the
    counts begin anew when a final event is accepted.

    Attributes:
        per_run: In the whole run. The default lets a team of twenty that stumbles often be
            helped all through a run of some hundred activations.
        per_pattern: For one pattern; a part of a run's, so that one cannot use up all of it.
        per_subject: For one pattern and one subject. What three notes about the same thing have
            not mended, a fourth will not.
    """

    per_run: int = 100
    per_pattern: int = 30
    per_subject: int = 3
