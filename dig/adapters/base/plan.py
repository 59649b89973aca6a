"""The plan by which an adapter wraps a team, and the checks that all adapters make before."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dig.errors import SettingsError
from dig.monitor.sinks import Sink

from .capabilities import Veto
from .holds import LoopCaller
from .patching import AdapterState
from .session import Session

Deliver = Callable[[str, str], object]
"""Brings an agent a note at once: `(agent, note)`."""


@dataclass(frozen=True)
class Attached:
    """A team that is wrapped.

    Attributes:
        team: The object that the user goes on with: the team itself, changed, or a copy of it.
        restore: Gives the original team its own behaviour back.
    """

    team: Any
    restore: Callable[[], object]


@dataclass(frozen=True)
class ServedSession:
    """The parts of a session that differ when its team runs again from its record.

    Attributes:
        clock: Seconds; the recorded ones at first.
        sink: Is given every record.
        runs: The directory in which its run directory is made.
    """

    clock: Callable[[], float]
    sink: Sink
    runs: Path


@dataclass(frozen=True)
class WrapPlan:
    """The plan by which an adapter wraps a team, before anything of it is changed.

    Attributes:
        who: The team in words: `a LangGraph graph`.
        agents: The agents that are there from the beginning.
        attach: Puts a session between them.
        capabilities: The capabilities of the team.
        veto: Asked about each event that healing wants to send elsewhere.
        on_note: Brings an agent at once what healing says to it, where that can be done.
        about: Further fields of the run's side file.
        served: The session, if the team runs again from its record.
    """

    who: str
    agents: tuple[str, ...]
    attach: Callable[[Session], Attached]
    capabilities: frozenset[str] = frozenset()
    veto: Veto = field(default=lambda wish: None)
    on_note: Deliver | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    served: ServedSession | None = None


class NoteDelivery:
    """Brings agents notes on the event loop of their team.

    Attributes:
        loop: Calls functions there; to be bound with each request.
        state: Of the adapter; without one, or if that has failed, no note is brought.
    """

    def __init__(self, deliver: Deliver | None) -> None:
        """Begin without a team; `deliver` is a user's function, if there is one."""
        self.loop = LoopCaller()
        self.state: AdapterState | None = None
        self._deliver = deliver

    @property
    def on_note(self) -> Deliver | None:
        """Brings an agent a note (`WrapPlan.on_note`); ``None``: the user has not said how."""
        return None if self._deliver is None else self._bring

    def _bring(self, agent: str, note: str) -> None:
        state, deliver = self.state, self._deliver
        if deliver is not None and state is not None and not state.only_observes:
            guard = state.session.guard  # nothing may be raised on that loop
            self.loop.call(lambda: guard.call(deliver, agent, note, default=None))


@contextmanager
def importing(
    framework: str, packages: Iterable[str], versions: tuple[str, str], extra: str
) -> Iterator[None]:
    """Check a framework's version; while the block lasts, its modules are imported.

    Args:
        framework: Its name in an error message: `LangGraph`.
        packages: Its distributions.
        versions: The lowest version that was tested, and the first that was not.
        extra: The extra of this package that installs a fitting one.

    Raises:
        SettingsError: A package is missing, has another version, or lacks what is imported.
    """
    for package in packages:
        need_version(package, *versions, extra=extra)
    try:
        yield
    except ImportError as error:
        raise _another_way(framework, error) from error


def need_attributes(framework: str, owners: Iterable[Any], names: Iterable[str]) -> None:
    """Check that a framework's objects or classes have what an adapter relies on.

    Args:
        framework: Its name in an error message: `LangGraph`.
        owners: The objects, or classes.
        names: The attributes that each of them must have; of a class, the fields.

    Raises:
        SettingsError: One is missing; the message says which.
    """
    for owner in owners:
        kind = owner if isinstance(owner, type) else type(owner)
        fields = getattr(kind, "__dataclass_fields__", {})
        missing = [name for name in names if name not in fields and not hasattr(owner, name)]
        if missing:
            raise _another_way(framework, f"{kind.__name__} has no {', '.join(missing)}")


def need_one_name(agents: Iterable[str]) -> None:
    """Check that no two agents have one name, which those within a node may have.

    Raises:
        SettingsError: Two have; the message says which name.
    """
    for name, count in Counter(agents).items():
        if count > 1:
            raise SettingsError(
                f"two agents would be called {name!r}, one of them within another; "
                "name one of them otherwise, or wrap without inside=True"
            )


def need_version(package: str, at_least: str, below: str, extra: str) -> str:
    """Check that a framework is one that its adapter was tested with; warn if it is newer.

    A newer one may do: whether it has what the adapter relies on is tested apart from this. With
    `DIG_ALLOW_UNTESTED=0` in the environment it is refused.

    Args:
        package: Its distribution.
        at_least: The lowest version that was tested, such as `1.2.22`.
        below: The first version that was not.
        extra: The extra of this package that installs a fitting one.

    Raises:
        SettingsError: The framework is not there, or older, or newer and refused; the message says
            what to install.
    """
    install = f"pip install 'dig-monitor[{extra}]'"
    try:
        found = version(package)
    except PackageNotFoundError:
        raise SettingsError(f"{package} is not installed; {install}") from None
    wanted = f"{package}>={at_least},<{below}"
    said = f"{package} {found} is installed, and this wrapper was tested with {wanted}; {install}"
    is_newer = _numbers(found) >= _numbers(below)
    if _numbers(found) < _numbers(at_least) or (
        is_newer and os.environ.get("DIG_ALLOW_UNTESTED") == "0"
    ):
        raise SettingsError(said)
    if is_newer:
        warnings.warn(f"{said}, or refuse others: DIG_ALLOW_UNTESTED=0", stacklevel=_OF_USER)
    return found


_OF_USER = 7
"""The place of the call of `dig.wrap` on the stack, from `need_version` in `importing`."""


def _another_way(framework: str, what: object) -> SettingsError:
    return SettingsError(f"this {framework} is put together in another way: {what}")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0])[:3])
