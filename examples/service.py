"""A service with a wrapped team in each of its workers.

pip install fastapi uvicorn
uvicorn service:app --app-dir examples --workers 2
curl 'localhost:8000/ask?question=Rome'
digmon check runs
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from fastapi import FastAPI, Request

import dig


def make_team() -> dict[str, Any]:
    """A planner that asks two agents; they call each other through this dict."""
    team: dict[str, Any] = {}

    async def planner(question: str) -> str:
        parts: dict[str, str] = {}

        async def ask(name: str) -> None:
            parts[name] = await team[name](question)

        async with anyio.create_task_group() as tasks:
            for name in ("flights", "hotels"):
                tasks.start_soon(ask, name)
        return f"{parts['flights']}; {parts['hotels']}"

    async def flights(question: str) -> str:
        await anyio.sleep(0.01)
        return f"a flight to {question}"

    async def hotels(question: str) -> str:
        await anyio.sleep(0.02)
        return f"a room in {question}"

    team.update(planner=planner, flights=flights, hotels=hotels)
    return team


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.team = dig.wrap(make_team(), journal="runs")
    yield
    dig.unwrap(app.state.team)


app = FastAPI(lifespan=lifespan)


@app.get("/ask")
async def ask(question: str, request: Request) -> dict[str, str]:
    return {"answer": await request.app.state.team["planner"](question)}
