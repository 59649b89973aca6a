"""What tests of commands share."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.test_cli import digmon


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command, to be called with its arguments: exit status, output, errors."""
    return lambda *arguments: digmon(capsys, monkeypatch, *arguments)
