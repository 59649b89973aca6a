"""What fails, and what is promised then: a test for each row of the table in docs/machines.md."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from rich.console import Console

from dig.adapters.nats import connection, envelopes, ownership
from dig.adapters.nats.client import AwaitedAnswers, ask, pose
from dig.adapters.nats.connection import Connection, GaplessReader, Puller, connect
from dig.adapters.nats.embedded import _await_start, find_server, free_port, stored_url
from dig.adapters.nats.names import KIND, MSG_ID, TRACEPARENT, VERSION, Subjects, V
from dig.adapters.nats.ownership import Lease, until_free
from dig.adapters.nats.pull import JournalCopy, copy_session, pull
from dig.adapters.nats.serving import make_session, serve, serve_all, session_rows
from dig.adapters.nats.session import Terms
from dig.adapters.nats.streams import Storage, make_bucket, make_streams
from dig.adapters.nats.takeover import JournalFollower
from dig.cli import machines
from dig.detectors.finding import Finding
from dig.detectors.protocols import Detector
from dig.errors import DamageError, SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.records import End
from dig.runtime import Decision, EventFate, NewEvent, View
from dig.traces.replay.rerun import rerun
from dig.traces.verify import verify
from tests.runtime.test_component_failures import BrokenGate

from .account import account_of, read_stream
from .harness import (
    NAME,
    NAMES,
    SERVICE,
    SETUP,
    TEAM,
    incidents,
    rows,
    serve_agents,
    session,
    until,
)

pytestmark = pytest.mark.anyio
CYD = {"cyd": TEAM["writer"]}


async def say(client: Connection, token: str, kind: str, body: Any, **headers: str) -> None:
    """Put a message into raw."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    await client.store(NAMES.raw_subject(token), data, {V: VERSION, KIND: kind, **headers})


async def good(client: Connection) -> None:
    """The session goes on, and its account is clean."""
    assert await ask(client, NAME, "still there") == {"text": "still there"}
    assert (await account_of(client, NAME)).faults == []


async def test_a_problem_is_answered_and_the_pulled_journal_is_a_run(
    url: str, tmp_path: Path
) -> None:
    """The copy of the journal verifies, and the monitor repeats it byte by byte."""
    async with session(url) as (client, _):
        assert await ask(client, NAME, {"topic": "rivers"}) == {"text": {"topic": "rivers"}}
        await good(client)
        copy = JournalCopy(tmp_path / "runs", NAME)
        await copy_session(client, copy, False, lambda text: None)
        stored = await read_stream(client, NAMES.journal)
    trace = copy.path / "trace.dig.jsonl"
    assert trace.read_bytes() == b"".join(message.data for message in stored)
    assert not verify(trace).problems
    assert rerun(copy.path).records == len(trace.read_bytes().splitlines())


async def test_a_copy_goes_on_where_it_was_torn(url: str, tmp_path: Path) -> None:
    """What a crash left behind the last whole message is cut off, and nothing is written twice."""
    async with session(url) as (client, _):
        await ask(client, NAME, 1)
        copy = JournalCopy(tmp_path, NAME)
        await copy_session(client, copy, False, lambda text: None)
        with (copy.path / "trace.dig.jsonl").open("ab") as file:
            file.write(b'{"t":99')
        await ask(client, NAME, 2)
        again = JournalCopy(tmp_path, NAME)
        await copy_session(client, again, False, lambda text: None)
        stored = await read_stream(client, NAMES.journal)
    text = (copy.path / "trace.dig.jsonl").read_bytes()
    assert text == b"".join(message.data for message in stored)


async def test_nothing_in_raw_stops_a_session(url: str) -> None:
    """No JSON, unknown kinds, other versions and forged activations become incidents."""
    async with session(url) as (client, _):
        await ask(client, NAME, 1)
        await say(client, "client", "problem", b"\xff{")
        await say(client, "client", "problem", {"payload": 1, "to": ["nobody"], "type": "x"})
        await say(client, "client", "dance", {})
        await say(client, "client", "decision", {"activation": "a1", "mark": "x", "value": {}})
        await say(client, "editor", "problem", {"payload": 1})
        await say(client, "client", "problem", {"payload": 1, "secret": 2})
        await client.jetstream().publish(NAMES.raw_subject("client"), b"{}")
        for activation in ("a1", "a99"):
            body: Any = {"activation": activation, "mark": "0" * 16, "value": {}}
            await say(client, "editor", "decision", body)
        await good(client)
        refused = await incidents(client, "raw refused")
    assert len(refused) == 7
    assert [one["sequence"] for one in refused] == sorted(one["sequence"] for one in refused)


