"""`digmon check` and `thresholds`: failures in stored traces, and the thresholds of failures."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer

from dig.errors import SettingsError, TraceError

from .app import app, warn
from .options import (
    AsJson,
    Config,
    Further,
    Given,
    UsualFile,
    find_run,
    further,
    group_options,
    policy,
)  # fmt: skip

if TYPE_CHECKING:
    from dig.detectors.protocols import Detector
    from dig.show.gate.quality_gate import QualityGate
    from dig.show.gate.reports import CheckReport

FailOn = StrEnum("FailOn", ["unhealed", "error", "warning", "notice"])
"""The reasons for which a check fails."""

Format = StrEnum("Format", ["text", "json", "github", "junit"])
"""The formats of a check's report."""

PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A TOML file with a table [policy], which silences findings; else pyproject.toml, if "
        "it has a table [tool.digmon]. Thresholds are those of the trace, or from --set.",
    ),
]


@dataclass(frozen=True)
class GateOptions:
    """Options of a check: the reasons to fail, and the report."""

    fail_on: Annotated[
        FailOn,
        typer.Option(
            help="What fails the check: unhealed errors, all errors, all alarms (errors and "
            "warnings), or all findings. So does a run that was cut off, left a request without "
            "an answer, or in which a detector was off."
        ),
    ] = FailOn.unhealed
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN[=AGENT]",
            help="Findings of this pattern do not count, or those about this agent; repeatable.",
        ),
    ] = None
    baseline: Annotated[
        Path | None, typer.Option(help="A file of known findings, which do not count.")
    ] = None
    write_baseline: Annotated[
        Path | None,
        typer.Option(help="Write what fails now as known findings to this file; exit with 0."),
    ] = None
    allow_cut: Annotated[
        bool,
        typer.Option(
            "--allow-cut",
            help="A run that was cut off, or left a request without an answer, does not fail.",
        ),
    ] = False
    format: Annotated[Format, typer.Option(help="How it is reported.")] = Format.text
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the report there, and print it as text."),
    ] = None
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name all files of a searched directory.")
    ] = False
    as_json: AsJson = False

    def gate(self, patterns: list[str]) -> "QualityGate":
        """Make the gate for the findings of a check.

        Args:
            patterns: The patterns of all detectors.

        Raises:
            SettingsError: An option is wrong; the message names it.
        """
        from dig.show.gate.known_findings import KnownFindings
        from dig.show.gate.quality_gate import Ignored, QualityGate

        if self.as_json and self.format not in (Format.text, Format.json):
            raise SettingsError(f"--json and --format {self.format} exclude each other")
        if self.baseline and self.write_baseline:
            raise SettingsError(
                "--write-baseline writes all that is known anew; leave --baseline out"
            )
        ignored = [Ignored.of(text, patterns) for text in self.ignore or ()]
        baseline = KnownFindings.read(self.baseline) if self.baseline else None
        level = self.fail_on.value
        return QualityGate(level, ignored, baseline, self.allow_cut)  # type: ignore[arg-type]  # a name of FailOn


Files = Annotated[
    list[Path],
    typer.Argument(
        callback=find_run,
        metavar="RUN...",
        help="Traces (NAME.dig.jsonl), run directories, directories of runs; files of other "
        "programs, and directories to search for all of these.",
    ),
]


@app.command()
@group_options
def check(
    files: Files,
    options: GateOptions,
    given: Given = None,
    detector: Further = None,
    usual: UsualFile = None,
    config: PolicyFile = None,
) -> None:
    """Find failures in stored runs, and explain each.

    Says what was healed and what was not; changes no file that it reads. Exit status 0 if
    nothing fails the check, 1 if something does (by default an unhealed error, or a run that was
    cut off, left a request without an answer, or in which a detector was off), 2 if a trace cannot
    be read or an option is wrong.
    """
    from dig.detectors import plugins, standard
    from dig.detectors.settings_file import find_settings
    from dig.detectors.team_usual import TeamUsual
    from dig.detectors.thresholds import Thresholds
    from dig.show.gate.checked import UnreadRun, check_run, runs_in
    from dig.show.gate.reports import CheckReport
    from dig.traces.interchange.imports import joined
    from dig.traces.interchange.spans import NO_AGENT
    from dig.traces.interchange.threads import NO_TURN

    named = further(detector)

    # Made anew for each run: a detector keeps what it has seen.
    def detectors() -> "list[Detector]":
        return [*standard(), *plugins.detectors(named)]

    gate = options.gate([str(detector.pattern) for detector in detectors()])
    limits = partial(Thresholds.change_limits, arguments=given or ())
    learned = None if usual is None else TeamUsual.read(usual)
    ruled = policy(find_settings(config), named)
    verdicts, unread, skipped = [], [], dict[str, list[Path]]()
    for path, *more in _with_progress(joined(runs_in(files, skipped)), bool(skipped)):
        try:
            run = check_run(path, detectors(), limits, learned, ruled, more)
            verdicts.append(gate.judge(run))
        except TraceError as error:
            if skipped and error.reason in (NO_TURN, NO_AGENT):
                skipped.setdefault(error.reason, []).append(path)
                continue
            warn(error)
            unread.append(UnreadRun(path, error))
    unused = len(set(gate.baseline.known) - gate.baseline.used) if gate.baseline else 0
    report = CheckReport(verdicts, unread, unused, skipped or None, options.verbose)
    # A baseline without a run that could not be read would miss its findings.
    if options.write_baseline is not None and not unread:
        _write_baseline(options.write_baseline, report)
        return
    _print(options, report)
    raise typer.Exit(report.status)


