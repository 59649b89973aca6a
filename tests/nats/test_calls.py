"""Plain async functions that call each other from process to process."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

import dig
from dig.adapters.nats import agent
from dig.adapters.nats.calls import team
from dig.adapters.nats.client import ask
from dig.adapters.nats.connection import connect
from dig.adapters.nats.serving import serve
from dig.cli.app import app
from dig.errors import CallError, LostTurnError, SettingsError

from .account import account_of
from .harness import NAME, SERVICE, SETUP, has_inbox, rows, serve_agents, until

pytestmark = pytest.mark.anyio


async def ada(topic: Any) -> Any:
    """Ask two others at once, and join what they say."""
    said: dict[str, Any] = {}

    async def one(name: str) -> None:
        said[name] = await team[name]({"about": topic})

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one, "bob")
        tasks.start_soon(one, "cyd")
    again = await team["bob"]({"about": "more"})
    return [said["bob"], said["cyd"], again]


async def bob(request: Any) -> Any:
    return f"bob on {request['about']}"


async def cyd(request: Any) -> Any:
    return await team["bob"]({"about": f"{request['about']} for cyd"})


async def served(url: str, tasks: Any, client: Any) -> None:
    names = ["ada", "bob", "cyd"]
    tasks.start_soon(partial(serve, url, NAME, SETUP, names, service=SERVICE))
    await until(lambda: has_inbox(client, "cyd"))


async def test_functions_call_each_other_across_processes(url: str) -> None:
    """Every call is held; the answers are right; the graph has no turn without its answers."""
    async with anyio.create_task_group() as tasks, connect(url) as client:
        await served(url, tasks, client)
        tasks.start_soon(partial(serve_agents, NAME, {"ada": ada}, nats=url))
        tasks.start_soon(partial(serve_agents, NAME, {"cyd": cyd}, nats=url))
        async with dig.join(NAME, {"bob": bob}, nats=url) as callees:
            with anyio.fail_after(60):
                answer = await ask(client, NAME, "rivers", ["ada"])
                assert await callees["bob"]({"about": "a client"}) == "bob on a client"
        made = await rows(client)
        account = await account_of(client, NAME)
        tasks.cancel_scope.cancel()
    assert answer == ["bob on rivers", "bob on rivers for cyd", "bob on more"]
    assert account.faults == []
    calls = [row for row in made if row["kind"] == "emit" and row["type"] == "call"]
    assert len(calls) == 4
    assert [row["pattern"] for row in made if row["kind"] == "finding"] == []


async def test_an_error_comes_back_to_the_caller(url: str) -> None:
    """The caller may catch it; it says who failed, and how."""

    async def careful(x: Any) -> Any:
        try:
            return await team["bob"](x)
        except dig.DigError as error:
            return str(error)

    async def failing(x: Any) -> Any:
        raise KeyError("no ink")

    async with anyio.create_task_group() as tasks, connect(url) as client:
        await served(url, tasks, client)
        tasks.start_soon(partial(serve_agents, NAME, {"ada": careful, "bob": failing}, nats=url))
        with anyio.fail_after(60):
            answer = await ask(client, NAME, 1, ["ada"])
        tasks.cancel_scope.cancel()
    assert answer == "bob: KeyError: 'no ink'"


async def test_a_function_that_does_not_wait_for_an_answer_ends_when_it_is_there(url: str) -> None:
    async def hasty(x: Any) -> Any:
        with anyio.move_on_after(0.1):
            return await team["bob"](x)
        return "without bob"

    async def slow(x: Any) -> Any:
        await anyio.sleep(1)
        return x

    async with anyio.create_task_group() as tasks, connect(url) as client:
        await served(url, tasks, client)
        tasks.start_soon(partial(serve_agents, NAME, {"ada": hasty, "bob": slow}, nats=url))
        with anyio.fail_after(60):
            assert await ask(client, NAME, 1, ["ada"]) == "without bob"
        tasks.cancel_scope.cancel()


async def test_a_turn_that_died_with_its_process_is_told_to_its_caller(url: str) -> None:
    """Cyd's process ends while she waits for Bob: her caller gets `LostTurnError`."""
    held = anyio.Event()

    async def slow(x: Any) -> Any:
        await held.wait()
        return x

    async def caller(x: Any) -> Any:
        try:
            return await team["cyd"](x)
        except LostTurnError:
            return "lost"

    async def waiting(x: Any) -> Any:
        return await team["bob"](x)

    async with anyio.create_task_group() as tasks, connect(url) as client:
        await served(url, tasks, client)
        tasks.start_soon(partial(serve_agents, NAME, {"ada": caller, "bob": slow}, nats=url))
        answers: list[Any] = []

        async def asking() -> None:
            answers.append(await ask(client, NAME, 1, ["ada"]))

        tasks.start_soon(asking)

        async def bob_works() -> bool:
            return any(r["kind"] == "start" and r["agent"] == "bob" for r in await rows(client))

        async with dig.join(NAME, {"cyd": waiting}, nats=url):
            await until(bob_works)
        tasks.start_soon(partial(serve_agents, NAME, {"cyd": waiting}, nats=url))
        held.set()

        async def is_answered() -> bool:
            return bool(answers)

        await until(is_answered, 60)
        tasks.cancel_scope.cancel()
    assert answers == ["lost"]


