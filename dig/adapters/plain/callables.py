"""What teams of plain callables look like: where each callable is, and of which agent it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, MutableSequence
from dataclasses import dataclass, replace
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
        container: A dict or list of the team, or the attributes of one of its objects.
        key: Where it is in that.
        method: Which of several of its agent it is; empty, if it is the only one.
        is_inherited: Whether an object has it from its class.
    """

    agent: str
    function: Function
    container: Any
    key: Any
    method: str = ""
    is_inherited: bool = False

    def restore(self, other: Function) -> None:
        """Put it back wherever another still is: the user may have changed the team meanwhile."""
        is_mapping = isinstance(self.container, MutableMapping)
        there = self.container.items() if is_mapping else enumerate(self.container)
        for key in [key for key, item in there if item is other]:
            if self.is_inherited and key == self.key:
                del self.container[key]
            else:
                self.container[key] = self.function


def replace_all(
    places: Iterable[CallablePlace], make: Callable[[CallablePlace], Function]
) -> Callable[[], None]:
    """Put another callable in the place of each, or of none.

    Args:
        places: Where they are.
        make: Makes what is put there.

    Returns:
        Restores those that were there; twice does no harm.

    Raises:
        SettingsError: An agent cannot be replaced.
    """
    replaced: list[tuple[CallablePlace, Function]] = []

    def restore() -> None:
        while replaced:
            place, other = replaced.pop()
            place.restore(other)

    try:
        for place in places:
            other = make(place)
            place.container[place.key] = other
            replaced.append((place, other))
    except Exception as error:  # a container of the user's own may refuse
        restore()
        raise SettingsError(f"agent {place.agent!r} cannot be replaced: {error!r}") from error
    return restore


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
            yield replace(place, agent=place.method, method="")


def _of_items(team: Any, names: Mapping[Any, str]) -> Iterable[CallablePlace]:
    twice = [name for name, count in Counter(names.values()).items() if count > 1]
    if twice:
        raise SettingsError(f"two agents are called {twice[0]}; wrap a dict of different names")
    for key, name in names.items():
        yield from _of_item(team, key, name)


def _of_item(team: Any, key: Any, name: str) -> Iterable[CallablePlace]:
    item = team[key]
    if is_async(item):
        yield CallablePlace(name, item, team, key)
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
        function, own = getattr(item, method), vars(item)
        yield CallablePlace(agent, function, own, method, method, is_inherited=method not in own)


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
