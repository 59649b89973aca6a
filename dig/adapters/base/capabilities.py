"""Declared capabilities of wrapped teams, and substitutes for missing capabilities.

An adapter declares a set of these names. A capability that a user demands and the adapter lacks is
refused when the team is wrapped; an intervention that needs such a capability becomes something
lesser, or nothing, and an `incident` in the trace says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from dig.detectors.interventions import Act, Inject, Intervention, Replace, Reroute
from dig.detectors.notes import as_system_event, quote
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph

CAPABILITIES = {
    "annotate": "a note beside an event is shown to the agent that gets the event",
    "tell": "a system event is shown to its agents, with their next turn at the latest",
    "wake": "a system event reaches an agent that waits, at once",
    "hold": "a gate may keep an event, while agents that are not concerned go on",
    "bounce": "an early answer goes back to the agent that submitted it",
    "reroute": "an event on its way goes to another agent instead",
    "redeliver": "an event that is lost or late is given to an agent, which is started for it",
    "reassign": "an event that an agent keeps is given to another one, which is started for it",
    "replace": "an agent is taken out of the team; what it still says is not passed on",
    "restart": "a problem is given to another agent, from the beginning",
    "stop": "at a limit of the budget the next turn does not begin",
    "meter": "the tokens that its agents use are known",
    "hand_back": "at a limit the entry agent has one more turn, to hand back what there is",
    "sample": "requests outside a sample leave no trace, and no detector looks at them",
}
"""The possible capabilities, and their meaning."""

HOOKED = frozenset({"annotate", "tell", "hold", "bounce", "stop", "meter", "hand_back", "sample"})
"""The capabilities of teams whose agents are called by `HookedCall`."""

RELIEVING = frozenset({"reassign", "restart"})
"""Capabilities to ask another agent: any agent, if the agent that healing wants cannot."""

Veto = Callable[[Reroute], str | None]
"""Returns the reason why an event cannot be sent elsewhere at this moment; ``None``: it can."""


def names_in(names: Iterable[str], option: str) -> frozenset[str]:
    """Check an option whose value is a set of names.

    Raises:
        SettingsError: The value is no list of names; a string would be taken for its letters.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise SettingsError(f"{option}={names!r:.60} is no set of names, such as {{'bounce'}}")
    return frozenset(names)


def check_capabilities(names: Iterable[str], option: str) -> frozenset[str]:
    """Check a set of capabilities.

    Raises:
        SettingsError: A name is unknown; the message lists the known names.
    """
    capabilities = names_in(names, option)
    unknown = sorted(capabilities - CAPABILITIES.keys())
    if unknown:
        listed = ", ".join(CAPABILITIES)
        raise SettingsError(f"{option} names {', '.join(unknown)}; there is: {listed}")
    return capabilities


def allowing(allow: Iterable[str], allowable: Collection[str]) -> frozenset[str]:
    """Check the allowed capabilities, which may run code of the user once more.

    Raises:
        SettingsError: A name is unknown, or cannot be allowed here.
    """
    allowed = check_capabilities(allow, "allow")
    if not allowed <= {*allowable}:
        raise SettingsError(f"allow can name {', '.join(allowable)}, not {sorted(allowed)}")
    return allowed


def demand(required: Iterable[str], declared: frozenset[str], team: str) -> None:
    """Refuse demanded capabilities without declaration by the adapter.

    Raises:
        SettingsError: The message lists the missing capabilities and the declared ones.
    """
    missing = sorted(check_capabilities(required, "require") - declared)
    if missing:
        has = ", ".join(sorted(declared)) or "nothing"
        raise SettingsError(f"{team} cannot {', '.join(missing)}; it can: {has}")


@dataclass
class Fitting:
    """Adapts interventions to the capabilities of a team; a `Fit` of the monitor."""

    _can: frozenset[str]
    _veto: Veto  # asked about every event that is to be sent elsewhere, though this is declared

    def __call__(
        self, graph: InteractionGraph, wish: Act
    ) -> tuple[Intervention | None, str | None]:
        """Return the possible part of an intervention, and the reason for the lost part."""
        if isinstance(wish, Reroute):
            return self._fit_reroute(graph, wish)
        if isinstance(wish, Replace):
            return (wish, None) if "replace" in self._can else (None, "replace is not declared")
        is_note = isinstance(wish, Inject)
        if ("annotate" if is_note else "tell") in self._can:
            return wish, None
        return None, f"agents here are shown no {'notes' if is_note else 'system events'}"

    def _fit_reroute(
        self, graph: InteractionGraph, wish: Reroute
    ) -> tuple[Intervention | None, str | None]:
        event = graph.event(wish.event)
        is_held = event.final or bool(event.flight)
        capability = "bounce" if event.final else "reroute" if is_held else "redeliver"
        if wish.action != "reroute":
            capability = wish.action
        reason = self._why_not(wish) if capability in self._can else f"{capability} is not declared"
        if reason is None:
            return wish, None
        if capability in RELIEVING & self._can:
            wishes = (replace(wish, to=(agent,)) for agent in graph.agents)
            possible = next((other for other in wishes if self._why_not(other) is None), None)
            if possible is not None:
                return possible, reason
        # The lesser means: a note beside an event on its way, else a system event to the agent.
        if is_held and wish.action == "reroute":
            kept = Inject(wish.event, _address(wish, event.flight))
            return (kept if "annotate" in self._can else None), reason
        can_tell = "tell" in self._can and wish.to
        return (as_system_event(graph, wish) if can_tell else None), reason

    def _why_not(self, wish: Reroute) -> str | None:
        try:
            return self._veto(wish)
        except Exception as error:  # of the adapter, which then cannot reroute either
            return f"its wrapper raised {error!r}"


def _address(wish: Reroute, readers: Collection[str]) -> str:
    """The note of a lost reroute for the agents that the event stays with: one is called `you`."""
    note = wish.note
    for agent in {*wish.without} & {*readers} if len(readers) == 1 else ():
        note = note.replace(quote(agent), "you")
        note = note[:1].upper() + note[1:]
    return note


MOST_BOUNCES = 2
"""The greatest number of times that answers to one request go back, whatever healing wants."""


class BounceLimit:
    """A limit of the answers sent back, for each request from outside."""

    def __init__(self) -> None:
        self._bounced: dict[str, set[str]] = {}  # request -> the answers that have gone back

    def why_not(self, graph: InteractionGraph, answer: str) -> str | None:
        """Return why an answer cannot go back once more; ``None``: possible, and counted now."""
        for request in [request for request in self._bounced if not graph.knows(request)]:
            del self._bounced[request]  # closed and evicted
        requests = graph.asked_problems(answer)
        bounced = [self._bounced.setdefault(request, set()) for request in requests]
        if any(len(answers - {answer}) >= MOST_BOUNCES for answers in bounced):
            return f"answers to this request have gone back {MOST_BOUNCES} times already"
        for answers in bounced:
            answers.add(answer)
        return None
