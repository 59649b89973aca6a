"""Agents of a session that talk over A2A: one journal, with a hold for both ways."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any

import anyio
import pytest

import dig
from dig.adapters.nats.client import ask
from dig.adapters.nats.connection import connect
from dig.adapters.nats.serving import serve

from .account import account_of
from .harness import NAME, SERVICE, SETUP, has_inbox, rows, serve_agents, until

pytest.importorskip("a2a")

from a2a.client import create_client

from tests.adapters.a2a_teams import asks, raises, says, team, words, works
from tests.adapters.harness import Script

pytestmark = pytest.mark.anyio


async def served(url: str, tasks: Any, client: Any, *names: str) -> None:
    tasks.start_soon(partial(serve, url, NAME, SETUP, [*names], service=SERVICE))
    await until(lambda: has_inbox(client, names[-1]))


def graph_of(made: list[Any]) -> list[tuple[str, Any, list[str]]]:
    """What was said, without continuations."""
    return [
        (row["type"], row.get("payload"), row["to"])
        for row in made if row["kind"] == "emit" and row["type"] != "notice"
    ]  # fmt: skip


@pytest.mark.parametrize("streaming", [False, True])
async def test_calls_over_a2a_are_calls_of_the_session(url: str, streaming: bool) -> None:
    """An editor asks b, which asks c: each message and each answer is an event, once."""
    made = team(Script(), "client", streaming=streaming, b=asks("c"), c=says("c done"))

    async def editor(topic: Any) -> Any:
        return await words(made.clients["b"], topic)

    async with anyio.create_task_group() as tasks, connect(url) as client:
        await served(url, tasks, client, "editor", "b", "c")
        for agents in (
            {"editor": editor, "b": made.clients["b"]},
            {"b": made.handlers["b"], "c": made.clients["c"]},
            {"c": made.handlers["c"]},
        ):
            tasks.start_soon(partial(serve_agents, NAME, agents, nats=url))
        with anyio.fail_after(60):
            answer = await ask(client, NAME, "rivers", ["editor"])
        recorded, account = await rows(client), await account_of(client, NAME)
        tasks.cancel_scope.cancel()
    assert answer == "c done"
    assert account.faults == []
    assert graph_of(recorded) == [
        ("problem", "rivers", ["editor"]), ("call", "rivers", ["b"]), ("call", "to c", ["c"]),
        ("answer", "c done", ["b"]), ("answer", "c done", ["editor"]), ("solution", "c done", []),
    ]  # fmt: skip


async def test_an_executor_that_raises_fails_the_call_in_the_session_too(url: str) -> None:
    """The caller gets the error of A2A, as without the session."""
    made = team(Script(), "client", b=raises)

    async def editor(topic: Any) -> Any:
        try:
            return await words(made.clients["b"], topic)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    async with anyio.create_task_group() as tasks, connect(url) as client:
        await served(url, tasks, client, "editor", "b")
        for agents in ({"editor": editor, "b": made.clients["b"]}, {"b": made.handlers["b"]}):
            tasks.start_soon(partial(serve_agents, NAME, agents, nats=url))
        with anyio.fail_after(60):
            answer = await ask(client, NAME, "rivers", ["editor"])
        recorded = await rows(client)
        tasks.cancel_scope.cancel()
    assert answer == "InternalError: no model today"
    failures = [row["payload"] for row in recorded if row.get("type") == "failure"]
    assert failures == ["CallError: ValueError: no model today"]


@pytest.mark.parametrize(
    ("act", "is_wrapped"),
    [(says("b done"), False), (works(says="b done"), False), (says("b done"), True)],
)
async def test_a_caller_outside_the_session_poses_a_problem(
    url: str, act: Any, is_wrapped: bool
) -> None:
    """The executor's own process tells the session, and its caller waits for the release.

    A caller that is wrapped by itself has a trace context in its message, and is outside as well.
    """
    made = team(Script(), "client", b=act)
    if is_wrapped:
        dig.wrap(made.clients["b"])
    async with anyio.create_task_group() as tasks, connect(url) as client:
        await served(url, tasks, client, "b")
        async with dig.join(NAME, {"b": made.handlers["b"]}, nats=url):
            with anyio.fail_after(60):
                said = await words(made.clients["b"], "rivers")
        recorded = await rows(client)
        tasks.cancel_scope.cancel()
    assert said in ("b done", "rivers")  # of a task the last words are its history
    assert graph_of(recorded) == [("problem", "rivers", ["b"]), ("solution", "b done", [])]


async def test_a_client_without_its_server_hears_of_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call whose message never comes ends after a while; its caller has its own error."""
    monkeypatch.setattr("dig.adapters.nats.over_a2a.ARRIVAL_S", 0.5)
    made = team(Script(), "client", b=says("b done"))
    lost = await create_client(made.cards["b"])  # nobody listens there

    async def editor(topic: Any) -> Any:
        try:
            return await words(lost, topic)
        except Exception as error:
            return type(error).__name__

    async with anyio.create_task_group() as tasks, connect(url) as client:
        await served(url, tasks, client, "editor", "b")
        for agents in ({"editor": editor, "b": lost}, {"b": made.handlers["b"]}):
            tasks.start_soon(partial(serve_agents, NAME, agents, nats=url))
        with anyio.fail_after(60):
            answer = await ask(client, NAME, "rivers", ["editor"])
        tasks.cancel_scope.cancel()
    assert "Error" in answer


async def test_two_processes_over_http_are_one_session(url: str) -> None:
    """The writer is served by another process; its turn stands in the same journal."""
    args = (sys.executable, "-m", "tests.nats.a2a_server", url, "writer")
    process = await asyncio.create_subprocess_exec(*args, stdout=asyncio.subprocess.PIPE)
    try:
        async with anyio.create_task_group() as tasks, connect(url) as client:
            await served(url, tasks, client, "editor", "writer")
            assert process.stdout is not None
            port = int(await process.stdout.readline())
            writer = await create_client(f"http://127.0.0.1:{port}")

            async def editor(topic: Any) -> Any:
                return f"Printed: {await words(writer, topic)}"

            mine = {"editor": editor, "writer": writer}
            tasks.start_soon(partial(serve_agents, NAME, mine, nats=url))
            with anyio.fail_after(60):
                answer = await ask(client, NAME, "rivers", ["editor"])
            recorded, account = await rows(client), await account_of(client, NAME)
            tasks.cancel_scope.cancel()
    finally:
        process.terminate()
        await process.wait()
    assert answer == "Printed: a text about rivers"
    assert account.faults == []
    assert graph_of(recorded) == [
        ("problem", "rivers", ["editor"]), ("call", "rivers", ["writer"]),
        ("answer", "a text about rivers", ["editor"]), ("solution", answer, []),
    ]  # fmt: skip
