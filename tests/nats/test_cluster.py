"""Three servers that keep each message thrice: one of them may be lost, with what it had stored."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import nats.errors
import pytest
from nats.js.errors import APIError

from dig.adapters.nats.client import ask
from dig.adapters.nats.connection import connect
from dig.adapters.nats.embedded import free_port
from dig.adapters.nats.serving import serve
from dig.adapters.nats.streams import Storage

from .account import Account, account_of
from .harness import NAME, NAMES, SERVICE, SETUP, TEAM, has_inbox, serve_agents, until

pytestmark = pytest.mark.anyio

CONFIG = """
server_name: n{number}
listen: "127.0.0.1:{port}"
jetstream {{ store_dir: "{folder}" }}
cluster {{ name: dig, listen: "127.0.0.1:{route}", routes: [{routes}] }}
"""


@contextmanager
def cluster(folder: Path, program: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Three servers; their addresses, and the processes."""
    ports, ways = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
    routes = ", ".join(f'"nats-route://127.0.0.1:{way}"' for way in ways)
    servers = []
    try:
        for number in range(3):
            text = CONFIG.format(
                number=number, port=ports[number], route=ways[number], routes=routes,
                folder=folder / f"store{number}",
            )  # fmt: skip
            file = folder / f"{number}.conf"
            file.write_text(text)
            with (folder / f"{number}.log").open("ab") as log:
                servers.append(subprocess.Popen([program, "-c", file], stdout=log, stderr=log))
        yield ",".join(f"nats://127.0.0.1:{port}" for port in ports), servers
    finally:
        for server in servers:
            server.kill()
            server.wait()


async def test_a_server_of_three_that_is_lost_loses_nothing(
    tmp_path: Path, server_program: Path
) -> None:
    """Whichever it is, and the leader of each stream in turn: the session goes on."""
    service = replace(SERVICE, lease_s=4.0, storage=Storage(replicas=3, ack_wait_s=1.0))
    with cluster(tmp_path, server_program) as (url, servers), anyio.fail_after(100):
        async with anyio.create_task_group() as tasks, connect(url) as client:
            tasks.start_soon(partial(serve, url, NAME, SETUP, list(TEAM), service=service))
            tasks.start_soon(partial(serve_agents, NAME, TEAM, nats=url, beat_s=0.2))
            await until(lambda: has_inbox(client))
            assert await ask(client, NAME, 1) == {"text": 1}
            info = await client.jetstream().stream_info(NAMES.journal)
            leader = int(info.cluster.leader[1:])
            assert info.config.num_replicas == 3
            servers[leader].kill()
            assert await ask(client, NAME, 2) == {"text": 2}
            accounts: list[Account] = []

            async def is_read() -> bool:  # an election of leaders may go on
                with suppress(nats.errors.Error, APIError):
                    accounts.append(await account_of(client, NAME))
                return bool(accounts)

            await until(is_read, 60)
            assert accounts[0].faults == []
            tasks.cancel_scope.cancel()
