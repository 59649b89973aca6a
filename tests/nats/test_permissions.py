"""The shipped configuration: what each role may do, and what the server refuses."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from nats.aio.client import Client
from nats.errors import Error, NoRespondersError
from nats.errors import TimeoutError as NatsTimeout
from nats.js.errors import APIError

from dig.adapters.nats.client import ask
from dig.adapters.nats.connection import connect
from dig.adapters.nats.embedded import _await_start, free_port
from dig.adapters.nats.serving import serve
from dig.adapters.nats.takeover import Service
from dig.runtime import Decision, View
from tests.nats.members import SETUP, serve_agents

pytestmark = pytest.mark.anyio
ROLES = ("monitor", "ada", "bob", "client", "reader")
SHIPPED = Path(__file__).parents[2] / "examples/nats/dig.conf"


@pytest.fixture
def port(server_program: Path, tmp_path: Path) -> Iterator[int]:
    """A server with the shipped configuration."""
    number, text = free_port(), SHIPPED.read_text()
    for role in ROLES:
        text = text.replace(f"${role.upper()}_PASSWORD", f"of-{role}")
    text = text.replace("0.0.0.0:4222", f"127.0.0.1:{number}")
    (tmp_path / "dig.conf").write_text(text.replace("/var/lib/nats", str(tmp_path / "store")))
    log = tmp_path / "log"
    with log.open("wb") as file:
        server = subprocess.Popen(
            [server_program, "-c", tmp_path / "dig.conf"], stdout=file, stderr=file
        )
    try:
        _await_start(server, number, log)
        yield number
    finally:
        server.kill()
        server.wait()


def address(port: int, role: str) -> str:
    return f"nats://{role}:of-{role}@127.0.0.1:{port}"


async def parrot(view: View) -> Decision:
    return Decision.submit(view, view.events[0].payload)


async def serving(port: int, tasks: Any) -> None:
    """A session with two agents, each process with the user of its role."""
    service = Service(lease_s=2.0)
    serves = partial(
        serve, address(port, "monitor"), "news", SETUP, ["ada", "bob"], service=service
    )
    tasks.start_soon(serves)
    for name in ("ada", "bob"):
        tasks.start_soon(partial(serve_agents, "news", {name: parrot}, nats=address(port, name)))


async def test_each_role_can_do_its_work(port: int) -> None:
    """With the users of the shipped configuration a problem is answered."""
    async with anyio.create_task_group() as tasks:
        await serving(port, tasks)
        async with connect(address(port, "client")) as client:
            with anyio.fail_after(30):
                assert await ask(client, "news", "hello", ["bob"]) == "hello"
        tasks.cancel_scope.cancel()


Try = Callable[[Client], Any]


async def _publish(client: Client, subject: str, data: bytes = b"{}") -> bool:
    """Whether the server stores it."""
    try:
        await client.jetstream().publish(subject, data, timeout=0.5)
    except (Error, APIError, NatsTimeout):
        return False
    return True


async def _request(client: Client, subject: str, data: bytes = b"") -> bool:
    """Whether the server answers with something other than an error."""
    try:
        reply = await client.request(subject, data, timeout=0.5)
    except (NoRespondersError, NatsTimeout):
        return False
    return (reply.headers is None and b'"error"' not in reply.data) or bool(
        reply.headers and "Nats-Sequence" in reply.headers
    )


async def _hear(client: Client, subject: str, port: int) -> bool:
    """Whether a subscription is given what is published there."""
    heard = anyio.Event()

    async def take(message: Any) -> None:
        heard.set()

    await client.subscribe(subject, cb=take)
    await client.flush()
    async with connect(address(port, "monitor")) as monitor:
        await monitor.publish("dig.news.to.bob", b"secret")
        await monitor.flush()
    with anyio.move_on_after(0.5):
        await heard.wait()
    return heard.is_set()


CONSUMER = json.dumps(
    {
        "stream_name": "DIG_TO_news",
        "config": {"name": "mine", "filter_subject": "dig.news.to.bob", "ack_policy": "none"},
    }
).encode()
LAST = b'{"last_by_subj": "dig.news.to.bob"}'

# role, what it tries, how: each must be refused by the server
REFUSED: list[tuple[str, str, Try]] = [
    ("ada", "write bob's inbox", lambda c: _publish(c, "dig.news.to.bob")),
    ("ada", "write the journal", lambda c: _publish(c, "dig.news.journal")),
    ("ada", "speak as bob", lambda c: _publish(c, "dig.news.raw.bob")),
    ("ada", "speak as a client", lambda c: _publish(c, "dig.news.raw.client")),
    ("ada", "take bob's mail", lambda c: _request(
        c, "$JS.API.CONSUMER.MSG.NEXT.DIG_TO_news.agent-bob")),
    ("ada", "make a consumer", lambda c: _request(
        c, "$JS.API.CONSUMER.CREATE.DIG_TO_news.mine.dig.news.to.bob", CONSUMER)),
    ("ada", "get a message", lambda c: _request(c, "$JS.API.STREAM.MSG.GET.DIG_TO_news", LAST)),
    ("ada", "get a message directly", lambda c: _request(
        c, "$JS.API.DIRECT.GET.DIG_RAW_news", b'{"last_by_subj": "dig.news.raw.bob"}')),
    ("ada", "delete a stream", lambda c: _request(c, "$JS.API.STREAM.DELETE.DIG_TO_news")),
    ("ada", "take the session", lambda c: _publish(c, "$KV.DIG_OWNERS.news")),
    ("client", "write the journal", lambda c: _publish(c, "dig.news.journal")),
    ("client", "speak as ada", lambda c: _publish(c, "dig.news.raw.ada")),
    ("client", "take ada's mail", lambda c: _request(
        c, "$JS.API.CONSUMER.MSG.NEXT.DIG_TO_news.agent-ada")),
    ("monitor", "speak as ada", lambda c: _publish(c, "dig.news.raw.ada")),
    ("monitor", "shorten the journal", lambda c: _request(
        c, "$JS.API.STREAM.PURGE.DIG_JOURNAL_news")),
    ("reader", "write bob's inbox", lambda c: _publish(c, "dig.news.to.bob")),
]  # fmt: skip
HEARD = [("ada", "dig.>"), ("ada", "dig.news.to.bob"), ("ada", "_INBOX.>"), ("client", "dig.>")]


async def test_the_server_refuses_what_is_no_role_s_work(port: int) -> None:
    """Sixteen ways round the hold, and four ways to listen, are refused by the server."""
    async with anyio.create_task_group() as tasks:
        await serving(port, tasks)
        async with connect(address(port, "client")) as client:
            with anyio.fail_after(30):  # so that there are messages and consumers to go for
                await ask(client, "news", "hello", ["bob"])
        done = []
        for role, attempt, make in REFUSED:
            async with connect(address(port, role)) as client:
                if await make(client):
                    done.append(f"{role} can {attempt}")
        for role, subject in HEARD:
            async with connect(address(port, role)) as client:
                if await _hear(client, subject, port):
                    done.append(f"{role} hears {subject}")
        assert len(REFUSED) == 16
        assert not done
        tasks.cancel_scope.cancel()


async def test_the_attempts_are_possible_without_the_permissions(url: str) -> None:
    """The same attempts on a server without users succeed, so the test would notice."""
    service = replace(Service(), lease_s=2.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve, url, "news", SETUP, ["ada", "bob"], service=service))
        tasks.start_soon(partial(serve_agents, "news", {"ada": parrot, "bob": parrot}, nats=url))
        async with connect(url) as client:
            with anyio.fail_after(30):
                await ask(client, "news", "hello", ["bob"])
            possible = [await make(client) for _, attempt, make in REFUSED if "write" in attempt]
            assert all(possible)
            assert await _request(client, "$JS.API.STREAM.MSG.GET.DIG_TO_news", LAST)
        tasks.cancel_scope.cancel()
