"""The summary of one run, from its trace and the files beside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from dig._util.files import open_file, read_file
from dig._util.text import MOST_LISTED
from dig.detectors import standard
from dig.detectors.describe import worth
from dig.detectors.finding import Finding
from dig.detectors.run_so_far import RunSoFar, goal_text
from dig.detectors.watch import Watch
from dig.errors import RuleError, TraceError
from dig.graph.graph import InteractionGraph
from dig.graph.records import OUTCOMES, WAITS, Emit, FindingRow, HealRow, IncidentRow, Record
from dig.traces.journal.journal import RESULT, SIDE
from dig.traces.journal.reader import MOST_BYTES, read_records, trace_path
from dig.traces.journal.recovery import is_cut_off
from dig.traces.journal.segments import fault, segment_path
from dig.traces.usage import Costs, is_number

MOST_ASKED = 10_000
"""The number of requests whose first words are remembered."""

State = Literal["ended", "in progress", "cut off", "broken"]


@dataclass(frozen=True)
class RunSummary:
    """The summary of one run.

    Attributes:
        path: The run directory, or the trace file.
        state: `ended`; `in progress`, if the trace has no end; `cut off`, if besides it is a
            journal that no process writes any more; `broken`, if it cannot be read to its end.
        problem: The reason for `broken`.
        run: The name of its configuration.
        task: The task of the team.
        method: The method against failures.
        seed: The seed of its random numbers.
        began: The date and time of its beginning, as ISO 8601.
        outcome: Its outcome, if it has ended; for a run that was cut off, that in `result.json`.
        agents: The number of agents.
        seconds: Its duration in seconds, on its own clock.
        records, activations, events: Their numbers in the trace.
        findings: The number of findings by pattern. A trace without a row of kind `finding`
            is checked again.
        worth: The number of findings of each severity; those that a policy silences are counted as
            `silenced` only.
        heals: The number of interventions, by action.
        score: The score of the answer, by the task.
        cost: The sums of `usage`, by key.
        agents_are: The kind of agents: `simulated`, for instance.
        data_are: A description of the task's data.
        team: What was wrapped, if the run is the session of a wrapped team.
        requests: What happened to its requests: how many were answered, for instance.
        headline: The failed request, or the agent whose work the answer lacks; empty: none.
        waits: The activations that wait for a person, each with `activation`, `agent`, `since`
            (a date, if the run has one), `since_s` (on its clock), and the first words of its
            `request`.
    """

    path: str
    state: State = "broken"
    problem: str | None = None
    run: str | None = None
    task: Any = None
    method: str | None = None
    seed: Any = None
    began: str | None = None
    outcome: str | None = None
    agents: int = 0
    seconds: float = 0.0
    records: int = 0
    activations: int = 0
    events: int = 0
    findings: dict[str, int] = field(default_factory=dict)
    worth: dict[str, int] = field(default_factory=dict)
    heals: dict[str, int] = field(default_factory=dict)
    score: Any = None
    cost: dict[str, float] = field(default_factory=dict)
    agents_are: str | None = None
    data_are: str | None = None
    team: str | None = None
    requests: dict[str, int] = field(default_factory=dict)
    headline: str = ""
    waits: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The last part of its path: the execution id of a run directory."""
        return Path(self.path).name

    @property
    def status(self) -> str:
        """Its outcome or, if it has none, or none that holds, its state."""
        return self.outcome or self.state if self.state in ("ended", "cut off") else self.state

    @property
    def ending(self) -> str:
        """The ends of the requests of a wrapped team; of any other run, its status."""
        told = [f"{n:,} {state}" for state, n in self.requests.items()]
        return ", ".join(told) if self.state != "broken" and told else self.status

    def to_json(self) -> dict[str, Any]:
        """The object that `digmon runs --json` prints for it."""
        return dict(vars(self))


class _Waits:
    """Follows the activations that wait for a person."""

    def __init__(self, graph: InteractionGraph) -> None:
        self._graph = graph
        self._asked: dict[str, str] = {}  # request -> its first words
        self._since: dict[str, int] = {}  # activation -> since when, in microseconds

    def __call__(self, record: Record) -> None:
        if isinstance(record, Emit) and record.by is None:
            self._asked[record.event] = goal_text(record.payload)
            if len(self._asked) > MOST_ASKED:
                del self._asked[next(iter(self._asked))]
        elif isinstance(record, IncidentRow) and record.what == WAITS:
            for one in self._graph.running.values():
                if one.waits:
                    self._since.setdefault(one.id, record.us)

    def rows(self, began: str | None) -> list[dict[str, Any]]:
        """Those that still wait, in the order in which they began to."""
        running = self._graph.running
        return [
            {
                "activation": one, "agent": running[one].agent, "since": _moment(began, us),
                "since_s": us / 1_000_000, "request": self._request(one),
            }
            for one, us in self._since.items()
            if one in running
        ]  # fmt: skip

    def _request(self, activation: str) -> str:
        events = self._graph.source_ids(self._graph.activation_sources(activation))
        return "; ".join(self._asked.get(event, "") for event in events[:MOST_LISTED])


