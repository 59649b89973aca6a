"""Teams of plain callables: the place of each callable, and the agent that it belongs to."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from dataclasses import dataclass, field, replace
from dis import get_instructions
from functools import partial
from inspect import (
    getattr_static,
    isasyncgenfunction,
    iscoroutinefunction,
    isfunction,
    isgeneratorfunction,
    isroutine,
)
from types import MethodType, ModuleType, NoneType
from typing import Any

from dig.errors import SettingsError

Function = Callable[..., Any]


@dataclass(frozen=True)
class CallablePlace:
    """The place of a callable in a team, with its agent.

    Attributes:
        agent: The agent.
        function: The callable.
        container: A dict or list of the team, or the methods or attributes of one of its objects.
        key: The place in that.
        method: The name among several callables of its agent; empty, if it is the only one.
        is_inherited: Whether an object has it from its class.
    """

    agent: str
    function: Function
    container: Any
    key: Any
    method: str = ""
    is_inherited: bool = False

    @property
    def is_awaited(self) -> bool:
        """Whether the callable is an async function."""
        return iscoroutinefunction(_innermost(self.function))

    def restore(self, other: Function) -> None:
        """Put it back wherever another still is: the user may have changed the team meanwhile."""
        is_mapping = isinstance(self.container, MutableMapping)
        there = self.container.items() if is_mapping else enumerate(self.container)
        for key in [key for key, item in there if item is other]:
            if self.is_inherited and key == self.key:
                del self.container[key]
            else:
                self.container[key] = self.function


class ObjectMethods(MutableMapping[str, Function]):
    """The methods that one object has in place of those of its class.

    They are kept beside the object, which is as it was: its attributes, its copies, its pickle.
    """

    def __init__(self, item: Any) -> None:
        """Begin; nothing is changed yet."""
        self._item = item

    def original(self, name: str) -> Function:
        """The method that the object has now."""
        there = vars(type(self._item)).get(name)
        now: Function
        if isinstance(there, _SharedMethod):
            now = self.get(name) or there.bound(self._item)
        else:
            now = getattr(self._item, name)
        return now

    def __getitem__(self, name: str) -> Function:
        return self._all()[name]

    def __setitem__(self, name: str, function: Function) -> None:
        owner = type(self._item)
        shared = vars(owner).get(name)
        if not isinstance(shared, _SharedMethod):
            shared = _SharedMethod(getattr_static(owner, name), is_inherited=shared is None)
            setattr(owner, name, shared)
        shared.instead[id(self._item)] = function

    def __delitem__(self, name: str) -> None:
        owner, shared = type(self._item), vars(type(self._item))[name]
        del shared.instead[id(self._item)]
        if not shared.instead and shared.is_inherited:
            delattr(owner, name)
        elif not shared.instead:
            setattr(owner, name, shared.bare)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Function]:
        shared = {n: one for n, one in vars(type(self._item)).items() if type(one) is _SharedMethod}
        mine = id(self._item)
        return {name: one.instead[mine] for name, one in shared.items() if mine in one.instead}


class _SharedMethod:
    """A method of a class, in whose place some of its objects have another one.

    Attributes:
        bare: The method of all other objects, as the class has it.
        is_inherited: Whether the class has it from another class.
        instead: The replacements that the objects have in its place, by their ids.
    """

    def __init__(self, bare: Any, *, is_inherited: bool) -> None:
        self.bare = bare
        self.is_inherited = is_inherited
        self.instead: dict[int, Function] = {}

    def __get__(self, item: Any, owner: type) -> Any:
        instead = self.instead.get(id(item))
        return self.bound(item, owner) if instead is None else instead

    def bound(self, item: Any, owner: type | None = None) -> Any:
        """The bare method as an object or a class has it."""
        get = getattr(type(self.bare), "__get__", None)
        return self.bare if get is None else get(self.bare, item, owner or type(item))


def replace_all(
    places: Iterable[CallablePlace], make: Callable[[CallablePlace], Function]
) -> Callable[[], None]:
    """Put another callable in the place of each, or of none.

    Args:
        places: The places of the callables.
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
    except Exception as error:  # a container or a class of the user's own may refuse
        restore()
        raise SettingsError(f"agent {place.agent!r} cannot be replaced: {error!r}") from error
    return restore


