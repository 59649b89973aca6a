"""Real servers for the tests of sessions; without one they count as skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from dig.adapters.nats.embedded import embed_server, find_server
from dig.errors import SettingsError

collect_ignore_glob = [] if find_spec("nats") else ["test_*.py"]
"""Without nats-py nothing here can be imported: `make test-nats` installs it."""


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop on which nats-py runs."""
    return "asyncio"


@pytest.fixture(scope="session")
def server_program() -> Path:
    try:
        return find_server()
    except SettingsError as error:
        pytest.skip(str(error))


@pytest.fixture
def url(server_program: Path, tmp_path: Path) -> Iterator[str]:
    """A server with an empty store of its own."""
    with embed_server(tmp_path) as address:
        yield address
