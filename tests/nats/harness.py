"""A session for a test: monitor, agents and client in one process, on a real server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

import dig
from dig.adapters.nats.connection import Connection, connect
from dig.adapters.nats.names import Subjects
from dig.adapters.nats.serving import serve
from dig.adapters.nats.session import Terms
from dig.adapters.nats.streams import Storage
from dig.adapters.nats.takeover import Service
from dig.detectors import standard, standard_healers
from dig.runtime import Decision, EventFate, NewEvent, Setup, View

from .account import read_stream

NAME = "news"
SETUP = Setup(NAME, session=True, detectors=standard, healers=standard_healers)
SERVICE = Service(lease_s=1.0, terms=Terms(lost_s=30.0), storage=Storage(ack_wait_s=1.0))
NAMES = Subjects(NAME)


async def serve_agents(*args: Any, **more: Any) -> None:
    """`dig.join`, as a task."""
    await dig.join(*args, **more)


async def editor(view: View) -> Decision:
    """Ask the writer about each problem, and submit what the writer says."""
    first = view.events[0]
    consumed: Any = [{"event": first.id, "fate": "consume"}]
    if first.sender == "system":
        return Decision(fates=consumed)
    if first.sender == "writer":
        output = NewEvent(payload=first.payload, type="solution", final=True)
    else:
        output = NewEvent(payload=first.payload, to=["writer"])
    return Decision(fates=consumed, outputs=[output])


async def writer(view: View) -> Decision:
    """Write a text at a time: an answer settles all problems that its activations have seen."""
    first = view.events[0]
    outputs = [NewEvent(payload={"text": first.payload}, to=["editor"])]
    if first.sender == "system":
        outputs = []
    return Decision(fates=[EventFate(event=first.id, fate="consume")], outputs=outputs)


TEAM = {"editor": editor, "writer": writer}


@asynccontextmanager
async def session(
    url: str, team: Mapping[str, Any] = TEAM, *, setup: Setup = SETUP, service: Service = SERVICE
) -> AsyncIterator[tuple[Connection, TaskGroup]]:
    """A served session with its agents, and a client."""
    async with anyio.create_task_group() as tasks, connect(url) as client:
        process = replace(service, process="first")
        tasks.start_soon(partial(serve, url, NAME, setup, list(team), service=process))
        tasks.start_soon(partial(serve_agents, NAME, team, nats=url, beat_s=0.2))
        await until(lambda: has_inbox(client))
        with anyio.fail_after(60):
            yield client, tasks
        tasks.cancel_scope.cancel()


async def has_inbox(client: Connection, agent: str = "editor") -> bool:
    try:
        await client.jetstream().consumer_info(NAMES.to, f"agent-{agent}")
    except Exception:
        return False
    return True


async def until(holds: Any, seconds: float = 30.0) -> None:
    """Wait until something holds."""
    with anyio.fail_after(seconds):
        while not await holds():  # noqa: ASYNC110 (a server is asked)
            await anyio.sleep(0.02)


async def rows(client: Connection) -> list[dict[str, Any]]:
    """The rows of the journal."""
    messages = await read_stream(client, NAMES.journal)
    return [json.loads(line) for message in messages for line in message.data.splitlines()]


async def incidents(client: Connection, kind: str) -> list[Any]:
    """The details of the incidents of a kind."""
    return [
        row["detail"]
        for row in await rows(client)
        if row["kind"] == "incident" and row["what"] == kind
    ]
