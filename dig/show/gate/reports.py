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
from dig.traces.journal.segments import trace_path

from .checked import CheckedRun, UnreadRun
from .verdict import NOUNS, Group, RunVerdict

MOST_GROUPS = 20
"""The most entries of a section of the text."""


class CheckReport(NamedTuple):
    """A check of some runs.

    Attributes:
        verdicts: The runs that were checked.
        unread: Those that could not be.
        unseen: The number of entries of the baseline that no finding fits.
    """

    verdicts: Sequence[RunVerdict]
    unread: Sequence[UnreadRun] = ()
    unseen: int = 0

    @property
    def status(self) -> int:
        """The exit status: 2 if a run could not be read, 1 if one fails, else 0."""
        return 2 if self.unread else 1 if any(one.fails for one in self.verdicts) else 0


# --- text ---


def text_lines(report: CheckReport) -> Iterator[str]:
    """The report for a person: what fails first, then other alarms, notices, and what is silent."""
    for verdict in report.verdicts:
        yield from run_lines(verdict)
        yield ""
    if report.unseen:
        entries = f"{report.unseen} {'entry' if report.unseen == 1 else 'entries'}"
        yield f"The baseline has {entries} that no finding fits any more."
    if len(report.verdicts) + len(report.unread) != 1:
        yield _sum(report)
    elif report.verdicts:
        yield _result(report.verdicts[0])


def _result(verdict: RunVerdict) -> str:
    if verdict.fails:
        return f"The check fails: {verdict.reasons}."
    return f"The check passes: no {NOUNS[verdict.fail_on]}s (--fail-on {verdict.fail_on})."


def _sum(report: CheckReport) -> str:
    failed = [one for one in report.verdicts if one.fails]
    parts = [f"{counted(len(report.verdicts) - len(failed), 'run')} passed"]
    if failed:
        findings = sum(one.failing for one in failed)
        cut_off = sum(one.is_cut_off for one in failed)
        reasons = [counted(findings, NOUNS[failed[0].fail_on])] if findings else []
        reasons += [f"{cut_off:,} cut off"] if cut_off else []
        off = sum(bool(one.off) for one in failed)
        reasons += [f"{off:,} with a detector off"] if off else []
        parts.append(f"{counted(len(failed), 'run')} failed ({', '.join(reasons)})")
    if report.unread:
        parts.append(f"{counted(len(report.unread), 'run')} could not be read")
    return f"The check {'fails' if report.status else 'passes'}: {', '.join(parts)}."


def run_lines(verdict: RunVerdict) -> Iterator[str]:
    """The report of one run, without its last line."""
    run = verdict.run
    count = counted(len(run.findings), "finding")
    if run.headline:
        yield run.headline
    yield f"{one_line(run.path, 200)}: " + (f"fails, {verdict.reasons}" * verdict.fails or "passes")
    yield f"  {count} in {counted(run.records, 'record')} of {one_line(run.name, 60)}"
    yield f"  {ending(run)}"
    yield from _usual(run)
    counting = [group for group in verdict.by_pattern if group.set_aside is None]
    for title, groups in _sections(counting):
        yield from _section(title, groups)
    yield from _set_aside(verdict.groups)
    yield from _failures(run)
    if run.incidents:
        told = [f"{name(what)} {count:,}" for what, count in run.incidents.most_common()]
        yield f"  other incidents: {cut(told)} (`digmon show` lists them)"
    if run.not_found:
        told = [f"{name(what)} {count:,}" for what, count in run.not_found.most_common()]
        yield f"  recorded by detectors that are not here (--detector names one): {cut(told)}"


def ending(run: CheckedRun) -> str:
    """The end of the run, or the reason for which the trace has none."""
    if run.outcome is not None:
        return f"ended after {seconds(run.us)}: {run.outcome}"
    torn = ""
    if run.torn:
        torn = f"; {run.torn:,} bytes of a torn last record (`digmon verify` sets them aside)"
    what = "was cut off" if run.state == "cut off" else "is going on, or was cut off"
    return f"The trace has no end: the run {what}; its last record is at {seconds(run.us)}{torn}"


def _usual(run: CheckedRun) -> Iterator[str]:
    """The patterns that are notices in this run because good runs raise them, too."""
    if run.usual is not None and (most := most_usual(run.usual)):
        told = [f"{name(pattern)} up to {counted(j, 'time')}" for pattern, j in most.items()]
        runs = counted(run.usual.runs, "good run")
        yield f"  usual for the team, by {runs}, and so notices: {cut(told)}"


def _sections(groups: Sequence[Group]) -> Iterator[tuple[str, list[Group]]]:
    """The groups by what they are worth, with a title."""
    titles: dict[str, Callable[[Group], bool]] = {
        "unhealed error": lambda one: one.severity == "error" and not one.is_mended,
        "mended error": lambda one: one.severity == "error" and one.is_mended,
        "warning": lambda one: one.severity == "warning",
        "notice": lambda one: one.severity == "notice",
    }
    for title, has in titles.items():
        if chosen := [group for group in groups if has(group)]:
            fails = " (this fails the check)" if any(group.fails for group in chosen) else ""
            yield counted(sum(group.count for group in chosen), title) + fails, chosen


