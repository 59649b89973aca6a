"""`digmon learn`: the usual findings of a team, from good runs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dig.errors import file_errors

from .app import app, print_result, progress_shown
from .options import AsJson, Further, further


@app.command()
def learn(
    runs: Annotated[
        list[Path], typer.Argument(help="Runs of one team, or directories of such runs.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file: team.usual.json.")],
    good: Annotated[
        str,
        typer.Option(
            metavar="GOAL",
            help="What else a good run fulfils: 'score.rmse<=250 and seconds<60'; or "
            "MODULE:FUNCTION, which decides alone.",
            show_default=False,
        ),
    ] = "default",
    at_least: Annotated[int, typer.Option(min=1, help="How many good runs are enough.")] = 100,
    detector: Further = None,
    as_json: AsJson = False,
) -> None:
    """Learn from good runs which findings are no alarm.

    A run is good if its answer was accepted, is valid and complete as far as its score tells, and
    no error and no warning was healed in it. In a session each answered problem counts as a run.
    """
    from dig.detectors import plugins, standard
    from dig.diagnosis.goal import Goal, is_healthy
    from dig.diagnosis.learning import learn as learned_from
    from dig.traces.journal.durable_files import write_output

    own = further(detector)
    goal = Goal.parse(good, is_healthy)
    with progress_shown("interrupted; nothing was written") as progress:
        # A detector keeps what it has seen, so each run gets a fresh set.
        learned = learned_from(
            runs, goal, lambda: [*standard(), *plugins.detectors(own)], at_least=at_least,
            progress=progress,
        )  # fmt: skip
    body = json.dumps(learned.team.to_json(), indent=1) + "\n"
    with file_errors(output, "written"):
        write_output(output, body.encode())
    lines = [*learned.lines(), f"{output} has it: give it to `digmon run` or `check` as --usual."]
    print_result(as_json, learned.to_json, lambda: lines)
