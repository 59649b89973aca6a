"""Forks of simulated runs, and who is called in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dig.graph import records
from dig.runtime import Plan, View
from dig.runtime.simulator import Simulation
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import read_records
from dig.traces.replay.rewind import rewind
from dig.traces.replay.tape import read_requests
from tests.chaos import Chaos, ChaosRun


@dataclass(frozen=True)
class Counted:
    """A chaos agent that notes for which of its activations it is called."""

    inner: Chaos
    calls: list[tuple[str, int]]

    def plan(self, view: View) -> Plan:
        self.calls.append((view.agent, view.turn))
        return self.inner.plan(view)


def forked(
    path: Path, at: int, run: ChaosRun, edit: dict[str, Any] | None = None
) -> tuple[Path, list[tuple[str, int]]]:
    """Fork a run in virtual time: the new journal, and who was called for which turn."""
    calls: list[tuple[str, int]] = []
    team = {name: Counted(agent, calls) for name, agent in run.team.items()}
    header = {k: v for k, v in (read_requests(path).header or {}).items() if k != "version"}
    fork = path.with_name("fork.dig.jsonl")
    fork.unlink(missing_ok=True)
    journal = Journal(fork, header=header)
    Simulation.resume(rewind(path, at, edit=edit, sink=journal), team).run()
    journal.close()
    return fork, calls


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def turns_before(path: Path, at: int) -> set[tuple[str, int]]:
    """The activations that began before record `at`, as (agent, turn), if their end is known."""
    count: dict[str, int] = {}
    begun: dict[str, tuple[str, int]] = {}
    known = set()
    for record in read_records(path):
        if isinstance(record, records.Start) and record.t < at:
            count[record.agent] = count.get(record.agent, 0) + 1
            begun[record.activation] = (record.agent, count[record.agent])
        elif isinstance(record, records.End) and record.activation in begun:
            known.add(begun[record.activation])
    return known
