"""Teams of plain callables: the place and the agent of each callable."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from dis import get_instructions
from functools import partial
from types import MethodType, ModuleType, NoneType
from typing import Any

from dig.errors import SettingsError

Function = Callable[..., Any]

NOT_PLAIN = "answer is no plain JSON"
"""The incident of a stateless agent's answer, if JSON would give the caller another value."""

serving: ContextVar[Any] = ContextVar("dig_serving", default=None)
"""The repeated run (`served.Served`) that the running code makes; ``None``: none."""


@dataclass(frozen=True)
class CallablePlace:
    """The place of a callable in a team, and the agent.

    Attributes:
        function: The callable.
        container: A dict or list of the team, or the methods or attributes of an object.
        key: The key or index in the container.
        method: The name among several callables of one agent; empty: the only callable.
        is_inherited: Whether an object has the callable from its class.
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
        return inspect.iscoroutinefunction(_innermost(self.function))

    def restore(self, replacement: Function) -> None:
        """Put the callable back wherever the replacement still is: users may move callables."""
        is_mapping = isinstance(self.container, MutableMapping)
        items = self.container.items() if is_mapping else enumerate(self.container)
        for key in [key for key, item in items if item is replacement]:
            if self.is_inherited and key == self.key:
                del self.container[key]
            else:
                self.container[key] = self.function


class ObjectMethods(MutableMapping[str, Function]):
    """The methods of an object in place of the methods of its class.

    They are kept beside the object, so its attributes, copies and pickle are unchanged.
    """

    def __init__(self, item: Any) -> None:
        self._item = item

    def original(self, name: str) -> Function:
        """The present method of the object."""
        shared = vars(type(self._item)).get(name)
        method: Function = (
            (self.get(name) or shared.bind(self._item))
            if isinstance(shared, _SharedMethod)
            else getattr(self._item, name)
        )
        return method

    def __getitem__(self, name: str) -> Function:
        return self._methods()[name]

    def __setitem__(self, name: str, function: Function) -> None:
        owner = type(self._item)
        shared = vars(owner).get(name)
        if not isinstance(shared, _SharedMethod):
            shared = _SharedMethod(inspect.getattr_static(owner, name), is_inherited=shared is None)
            setattr(owner, name, shared)
        shared.replacements[id(self._item)] = function

    def __delitem__(self, name: str) -> None:
        owner, shared = type(self._item), vars(type(self._item))[name]
        del shared.replacements[id(self._item)]
        if not shared.replacements and shared.is_inherited:
            delattr(owner, name)
        elif not shared.replacements:
            setattr(owner, name, shared.bare)

    def __iter__(self) -> Iterator[str]:
        return iter(self._methods())

    def __len__(self) -> int:
        return len(self._methods())

    def _methods(self) -> dict[str, Function]:
        mine = id(self._item)
        return {
            name: method.replacements[mine]
            for name, method in vars(type(self._item)).items()
            if type(method) is _SharedMethod and mine in method.replacements
        }


@dataclass(eq=False)
class _SharedMethod:
    """A method of a class, replaced for some objects of the class.

    Attributes:
        bare: The method of all other objects, as the class has it.
        is_inherited: Whether the class has the method from another class.
        replacements: The replacements, by the ids of their objects.
    """

    bare: Any
    is_inherited: bool
    replacements: dict[int, Function] = field(default_factory=dict)

    def __get__(self, item: Any, owner: type) -> Any:
        replacement = self.replacements.get(id(item))
        return self.bind(item, owner) if replacement is None else replacement

    def bind(self, item: Any, owner: type | None = None) -> Any:
        """Bind the bare method to an object or a class."""
        get = getattr(type(self.bare), "__get__", None)
        return self.bare if get is None else get(self.bare, item, owner or type(item))


def replace_all(
    places: Iterable[CallablePlace], make: Callable[[CallablePlace], Function]
) -> Callable[[], None]:
    """Replace the callables in all places, or in none.

    Args:
        places: The places of the callables.
        make: Makes the replacement.

    Returns:
        A function that restores the callables; a second call does nothing.

    Raises:
        SettingsError: An agent cannot be replaced.
    """
    replaced: list[tuple[CallablePlace, Function]] = []

    def restore() -> None:
        while replaced:
            place, replacement = replaced.pop()
            place.restore(replacement)

    try:
        # All or none: a team that is half monitored would show calls without callers.
        for place in places:
            replacement = make(place)
            place.container[place.key] = replacement
            replaced.append((place, replacement))
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
        callables = cls(team, [*team] if isinstance(team, tuple) else team)
        if isinstance(team, MutableMapping):
            callables._add_items({key: str(key) for key in team})
        elif isinstance(callables.team, MutableSequence):
            callables._add_items({number: _name(item) for number, item in enumerate(team)})
        elif isinstance(team, type):
            raise SettingsError(f"{team.__name__} is a class; wrap an object of it")
        else:
            callables._add_object(team, "")
        return callables

    def for_user(self) -> Any:
        """The object for the user: the team itself, or another tuple of the same kind."""
        if self.team is self.original:
            return self.team
        make = getattr(type(self.original), "_make", type(self.original))
        return make(self.team)

    def _add_items(self, names: Mapping[Any, str]) -> None:
        for key, name in names.items():
            before, item = len(self.places), self.team[key]
            reason = self._add_item(item, key, name)
            if len(self.places) == before:
                self.unwatched.append(f"{name} ({reason or 'no methods of its own'})")
        agents = {place.agent for place in self.places}
        for name, count in Counter(names.values()).items():
            if count > 1 and name in agents:
                raise SettingsError(f"two agents are called {name}; wrap a dict of different names")

    def _add_item(self, item: Any, key: Any, name: str) -> str:
        """Add the callables of an item of a dict or list; if there are none, return why."""
        if isinstance(item, type):
            return "a class"
        if inspect.isgeneratorfunction(_innermost(item)):
            return "a generator that is not async"
        is_function = inspect.isroutine(item) or isinstance(item, partial)
        if not (is_function or (callable(item) and is_async(item))):
            if self._add_object(item, name):
                return ""
            if not callable(item):
                return f"a {type(item).__name__}, which has no methods that can be watched"
        place = CallablePlace(name, item, self.team, key)
        # An object that is called itself is replaced in its class, so that it stays what it is.
        if not is_function and inspect.isfunction(_static(type(item), "__call__")):
            place = replace(_method(item, "__call__", name), method="")
        self.places.append(place)
        return ""

    def _add_object(self, item: Any, agent: str) -> bool:
        """Add the public methods of an object: the async methods, or without such all methods."""
        # Queues, locks and the like of the standard library are parts of a team, but no agents.
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
    """The attribute of an object or a class without the monitor."""
    attribute = inspect.getattr_static(item, name, None)
    return attribute.bare if isinstance(attribute, _SharedMethod) else attribute


def _is_own(item: Any, name: str, method: Any) -> bool:
    """Whether a method is a function of the same package as the object's class."""
    if isinstance(method, staticmethod | classmethod):
        method = method.__func__
    owner = next((kind for kind in type(item).__mro__ if name in vars(kind)), object)
    is_plain = inspect.isfunction(method) and not inspect.isgeneratorfunction(method)
    return is_plain and _package(owner) == _package(type(item))


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def shared_state(places: Iterable[CallablePlace], team: Any) -> Iterable[tuple[str, str, str]]:
    """Changeable variables shared by agents, besides the team: both agents, and the name.

    Args:
        places: The callables of the team.
        team: The team, in which agents may look each other up.
    """
    before: dict[int, tuple[str, str, bool]] = {}  # id -> agent, variable, whether it is changed
    for place in places:
        for key, (name, is_changed) in _closure(place.function, team).items():
            agent, _, was_changed = before.get(key, (place.agent, "", False))
            if agent != place.agent and (is_changed or was_changed):
                yield agent, place.agent, name
            before[key] = agent, name, is_changed or was_changed


