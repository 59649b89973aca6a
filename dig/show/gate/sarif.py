"""A check as SARIF 2.1.0, for code scanning: a result for each kind of finding in each run.

A result has the level `error` if it fails the check, else `warning`. Findings that are set aside,
and notices that do not fail the check, are counted in the properties of the run. Fingerprints are
made of the kind of finding and of the run's name, so that a server recognises it in a later run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dig._util.text import safe_text
from dig._version import __version__
from dig.detectors.patterns import BY_NAME
from dig.traces.journal.segments import trace_path

from .checked import CheckedRun
from .quality_gate import Group, RunVerdict
from .reports import CheckReport, ending, entry_lines, failure_text, relative_path

Node = dict[str, Any]

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
CUT_OFF, DETECTOR_OFF = "cut-off", "detector-off"
MOST_RESULTS = 25_000
"""The most results that GitHub takes of one upload."""

_LEVELS = {"error": "error", "warning": "warning", "notice": "note"}


def sarif_lines(report: CheckReport) -> Iterator[str]:
    """The report as a JSON document."""
    results = [result for verdict in report.verdicts for result in _results(verdict)]
    names = dict.fromkeys([*BY_NAME, *(result["ruleId"] for result in results)])
    rules = [_rule(name) for name in names]
    driver = {"name": "digmon", "version": __version__, "rules": rules}
    notifications = list(_notifications(report))
    invocation: Node = {"executionSuccessful": not report.unread, "exitCode": report.status}
    if notifications:
        invocation["toolExecutionNotifications"] = notifications
    run: Node = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        # GitHub refuses an upload with more.
        "results": results[:MOST_RESULTS],
        "properties": _left_out(report, len(results)),
    }
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _rule(name: str) -> Node:
    pattern = BY_NAME.get(name)
    if pattern is None:
        cut = "The trace has no end, and no process writes it any more."
        off = "A detector was off for a time, or from some record on."
        text = {CUT_OFF: cut, DETECTOR_OFF: off}.get(name, "A pattern of a detector of your own.")
        title, severity = name, "error" if name in (CUT_OFF, DETECTOR_OFF) else "warning"
    else:
        title, text, severity = pattern.title, pattern.meaning, pattern.severity
    return {
        "id": name,
        "name": safe_text(title),
        "shortDescription": {"text": safe_text(title)},
        "fullDescription": {"text": text[:1].upper() + text[1:]},
        "defaultConfiguration": {"level": _LEVELS[severity]},
    }


def _results(verdict: RunVerdict) -> Iterator[Node]:
    run = verdict.run
    place_of = run.place_of
    if verdict.is_cut_off:
        place = (trace_path(run.path), run.records)
        yield _result(run, CUT_OFF, "error", ending(run), place, [CUT_OFF])
    if verdict.off:
        place = (trace_path(run.path), 1)
        yield _result(run, DETECTOR_OFF, "error", verdict.off, place, [DETECTOR_OFF])
    for group in verdict.groups:
        if group.fails or group.is_alarm:
            text, level = "\n".join(entry_lines(group)), "error" if group.fails else "warning"
            kind, place = [*group.kind, group.is_mended], place_of(group.first.t + 1)
            result = _result(run, group.kind.pattern, level, text, place, kind)
            yield {**result, "occurrenceCount": group.count, "properties": _properties(group)}


def _result(
    run: CheckedRun, rule: str, level: str, text: str, place: tuple[Path, int], kind: list[Any]
) -> Node:
    file, line = place
    name = run.name
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": safe_text(text)},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": quote(relative_path(file), errors="surrogateescape")},
                "region": {"startLine": line},
            },
            "logicalLocations": [{"name": safe_text(name), "kind": "run"}],
        }],
        "partialFingerprints": {
            # No ids and no times: they differ from run to run.
            "digFinding/v1": sha256(json.dumps([name, *kind]).encode()).hexdigest()
        },
    }  # fmt: skip


def _properties(group: Group) -> Node:
    """The properties of a group of findings, for programs."""
    first = group.first.row()
    return {
        **{key: first[key] for key in ("severity", "stage", "t", "ts", "subject", "evidence")},
        "agents": list(group.kind.agents),
        "types": list(group.kind.types),
        "isMended": group.is_mended,
        "healing": dict(group.heals),
    }


def _notifications(report: CheckReport) -> Iterator[Node]:
    for unread in report.unread:
        yield {"level": "error", "message": {"text": safe_text(unread.error)}}
    for verdict in report.verdicts:
        path = safe_text(verdict.run.path)
        for part, texts in verdict.run.failures.items():
            yield {"level": "warning", "message": {"text": f"{path}: {failure_text(part, texts)}"}}


def _left_out(report: CheckReport, results: int) -> Node:
    """The number of findings without a result, by reason."""
    reasons: dict[str, int] = {}
    for verdict in report.verdicts:
        for group in verdict.groups:
            reason = group.set_aside or ("notices" if not (group.fails or group.is_alarm) else None)
            if reason is not None:
                reasons[reason] = reasons.get(reason, 0) + group.count
    more = {"resultsLeftOut": results - MOST_RESULTS} if results > MOST_RESULTS else {}
    return {"notReported": reasons, **more}
