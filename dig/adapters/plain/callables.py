"""What teams of plain callables look like: where each callable is, and of which agent it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, MutableSequence
from dataclasses import dataclass, replace
from dis import get_instructions
from functools import partial
from inspect import getattr_static, iscoroutinefunction, isfunction
from types import ModuleType, NoneType
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


def shared_state(places: Iterable[CallablePlace], team: Any) -> Iterable[tuple[str, str, str]]:
    """Variables besides the team that agents share and can change: both agents, and the name.

    Args:
        places: The callables of the team.
        team: The team, in which they find each other.
    """
    before: dict[int, tuple[str, str, bool]] = {}  # agent, variable, whether it is changed
    for place in places:
        for key, (name, is_changed) in _captured(place.function, team).items():
            agent, _, was_changed = before.get(key, (place.agent, "", False))
            if agent != place.agent and (is_changed or was_changed):
                yield agent, place.agent, name
            before[key] = agent, name, is_changed or was_changed


def _captured(item: Any, team: Any, inside: frozenset[int] = frozenset()) -> _Captured:
    """The variables around a function, and around the functions that these are."""
    found: _Captured = {}
    while isinstance(item, partial):
        item = item.func
    owner = getattr(item, "__self__", None)
    if owner is not None and not all(map(callable, getattr(owner, "__dict__", {}).values())):
        found[id(owner)] = "self", True
    function = getattr(item, "__func__", item)
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or id(function) in inside:
        return found
    stored = {one.argval for one in get_instructions(code) if one.opname == "STORE_DEREF"}
    for name, cell in zip(code.co_freevars, cells or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # it is not bound yet
            continue
        if isfunction(value):
            found |= _captured(value, team, inside | {id(function)})
        elif isinstance(value, _FIXED):
            found[id(cell)] = name, name in stored
        elif value is not team:
            found[id(value)] = name, True
    return found


_Captured = dict[int, tuple[str, bool]]
"""By what it is: the name of a variable, and whether it changes or may be changed."""
_FIXED = (NoneType, bool, int, float, complex, str, bytes, tuple, frozenset, type, ModuleType)


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
