"""The summary of a run, from the trace and the files beside the trace."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from dig._util.files import open_file, read_file
from dig._util.text import MOST_LISTED, name, one_line, safe_text
from dig.detectors import standard
from dig.detectors.answers import FiveAnswers
from dig.detectors.describe import worth
from dig.detectors.five_answers import HEALING, five_answers
from dig.detectors.message_words import goal_text
from dig.detectors.run_so_far import RunSoFar
from dig.errors import RuleError, TraceError
from dig.graph import records
from dig.graph.graph import InteractionGraph
from dig.show.cause import KnownCause
from dig.show.follower import RunFollower
from dig.traces.journal.journal import RESULT, SIDE
from dig.traces.journal.reader import MOST_BYTES, read_records, trace_path
from dig.traces.journal.recovery import is_cut_off
from dig.traces.journal.segments import fault, segment_path
from dig.traces.usage import cost_text, is_number

NO_SUMS: Mapping[str, float] = MappingProxyType({})
NOTE = "note.txt"
MOST_NOTE = 4_000
"""The characters of a person's note on a run."""

MOST_DIGITS = 18
"""The digits of an integer in a file beside a trace."""

MOST_REQUESTS = 10_000
"""The number of requests whose first words are remembered."""

State = Literal["ended", "in progress", "cut off", "broken"]

_FindingCounts = Counter[tuple[str, str]]
"""Findings by pattern and worth."""


