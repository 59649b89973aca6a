"""A pytest plugin: each team that a framework's own tests build is wrapped.

`DIG_OWN_MODE` is `bare`, `observe` or `heal`; `DIG_OWN_FRAMEWORK` names the row of `TEAMS`. A team
is unwrapped after the test that has built it, so that no session outlives its test. A test has two
properties in pytest's report: its `nodeid`, and `dig`, what the session of each of its teams saw.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from typing import Any

import pytest

import dig
from dig.adapters.base import current
from dig.errors import SettingsError

MODE: Any = os.environ.get("DIG_OWN_MODE", "bare")
FRAMEWORK = os.environ.get("DIG_OWN_FRAMEWORK", "")

_wrapped: list[Any] = []  # the teams of the test that runs
_refused: list[str] = []  # why teams of it cannot be wrapped

WANTED = (("FAIL", "request"), ("FAIL", "answer"))


def _wrap(team: Any) -> Any:
    try:
        wrapped = dig.wrap(team, mode=MODE)
    except SettingsError as error:
        _refused.append(str(error))
        return team
    if not any(wrapped is one for one in _wrapped):
        _wrapped.append(wrapped)
    return wrapped


# --- where a team comes from ------------------------------------------------------------------

Method = Callable[..., Any]


def returned(method: Method) -> Method:
    """A method that returns a team."""

    @wraps(method)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return _wrap(method(*args, **kwargs))

    return replacement


def asked(method: Method) -> Any:
    """A class method that is given a `starting_agent`, unless a wrapped team has called it."""

    @wraps(method)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        team = args[0] if args else kwargs.get("starting_agent")
        if current.get() is None and team is not None:
            _wrap(team)
        return method(*args, **kwargs)

    return staticmethod(replacement)


_making: list[Any] = []


def made(method: Method) -> Method:
    """An `__init__` of teams; what a team makes for itself is a part of it."""

    @wraps(method)
    def replacement(self: Any, *args: Any, **kwargs: Any) -> None:
        _making.append(self)
        try:
            method(self, *args, **kwargs)
        finally:
            _making.pop()
        if not _making:
            _wrap(self)

    return replacement


def kicked_off(method: Method) -> Method:
    """A method that begins the work of a team; a copy that a wrapped team makes is watched."""

    @wraps(method)
    def replacement(self: Any, *args: Any, **kwargs: Any) -> Any:
        if method.__name__ not in vars(self) and current.get() is None:
            _wrap(self)
            if method.__name__ in vars(self):
                return getattr(self, method.__name__)(*args, **kwargs)
        return method(self, *args, **kwargs)

    return replacement


_CHATS = ("RoundRobinGroupChat", "SelectorGroupChat", "Swarm", "MagenticOneGroupChat", "GraphFlow")

TEAMS: dict[str, tuple[tuple[str, str, str, Callable[[Method], Any]], ...]] = {
    "langgraph": (("langgraph.graph", "StateGraph", "compile", returned),),
    "openai-agents": tuple(
        ("agents", "Runner", name, asked) for name in ("run", "run_sync", "run_streamed")
    ),
    "crewai": tuple(
        ("crewai", kind, name, kicked_off)
        for kind, names in (
            ("Crew", ("kickoff", "akickoff", "replay")),
            ("Agent", ("kickoff", "kickoff_async")),
        )
        for name in names
    ),
    "autogen": (
        ("autogen_core", "SingleThreadedAgentRuntime", "__init__", made),
        *(("autogen_agentchat.teams", name, "__init__", made) for name in _CHATS),
    ),
}
"""By framework: a module, a class in it, the method that teams come through, and in which way."""


def pytest_configure() -> None:
    """Have the teams that are built from now on wrapped; before any test module is imported."""
    if MODE != "bare":
        for module, kind, name, way in TEAMS[FRAMEWORK]:
            owner = getattr(import_module(module), kind)
            setattr(owner, name, way(getattr(owner, name)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Write down the id of each test: a report has only its class and its name."""
    for item in items:
        item.user_properties.append(("nodeid", item.nodeid))


@pytest.fixture(autouse=True)
def dig_unwraps(request: pytest.FixtureRequest) -> Iterator[None]:
    """Unwrap the teams of a test, and write down what was seen of each."""
    yield
    seen = [_seen(team) for team in _wrapped]
    for team in _wrapped:
        dig.unwrap(team)
    seen += [{"refused": why} for why in _refused]
    _wrapped.clear()
    _refused.clear()
    request.node.user_properties.append(("dig", json.dumps(seen)))


def _seen(team: Any) -> dict[str, Any]:
    session = dig.session_of(team)
    statistics, findings, graph = session.statistics(), session.findings, session.monitor.graph
    return {
        "requests": statistics.requests,
        "faults": statistics.faults,
        "stopped": statistics.stopped,
        "alarms": [
            f"{one.pattern}: {dig.explain(graph, one).text}"
            for one in findings
            # Tests of errors end requests by them, and that is told.
            if one.is_alarm and (one.pattern, one.stage) not in WANTED
        ],
        "notices": [one.pattern for one in findings if not one.is_alarm],
    }
