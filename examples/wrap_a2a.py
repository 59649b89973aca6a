"""Two processes whose agents talk over A2A, monitored: two journals, one story.

    python examples/wrap_a2a.py [DIRECTORY]

An editor asks a writer, which another process serves over HTTP on this machine. Each process keeps
its own journal; `digmon import` joins them, since the events of the calls stand in both. The writer
says the same draft again and again, so the editor goes round: LOOP. Healed, a note tells the
writer, and the editor prints. No model, no key; only the loopback is used.
"""

import asyncio  # noqa: TID251  the A2A SDK runs on it
import socket
import sys
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import Any

import uvicorn
from a2a.client import create_client
from a2a.helpers.proto_helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Role,
    SendMessageRequest,
)
from starlette.applications import Starlette

import dig


class Writer(AgentExecutor):  # type: ignore[misc]
    """Writes the same draft until a note says that this goes round."""

    async def execute(self, context: Any, event_queue: Any) -> None:
        is_told = "[monitor]" in context.get_user_input()
        text = "A shorter draft." if is_told else "A draft."
        await event_queue.enqueue_event(new_text_message(text, role=Role.ROLE_AGENT))

    async def cancel(self, context: Any, event_queue: Any) -> None:
        """Nothing goes on after `execute`."""


async def serve(runs: str) -> None:
    """The writer's process: serve it until standard input ends."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    card = AgentCard(
        name="writer", description="writes drafts", version="1",
        capabilities=AgentCapabilities(streaming=True),
        supported_interfaces=[AgentInterface(
            protocol_binding="JSONRPC", url=f"http://127.0.0.1:{port}/", protocol_version="1.0"
        )],
        default_input_modes=["text"], default_output_modes=["text"],
        skills=[AgentSkill(id="draft", name="draft", description="writes a draft", tags=["text"])],
    )  # fmt: skip
    handler = DefaultRequestHandler(
        agent_executor=Writer(), task_store=InMemoryTaskStore(), agent_card=card
    )
    dig.wrap(handler, journal=runs)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error"))
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    print(port, dig.session_of(handler).directory, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving
    dig.unwrap(handler)


async def edit(mode: Any, runs: str, port: int) -> tuple[str, Path]:
    """The editor's process: ask for drafts; returns what is printed, and the journal."""
    writer = await create_client(f"http://127.0.0.1:{port}")
    client = dig.wrap(writer, mode=mode)

    async def editor(order: str) -> str:
        text = ""
        for _ in range(8):
            question = SendMessageRequest(message=new_text_message(order, role=Role.ROLE_USER))
            async with aclosing(client.send_message(question)) as items:
                text = [item.message.parts[0].text async for item in items][-1]
            if "shorter" in text:
                return f"Printed: {text}"
        return f"Given up: {text}"

    team = dig.wrap({"editor": editor}, mode=mode, journal=runs)
    answer = str(await team["editor"]("Write something short."))
    directory = dig.session_of(team).directory
    dig.unwrap(team)
    dig.unwrap(client)
    await writer.close()
    assert directory is not None
    return answer, directory


async def main(runs: str) -> list[str]:
    """Both processes, observed and healed; returns the two answers."""
    answers = []
    for mode in ("observe", "heal"):
        process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--serve", runs,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        port, served = (await process.stdout.readline()).decode().split(maxsplit=1)
        served = served.strip()
        answer, directory = await edit(mode, runs, int(port))
        process.stdin.close()
        await process.wait()
        answers.append(answer)
        joined = Path(runs) / f"joined-{mode}"
        print(f"{mode}:\n  answer: {answer}")
        print(f"  journals: {directory} {served}")
        print(f"  as one run: digmon import {directory} {served} --out {joined}")
        print(f"  why: digmon check {joined}\n")
    return answers


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve(sys.argv[2]))
    else:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-")))
