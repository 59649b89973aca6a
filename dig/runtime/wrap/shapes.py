"""What teams of plain callables look like: where each callable is, and whose it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, MutableSequence
from dataclasses import dataclass
from functools import partial
from inspect import getattr_static, iscoroutinefunction
from typing import Any

from dig.errors import SettingsError

Function = Callable[..., Awaitable[Any]]


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


def places_of(team: Any) -> Iterable[Place]:
    """The async callables of a dict, a list or an object.

    Raises:
        SettingsError: An agent is not async, or has the name of another.
    """
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
