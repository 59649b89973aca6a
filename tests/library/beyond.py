"""Healthy teams, beside the others, about which the monitor raises an alarm at its default limits.

They are known and written down, so that nobody who meets one of them takes it for a mistake.
"""

from __future__ import annotations

import asyncio
from typing import Any

from .shapes import Shape, Watch, each, think

Team = dict[str, Any]


async def polling(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def manager(task: str) -> str:
        await team["builder"](task)
        for _ in range(20):
            if await team["builder"]("Is it done?") == "done":
                return "done"
            await asyncio.sleep(20)
        return "given up"

    async def builder(message: str) -> str:
        asked.append(message)
        await think(message, 0.1)
        return "done" if len(asked) > 10 else "not yet"

    asked: list[str] = []
    team.update(manager=manager, builder=builder)
    watch(team)
    return await each(team["manager"], "Build it.")


async def equal_items(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def intake(letters: str) -> int:
        found = await asyncio.gather(*(team["classifier"](one) for one in letters.split(", ")))
        return found.count("spam")

    async def classifier(letter: str) -> str:
        await think(letter)
        return "spam" if letter == "Buy now!" else "ham"

    team.update(intake=intake, classifier=classifier)
    watch(team)
    return await each(team["intake"], ", ".join(["Buy now!"] * 8 + ["Dear Ann"]))


async def person_as_agent(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def desk(topic: str) -> str:
        return str(await team["person"](await team["writer"](topic)))

    async def writer(topic: str) -> str:
        await think(topic)
        return f"a draft on {topic}"

    async def person(draft: str) -> str:
        await asyncio.sleep(600)
        return f"{draft}, approved"

    team.update(desk=desk, writer=writer, person=person)
    watch(team)
    return await each(team["desk"], "rain")


async def long_job(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def desk(question: str) -> str:
        return str(await team["researcher"](question))

    async def researcher(question: str) -> str:
        await think(question, 480)
        return "a long report"

    team.update(desk=desk, researcher=researcher)
    watch(team)
    return await each(team["desk"], "Why does it rain?")


def _beyond(name: str, does: str, program: Any, answer: Any, alarm: str, line: str) -> Shape:
    return Shape(name, does, program, answer, "", (), line=line, without_line=(alarm,))


BEYOND = [
    _beyond(
        "polling", "A manager asks ten times whether something is done, and hears: not yet.",
        polling, ["done"], "LOOP", 'LOOP = {action = "off", agents = ["manager", "builder"]}',
    ),
    _beyond(
        "equal items", "A classifier is given eight equal letters at once.", equal_items, [8],
        "LOOP", 'LOOP = {action = "off", agents = ["intake", "classifier"]}',
    ),
    _beyond(
        "a person as an agent", "A plain callable waits ten minutes for a person.",
        person_as_agent, ["a draft on rain, approved"], "DL", "activation_limit_s = 3600",
    ),
    _beyond(
        "long job", "One turn takes eight minutes.", long_job, ["a long report"], "DL",
        "activation_limit_s = 900",
    ),
]  # fmt: skip
