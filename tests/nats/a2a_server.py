"""A process that serves an agent over HTTP, and is a member of a session."""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from starlette.applications import Starlette

import dig
from tests.adapters.a2a_teams import Agent, handler_of, says
from tests.adapters.harness import Script

from .harness import NAME


async def main(nats: str, name: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    card, handler = handler_of(Agent(Script(), name, says("a text about rivers")))
    card.supported_interfaces[0].url = f"http://127.0.0.1:{port}/"
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error"))
    async with dig.join(NAME, {name: handler}, nats=nats):
        print(port, flush=True)
        await server.serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