async def test_a_decision_of_another_agent_is_refused(url: str) -> None:
    """An agent can end no activation but its own."""
    held = anyio.Event()

    async def slow(view: View) -> Decision:
        await held.wait()
        return await TEAM["writer"](view)

    async with session(url, {**TEAM, "writer": slow}) as (client, tasks):
        tasks.start_soon(ask, client, NAME, 1)
        started: list[Any] = []

        async def is_started() -> bool:
            started[:] = [r for r in await rows(client) if r.get("agent") == "writer"]
            return bool(started)

        await until(is_started)
        forged = {"activation": started[0]["activation"], "mark": started[0]["chain"][:16]}
        await say(client, "editor", "decision", {**forged, "value": {"fates": [], "outputs": []}})
        await say(client, "writer", "decision", {**forged, "mark": "f" * 16, "value": {}})
        held.set()
        await good(client)
        refused = await incidents(client, "raw refused")
    assert len(refused) == 1
    assert "is not an activation of editor" in refused[0]["why"]


async def test_a_decision_counts_once_in_and_after_the_window(url: str) -> None:
    """Within the window the server knows it by its id; after it the monitor does."""
    async with session(url) as (client, _):
        await ask(client, NAME, 1)
        first = next(
            message
            for message in await read_stream(client, NAMES.raw)
            if message.headers[KIND] == "decision"
        )
        js = client.jetstream()
        ack = await js.publish(NAMES.raw_subject(first.token), first.data,
                               headers=dict(first.headers))  # fmt: skip
        assert ack.duplicate
        later = {**first.headers, MSG_ID: "later"}
        await js.publish(NAMES.raw_subject(first.token), first.data, headers=later)
        await good(client)


async def test_an_agent_gone_for_good_leaves_and_comes_back(url: str) -> None:
    """Without heartbeats it leaves after `lost_s`; a heartbeat after that is a join."""
    service = replace(SERVICE, terms=Terms(lost_s=0.6))
    async with session(url, service=service) as (client, tasks):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as third:
                third.start_soon(partial(serve_agents, NAME, CYD, nats=url, beat_s=0.1))
                await until(lambda: _has(client, "join", "cyd"))
                scope.cancel()
        await until(lambda: _has(client, "leave", "cyd"))
        tasks.start_soon(partial(serve_agents, NAME, CYD, nats=url, beat_s=0.1))
        await until(lambda: _has(client, "join", "cyd", 2))
        assert (await incidents(client, "lost agent"))[0]["agent"] == "cyd"
        await good(client)


async def _has(client: Connection, kind: str, agent: str, times: int = 1) -> bool:
    made = [r for r in await rows(client) if r["kind"] == kind and r.get("agent") == agent]
    return len(made) >= times


async def test_an_activation_that_takes_too_long_ends_with_an_error(url: str) -> None:
    """The monitor's clock counts; what is said afterwards is late."""
    calls = []

    async def slow(view: View) -> Decision:
        calls.append(view.activation)
        if len(calls) == 1:
            await anyio.sleep(1.0)
        return await TEAM["writer"](view)

    setup = replace(SETUP, activation_timeout_s=0.4, backoff_s=0.05)
    async with session(url, {**TEAM, "writer": slow}, setup=setup) as (client, _):
        assert await ask(client, NAME, 1) == {"text": 1}
        errors = [r["error"] for r in await rows(client) if r.get("error")]
    # The process that is over its time takes no other mail, so a second one may end so, too.
    assert set(errors) == {"TimeoutError: took longer than 0.4 s"}
    assert len(set(calls)) >= 2


async def test_an_agent_that_raises_is_started_again_and_at_last_fails_the_request(
    url: str,
) -> None:
    """Its errors are those of the bus; the client is told in the end."""

    async def broken(view: View) -> Decision:
        raise ValueError("no ink")

    setup = replace(SETUP, retries=1, backoff_s=0.01, healers=None)
    async with session(url, {**TEAM, "writer": broken}, setup=setup) as (client, _):
        with pytest.raises(SettingsError, match="no ink"):
            await ask(client, NAME, 1)
        errors = [r["error"] for r in await rows(client) if r.get("error")]
    assert errors == ["ValueError: no ink"] * 2


