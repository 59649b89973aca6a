"""Small journals of many kinds of runs, kept so that later versions stay able to read them.

    python -m tests.stored_journals take          # makes those that are not there yet
    python -P PATH/stored_journals.py take --old  # the same, where an older version is on the path

They lie in `traces/data/journals/EDITION`, by the edition of the patterns by which their findings
were made. One that is there is never made again: it is as the version of its day has written it.
Nothing in them tells of a machine: file names in stack traces are cut to their last part.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

import dig
from dig.adapters import Mode, Session
from dig.adapters.base.session import fit_setup
from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.graph import records
from dig.runtime import Bus, Decision, NewEvent, Setup, View
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE
from tests.adapters.watching import Clock
from tests.helpers import VirtualLoop
from tests.same_outputs import digmon
from tests.traces.journals import reseal, rows_of

HERE = Path(__file__).parent / "traces" / "data" / "journals"
MOST_BYTES = 60_000

# --- runs of the command ---


def _command(words: str) -> Callable[[Path], Path]:
    def run(folder: Path) -> Path:
        call = f"run count-frequency --size 400 --agents 3 --seed 3 --virtual --json {words}"
        arguments = [word.replace("@", " ") for word in call.split()]
        digmon(*arguments, "--runs", str(folder))
        (made,) = folder.iterdir()
        return made / TRACE

    return run


# --- agents on the bus ---


def _bus(folder: Path) -> Path:
    """An agent fails twice, and is started again; another one waits for what never comes."""
    failures = iter(range(2))

    async def ann(view: View) -> Decision:
        await anyio.sleep(0.5)
        return Decision(outputs=[NewEvent(payload="half", to=["bob"])])

    async def bob(view: View) -> Decision:
        await anyio.sleep(0.25)
        if next(failures, None) is not None:
            raise OSError("no line")
        return Decision(outputs=[NewEvent(payload=[1, 2], to=["nobody"])])

    setup = Setup(run="bus", detectors=standard, healers=standard_healers, limit_s=100.0)
    journal = Journal(folder / TRACE, header=setup.header())

    async def main() -> None:
        await Bus({"ann": ann, "bob": bob}, setup, sink=journal).run("count", ["ann"])

    anyio.run(main, backend_options={"loop_factory": VirtualLoop})
    journal.close()
    return journal.path


# --- wrapped teams ---


def _team() -> dict[str, Any]:
    team: dict[str, Any] = {}

    async def planner(question: str) -> Any:
        flight = asyncio.ensure_future(team["flights"](question))
        try:
            room = await team["hotels"](question)
            return [await flight, room]
        finally:
            flight.cancel("nobody waits")
            await asyncio.wait([flight])

    async def flights(question: str) -> str:
        await asyncio.sleep(0.02)
        if question == "slow":
            await asyncio.sleep(60)
        return "a flight"

    async def hotels(question: str) -> str:
        await asyncio.sleep(0.04)
        if question != "fine":
            raise ValueError(f"the hotel service answered 503 for {question!r}")
        return "a room"

    team.update(planner=planner, flights=flights, hotels=hotels)
    return team


def _wrapped(**options: Any) -> Callable[[Path], Path]:
    """A request is answered; in two an agent raises, and its caller passes it on."""

    def run(folder: Path) -> Path:
        async def main() -> Path:
            team = dig.wrap(_team(), journal=folder, **options)
            for question in ("fine", "late", "slow"):
                with suppress(ValueError):
                    await team["planner"](question)
            directory = dig.session_of(team).directory
            dig.unwrap(team)
            assert directory is not None
            return directory / TRACE

        return asyncio.run(main())

    return run


def _host(play: Callable[[Session, Clock], None], **options: Any) -> Callable[[Path], Path]:
    """The session of a host that does what `play` says, in virtual time."""

    def run(folder: Path) -> Path:
        given = {"detectors": standard, "healers": standard_healers, "session": True, **options}
        mode: Mode = "heal" if options else "observe"
        setup = fit_setup(Setup(run="host", **given), mode, {"hold"})
        clock = Clock()
        journal = Journal(folder / TRACE, header=setup.header())
        session = Session(
            ["ann", "bob"], setup, sink=journal, keeps_time=False, clock=clock, mode=mode,
            capabilities={"hold"},
        )  # fmt: skip
        play(session, clock)
        session.close()
        journal.close()
        return journal.path

    return run


def _fail(session: Session, clock: Clock) -> None:
    """Requests end by an error, at a limit, by a timeout; one turn has called another before."""
    for how, error in (("error", OSError("no line")), ("limit", RecursionError("12 steps")),
                       ("timeout", TimeoutError("30 s"))):  # fmt: skip
        turn = session.begin("ann", [session.request(f"do {how}", "ann")])
        clock.now += 1.5
        asked = turn.call({"of": how}, "bob")
        helper = session.begin("bob", [asked])
        clock.now += 2
        helper.fail(error, "ann")
        turn.fail(error, submits=True, kind=how)  # type: ignore[arg-type]
        clock.now += 40
        session.tick()


def _wait(session: Session, clock: Clock) -> None:
    """A turn waits for a person for a long time, and answers afterwards."""
    turn = session.begin("ann", [session.request("may I?", "ann")])
    turn.act()
    clock.now += 2
    turn.waits()
    clock.now += 4_000
    session.tick()
    turn.resumes()
    clock.now += 1
    turn.was_bounced(turn.submit("you may"))


def _heal(session: Session, clock: Clock) -> None:
    """An answer comes too early, an event is lost, and nobody goes on."""
    turn = session.begin("ann", [session.request("count", "ann")])
    clock.now += 1
    turn.send("half", "bob", awaits=False)
    turn.emit("lost", "nobody")
    turn.was_bounced(turn.submit("early"))
    for _ in range(4):
        clock.now += 20
        session.tick()
    turn = session.begin("bob")
    clock.now += 1
    turn.was_bounced(turn.submit("all of it"))


class Keeper:
    """A gate that would hold all, and is asked too late."""

    __module__ = "tests.stored_journals"  # its name in the journal
    name = "keeper"

    def hold(self, graph: Any, event: Any) -> Any:
        return dig.Hold(1.0)

    async def decide(self, event: Any) -> Any:
        return ()


OLD: dict[str, Callable[[Path], Path]] = {
    "mas": _command("--method mas"),
    "judge": _command("--method judge"),
    "dig": _command("--method dig"),
    "never_submit": _command("--method mas --fault never_submit@target=agent-1"),
    "wrapped": _wrapped(),
}
"""The runs that the first edition was asked for, too."""

NOW = OLD | {
    "dig+": _command("--method dig+"),
    "segments": _command("--method dig --segment-size 4KiB"),
    "policies": _command("--method mas --fault delay@target=agent-2"),
    "dropped": _command("--method mas --fault drop@target=agent-2"),
    "bus": _bus,
    "wrapped-healed": _wrapped(mode="heal", policy=HEAL_ALL),
    "failed": _host(_fail),
    "waits": _host(_wait),
    "healed": _host(_heal, policy=HEAL_ALL),
    "gate": _host(_heal, gates=[Keeper()]),
}


def stored(edition: int | None = None) -> list[Path]:
    """The journals that are kept, or those of one edition."""
    return sorted(HERE.glob(f"{edition or '*'}/*.dig.jsonl"))


def _without_places(path: Path) -> None:
    """Cut the names of files in stack traces; the chain is made anew if there were any."""
    text = path.read_text(encoding="utf-8")
    cut = re.sub(r'(File \\")[^"]*/', r"\1", text)
    if cut != text:
        path.write_text(cut, encoding="utf-8")
        reseal(path, rows_of(path))


def take(runs: dict[str, Callable[[Path], Path]]) -> None:
    """Make the journals that are missing."""
    edition = getattr(records, "EDITION", 1)
    for name, make in runs.items():
        target = HERE / str(edition) / f"{name}.dig.jsonl"
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            first = make(Path(folder))
            _without_places(first)
            for file in first.parent.glob(f"{TRACE}*"):
                target.with_name(target.name + file.name.removeprefix(TRACE)).write_bytes(
                    file.read_bytes()
                )
        print(target.relative_to(HERE), target.stat().st_size)


if __name__ == "__main__":
    if sys.argv[1:2] != ["take"]:
        sys.exit(__doc__)
    take(OLD if "--old" in sys.argv else NOW)
