"""The adapter for plain async callables, and objects with async methods.

A team is a dict or list of these, or one object whose async methods are the agents. It is changed
in place, so that agents that look each other up in it find each other monitored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial, wraps
from inspect import Parameter, signature
from typing import Any

from dig.adapters.base import (
    AdapterState,
    Attached,
    Call,
    Deliver,
    NoteDelivery,
    Session,
    WrapPlan,
    as_call,
    known,
)
from dig.detectors.interventions import Reroute
from dig.errors import SettingsError

from .callables import CallablePlace, Function, places_of, replace_all

Annotate = Callable[[tuple[Any, ...], dict[str, Any], tuple[str, ...]], Any]
"""Puts notes into the arguments of a call: `(args, kwargs, notes) -> (args, kwargs)`."""

SURE = frozenset({"annotate", "tell", "hold"})
ALLOWABLE = ("bounce", "reroute")


def plan(
    team: Any,
    *,
    allow: Iterable[str] = (),
    annotate: Annotate | None = None,
    deliver: Deliver | None = None,
) -> WrapPlan:
    """Look at a team of plain callables.

    Args:
        team: A dict, list or object.
        allow: What else may be done. `bounce`: an agent whose answer was early is called again,
            with the same arguments and a note. `reroute`: another agent is called instead, with
            the arguments that were meant for the first.
        annotate: Puts notes into the arguments of a call; by default they are given to callables
            that have a parameter `notes`, and to all by `dig.notes()`.
        deliver: Told of what healing says to an agent (its name, and a note) when no call brings
            it; runs on the loop of the latest request.

    Raises:
        SettingsError: It has no agents, or one that is not async; or an option makes no sense.
    """
    allowed = known(allow, "allow")
    if not allowed <= {*ALLOWABLE}:
        raise SettingsError(f"allow can name {', '.join(ALLOWABLE)}, not {sorted(allowed)}")
    callables = PlainTeam(list(places_of(team)), annotate, deliver)
    if not callables.agents:
        raise SettingsError(
            f"{team!r:.60} is no team: a dict or list of async callables or of objects with "
            "async methods, or one such object; another needs an adapter (docs/wrapping.md)"
        )
    return WrapPlan(
        "a team of plain callables",
        callables.agents,
        partial(callables.attach, team),
        SURE | allowed | ({"wake"} if deliver else set()),
        callables.why_not,
        callables.notes.on_note,
    )


class PlainTeam:
    """The callables of one team, from looking at them to putting them back.

    Attributes:
        agents: The agents' names.
        notes: Brings them notes.
    """

    def __init__(
        self,
        places: list[CallablePlace],
        annotate: Annotate | None,
        deliver: Deliver | None,
    ) -> None:
        """Prepare; nothing is changed yet.

        Args:
            places: Where the callables are.
            annotate: Puts notes into the arguments of a call.
            deliver: Brings an agent a note at once.
        """
        self._places = places
        self._annotate = annotate
        self.notes = NoteDelivery(deliver)
        self._session: Session | None = None
        self.agents = tuple(dict.fromkeys(place.agent for place in places))
        # An agent with one callable can stand in for another.
        self._works = {place.agent: self._work(place) for place in places if not place.method}

    def attach(self, team: Any, session: Session) -> Attached:
        """Put the session between them."""
        self._session = session
        self.notes.state = AdapterState(session)
        return Attached(team, replace_all(self._places, partial(self.monitored, session)))

    def monitored(self, session: Session, place: CallablePlace) -> Function:
        """An async callable that does what another does, and tells the session of it."""
        own, works = self._work(place), self._works

        @wraps(place.function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            payload = as_call(args, kwargs)
            if place.method:
                payload = {"method": place.method, "with": payload}
            if self.notes.on_note is not None:
                self.notes.loop.bind_to_current_loop()

            def work(agent: str, notes: tuple[str, ...]) -> Awaitable[Any]:
                return (own if agent == place.agent else works[agent])(args, kwargs, notes)

            return await Call(session, place.agent, payload).run(work)

        return call

    def why_not(self, wish: Reroute) -> str | None:
        """Why a call cannot go elsewhere; ``None``: it can."""
        if self._session is None or len(wish.to) != 1 or wish.to[0] not in self._works:
            return "a call goes to one agent that is a function"
        instances = self._session.instances
        flight = self._session.monitor.graph.event(wish.event).flight
        if not all(map(instances.is_awaited, flight)):
            return "an answer goes to who has asked"
        return None if instances.is_free(wish.to[0]) else f"{wish.to[0]} is at work"

    def _work(self, place: CallablePlace) -> Callable[..., Awaitable[Any]]:
        function, takes_notes = place.function, _takes_notes(place.function)

        def work(
            args: tuple[Any, ...], kwargs: Mapping[str, Any], notes: tuple[str, ...]
        ) -> Awaitable[Any]:  # no coroutine of its own, so no frame on the stack
            session = self._session
            if session is None or session.mode == "observe" or not notes:
                return function(*args, **kwargs)
            if self._annotate is not None:
                given, named = session.guard.call(
                    _annotated, self._annotate, args, kwargs, notes, default=(args, kwargs)
                )
                return function(*given, **named)
            if takes_notes and "notes" not in kwargs:
                return function(*args, **kwargs, notes=notes)
            return function(*args, **kwargs)

        return work


def _annotated(
    annotate: Annotate, args: tuple[Any, ...], kwargs: Mapping[str, Any], notes: tuple[str, ...]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    given, named = annotate(args, dict(kwargs), notes)
    return tuple(given), dict(named)


def _takes_notes(function: Function) -> bool:
    try:
        found = signature(function).parameters.get("notes")
    except (TypeError, ValueError):
        return False
    return found is not None and found.kind in (
        Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD
    )  # fmt: skip
