"""`digmon view`: runs in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .app import app
from .options import warn

Port = Annotated[
    int, typer.Option(min=0, max=65535, help="Where to listen on 127.0.0.1; 0: anywhere.")
]


@app.command()
def view(
    path: Annotated[
        Path, typer.Argument(help="A run directory, a trace, or a directory of runs.")
    ] = Path("runs"),
    port: Port = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Open no browser; only print the address.")
    ] = False,
) -> None:
    """Show runs in a browser, and follow those that are going on. Ctrl-C ends it.

    The address works on this machine only, and only as it is printed: it contains a secret.
    Nothing can be changed through it.
    """
    from dig.traces.viewing.showing import shown, wait_for_a_signal

    with shown(path, port, opens=not no_open) as address:
        print(address, flush=True)
        warn("serving until Ctrl-C")
        wait_for_a_signal()