async def test_more_open_problems_than_allowed_are_told_busy(url: str) -> None:
    """Beyond `max_open` a problem is answered at once, and nothing is queued."""
    held = anyio.Event()

    async def slow(view: View) -> Decision:
        await held.wait()
        return await TEAM["writer"](view)

    service = replace(SERVICE, terms=Terms(max_open=2))
    async with session(url, {**TEAM, "writer": slow}, service=service) as (client, _):
        answers = AwaitedAnswers(client, NAMES)
        await answers.open()
        asked = [await pose(client, NAMES, number) for number in range(3)]
        with pytest.raises(SettingsError, match="busy"):
            await answers.of(asked[2])
        held.set()
        assert [await answers.of(context) for context in asked[:2]] == [{"text": 0}, {"text": 1}]


async def test_an_answer_that_was_missed_is_given_again(url: str) -> None:
    """A client that was away when its answer came asks the owner for it."""
    async with session(url) as (client, _):
        context = await pose(client, NAMES, 1)
        await until(lambda: _has_answer(client))
        late = AwaitedAnswers(client, NAMES)
        await late.open()
        assert await late.of(context) == {"text": 1}


async def _has_answer(client: Connection) -> bool:
    return any(message.token == "_out" for message in await read_stream(client, NAMES.to))


async def test_a_standby_takes_over_at_once_when_the_owner_gives_back(url: str) -> None:
    """Work in progress goes on; the epoch grows; nothing is lost or doubled."""
    async with anyio.create_task_group() as tasks, connect(url) as client:
        first = anyio.CancelScope()
        tasks.start_soon(_serve_within, first, url)
        await until(lambda: _rows_in(client))
        tasks.start_soon(partial(serve_agents, NAME, TEAM, nats=url, beat_s=0.2))
        assert await ask(client, NAME, 1) == {"text": 1}
        standby = replace(SERVICE, is_standby=True, process="second")
        tasks.start_soon(partial(serve, url, NAME, SETUP, service=standby))
        context = await pose(client, NAMES, 2)
        first.cancel()
        answers = AwaitedAnswers(client, NAMES)
        await answers.open()
        with anyio.fail_after(30):
            assert await answers.of(context) == {"text": 2}
        owners = await incidents(client, "owner")
        table = await session_rows(client)
        assert (await account_of(client, NAME)).faults == []

        async def are_figures_told() -> bool:
            return (await session_rows(client))[0]["takeovers"] is not None

        await until(are_figures_told)
        figures = (await session_rows(client))[0]
        tasks.cancel_scope.cancel()
    assert figures["takeovers"] == 2
    assert len(owners) == 2
    assert owners[0]["epoch"] < owners[1]["epoch"] == table[0]["epoch"]
    assert table[0]["owner"] == "second"


async def _serve_within(scope: anyio.CancelScope, url: str) -> None:
    with scope:
        await serve(url, NAME, SETUP, list(TEAM), service=replace(SERVICE, process="first"))


async def _rows_in(client: Connection) -> bool:
    try:
        return len(await rows(client)) > 1
    except Exception:
        return False


async def test_processes_share_the_sessions_that_match_a_pattern(url: str) -> None:
    """Each takes at most its number; what one gives back another takes."""
    service = replace(SERVICE, lease_s=0.8)
    async with connect(url) as client, anyio.create_task_group() as tasks:
        await make_bucket(client)
        for number in range(4):
            names = Subjects(f"news-{number}")
            await make_session(client, names, SETUP, ["editor"], Storage())
        await make_session(client, Subjects("other"), SETUP, ["editor"], Storage())
        first = anyio.CancelScope()

        async def serve_some(process: str, most: int, scope: anyio.CancelScope) -> None:
            with scope:
                await serve_all(
                    url, "news-*", most, SETUP, service=replace(service, process=process)
                )

        async def owners() -> list[str | None]:
            return [row["owner"] for row in await session_rows(client)]

        tasks.start_soon(serve_some, "first", 3, first)
        tasks.start_soon(serve_some, "second", 4, anyio.CancelScope())

        async def are_all_served() -> bool:
            return sum(name is not None for name in await owners()) == 4

        await until(are_all_served)
        assert (await owners()).count("first") <= 3
        assert (await owners())[-1] is None  # the one that does not match
        first.cancel()

        async def has_the_second_all() -> bool:
            return (await owners()).count("second") == 4

        await until(has_the_second_all)
        tasks.cancel_scope.cancel()


