"""A checked run: findings, healing, and other failures of the run.

Nothing here changes a file. A torn end of a journal is measured and left where it is.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dig._util.text import cut, one_line
from dig.detectors.describe import finding_line
from dig.detectors.finding import Finding, FindingKind
from dig.detectors.mended import Mending
from dig.detectors.policy import Policy, apply_policy
from dig.detectors.protocols import Detector
from dig.detectors.rings import rings_without_answer
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.tallies import UNANSWERED
from dig.detectors.team_usual import TeamUsual
from dig.detectors.watch import DISABLED, Watch
from dig.errors import TraceError
from dig.graph.graph import InteractionGraph
from dig.graph.records import FAILED, FindingRow, HealRow, IncidentRow, Limits, Usual
from dig.show.runs.index import run_paths
from dig.show.runs.summary import State, read_beside, stored_answers, stored_state
from dig.traces.interchange.imports import FORMATS, foreign_format, import_file, save
from dig.traces.interchange.scribe import IMPORT, blind_spot
from dig.traces.journal.journal import RESULT
from dig.traces.journal.reader import follow_trace, trace_path
from dig.traces.journal.recovery import torn_bytes
from dig.traces.journal.segments import LineIndex, is_run
from dig.traces.run import recorded_rows
from dig.traces.usage import Costs

STILL_GOING_S = 300
"""How long another program's file without an end counts as one that is still written."""

NEVER_ASKED = "The team was never asked, or in a way that is not watched."
"""The remark on a run without a request."""


@dataclass(frozen=True)
class CheckedFinding:
    """A finding with the later events of the run.

    Attributes:
        finding: The finding; `silenced` is as recorded in the trace, or as a policy says.
        kind: What findings of other runs can have in common with the finding.
        is_mended: Whether the finding was mended later in the run.
        heals: The interventions about the finding.
        text: The explanation with the paths, if the finding is the first of its kind, error,
            severity and fate; a notice has its sentence alone.
    """

    finding: Finding
    kind: FindingKind
    is_mended: bool
    heals: tuple[HealRow, ...]
    text: str = ""

    @property
    def is_unhealed(self) -> bool:
        """Whether the finding is an error, neither mended nor silenced."""
        return (
            self.finding.severity == "error"
            and self.finding.silenced is None
            and not self.is_mended
        )


@dataclass
class CheckedRun:
    """The findings of a check in a run, without the graph, for checks of many runs.

    Attributes:
        path: The path as it was named: a trace file or run directory.
        name: The name of its configuration, as the trace has it.
        records: The number of records in the trace.
        us: Its length on its own clock, in microseconds.
        outcome: Its outcome, if it has ended.
        patterns: The patterns of all detectors that looked.
        state: `ended`; `cut off`, if the trace has no end and no process writes it any more;
            `in progress`, if it may still be written.
        findings: The findings, in order.
        failures: The messages about each part of the monitor that failed, in the run or here.
        off: The detectors that were off for a time or for good, in the run.
        incidents: The number of other incidents, by what they are.
        not_found: The number of recorded findings by pattern, of patterns without a detector here.
        unanswered: The number of requests left without an answer, in a session that has ended.
        torn: The size of a torn last record, in bytes.
        not_looked_at: The patterns that the source of an imported run cannot show, with the reason.
        headline: The run in a sentence, as in `FiveAnswers`.
        usual: The habits of its team; ``None`` if nothing was learned.
        costs: The sums of the usage of its activations.
        format: The format of another program that the file is in; empty: it is a trace.
        others: The further files of the run (`joined`).
        is_asked: Whether there is a request in it.
        remarks: A run without request, unanswered rings, and work after the end of its request, a
            sentence each.
    """

    path: Path
    patterns: tuple[str, ...]
    state: State
    name: str = ""
    records: int = 0
    us: int = 0
    outcome: str | None = None
    findings: list[CheckedFinding] = field(default_factory=list)
    failures: dict[str, list[str]] = field(default_factory=dict)
    off: list[str] = field(default_factory=list)
    incidents: Counter[str] = field(default_factory=Counter)
    not_found: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    torn: int = 0
    not_looked_at: list[str] = field(default_factory=list)
    headline: str = ""
    usual: Usual | None = None
    costs: Costs = field(default_factory=Costs)
    format: str = ""
    others: Sequence[Path] = ()
    is_asked: bool = True
    remarks: list[str] = field(default_factory=list)

    def add_failure(self, part: str, message: str) -> None:
        """Note a message about a failed part of the monitor."""
        self.failures.setdefault(part, []).append(message)

    @property
    def files(self) -> str:
        """The path, and the paths of the further files."""
        others = cut([one_line(other, 200) for other in self.others])
        return one_line(self.path, 200) + (f" with {others}" if others else "")

    @property
    def place_of(self) -> Callable[[int], tuple[Path, int]]:
        """The file and line of a record by number, counted from 1."""
        if self.format:  # no line of the file is a record
            return lambda number: (self.path, 1)
        return LineIndex(trace_path(self.path)).of


