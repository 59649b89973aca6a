"""Replay: repeat a recorded run from the trace alone.

`replay` rebuilds the graph and looks for failures anew; `rerun` drives the same monitor with the
recorded decisions, and stops at the first record that is not the recorded one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dig._util.json_values import dumps
from dig._util.text import safe_text
from dig.detectors import standard
from dig.detectors.finding import Finding
from dig.detectors.protocols import Detector
from dig.detectors.watch import Watch
from dig.errors import CutOffError, ReplayError, RuleError, TraceError
from dig.graph.graph import InteractionGraph
from dig.graph.records import EDITION, FindingRow
from dig.runtime.driver.drive import ReplayDriver
from dig.runtime.driver.recorded_requests import RecordedRequests, check_edition
from dig.runtime.setup import Setup
from dig.traces.journal.segments import fault, trace_path

from .header import header_of
from .tape import read_requests


@dataclass(frozen=True)
class Replayed:
    """A trace, replayed.

    Attributes:
        graph: The graph that its records lead to.
        findings: The findings of detectors in it, in order.
        recorded: The number of findings that the trace records.
        is_same: Whether these are the same ones; ``None``: unknown, because the run had other
            detectors, or they are of another edition of the patterns.
    """

    graph: InteractionGraph
    findings: tuple[Finding, ...]
    recorded: int
    is_same: bool | None


def replay(path: Path, at: int | None = None) -> Replayed:
    """Rebuild the graph of a trace, and look for failures anew.

    Args:
        path: The trace file or run directory.
        at: The last record to look at; ``None``: the last one of the trace.

    Raises:
        TraceError: The trace cannot be read or breaks a rule, or has no record `at`.
    """
    tape = read_requests(path, payloads=False)
    detectors, is_known = _detectors(tape)
    watch = Watch(detectors, obeys=is_known)
    findings: list[Finding] = []
    recorded_findings: list[str] = []
    while (recorded := tape.pop()) is not None:
        record = recorded.record
        try:
            findings += watch.feed(record)
        except RuleError as error:
            raise fault(trace_path(path), watch.graph.t + 2, str(error)) from None
        if isinstance(record, FindingRow):
            recorded_findings.append(_body(record))
        if record.t == at:
            break
    if at is not None and watch.graph.t < at:
        raise TraceError(path, None, f"there is no record {at}; the last is {watch.graph.t}")
    again = [_body(finding) for finding in findings]
    # The row of a finding comes after the record that raised it, and may not be there yet.
    is_whole = watch.graph.finished is not None
    is_same = recorded_findings == (again if is_whole else again[: len(recorded_findings)])
    is_known &= watch.graph.run.patterns == EDITION
    return Replayed(
        watch.graph, tuple(findings), len(recorded_findings), is_same if is_known else None
    )


def _body(finding: Finding | FindingRow) -> str:
    return dumps([finding.pattern, finding.stage, finding.subject, finding.evidence])


def _detectors(tape: RecordedRequests) -> tuple[Sequence[Detector], bool]:
    """The detectors of a run, and whether known; else the standard detectors."""
    try:
        parts = header_of(tape.name, tape.header or {}).detectors
        if all(part.is_ours for part in parts):
            return [part.make("detect") for part in parts], True
    except ReplayError:  # it does not say
        pass
    return standard(), False


def setup_of(tape: RecordedRequests, parts: Setup | None = None) -> Setup:
    """The setup of a recorded run, from the first line of its journal.

    Args:
        tape: The recorded run.
        parts: The parts that are not dig's own (detectors, healers, tools, ...), if there are any.

    Raises:
        ReplayError: The trace has no header, or names parts that are neither dig's nor given; or
            its findings are of another edition of the patterns.
    """
    check_edition(tape.run)
    parts = parts or _ours(tape)
    return replace(tape.fit(parts), keep=None)  # all of its history can be looked at


def _ours(tape: RecordedRequests) -> Setup:
    header = header_of(tape.name, tape.header or {})
    if header.gates:
        names = safe_text(", ".join(gate.name for gate in header.gates), 200)
        raise ReplayError(
            f"the run had gates: {names}; what they decided is not recorded, and gates cannot be "
            "asked again, so it can be neither driven again nor forked"
        )
    if header.foreign:
        names = safe_text(", ".join(header.foreign), 200)
        raise ReplayError(
            f"the run was made with parts that are not dig's own: {names}; what is code is not "
            "recorded, so name detectors (`--detector module:object`), or hand in the run's "
            "`Setup` from Python"
        )
    return header.setup()


@dataclass(frozen=True)
class Rerun:
    """A run, driven again with the same result.

    Attributes:
        records: The number of records that were reproduced byte by byte.
        is_finished: Whether the recorded run had ended.
        graph: The graph at its end.
    """

    records: int
    is_finished: bool
    graph: InteractionGraph


def rerun(path: Path, setup: Setup | None = None) -> Rerun:
    """Drive the monitor through a recorded run again, and compare every record.

    Args:
        path: The journal or its run directory.
        setup: The parts of the run that are not dig's own; ``None``: all are.

    Raises:
        DivergenceError: A record came out differently; the error names it and the difference.
        ReplayError: The run cannot be driven again; the message says why.
        TraceError: The trace cannot be read.
    """
    tape = read_requests(path)
    driver = ReplayDriver(tape, setup_of(tape, setup))
    try:
        while driver.step():
            pass
    except CutOffError:  # as far as it goes, it is the same
        pass
    graph = driver.host.monitor.graph
    return Rerun(driver.same, graph.finished is not None, graph)