async def test_a_process_rebuilds_few_sessions_at_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ones are served while others wait for their turn, and are claimed only then."""
    claim, catch_up, at_once, most = Lease.claim, JournalFollower.catch_up, 0, 0

    async def count(self: Lease, revision: int) -> bool:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        return await claim(self, revision)

    async def slowly(self: JournalFollower) -> None:
        nonlocal at_once
        await anyio.sleep(0.5)
        await catch_up(self)
        at_once -= 1

    monkeypatch.setattr(Lease, "claim", count)
    monkeypatch.setattr(JournalFollower, "catch_up", slowly)
    async with anyio.create_task_group() as tasks, connect(url) as client:
        for number in range(6):
            await make_session(client, Subjects(f"news-{number}"), SETUP, list(TEAM), Storage())
        tasks.start_soon(partial(serve_all, url, "news-*", 50, SETUP, service=SERVICE))

        async def are_rebuilt() -> bool:
            return 0 not in [row["epoch"] for row in await session_rows(client)]

        await until(are_rebuilt)
        tasks.cancel_scope.cancel()
    assert most in (1, 2)  # by chance one at a time


async def test_a_damaged_journal_is_owned_by_nobody(url: str) -> None:
    """The rebuild refuses, names the message, and marks the session."""
    async with session(url) as (client, _):
        await ask(client, NAME, 1)
        stored = await read_stream(client, NAMES.journal)
    async with connect(url) as client:
        damaged = stored[-1].data.replace(b'"us"', b'"US"').replace(b"text", b"tEXt")
        headers = {**stored[-1].headers, MSG_ID: "damage"}
        headers.pop("Nats-Expected-Last-Sequence", None)
        await client.jetstream().publish(NAMES.journal_subject, damaged, headers=headers)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve, url, NAME, SETUP, service=SERVICE))
            state: list[str] = []

            async def is_marked() -> bool:
                state[:] = [(await session_rows(client))[0]["state"]]
                return state[0] not in ("served", "nobody serves it")

            await until(is_marked)
            assert f"message {stored[-1].sequence + 1}" in state[0]
            tasks.cancel_scope.cancel()


async def test_a_detector_that_cannot_be_repeated_makes_a_session_unresumable(url: str) -> None:
    """The mark names the record; the journal stays as it is."""

    class Moody(Detector):
        pattern = "MOOD"
        kinds = (End,)
        mood = 0

        def detect(self, graph: InteractionGraph, record: Any) -> list[Finding]:
            if Moody.mood:
                return []
            return [Finding("MOOD", graph.t, record.us, {"activation": record.activation}, {})]

    setup = replace(SETUP, detectors=lambda: [Moody()])
    async with session(url, setup=setup) as (client, _):
        await ask(client, NAME, 1)
        assert any(r["kind"] == "finding" for r in await rows(client))
    Moody.mood = 1
    async with connect(url) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve, url, NAME, setup, service=SERVICE))

        async def is_marked() -> bool:
            return "record" in str((await session_rows(client))[0]["state"])

        await until(is_marked)
        tasks.cancel_scope.cancel()


async def test_a_session_begins_where_another_one_ended(url: str) -> None:
    """It is made for others to serve; its first incident names the old one and its last record."""
    async with connect(url) as client:
        with pytest.raises(SettingsError, match="no session news"):
            await serve(url, "next", SETUP, after=NAME, is_only_made=True)
        await make_bucket(client)
        await make_session(client, NAMES, SETUP, list(TEAM), SERVICE.storage)
        await serve(url, "next", SETUP, list(TEAM), after=NAME, is_only_made=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve, url, "next", SETUP, service=SERVICE))
            tasks.start_soon(partial(serve_agents, "next", TEAM, nats=url))
            with anyio.fail_after(30):
                assert await ask(client, "next", 1) == {"text": 1}
            tasks.cancel_scope.cancel()
        first = (await read_stream(client, "DIG_JOURNAL_next"))[0].data.splitlines()
    assert len(first) == 2
    assert json.loads(first[1])["detail"] == {"session": NAME, "record": 0, "reason": None}


async def test_an_agent_whose_clock_is_wrong_is_told_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its decisions say when they were sent; nothing but the incident comes of it."""
    late = SimpleNamespace(time=lambda: time.time() - 5)
    async with session(url) as (client, _):
        monkeypatch.setattr(envelopes, "time", late)
        await ask(client, NAME, "a message that waited, perhaps")
        monkeypatch.undo()
        await ask(client, NAME, "no")
        assert await incidents(client, "skew") == []
        monkeypatch.setattr(envelopes, "time", late)
        for number in range(4):
            assert await ask(client, NAME, number) == {"text": number}
        told = await incidents(client, "skew")
    assert sorted(one["from"] for one in told) == ["editor", "writer"]
    assert all(4 < one["behind_s"] < 7 for one in told)