def _closure(item: Any, team: Any, inside: frozenset[int] = frozenset()) -> _Closure:
    """The closure of a function, and of the functions in the closure."""
    variables: _Closure = {}
    while isinstance(item, partial):
        item = item.func
    owner = getattr(item, "__self__", None)
    if owner is not None and not all(map(callable, getattr(owner, "__dict__", {}).values())):
        variables[id(owner)] = "self", True
    function = getattr(item, "__func__", item)
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or id(function) in inside:
        return variables
    # Of a constant the cell is what agents share, if one of them stores another constant there.
    stored = {step.argval for step in get_instructions(code) if step.opname == "STORE_DEREF"}
    for name, cell in zip(code.co_freevars, cells or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # it is not bound yet
            continue
        if inspect.isfunction(value):
            variables |= _closure(value, team, inside | {id(function)})
        elif isinstance(value, _FIXED):
            variables[id(cell)] = name, name in stored
        elif value is not team:
            variables[id(value)] = name, True
    return variables


_Closure = dict[int, tuple[str, bool]]
"""By id of an object or a cell: the name of the variable, and whether it changes or may change."""
_FIXED = (NoneType, bool, int, float, complex, str, bytes, tuple, frozenset, type, ModuleType)


def is_async(item: Any) -> bool:
    """Whether the result of a call is awaited, or iterated asynchronously."""
    inner = _innermost(item)
    return inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)


def _innermost(item: Any) -> Any:
    """The function inside of a partial, a method or a callable object."""
    while True:
        if isinstance(item, partial):
            item = item.func
        elif isinstance(item, MethodType | staticmethod | classmethod):
            item = item.__func__
        elif inspect.isroutine(item) or not callable(item) or isinstance(item, type):
            return item
        else:
            method = inspect.getattr_static(type(item), "__call__", None)
            if method is None or inspect.iscoroutinefunction(item):
                return item
            item = method


def _name(item: Any) -> str:
    while isinstance(item, partial):
        item = item.func
    name = getattr(item, "name", None) or getattr(item, "__name__", None)
    return name if isinstance(name, str) else type(item).__name__
