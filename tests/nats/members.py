"""The processes of a campaign: monitors and agents.

A monitor can be stopped at its named points, and have one of its rules taken out (`CONTROLS`).
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

import dig
from dig.adapters.nats import owner, streams
from dig.adapters.nats.connection import Connection, Message, connect
from dig.adapters.nats.names import LAST, LAST_IN_SUBJECT, MSG_ID, RAW, Subjects, T, token_of
from dig.adapters.nats.owner import Owner, chunks
from dig.adapters.nats.serving import make_session
from dig.adapters.nats.session import OWNER, HeldSession, Terms
from dig.adapters.nats.streams import Storage, make_bucket
from dig.adapters.nats.takeover import Attendant, Service
from dig.detectors import standard, standard_healers
from dig.errors import FencedError
from dig.runtime import Decision, EventFate, NewEvent, Setup, View

from .cable import enter

TEAM = ("ada", "bob", "cyd", "dan")
SETUP = Setup(
    "campaign", session=True, detectors=standard, healers=standard_healers,
    activation_timeout_s=120.0,
)  # fmt: skip
STORAGE = Storage(window_s=1.0, ack_wait_s=1.0)


async def hand_on(view: View) -> Decision:
    """Hand the first event on to the next agent; the last one submits it."""
    events = [event for event in view.events if event.sender != "system"]
    after = TEAM[TEAM.index(view.agent) + 1 :]
    await anyio.sleep(random.uniform(0, 0.02))
    if not events:
        return Decision.respond(view)
    # One event in an activation: an answer settles all problems that its sources are.
    first = events[0]
    payload = {**first.payload, "path": [*first.payload["path"], view.agent]}
    output = NewEvent(payload=payload, type="solution", final=True)
    if after:
        output = NewEvent(payload=payload, to=[after[0]])
    return Decision(fates=[EventFate(event=first.id, fate="consume")], outputs=[output])


def right_answer(problem: dict[str, Any]) -> dict[str, Any]:
    """The answer of the team to a problem."""
    return {**problem, "path": list(TEAM)}


async def serve_agents(*args: Any, **more: Any) -> None:
    await dig.join(*args, **more)


# --- points -------------------------------------------------------------------------------------


def stopping(chance: float, hits: Path, seed: str, deep: str = "") -> Callable[[str], None]:
    """Kill or pause this process at a named point, with a chance.

    At the point `deep` it is paused for longer than the lease, most of the time.
    """
    draws = random.Random(seed)

    def reach(name: str) -> None:
        # Take-overs are seldom, and their points with them.
        weight = 10 if name in ("heads read", "fenced") else 1
        deep_chance = 0.7 if weight > 1 else 0.04
        if draws.random() >= (deep_chance if name == deep else chance * weight):
            return
        kills = name != deep and draws.random() < 0.5
        with hits.open("a") as file:
            file.write(f"{'kill' if kills else 'pause'} {name}\n")
        if kills:
            os.kill(os.getpid(), signal.SIGKILL)
        wait_s = draws.uniform(9.0, 12.0) if name == deep else draws.uniform(1.0, 3.5)
        subprocess.Popen(["sh", "-c", f"sleep {wait_s}; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)

    return reach


# --- controls: a rule taken out -----------------------------------------------------------------

_insist, _store_all = Connection.insist, Connection.store_all


def _storing(change: Callable[[str, dict[str, str]], None]) -> None:
    """Change the headers of whatever is stored."""

    async def store_all(self: Connection, messages: Sequence[Message]) -> list[int | None]:
        changed = [(subject, data, dict(headers)) for subject, data, headers in messages]
        for subject, _, headers in changed:
            change(subject, headers)
        return await _store_all(self, changed)

    async def insist(self: Connection, subject: str, data: bytes, headers: Any, *rest: Any) -> int:
        headers = dict(headers)
        change(subject, headers)
        return await _insist(self, subject, data, headers, *rest)

    Connection.store_all = store_all  # type: ignore[method-assign]
    Connection.insist = insist  # type: ignore[assignment, method-assign]


def no_expected_sequence() -> None:
    """The journal's append does not name the sequence that it comes after."""

    def change(subject: str, headers: dict[str, str]) -> None:
        if subject.endswith(".journal"):
            headers.pop(LAST, None)

    _lenient(change)


def no_epoch() -> None:
    """The journal's message id has no epoch, with a window longer than any pause."""

    def change(subject: str, headers: dict[str, str]) -> None:
        if subject.endswith(".journal"):
            headers[MSG_ID] = headers[T]

    _lenient(change)


def no_guard() -> None:
    """A release does not name the last sequence of its inbox."""

    def change(subject: str, headers: dict[str, str]) -> None:
        if ".to." in subject:
            headers.pop(LAST_IN_SUBJECT, None)

    _storing(change)


def _lenient(change: Callable[[str, dict[str, str]], None]) -> None:
    _storing(change)
    append = Owner._append

    async def without_look(self: Owner, lines: bytes, t: int, cursor: int) -> None:
        try:
            await append(self, lines, t, cursor)
        except FencedError:  # the look at the sequence belongs to the rule
            self.position.journal += 1

    Owner._append = without_look  # type: ignore[method-assign]


