"""What teams of plain callables look like: where each callable is, and of which agent it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, MutableSequence
from dataclasses import dataclass
from functools import partial
from inspect import getattr_static, iscoroutinefunction
from typing import Any

from dig.errors import SettingsError

Function = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class CallablePlace:
    """Where an async callable of a team is, and of which agent it is.

    Attributes:
        agent: The agent.
        function: The callable.
        put: Puts another in its place.
        restore: Puts it back, wherever that other is still there: the user may have changed the
            team meanwhile.
        method: Which of several of its agent it is; empty, if it is the only one.
    """

    agent: str
    function: Function
    put: Callable[[Any], None]
    restore: Callable[[Any], object]
    method: str = ""


def places_of(team: Any) -> Iterable[CallablePlace]:
    """The async callables of a dict, a list or an object.

    Raises:
        SettingsError: An agent is not async, or has the name of another.
    """
    if isinstance(team, MutableMapping):
        yield from _of_items(team, {key: str(key) for key in team})
    elif isinstance(team, MutableSequence):
        yield from _of_items(team, {number: _name(item) for number, item in enumerate(team)})
    else:
        for place in _of_object(team, type(team).__name__):
            yield CallablePlace(place.method, place.function, place.put, place.restore)


def _of_items(team: Any, names: Mapping[Any, str]) -> Iterable[CallablePlace]:
    twice = [name for name, count in Counter(names.values()).items() if count > 1]
    if twice:
        raise SettingsError(f"two agents are called {twice[0]}; wrap a dict of different names")
    for key, name in names.items():
        yield from _of_item(team, key, name)


def _of_item(team: Any, key: Any, name: str) -> Iterable[CallablePlace]:
    item = team[key]
    if is_async(item):
        yield CallablePlace(
            name, item, partial(team.__setitem__, key), partial(_exchange, team, item)
        )
        return
    places = list(_of_object(item, name))
    if not places:
        raise SettingsError(f"agent {name!r} ({item!r:.60}) is not async, nor has it async methods")
    yield from places


def _of_object(item: Any, agent: str) -> Iterable[CallablePlace]:
    """The public async methods of an object."""
    if isinstance(item, type):
        raise SettingsError(f"{item.__name__} is a class; wrap an object of it")
    for method in dir(item):
        if method.startswith("_") or not is_async(getattr_static(item, method)):
            continue
        if not hasattr(item, "__dict__"):
            kind = type(item).__name__
            raise SettingsError(
                f"the methods of a {kind} cannot be replaced; wrap a dict of them, by name"
            )
        put = partial(vars(item).__setitem__, method)
        restore = partial(_take_off, vars(item), method, vars(item).get(method))
        yield CallablePlace(agent, getattr(item, method), put, restore, method)


def _exchange(team: Any, item: Any, other: Any) -> None:
    """Put an item of a dict or list where another is."""
    places = team.items() if isinstance(team, MutableMapping) else enumerate(team)
    for key in [key for key, there in places if there is other]:
        team[key] = item


def _take_off(attributes: dict[str, Any], name: str, own: Any, other: Any) -> None:
    """Give an object its own attribute back, or none, where it has another."""
    if attributes.get(name) is not other:
        return
    if own is None:
        del attributes[name]
    else:
        attributes[name] = own


def is_async(item: Any) -> bool:
    """Whether current_turn something makes a coroutine."""
    if isinstance(item, staticmethod | classmethod):
        item = item.__func__
    while isinstance(item, partial):
        item = item.func
    called = getattr_static(type(item), "__call__", None)
    return iscoroutinefunction(item) or iscoroutinefunction(called)


def _name(item: Any) -> str:
    while isinstance(item, partial):
        item = item.func
    name = getattr(item, "name", None) or getattr(item, "__name__", None)
    return name if isinstance(name, str) else type(item).__name__
