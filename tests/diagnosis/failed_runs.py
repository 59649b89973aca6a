"""Failed runs to be explained, small and in virtual time; and helpers to try changes of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dig.diagnosis.goal import Goal, has_answer
from dig.diagnosis.trials.replays import Trying
from dig.faults.inject.fault import Fault
from dig.faults.inject.faulty_team import disturbance_of
from dig.show.document import Hypothesis
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.journal import read_side
from dig.traces.journal.reader import TRACE
from tests.faults.forks import faulty

ANSWERED = Goal("answered", has_answer, is_own=True)
"""A run with a valid and complete answer; findings do not count."""


def failed(
    folder: Path, kind: str = "silent", target: str = "agent-3", seed: int = 2, **more: Any
) -> Path:
    """A run of four agents that fails by a fault of one of them."""
    return faulty(Fault(kind=kind, target=target, start_s=1.0), seed, folder, method="mas", **more)


def demo(folder: Path) -> Path:
    """The run of the demonstration: six agents, no fault, and no answer."""
    return execute(TeamRun(seed=2, method="mas"), folder).directory


def trying(run: Path, **more: Any) -> Trying:
    """Experiments on a run, in which its faults go on."""
    return Trying(disturb=disturbance_of(read_side(run)), **more)


def trace(run: Path) -> bytes:
    return (run / TRACE).read_bytes()


def files(run: Path) -> dict[Path, tuple[int, bytes]]:
    """The files of a run, each with the moment at which it was written, and its bytes."""
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(run.iterdir())
        if path.is_file()
    }


def hypothesis(*rows: Mapping[str, Any], expects: Mapping[str, Any] | None = None) -> Hypothesis:
    return Hypothesis(id="h1", candidate="c1", interventions=rows, expects=expects)


def seat(agent: str, by: str, at: int) -> Hypothesis:
    return hypothesis({"kind": "seat", "at": at, "agent": agent, "by": by})