def _with_progress(runs: list[list[Path]], is_search: bool) -> Iterator[list[Path]]:
    for number, run in enumerate(runs, 1):
        if is_search and sys.stderr.isatty():
            print(f"{number} of {len(runs)}", end="\r", file=sys.stderr)
        yield run


def _write_baseline(path: Path, report: "CheckReport") -> None:
    from dig._util.text import counted, safe_text
    from dig.show.gate.known_findings import write_baseline

    groups = [group for verdict in report.verdicts for group in verdict.groups if group.fails]
    kinds = write_baseline(path, (kind for group in groups for kind in group.kinds))
    count = counted(sum(group.count for group in groups), "finding")
    for verdict in report.verdicts:
        if verdict.end:
            warn(f"{verdict.run.path}: {verdict.end}; no baseline makes that known")
        if verdict.off:
            warn(f"{verdict.run.path}: {verdict.off}; no baseline makes that known")
    print(f"{safe_text(path)}: {count} of {counted(kinds, 'kind')}")


def _print(options: GateOptions, report: "CheckReport") -> None:
    from dig.show.gate import junit, reports
    from dig.traces.journal.durable_files import journal_errors, write_output

    formats: dict[str, Callable[[CheckReport], Iterator[str]]] = {
        "text": reports.text_lines,
        "json": reports.json_lines,
        "github": reports.github_lines,
        "junit": junit.junit_lines,
    }
    render = formats["json" if options.as_json else options.format]
    if render is reports.json_lines:  # its objects are findings, so it has no place for failures
        for line in reports.search_lines(report) if report.skipped is not None else ():
            warn(line)
        for verdict in report.verdicts:
            if verdict.end:
                warn(f"{verdict.run.path}: {verdict.end}")
            for spot in verdict.run.not_looked_at if report.skipped is None else ():
                warn(f"{verdict.run.path}: not looked at: {spot}")
            for part, failure in verdict.run.failures.items():
                warn(f"{verdict.run.path}: {reports.failure_text(part, failure)}")
    if options.out is not None:
        with journal_errors("write", options.out):
            write_output(options.out, "".join(f"{line}\n" for line in render(report)).encode())
        render = reports.text_lines
    is_meant = render is reports.github_lines  # its lines are commands
    for line in render(report):
        print(line, file=getattr(sys.stdout, "unguarded", None) if is_meant else None)


@app.command()
def thresholds(given: Given = None, config: Config = None, as_json: AsJson = False) -> None:
    """Show the thresholds of the detectors, and why.

    Each comes from --set, from the environment (DIG_MC_WINDOW_S=20), from --config, or is the
    default, in this order.
    """
    from dig.detectors.settings_file import find_settings
    from dig.detectors.thresholds import Thresholds

    config = find_settings(config)
    values, ruled = Thresholds.load(given or (), config), policy(config, further(None))
    if as_json:
        print(values.model_dump_json())
        return
    for name, field in Thresholds.model_fields.items():
        value = getattr(values, name)
        default = "" if value == field.default else f"  (default {field.default})"
        print(f"{name} = {json.dumps(value)}{default}")
        print(indent(field.description or "", "    "), end="\n\n")
    print(f"policy: heal = {json.dumps(ruled.heal)}, notices = {json.dumps(ruled.notices)}")
    if ruled.budget is not None:
        print(f"budget: {json.dumps(ruled.budget.to_json())}")
    for rule in ruled.rules:
        print(f"    {json.dumps(rule.to_json(), ensure_ascii=False)}")
