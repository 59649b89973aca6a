"""What the tests of exports share."""

from __future__ import annotations

import os

import pytest

from .expected import Told, session


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What OTEL_* variables say outside is not what a test says."""
    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def told(request: pytest.FixtureRequest) -> Told:
    """A session of several hundred activations in which everything happens."""
    return Told(session(2200 if request.config.getoption("whole") else 600))
