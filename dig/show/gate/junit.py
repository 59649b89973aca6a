"""A check as JUnit XML: a suite for each run, a test case for each pattern and for the end.

The names of the test cases stay the same from run to run, so that CI servers can compare them. The
file is valid by the schema of Ant's JUnit reports, and by that of Jenkins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as XML

from dig._util.text import cut, one_line, safe_text
from dig.detectors.patterns import BY_NAME
from dig.traces.journal.segments import trace_path

from .quality_gate import RunVerdict
from .reports import CheckReport, ending, entry_lines, failure_text, run_lines

_NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BEGINNING = 0.0


def junit_lines(report: CheckReport) -> Iterator[str]:
    """The report as an XML document."""
    root = XML.Element("testsuites")
    names = [verdict.run.name for verdict in report.verdicts]
    for verdict, name in zip(report.verdicts, names, strict=True):
        # A server takes two test cases of one name for one, so equal runs get their paths.
        path = str(verdict.run.path)
        _run(root, verdict, path if names.count(name) > 1 or not name.strip() else name)
    for unread in report.unread:
        suite = _suite(root, unread.path, str(unread.path), 0)
        case = _case(suite, str(unread.path), "the trace can be read")
        _say(case, "error", type(unread.error).__name__, unread.error.reason, str(unread.error))
        _close(suite, "", str(unread.error))
    XML.indent(root)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield XML.tostring(root, encoding="unicode")


def _run(root: XML.Element, verdict: RunVerdict, name: str) -> None:
    run = verdict.run
    suite = _suite(root, run.path, name, run.us / 1_000_000)
    case = _case(suite, name, "the run was not cut off, and answered all requests")
    if verdict.fails_by_end:
        kind = "unanswered" if run.unanswered else "cut off"
        _say(case, "failure", kind, verdict.end, ending(run))
    case = _case(suite, name, "no detector was off")
    if verdict.off:
        _say(case, "failure", "detector off", verdict.off, verdict.off)
    for pattern in run.patterns:
        title = f"{pattern}: {BY_NAME[pattern].title}" if pattern in BY_NAME else pattern
        _judge(_case(suite, name, title), verdict, pattern)
    failures = "\n".join(failure_text(part, texts) for part, texts in run.failures.items())
    _close(suite, "\n".join(run_lines(verdict)), failures)


def _judge(case: XML.Element, verdict: RunVerdict, pattern: str) -> None:
    """Mark the test case of a pattern as failed, or as skipped if all findings are set aside."""
    groups = [group for group in verdict.groups if group.kind.pattern == pattern]
    failing = [group for group in groups if group.fails]
    reasons = Counter(group.set_aside for group in groups if group.set_aside is not None)
    if failing:
        text = "\n".join(line for group in failing for line in entry_lines(group))
        _say(case, "failure", pattern, cut([group.title for group in failing], "; "), text)
    elif groups and reasons.total() == len(groups):
        XML.SubElement(case, "skipped", message=_xml("; ".join(map(str, reasons))))


def _suite(root: XML.Element, path: Path, name: str, seconds: float) -> XML.Element:
    changed = _BEGINNING
    with suppress(OSError):
        # A date from the file makes reports of the same trace equal.
        changed = trace_path(path).stat().st_mtime
    suite = XML.SubElement(
        root, "testsuite", name=_token(name), package=_token(str(path)), id=str(len(root)),
        hostname="localhost", time=f"{seconds:.6f}",
        timestamp=datetime.fromtimestamp(changed, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
    )  # fmt: skip
    XML.SubElement(suite, "properties")
    return suite


def _case(suite: XML.Element, run: str, name: str) -> XML.Element:
    return XML.SubElement(suite, "testcase", name=_token(name), classname=_token(run), time="0")


def _say(case: XML.Element, tag: str, kind: str, message: str, text: str) -> None:
    XML.SubElement(case, tag, type=_xml(kind), message=_xml(message)).text = _xml(text)


def _close(suite: XML.Element, out: str, err: str) -> None:
    """Count the test cases, and add the output."""
    cases: Sequence[XML.Element] = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for tag, total in {"failure": "failures", "error": "errors", "skipped": "skipped"}.items():
        suite.set(total, str(sum(case.find(tag) is not None for case in cases)))
    XML.SubElement(suite, "system-out").text = _xml(out)
    XML.SubElement(suite, "system-err").text = _xml(err)


def _token(text: str) -> str:
    return _xml(one_line(text)) or "-"


def _xml(text: str) -> str:
    """Text without characters forbidden in XML."""
    return _NO_XML.sub("?", safe_text(text))