Skipped = dict[str, list[Path]]
"""The files that a search has passed over, by the reason."""


@dataclass(frozen=True)
class UnreadRun:
    """An unreadable trace.

    Attributes:
        path: The path as it was named.
    """

    path: Path
    error: TraceError


def runs_in(paths: Iterable[Path], skipped: Skipped | None = None) -> list[Path]:
    """The traces at some paths; a directory of runs stands for all runs below.

    Args:
        paths: The paths.
        skipped: If given, a directory without runs is searched, down to its last directory, for
            all that can be checked; gets the files that cannot, by the reason.

    Raises:
        TraceError: A directory has no run in it.
    """
    traces: list[Path] = []
    for path in paths:
        if not path.is_dir() or is_run(path):
            traces.append(path)
        elif runs := run_paths(path) or (skipped is not None and [*_search(path, skipped)]):
            traces += runs
        else:
            raise TraceError(path, None, "is no run, and there is no run in it")
    return list(dict.fromkeys(traces))


def _search(folder: Path, skipped: Skipped) -> Iterator[Path]:
    skipped.setdefault("", [])  # there was a search, even if nothing is skipped
    for place, folders, names in os.walk(folder):  # which does not follow links
        here = Path(place)
        folders.sort()
        if is_run(here):
            folders.clear()
            yield here
            continue
        for file in (here / name for name in sorted(names)):
            if reason := _why_not(file):
                skipped.setdefault(reason, []).append(file)
            else:
                yield file


def _why_not(file: Path) -> str:
    """The reason to pass over a file; empty: none."""
    if file.suffix not in (".json", ".jsonl") or file.is_symlink():
        return "a link, or no .json or .jsonl"
    try:
        format = foreign_format(file)
        if format is None:
            return "" if file.name.endswith(".dig.jsonl") else "in no known format"
        return "read as a part of another run" if FORMATS[format].is_part(file) else ""
    except TraceError as error:
        return error.reason


def check_run(
    path: Path,
    detectors: Sequence[Detector],
    limits: Callable[[Limits], Limits] = lambda limits: limits,
    usual: TeamUsual | None = None,
    policy: Policy | None = None,
    more: Sequence[Path] = (),
) -> CheckedRun:
    """Check a stored run, or the written part of a running one.

    Args:
        path: The trace file or run directory, or what another program recorded.
        detectors: Fresh detectors.
        limits: Changes the thresholds that the trace was made with; by default, not at all.
        usual: The habits of the team; ``None``: those that the trace has.
        policy: Silences findings beside what was silenced in the run; ``None``: nothing more.
        more: Further files of the same run, of another program (`joined`).

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
        SettingsError: What is usual was learned from another team.
    """
    format = foreign_format(path)
    if format is None:
        return _check_trace(path, detectors, limits, usual, policy)
    # Only a trace is checked, so that a check of the imported trace finds the same.
    with TemporaryDirectory() as folder:
        trace = save(import_file(path, format, more), Path(folder))
        run = _check_trace(trace, detectors, limits, usual, policy)
    if run.state == "cut off" and time.time() - path.stat().st_mtime < STILL_GOING_S:
        run.state = "in progress"  # no lock says so, as it does for a journal
    return replace(run, path=path, others=more, format=format)