@dataclass(frozen=True)
class RunSummary:
    """The summary of a run.

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
        verdict, grade, headline: As in `FiveAnswers`: the end in a word, its colour, a sentence.
        who: The agents with a part in what went wrong.
        waits: The activations that wait for a person, each with `activation`, `agent`, `since`
            (a date, if the run has one), `since_s` (on its clock), and the first words of its
            `request`.
        note: The note that a person has written on it; empty: none.
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
    verdict: str = ""
    grade: str = "unknown"
    headline: str = ""
    who: list[str] = field(default_factory=list)
    waits: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""

    @property
    def name(self) -> str:
        """The last part of the path: the execution id of a run directory."""
        return Path(self.path).name

    @property
    def status(self) -> str:
        """The outcome or, for a run without a valid outcome, the state."""
        return self.outcome or self.state if self.state in ("ended", "cut off") else self.state

    @property
    def ending(self) -> str:
        """The verdict or, if there is none, the status."""
        return self.status if self.state == "broken" else self.verdict or self.status

    def to_json(self) -> dict[str, Any]:
        """The object for `digmon runs --json`."""
        return dict(vars(self))


class _Waits:
    """Follows activations waiting for a person."""

    def __init__(self, graph: InteractionGraph) -> None:
        self._graph = graph
        self._requests: dict[str, str] = {}  # request -> its first words
        self._since: dict[str, int] = {}  # activation -> since when, in microseconds

    def follow(self, record: records.Record) -> None:
        if isinstance(record, records.Emit) and record.by is None:
            self._requests[record.event] = goal_text(record.payload)
            if len(self._requests) > MOST_REQUESTS:
                del self._requests[next(iter(self._requests))]
        elif isinstance(record, records.IncidentRow) and record.what == records.WAITS:
            # The incident names an activation or an event; the graph knows which activations wait.
            for activation in self._graph.running.values():
                if activation.waits:
                    self._since.setdefault(activation.id, record.us)

    def rows(self, began: str | None) -> list[dict[str, Any]]:
        """The activations still waiting, in the order of the beginnings."""
        graph, rows = self._graph, []
        for id, us in self._since.items():
            if id in graph.running:
                events = graph.source_ids(graph.activation_sources(id))[:MOST_LISTED]
                request = "; ".join(self._requests.get(event, "") for event in events)
                rows.append(
                    {"activation": id, "agent": graph.running[id].agent,
                     "since": _date(began, us) or None, "since_s": us / 1_000_000,
                     "request": request}
                )  # fmt: skip
        return rows


def _date(began: str | None, us: int) -> str:
    """A moment on the clock of a run as a date, in ISO 8601; empty: not known."""
    try:
        return (datetime.fromisoformat(began or "") + timedelta(microseconds=us)).isoformat()
    except (ValueError, OverflowError):
        return ""


def summarise(path: Path) -> RunSummary:
    """Summarise a run; the summary of an unreadable trace has the problem."""
    return follow_run(path)[0]


def follow_run(path: Path) -> tuple[RunSummary, RunFollower]:
    """The summary of a stored run, and the run up to the end or to the first unreadable line."""
    side, result = read_beside(path, SIDE), read_beside(path, RESULT)
    follower = RunFollower(standard())
    graph, waits = follower.graph, _Waits(follower.graph)
    recorded, detected, heals = _FindingCounts(), _FindingCounts(), Counter[str]()
    state, problem = stored_state(path), ""
    try:
        # Record by record, and none is kept: a list of runs must not need the memory of a run.
        for record in read_records(path, payloads=False):
            detected.update((str(it.pattern), worth(it)) for it in follower.follow(record))
            waits.follow(record)
            if isinstance(record, records.FindingRow):
                recorded[str(record.pattern), worth(record)] += 1
            elif isinstance(record, records.HealRow):
                heals[str(record.action)] += 1
    except TraceError as error:
        if not _is_torn(trace_path(path), graph.t + 1):
            state, problem = "broken", str(error)
    except RuleError as error:
        state, problem = "broken", str(fault(trace_path(path), graph.t + 2, str(error)))
    patterns, worths = Counter[str](), Counter[str]()
    for (pattern, kind), number in (recorded or detected).items():
        patterns[pattern] += number
        worths[kind] += number
    finish, first = graph.finished, graph.run if graph.t >= 0 else None
    names = graph.history.agents.names
    later = result.get("outcome") if state == "cut off" else None  # it went on without its journal
    outcome = finish.outcome if finish else later if later in records.OUTCOMES else None
    texts = {key: value for key, value in side.items() if isinstance(value, str)}
    score, sums = result.get("score"), follower.costs.sums
    answers = stored_answers(path, follower.so_far, score, sums=sums)
    summary = RunSummary(
        path=str(path),
        state="ended" if finish and not problem else state,
        problem=problem or None,
        run=first.run if first else texts.get("run"),
        task=first.task if first and first.task is not None else side.get("task"),
        seed=first.seed if first else side.get("seed"),
        outcome=outcome,
        agents=len({*map(records.base_name, (*first.agents, *names))}) if first else 0,
        seconds=graph.now / 1_000_000,
        records=graph.t + 1,
        activations=len(graph.history.activation_ids),
        events=len(graph.history.event_ids),
        findings=dict(patterns),
        worth=dict(worths),
        heals=dict(heals),
        score=score,
        cost=dict(sums),
        requests=follower.so_far.requests,
        verdict=answers.verdict,
        grade=answers.grade,
        headline=answers.headline,
        who=[agent.agent for agent in answers.who],
        waits=waits.rows(texts.get("began")),
        note=read_note(path),
        **{key: texts.get(key) for key in ("method", "began", "agents_are", "data_are", "team")},
    )
    return summary, follower


def stored_state(path: Path) -> State:
    """The state of a run without an end; the state changes without a change to a file."""
    return "cut off" if is_cut_off(path) else "in progress"


def grade(score: object) -> float | None:
    """The figure in a score: the score itself, the RMSE, or the first number."""
    if isinstance(score, Mapping):
        return next((v for v in (score.get("rmse"), *score.values()) if is_number(v)), None)
    return score if isinstance(score, int | float) and is_number(score) else None


def stored_answers(
    path: Path, so_far: RunSoFar, score: object, *, sums: Mapping[str, float] = NO_SUMS,
    place: str | None = None, private: bool = False, cause: KnownCause | None = None,
) -> FiveAnswers:  # fmt: skip
    """The five answers about a stored run.

    Args:
        path: The run directory, or the trace file.
        so_far: The run, with all its records.
        score: The score of its answer, as its result has it.
        sums: The sums of its usage.
        place: The run in commands; ``None``: its path.
        private: Leave out what agents said to one another.
        cause: What a diagnosis names; ``None``: nothing.
    """
    if not so_far.run:
        return FiveAnswers()
    side = read_beside(path, SIDE)
    began, injections = side.get("began"), read_beside(path, RESULT).get("injections")
    can_heal = side.get("mode") == "heal" or side.get("method") in HEALING
    is_simulated = side.get("agents_are") == "simulated" and not side.get("gates")
    fields, figures = dict(score) if isinstance(score, Mapping) else {}, figures_text(score)
    if not fields.get("says") and figures:
        fields["says"] = f"Its score is: {figures}."
    named = cause if cause and not cause.is_refuted else None
    place = safe_text(path) if place is None else place
    answers = five_answers(
        so_far, state=stored_state(path), score=fields, private=private, place=place,
        spent=cost_text(sums),
        cause={"says": named.says, "agent": named.agent} if named else None,
        date=partial(_date, began if isinstance(began, str) else ""),
        injections=injections if isinstance(injections, list) else (), can_try=is_simulated,
        can_heal=can_heal,
    )  # fmt: skip
    if cause and cause.tried and answers.command.startswith("digmon why "):
        return _after_trying(answers, cause, place)
    return answers


def _after_trying(answers: FiveAnswers, cause: KnownCause, place: str) -> FiveAnswers:
    """The answers with a turn as the next step, since changes of the run were tried."""
    says, nodes = answers.next, [candidate.node for candidate in cause.candidates]
    if cause.is_refuted:
        says = "None of the changes that were tried helps"
        nodes = [agent.activation for agent in answers.who if agent.is_at_fault]
    node = next(filter(None, nodes), "")
    command = shlex.join(["digmon", "show", place, *([name(node)] if node else [])])
    return replace(answers, next=f"{says}; the turn to look at" if node else says, command=command)


def figures_text(score: object) -> str:
    """The figures in a score, with their names."""
    figures = score if isinstance(score, Mapping) else {"": score}
    texts = [f"{one_line(k, 20)} {v:,g}".strip() for k, v in figures.items() if is_number(v)]
    return ", ".join(texts)


def read_beside(path: Path, name: str) -> dict[str, Any]:
    """The object in a JSON file beside the trace; empty: missing or invalid."""
    try:
        # NaN and Infinity, which JSON does not have, are read as null; so are endless numbers.
        body = json.loads(
            read_file(path / name), parse_constant=lambda name: None,
            parse_int=lambda digits: int(digits) if len(digits) <= MOST_DIGITS else None,
            parse_float=lambda digits: x if isfinite(x := float(digits)) else None,
        )  # fmt: skip
    except (OSError, ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def note_path(run: Path) -> Path:
    """The file of the note on a run: in its directory, or beside a trace file."""
    return run / NOTE if run.is_dir() else run.with_name(f"{run.name}.{NOTE}")


def read_note(run: Path) -> str:
    """The note that a person has written on a run; empty: none."""
    try:
        return read_file(note_path(run)).decode(errors="replace")[:MOST_NOTE].strip()
    except OSError:
        return ""


def _is_torn(path: Path, lines: int) -> bool:
    """A trace stops within the line after the first `lines`: a record is being written."""
    if segment_path(path, 2).exists():  # then it is a journal, in which this is damage
        return False
    try:
        with open_file(path) as file:
            for _ in range(lines):
                file.readline()
            line = file.readline(MOST_BYTES)
    except OSError:
        return False
    return lines > 0 and bool(line) and len(line) < MOST_BYTES and not line.endswith(b"\n")
