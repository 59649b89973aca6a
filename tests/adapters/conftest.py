"""Time is virtual where a test has an event loop, and stands still where it has none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import backends


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """The event loop under a test marked `anyio`: each such test runs on both."""
    return backends()[request.param]()