async def test_a_session_with_gates_is_refused(url: str) -> None:
    """What a gate decides is in no record, so nobody could go on with it."""
    setup = replace(SETUP, gates=[BrokenGate()])
    with pytest.raises(SettingsError, match="cannot have gates: what a gate decides"):
        await serve(url, NAME, setup, is_only_made=True)


async def test_a_budget_that_would_not_be_kept_is_refused() -> None:
    """Before anything is asked of the server."""
    setup = SETUP.ruled(None, {"turns": 2})
    with pytest.raises(SettingsError, match=r"keeps no \[budget\]"):
        await serve_all("nats://nowhere", "news-*", 2, setup)


async def test_what_a_lost_connection_swallowed_is_read_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gap in what comes is no gap in the stream; only a new reader may say that there is one."""
    numbered, read = count(), Puller.read

    async def lossy(self: Puller, wait_s: float = 60.0) -> list[Any]:
        return [m for m in await read(self, wait_s) if next(numbered) != 1]

    monkeypatch.setattr(Puller, "read", lossy)
    async with connect(url) as client:
        await make_streams(client, NAMES, Storage())
        for number in range(5):
            await pose(client, NAMES, number)
        reader, numbers = GaplessReader(client, NAMES.raw), list[int]()
        while len(numbers) < 5:
            numbers += [json.loads(m.data)["payload"] for m in await reader.read()]
        await client.jetstream().delete_msg(NAMES.raw, 3)
        reader = GaplessReader(client, NAMES.raw, 2)
        with pytest.raises(DamageError, match="message 3 is missing"):
            await reader.read()
    assert numbers == [0, 1, 2, 3, 4]


async def test_a_standby_that_is_cancelled_drops_nothing_that_it_has_read(url: str) -> None:
    """It takes over in the middle of a read, and goes on with the very next message."""
    async with session(url) as (client, _):
        for number in range(4):
            await ask(client, NAME, number)
        follower = JournalFollower(client, NAMES, lambda line: SETUP)
        read = follower.reader.read

        async def read_and_cancel(wait_s: float = 1.0) -> list[Any]:
            messages = await read(wait_s)
            scope.cancel()
            return messages

        follower.reader.read = read_and_cancel  # type: ignore[method-assign]
        with anyio.CancelScope() as scope:
            await follower.follow()
        follower.reader.read = read  # type: ignore[method-assign]
        await follower.catch_up()
        made = await rows(client)
        await follower.reader.close()
    assert follower.resumption is not None
    assert follower.resumption.t == made[-1]["t"]


async def test_the_lease_of_a_loop_that_hangs_ends(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes no step renews no lease, and the session is another's."""
    monkeypatch.setattr(ownership, "HANG_S", 0.1)
    async with connect(url) as client, anyio.create_task_group() as tasks:
        await make_bucket(client)
        hanging = Lease(client, NAMES, "hanging", 0.2)
        assert await hanging.claim(0)
        tasks.start_soon(hanging.keep)
        with anyio.fail_after(20):
            revision = await until_free(client, NAMES, 0.2, 0.0)
        assert await Lease(client, NAMES, "other", 0.2).claim(revision)
        hanging.show_life()

        async def is_lost() -> bool:
            return hanging.is_lost

        await until(is_lost)


