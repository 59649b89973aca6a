"""The commands of sessions on several machines, without what they need."""

from __future__ import annotations

import sys
from typing import Any

import pytest


@pytest.mark.parametrize(
    "line", ["serve --session s", "agent s a m:a", "ask s 5", "sessions", "pull - s runs"]
)
def test_a_command_without_its_extra_says_what_to_install(
    line: str, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    status, _, errors = call(*line.split())
    assert status == 2
    assert "need nats-py: pip install 'dig-monitor[nats]'" in errors
