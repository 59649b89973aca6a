"""Held sessions on a server beside bare JetStream: `python -m bench.sessions` (needs nats-py).

Pairs of agents hand a message to and fro. Bare: publish, fetch, acknowledge. Held: the same with a
monitor in a process of its own between them. Both in the same run, on the same server.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import anyio

import dig
from dig.adapters.nats.client import pose
from dig.adapters.nats.connection import ANSWER_S, connect, inbox_of, store
from dig.adapters.nats.names import MSG_ID, Subjects
from dig.adapters.nats.server import embed_server
from dig.adapters.nats.streams import Storage, make_inbox, make_streams
from dig.runtime import Decision, NewEvent, View

MONITOR = """
import anyio, sys
from dig.adapters.nats.serving import serve
from dig.detectors import standard, standard_healers
from dig.runtime import Setup
setup = Setup("bench", session=True, detectors=standard, healers=standard_healers)
anyio.run(serve, sys.argv[1], sys.argv[3], setup, sys.argv[2].split(","))
"""


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
        js = client.jetstream(timeout=ANSWER_S)
        await make_streams(client, names, Storage())

        async def peer(pair: str, own: str, other: str) -> None:
            inbox = await inbox_of(client, names.to, own).open()
            number = 0
            while True:
                for message in await inbox.read(1, 60):
                    hops.arrive(pair)
                    await message.ack()
                    hops.leave(pair)
                    number += 1
                    headers = {MSG_ID: f"{own}.{number}"}
                    await store(js, names.inbox(other), message.data, headers)

        for number in range(pairs):
            a, b = f"a{number}", f"b{number}"
            for own in (a, b):
                await make_inbox(js, names, own, Storage())
            tasks.start_soon(peer, str(number), a, b)
            tasks.start_soon(peer, str(number), b, a)
            await store(js, names.inbox(a), b'{"payload": "hello"}', {MSG_ID: f"first.{number}"})
        await anyio.sleep(seconds)
        tasks.cancel_scope.cancel()
    return hops.figures(seconds)


async def held(url: str, pairs: int, seconds: float) -> tuple[float, float, float]:
    name = f"held-{secrets.token_hex(4)}"
    hops, names = Hops(), Subjects(name)
    agents = [f"{side}{number}" for number in range(pairs) for side in "ab"]
    command = [sys.executable, "-c", MONITOR, url, ",".join(agents), name]
    monitor = subprocess.Popen(command)  # noqa: ASYNC220 (nothing else runs yet)
    count = 0

    async def hand_back(view: View) -> Decision:
        nonlocal count
        hops.arrive(view.agent[1:])
        other = ("b" if view.agent[0] == "a" else "a") + view.agent[1:]
        count += 1
        hops.leave(view.agent[1:])
        return Decision.respond(view, NewEvent(payload={"number": count}, to=[other]))

    try:
        async with connect(url) as client, anyio.create_task_group() as tasks:
            team = dict.fromkeys(agents, hand_back)
            tasks.start_soon(partial(_join, name, team, nats=url))
            await anyio.sleep(3)
            for number in range(pairs):
                await pose(client, names, {"number": number}, [f"a{number}"])
            await anyio.sleep(1)
            hops.took.clear()
            await anyio.sleep(seconds)
            figures = hops.figures(seconds)
            tasks.cancel_scope.cancel()
    finally:
        monitor.kill()
        monitor.wait()
    return figures


async def _join(*args: object, **more: object) -> None:
    await dig.join(*args, **more)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--pairs", type=int, nargs="*", default=[1, 8])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, embed_server(Path(folder)) as url:
        for pairs in options.pairs:
            ratios = []
            for _ in range(options.runs):
                plain = anyio.run(bare, url, pairs, options.seconds)
                watched = anyio.run(held, url, pairs, options.seconds)
                ratios.append((plain[0] / watched[0], watched[1] / plain[1], watched[2] / plain[2]))
                print(f"  {pairs} pairs: bare {_text(plain)}; held {_text(watched)}")
            columns = zip(*ratios, strict=True)
            rate, median, tail = (statistics.median(column) for column in columns)
            print(f"{pairs} pairs: rate 1:{rate:.1f}, median x{median:.1f}, 99 % x{tail:.1f}")


def _text(figures: tuple[float, float, float]) -> str:
    return "{:.0f}/s, median {:.2f} ms, 99 % {:.1f} ms".format(*figures)


if __name__ == "__main__":
    main()