def release_first() -> None:
    """What came of a step is released before it is appended."""

    async def commit(self: Owner) -> None:
        groups, releases, joined = self._session.take()
        for name in joined:
            await streams.make_inbox(self._client, self._names, token_of(name), self._storage)
        owner.reach("handled")
        await self.release(releases)
        if releases:
            owner.reach("appended")
        for lines, t, cursor in chunks(groups):
            await self._append(lines, t, cursor)

    Owner.commit = commit  # type: ignore[method-assign]


def cursor_behind() -> None:
    """The journal says of each message how far raw was read before it."""
    before: dict[str, str] = {}

    def change(subject: str, headers: dict[str, str]) -> None:
        if subject.endswith(".journal"):
            headers[RAW], before[subject] = before.get(subject, headers[RAW]), headers[RAW]

    _storing(change)


def inboxes_after() -> None:
    """The inboxes are read after the fence, and compared by equality."""

    async def _own(
        self: Attendant, lease: Any, follower: Any, clock: Any, tasks: Any, turn: Any
    ) -> None:
        await follower.catch_up()
        turn.close()
        await follower.reader.close()
        position = owner.Position(follower.reader.sequence, {})
        clock.begin(follower.resumption.now_s)
        terms = self._service.terms
        session = HeldSession(follower.resumption, follower.notes, clock, follower.cursor, terms)
        made = Owner(
            self._client, self._names, session, position, lease, clock, self._service.storage
        )
        unreleased = session.missing_releases({})
        session.incident(OWNER, {"epoch": lease.epoch, "raw": follower.cursor, "down_s": 0.0})
        await made.commit()
        owner.reach("heads read")
        position.heads = await streams.read_heads(self._client, self._names)
        heads = {token: t for token, (_, t) in position.heads.items()}
        last = {one.token: one for one in unreleased}
        await made.release([one for one in last.values() if heads.get(one.token) != one.t])
        await made.run(tasks)

    Attendant._own = _own  # type: ignore[method-assign]


CONTROLS: dict[str, Callable[[], None]] = {
    "no-expected-sequence": no_expected_sequence,
    "no-epoch": no_epoch,
    "no-guard": no_guard,
    "release-first": release_first,
    "cursor-behind": cursor_behind,
    "inboxes-after": inboxes_after,
}


DEEP = {
    "no-expected-sequence": "handled", "no-epoch": "handled", "no-guard": "appended",
    "inboxes-after": "heads read",
}  # fmt: skip
"""The point at which an owner has to sleep for longer than its lease to show a missing rule."""


# --- the processes ------------------------------------------------------------------------------


async def monitor(url: str, sessions: Sequence[str], lease_s: float, standby: bool) -> None:
    """Attend sessions."""
    service = Service(lease_s=lease_s, is_standby=standby, terms=Terms(lost_s=60), storage=STORAGE)
    async with connect(url) as client, anyio.create_task_group() as tasks:
        await make_bucket(client)
        rebuilding = anyio.Semaphore(2)
        for name in sessions:
            await make_session(client, Subjects(name), SETUP, TEAM, STORAGE)
            waits = replace(service, wait_s=random.uniform(0, lease_s / 4))
            bounds = anyio.Semaphore(1), rebuilding
            attendant = Attendant(client, Subjects(name), lambda line: SETUP, waits, *bounds)
            tasks.start_soon(attendant.attend)


async def agents(url: str, sessions: Sequence[str], names: Sequence[str], twice: float) -> None:
    """Serve agents in all sessions; some decisions are sent twice."""
    store = Connection.store

    async def doubling(
        self: Connection, subject: str, data: bytes, headers: Any, *rest: Any
    ) -> int:
        sequence = await store(self, subject, data, headers, *rest)
        if random.random() < twice:
            if random.random() < 0.5:  # the window of duplicates has passed by then
                later = {**headers, MSG_ID: headers[MSG_ID] + ".again"}
                await store(self, subject, data, later, *rest)
            else:
                await store(self, subject, data, headers, *rest)
        return sequence

    Connection.store = doubling  # type: ignore[assignment, method-assign]
    async with anyio.create_task_group() as tasks:
        for session in sessions:
            team = dict.fromkeys(names, hand_on)
            tasks.start_soon(partial(serve_agents, session, team, nats=url, beat_s=0.5))


def run(arguments: Sequence[str], log: str | None = None) -> None:
    """Be a member of a campaign; what it says goes to a file."""
    if log is not None:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number in (1, 2):
            os.dup2(file, number)
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["monitor", "agents"])
    parser.add_argument("url")
    parser.add_argument("--sessions", required=True)
    parser.add_argument("--names", default=",".join(TEAM))
    parser.add_argument("--lease", type=float, default=0.8)
    parser.add_argument("--standby", action="store_true")
    parser.add_argument("--chance", type=float, default=0.0)
    parser.add_argument("--hits", type=Path)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--twice", type=float, default=0.0)
    parser.add_argument("--control", choices=CONTROLS)
    parser.add_argument("--namespace", help="of the network")
    options = parser.parse_args(arguments)
    if options.namespace:
        enter(options.namespace)
    sessions, names = options.sessions.split(","), options.names.split(",")
    if options.control:
        CONTROLS[options.control]()
    if options.chance:
        vars(owner)["reach"] = stopping(
            options.chance,
            options.hits,
            options.seed,
            DEEP.get(options.control, ""),
        )
    if options.role == "monitor":
        anyio.run(monitor, options.url, sessions, options.lease, options.standby)
    else:
        anyio.run(agents, options.url, sessions, names, options.twice)


if __name__ == "__main__":
    run(sys.argv[1:])