class Restartable:
    """A server that can be killed, started again, and have its store changed meanwhile."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder, self._program, self.port = folder, program, free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        text = f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{folder}/store" }}\n'
        (folder / "c.conf").write_text(text)
        self.start()

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self._program, "-c", self.folder / "c.conf"], stdout=log, stderr=log
            )
        _await_start(self.process, self.port, self.folder / "log")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path, server_program: Path) -> Iterator[Restartable]:
    made = Restartable(tmp_path, server_program)
    yield made
    made.kill()


async def test_a_lost_connection_ends_the_wait_for_answers(
    server: Restartable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed server did not answer is stored as soon as there is one again."""
    monkeypatch.setattr(connection, "ANSWER_S", 600.0)
    async with connect(server.url) as client:
        client.js = client.jetstream(timeout=2.0)  # later attempts wait for no time but their own
        await make_bucket(client)
        os.kill(server.process.pid, signal.SIGSTOP)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.store, NAMES.key, b"{}", {})
                await anyio.sleep(0.1)
                server.kill()
                server.start()
        last = await client.last_of("KV_DIG_OWNERS", NAMES.key)
    assert last is not None and last.data == b"{}"


async def test_the_clock_stands_still_while_the_server_is_away(server: Restartable) -> None:
    """A restart raises nothing, although the outage is longer than every window."""
    limits = replace(SETUP.limits, oe_window_s=1, dl_window_s=1, mc_window_s=1, stall_min_s=1,
                     late_window_s=1, activation_limit_s=1)  # fmt: skip
    held = anyio.Event()

    async def slow(view: View) -> Decision:
        await held.wait()
        return await TEAM["writer"](view)

    setup = replace(SETUP, limits=limits)
    async with session(server.url, {**TEAM, "writer": slow}, setup=setup) as (client, _):
        context = await pose(client, NAMES, 1)
        await until(lambda: _has(client, "start", "writer"))
        server.kill()
        await anyio.sleep(2.5)
        server.start()
        held.set()
        answers = AwaitedAnswers(client, NAMES)
        await answers.open()
        assert await answers.of(context) == {"text": 1}
        made = await rows(client)
        assert (await account_of(client, NAME)).faults == []
    assert [row for row in made if row["kind"] == "finding"] == []
    assert sum(one["down_s"] for one in _details(made, "disconnected")) > 1.5
    assert made[-1]["ts"] < 2.5


def _details(made: list[dict[str, Any]], kind: str) -> list[Any]:
    return [r["detail"] for r in made if r["kind"] == "incident" and r["what"] == kind]


async def test_a_server_that_loses_its_last_seconds(server: Restartable) -> None:
    """The journal's tail is lost: another branch begins, and old decisions are late in it."""
    async with session(server.url) as (client, _):
        await ask(client, NAME, 1)
    server.kill()
    shutil.copytree(server.folder / "store", server.folder / "early")
    server.start()
    async with session(server.url) as (client, _):
        await ask(client, NAME, "lost later")
    server.kill()
    kept = server.folder / "store"
    for stream in ("DIG_JOURNAL_news",):  # raw and inboxes keep what the journal lost
        path = next(kept.glob(f"**/{stream}"))
        shutil.rmtree(path)
        shutil.copytree(next((server.folder / "early").glob(f"**/{stream}")), path)
    server.start()
    async with session(server.url) as (client, _):
        assert await ask(client, NAME, 3) == {"text": 3}
        made = await rows(client)
    assert [row["t"] for row in made] == list(range(len(made)))
    problems = [r["payload"] for r in made if r["kind"] == "emit" and r["by"] is None]
    assert problems == [1, "lost later", 3]


@pytest.mark.parametrize("is_all", [True, False])
async def test_raw_that_the_server_lost_is_told(server: Restartable, is_all: bool) -> None:
    """An owner that finds a later sequence says so, and goes on, wherever the gap is."""
    async with session(server.url) as (client, _):
        await ask(client, NAME, 1)
    async with connect(server.url) as client:
        js = client.jetstream()
        for number in range(3):
            await pose(client, NAMES, number)
        if is_all:
            await js.purge_stream(NAMES.raw)
        else:
            last = (await js.stream_info(NAMES.raw)).state.last_seq
            await js.delete_msg(NAMES.raw, last - 2)
    async with session(server.url) as (client, _):
        await good_after_purge(client)
        told = await incidents(client, "raw lost")
    assert len(told) == 1
    assert told[0]["first"] > told[0]["after"] + 1


