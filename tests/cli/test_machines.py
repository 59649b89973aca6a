"""The commands of sessions on several machines, without what they need."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dig.cli.machines import _setup
from dig.errors import SettingsError


@pytest.mark.parametrize(
    "line", ["serve --session s", "agent s a m:a", "ask s 5", "sessions", "pull - s runs"]
)
def test_a_command_without_its_extra_says_what_to_install(
    line: str, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    status, _, errors = call(*line.split())
    assert status == 2
    assert "try: pip install 'dig-monitor[nats]'" in errors


def test_a_budget_that_would_not_be_kept_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "team.toml"
    file.write_text("[budget]\nturns = 20\n")
    with pytest.raises(SettingsError, match=r"keeps no \[budget\]; leave it out"):
        _setup("news", None, file, None, 60.0)
