"""`digmon serve`, `agent`, `ask`, `sessions`, `pull`: teams on several machines."""

import json
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dig._util.text import safe_text
from dig.errors import SettingsError

from .app import INTERRUPTED, app, warn
from .options import AsJson, Config, Further, Given, Runs, further, policy

if TYPE_CHECKING:
    from rich.table import Table

    from dig.adapters.nats.connection import Connection
    from dig.runtime.setup import Setup

Nats = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The server; else DIG_NATS, else the embedded one of these runs, else this machine's.",
    ),
]
Creds = Annotated[
    str | None, typer.Option(metavar="PATH", help="A file with credentials for the server.")
]
Session = Annotated[str, typer.Argument(help="The session's name.")]
MakeOnly = Annotated[
    bool, typer.Option("--make-only", help="End when the session is made; others serve it.")
]
FromHere = Annotated[
    str | None,
    typer.Option(metavar="OLD", help="Begin the session where OLD ended, which cannot go on."),
]
Lease = Annotated[
    float, typer.Option(min=0.2, help="Seconds of silence after which another one takes over.")
]
Lost = Annotated[
    float, typer.Option(min=0.2, help="Seconds of silence after which an agent has left.")
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that an activation may take.")]


def _needs_nats(command: Callable[..., None]) -> Callable[..., None]:
    """Refuse a command without the extra, before any import."""

    @wraps(command)
    def checked(*args: Any, **options: Any) -> None:
        from dig.adapters.nats import need_nats

        need_nats()
        command(*args, **options)

    return checked


@app.command()
@_needs_nats
def serve(
    session: Annotated[str | None, typer.Option(help="The session; it is made if need be.")] = None,
    nats: Nats = None,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Start a server of its own, for this machine alone.")
    ] = False,
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Follow the journal of another owner, to take over sooner."),
    ] = False,
    sessions: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Take sessions like 'news-*' that nobody owns."),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="How many sessions at once.")] = 50,
    make_only: MakeOnly = False,
    from_here: FromHere = None,
    agents: Annotated[
        str, typer.Option(metavar="A,B", help="Agents that are there before they come.")
    ] = "",
    lease: Lease = 6.0,
    lost: Lost = 30.0,
    timeout: Timeout = 60.0,
    replicas: Annotated[
        int, typer.Option(min=1, max=5, help="How many servers keep each message.")
    ] = 1,
    given: Given = None,
    config: Config = None,
    detector: Further = None,
    credentials: Creds = None,
    runs: Runs = Path("runs"),
) -> None:
    """Own a session between agents on several machines.

    Their messages are held, looked at, healed and journalled here. Start two for fail-over.
    Ctrl-C gives the session back; it goes on wherever another one serves.
    """
    from dig.adapters.nats.serving import serve, serve_all
    from dig.adapters.nats.session import Terms
    from dig.adapters.nats.streams import Storage
    from dig.adapters.nats.takeover import Service
    from dig.traces.otel.otlp import exported_metrics

    if session is None and (make_only or from_here):
        raise SettingsError("--make-only and --from-here make one session: name it by --session")
    if (session is None) is (sessions is None):
        raise SettingsError("name one session (--session news), or many (--sessions 'news-*')")
    setup = _setup(session or "", given, config, detector, timeout)
    service = Service(
        lease_s=lease, is_standby=standby, terms=Terms(lost_s=lost),
        storage=Storage(replicas=replicas),
    )  # fmt: skip
    more: dict[str, Any] = {"service": service, "is_recorded": not detector}
    more["credentials"] = credentials
    with exported_metrics(), _server(nats, embedded, runs) as url:
        if session is not None:
            more |= {"after": from_here, "is_only_made": make_only}
            _run(partial(serve, url, session, setup, _names(agents), **more))
        else:
            _run(partial(serve_all, url, str(sessions), most, setup, **more))


def _names(text: str) -> list[str]:
    names = [name for part in text.split(",") if (name := part.strip())]
    if wrong := {c for c in "".join(names) if not (c.isalnum() or c in "_-")}:
        raise SettingsError(f"an agent's name has letters, digits, _ and -, not {min(wrong)!r}")
    return names


def _setup(
    session: str, given: list[str] | None, config: Path | None, detector: list[str] | None,
    timeout_s: float,
) -> "Setup":  # fmt: skip

    from dig.adapters.nats.session import KEEP
    from dig.detectors import plugins, standard, standard_healers
    from dig.detectors.protocols import Healer
    from dig.detectors.settings_file import find_settings
    from dig.detectors.thresholds import Thresholds
    from dig.runtime.setup import Setup

    file, named = find_settings(config), further(detector)
    thresholds, ruled = Thresholds.load(given or (), file), policy(file, named)
    if ruled.budget is not None:
        raise SettingsError(
            f"{file}: a session on several machines keeps no [budget]; leave it out"
        )

    def healers() -> dict[str, Healer]:
        ours = standard_healers(cooldown_s=thresholds.cooldown_s, designate=thresholds.designate)
        return {**ours, **plugins.healers()}

    return Setup(
        session, session=True, keep=KEEP, limits=thresholds.limits, budget=thresholds.budget,
        ladder=True, detectors=lambda: [*standard(), *plugins.detectors(named)],
        healers=healers, policy=ruled, activation_timeout_s=timeout_s,
    )  # fmt: skip


