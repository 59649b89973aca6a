"""The way from a cause to the end of a run.

`chain` follows lineage alone. `Spread` is a table, learned from runs whose way is known: how often,
for a mechanism and an end of the run, a step leads from one role to another one. Roles are the
cause R, the task T, the outcome O; and of other agents: C (it collects the results), W (work waits
before it in the end), D (it was sent something by the cause), in any combination.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from dig.diagnosis.case import Case
from dig.diagnosis.causes import OUTCOME, TASK
from dig.diagnosis.signs.analysis import RunAnalysis
from dig.graph.records import Deliver, Emit, Finish, Start
from dig.show.document import Candidate
from dig.tasks.number_ranges import difference
from dig.traces.run import RecordedRun

SHARE = 0.45
"""The least share of known runs for a step to be told."""
LEAST = 30
"""The least number of known runs behind a share."""
TABLE = "spread.json"
ANY = "any"

Step = tuple[str, str]
"""From a component to another; in the table from a role to another."""


def chain(run: RecordedRun, activation: str) -> list[str]:
    """Return a path of activations by lineage, from an activation to the last descendant.

    Args:
        run: The run.
        activation: The first activation.
    """
    before: dict[str, str] = {}
    for act in run.activations.values():
        generators = [run.events[event].by for event in act.inputs]
        by = next((by for by in reversed(generators) if by in before or by == activation), None)
        if by is not None and act.id != activation:
            before[act.id] = by
    # Activations stand in the order of their start, so the last one found is the latest descendant.
    path = [next(reversed(before), activation)]
    while path[-1] in before:
        path.append(before[path[-1]])
    return path[::-1]


def name_end(analysis: RunAnalysis) -> str:
    """Name the end of a run: `whole` or `part` of an answer, else the outcome."""
    answer, last = analysis.run.answer, analysis.run.last
    if answer is not None:
        return "part" if difference(analysis.whole, analysis.about([answer])) else "whole"
    return last.outcome if isinstance(last, Finish) else "cut off"


def find_roles(analysis: RunAnalysis, cause: str) -> dict[str, str]:
    """Find the role of each component, from the records alone.

    Args:
        analysis: The run.
        cause: The agent at fault.
    """
    run = analysis.run
    reports = Counter[str]()
    for event in analysis.sent:
        if analysis.parts is not None and (to := analysis.parts.report_to(event)):
            reports[to] += 1
    collector = max(reports, key=reports.__getitem__, default=None)
    waiting = {agent for live in run.graph.live.values() if live.work for agent in live.copies}
    informed = {to for event in analysis.sent if event.agent == cause for to, _ in event.arrivals}
    roles = {cause: "R", TASK: "T", OUTCOME: "O"}
    for agent in run.agents:
        if agent != cause:
            flags = (agent == collector, agent in waiting, agent in informed)
            letters = zip("CWD", flags, strict=True)
            roles[agent] = "".join(letter for letter, holds in letters if holds)
    return roles


@dataclass
class Spread:
    """The frequency of steps between roles.

    Attributes:
        pairs: For a mechanism and an end, with a bar between: how many pairs of components there
            were with two roles, and in how many of them there was a step.
    """

    pairs: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def learn(
        self, analysis: RunAnalysis, cause: str, mechanism: str | None, steps: Iterable[Step]
    ) -> None:
        """Count the steps of a run.

        Args:
            analysis: The run.
            cause: The agent at fault.
            mechanism: The mechanism of the failure.
            steps: The true steps between components.
        """
        role, true = find_roles(analysis, cause), set(steps)
        for key in _keys(mechanism, name_end(analysis)):
            rows = self.pairs.setdefault(key, {})
            for source in role:
                for target in role:
                    if source != target and source != OUTCOME:
                        row = rows.setdefault(f"{role[source]}>{role[target]}", [0, 0])
                        row[0] += 1
                        row[1] += (source, target) in true

    def steps(self, analysis: RunAnalysis, cause: str, mechanism: str | None) -> list[Step]:
        """Return the probable steps of a failure.

        Args:
            analysis: The run.
            cause: The agent at fault.
            mechanism: The mechanism of the failure.
        """
        role = find_roles(analysis, cause)
        keys = _keys(mechanism, name_end(analysis))
        return [
            (source, target)
            for source in role
            for target in role
            if source != target and self._share(keys, f"{role[source]}>{role[target]}") >= SHARE
        ]

    def _share(self, keys: Iterable[str], pair: str) -> float:
        for key in keys:  # from the most special one on
            total, true = self.pairs.get(key, {}).get(pair, (0, 0))
            if total >= LEAST:
                return true / total
        return 0.0

    def to_json(self) -> Mapping[str, Any]:
        """Return plain JSON, in order."""
        return {
            key: {pair: rows[pair] for pair in sorted(rows) if rows[pair][1]}
            for key, rows in sorted(self.pairs.items())
        }


def _keys(mechanism: str | None, end: str) -> tuple[str, str, str]:
    return f"{mechanism or ANY}|{end}", f"{mechanism or ANY}|{ANY}", f"{ANY}|{end}"


@cache
def read_shipped() -> Spread:
    """Read the shipped table."""
    text = files("dig.diagnosis.attribution").joinpath(TABLE).read_text(encoding="utf-8")
    return Spread(json.loads(text))


def trace_steps(case: Case, cause: Candidate) -> list[tuple[str, str, int]]:
    """Return the probable steps from a cause to the outcome, each with a record.

    Args:
        case: The run.
        cause: The beginning of the failure.
    """
    analysis = case.analysis
    steps = read_shipped().steps(analysis, cause.agent, cause.mechanism)
    if not any(source == cause.agent for source, _ in steps):
        # Nothing was learned about such a cause: what follows from it in the records is left.
        steps += _by_lineage(case, cause)
    about = _records_about(analysis.run)
    about[cause.agent] = next((row.t for row in cause.evidence if row.t is not None), cause.t or 0)
    last = analysis.run.last.t
    return [
        (source, target, about.get(target if target == OUTCOME else source, last))
        for source, target in dict.fromkeys(steps)
    ]


def _by_lineage(case: Case, cause: Candidate) -> list[Step]:
    """The steps from agent to agent along lineage, and at last to the outcome."""
    run = case.run
    path = chain(run, cause.activation) if cause.activation in run.activations else []
    agents = list(dict.fromkeys([cause.agent, *(run.activations[name].agent for name in path)]))
    return list(zip(agents, [*agents[1:], OUTCOME], strict=True))


def _records_about(run: RecordedRun) -> dict[str, int]:
    """The last record about each component."""
    last: dict[str, int] = {}
    for record in run.records:
        match record:
            case Emit(event=event) if run.events[event].is_work:
                last[TASK] = record.t
            case Start(agent=agent) | Deliver(to=str(agent)):
                last[agent] = record.t
            case Finish():
                last[OUTCOME] = record.t
    return last
