"""The campaign over schedules: every law holds, faults strike, and what fails comes again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dig.monitor.holds import Holds
from tests.fault_points import POINTS
from tests.loops import ENGINES
from tests.schedules import Schedule, campaign, carry_out, main

ROOT = Path(__file__).parents[1]


def records(number: int, engine: str, folder: Path) -> list[Any]:
    """The records of a schedule with every fault but that of a journal, which ends it."""
    points = frozenset(POINTS) - {"journal.write"}
    return list(carry_out(Schedule(number, engine, points), folder)[0])


@pytest.mark.parametrize(("engine", "count"), [("simulator", 600), ("shell", 150)])
def test_every_law_holds_whatever_fails(engine: str, count: int) -> None:
    """Random teams, schedules, thresholds and faults break no law, and every fault strikes."""
    tally, _ = campaign([Schedule.of(n, engine) for n in range(count)], jobs=1)
    assert not tally.failures
    struck = {point for point in POINTS if tally.seen[f"fault {point}"]}
    assert struck >= {*POINTS} - ({"export"} if engine == "simulator" else set())


@pytest.mark.parametrize(
    ("number", "engine"),
    [
        (940104, "simulator"),
        (5001763, "simulator"),
        (5000270, "shell"),
        (22911, "simulator"),
        (2011399, "simulator"),
        (2029701, "simulator"),
        (33281, "simulator"),
    ],
)
def test_a_note_names_only_history_that_a_session_keeps(
    number: int, engine: str, tmp_path: Path
) -> None:
    """Sessions that let go of history say the same in notes.

    They name neither a LIVELOCK's origin nor an agent that has left.
    """
    assert len(carry_out(Schedule.of(number, engine), tmp_path)[0])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_schedule_comes_again(engine: str, tmp_path: Path) -> None:
    """Same number, same records, in one process and in others that hash differently."""
    here = [records(number, engine, tmp_path) for number in range(8)]
    assert here == [records(number, engine, tmp_path) for number in range(8)]
    code = (
        "import sys; from pathlib import Path; from tests.test_schedules import records\n"
        f"for n in range(8): print(records(n, {engine!r}, Path(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "5", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [str(records) for records in here]


def test_a_seed_decides_the_order_of_tasks(tmp_path: Path) -> None:
    """The loop is shuffled: another order of what is ready gives another run of the same team."""
    same = Schedule(3, "asyncio", frozenset())
    runs = {str(list(carry_out(same, tmp_path)[0]))}
    runs.add(str(list(carry_out(Schedule(3, "trio", frozenset()), tmp_path)[0])))
    assert len(runs) == 2


def test_what_breaks_a_law_is_made_small_and_told_with_its_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a bug in the release, schedules fail; the command that is printed fails, too."""
    take = Holds.take
    monkeypatch.setattr(Holds, "take", lambda holds: take(holds)[::-1])
    assert main(["--count", "30", "--jobs", "1"]) == 1
    told = capsys.readouterr().out
    again = re.search(r"again: python -m tests.schedules (.+)", told)
    assert again and "BROKE A LAW" in told
    assert main([*again[1].split(), "--jobs", "1"]) == 1
