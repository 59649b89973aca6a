"""Held sessions on a server beside bare JetStream: `python -m bench.sessions` (needs nats-py).

Pairs of agents hand a message to and fro. Bare: nats-py's publish, fetch, acknowledge. Held: the
same with a monitor in a process of its own between them. Both in the same run, on the same server.
With `--sessions 200` each pair has a session of its own, and one process monitors all of them.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import anyio

import dig
from dig.adapters.nats.client import pose
from dig.adapters.nats.connection import Connection, connect
from dig.adapters.nats.embedded import embed_server
from dig.adapters.nats.names import MSG_ID, Subjects, consumer
from dig.adapters.nats.ownership import read_key
from dig.adapters.nats.serving import make_session
from dig.adapters.nats.session import KEEP
from dig.adapters.nats.streams import Storage, make_bucket, make_inbox, make_streams
from dig.detectors import standard, standard_healers
from dig.runtime import Decision, NewEvent, Setup, View

MONITOR = """
import anyio, sys
from dig.adapters.nats.serving import serve_all
from dig.runtime import Setup
anyio.run(serve_all, sys.argv[1], sys.argv[2], 1000, Setup("bench", session=True))
"""
SETUP = Setup(
    "bench", session=True, keep=KEEP, detectors=standard, healers=standard_healers
)  # fmt: skip


@dataclass
class Process:
    """What a process has cost so far; Linux counts it."""

    cpu_s: float
    megabytes: float

    @classmethod
    def of(cls, pid: int) -> Process:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks, pages = int(fields[11]) + int(fields[12]), int(fields[21])
        size = os.sysconf("SC_PAGE_SIZE")
        return cls(ticks / os.sysconf("SC_CLK_TCK"), pages * size / 1e6)


class Hops:
    """The moments at which messages were sent, and how long each took."""

    def __init__(self) -> None:
        self.sent: dict[str, float] = {}
        self.took: list[float] = []

    def arrive(self, pair: str) -> None:
        if pair in self.sent:
            self.took.append(time.monotonic() - self.sent[pair])

    def leave(self, pair: str) -> None:
        self.sent[pair] = time.monotonic()

    def figures(self, seconds: float) -> tuple[float, float, float]:
        """Rate a second, median and 99th percentile in ms."""
        took = sorted(self.took) or [0.0]
        return (
            len(self.took) / seconds,
            1000 * statistics.median(took),
            1000 * took[int(0.99 * (len(took) - 1))],
        )


async def bare(url: str, pairs: int, seconds: float) -> tuple[float, float, float]:
    hops, names = Hops(), Subjects(f"bare-{secrets.token_hex(4)}")
    async with connect(url) as client, anyio.create_task_group() as tasks:
        await make_streams(client, names, Storage())

        async def peer(pair: str, own: str, other: str) -> None:
            inbox = await client.js.pull_subscribe_bind(consumer(own), names.to)
            for number in count():
                [message] = await inbox.fetch(1, 60)
                hops.arrive(pair)
                await message.ack()
                hops.leave(pair)
                headers = {MSG_ID: f"{own}.{number}"}
                await client.js.publish(names.inbox(other), message.data, headers=headers)

        for number in range(pairs):
            a, b = f"a{number}", f"b{number}"
            for own in (a, b):
                await make_inbox(client, names, own, Storage())
            tasks.start_soon(peer, str(number), a, b)
            tasks.start_soon(peer, str(number), b, a)
            first = {MSG_ID: f"first.{number}"}
            await client.store(names.inbox(a), b'{"payload": "hello"}', first)
        hops.took.clear()
        await anyio.sleep(seconds)
        figures = hops.figures(seconds)
        tasks.cancel_scope.cancel()
    return figures


async def held(
    url: str, pairs: int, seconds: float, sessions: int
) -> tuple[tuple[float, float, float], str]:
    prefix = f"held-{secrets.token_hex(4)}"
    all_agents = [f"{side}{number}" for number in range(pairs) for side in "ab"]
    # By session: all pairs in one, or a pair in each.
    teams = {
        f"{prefix}-{n}": all_agents if sessions == 1 else all_agents[2 * n : 2 * n + 2]
        for n in range(sessions)
    }
    hops, handed = Hops(), count()

    async def hand_back(view: View) -> Decision:
        hops.arrive(view.agent[1:])
        other = ("b" if view.agent[0] == "a" else "a") + view.agent[1:]
        hops.leave(view.agent[1:])
        return Decision.respond(view, NewEvent(payload={"number": next(handed)}, to=[other]))

    async with connect(url) as client, anyio.create_task_group() as tasks:
        await make_bucket(client)
        for name, agents in teams.items():
            await make_session(client, Subjects(name), SETUP, agents, Storage())
        monitor = subprocess.Popen([sys.executable, "-c", MONITOR, url, f"{prefix}-*"])  # noqa: ASYNC220
        try:
            for name, agents in teams.items():
                tasks.start_soon(partial(_join, name, dict.fromkeys(agents, hand_back), nats=url))
            while not await _are_owned(client, list(teams)):  # noqa: ASYNC110 (a server is asked)
                await anyio.sleep(0.5)
            for name, agents in teams.items():
                for agent in agents[::2]:
                    await pose(client, Subjects(name), {"number": 0}, [agent])
            await anyio.sleep(1)
            hops.took.clear()
            before, began_s = Process.of(monitor.pid), time.monotonic()
            await anyio.sleep(seconds)
            after, took_s = Process.of(monitor.pid), time.monotonic() - began_s
            figures = hops.figures(took_s)
            tasks.cancel_scope.cancel()
        finally:
            monitor.kill()
            monitor.wait()
    cpu_us = 1e6 * (after.cpu_s - before.cpu_s) / max(1, len(hops.took))
    return figures, f"monitor {cpu_us:.0f} us a message, {after.megabytes:.0f} MB"


async def _are_owned(client: Connection, sessions: list[str]) -> bool:
    return all([(await read_key(client, Subjects(name))).owner for name in sessions])


async def _join(*args: object, **more: object) -> None:
    await dig.join(*args, **more)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--pairs", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--sessions", type=int, help="as many, with a pair in each")
    options = parser.parse_args()
    logging.getLogger("dig.nats").setLevel(logging.ERROR)
    sessions = options.sessions or 1
    with tempfile.TemporaryDirectory() as folder, embed_server(Path(folder)) as url:
        for pairs in [sessions] if options.sessions else options.pairs:
            ratios = []
            for _ in range(options.runs):
                plain = anyio.run(bare, url, pairs, options.seconds)
                watched, cost = anyio.run(held, url, pairs, options.seconds, sessions)
                ratios.append((plain[0] / watched[0], watched[1] / plain[1], watched[2] / plain[2]))
                print(f"  {pairs} pairs: bare {_text(plain)}; held {_text(watched)}; {cost}")
            columns = zip(*ratios, strict=True)
            rate, median, tail = (statistics.median(column) for column in columns)
            print(f"{pairs} pairs: rate 1:{rate:.1f}, median x{median:.1f}, 99 % x{tail:.1f}")


def _text(figures: tuple[float, float, float]) -> str:
    return "{:.0f}/s, median {:.2f} ms, 99 % {:.1f} ms".format(*figures)


if __name__ == "__main__":
    main()
