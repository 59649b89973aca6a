"""The results of `digmon verify` and `digmon replay`, in lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dig._util.text import counted, one_line
from dig.detectors.describe import finding_line
from dig.errors import DivergenceError
from dig.graph.records import EDITION
from dig.runtime.setup import Setup
from dig.traces.journal.journal import UNREPLAYABLE
from dig.traces.journal.recovery import is_cut_off, is_pulled
from dig.traces.replay.rerun import Replayed, replay, rerun
from dig.traces.verify import VerificationReport

MOST_SHOWN = 400
"""The most characters that are shown of a record that differs."""


def verify_lines(report: VerificationReport, path: Path) -> Iterator[str]:
    """The report of the checker of a trace, in lines."""
    for problem in report.problems:
        yield one_line(problem)
    events, activations = counted(report.events, "event"), counted(report.activations, "activation")
    yield f"{counted(report.records, 'record')}: {events}, {activations}"
    if report.work:
        yield "work: " + ", ".join(f"{count:,} {state}" for state, count in report.work.items())
    if not report.is_journal:
        yield "chain: none; this is a plain trace, of which only the rules are checked"
    elif not report.problems:
        yield "chain: whole"
    yield from ending(path, report.outcome)
    yield counted(len(report.problems), "problem") if report.problems else "nothing is wrong"


def replay_lines(
    path: Path, again: bool, at: int | None, setup: Setup | None = None
) -> tuple[bool, list[str], dict[str, Any]]:
    """Replay or rerun a trace.

    Args:
        path: The trace file or run directory.
        again: Whether to rerun it and compare every record; else it is replayed.
        at: For a replay the last record to look at; ``None``: all.
        setup: For a rerun the parts of the run that are not dig's own; ``None``: all are.

    Returns:
        Whether it came out the same, the verdict in lines, and the verdict as JSON.

    Raises:
        TraceError: The trace cannot be read.
        ReplayError: The run cannot be driven again.
    """
    if not again:
        replayed = replay(path, at)
        return replayed.is_same is not False, list(_replay_text(replayed, path)), _body(replayed)
    try:
        result = rerun(path, setup)
    except DivergenceError as error:
        body = {"record": error.record, "expected": error.expected, "got": error.got}
        return False, list(_divergence(error)), {"is_same": False, **body}
    finished = result.graph.finished
    outcome = finished.outcome if finished else None
    lines = [f"{counted(result.records, 'record')} came out again, byte for byte"]
    body = {"is_same": True, "records": result.records, "outcome": outcome}
    return True, [*lines, *ending(path, outcome)], body


def _replay_text(replayed: Replayed, path: Path) -> Iterator[str]:
    graph, history = replayed.graph, replayed.graph.history
    for finding in replayed.findings:
        yield finding_line(finding, graph, has_paths=False)
    events = counted(len(history.event_ids), "event")
    activations = counted(len(history.activation_ids), "activation")
    yield f"{counted(graph.t + 1, 'record')}: {events}, {activations}"
    count = counted(len(replayed.findings), "finding")
    if (edition := graph.run.patterns) != EDITION:
        yield f"{count}; those of the trace are of edition {edition} of the patterns"
    elif replayed.is_same is None:
        yield f"{count}; the trace tells of {replayed.recorded}, by other detectors or none"
    else:
        yield f"{count}: {'the same as' if replayed.is_same else 'NOT the same as'} in the run"
    yield from ending(path, graph.finished.outcome if graph.finished else None)


def _body(replayed: Replayed) -> dict[str, Any]:
    graph, history = replayed.graph, replayed.graph.history
    return {
        "records": graph.t + 1,
        "events": len(history.event_ids),
        "activations": len(history.activation_ids),
        "outcome": graph.finished.outcome if graph.finished else None,
        "findings": [finding.row() for finding in replayed.findings],
        "recorded_findings": replayed.recorded,
        "is_same": replayed.is_same,
    }


def _divergence(error: DivergenceError) -> Iterator[str]:
    expected = error.expected or "nothing more"
    # Records are long and begin alike, so the part around the difference is shown.
    pairs = enumerate(zip(expected, error.got, strict=False))
    differs = next((i for i, (a, b) in pairs if a != b), 0)
    cut = max(0, differs - 100)
    dots = "..." if cut else ""
    yield f"record {error.record} differs"
    yield f"  expected: {dots}{one_line(expected[cut:], MOST_SHOWN)}"
    yield f"  got:      {dots}{one_line(error.got[cut:], MOST_SHOWN)}"


def is_cut(path: Path) -> bool:
    """Whether a run went on without the journal: the disk was full, or the file was taken away."""
    return path.with_name(path.name + UNREPLAYABLE).exists()


def ending(path: Path, outcome: str | None) -> Iterator[str]:
    """The end of a trace, in a line."""
    if is_cut(path):
        yield "end: not kept; the disk was full, or the file was removed, moved or cut meanwhile"
    elif outcome is None and is_cut_off(path):
        yield "end: none; the run was cut off"
    elif outcome is None:
        doubt = "" if is_pulled(path) else ", or was cut off"
        yield f"end: none; the run is still going on{doubt}"
    else:
        yield f"end: {outcome}"
