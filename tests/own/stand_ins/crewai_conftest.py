"""Stands in for `conftest.py` of CrewAI's workspace, which no source distribution has: a plugin.

Recorded answers of models are played to the tests, and what is not recorded fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}


@pytest.fixture(scope="module")
def vcr_cassette_dir(request: pytest.FixtureRequest) -> str:
    """The recordings have the folders of the tests."""
    tests = request.config.rootpath / "tests"
    return str(tests / "cassettes" / Path(request.path).parent.relative_to(tests))


@pytest.fixture(scope="module")
def vcr_config() -> dict[str, Any]:
    """Requests are told apart by address alone, one after the other."""
    return {"record_mode": "none", "match_on": ["method", "scheme", "host", "port", "path"]}


@pytest.fixture(autouse=True)
def crewai_is_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for each test, and no handler of events of an earlier one."""
    from crewai.events.base_events import reset_emission_counter
    from crewai.events.event_bus import crewai_event_bus

    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
    monkeypatch.setenv("CREWAI_TESTING", "true")
    reset_emission_counter()
    yield
    with crewai_event_bus._rwlock.w_locked():
        crewai_event_bus._sync_handlers.clear()
        crewai_event_bus._async_handlers.clear()