def _section(title: str, groups: Sequence[Group]) -> Iterator[str]:
    yield f"  {title}:"
    for group in groups[:MOST_GROUPS]:
        is_short = group.severity == "notice" and not group.fails
        lines = [", ".join(filter(None, [group.text, _again(group)]))] if is_short else entry(group)
        yield from (f"    {line}" for line in lines)
    if rest := groups[MOST_GROUPS:]:
        count = counted(sum(group.count for group in rest), "finding")
        yield f"    and {count} of {counted(len(rest), 'further pattern')}; --json has them all"


def entry(group: Group) -> Iterator[str]:
    """A group in lines: the first of its findings, their number, and the healing."""
    yield from group.text.splitlines()
    if again := _again(group):
        yield f"  {again}"
    if group.count == 1 and group.first_heals:
        yield f"  healing: {cut([healing_text(row) for row in group.first_heals], '; ')}"
    elif group.heals:
        acts = cut([f"{name(action)} {n:,}" for action, n in group.heals.most_common()])
        yield f"  healing: {acts}"


def _again(group: Group) -> str:
    if group.count == 1:
        return ""
    last = group.last
    return f"{group.count:,} times, the last at {seconds(last.us)} (record {last.t})"


def _set_aside(groups: Iterable[Group]) -> Iterator[str]:
    """The findings that do not count, with the reasons."""
    reasons: dict[str, Counter[str]] = {}
    for group in groups:
        if group.set_aside is not None:
            reasons.setdefault(group.set_aside, Counter())[group.kind.pattern] += group.count
    if reasons:
        yield f"  {counted(sum(map(Counter.total, reasons.values())), 'finding')} set aside:"
    for reason, patterns in reasons.items():
        told = [f"{name(pattern)} {count:,}" for pattern, count in patterns.most_common()]
        yield f"    {reason}: {cut(told)}"


def _failures(run: CheckedRun) -> Iterator[str]:
    if run.failures:
        yield f"  {counted(len(run.failures), 'part')} of the monitor failed:"
    for part, what in run.failures.items():
        yield f"    {failure_text(part, what)}"


def failure_text(part: str, what: Sequence[str]) -> str:
    """A part of the monitor that failed, how often, and what was said of it last."""
    times = f" ({len(what):,} times)" if len(what) > 1 else ""
    return f"{one_line(part, 80)}: {one_line(what[-1])}{times}"


# --- for programs ---


def json_lines(report: CheckReport) -> Iterator[str]:
    """An object a line for each finding; with `trace`, if there are several traces."""
    has_several = len(report.verdicts) + len(report.unread) > 1
    for verdict in report.verdicts:
        where = {"trace": str(verdict.run.path)} if has_several else {}
        for one in verdict.run.findings:
            yield json.dumps({**where, **one.finding.row()})


def github_lines(report: CheckReport) -> Iterator[str]:
    """Workflow commands that annotate a job of GitHub Actions, those of failures first.

    GitHub shows ten annotations of each severity a step.
    """
    wanted = [
        (group, verdict.run)
        for verdict in report.verdicts
        for group in verdict.by_pattern
        if group.fails or group.is_alarm
    ]
    for unread in report.unread:
        error = unread.error
        yield _command(
            "error", "The trace cannot be read", error.reason, (error.path, error.line or 1)
        )
    for verdict in report.verdicts:
        if verdict.is_cut_off:
            where = (trace_path(verdict.run.path), verdict.run.records)
            yield _command("error", "The run was cut off", ending(verdict.run), where)
        if verdict.off:
            where = (trace_path(verdict.run.path), 1)
            yield _command("error", "A detector was off", verdict.off, where)
    for group, run in sorted(wanted, key=lambda one: not one[0].fails):
        said = [run.headline] if group.kind.pattern == "FAIL" and run.headline else []
        text = "\n".join([*said, *entry(group)])
        level = "error" if group.fails else "warning"
        yield _command(level, group.title, text, run.places.of(group.first.t + 1))
    for verdict in report.verdicts:
        for part, what in verdict.run.failures.items():
            title = "A part of the monitor failed"
            where = (trace_path(verdict.run.path), 1)
            yield _command("warning", title, failure_text(part, what), where)
    yield _sum(report)


def _command(level: str, title: str, text: str, where: tuple[Path, int]) -> str:
    """A workflow command; what has a meaning in it is escaped as GitHub's toolkit does."""
    file, line = where
    properties = {"file": from_here(file), "line": str(line), "title": title}
    told = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{level} {told}::{_data(text)}"


def _data(text: str) -> str:
    return safe_text(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def from_here(path: Path) -> str:
    """A path relative to the current directory, which is the repository's in CI, if it is in it."""
    with suppress(ValueError, OSError):
        return path.resolve().relative_to(Path.cwd()).as_posix()
    return path.as_posix()
