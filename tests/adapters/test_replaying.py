"""The journal of a wrapped team is enough to make its run again, byte by byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

import dig
from dig.adapters import Mode
from dig.detectors.policy import HEAL_ALL
from dig.graph.records import IncidentRow
from dig.traces.journal.reader import read_records
from dig.traces.replay.rerun import rerun
from dig.traces.replay.rewind import rewind

from .test_healing import asking_twice, early, passing_on

pytestmark = pytest.mark.anyio

MODES: dict[str, tuple[Mode, dict[str, Any]]] = {
    "observed": ("observe", {}),
    "by severity": ("heal", {}),
    "with notes": ("heal", {"policy": HEAL_ALL}),
    "with all": ("heal", {"policy": HEAL_ALL, "allow": {"bounce", "reroute"}}),
}


async def ask_all(mode: Mode, runs: Path, **options: Any) -> list[Path]:
    """The run directories of some teams that each fail in their own way."""
    found: list[Path] = []
    for team, question in ((passing_on(), "?"), (asking_twice(), "?"), (early(), [1, 2])):
        background = team.pop("background", {})
        dig.wrap(team, mode=mode, journal=runs, same_work=True, **options)
        boss = next(iter(team))
        async with anyio.create_task_group() as background["tasks"]:
            await team[boss](question)
            await team[boss](question)
        session = dig.session_of(team)
        dig.unwrap(team)
        assert session.findings
        assert session.directory is not None
        found.append(session.directory)
    return found


@pytest.mark.parametrize("how", MODES)
async def test_a_run_of_a_wrapped_team_can_be_made_again(how: str, tmp_path: Path) -> None:
    """Also where healing could not do all it wanted, and where an event went to a further agent."""
    mode, options = MODES[how]
    whats: set[str] = set()
    for run in await ask_all(mode, tmp_path, **options):
        records = list(read_records(run))
        whats |= {row.what for row in records if isinstance(row, IncidentRow)}
        assert rerun(run).records == len(records)
    assert how == "by severity" or whats == ({"downgraded"} if how == "with notes" else set())


@pytest.mark.sampled(2)
async def test_a_run_of_a_wrapped_team_can_be_brought_to_any_moment(tmp_path: Path) -> None:
    """A fork takes what was downgraded, and sent again, as it was recorded."""
    for run in await ask_all("heal", tmp_path):
        records = list(read_records(run))
        for at in range(1, len(records) - 1):
            again: list[dig.Record] = []
            rewind(run, at, sink=again.append)
            assert again[:at] == records[:at]
