"""`digmon view`, and `--view` of `digmon run`: runs in a browser."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from .app import INTERRUPTED, app, warn
from .options import find_run

Port = Annotated[
    int, typer.Option(min=0, max=65535, help="Where to listen on 127.0.0.1; 0: anywhere.")
]
View = Annotated[
    bool, typer.Option("--view", help="Show the run in a browser, instead of in the terminal.")
]


@app.command()
def view(
    path: Annotated[
        Path,
        typer.Argument(callback=find_run, help="A run directory, a trace, or a directory of runs."),
    ] = Path("runs"),
    port: Port = 0,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The TOML file that gets a rule when you mark a finding as a false alarm; else "
            "pyproject.toml, if it has a table [tool.digmon], else digmon.toml.",
        ),
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Open no browser; only print the address.")
    ] = False,
) -> None:
    """Show runs in a browser, and follow those that are going on. Ctrl-C ends it.

    A directory may be made later. The address works on this machine only, and only as it is
    printed: it contains a secret. Through it you can write notes on runs, and rules of a policy.
    """
    from dig.detectors.settings_file import find_settings
    from dig.show.server.server import SETTINGS, serve, wait_for_a_signal

    settings = find_settings(config) or SETTINGS
    with serve(path, port, opens=not no_open, settings=settings) as address:
        print(address, flush=True)
        if not path.exists():
            warn(f"{path} does not exist yet; what comes there is shown")
        warn("serving until Ctrl-C")
        wait_for_a_signal()


@contextmanager
def viewing(is_wanted: bool) -> Iterator[Callable[[Path], None]]:
    """Return a function to show a run while the block lasts; at a terminal, until Ctrl-C."""
    if not is_wanted:
        yield lambda run: None
        return
    from dig.show.server.server import serve, wait_for_a_signal

    with ExitStack() as served:
        try:
            yield lambda run: warn(f"shown at {served.enter_context(serve(run))}")
        except typer.Exit as end:  # the run is over
            if end.exit_code != INTERRUPTED and sys.stdin.isatty():
                warn("the page is served until Ctrl-C")
                wait_for_a_signal()
            raise
