"""Learning the usual findings of a team from good runs (`digmon learn`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dig._util.ranges import NOTHING
from dig._util.text import counted, safe_text
from dig.detectors.finding import Finding
from dig.detectors.mended import Mending
from dig.detectors.patterns import severity
from dig.detectors.protocols import Detector
from dig.detectors.team_usual import TeamUsual, team_names
from dig.detectors.usual import LEAST_RUNS, most_usual
from dig.detectors.watch import Watch
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.records import NOTICE, Deliver, Emit, FindingRow, HealRow, Record, Usual
from dig.show.gate.checked import runs_in
from dig.show.runs.summary import read_beside
from dig.traces.journal.journal import RESULT
from dig.traces.journal.reader import follow_trace

from .goal import Finished, Goal

AT_LEAST = 100
"""The least number of good runs, by default."""

NOT_ANSWERED = "no answer to the problem was accepted"
_RUN = ""
"""Stands for the one problem of a run that is no session."""

REFUSED = "refused"
"""The action of a healing that was not carried out."""


@dataclass
class _Problem:
    """A unit of counting: a run, or a problem of a session.

    Attributes:
        raised: The number of findings, by pattern.
        healed: The patterns whose errors or warnings were healed.
        is_answered: Whether an answer to it was accepted.
    """

    raised: Counter[str] = field(default_factory=Counter)
    healed: dict[str, None] = field(default_factory=dict)
    is_answered: bool = False

    @property
    def why_not(self) -> str:
        """The reason against a problem of a session; empty if it is good."""
        if not self.is_answered:
            return NOT_ANSWERED
        if self.healed:
            return f"an error or a warning was healed: {', '.join(self.healed)}"
        return ""


class ProblemCounts:
    """Counts the findings of a run, or of each problem of a session, by key.

    Feed it each record after the graph was changed by it, and each finding when it is raised.

    Attributes:
        problems: The units counted, in order; of a session its environment work events, by id.
    """

    def __init__(self) -> None:
        """Begin with no record."""
        self.problems: dict[str, _Problem] = {}
        self._open: dict[str, _Problem] = {}  # without an answer
        self._rows: dict[int, tuple[str, list[_Problem]]] = {}  # of findings that are no notices

    def look(self, graph: InteractionGraph, record: Record) -> None:
        """Count a record, after the graph was changed by it."""
        if record.t == 0 and not graph.run.session:
            self._pose(_RUN)
        match record:
            case Emit(event=event, by=None, type=kind) if graph.run.session and kind != NOTICE:
                self._pose(event)
            case Deliver(to=None) if graph.run.session:
                self._answer(graph)
            case FindingRow(t=t, pattern=pattern) if _severity(record) != "notice":
                self._rows[t] = (str(pattern), self._about(graph, record.subject))
            case HealRow(finding=t, action=action) if action != REFUSED and t in self._rows:
                pattern, problems = self._rows[t]
                for problem in problems:
                    problem.healed[pattern] = None

    def add(self, graph: InteractionGraph, finding: Finding) -> None:
        """Count a finding, when it is raised."""
        for problem in self._about(graph, finding.subject):
            problem.raised[finding.key] += 1

    def _pose(self, name: str) -> None:
        self.problems[name] = self._open[name] = _Problem()

    def _answer(self, graph: InteractionGraph) -> None:
        # One answer may be about several problems: all with an event behind it.
        for name in [*self._open]:
            if not graph.unanswered_sources(graph.sources_of(graph.history.event_number(name))):
                self._open.pop(name).is_answered = True

    def _about(self, graph: InteractionGraph, subject: Any) -> list[_Problem]:
        sources: list[str] = [_RUN]
        if graph.run.session:
            sources = graph.unanswered_sources(graph.sources_about(subject) or NOTHING)
        return [self._open[name] for name in sources if name in self._open]


@dataclass(frozen=True)
class Learned:
    """The result of learning.

    Attributes:
        team: The usual findings, for a file.
        runs: The number of runs and problems of sessions that were looked at.
        bad: The number of those that were not good, by the reason.
    """

    team: TeamUsual
    runs: int
    bad: Mapping[str, int]

    @property
    def usual(self) -> dict[str, int]:
        """The usual number of findings in a run, by key; keys without any are left out."""
        return most_usual(self.team.usual)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        good = self.team.usual.runs
        return {"runs": self.runs, "good": good, "bad": dict(self.bad), "usual": self.usual}

    def lines(self) -> list[str]:
        """As lines for a person."""
        good = self.team.usual.runs
        lines = [f"Learned from {counted(good, 'good run')} of {self.runs:,}."]
        lines += [
            f"  {count:,} not good: {safe_text(reason)}" for reason, count in self.bad.items()
        ]
        if good < LEAST_RUNS:
            fewer = f"as in all teams with fewer than {LEAST_RUNS} good runs"
            return [*lines, f"Nothing is usual, {fewer}."]
        lines.append("Usual, and so no alarm:" if self.usual else "Nothing is usual.")
        usual = self.usual.items()
        return lines + [f"  {safe_text(key)} up to {counted(j, 'time')} a run" for key, j in usual]


def learn(
    paths: Sequence[Path],
    goal: Goal,
    detectors: Callable[[], Sequence[Detector]],
    *,
    at_least: int = AT_LEAST,
    progress: Callable[[str, int, int], None] = lambda unit, count, total: None,
) -> Learned:
    """Learn the usual findings of a team from good runs.

    In a session each environment work event that was answered is a run, good if no error and no
    warning about it was healed.

    Args:
        paths: Run directories, traces, and directories of these; all of one team.
        goal: Says which runs are good.
        detectors: Makes a fresh set of detectors.
        at_least: The number of good runs that are enough.
        progress: Takes what is read, how many of it are done, and how many there are.

    Raises:
        SettingsError: There are too few good runs, or the runs are of different teams.
        TraceError: A trace cannot be read or breaks a rule; the line is named.
    """
    traces = runs_in(paths)
    bad, counts, team = Counter[str](), list[Counter[str]](), None
    for number, path in enumerate(traces):
        progress("runs", number, len(traces))
        problems = ProblemCounts()
        finished, graph = _examine(path, detectors(), problems)
        # The first run says which team it is.
        team = team or TeamUsual(team_names(graph.run.agents), graph.run.limits, _NONE, path)
        if unlike := team.unlike(graph.run.agents, graph.run.limits):
            raise SettingsError(
                f"{path} is of another team than {team.path}: it has {unlike}; learn from runs of "
                "one team with one set of thresholds"
            )
        judged = goal.verdict(finished)
        for problem in problems.problems.values():
            reason = "" if judged.good else judged.why
            reason = reason or (problem.why_not if graph.run.session else "")
            if reason:
                bad[reason] += 1
            else:
                counts.append(problem.raised)
    progress("runs", len(traces), len(traces))
    if team is None:
        raise SettingsError("there is no run to learn from")
    if len(counts) < at_least:
        raise SettingsError(_too_few(len(counts), at_least, bad))
    usual = Usual(len(counts), usual_counts(counts))
    team = TeamUsual(team.agents, team.limits, usual)
    return Learned(team, len(counts) + bad.total(), dict(bad.most_common()))


_NONE = Usual(0, {})


def usual_counts(runs: Iterable[Mapping[str, int]]) -> dict[str, tuple[int, ...]]:
    """Count runs by key: with one finding or more, with two or more, and so on.

    Args:
        runs: The number of findings of each run, by key.
    """
    counts: dict[str, Counter[int]] = {}
    for raised in runs:
        for key, most in raised.items():
            counts.setdefault(key, Counter()).update(range(1, most + 1))
    return {
        key: tuple(each[j] for j in range(1, max(each) + 1)) for key, each in sorted(counts.items())
    }


def _examine(
    path: Path, detectors: Sequence[Detector], problems: ProblemCounts
) -> tuple[Finished, InteractionGraph]:
    """Go through a run once, with detectors and counters."""
    watch, mending = Watch(detectors), Mending()
    records, findings = list[Record](), list[Finding]()
    for item in follow_trace(path, watch):
        if isinstance(item, Finding):
            findings.append(item)
            mending.add(watch.graph, item)
            problems.add(watch.graph, item)
        else:
            records.append(item)
            mending.look(watch.graph, item)
            problems.look(watch.graph, item)
    healed = {name: None for each in problems.problems.values() for name in each.healed}
    finished = Finished(
        records,
        read_beside(path, RESULT),
        tuple(mending.unmended_errors(findings)),
        tuple(healed),
        str(path),
    )
    return finished, watch.graph


def _severity(row: FindingRow) -> object:
    """The severity of a recorded finding; rows of old files do not say."""
    return row.severity or severity(row.pattern)


def _too_few(good: int, at_least: int, bad: Counter[str]) -> str:
    reasons = "; ".join(f"{count} not: {reason}" for reason, count in bad.most_common(5))
    fewer = f", or say --at-least {good}"
    if good < LEAST_RUNS:  # a file could be made, but would change nothing
        fewer = f"; with fewer than {LEAST_RUNS} nothing can be usual"
    return (
        f"{counted(good, 'good run')} of {good + bad.total()} are too few to learn from"
        f"{f' ({reasons})' if reasons else ''}; {at_least} are wanted: give more runs{fewer}"
    )
