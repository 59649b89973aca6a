"""The plan of an adapter for wrapping a team, and the checks of all adapters."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import combinations
from pathlib import Path
from typing import Any

from dig._util.extras import install_line, version_numbers
from dig.errors import SettingsError
from dig.monitor.sinks import Sink

from .capabilities import Veto
from .held_events import LoopCaller
from .patching import AdapterState
from .session import Session

Deliver = Callable[[str, str], object]
"""Brings an agent a note at once: `(agent, note)`."""


@dataclass(frozen=True)
class Attached:
    """A wrapped team.

    Attributes:
        team: The object for the user: the team itself, changed, or a copy of it.
        restore: Gives the original team its own behaviour back.
    """

    team: Any
    restore: Callable[[], object]


@dataclass(frozen=True)
class ServedSession:
    """The special parts of a session whose team runs again from a journal.

    Attributes:
        clock: Seconds; the recorded ones at first.
        sink: Called with every record.
        runs: The directory in which the run directory is made.
    """

    clock: Callable[[], float]
    sink: Sink
    runs: Path


@dataclass(frozen=True)
class WrapPlan:
    """The plan for wrapping a team, made before anything of the team is changed.

    Attributes:
        description: The team in words: `a LangGraph graph`.
        agents: The agents that are present from the beginning.
        attach: Puts a session between the agents.
        capabilities: The capabilities of the team.
        veto: Asked about each event that healing wants to send elsewhere.
        on_note: Brings an agent a note at once, where that can be done.
        about: Further fields of the run's side file.
        served: The parts of the session, if the team runs again from its journal.
        sample: The share of the requests that are monitored in full, as the user says.
    """

    description: str
    agents: tuple[str, ...]
    attach: Callable[[Session], Attached]
    capabilities: frozenset[str] = frozenset()
    veto: Veto = field(default=lambda wish: None)
    on_note: Deliver | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    served: ServedSession | None = None
    sample: float = 1.0


class NoteDelivery:
    """Brings agents notes on the event loop of the team.

    Attributes:
        loop: Calls functions on that loop; to be bound with each request.
        state: The state of the adapter; without a state, or if it has failed, no note is brought.
        on_note: The function for `WrapPlan.on_note`; ``None``: the user has given none.
    """

    def __init__(self, deliver: Deliver | None) -> None:
        """Begin without a team; `deliver` is a function of the user."""
        self.loop = LoopCaller()
        self.state: AdapterState | None = None
        self._deliver = deliver
        self.on_note: Deliver | None = None if deliver is None else self._bring

    def _bring(self, agent: str, note: str) -> None:
        state, deliver = self.state, self._deliver
        if deliver is not None and state is not None and not state.only_observes:
            guard = state.session.guard  # an exception on that loop would reach the team
            self.loop.call(lambda: guard.call(deliver, agent, note, default=None))


@contextmanager
def importing(
    framework: str, packages: Iterable[str], versions: tuple[str, str], extra: str
) -> Iterator[None]:
    """Check a framework's version; the block then imports the framework's modules.

    Args:
        framework: The framework's name in an error message: `LangGraph`.
        packages: The framework's distributions.
        versions: The lowest version that was tested, and the first that was not.
        extra: The extra of this package that installs a fitting version.

    Raises:
        SettingsError: A package is missing, has another version, or lacks an imported name.
    """
    for package in packages:
        need_version(package, *versions, extra=extra)
    try:
        yield
    except ImportError as error:
        raise _another_way(framework, error) from error


def need_attributes(framework: str, owners: Iterable[Any], names: Iterable[str]) -> None:
    """Check a framework's objects or classes for the attributes used by an adapter.

    Args:
        framework: The framework's name in an error message: `LangGraph`.
        owners: The objects, or classes.
        names: The attributes that each owner must have; of a class, the fields.

    Raises:
        SettingsError: An attribute is missing; the message names the attribute.
    """
    for owner in owners:
        kind = owner if isinstance(owner, type) else type(owner)
        fields = getattr(kind, "__dataclass_fields__", {})  # without default they are no attributes
        missing = [name for name in names if name not in fields and not hasattr(owner, name)]
        if missing:
            raise _another_way(framework, f"{kind.__name__} has no {', '.join(missing)}")


WITHIN = "name one of them otherwise, or wrap without inside=True"
"""The advice about names of agents within agents."""


def members_by_name(team: Any, name_of: Callable[[Any], str]) -> list[tuple[str, Any]]:
    """Name the members of a team: one object, a list, or a mapping by name.

    Args:
        team: The team.
        name_of: Returns the name of a member that is not given by name.
    """
    if isinstance(team, Mapping):
        return [(str(name), member) for name, member in team.items()]
    listed = team if isinstance(team, Sequence) else [team]
    return [(name_of(member), member) for member in listed]


def agents_by_name(members: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Make a table of agents by name, and refuse two of one name.

    Raises:
        SettingsError: Two agents have the same name, or an agent has two names.
    """
    named = {(name, id(agent)): agent for name, agent in members}
    need_one_name(name for name, _ in named)
    agents = {name: agent for (name, _), agent in named.items()}
    for name, other in combinations(agents, 2):
        if agents[name] is agents[other]:
            raise SettingsError(f"the agent {other!r} stands in the team under two names")
    return agents


def need_one_name(
    agents: Iterable[str],
    advice: str = "name them, or give them by name: dig.wrap({'NAME': agent, ..})",
) -> None:
    """Check for agents with the same name.

    Args:
        agents: The names of the agents.
        advice: The end of the message: what to do.

    Raises:
        SettingsError: Two agents have the same name; the message says which name.
    """
    for name, count in Counter(agents).items():
        if count > 1:
            raise SettingsError(f"two agents are called {name!r}: {advice}")


def need_version(package: str, at_least: str, below: str, extra: str) -> str:
    """Check for a tested version of a framework; warn if the version is newer.

    A newer version may do, since `need_attributes` checks the used attributes apart from this. With
    `DIG_ALLOW_UNTESTED=0` in the environment a newer version is refused.

    Args:
        package: The framework's distribution.
        at_least: The lowest version that was tested, such as `1.2.22`.
        below: The first version that was not tested.
        extra: The extra of this package that installs a fitting version.

    Raises:
        SettingsError: The framework is missing, or older, or newer and refused; the message says
            what to install.
    """
    install = install_line(extra)
    try:
        installed = version(package)
    except PackageNotFoundError:
        raise SettingsError(f"{package} is not installed; {install}") from None
    tested = f"this wrapper was tested with {package}>={at_least},<{below}"
    message = f"{package} {installed} is installed, and {tested}; {install}"
    is_newer = version_numbers(installed) >= version_numbers(below)
    is_refused = is_newer and os.environ.get("DIG_ALLOW_UNTESTED") == "0"
    if is_refused or version_numbers(installed) < version_numbers(at_least):
        raise SettingsError(message)
    if is_newer:
        warnings.warn(f"{message}, or refuse others: DIG_ALLOW_UNTESTED=0", stacklevel=_OF_USER)
    return installed


_OF_USER = 7
"""The place of the call of `dig.wrap` on the stack, from `need_version` in `importing`."""


def _another_way(framework: str, difference: object) -> SettingsError:
    return SettingsError(f"this {framework} is put together in another way: {difference}")