def _check_trace(
    path: Path,
    detectors: Sequence[Detector],
    limits: Callable[[Limits], Limits],
    usual: TeamUsual | None,
    policy: Policy | None,
) -> CheckedRun:
    patterns = tuple(dict.fromkeys(str(detector.pattern) for detector in detectors))
    # The state comes first: a run that ends while it is read was not cut off.
    run = CheckedRun(path, patterns, stored_state(path), torn=torn_bytes(path))
    watch = Watch(
        detectors, on_fault=lambda name, text: run.add_failure(f"detector {name}, here", text)
    )
    graph = watch.graph
    mending, so_far, findings = Mending(), RunSoFar(graph), list[Finding]()
    rows, heals = list[FindingRow](), dict[int, list[HealRow]]()
    # Mending and the answers depend on the graph at the moment, so they follow the records, too.
    for item in follow_trace(path, watch, limits, usual):
        if isinstance(item, Finding):
            mending.add(graph, item)
            findings.append(item)
            so_far.add(item)
            continue
        run.costs(item)
        mending.look(graph, item)
        so_far(item)
        if isinstance(item, FindingRow):
            rows.append(item)
        elif isinstance(item, HealRow):
            heals.setdefault(item.finding, []).append(item)
        elif isinstance(item, IncidentRow):
            _add_incident(run, item, graph.run.limits)
    run.name, run.usual = graph.run.run, graph.run.usual
    run.records, run.us = graph.t + 1, graph.now
    answers = stored_answers(path, so_far, read_beside(path, RESULT).get("score"))
    run.headline = answers.headline
    run.is_asked = bool(so_far.counts["requests"])
    run.remarks = [] if run.is_asked else [NEVER_ASKED]
    run.remarks += [ring.remark for ring in rings_without_answer(graph)]
    run.remarks += so_far.late_turns.texts()
    if graph.finished is not None:
        run.state, run.outcome = "ended", graph.finished.outcome
        # Where the grade is another one, a person is waited for.
        run.unanswered = (answers.grade == "bad") * so_far.requests.get(UNANSWERED, 0)
    # Healing names the row of a finding, and a row may come records after the finding.
    matches, others = recorded_rows(findings, rows)
    run.not_found.update(row.pattern for row in others if row.pattern not in run.patterns)
    pairs = zip(findings, matches, strict=True)
    findings = [_apply_policy(graph, finding, row, policy) for finding, row in pairs]
    acts = [tuple(heals.get(row.t, ())) if row is not None else () for row in matches]
    run.findings += _explain(graph, zip(findings, mending.mended, acts, strict=True))
    return run


def error_of(finding: Finding) -> object:
    """The error of a finding; errors have numbers in them, so a kind has no error."""
    return str(finding.evidence.get("error") or "")


def _explain(
    graph: InteractionGraph, findings: Iterable[tuple[Finding, bool, tuple[HealRow, ...]]]
) -> Iterator[CheckedFinding]:
    """Explain the first finding of each kind and fate; a group shows no other texts."""
    explained = set[object]()
    for finding, is_mended, heals in findings:
        kind, is_notice = FindingKind.of(graph, finding), finding.severity == "notice"
        key = (kind, error_of(finding), finding.severity, is_mended, finding.silenced)
        text = "" if key in explained else finding_line(finding, graph, has_paths=not is_notice)
        explained.add(key)
        yield CheckedFinding(finding, kind, is_mended, heals, text)


def _apply_policy(
    graph: InteractionGraph, finding: Finding, row: FindingRow | None, policy: Policy | None
) -> Finding:
    """The finding, silenced by the recorded reason, or else by the policy."""
    if row is not None and row.silenced is not None:
        return replace(finding, silenced=str(row.silenced))
    return finding if policy is None else apply_policy(policy, graph, finding)


def _add_incident(run: CheckedRun, incident: IncidentRow, limits: Limits) -> None:
    detail = incident.detail
    if incident.what != FAILED:
        run.incidents[str(incident.what)] += 1
        if incident.what == IMPORT and (spot := blind_spot(detail, limits)):
            run.not_looked_at.append(spot)
    elif isinstance(detail, dict) and detail.keys() >= {"who", "what"}:
        part, message = str(detail["who"]), str(detail["what"])
        run.add_failure(part, message)
        if ("off_s" in detail or message.endswith(DISABLED)) and part not in run.off:
            run.off.append(part)
    else:
        run.add_failure("a part of the monitor", str(detail))