async def test_a_full_stream_stops_its_sender_and_not_the_session(url: str) -> None:
    """The flood waits; when there is room it goes on."""
    service = replace(SERVICE, storage=Storage(raw_bytes=40_000, ack_wait_s=1.0))
    async with session(url, service=service) as (client, _):
        await ask(client, NAME, 1)
        with anyio.move_on_after(2) as flood:
            for _number in range(100):
                await say(client, "client", "tell", {"note": "x" * 2_000, "to": []})
        assert flood.cancelled_caught
        js = client.jetstream()
        await js.purge_stream(NAMES.raw)
        await good_after_purge(client)


async def good_after_purge(client: Connection) -> None:
    assert await ask(client, NAME, "still there") == {"text": "still there"}


async def test_a_long_buffer_is_cut_and_the_rest_comes_with_the_next_activation(
    url: str,
) -> None:
    """A release stays below the largest message; the oldest events come first."""
    views: list[int] = []
    held = anyio.Event()

    async def reader(view: View) -> Decision:
        await held.wait()
        views.append(len(view.events))
        return Decision.respond(view)

    async def sender(view: View) -> Decision:
        fates = [EventFate(event=view.events[0].id, fate="consume")]
        return Decision(fates=fates, outputs=[NewEvent(payload="x" * 60_000, to=["writer"])])

    service = replace(SERVICE, terms=Terms(most_bytes=300_000))
    setup = replace(SETUP, detectors=tuple, healers=None)
    team = {"editor": sender, "writer": reader}
    async with session(url, team, setup=setup, service=service) as (client, _):
        for number in range(8):
            await pose(client, NAMES, number)

        async def are_delivered() -> bool:
            made = [r for r in await rows(client) if r["kind"] == "deliver"]
            return len([row for row in made if row["to"] == "writer"]) == 8

        await until(are_delivered)
        held.set()

        async def are_all_read() -> bool:
            return sum(views) >= 8

        await until(are_all_read)
    assert sum(views) == 8
    assert 2 <= max(views) < 7


async def test_a_decision_that_is_too_large_ends_with_an_error(url: str) -> None:
    """The agent's own process refuses what no message can hold."""

    async def wordy(view: View) -> Decision:
        return Decision.respond(view, NewEvent(payload="x" * 5_000_000, to=["editor"]))

    setup = replace(SETUP, retries=0, healers=None)
    async with session(url, {**TEAM, "writer": wordy}, setup=setup) as (client, _):
        with pytest.raises(SettingsError, match="PayloadError"):
            await ask(client, NAME, 1)


async def test_the_trace_context_of_a_problem_comes_with_its_answer(url: str) -> None:
    """Each client knows its answer by it, whoever else asks at the same time."""
    async with session(url) as (client, _):
        told: dict[int, Any] = {}

        async def one(number: int) -> None:
            told[number] = await ask(client, NAME, number)

        async with anyio.create_task_group() as asking:
            for number in range(12):
                asking.start_soon(one, number)
        stored = await read_stream(client, NAMES.raw)
    assert told == {number: {"text": number} for number in range(12)}
    contexts = [m.headers[TRACEPARENT] for m in stored if m.headers[KIND] == "problem"]
    assert len(set(contexts)) == 12


@pytest.mark.parametrize("seed", [1])
async def test_fuzzed_raw_messages_stop_nothing(url: str, seed: int, request: Any) -> None:
    """Random bytes, JSON and mutations of real messages: the session goes on, and verifies."""
    draws = random.Random(seed)
    count = 10_000 if request.config.getoption("whole") else 400
    async with session(url) as (client, _):
        await ask(client, NAME, 1)
        real = await read_stream(client, NAMES.raw)
        for number in range(count):
            await _publish_fuzzed(client, draws, real, number)
        await good_after_purge(client)
        made = await rows(client)
    assert [row["t"] for row in made] == list(range(len(made)))


