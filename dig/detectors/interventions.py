"""Interventions: the actions of healing, the means, and the budget."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Literal, get_args

from dig.graph.graph import InteractionGraph

COOLDOWN_S = 1.0
"""Seconds before a healer says the same again where it could be said at once."""


@dataclass(frozen=True, slots=True)
class Inject:
    """Put a note beside the payload of an event; only agents of `to` see the note."""

    event: str
    note: str
    to: tuple[str, ...] | None = None


Sending = Literal["reroute", "redeliver", "reassign", "restart"]
"""Why an event is sent: elsewhere instead; once more, since it is late or lost; to others as well,
since those that have it do not act; or once more although it was consumed: a problem, from the
beginning."""


@dataclass(frozen=True, slots=True)
class Reroute:
    """Put a note beside the payload of an event, and send the event to some agents.

    The recipients replace those that the event is on its way to; agents that have the event keep
    it. It arrives after `in_s` seconds, or with the next event that arrives. An event that a gate
    sends arrives at once, since the gate has kept it already.

    Attributes:
        to: The recipients.
        in_s: The seconds until the event arrives.
        action: The reason for sending the event, as the trace says.
        without: Agents whose part the recipients are to do, as data beside the note.
    """

    event: str
    note: str
    to: tuple[str, ...]
    in_s: float = 0.0
    action: Sending = "reroute"
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Create:
    """Make a system event with a note for some agents; `without` as in `Reroute`."""

    note: str
    to: tuple[str, ...]
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Replace:
    """Take an agent out of the team, after its work was sent to others."""

    agent: str
    why: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do nothing, and record the reason."""

    reason: str


Act = Inject | Reroute | Create | Replace
Intervention = Act | Refuse

STEPS = ("reroute", "redeliver", "reassign", "replace", "restart")
"""The actions of healing that a policy can refuse by name; the others are notes."""

BEYOND_NOTES = ("reassign", "replace", "restart")
"""The actions that are steps of a ladder alone; they have a budget of their own."""


def action_of(intervention: Intervention) -> str:
    """The word of a trace for an intervention: `inject`, `restart`, ..."""
    if isinstance(intervention, Reroute):
        return intervention.action
    return "refused" if isinstance(intervention, Refuse) else type(intervention).__name__.lower()


Fit = Callable[[InteractionGraph, Act], tuple[Intervention | None, str | None]]
"""Says what a host can do of an intervention: it, a lesser one or none; and why not all of it."""

Means = Literal["bounce", "redirect", "create", "note"]
"""A means of healing: to return an answer to its submitter, to send other work elsewhere (and to
take out the agent that has it), to make a system event, or to put a note beside an event."""

MEANS: tuple[Means, ...] = get_args(Means)


def only(means: Collection[Means], fit: Fit | None = None) -> Fit | None:
    """Limit healing to some means, before a host fits an intervention to its abilities.

    A reroute without its means is a note. Without notes a reroute and a system event have no words:
    the event still goes elsewhere, the agents are still woken. What nothing is left of is refused,
    with the reason.
    """
    # With all means there is nothing to restrict, and no further call for each intervention.
    if set(MEANS) <= set(means):
        return fit

    def restrict(graph: InteractionGraph, wish: Act) -> tuple[Intervention | None, str | None]:
        allowed = _restrict(graph, wish, means)
        if fit is None or isinstance(allowed, Refuse):
            return allowed, None
        return fit(graph, allowed)

    return restrict


def _restrict(graph: InteractionGraph, wish: Act, means: Collection[Means]) -> Intervention:
    if isinstance(wish, Reroute):
        if ("bounce" if graph.event(wish.event).final else "redirect") in means:
            return wish if "note" in means else replace(wish, note="")
        # Without the means to send an event, its words can still be read where the event lies.
        wish = Inject(wish.event, wish.note)
    if isinstance(wish, Replace):
        return wish if "redirect" in means else _not_in(means, "redirect")
    means_needed: Means = "create" if isinstance(wish, Create) else "note"
    if means_needed in means:
        return wish if "note" in means else replace(wish, note="")
    return _not_in(means, means_needed)


def _not_in(means: Collection[Means], means_needed: Means) -> Refuse:
    return Refuse(f"healing may not use the means {means_needed!r} in this run")


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds on the number of healed findings, so healing always ends.

    A finding beyond it is still raised, and its healing recorded as refused. In a session the
    counts begin anew when a final event is accepted.

    Attributes:
        per_run: In the whole run. The default lets a team of twenty that stumbles often be
            helped all through a run of some hundred activations.
        per_pattern: For one pattern; a part of a run's, so that one cannot use up all of it.
        per_subject: For one pattern and one subject. What three notes about the same thing have
            not mended, a fourth will not. A ladder has as many steps.
        per_problem: The number of times that work, or an agent's place, may be given to others
            (`BEYOND_NOTES`).
    """

    per_run: int = 100
    per_pattern: int = 30
    per_subject: int = 3
    per_problem: int = 12
