"""Plain callables: what `test_conformance` has to know of them."""

from __future__ import annotations

import asyncio
from typing import Any

import dig
from dig.adapters.plain import adapter

from . import framework_watch
from .conformance import REQUESTS, Framework, Shown
from .harness import Scenario, Script


class Watched(framework_watch.Watched):
    """Wraps plain callables."""

    adapter = adapter


def crowded(shown: Shown) -> Scenario:
    """A desk asks `research`, which hangs for some, and `store`, which some ask the same."""

    def build(script: Script) -> Any:
        team: dict[str, Any] = {}

        def told(number: int) -> bool:
            shown.append((number, dig.notes_about()))
            return bool(dig.notes())

        async def desk(question: str) -> str:
            number = int(question.split()[-1])
            await asyncio.sleep(number % 7)
            said = await team["research"](number)
            for _ in range(12 if number % 10 == 0 else 1):
                await team["store"](number)
                if told(number):
                    break
            told(number)
            return f"{said} {number}"

        async def research(number: int) -> str:
            await asyncio.sleep(30 if number % 10 == 5 else 1)
            told(number)
            return "found"

        async def store(number: int) -> str:
            await asyncio.sleep(1)
            told(number)
            return "4"

        team.update(desk=desk, research=research, store=store)
        return team

    async def ask(team: Any) -> Any:
        questions = [f"request {number}" for number in range(REQUESTS)]
        return await asyncio.gather(*map(team["desk"], questions))

    return Scenario("crowd", build, ask)


FRAMEWORKS = [Framework("plain", Watched, crowded=crowded)]
