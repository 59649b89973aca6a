"""Faults at random moments (A), at chosen points (B), cuts of the network (C), or load alone.

Real processes: a server, two monitors, agents, a client. Afterwards nothing may be lost, doubled or
reordered, by an account that shares no code with dig; the journal verifies and runs again.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dig.adapters.nats.client import AwaitedAnswers, pose
from dig.adapters.nats.connection import connect
from dig.adapters.nats.embedded import find_server, free_port
from dig.adapters.nats.names import Subjects
from dig.adapters.nats.pull import JournalCopy, copy_session
from dig.adapters.nats.serving import session_rows
from tests.nats import members
from tests.nats.account import account_of
from tests.nats.cable import NEAR, Cable
from tests.nats.members import CONTROLS, SETUP, TEAM, right_answer

SETTLED_S = 10.0
FAULTS = ("kill monitor", "kill agents", "kill server", "pause monitor")


class Server:
    """A server with a store of its own, always on the same port."""

    def __init__(self, folder: Path, program: Path, host: str = "127.0.0.1") -> None:
        self.port, self._program, self._folder = free_port(), program, folder
        self.url = f"nats://{host}:{self.port}"
        self._log = (folder / "server.log").open("ab")
        config = f'listen: "{host}:{self.port}"\nmax_payload: 4194304\n'
        (folder / "dig.conf").write_text(f'{config}jetstream {{ store_dir: "{folder}/store" }}\n')
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self._program, "-c", self._folder / "dig.conf"], stdout=self._log, stderr=self._log
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self._log.close()


@dataclass
class Outcome:
    """What a campaign came to."""

    hits: Counter[str] = field(default_factory=Counter)
    problems: int = 0
    records: int = 0
    takeovers: int = 0
    settled_s: float = 0.0
    load_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield "faults put in: " + (", ".join(f"{n} {k}" for k, n in sorted(self.hits.items())))
        yield (
            f"{self.problems} problems, {self.records} records, {self.takeovers} take-overs, "
            f"settled in {self.settled_s:.1f} s"
        )
        if self.load_s:  # a problem comes, is handed on, and its answer goes
            messages = (len(TEAM) + 1) * self.problems
            yield f"{messages} messages, {messages / self.load_s:.0f} a second"
        yield f"{len(self.faults)} violations" + "".join(f"\n  {one}" for one in self.faults[:20])


class Campaign:
    """One campaign on one server."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.draws = random.Random(options.seed)
        self.sessions = [f"s{number}" for number in range(options.sessions)]
        self.cable = Cable() if options.cuts else None
        host = NEAR if self.cable else "127.0.0.1"
        self.server = Server(folder, options.server or find_server(), host)
        self.outcome = Outcome()
        self._number = 0
        self.members: dict[str, Any] = {}
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.nats.members"])
        self.paused: dict[str, float] = {}
        self.stops = False
        self.open = 0

    def spawn(self, name: str) -> None:
        self._number += 1
        role = name.partition(" ")[0]
        command = [role, self.server.url]
        command += ["--sessions", ",".join(self.sessions), "--lease", str(self.options.lease)]
        if role == "monitor":
            if name.endswith("1"):
                command.append("--standby")
            if self.options.control:
                command += ["--control", self.options.control]
            if self.options.points and not self.stops:
                command += [
                    "--chance",
                    str(self.options.chance),
                    "--hits",
                    str(self.folder / "hits"),
                ]
                command += ["--seed", f"{self.options.seed}.{self._number}"]
        else:
            command += ["--twice", "0.05"]
            command += ["--names", ",".join(TEAM[:2] if name.endswith("0") else TEAM[2:])]
        if self.cable and name.endswith("1"):  # a monitor and half of the agents
            command += ["--namespace", self.cable.far]
        # Forked from a process that has imported all: a start is quick on a busy machine, too.
        log = str(self.folder / "members.log")
        process = self._context.Process(target=members.run, args=(command, log), daemon=True)
        process.start()
        self.members[name] = process

    async def run(self) -> Outcome:
        for name in ("monitor 0", "monitor 1", "agents 0", "agents 1")[self.options.alone :]:
            self.spawn(name)
        client_task = asyncio.create_task(self._pose_and_await())
        keeper = asyncio.create_task(self._keep_alive())
        await self._wait_until_served()
        loaded = time.monotonic()
        if self.options.problems:
            while self.outcome.problems < self.options.problems:  # noqa: ASYNC110 (others count)
                await asyncio.sleep(0.1)
        elif self.options.points:
            await self._stop_at_points()
        else:
            await (self._cut(self.cable) if self.cable else self._inject())
        self.stops = True
        began = time.monotonic()
        for name in list(self.members):
            if self.options.points and name.startswith("monitor"):  # without points from here on
                self._end(name)
        for name in list(self.paused):
            self._resume(name)
        try:
            await asyncio.wait_for(client_task, 60)
        except TimeoutError:
            self.outcome.faults.append(f"lost: {self.open} problems are not answered after 60 s")
        self.outcome.settled_s = time.monotonic() - began
        if self.options.problems:
            self.outcome.load_s = time.monotonic() - loaded
        if self.outcome.settled_s > SETTLED_S + 2 * self.options.lease and not self.outcome.faults:
            self.outcome.faults.append(f"settled after {self.outcome.settled_s:.1f} s")
        keeper.cancel()
        for name in list(self.members):
            self._end(name)
        await self._account()
        return self.outcome

    async def _wait_until_served(self) -> None:
        for _ in range(600):
            if self.outcome.problems >= 3 * len(self.sessions):
                return
            await asyncio.sleep(0.05)
        raise SystemExit(f"the sessions were never served: {self.folder}/members.log")

    # --- faults ---

    async def _inject(self) -> None:
        plan = [fault for fault in FAULTS for _ in range(self.options.count)]
        self.draws.shuffle(plan)
        until = time.monotonic() + (self.options.seconds or 1e9)
        for fault in plan:
            if time.monotonic() > until:
                break
            await asyncio.sleep(self.draws.uniform(0.1, self.options.every))
            self.outcome.hits[fault] += 1
            member = self.draws.choice(["0", "1"])
            if fault == "kill server":
                self.server.kill()
                await asyncio.sleep(self.draws.uniform(0.0, 0.5))
                self.server.start()
            elif fault == "pause monitor":
                self._pause(f"monitor {member}", self.draws.uniform(1.0, 3.5))
            else:
                name = f"{fault.partition(' ')[2]} {member}"
                self._end(name)  # and it is started again

    async def _cut(self, cable: Cable) -> None:
        """Cut the network for .2 to 3 s; before every other cut the owners move behind."""
        until = time.monotonic() + (self.options.seconds or 1e9)
        for number in range(self.options.count):
            if time.monotonic() > until:
                break
            await asyncio.sleep(self.draws.uniform(0.1, self.options.every))
            if number % 2:
                self._end("monitor 0")
                await asyncio.sleep(1.5 * self.options.lease + 0.5)
            is_link = self.draws.random() < 0.5
            for session in await self._owned_behind():
                self.outcome.hits[f"cut with the owner of {session} behind"] += 1
            self.outcome.hits["cut " + ("link" if is_link else "address")] += 1
            cable.cut(is_link)
            await asyncio.sleep(self.draws.uniform(0.2, 3.0))
            cable.mend(is_link)

    async def _owned_behind(self) -> list[str]:
        """The sessions whose owner is the monitor at the far end."""
        far = f"-{self.members['monitor 1'].pid}-"
        async with connect(self.server.url) as client:
            rows = await session_rows(client)
        return [row["session"] for row in rows if far in (row["owner"] or "")]

    async def _stop_at_points(self) -> None:
        hits = self.folder / "hits"
        until = time.monotonic() + (self.options.seconds or 1e9)
        while time.monotonic() < until:
            await asyncio.sleep(0.1)
            lines = hits.read_text().splitlines() if hits.exists() else []
            if len(lines) >= self.options.count:
                break
        self.outcome.hits.update(hits.read_text().splitlines() if hits.exists() else [])

    def _pause(self, name: str, seconds: float) -> None:
        process = self.members[name]
        if name not in self.paused and process.is_alive():
            os.kill(process.pid, signal.SIGSTOP)
            self.paused[name] = time.monotonic() + seconds

    def _resume(self, name: str) -> None:
        self.paused.pop(name, None)
        with suppress(OSError):
            os.kill(self.members[name].pid, signal.SIGCONT)

    def _end(self, name: str) -> None:
        self.paused.pop(name, None)
        self.members[name].kill()
        self.members[name].join()

    async def _keep_alive(self) -> None:
        """Start again what a point has killed, and wake what was paused."""
        while True:
            await asyncio.sleep(0.05)
            for name, until in list(self.paused.items()):
                if time.monotonic() > until:
                    self._resume(name)
            for name, process in list(self.members.items()):
                if not process.is_alive():
                    self.spawn(name)

    # --- load ---

    async def _pose_and_await(self) -> None:
        async with connect(self.server.url) as client:
            await asyncio.gather(*(self._load(client, name) for name in self.sessions))

    async def _load(self, client: Any, session: str) -> None:
        while True:
            with suppress(Exception):
                await client.jetstream().stream_info(f"DIG_JOURNAL_{session}")
                break
            await asyncio.sleep(0.1)
        answers = AwaitedAnswers(client, Subjects(session))
        await answers.open()
        places, asked = asyncio.Semaphore(4), []

        async def ask(number: int) -> None:
            problem = {"session": session, "number": number, "path": []}
            context = await pose(client, Subjects(session), problem)
            self.outcome.problems += 1
            self.open += 1
            answer = await answers.of(context)
            self.open -= 1
            places.release()
            if answer != right_answer(problem):
                self.outcome.faults.append(f"wrong answer to {problem}: {answer}")

        number = 0
        while not self.stops:
            await places.acquire()
            asked.append(asyncio.create_task(ask(number)))
            number += 1
            await asyncio.sleep(self.options.gap)
        await asyncio.gather(*asked)

    # --- the account ---

    async def _account(self) -> None:
        async with connect(self.server.url) as client:
            for session in self.sessions:
                account = await account_of(client, session)
                self.outcome.records += len(account.rows)
                owners = [row for row in account.by_kind["incident"] if row["what"] == "owner"]
                self.outcome.takeovers += len(owners)
                self.outcome.faults += [f"{session}: {fault}" for fault in account.faults]
                for fault in account.by_kind["finding"]:
                    if fault["pattern"] in ("STALL", "OE", "DL", "MC", "LATE"):
                        self.outcome.faults.append(f"{session}: {fault['pattern']} was raised")
                copy = JournalCopy(self.folder / "runs", session)
                await copy_session(client, copy, False, lambda text: None)
                self.outcome.faults += [f"{session}: {text}" for text in _check(copy.path)]