async def _publish_fuzzed(
    client: Connection, draws: random.Random, real: list[Any], number: int
) -> None:
    message = draws.choice(real)
    data, headers = bytearray(message.data), {**message.headers, MSG_ID: f"fuzz.{number}"}
    for _ in range(draws.randint(1, 6)):
        way = draws.randrange(5)
        if way == 0 and data:
            data[draws.randrange(len(data))] = draws.randrange(256)
        elif way == 1:
            data[draws.randint(0, len(data)) :] = draws.randbytes(draws.randint(0, 40))
        elif way == 2:
            headers[KIND] = draws.choice(["decision", "problem", "join", "leave", "tell", "decide"])
        elif way == 3:
            headers[V] = draws.choice(["1", "2", ""])
        else:
            values: list[Any] = [
                None,
                1e308,
                [],
                {"a": {}},
                "\ud800",
                -1,
                "a1",
                ["editor"],
                "system",
            ]
            keys = ["payload", "to", "agent", "note", "finding", "heal", "activation", "mark"]
            body = {key: draws.choice(values) for key in draws.sample(keys, 3)}
            data = bytearray(json.dumps(body).encode())
    if b"leave" in headers[KIND].encode() and b"editor" in data:
        return  # it may say so, and then nobody is there to ask
    token = draws.choice(["client", "editor", "writer", "=4", "_out"])
    await client.jetstream().publish(NAMES.raw_subject(token), bytes(data), headers=headers)


def test_the_server_is_found_or_the_tests_say_so() -> None:
    """The program is one that can be run."""
    text = subprocess.run([find_server(), "--version"], capture_output=True, text=True).stdout
    assert text.startswith("nats-server: v2.")


async def test_a_problem_for_a_session_that_is_not_there_is_refused(url: str) -> None:
    """The asker hears at once how to start it."""
    async with connect(url) as client:
        with pytest.raises(SettingsError, match=r"no session nosuch .* serve --session nosuch"):
            with anyio.fail_after(30):
                await ask(client, "nosuch", 1)


async def test_a_refused_pull_leaves_no_directory(url: str, tmp_path: Path) -> None:
    """What is in the way of a later run is not made."""
    async with connect(url) as client:
        with pytest.raises(BaseExceptionGroup) as group:
            await pull(client, tmp_path / "runs", "nosuch", follow=False, tell=print)
    assert group.group_contains(SettingsError, match="no session nosuch")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://127.0.0.1:4222", "is no address"),
        ("nats://127.0.0.1:1", "serve --embedded .*DIG_N"),
    ],
)
async def test_no_server_is_said_with_what_to_do(
    address: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong scheme is refused before anything is tried."""
    monkeypatch.setattr(connection, "REFUSED_S", 0.0)
    with pytest.raises(SettingsError, match=reason):
        async with connect(address):
            pass


def test_a_copy_elsewhere_finds_the_embedded_server(
    server_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pull` writes to a directory of its own, and the server stands beside the usual runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DIG_NATS", raising=False)
    with (
        machines._server(None, True, Path("runs")) as url,
        machines._server(None, False, tmp_path / "other") as address,
    ):
        assert address == url


def test_a_second_monitor_finds_the_embedded_server(
    server_program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says which process that is; the server goes on without it."""
    with machines._server(None, True, tmp_path) as url:
        with machines._server(None, True, tmp_path) as again:
            assert again == url
        pid = (tmp_path / ".nats" / "store.pid").read_text().strip()
        assert stored_url(tmp_path) == url
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"digmon: started a server (pid {pid})")
    assert said[1].startswith(f"digmon: found a running server (pid {pid})")


def test_the_list_of_sessions_fits_a_terminal() -> None:
    """Each session is one line of at most 80 characters."""
    row = {"session": "news", "owner": "workstation-12345-a1b2c3", "epoch": 12_345, "takeovers": 99,
           "open": 12, "lag": 300, "late": 4, "fenced": 10, "state": "served"}  # fmt: skip
    free = {**row, "owner": None, "state": "nobody serves it"}
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(machines._table([row, free]))
    lines = console.export_text().splitlines()
    assert len(lines) == 3
    assert "workstation-12345-a1b2c3" in lines[1] and "nobody serves it" in lines[2]
    assert lines[1].split()[2:] == ["12345", "99", "12", "300", "4", "10"]
