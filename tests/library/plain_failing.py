"""Nine more shapes of plain async functions: parts of them fail, wait, or ask again and again."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import dig

from .shapes import Shape, Watch, each, think

Team = dict[str, Any]


async def batch_of_fifty(watch: Watch, broken: bool) -> Any:
    """Two of the items fail at first: their service is overloaded."""
    team: Team = {}
    tries: Counter[str] = Counter()

    async def clerk(week: str) -> str:
        async def extract(invoice: str) -> int:
            for pause_s in (5.0, 20.0):
                try:
                    return int(await team["extractor"](invoice))
                except ConnectionError:
                    if broken:  # the mistake: one failure is the end of all
                        raise
                    await asyncio.sleep(pause_s)
            return int(await team["extractor"](invoice))

        invoices = [f"{week}, invoice {number}" for number in range(50)]
        return f"{week}: {sum(await asyncio.gather(*map(extract, invoices)))}"

    async def extractor(invoice: str) -> int:
        tries[invoice] += 1
        await think(invoice)
        if invoice.endswith((" 7", " 31")) and tries[invoice] < 3:
            raise ConnectionError("503, the service is overloaded")
        return 10

    return await each(watch.agents(team, clerk=clerk, extractor=extractor), "week 1", "week 2")


async def fallback(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def agency(city: str) -> str:
        asked = (team[name](city) for name in ("hotels", "flights"))
        parts: list[Any] = await asyncio.gather(*asked, return_exceptions=True)
        if isinstance(parts[1], Exception) and not broken:
            parts[1] = await team["trains"](city)
        # The mistake: what failed is left out, and the answer looks whole.
        return ", ".join(part for part in parts if isinstance(part, str))

    async def hotels(city: str) -> str:
        await think(city)
        return f"an inn in {city}"

    async def flights(city: str) -> str:
        await think(city, 3)
        raise RuntimeError("the airline answers 429")

    async def trains(city: str) -> str:
        await think(city)
        return f"the night train to {city}"

    first = watch.agents(team, agency=agency, hotels=hotels, flights=flights, trains=trains)
    return await each(first, "Rome", "Oslo")


async def optional_tool(watch: Watch, broken: bool) -> Any:
    """A spelling checker is nice to have; a proofreader reads the same text in any case."""
    team: Team = {}

    async def press(text: str) -> str:
        try:
            text = str(await team["speller"](text))
        except OSError:
            if broken:  # the mistake: the text is printed as it is
                return f"printed: {text}"
        return f"printed: {await team['proofreader'](text)}"

    async def speller(text: str) -> str:
        await think(text, 0.1)
        raise FileNotFoundError("en_GB.dic")

    async def proofreader(text: str) -> str:
        await think(text)
        return text.replace("Teh", "The")

    first = watch.agents(team, press=press, speller=speller, proofreader=proofreader)
    return await each(first, "Teh rain in Spain", "Teh snow in Norway")


async def signature(watch: Watch, broken: bool) -> Any:
    """A person reads for ten minutes, and wants one change."""
    team: Team = {}
    read: list[str] = []

    async def office(topic: str) -> str:
        wish = ""
        while True:
            letter = await team["writer"](topic, "" if broken else wish)  # the mistake: no wish
            wish = str(await team["signer"](letter))
            if wish == "signed":
                return str(letter)

    async def writer(topic: str, wish: str) -> str:
        await think(topic)
        return f"About {topic}: yours sincerely" if wish else f"About {topic}: cheers"

    async def signer(letter: str) -> str:
        with dig.waiting():
            await asyncio.sleep(60 if broken else 600)
        read.append(letter)
        return "signed" if "sincerely" in letter else "More polite, please."

    return await each(watch.agents(team, office=office, writer=writer, signer=signer), "the rent")


async def build_of_an_hour(watch: Watch, broken: bool) -> Any:
    """A build server takes twenty minutes, which the agent says."""
    team: Team = {}

    async def release(version: str) -> str:
        return f"{version}: {await team['builder'](version)}"

    async def builder(version: str) -> str:
        await think(version)
        try:
            with dig.waiting():
                async with asyncio.timeout(900 if broken else 3600):  # the mistake: too short
                    await asyncio.sleep(1200)
        except TimeoutError as late:
            raise TimeoutError("the build server did not answer in time") from late
        return str(await team["tester"](f"{version} is built"))

    async def tester(build: str) -> str:
        await think(build)
        return "all tests pass"

    return await each(watch.agents(team, release=release, builder=builder, tester=tester), "1.2")


async def progress(watch: Watch, broken: bool) -> Any:
    """A job tells how far it is."""
    team: Team = {}
    done: Counter[str] = Counter()

    async def manager(job: str) -> str:
        await team["renderer"]("begin", job)
        for _ in range(90):
            await asyncio.sleep(15)
            answer = str(await team["renderer"]("status", job))
            if answer == "100 %":
                return f"{job} is rendered"
        return f"{job} is given up"

    async def renderer(order: str, job: str) -> str:
        await think(f"{order} {job}", 0.1)
        if not broken or done[job] < 3:  # the mistake: its worker has died, and it says the same
            done[job] += 1
        return f"{10 * (done[job] - 1)} %"

    first = watch.agents(team, manager=manager, renderer=renderer)
    return await each(first, "the film", "the poster")


async def hedged(watch: Watch, broken: bool) -> Any:
    """A second model is asked if the first one takes long; who is slower is cancelled."""
    team: Team = {}

    async def helper(question: str) -> str:
        first = asyncio.create_task(team["model"](question))
        await asyncio.wait([first], timeout=8)
        asked = [first] if first.done() else [first, asyncio.create_task(team["spare"](question))]
        done, late = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return str(next(iter(done)).result())

    async def model(question: str) -> str:
        await think(question, 60 if "long" in question else 1)
        return "short is fine"

    async def spare(question: str) -> str:
        await think(question)
        return " \n" if broken else "long is fine"  # the mistake: the spare one's limit is 1 token

    first = watch.agents(team, helper=helper, model=model, spare=spare)
    return await each(first, "a short one", "a long one")


async def translators(watch: Watch, broken: bool) -> Any:
    """The translation stands below the original."""
    team: Team = {}

    async def desk(text: str) -> str:
        language = await team["detector"](text)
        words = await team["translator"](language, text)
        return str(words) if broken else f"{text}\n{words}"

    async def detector(text: str) -> str:
        await think(text)
        return "French"

    async def translator(language: str, text: str) -> str:
        await think(text)
        if broken:  # the mistake: the language is spelt in another way in its table
            return {"french": "Good day."}.get(language, text)
        return "Good day."

    first = watch.agents(team, desk=desk, detector=detector, translator=translator)
    return await each(first, "Bonjour.", "Bonne journée.")


async def many_calls(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def reader(topic: str) -> int:
        pages: list[str] = []
        page = 0
        while len(pages) < 30:
            pages.append(await team["search"](f"{topic}, page {page}"))
            page += not broken  # the mistake: it never turns the page
        return len(set(pages))

    async def search(query: str) -> str:
        await think(query, 0.2)
        return f"found: {query}"

    return await each(watch.agents(team, reader=reader, search=search), "rain")


FAILING = [
    Shape(
        "batch of fifty", "Fifty invoices are read at once; two are tried again, twice.",
        batch_of_fifty, ["week 1: 500", "week 2: 500"],
        "The first failure ends the whole batch.", ("FAIL request",),
        ("FAIL turn: extractor", "FAIL request: error of extractor"),
    ),
    Shape(
        "fallback", "An airline fails, and trains are asked about the same city.", fallback,
        ["an inn in Rome, the night train to Rome", "an inn in Oslo, the night train to Oslo"],
        "The part that failed is left out, and the answer looks whole.", ("FAIL answer",),
        ("FAIL turn: flights", "FAIL answer: agency without flights"),
    ),
    Shape(
        "optional tool", "A spelling checker fails; a proofreader reads the text in any case.",
        optional_tool, ["printed: The rain in Spain", "printed: The snow in Norway"],
        "If the checker fails, the text is printed as it is.", ("FAIL answer",),
        ("FAIL turn: speller", "FAIL answer: press without speller"),
    ),
    Shape(
        "signature", "A person reads a letter for ten minutes, and wants one change.", signature,
        ["About the rent: yours sincerely"],
        "The wish never reaches the writer, who writes the same for ever.", ("LIVELOCK", "LOOP"),
        ("LIVELOCK: office, signer, writer", "LOOP: office", "LOOP: writer", "LOOP: signer"),
    ),
    Shape(
        "release", "A build takes twenty minutes, and the agent says that it waits.",
        build_of_an_hour, ["1.2: all tests pass"],
        "The agent's patience is shorter than the build.", ("FAIL request",),
        ("FAIL turn: builder", "FAIL request: error of builder"),
    ),
    Shape(
        "progress of a job", "A manager asks every 15 seconds how far a job is.", progress,
        ["the film is rendered", "the poster is rendered"],
        "The job's worker has died, and the same number comes back for ever.", ("LIVELOCK", "LOOP"),
        ("LIVELOCK: manager, renderer", "LOOP: manager", "LOOP: renderer"),
    ),
    Shape(
        "hedged request", "A second model is asked if the first takes long; one is cancelled.",
        hedged, ["short is fine", "long is fine"],
        "The second model's answers have no words.", ("VOID",), ("VOID: blank of helper",),
    ),
    Shape(
        "translation", "A translation stands below its original.", translators,
        ["Bonjour.\nGood day.", "Bonne journée.\nGood day."],
        "A language is not found in a table, and the text comes back as it is.", ("VOID",),
        ("VOID: echo of desk",),
    ),
    Shape(
        "thirty pages", "A reader asks a search for thirty pages, one after the other.", many_calls,
        [30],
        "It never turns the page.", ("LOOP",),
        ("LIVELOCK: reader, search", "LOOP: reader", "LOOP: search"),
    ),
]  # fmt: skip
