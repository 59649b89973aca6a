"""A pytest plugin: every graph that is compiled while LangGraph's own tests run is wrapped.

`DIG_OWN_SUITE_MODE` is `bare`, `observe` or `heal`. A graph that a test has compiled is unwrapped
after that test, so that no session outlives it; if the wrapper has failed in it, so does the test.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import wraps
from typing import Any

import pytest
from langgraph.graph import StateGraph

import dig

MODE = os.environ.get("DIG_OWN_SUITE_MODE", "bare")

_wrapped: list[Any] = []


def _wrapping(whole: Any) -> Any:
    @wraps(whole)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        team = dig.wrap(whole(*args, **kwargs), mode=MODE)  # type: ignore[arg-type]
        _wrapped.append(team)
        return team

    return compiled


def pytest_configure() -> None:
    """Wrap what is compiled from now on; before any test module is imported."""
    if MODE != "bare":
        StateGraph.compile = _wrapping(StateGraph.compile)


@pytest.fixture(autouse=True)
def dig_lets_go(request: pytest.FixtureRequest) -> Iterator[None]:
    """Unwrap what a test has compiled, write down what was seen, and that nothing failed."""
    before = len(_wrapped)
    yield
    seen: Counter[str] = Counter()
    for team in _wrapped[before:]:
        session = dig.session_of(team)
        statistics = session.statistics()
        seen.update(teams=1, requests=statistics.requests, faults=statistics.faults)
        seen.update(finding.pattern for finding in session.findings)
        dig.unwrap(team)
    del _wrapped[before:]
    if seen:
        request.node.user_properties.append(("dig", json.dumps(seen)))
    assert not seen["faults"], f"the wrapper has failed {seen['faults']} times"
