"""`digmon check` and `thresholds`: the failures in a stored trace, and what counts as one."""

from __future__ import annotations

import json
from functools import partial
from textwrap import indent

import typer

from dig._util.text import safe_text

from .app import app, warn
from .options import AsJson, Config, Further, Given, Salvage, Trace, further, policy, recovered


@app.command()
def check(
    file: Trace,
    given: Given = None,
    detector: Further = None,
    salvage: Salvage = False,
    as_json: AsJson = False,
) -> None:
    """Look for failures in a stored trace, and explain each with the paths that prove it.

    Exit status 0 if there are none, 1 if there are some, 2 if the file cannot be read.
    """
    from dig.detectors import plugins, standard
    from dig.detectors.describe import explained
    from dig.detectors.thresholds import Thresholds
    from dig.detectors.watch import Watch
    from dig.traces.journal.reader import check_trace
    from dig.traces.journal.recovery import is_cut_off

    def report(detector: str, what: str) -> None:
        warn(f"detector {detector}: {what}")

    recovered(file, salvage)
    watch = Watch([*standard(), *plugins.detectors(further(detector))], on_fault=report)
    limits = partial(Thresholds.changed, given=given or ())
    found = [  # to the end, before anything is said of it
        json.dumps(finding.row()) if as_json else explained(finding, watch.graph)
        for finding in check_trace(file, watch, limits)
    ]
    for text in found:
        print(text)
    if not as_json:
        count = f"{len(found)} finding{'' if len(found) == 1 else 's'}"
        print(f"{count} in {watch.graph.t + 1} records of {safe_text(watch.graph.run.run, 60)}")
        if watch.graph.finished is None:
            what = "was cut off" if is_cut_off(file) else "is going on, or was cut off"
            print(f"The trace has no end: the run {what}.")
    raise typer.Exit(1 if found else 0)


@app.command()
def thresholds(given: Given = None, config: Config = None, as_json: AsJson = False) -> None:
    """Show what "a reasonable time" and "a reasonable number" are, and why.

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
    for rule in ruled.rules:
        print(f"    {json.dumps(rule.described(), ensure_ascii=False)}")
