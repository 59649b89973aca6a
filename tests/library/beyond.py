"""Healthy teams, beside the others, about which the monitor raises an alarm at its default limits.

They are known and written down, so that nobody who meets one of them takes it for a mistake; and so
are some broken teams that nothing is said about.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
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
    return await each(watch.agents(team, manager=manager, builder=builder), "Build it.")


async def equal_items(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def intake(letters: str) -> int:
        found = await asyncio.gather(*(team["classifier"](one) for one in letters.split(", ")))
        return found.count("spam")

    async def classifier(letter: str) -> str:
        await think(letter)
        return "spam" if letter == "Buy now!" else "ham"

    first = watch.agents(team, intake=intake, classifier=classifier)
    return await each(first, ", ".join(["Buy now!"] * 8 + ["Dear Ann"]))


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

    return await each(watch.agents(team, desk=desk, writer=writer, person=person), "rain")


async def long_job(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def desk(question: str) -> str:
        return str(await team["researcher"](question))

    async def researcher(question: str) -> str:
        await think(question, 480)
        return "a long report"

    return await each(watch.agents(team, desk=desk, researcher=researcher), "Why does it rain?")


async def quorum(watch: Watch, broken: bool) -> Any:
    team: Team = {}
    nodes = ("ann", "bob", "cyd", "dan", "eve")

    async def chair(question: str) -> list[str]:
        asked = [asyncio.create_task(team[name](question)) for name in nodes]
        votes: list[str] = []
        for vote in asyncio.as_completed(asked):
            with suppress(ConnectionError):
                votes.append(await vote)
            if len(votes) == 3:
                break
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        return sorted(votes)

    def voter(name: str, least_s: float) -> Any:
        async def vote(question: str) -> str:
            await asyncio.sleep(least_s)
            if name == "bob":
                raise ConnectionError("no route to bob")
            return f"{name}: yes"

        return vote

    first = watch.agents(
        team, chair=chair, **{name: voter(name, n + 1) for n, name in enumerate(nodes)}
    )
    return await each(first, "Is it safe?")


async def cache_that_raises(watch: Watch, broken: bool) -> Any:
    team: Team = {}
    kept: dict[str, str] = {}

    async def desk(question: str) -> str:
        try:
            return str(await team["cache"](question))
        except KeyError:
            kept[question] = await team["model"](f"Answer in short words: {question}")
            return kept[question]

    async def cache(question: str) -> str:
        return kept[question]

    async def model(prompt: str) -> str:
        await think(prompt)
        return "Four."

    return await each(watch.agents(team, desk=desk, cache=cache, model=model), "2 + 2?", "2 + 2?")


async def spelling(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def speller(word: str) -> str:
        return str(await team["dictionary"](word))

    async def dictionary(word: str) -> str:
        await think(word)
        return {"teh": "the"}.get(word, word)

    return await each(watch.agents(team, speller=speller, dictionary=dictionary), "teh", "rain")


async def chess(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def referee(opening: str) -> int:
        board = opening
        for _ in range(50):
            board = await team["black"](await team["white"](board))
        return len(board.split())

    def player(name: str) -> Any:
        async def move(board: str) -> str:
            await think(board, 0.1)
            return f"{board} {name}{len(board.split())}"

        return move

    first = watch.agents(team, referee=referee, white=player("w"), black=player("b"))
    return await each(first, "e4")


async def ignored_expert(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def desk(question: str) -> str:
        said: list[str] = []
        for name in ("law", "tax", "press"):
            with suppress(RuntimeError):  # the mistake: what fails is left out
                said.append(await team[name](question))
        return ", ".join(said)

    def expert(name: str) -> Any:
        async def answer(question: str) -> str:
            await think(f"{name} {question}")
            if name == "tax":
                raise RuntimeError("the tables are not there")
            return f"{name} agrees"

        return answer

    first = watch.agents(
        team, desk=desk, **{name: expert(name) for name in ("law", "tax", "press")}
    )
    return await each(first, "May we?")


async def fenced_call(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def desk(question: str) -> str:
        return str(await team["model"](question))

    async def model(question: str) -> str:
        await think(question)
        return '```json\n{"name": "search", "arguments": {"query": "rain"}}\n```'

    return len(await each(watch.agents(team, desk=desk, model=model), "Will it rain?"))


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
    _beyond(
        "quorum", "Three votes of five are enough; one of the five cannot be reached.", quorum,
        [["ann: yes", "cyd: yes", "dan: yes"]], "FAIL answer",
        'FAIL = {action = "off", agents = ["chair"]}',
    ),
    _beyond(
        "exception as an answer", "A cache raises if it does not know; a model is asked instead.",
        cache_that_raises, ["Four.", "Four."], "FAIL answer",
        'FAIL = {action = "off", agents = ["desk"]}',
    ),
    _beyond(
        "right words", "A speller gives a word back as it is, if it is right.", spelling,
        ["the", "rain"], "VOID", 'VOID = {action = "off", agents = ["speller"]}',
    ),
    _beyond(
        "game", "Two players make fifty moves each.", chess, [101], "LIVELOCK",
        "livelock_turns = 200",
    ),
]  # fmt: skip

UNSEEN = [
    Shape(
        "ignored expert", "", ignored_expert, ["law agrees, press agrees"],
        "Experts are asked one after the other, and one that fails is left out.", (),
    ),
    Shape(
        "fenced call", "", fenced_call, 1,
        "A model writes the call of its tool down, in a code fence.", (),
    ),
]  # fmt: skip
"""Broken teams, beside the others, about which nothing is said; with what they answer."""