async def test_a_call_outside_a_turn_needs_a_membership() -> None:
    """The module's `team` has no session of its own."""
    with pytest.raises(SettingsError, match="inside an agent's function"):
        await team["bob"](1)


async def fail_or_double(x: Any) -> Any:
    """Double a number; a text raises, zero gives something that is no JSON."""
    return 2 * x["n"] if x["n"] else object()


@pytest.mark.parametrize(
    ("problem", "reason"), [("five", "ada: TypeError: string ind"), ({"n": 0}, "ada: PayloadErr")]
)
async def test_a_function_that_fails_fails_the_request_and_takes_the_next(
    url: str, problem: Any, reason: str
) -> None:
    """The asker hears of it at once, as often as it happens, and nothing waits behind it."""
    async with anyio.create_task_group() as tasks, connect(url) as client:
        await served(url, tasks, client)
        tasks.start_soon(partial(serve_agents, NAME, {"ada": fail_or_double}, nats=url))
        with anyio.fail_after(60):
            for _ in range(4):  # more often than a failed turn is tried again
                with pytest.raises(SettingsError, match=reason):
                    await ask(client, NAME, problem, ["ada"])
            assert await ask(client, NAME, {"n": 2}, ["ada"]) == 4
        made, account = await rows(client), await account_of(client, NAME)
        tasks.cancel_scope.cancel()
    assert account.faults == []
    assert [row["pattern"] for row in made if row["kind"] == "finding"] == ["FAIL"] * 4
    errors = [row["detail"]["error"] for row in made if row.get("what") == "request_failed"]
    assert all(not error.startswith("ada") for error in errors), "readers name the agent"


async def test_a_call_of_nobody_is_answered_at_once(url: str) -> None:
    """The caller may catch it; nothing is healed."""

    async def careful(x: Any) -> Any:
        try:
            return await team["nobody"](x)
        except CallError as error:
            return str(error)

    async with anyio.create_task_group() as tasks, connect(url) as client:
        await served(url, tasks, client)
        tasks.start_soon(partial(serve_agents, NAME, {"ada": careful}, nats=url))
        with anyio.fail_after(60):
            answer = await ask(client, NAME, 1, ["ada"])
        made, account = await rows(client), await account_of(client, NAME)
        tasks.cancel_scope.cancel()
    assert answer == "nobody: no agent called nobody is here"
    assert account.faults == []
    assert [row["pattern"] for row in made if row["kind"] == "finding"] == []


async def test_an_agent_says_that_it_joined_waits_and_failed(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is one line."""
    monkeypatch.setattr(agent, "WAIT_S", 0.0)
    caplog.set_level(logging.INFO, "dig.nats")
    async with anyio.create_task_group() as tasks, connect(url) as client:
        tasks.start_soon(partial(serve_agents, NAME, {"ada": fail_or_double}, nats=url))
        await until(lambda: has_said(caplog, "ada waits: nobody serves session news"))
        await served(url, tasks, client)
        await until(lambda: has_said(caplog, "ada has joined news"))
        with pytest.raises(SettingsError):
            await ask(client, NAME, "five", ["ada"])
        tasks.cancel_scope.cancel()
    assert "dig: ada: TypeError: string indices must be integers" in caplog.text


async def has_said(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return text in caplog.text


def test_agents_that_cannot_work_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any server is looked for."""
    (tmp_path / "two_kinds.py").write_text("def plain(x): ...\nasync def well(x): ...\n")
    monkeypatch.chdir(tmp_path)
    for names, source, reason in [
        ("ada", "two_kinds:plain", "make it async"),
        ("ada,bob", "two_kinds:well", "mapping"),
        ("a*a", "two_kinds:well", "letters"),
    ]:
        result = CliRunner().invoke(app, ["agent", NAME, names, source, "--nats", "nats://[::1]:1"])
        assert isinstance(result.exception, SettingsError)
        assert reason in str(result.exception)