def _check(run: Path) -> Iterator[str]:
    """What the independent checker and a second run of the monitor say."""
    from dig.errors import DigError
    from dig.traces.replay.rerun import rerun
    from dig.traces.verify import verify

    yield from (f"verify: {violation}" for violation in verify(run / "trace.dig.jsonl").problems)
    try:
        rerun(run, SETUP)
    except DigError as error:
        yield f"rerun: {error}"


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
    else:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)


def campaign(options: argparse.Namespace) -> Outcome:
    with _folder(options.keep) as folder:
        try:
            made = Campaign(options, folder)
        except OSError as error:
            print(f"skipped, since no network can be made here: {error}")
            raise SystemExit from None
        try:
            return asyncio.run(made.run())
        finally:
            for process in made.members.values():
                with suppress(OSError):
                    process.kill()
                    process.join()
            made.server.close()
            if made.cable:
                made.cable.close()


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500, help="faults of each kind, or points hit")
    parser.add_argument("--points", action="store_true", help="at chosen points (B), not at random")
    parser.add_argument("--cuts", action="store_true", help="of the network, by root (C)")
    parser.add_argument("--problems", type=int, help="so many in all, and no faults")
    parser.add_argument("--alone", action="store_true", help="with one monitor, not two")
    parser.add_argument("--chance", type=float, default=0.01, help="of a stop at a point")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--every", type=float, default=0.8, help="most seconds between faults")
    parser.add_argument("--gap", type=float, default=0.02, help="seconds between problems")
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--lease", type=float, default=0.8)
    parser.add_argument("--server", type=Path)
    parser.add_argument("--keep", type=Path, help="where to keep stores and logs")
    parser.add_argument("--control", choices=CONTROLS, help="take a rule out: it must fail then")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse()
    outcome = campaign(options)
    print("\n".join(outcome.lines()))
    failed = bool(outcome.faults)
    if options.control:  # what only took long shows no rule
        failed = any(not fault.startswith(("lost: ", "settled")) for fault in outcome.faults)
        print("the control fails, as it must" if failed else "THE CONTROL DOES NOT FAIL")
        failed = not failed
    os._exit(int(failed))


if __name__ == "__main__":
    main()
