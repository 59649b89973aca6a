"""The adapter for plain callables: async functions and generators, and functions.

A team is a dict, list or tuple of callables or objects, or one object whose methods are the agents.
The team is changed in place, so that agents find each other monitored when they look each other up;
a tuple cannot be changed, so the user gets another tuple.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from functools import partial
from inspect import Parameter, isasyncgenfunction, ismethod, signature
from types import MethodType
from typing import TYPE_CHECKING, Any

from dig._util.redaction import masking_logger
from dig.adapters import base
from dig.detectors.interventions import Reroute
from dig.errors import SettingsError

from .callables import (
    NOT_PLAIN,
    CallablePlace,
    Function,
    TeamCallables,
    replace_all,
    serving,
    shared_state,
)

if TYPE_CHECKING:
    from .served import Served  # no other team needs the recorded run behind it

logger = masking_logger("dig.wrap")

Annotate = Callable[[tuple[Any, ...], dict[str, Any], tuple[str, ...]], Any]
"""Puts notes into the arguments of a call: `(args, kwargs, notes) -> (args, kwargs)`."""

PLAIN_TEAM = "a team of plain callables"
"""The name of such a team in the side file of a run."""

SURE = frozenset({"annotate", "tell", "hold", "stop", "meter", "hand_back", "sample"})
ALLOWABLE = ("bounce", "reroute", "reassign", "restart")


def plan(
    team: Any,
    *,
    allow: Iterable[str] = (),
    annotate: Annotate | None = None,
    deliver: base.Deliver | None = None,
    stateless: Iterable[str] = (),
) -> base.WrapPlan:
    """Look at a team of plain callables.

    Args:
        team: A dict, list or object.
        allow: The further actions allowed. `bounce`: an agent whose answer was early is called
            again, with the same arguments and a note. `reroute`: another agent is called instead,
            with the arguments that were meant for the first. `reassign`, `restart`: an agent that
            does not come back is cancelled, and another one is called with its arguments.
        annotate: Puts notes into the arguments of a call; by default a parameter `notes` of a
            callable gets them, and `dig.notes()` returns them.
        deliver: Called with an agent's name and a note from healing that no call brings; runs on
            the loop of the latest request.
        stateless: The agents that keep nothing between calls: when the run is tried again with a
            change, they answer from its journal (docs/why.md). A callable with an attribute
            `stateless = True` needs no mention.

    Raises:
        SettingsError: The team has no agents, or an option makes no sense.
    """
    allowed = base.allowing(allow, ALLOWABLE)
    callables = TeamCallables.of(team)
    served: Served | None = serving.get()
    declared = _stateless_agents(callables.places, stateless)
    if served is not None:
        _check_repeatable(callables.places, team, declared)
        if allowed & base.RELIEVING:
            raise SettingsError(
                "a team whose agents may be cancelled (reassign, restart) cannot run again from "
                "its record: the moment of that is not repeated; wrap it without these"
            )
    about = {} if served is None else {**served.about}
    if declared:
        about["stateless"] = sorted(declared)
    plain = PlainTeam(callables.places, annotate, deliver, declared, served)
    if not plain.agents:
        raise SettingsError(
            f"{team!r:.60} is no team: a dict, list or tuple of callables or of objects with "
            "methods, or one such object; another needs an adapter (docs/wrapping.md)"
        )
    return base.WrapPlan(
        PLAIN_TEAM,
        plain.agents,
        partial(plain.attach, callables),
        SURE | allowed | ({"wake"} if deliver else set()),
        plain.why_not,
        plain.notes.on_note,
        about,
        served.session_parts if served else None,
    )


def _stateless_agents(places: Iterable[CallablePlace], named: Iterable[str]) -> frozenset[str]:
    """The stateless agents, declared by the call or by an attribute `stateless`."""
    agents, names = {place.agent for place in places}, base.names_in(named, "stateless")
    if not names <= agents:
        raise SettingsError(f"stateless names {sorted(names - agents)[0]!r}, which is no agent")
    return names | {
        place.agent
        for place in places
        for owner in (place.function, getattr(place.function, "__self__", None))
        if getattr(owner, "stateless", False) is True
    }


def _check_repeatable(places: list[CallablePlace], team: Any, stateless: frozenset[str]) -> None:
    """Refuse a team whose state is not in the journal, or whose steps cannot wait."""
    # State that agents share outside the journal would be another one in a repeated run.
    for agent, other, name in shared_state(places, team):
        if not {agent, other} <= stateless:
            raise SettingsError(
                f"{agent} and {other} share `{name}` in their closures, and what they keep there "
                "is not in the journal: keep it elsewhere, or declare both stateless if it is "
                "nothing that an answer depends on (`dig.wrap(..., stateless={...})`)"
            )
    for place in places:
        if not place.is_awaited:
            raise SettingsError(
                f"{place.agent} is no async function, so its steps cannot wait for a record"
            )


@dataclass(eq=False)
class PlainTeam:
    """The callables of a team, from the first look to the restoration.

    Attributes:
        agents: The agents' names.
        notes: Brings agents notes.
    """

    places: list[CallablePlace]
    annotate: Annotate | None
    deliver: InitVar[base.Deliver | None]
    stateless: frozenset[str] = frozenset()
    served: Served | None = None
    session: base.Session | None = field(default=None, init=False)

    def __post_init__(self, deliver: base.Deliver | None) -> None:
        self.notes = base.NoteDelivery(deliver)
        self.agents = tuple(dict.fromkeys(place.agent for place in self.places))
        # An agent with one callable that is awaited can stand in for another.
        self._works = {
            place.agent: self._work(place)
            for place in self.places
            if place.is_awaited and not place.method
        }

    def attach(self, callables: TeamCallables, session: base.Session) -> base.Attached:
        """Put the session between the agents; log the unwatched parts."""
        if callables.unwatched:
            logger.warning("dig: not watched in this team: %s", "; ".join(callables.unwatched))
        self.session = session
        self.notes.state = base.AdapterState(session)
        if self.served is not None:
            self.served.attach(callables.team, session)
        restore = replace_all(self.places, partial(self.monitor, session))
        return base.Attached(callables.for_user(), restore)

    def monitor(self, session: base.Session, place: CallablePlace) -> Function:
        """Make a callable of the same behaviour with reports to the session."""
        function: Any = place.function
        own = self._work(place)
        is_stateless = place.agent in self.stateless
        tell = _tell_exactly if is_stateless else base.as_payload
        is_bound = ismethod(function)
        bare = function.__func__ if is_bound else function
        is_iterated, is_awaited = isasyncgenfunction(bare), place.is_awaited

        def call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            if is_bound and args[0] is not function.__self__:  # a copy of the object
                return bare(*args, **kwargs)
            args = args[is_bound:]
            payload = base.as_call(args, kwargs)
            if place.method:
                payload = {"method": place.method, "with": payload}
            if self.notes.on_note is not None:
                self.notes.loop.bind_to_current_loop()

            def start(agent: str, notes: tuple[str, ...]) -> Any:
                work = own if agent == place.agent else self._works[agent]
                return work(args, kwargs, notes)

            if is_iterated:
                return base.StreamedCall(session, place.agent, payload, start)
            if not is_awaited:
                return base.Call(session, place.agent, payload, tell=tell).run_now(start)
            if self.served is None:
                return base.Call(session, place.agent, payload, tell=tell).run(start)
            return serve(self.served, payload, start)

        async def serve(served: Served, payload: Any, start: base.RunAgent) -> Any:
            def answer(agent: str, notes: tuple[str, ...]) -> Awaitable[Any]:
                run, is_pure = partial(start, agent, notes), agent in self.stateless
                return served.answer(place.function, run, is_stateless=is_pure)

            await served.before_call(session, place.agent, payload)
            return await base.Call(session, place.agent, payload, tell=tell).run(answer)

        monitored = base.like(bare, call)
        return MethodType(monitored, function.__self__) if is_bound else monitored

    def why_not(self, wish: Reroute) -> str | None:
        """Return why a call cannot go elsewhere; ``None``: possible."""
        if self.session is None or len(wish.to) != 1 or wish.to[0] not in self._works:
            return "a call goes to one agent that is a function"
        instances = self.session.instances
        flight = self.session.monitor.graph.event(wish.event).flight
        if not all(map(instances.is_awaited, flight)):
            return "an answer goes to who has asked"
        if not all(instances.agent_of(instance) in self._works for instance in flight):
            return "the call is not awaited, or is of a method"
        return None if instances.is_free(wish.to[0]) else f"{wish.to[0]} is at work"

    def _work(self, place: CallablePlace) -> Function:
        function, annotate = place.function, self.annotate
        by_name = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        try:
            parameter = signature(function).parameters.get("notes")
        except (TypeError, ValueError):  # an object that Python cannot look into
            parameter = None
        takes_notes = parameter is not None and parameter.kind in by_name

        def add_notes(
            args: tuple[Any, ...], kwargs: Mapping[str, Any], notes: tuple[str, ...]
        ) -> tuple[tuple[Any, ...], dict[str, Any]]:
            assert annotate is not None
            positional, named = annotate(args, dict(kwargs), notes)
            return tuple(positional), dict(named)

        def work(
            args: tuple[Any, ...], kwargs: Mapping[str, Any], notes: tuple[str, ...]
        ) -> Any:  # no coroutine of its own, so no frame on the stack
            session = self.session
            if session is None or not notes:
                return function(*args, **kwargs)
            if annotate is not None:
                run = partial(add_notes, args, kwargs, notes)
                args, kwargs = session.guard.call(run, default=(args, kwargs))
            elif takes_notes and "notes" not in kwargs:
                kwargs = {**kwargs, "notes": notes}
            return function(*args, **kwargs)

        return work


def _tell_exactly(result: Any) -> Any:
    """Convert the answer of a stateless agent; record if the caller got more than plain JSON."""
    # A repeated run hands out the JSON of the journal, which must be what the caller got before.
    payload, turn = base.as_payload(result), base.current.get()
    if turn is not None and not _is_equal(result, payload):
        kind = type(result).__qualname__
        turn.guard.incident(NOT_PLAIN, {"activation": turn.activation, "type": kind})
    return payload


def _is_equal(value: Any, payload: Any) -> bool:
    """Whether a value equals the JSON of the payload, to the last type."""
    if type(value) is not type(payload):
        return False
    if isinstance(value, dict):
        return value.keys() == payload.keys() and all(
            type(key) is str and _is_equal(value[key], payload[key]) for key in value
        )
    if isinstance(value, list):
        return len(value) == len(payload) and all(map(_is_equal, value, payload))
    return bool(value == payload)
