"""Commands that look at a stored trace: `digmon check`, `digmon graph`."""

from __future__ import annotations

import json
import sys
from functools import partial

import typer

from dig._util.text import safe_text
from dig.errors import TraceError

from .app import app
from .options import AsJson, At, Cleaned, Further, Given, Salvage, Trace, further, recovered


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
        print(f"digmon: detector {detector}: {what}", file=sys.stderr)

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
def graph(
    file: Trace,
    cleaned: Cleaned = False,
    at: At = None,
    salvage: Salvage = False,
    as_json: AsJson = False,
) -> None:
    """Show the Dynamic Interaction Graph of a stored trace.

    With --json as networkx node-link data, with the edges under the key `edges`.
    """
    from dig.graph.views import GraphView
    from dig.show.outline import outline
    from dig.traces.journal.reader import read_graph

    recovered(file, salvage)
    whole = read_graph(file)
    if at is not None and at > whole.t:
        raise TraceError(file, None, f"there is no record {at}; the last one is {whole.t}")
    view = GraphView(whole, at, cleaned)
    if as_json:
        print(json.dumps(view.node_link()))
    else:
        for line in outline(view):
            print(line)
