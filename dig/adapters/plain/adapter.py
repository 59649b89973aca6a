"""The adapter for plain callables: async ones, generators that are async, and functions.

A team is a dict, list or tuple of these, or of objects, or one object whose methods are the agents.
It is changed in place, so that agents that look each other up in it find each other monitored; a
tuple cannot be changed, so there the user gets another one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from inspect import Parameter, isasyncgenfunction, ismethod, signature
from types import MethodType
from typing import Any

from dig._util.redaction import masking_logger
from dig.adapters.base import (
    RELIEVING,
    AdapterState,
    Attached,
    Call,
    Deliver,
    NoteDelivery,
    RunAgent,
    Session,
    StreamedCall,
    WrapPlan,
    allowing,
    as_call,
    as_payload,
    current,
    like,
    names_in,
)
from dig.detectors.interventions import Reroute
from dig.errors import SettingsError

from .callables import CallablePlace, Function, TeamCallables, replace_all, shared_state
from .served import NOT_PLAIN, Served, serving

logger = masking_logger("dig.wrap")

Annotate = Callable[[tuple[Any, ...], dict[str, Any], tuple[str, ...]], Any]
"""Puts notes into the arguments of a call: `(args, kwargs, notes) -> (args, kwargs)`."""

PLAIN_TEAM = "a team of plain callables"
"""Such a team in words, as the side file of its run calls it."""

SURE = frozenset({"annotate", "tell", "hold"})
ALLOWABLE = ("bounce", "reroute", "reassign", "restart")


def plan(
    team: Any,
    *,
    allow: Iterable[str] = (),
    annotate: Annotate | None = None,
    deliver: Deliver | None = None,
    stateless: Iterable[str] = (),
) -> WrapPlan:
    """Look at a team of plain callables.

    Args:
        team: A dict, list or object.
        allow: The further actions allowed. `bounce`: an agent whose answer was early is called
            again, with the same arguments and a note. `reroute`: another agent is called instead,
            with the arguments that were meant for the first. `reassign`, `restart`: an agent that
            does not come back is cancelled, and another one is called with its arguments.
        annotate: Puts notes into the arguments of a call; by default they are given to callables
            that have a parameter `notes`, and to all by `dig.notes()`.
        deliver: Told of what healing says to an agent (its name, and a note) when no call brings
            it; runs on the loop of the latest request.
        stateless: The agents that keep nothing between calls: when the run is tried again with a
            change, they answer from its journal (docs/diagnosis.md). A callable with an attribute
            `stateless = True` needs no mention.

    Raises:
        SettingsError: The team has no agents, or an option makes no sense.
    """
    allowed = allowing(allow, ALLOWABLE)
    found, served = TeamCallables.of(team), serving.get()
    places = found.places
    declared = _stateless(places, stateless)
    if served is not None:
        _refuse_shared(places, team, declared)
        _refuse_not_awaited(places)
        if allowed & RELIEVING:
            raise SettingsError(
                "a team whose agents may be cancelled (reassign, restart) cannot run again from "
                "its record: the moment of that is not repeated; wrap it without these"
            )
    about: dict[str, Any] = {} if served is None else {**served.about}
    if declared:
        about["stateless"] = sorted(declared)
    callables = PlainTeam(places, annotate, deliver, declared, served)
    if not callables.agents:
        raise SettingsError(
            f"{team!r:.60} is no team: a dict, list or tuple of callables or of objects with "
            "methods, or one such object; another needs an adapter (docs/wrapping.md)"
        )
    return WrapPlan(
        PLAIN_TEAM,
        callables.agents,
        partial(callables.attach, found),
        SURE | allowed | ({"wake"} if deliver else set()),
        callables.why_not,
        callables.notes.on_note,
        about,
        served.session_parts if served else None,
    )


def _stateless(places: Iterable[CallablePlace], named: Iterable[str]) -> frozenset[str]:
    """The agents that are declared stateless."""
    agents, found = {place.agent for place in places}, names_in(named, "stateless")
    if not found <= agents:
        raise SettingsError(f"stateless names {sorted(found - agents)[0]!r}, which is no agent")
    marked = (one for one in places if _is_marked(one.function))
    return found | {place.agent for place in marked}


def _is_marked(function: Function) -> bool:
    owner = getattr(function, "__self__", None)
    return any(getattr(one, "stateless", False) is True for one in (function, owner))


def _refuse_not_awaited(places: list[CallablePlace]) -> None:
    other = next((place.agent for place in places if not place.is_awaited), None)
    if other is not None:
        raise SettingsError(f"{other} is no async function, so its steps cannot wait for a record")


def _refuse_shared(places: list[CallablePlace], team: Any, stateless: frozenset[str]) -> None:
    for one, other, name in shared_state(places, team):
        if not {one, other} <= stateless:
            raise SettingsError(
                f"{one} and {other} share `{name}` in their closures, and what they keep there is "
                "not in the journal: keep it elsewhere, or declare both stateless if it is nothing "
                "that an answer depends on (`dig.wrap(..., stateless={...})`)"
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
        stateless: frozenset[str] = frozenset(),
        served: Served | None = None,
    ) -> None:
        """Prepare; nothing is changed yet.

        Args:
            places: The places of the callables.
            annotate: Puts notes into the arguments of a call.
            deliver: Brings an agent a note at once.
            stateless: The agents that are declared stateless.
            served: The record from which the team runs again, if it does.
        """
        self._places = places
        self._stateless, self._served = stateless, served
        self._annotate = annotate
        self.notes = NoteDelivery(deliver)
        self._session: Session | None = None
        self.agents = tuple(dict.fromkeys(place.agent for place in places))
        # An agent with one callable that is awaited can stand in for another.
        self._works = {
            place.agent: self._work(place)
            for place in places
            if place.is_awaited and not place.method
        }

    def attach(self, found: TeamCallables, session: Session) -> Attached:
        """Put the session between them; say once what is not watched."""
        if found.unwatched:
            logger.warning("dig: not watched in this team: %s", "; ".join(found.unwatched))
        self._session = session
        self.notes.state = AdapterState(session)
        if self._served is not None:
            self._served.attach(found.team, session)
        restore = replace_all(self._places, partial(self.monitored, session))
        return Attached(found.for_user(), restore)

    def monitored(self, session: Session, place: CallablePlace) -> Function:
        """A callable that does what another does, and tells the session of it."""
        function: Any = place.function
        own = self._work(place)
        tell = partial(_told, session) if place.agent in self._stateless else as_payload
        is_bound = ismethod(function)
        bare = function.__func__ if is_bound else function
        is_iterated, is_awaited = isasyncgenfunction(bare), place.is_awaited

        def call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            if is_bound and args[0] is not function.__self__:  # a copy of the object
                return bare(*args, **kwargs)
            args = args[is_bound:]
            payload = as_call(args, kwargs)
            if place.method:
                payload = {"method": place.method, "with": payload}
            if self.notes.on_note is not None:
                self.notes.loop.bind_to_current_loop()

            def start(agent: str, notes: tuple[str, ...]) -> Any:
                work = own if agent == place.agent else self._works[agent]
                return work(args, kwargs, notes)

            if is_iterated:
                return StreamedCall(session, place.agent, payload, start)
            if not is_awaited:
                return Call(session, place.agent, payload, tell=tell).run_now(start)
            if self._served is None:
                return Call(session, place.agent, payload, tell=tell).run(start)
            return self._serve(self._served, session, place, payload, tell, start)

        monitored = like(bare, call)
        return MethodType(monitored, function.__self__) if is_bound else monitored

    async def _serve(
        self, served: Served, session: Session, place: CallablePlace, payload: Any,
        tell: Callable[[Any], Any], start: RunAgent,
    ) -> Any:  # fmt: skip
        """A call in a team that runs again from its record."""

        def answer(agent: str, notes: tuple[str, ...]) -> Awaitable[Any]:
            run = partial(start, agent, notes)
            is_pure = agent in self._stateless
            return served.answer(place.function, run, is_stateless=is_pure)

        await served.before_call(session, place.agent, payload)
        return await Call(session, place.agent, payload, tell=tell).run(answer)

    def why_not(self, wish: Reroute) -> str | None:
        """Why a call cannot go elsewhere; ``None``: it can."""
        if self._session is None or len(wish.to) != 1 or wish.to[0] not in self._works:
            return "a call goes to one agent that is a function"
        instances = self._session.instances
        flight = self._session.monitor.graph.event(wish.event).flight
        if not all(map(instances.is_awaited, flight)):
            return "an answer goes to who has asked"
        if not all(instances.agent_of(one) in self._works for one in flight):
            return "the call is not awaited, or is of a method"
        return None if instances.is_free(wish.to[0]) else f"{wish.to[0]} is at work"

    def _work(self, place: CallablePlace) -> Function:
        function, takes_notes = place.function, _takes_notes(place.function)

        def work(
            args: tuple[Any, ...], kwargs: Mapping[str, Any], notes: tuple[str, ...]
        ) -> Any:  # no coroutine of its own, so no frame on the stack
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


def _told(session: Session, result: Any) -> Any:
    """The answer of a stateless agent; it is noted if the caller got more than plain JSON."""
    payload, turn = as_payload(result), current.get()
    if turn is not None and not _is_equal(result, payload):
        kind = type(result).__qualname__
        session.guard.incident(NOT_PLAIN, {"activation": turn.activation, "type": kind})
    return payload


def _is_equal(value: Any, payload: Any) -> bool:
    """Whether a value is what JSON makes of its payload, to the last type."""
    if type(value) is not type(payload):
        return False
    if isinstance(value, dict):
        return value.keys() == payload.keys() and all(
            type(key) is str and _is_equal(value[key], payload[key]) for key in value
        )
    if isinstance(value, list):
        return len(value) == len(payload) and all(map(_is_equal, value, payload))
    return bool(value == payload)


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
