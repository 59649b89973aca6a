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


@pytest.mark.parametrize(
    ("engine", "count"),
    [
        ("simulator", 100),
        ("shell", 80),
        pytest.param("simulator", 1_000, marks=pytest.mark.nightly),
        pytest.param("shell", 500, marks=pytest.mark.nightly),
    ],
)
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
        (7052, "simulator"),
    ],
)
def test_a_note_names_only_history_that_a_session_keeps(
    number: int, engine: str, tmp_path: Path
) -> None:
    """Sessions that let go of history say the same in notes.

    They name neither a LIVELOCK's origin nor an agent that has left.
    """
    assert len(carry_out(Schedule.of(number, engine), tmp_path)[0])


@pytest.mark.parametrize(
    "schedule",
    [
        *(Schedule.of(number, "simulator") for number in (76, 119, 190, 354, 397, 777, 1347, 2773)),
        *(
            Schedule(5100000 + n, "simulator", frozenset(), keep=0, limit_s=6)
            for n in (66, 236, 272)
        ),
    ],
    ids=lambda schedule: str(schedule.number),
)
def test_steps_of_healing_are_the_same_in_a_session_that_lets_go(
    schedule: Schedule, tmp_path: Path
) -> None:
    """Findings about which a step is still to come, and what it names, are not let go of."""
    assert len(carry_out(schedule, tmp_path)[0])


def few(folder: Path) -> list[str]:
    """The records of the first schedules on each engine."""
    return [str(records(number, engine, folder)) for engine in ENGINES for number in range(8)]


def test_a_schedule_comes_again(tmp_path: Path) -> None:
    """Same number, same records, in one process and in others that hash differently."""
    here = few(tmp_path)
    assert here == few(tmp_path)
    code = (
        "import sys; from pathlib import Path; from tests.test_schedules import few\n"
        "print(*few(Path(sys.argv[1])), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "5", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == here


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
