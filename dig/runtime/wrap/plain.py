"""The adapter for plain async callables, and objects with async methods.

A team is a dict or list of these, or one object whose async methods are the agents. It is changed
in place, so that agents that look each other up in it find each other monitored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, MutableSequence
from dataclasses import dataclass
from functools import partial, wraps
from inspect import Parameter, getattr_static, iscoroutinefunction, signature
from typing import Any

from dig.errors import SettingsError

from .adapters import Attached, Plan
from .calls import Annotate, Call
from .capabilities import known
from .payload import as_call
from .session import Session

Function = Callable[..., Awaitable[Any]]

SURE = frozenset({"annotate", "tell", "hold"})
ALLOWABLE = frozenset({"bounce"})


@dataclass(frozen=True)
class Place:
    """Where an async callable of a team is, and whose it is.

    Attributes:
        agent: The agent.
        function: The callable.
        put: Puts another in its place.
        restore: Puts it back.
        method: Which of several of its agent it is; empty, if it is the only one.
    """

    agent: str
    function: Function
    put: Callable[[Any], None]
    restore: Callable[[], object]
    method: str = ""


def plan(team: Any, *, allow: Iterable[str] = (), annotate: Annotate | None = None) -> Plan:
    """Look at a team of plain callables.

    Args:
        team: A dict, list or object.
        allow: What else may be done: `bounce` calls an agent again whose answer was early, with
            the same arguments and a note.
        annotate: Puts notes into the arguments of a call; by default they are given to callables
            that have a parameter `notes`, and to all by `dig.notes()`.

    Raises:
        SettingsError: It has no agents, or one that is not async; or an option makes no sense.
    """
    allowed = known(allow, "allow")
    if not allowed <= ALLOWABLE:
        raise SettingsError(f"allow can name {', '.join(ALLOWABLE)}, not {sorted(allowed)}")
    places = list(_places(team))
    names = tuple(dict.fromkeys(place.agent for place in places))
    if not names:
        raise SettingsError(
            f"{team!r:.60} is no team: a dict or list of async callables or of objects with "
            "async methods, or one such object"
        )

    def attach(session: Session) -> Attached:
        try:
            for place in places:
                place.put(monitored(session, place, annotate))
        except BaseException:
            restore()
            raise
        return Attached(team, restore)

    def restore() -> Any:
        for place in places:
            place.restore()
        return team

    return Plan("a team of plain callables", names, attach, SURE | allowed)


def monitored(session: Session, place: Place, annotate: Annotate | None = None) -> Function:
    """An async callable that does what another does, and tells a session of it."""
    function, takes_notes = place.function, _takes_notes(place.function)
    heals = session.mode == "heal"

    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        payload = as_call(args, kwargs)
        if place.method:
            payload = {"method": place.method, "with": payload}

        def work(notes: tuple[str, ...]) -> Awaitable[Any]:  # no frame of its own on the stack
            if notes and heals:
                if annotate is not None:
                    given, named = session.guard(
                        _annotated, annotate, args, kwargs, notes, otherwise=(args, kwargs)
                    )
                    return function(*given, **named)
                if takes_notes and "notes" not in kwargs:
                    return function(*args, **kwargs, notes=notes)
            return function(*args, **kwargs)

        return await Call(session, place.agent, payload).through(work)

    return call


def _annotated(
    annotate: Annotate, args: tuple[Any, ...], kwargs: dict[str, Any], notes: tuple[str, ...]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
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


def _places(team: Any) -> Iterable[Place]:
    if isinstance(team, MutableMapping):
        for key in tuple(team):
            yield from _of_item(team, key, str(key))
    elif isinstance(team, MutableSequence):
        names = [_name(item) for item in team]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise SettingsError(f"two agents are called {min(twice)}; wrap a dict of names instead")
        for number, name in enumerate(names):
            yield from _of_item(team, number, name)
    else:
        for place in _of_object(team, type(team).__name__):
            yield Place(place.method, place.function, place.put, place.restore)


def _of_item(team: Any, key: Any, name: str) -> Iterable[Place]:
    item = team[key]
    if is_async(item):
        put = partial(team.__setitem__, key)
        yield Place(name, item, put, partial(put, item))
        return
    places = list(_of_object(item, name))
    if not places:
        raise SettingsError(f"agent {name!r} ({item!r:.60}) is not async, nor has it async methods")
    yield from places


def _of_object(item: Any, agent: str) -> Iterable[Place]:
    """The public async methods of an object."""
    for method in dir(item):
        if method.startswith("_") or not is_async(getattr_static(item, method)):
            continue
        if not hasattr(item, "__dict__"):
            kind = type(item).__name__
            raise SettingsError(f"the methods of a {kind} cannot be replaced; wrap them in a dict")
        put = partial(vars(item).__setitem__, method)
        own = vars(item).get(method)
        restore = partial(vars(item).pop, method) if own is None else partial(put, own)
        yield Place(agent, getattr(item, method), put, restore, method)


def is_async(item: Any) -> bool:
    """Whether calling something makes a coroutine."""
    called = getattr_static(type(item), "__call__", None)
    return iscoroutinefunction(item) or iscoroutinefunction(called)


def _name(item: Any) -> str:
    name = getattr(item, "name", None) or getattr(item, "__name__", None)
    return name if isinstance(name, str) else type(item).__name__
