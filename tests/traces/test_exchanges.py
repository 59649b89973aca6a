"""The side file of exchanges with models."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dig.errors import JournalError, StopRunError
from dig.traces.exchanges import EXCHANGES, exchanges


class Asked:
    keep: Callable[[dict[str, Any]], None]


def test_every_exchange_is_a_line_for_its_owner_only(tmp_path: Path) -> None:
    """Several models share the file; each line is there as soon as the exchange is over."""
    models = [Asked(), Asked()]
    with exchanges(models, tmp_path):
        for n in range(4):
            models[n % 2].keep({"n": n, "said": "two\nlines \ud83d\ude00"})
            lines = (tmp_path / EXCHANGES).read_text().splitlines()
            assert [json.loads(line)["n"] for line in lines] == list(range(n + 1))
    assert stat.S_IMODE((tmp_path / EXCHANGES).stat().st_mode) == 0o600


def test_without_a_model_there_is_no_file(tmp_path: Path) -> None:
    """A run of simulated agents leaves what it left before."""
    with exchanges([], tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Before anything is sent."""
    with (
        pytest.raises(JournalError, match="cannot make"),
        exchanges([Asked()], tmp_path / "no"),
    ):
        pass


def test_a_full_disk_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent that cannot be kept: the run stops, and says why."""

    def full(file: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    asked = Asked()
    with exchanges([asked], tmp_path):
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(StopRunError, match="No space left on device"):
            asked.keep({})