def _moment(began: str | None, us: int) -> str | None:
    """A moment on the clock of a run, as a date."""
    try:
        return (datetime.fromisoformat(began or "") + timedelta(microseconds=us)).isoformat()
    except (ValueError, OverflowError):
        return None


class _Raised:
    """Counts findings by pattern and by worth."""

    def __init__(self) -> None:
        self.patterns, self.worth = Counter[str](), Counter[str]()

    def count(self, *findings: Finding | FindingRow) -> None:
        for one in findings:
            self.patterns[str(one.pattern)] += 1
            self.worth[worth(one)] += 1


def summarise(path: Path) -> RunSummary:
    """Summarise a run; if its trace cannot be read, the summary says so."""
    side, result = beside(path, SIDE), beside(path, RESULT)
    watch, costs = Watch(standard()), Costs()
    so_far, waits = RunSoFar(watch.graph), _Waits(watch.graph)
    recorded, found, heals = _Raised(), _Raised(), Counter[str]()
    state = standing(path)
    problem = None
    try:
        # Record by record, and none is kept: a list of runs must not need the memory of a run.
        for record in read_records(path, payloads=False):
            raised_here = watch.feed(record)
            found.count(*raised_here)
            costs(record)
            so_far(record, raised_here)
            waits(record)
            if isinstance(record, FindingRow):
                recorded.count(record)
            elif isinstance(record, HealRow):
                heals[str(record.action)] += 1
    except TraceError as error:
        if not _is_torn(trace_path(path), watch.graph.t + 1):
            state, problem = "broken", str(error)
    except RuleError as error:
        state, problem = "broken", str(fault(trace_path(path), watch.graph.t + 2, str(error)))
    graph, raised = watch.graph, recorded if recorded.patterns else found
    finish = graph.finished
    first = graph.run if graph.t >= 0 else None
    outcome = finish.outcome if finish else None
    if not finish and state == "cut off" and result.get("outcome") in OUTCOMES:
        outcome = result["outcome"]  # the run went on without its journal
    return RunSummary(
        path=str(path),
        state="ended" if finish and not problem else state,
        problem=problem,
        run=first.run if first else _text(side.get("run")),
        task=first.task if first and first.task is not None else side.get("task"),
        method=_text(side.get("method")),
        seed=first.seed if first else side.get("seed"),
        began=_text(side.get("began")),
        outcome=outcome,
        agents=len({*first.agents, *graph.history.agent_names}) if first else 0,
        seconds=graph.now / 1_000_000,
        records=graph.t + 1,
        activations=len(graph.history.activation_ids),
        events=len(graph.history.event_ids),
        findings=dict(raised.patterns),
        worth=dict(raised.worth),
        heals=dict(heals),
        score=result.get("score"),
        cost=dict(costs.sums),
        agents_are=_text(side.get("agents_are")),
        data_are=_text(side.get("data_are")),
        team=_text(side.get("team")),
        requests=so_far.requests,
        headline=so_far.headline.says if so_far.headline else "",
        waits=waits.rows(_text(side.get("began"))),
    )


def standing(path: Path) -> State:
    """The state of a run whose trace has no end: it changes without a change to a file."""
    return "cut off" if is_cut_off(path) else "in progress"


def grade(score: object) -> float | None:
    """The figure in a score: the score itself, its RMSE, or the first number in it."""
    if isinstance(score, Mapping):
        return next((v for v in (score.get("rmse"), *score.values()) if is_number(v)), None)
    return score if isinstance(score, int | float) and is_number(score) else None


def quality(score: object, *, is_early: bool = False) -> str:
    """The grade of an answer: `good`, `inexact`, `bad`, or `unknown`.

    Args:
        score: Its score.
        is_early: Whether some of its work was missing by the account of the monitor.
    """
    known = score if isinstance(score, Mapping) else {}
    if known.get("valid") is False or known.get("complete") is False:
        return "bad"
    if not is_number(known.get("rmse")):
        return "bad" if is_early else "unknown"
    return "inexact" if known["rmse"] else "good"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def beside(path: Path, name: str) -> dict[str, Any]:
    """The object in a JSON file beside the trace; empty if it is missing or invalid."""
    try:
        found = json.loads(read_file(path / name), parse_constant=lambda name: None)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_torn(path: Path, whole: int) -> bool:
    """A trace stops within the line after its first `whole` ones: it is being written."""
    if segment_path(path, 2).exists():  # then it is a journal, in which this is damage
        return False
    try:
        with open_file(path) as file:
            for _ in range(whole):
                file.readline()
            line = file.readline(MOST_BYTES)
    except OSError:
        return False
    return whole > 0 and bool(line) and len(line) < MOST_BYTES and not line.endswith(b"\n")
