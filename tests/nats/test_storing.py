"""How an owner stores: many requests at once, answers that are lost, a full disk, three servers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import nats.errors
import pytest
from nats.js.errors import APIError
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from dig.adapters.nats import figures
from dig.adapters.nats.client import AwaitedAnswers, ask, pose
from dig.adapters.nats.connection import Connection, Message, connect
from dig.adapters.nats.embedded import _await_start, free_port
from dig.adapters.nats.names import KIND, LAST, VERSION, V
from dig.adapters.nats.session import HeldSession
from dig.adapters.nats.streams import Storage, make_streams
from dig.errors import WrongSequenceError

from .account import account_of, read_stream
from .harness import NAME, NAMES, SERVICE, session, until

pytestmark = pytest.mark.anyio

store_all = Connection.store_all


async def test_what_comes_during_an_append_is_one_append(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests are handled while others are stored, and wait for no more than one append."""
    async with session(url) as (client, _):
        await ask(client, NAME, "first")
        handle, handled = HeldSession.handle, list[str]()
        is_appended, may_go_on = anyio.Event(), anyio.Event()

        async def slowly(self: Connection, messages: Sequence[Message]) -> list[int | None]:
            if messages[0][0] == NAMES.journal_subject and not is_appended.is_set():
                is_appended.set()
                await may_go_on.wait()
            return await store_all(self, messages)

        def count(self: HeldSession, *message: Any) -> None:
            handle(self, *message)
            handled.append(message[1])

        async def are_handled(number: int) -> bool:
            return handled.count("client") == number

        monkeypatch.setattr(Connection, "store_all", slowly)
        monkeypatch.setattr(HeldSession, "handle", count)
        answers = AwaitedAnswers(client, NAMES)
        await answers.open()
        contexts = [await pose(client, NAMES, "a")]
        await is_appended.wait()
        before = len(await read_stream(client, NAMES.journal))
        contexts += [await pose(client, NAMES, letter) for letter in "bcd"]
        await until(lambda: are_handled(4))
        may_go_on.set()
        for context in contexts:
            await answers.of(context)
        stored = await read_stream(client, NAMES.journal)
        assert (await account_of(client, NAME)).faults == []
    emitted = [message.data.count(b'"kind":"emit"') for message in stored[before:]]
    assert emitted[:2] == [1, 3], emitted


async def test_answers_that_were_lost_double_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is stored, and the owner hears of none of it: what it asks for again is there once."""

    async def lose(self: Connection, messages: Sequence[Message]) -> list[int | None]:
        await store_all(self, messages)
        return [None] * len(messages)

    monkeypatch.setattr(Connection, "store_all", lose)
    async with session(url) as (client, _):
        for number in range(3):
            assert await ask(client, NAME, number) == {"text": number}
        assert (await account_of(client, NAME)).faults == []


async def test_after_a_refusal_nothing_stands_still(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer is lost, and the second attempt comes after another message."""
    async with connect(url) as client:
        await make_streams(client, NAMES, Storage())
        await client.store(NAMES.journal_subject, b"1", {LAST: "0"})
        publish, stood = client.js.publish, list[bool]()

        async def lose(*args: Any, **options: Any) -> None:
            monkeypatch.setattr(client.js, "publish", publish)
            raise nats.errors.TimeoutError

        monkeypatch.setattr(client.js, "publish", lose)
        with pytest.raises(WrongSequenceError):
            await client.insist(NAMES.journal_subject, b"2", {LAST: "0"}, stood.append)
    assert stood == [True, False]


async def test_an_owner_measures_its_work(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure is a metric with the session's name, for whatever provider the process has."""
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("test")
    monkeypatch.setattr(figures, "_instruments", figures.make_instruments(meter))
    async with session(url) as (client, _):
        await ask(client, NAME, 1)
        headers = {V: VERSION, KIND: "decision"}
        body = b'{"activation": "a99", "mark": "x", "value": {}}'
        await client.store(NAMES.raw_subject("editor"), body, headers)
        await ask(client, NAME, 2)
    data = reader.get_metrics_data()
    assert data is not None
    measured: dict[str, Any] = {
        metric.name: next(iter(metric.data.data_points))
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }
    assert {name for _, name, _, _ in figures.INSTRUMENTS.values()} - set(measured) == {
        "dig.session.fenced"
    }
    assert all(point.attributes == {"dig.session": NAME} for point in measured.values())
    assert measured["dig.session.late"].value == measured["dig.session.takeovers"].value == 1
    assert measured["dig.session.batch"].count >= 7  # two problems, five or more decisions


@pytest.fixture
def small(tmp_path: Path, server_program: Path) -> Iterator[str]:
    """A server with room for 8 MB."""
    port, config = free_port(), tmp_path / "dig.conf"
    limits = f'store_dir: "{tmp_path}/store", max_file: 8MB'
    config.write_text(f'listen: "127.0.0.1:{port}"\njetstream {{ {limits} }}\n')
    with (tmp_path / "server.log").open("ab") as log:
        server = subprocess.Popen([server_program, "-c", config], stdout=log, stderr=log)
    try:
        _await_start(server, port, tmp_path / "server.log")
        yield f"nats://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


async def test_a_full_disk_stops_the_session_until_there_is_room(
    small: str, caplog: pytest.LogCaptureFixture
) -> None:
    """All stand still and say so; then all goes on, and nothing is lost or doubled."""
    service = replace(SERVICE, storage=Storage(raw_bytes=3_000_000, ack_wait_s=1.0))
    async with session(small, service=service) as (client, tasks):
        answers, contexts = AwaitedAnswers(client, NAMES), list[str]()
        await answers.open()
        js = client.jetstream()
        await js.add_stream(name="BALLAST", subjects=["ballast"])
        with suppress(APIError):
            while True:
                await js.publish("ballast", b"x" * 100_000)

        async def is_full() -> bool:
            return "DIG_OWNERS.news is not stored yet: " in caplog.text

        async def pose_one(number: int) -> None:
            contexts.append(await pose(client, NAMES, f"{number:1000}"))

        for number in range(20):
            tasks.start_soon(pose_one, number)
        await until(is_full)
        await js.delete_stream("BALLAST")
        for number in range(20):
            while len(contexts) <= number:
                await anyio.lowlevel.checkpoint()
            await answers.of(contexts[number])
        assert (await account_of(client, NAME)).faults == []


def test_the_page_lists_every_figure() -> None:
    page = Path("docs/machines.md").read_text()
    assert not {name for _, name, _, _ in figures.INSTRUMENTS.values() if f"`{name}`" not in page}