@dataclass
class TeamCallables:
    """The callables of a team.

    Attributes:
        original: The team.
        team: The object in which callables are replaced: the team itself, or a list of a tuple's
            items.
        places: The place of each callable.
        unwatched: The parts of the team that are not watched, with the reason.
    """

    original: Any
    team: Any
    places: list[CallablePlace] = field(default_factory=list)
    unwatched: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, team: Any) -> TeamCallables:
        """Look at a dict, a list, a tuple or an object.

        Raises:
            SettingsError: Two agents have the same name, or the team is a class.
        """
        found = cls(team, [*team] if isinstance(team, tuple) else team)
        if isinstance(team, MutableMapping):
            found._add_items({key: str(key) for key in team})
        elif isinstance(found.team, MutableSequence):
            found._add_items({number: _name(item) for number, item in enumerate(team)})
        elif isinstance(team, type):
            raise SettingsError(f"{team.__name__} is a class; wrap an object of it")
        else:
            found._add_object(team, "")
        return found

    def for_user(self) -> Any:
        """The object that the user goes on with: the team, or for a tuple another one like it."""
        if self.team is self.original:
            return self.team
        make = getattr(type(self.original), "_make", type(self.original))
        return make(self.team)

    def _add_items(self, names: Mapping[Any, str]) -> None:
        for key, name in names.items():
            before, item = len(self.places), self.team[key]
            why = self._add_item(item, key, name)
            if len(self.places) == before:
                self.unwatched.append(f"{name} ({why or 'no methods of its own'})")
        agents = Counter(names[key] for key in names if self._has(names[key]))
        twice = [name for name, count in agents.items() if count > 1]
        if twice:
            raise SettingsError(f"two agents are called {twice[0]}; wrap a dict of different names")

    def _has(self, agent: str) -> bool:
        return any(place.agent == agent for place in self.places)

    def _add_item(self, item: Any, key: Any, name: str) -> str:
        """Add what a dict or a list has in one place; if that is nothing, say why."""
        if isinstance(item, type):
            return "a class"
        if isgeneratorfunction(_innermost(item)):
            return "a generator that is not async"
        if isroutine(item) or isinstance(item, partial):
            self.places.append(CallablePlace(name, item, self.team, key))
        elif callable(item) and is_async(item):
            self._add_called(item, key, name)
        elif not self._add_object(item, name):
            if not callable(item):
                return f"a {type(item).__name__}, which has no methods that can be watched"
            self._add_called(item, key, name)
        return ""

    def _add_called(self, item: Any, key: Any, name: str) -> None:
        """Add an object that is called itself: in its class, or else in the place where it is."""
        if isfunction(_static(type(item), "__call__")):
            place = _method(item, "__call__", name)
        else:
            place = CallablePlace(name, item, self.team, key)
        self.places.append(replace(place, method=""))

    def _add_object(self, item: Any, agent: str) -> bool:
        """Add the public methods of an object: the async ones, or if it has none, the others."""
        if _package(type(item)) in sys.stdlib_module_names and not isinstance(item, ModuleType):
            return False
        methods = {name: _static(item, name) for name in dir(item) if not name.startswith("_")}
        own = [name for name, method in methods.items() if _is_own(item, name, method)]
        chosen = [name for name, method in methods.items() if is_async(method)]
        if chosen:
            self.unwatched += [
                f"{agent or type(item).__name__}.{name} (not async, beside async methods)"
                for name in own if name not in chosen
            ]  # fmt: skip
        elif not (agent and callable(item)):
            chosen = own
        for name in chosen:
            place = _method(item, name, agent or name)
            self.places.append(place if agent else replace(place, method=""))
        return bool(chosen)


def _method(item: Any, name: str, agent: str) -> CallablePlace:
    if name in getattr(item, "__dict__", {}):
        return CallablePlace(agent, getattr(item, name), vars(item), name, name)
    methods = ObjectMethods(item)
    return CallablePlace(agent, methods.original(name), methods, name, name, is_inherited=True)


def _static(item: Any, name: str) -> Any:
    """The attribute of an object or a class, as it is without a monitor."""
    found = getattr_static(item, name, None)
    return found.bare if isinstance(found, _SharedMethod) else found


def _is_own(item: Any, name: str, method: Any) -> bool:
    """Whether a method is a function of the package that an object's class is from."""
    if isinstance(method, staticmethod | classmethod):
        method = method.__func__
    owner = next((kind for kind in type(item).__mro__ if name in vars(kind)), object)
    is_plain = isfunction(method) and not isgeneratorfunction(method)
    return is_plain and _package(owner) == _package(type(item))


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


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
    """Whether what something makes is awaited, or iterated so."""
    inner = _innermost(item)
    return iscoroutinefunction(inner) or isasyncgenfunction(inner)


def _innermost(item: Any) -> Any:
    """The function inside of a partial, a method or an object that is called."""
    while True:
        if isinstance(item, partial):
            item = item.func
        elif isinstance(item, MethodType | staticmethod | classmethod):
            item = item.__func__
        elif isroutine(item) or not callable(item) or isinstance(item, type):
            return item
        else:
            called = getattr_static(type(item), "__call__", None)
            if called is None or iscoroutinefunction(item):
                return item
            item = called


def _name(item: Any) -> str:
    while isinstance(item, partial):
        item = item.func
    name = getattr(item, "name", None) or getattr(item, "__name__", None)
    return name if isinstance(name, str) else type(item).__name__