@app.command()
@_needs_nats
def agent(
    session: Session,
    names: Annotated[str, typer.Argument(metavar="A,B", help="The agents' names.")],
    source: Annotated[
        str,
        typer.Argument(metavar="MODULE:OBJECT", help="The agent, or a mapping with these names."),
    ],
    nats: Nats = None,
    credentials: Creds = None,
    runs: Runs = Path("runs"),
) -> None:
    """Serve agents of a session in this process until Ctrl-C.

    The same name may be served by several processes: they share its work.
    """
    from dig.adapters.nats import join
    from dig.adapters.nats.calls import is_plain
    from dig.tasks.user_objects import load

    source_object = load(source, "agent")
    team = {
        name: source_object[name]
        if isinstance(source_object, Mapping) and name in source_object
        else source_object
        for name in _names(names)
    }
    if absent := [name for name, agent in team.items() if isinstance(agent, Mapping)]:
        raise SettingsError(f"{source} has no agent called {absent[0]!r}")
    if len(team) > 1 and is_plain(source_object):
        raise SettingsError(f"{source} is one function: several names need a mapping with all")

    async def run() -> None:
        await join(session, team, nats=url, credentials=credentials)

    with _server(nats, False, runs) as url:
        _run(run)


@app.command()
@_needs_nats
def ask(
    session: Session,
    problem: Annotated[str, typer.Argument(help="The problem: JSON, or a text.")],
    to: Annotated[
        list[str] | None, typer.Option(help="An agent that gets it; else the first one.")
    ] = None,
    nats: Nats = None,
    credentials: Creds = None,
    runs: Runs = Path("runs"),
) -> None:
    """Give a session a problem, and print the answer as JSON."""
    from dig.adapters.nats.client import ask

    try:
        payload = json.loads(problem)
    except ValueError:
        payload = problem

    async def run(client: "Connection") -> None:
        print(json.dumps(await ask(client, session, payload, to or ())))

    _run_connected(nats, credentials, runs, run)


@app.command()
@_needs_nats
def sessions(
    nats: Nats = None, credentials: Creds = None, runs: Runs = Path("runs"), as_json: AsJson = False
) -> None:
    """List the sessions of a server; --json has times and batches."""
    from rich.console import Console

    async def run(client: "Connection") -> None:
        from dig.adapters.nats.serving import session_rows  # not before there is a server

        rows = await session_rows(client)
        if as_json:
            for row in rows:
                print(json.dumps(row))
        else:
            Console().print(_table(rows))

    _run_connected(nats, credentials, runs, run)


def _table(rows: list[dict[str, Any]]) -> "Table":
    from rich.table import Table

    columns = ["session", "owner", "epoch", "takeovers", "open", "lag", "late", "fenced"]
    table = Table(box=None, pad_edge=False)
    for name in columns if rows else ["there is no session on this server"]:
        table.add_column(name, overflow="fold")
    for row in rows:
        reason = None if row["owner"] else row["state"]
        cells = [row["session"], row["owner"] or reason, *(row[name] for name in columns[2:])]
        table.add_row(*("-" if cell is None else safe_text(cell, 200) for cell in cells))
    return table


@app.command()
@_needs_nats
def pull(
    nats: Annotated[str, typer.Argument(metavar="URL", help="The server; `-`: as for `serve`.")],
    session: Annotated[str | None, typer.Argument(help="The session; else all.")] = None,
    runs: Annotated[Path, typer.Argument(help="Where run directories are made.")] = Path("runs"),
    once: Annotated[
        bool, typer.Option("--once", help="End when all that is there now is written.")
    ] = False,
    credentials: Creds = None,
) -> None:
    """Write sessions' journals as run directories, until Ctrl-C.

    `digmon view`, `check`, `why`, `report` and `fork` take them like any run.
    """
    from dig.adapters.nats.connection import EXAMPLE
    from dig.adapters.nats.pull import pull

    if nats != "-" and not set(nats) & set(".:"):
        raise SettingsError(f"the server comes before the session, and {nats!r} is none: {EXAMPLE}")

    async def run(client: "Connection") -> None:
        await pull(client, runs, session, follow=not once, tell=warn)

    _run_connected(None if nats == "-" else nats, credentials, runs, run)


def _run_connected(
    nats: str | None, credentials: str | None, runs: Path, main: Callable[["Connection"], Any]
) -> None:
    from dig.adapters.nats.connection import connect

    async def run() -> None:
        async with connect(url, credentials=credentials) as client:
            await main(client)

    with _server(nats, False, runs) as url:
        _run(run)


@contextmanager
def _server(nats: str | None, starts: bool, runs: Path) -> Iterator[str]:
    """Yield the address of the server; an embedded server runs as long as the block lasts."""
    from dig.adapters.nats.embedded import embed_server, stored_pid, stored_url

    if starts and nats:
        raise SettingsError("--embedded starts a server of its own; leave --nats out")
    if starts:
        is_found = stored_url(runs) is not None
        with embed_server(runs) as url:
            server = f"{'found a running' if is_found else 'started a'} server"
            warn(f"{server} (pid {stored_pid(runs)}); commands with --runs {runs} find it")
            yield url
    else:
        stored = stored_url(runs) or stored_url(Path("runs"))  # `pull` may write elsewhere
        yield nats or os.environ.get("DIG_NATS") or stored or "nats://127.0.0.1:4222"


def _run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run on asyncio until Ctrl-C; nats-py needs that loop."""
    import logging

    import anyio

    logging.basicConfig(format="digmon: %(message)s", level=logging.WARNING)
    logging.getLogger("dig.nats").setLevel(logging.INFO)
    logging.getLogger("nats").setLevel(logging.CRITICAL)
    try:
        anyio.run(main, backend="asyncio")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BaseExceptionGroup as group:  # of tasks: the first is the reason
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(INTERRUPTED) from None
        raise error from None
