"""Reports of a check: as text for a person, as annotations of GitHub, as JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from dig._util.text import counted, cut, name, one_line, safe_text
from dig.detectors.usual import most_usual
from dig.graph.words import healing_text, seconds
from dig.traces.journal.recovery import is_pulled
from dig.traces.journal.segments import trace_path
from dig.traces.usage import cost_text

from .checked import CheckedRun, Skipped, UnreadRun
from .quality_gate import NOUNS, Group, RunVerdict

_UNSEEN = "  not looked at: "
MOST_GROUPS = 20
"""The most entries of a section of the text."""


class CheckReport(NamedTuple):
    """A check of some runs.

    Attributes:
        verdicts: The runs that were checked.
        unread: Those that could not be.
        unused: The number of entries of the baseline that no finding fits.
        skipped: The files that a search passed over, by the reason; ``None``: it was no search.
        is_verbose: Whether all names are listed.
    """

    verdicts: Sequence[RunVerdict]
    unread: Sequence[UnreadRun] = ()
    unused: int = 0
    skipped: Skipped | None = None
    is_verbose: bool = False

    @property
    def status(self) -> int:
        """The exit status: 2 for an unreadable run, 1 for a failed run, else 0."""
        return 2 if self.unread else 1 if any(verdict.fails for verdict in self.verdicts) else 0


# --- text ---


def text_lines(report: CheckReport) -> Iterator[str]:
    """The report for a person: failures first, then other alarms, notices, and silent parts."""
    yield from _listed(report) if report.skipped is not None else ()
    for verdict in report.verdicts if report.skipped is None else ():
        yield from run_lines(verdict)
        yield ""
    if report.unused:
        entries = f"{report.unused} {'entry' if report.unused == 1 else 'entries'}"
        yield f"The baseline has {entries} that no finding fits any more."
    if len(report.verdicts) + len(report.unread) != 1:
        yield _totals(report)
    elif report.verdicts and (verdict := report.verdicts[0]).fails:
        yield f"The check fails: {verdict.reasons}."
    elif report.verdicts:
        if verdict.run.is_asked:
            yield f"The check passes: no {NOUNS[verdict.fail_on]}s (--fail-on {verdict.fail_on})."
        else:
            yield "The check passes, but there was nothing to check."


def _listed(report: CheckReport) -> Iterator[str]:
    """The runs of a search, the worst first; a quiet run is a line."""
    verdicts = sorted(report.verdicts, key=lambda verdict: verdict.hurt, reverse=True)
    loud = [verdict for verdict in verdicts if any(verdict.hurt[:2])]
    for verdict in loud:
        yield from (line for line in run_lines(verdict) if not line.startswith(_UNSEEN))
        yield ""
    quiet = verdicts[len(loud) :]
    for verdict in quiet if report.is_verbose else quiet[:MOST_GROUPS]:
        costs = cost_text(verdict.run.costs.sums)
        yield ", ".join(filter(None, [f"{verdict.run.files}: passes", costs]))
        yield from (f"  {text}" for text in verdict.run.remarks)
    if len(quiet) > MOST_GROUPS and not report.is_verbose:
        yield f"and {counted(len(quiet) - MOST_GROUPS, 'further run')} that passed (-v names them)"
    yield from search_lines(report)


def search_lines(report: CheckReport) -> Iterator[str]:
    """The patterns and files passed over in a search."""
    for spot in dict.fromkeys(s for verdict in report.verdicts for s in verdict.run.not_looked_at):
        yield f"not looked at: {one_line(spot, 200)}"
    for reason, files in sorted((report.skipped or {}).items()):
        if not files:  # the entry of a search that has skipped nothing yet
            continue
        yield f"skipped {counted(len(files), 'file')}: {one_line(reason, 100)}"
        yield from (f"  {one_line(file, 200)}" for file in files if report.is_verbose)


def _totals(report: CheckReport) -> str:
    failed = [verdict for verdict in report.verdicts if verdict.fails]
    parts = [f"{counted(len(report.verdicts) - len(failed), 'run')} passed"]
    if failed:
        findings = sum(verdict.failing for verdict in failed)
        cut_off = sum(v.fails_by_end and not v.run.unanswered for v in failed)
        reasons = [counted(findings, NOUNS[failed[0].fail_on])] if findings else []
        reasons += [f"{cut_off:,} cut off"] if cut_off else []
        unanswered = sum(v.run.unanswered for v in failed if v.fails_by_end)
        reasons += [f"{counted(unanswered, 'request')} unanswered"] if unanswered else []
        off = sum(bool(verdict.off) for verdict in failed)
        reasons += [f"{off:,} with a detector off"] if off else []
        parts.append(f"{counted(len(failed), 'run')} failed ({', '.join(reasons)})")
    if report.unread:
        parts.append(f"{counted(len(report.unread), 'run')} could not be read")
    return f"The check {'fails' if report.status else 'passes'}: {', '.join(parts)}."


def run_lines(verdict: RunVerdict) -> Iterator[str]:
    """The report of a run, without the last line."""
    run = verdict.run
    count = counted(len(run.findings), "finding")
    if run.headline:
        yield run.headline
    yield f"{run.files}: " + (f"fails, {verdict.reasons}" * verdict.fails or "passes")
    yield f"  {count} in {counted(run.records, 'record')} of {one_line(run.name, 60)}"
    yield f"  {ending(run)}"
    yield from (f"  {text}" for text in run.remarks)
    if run.usual is not None and (most := most_usual(run.usual)):
        habits = [f"{name(pattern)} up to {counted(n, 'time')}" for pattern, n in most.items()]
        runs = counted(run.usual.runs, "good run")
        yield f"  usual for the team, by {runs}, and so notices: {cut(habits)}"
    counting = [group for group in verdict.groups if group.set_aside is None]
    for title, groups in _sections(counting):
        yield from _section(title, groups)
    yield from _set_aside(verdict.groups)
    for spot in run.not_looked_at:
        yield f"{_UNSEEN}{one_line(spot, 200)}"
    if run.failures:
        yield f"  {counted(len(run.failures), 'part')} of the monitor failed:"
    for part, messages in run.failures.items():
        yield f"    {failure_text(part, messages)}"
    if run.incidents:
        yield f"  other incidents: {_counts(run.incidents)} (`digmon show` lists them)"
    if run.not_found:
        counts = _counts(run.not_found)
        yield f"  recorded by detectors that are not here (--detector names one): {counts}"


def _counts(counter: Counter[str]) -> str:
    return cut([f"{name(key)} {count:,}" for key, count in counter.most_common()])


def ending(run: CheckedRun) -> str:
    """The end of the run, or the reason for a trace without end."""
    if run.outcome is not None:
        return f"ended after {seconds(run.us)}: {run.outcome}"
    torn = ""
    if run.torn:
        torn = f"; {run.torn:,} bytes of a torn last record (`digmon verify` sets them aside)"
    if is_pulled(run.path):
        return f"The session is still going: {counted(run.records, 'record')} so far{torn}"
    state = "was cut off" if run.state == "cut off" else "is going on, or was cut off"
    return f"The trace has no end: the run {state}; its last record is at {seconds(run.us)}{torn}"


BY_ITSELF = "errors that came right by themselves"


def _sections(groups: Sequence[Group]) -> Iterator[tuple[str, list[Group]]]:
    """The groups by severity and fate, with a title."""
    titles: dict[str, Callable[[Group], bool]] = {
        "unhealed error": lambda group: group.severity == "error" and not group.is_mended,
        "mended error": lambda group: group.is_mended_error and bool(group.heals),
        BY_ITSELF: lambda group: group.is_mended_error and not group.heals,
        "warning": lambda group: group.severity == "warning",
        "notice": lambda group: group.severity == "notice",
    }
    for title, belongs in titles.items():
        if chosen := [group for group in groups if belongs(group)]:
            fails = " (this fails the check)" if any(group.fails for group in chosen) else ""
            number = sum(group.count for group in chosen)
            words = "1 error that came right by itself" if number == 1 else f"{number:,} {title}"
            yield (words if title == BY_ITSELF else counted(number, title)) + fails, chosen


def _section(title: str, groups: Sequence[Group]) -> Iterator[str]:
    yield f"  {title}:"
    for group in groups[:MOST_GROUPS]:
        is_short = group.severity == "notice" and not group.fails
        short = ", ".join(filter(None, [group.text, _repeats(group)]))
        lines = [short] if is_short else entry_lines(group)
        yield from (f"    {line}" for line in lines)
    if further := groups[MOST_GROUPS:]:
        count = counted(sum(group.count for group in further), "finding")
        yield f"    and {count} of {counted(len(further), 'further kind')}; --json has them all"


def entry_lines(group: Group) -> Iterator[str]:
    """A group in lines: the first finding, the number of findings, and the healing."""
    yield from group.text.splitlines()
    if repeats := _repeats(group):
        yield f"  {repeats}"
    if group.count == 1 and group.first_heals:
        yield f"  healing: {cut([healing_text(row) for row in group.first_heals], '; ')}"
    elif group.heals:
        yield f"  healing: {_counts(group.heals)}"


def _repeats(group: Group) -> str:
    if group.count == 1:
        return ""
    last = group.last
    return f"{group.count:,} times, the last at {seconds(last.us)} (record {last.t})"


def _set_aside(groups: Iterable[Group]) -> Iterator[str]:
    """Ignored, silenced and known findings, by reason."""
    reasons: dict[str, Counter[str]] = {}
    for group in groups:
        if group.set_aside is not None:
            reasons.setdefault(group.set_aside, Counter())[group.kind.pattern] += group.count
    if reasons:
        yield f"  {counted(sum(map(Counter.total, reasons.values())), 'finding')} set aside:"
    for reason, patterns in reasons.items():
        yield f"    {reason}: {_counts(patterns)}"


def failure_text(part: str, messages: Sequence[str]) -> str:
    """A failed part of the monitor, with the last message and the number of failures."""
    times = f" ({len(messages):,} times)" if len(messages) > 1 else ""
    return f"{one_line(part, 80)}: {one_line(messages[-1])}{times}"


# --- for programs ---


def json_lines(report: CheckReport) -> Iterator[str]:
    """An object a line for each finding; with `trace`, if there are several traces."""
    has_several = len(report.verdicts) + len(report.unread) > 1
    for verdict in report.verdicts:
        trace = {"trace": str(verdict.run.path)} if has_several else {}
        for checked in verdict.run.findings:
            yield json.dumps({**trace, **checked.finding.row()})


def github_lines(report: CheckReport) -> Iterator[str]:
    """Workflow commands for annotations of a job of GitHub Actions, failures first.

    GitHub shows ten annotations of each severity a step.
    """
    groups = [
        (group, verdict.run)
        for verdict in report.verdicts
        for group in verdict.groups
        if group.fails or group.is_alarm
    ]
    for unread in report.unread:
        error = unread.error
        yield _command(
            "error", "The trace cannot be read", error.reason, (error.path, error.line or 1)
        )
    for verdict in report.verdicts:
        if verdict.fails_by_end:
            place = (trace_path(verdict.run.path), verdict.run.records)
            title = verdict.end[0].upper() + verdict.end[1:]
            yield _command("error", title, ending(verdict.run), place)
        if verdict.off:
            place = (trace_path(verdict.run.path), 1)
            yield _command("error", "A detector was off", verdict.off, place)
    for group, run in sorted(groups, key=lambda pair: not pair[0].fails):
        headline = [run.headline] if group.kind.pattern == "FAIL" and run.headline else []
        text = "\n".join([*headline, *entry_lines(group)])
        level = "error" if group.fails else "warning"
        yield _command(level, group.title, text, run.place_of(group.first.t + 1))
    for verdict in report.verdicts:
        for part, messages in verdict.run.failures.items():
            title, place = "A part of the monitor failed", (trace_path(verdict.run.path), 1)
            yield _command("warning", title, failure_text(part, messages), place)
    yield _totals(report)


def _command(level: str, title: str, text: str, place: tuple[Path, int]) -> str:
    """A workflow command about a line of a file."""
    file, line = place
    properties = {"file": relative_path(file), "line": str(line), "title": title}
    pairs = [
        # A colon or a comma would end the property; GitHub's toolkit escapes them in this way.
        f"{key}={_escape(value).replace(':', '%3A').replace(',', '%2C')}"
        for key, value in properties.items()
    ]
    return f"::{level} {','.join(pairs)}::{_escape(text)}"


def _escape(text: str) -> str:
    return safe_text(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def relative_path(path: Path) -> str:
    """A path relative to the current directory, the repository's in CI, if the path is below."""
    with suppress(ValueError, OSError):
        return path.resolve().relative_to(Path.cwd()).as_posix()
    return path.as_posix()
