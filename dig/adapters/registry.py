"""Which adapter wraps which team, and the teams that are wrapped.

A team is told by the module of its class, or of a class that it is made from, so no framework is
imported to find out; the adapter's own module is imported when its first team comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, runtime_checkable

from dig.errors import SettingsError

from .base.capabilities import Veto
from .base.session import Session

KINDS = (
    ("langgraph.", "dig.adapters.langgraph"),
    ("agents.agent.", "dig.adapters.openai_agents"),
    ("autogen_agentchat.", "dig.adapters.autogen"),
    ("autogen_core.", "dig.adapters.autogen"),
    ("agent_framework.", "dig.adapters.agent_framework"),
    ("ag2.", "dig.adapters.ag2"),
    ("autogen.", "dig.adapters.ag2_classic"),
)
"""The beginning of a class's module, and the module of the adapter; anything else is `plain`."""

PLAIN = "dig.adapters.plain.adapter"


@dataclass(frozen=True)
class Attached:
    """A team that is wrapped.

    Attributes:
        team: What the user goes on with: the team itself, changed, or a copy of it.
        restore: Gives the original team its own behaviour back, and returns it.
    """

    team: Any
    restore: Callable[[], Any]


@dataclass(frozen=True)
class Plan:
    """What an adapter makes of a team, before anything of it is changed.

    Attributes:
        who: The team in words: `a LangGraph graph`.
        agents: The agents that are there from the beginning.
        attach: Puts a session between them.
        capabilities: What the team can be made to do.
        veto: Asked about each event that healing wants to send elsewhere.
        on_note: Brings an agent at once what healing says to it, where that can be done.
    """

    who: str
    agents: tuple[str, ...]
    attach: Callable[[Session], Attached]
    capabilities: frozenset[str] = frozenset()
    veto: Veto = field(default=lambda wish: None)
    on_note: Callable[[str, str], object] | None = None


@runtime_checkable
class Adapter(Protocol):
    """What the module of an adapter has: this one function."""

    def plan(self, team: Any, **options: Any) -> Plan:
        """Look at a team, and refuse what cannot be wrapped.

        Raises:
            SettingsError: The team, its framework's version or an option does not fit.
        """
        ...


def adapter_of(team: Any) -> Adapter:
    """The adapter for a team, with its module imported.

    Raises:
        SettingsError: There is none yet.
    """
    origins = [f"{kind.__module__}." for kind in type(team).__mro__]
    for prefix, module in KINDS:
        if any(origin.startswith(prefix) for origin in origins) and _is_meant(prefix):
            return _load(module, team)
    return _load(PLAIN, team)


def _is_meant(prefix: str) -> bool:
    """Whether a module is a framework's; users have packages called `agents` of their own."""
    if not prefix.startswith("agents."):
        return True
    try:
        return bool(version("openai-agents"))
    except PackageNotFoundError:
        return False


def _load(module: str, team: Any) -> Adapter:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        kind = f"{type(team).__module__}.{type(team).__qualname__}"
        raise SettingsError(f"there is no wrapper for {kind} yet") from None


def need_version(package: str, at_least: str, below: str, extra: str) -> str:
    """Check that a framework is one that its adapter was tested with.

    Args:
        package: Its distribution.
        at_least: The lowest version that was tested, such as `1.2.22`.
        below: The first version that was not.
        extra: The extra of this package that installs a fitting one.

    Raises:
        SettingsError: It is not there, or another version; the message says what to install.
    """
    wanted = f"{package}>={at_least},<{below}"
    try:
        found = version(package)
    except PackageNotFoundError:
        raise SettingsError(
            f"{package} is not installed; pip install 'dig-monitor[{extra}]'"
        ) from None
    if not _numbers(at_least) <= _numbers(found) < _numbers(below):
        raise SettingsError(
            f"{package} {found} is installed, and this wrapper was tested with {wanted}; "
            f"pip install 'dig-monitor[{extra}]'"
        )
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0])[:3])


# --- the teams that are wrapped ---


@dataclass(frozen=True)
class Wrapped:
    """A wrapped team with its session; kept until it is unwrapped."""

    attached: Attached
    session: Session
    close: Callable[[Session], None]


_wrapped: dict[int, Wrapped] = {}  # by the id of what the user has; kept alive in here


def remember(wrapped: Wrapped) -> None:
    """Know a wrapped team again."""
    _wrapped[id(wrapped.attached.team)] = wrapped


def find(team: Any) -> Wrapped | None:
    """What is known of a team, if it is wrapped."""
    return _wrapped.get(id(team))


def forget(team: Any) -> Wrapped | None:
    """Know a team no more."""
    return _wrapped.pop(id(team), None)


def forget_all() -> list[Wrapped]:
    """Know none of the teams any more that were wrapped."""
    all_of_them = list(_wrapped.values())
    _wrapped.clear()
    return all_of_them
