"""Time is virtual in tests; those of a framework are collected where it is installed."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import pytest

from tests.helpers import backends

FRAMEWORKS = {
    "google_adk": "google.adk",
    "a2a": "a2a", "ag2": "ag2", "agent_framework": "agent_framework",
    "autogen": "autogen_agentchat", "langgraph": "langgraph", "openai_agents": "agents.testing",
    "pydantic_ai": "pydantic_ai",
    "llama_index": "llama_index.core",
    "crewai": "crewai",
}  # fmt: skip
"""By the beginning of the names of its files of tests: what a framework must have installed."""


def is_installed(module: str) -> bool:
    """Whether a module can be imported; of one inside a package, that package is imported."""
    with suppress(ModuleNotFoundError):
        return find_spec(module) is not None
    return False


INSTALLED = [name for name, module in FRAMEWORKS.items() if is_installed(module)]

collect_ignore_glob = [f"test_{name}*.py" for name in FRAMEWORKS if name not in INSTALLED]


@pytest.fixture
def every(pytestconfig: pytest.Config) -> int:
    """At one of how many steps a request is cancelled; at all of them in the nightly run."""
    return 1 if pytestconfig.getoption("whole") else 5


@pytest.fixture
def crowd(pytestconfig: pytest.Config) -> int:
    """The number of requests at once: 200 in the nightly run."""
    return 200 if pytestconfig.getoption("whole") else 40


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """The event loop under a test marked `anyio`: each such test runs on both."""
    return backends()[request.param]()
