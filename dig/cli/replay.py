"""`digmon replay`: a run rebuilt from its trace."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dig.errors import SettingsError

from .app import app, print_result
from .options import AsJson, Further, Salvage, Trace, further, recover_torn_end

if TYPE_CHECKING:
    from dig.runtime.setup import Setup


@app.command()
def replay(
    file: Trace,
    again: Annotated[
        bool, typer.Option("--rerun", help="Drive the monitor again; compare every record.")
    ] = False,
    at: Annotated[
        int | None, typer.Option(min=0, help="Only up to the record at this logical time.")
    ] = None,
    detector: Further = None,
    salvage: Salvage = False,
    as_json: AsJson = False,
) -> None:
    """Replay a run from its trace; no agent is asked.

    Rebuilds the graph and the findings; with --rerun the same monitor is driven by the recorded
    decisions, and every record must come out as it was recorded. Exit status 0 if all is the
    same, 1 if it is not, 2 if that cannot be told.
    """
    from dig.show.replay_lines import replay_lines
    from dig.traces.journal.reader import trace_path

    if again and at is not None:
        raise SettingsError("--rerun is for the whole run; leave --at out")
    recover_torn_end(file, salvage)
    path = trace_path(file)
    setup = _setup_beside(path, further(detector)) if again else None
    is_same, lines, data = replay_lines(path, again, at, setup)
    print_result(as_json, lambda: data, lambda: lines)
    raise typer.Exit(0 if is_same else 1)


def _setup_beside(path: Path, detectors: tuple[str, ...]) -> "Setup | None":
    """Return the setup of a run of simulated agents with a user's detectors."""
    from dig.tasks.run.crew import simulated_crew
    from dig.traces.journal.journal import SIDE, read_side
    from dig.traces.replay.header import header_of
    from dig.traces.replay.tape import read_requests

    # A trace names foreign detectors, but not where their code is; the side file does.
    header = read_requests(path, payloads=False).header
    if header and (path.parent / SIDE).exists() and header_of(path, header).foreign:
        return simulated_crew(read_side(path.parent), detectors).setup
    return None
