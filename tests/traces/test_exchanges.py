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
from dig.traces.journal.exchanges import EXCHANGES, are_incomplete, exchanges


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
    monkeypatch.setattr(os, "write", full)
    with (
        exchanges([asked], tmp_path),
        pytest.raises(StopRunError, match="No space left on device"),
    ):
        asked.keep({})


def test_a_run_may_go_on_without_its_exchanges_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--disk-full continue` whole lines are left, and a mark; another fault ends the run."""
    write, room = os.write, 2

    def nearly_full(file: int, data: memoryview) -> int:
        nonlocal room
        room -= 1
        if room < 0:
            write(file, data[:5])
            raise OSError(28, "No space left on device")
        return write(file, data)

    asked = Asked()
    monkeypatch.setattr(os, "write", nearly_full)
    with exchanges([asked], tmp_path, disk_full="continue"):
        assert not are_incomplete(tmp_path)
        for n in range(4):
            asked.keep({"n": n})
        assert room == -1, "once the disk was full, nothing more is tried"
    lines = (tmp_path / EXCHANGES).read_text().splitlines()
    assert [json.loads(line)["n"] for line in lines] == [0, 1]
    assert are_incomplete(tmp_path)
    assert stat.S_IMODE((tmp_path / f"{EXCHANGES}.incomplete").stat().st_mode) == 0o600


def test_a_broken_disk_ends_the_run_whatever_a_full_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: int, data: memoryview) -> int:
        raise OSError(5, "Input/output error")

    asked = Asked()
    monkeypatch.setattr(os, "write", broken)
    with (
        exchanges([asked], tmp_path, disk_full="continue"),
        pytest.raises(StopRunError, match="Input/output error"),
    ):
        asked.keep({})
    assert not are_incomplete(tmp_path)
