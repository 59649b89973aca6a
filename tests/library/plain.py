"""Nineteen shapes of plain async functions, which call each other through a dict."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

from .plain_failing import FAILING
from .shapes import Shape, Watch, at_once, each, pick, think

Team = dict[str, Any]


async def voting(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def chair(question: str) -> str:
        votes: Counter[str] = Counter()
        asked = [team[name](question) for name in ("ann", "bob", "cyd")]
        for vote in asyncio.as_completed(asked):
            votes[await vote] += 1
            if broken and votes.total() == 2:
                break  # the mistake: the third vote is still asked for
        return votes.most_common(1)[0][0]

    def voter(least_s: float) -> Any:
        async def vote(question: str) -> str:
            await think(question, least_s)
            return pick(question, "yes", "no")

        return vote

    first = watch.agents(team, chair=chair, ann=voter(1), bob=voter(2), cyd=voter(9))
    return await each(first, "Is it safe?", "Is it cheap?", "Is it new?")


async def self_consistency(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def solver(question: str) -> str:
        votes: Counter[str] = Counter(
            await asyncio.gather(*(team["sampler"](question) for _ in range(9)))
        )
        while broken and votes.most_common(1)[0][1] < votes.total():
            votes[await team["sampler"](question)] += 1  # the mistake: until all agree
        return votes.most_common(1)[0][0]

    async def sampler(question: str) -> str:
        samples[question] += 1
        number = samples[question]
        await think(f"{question} {number}")
        return "41" if number % 4 == 0 else "42"

    samples: Counter[str] = Counter()
    first = watch.agents(team, solver=solver, sampler=sampler)
    return await each(first, "What is 6 x 7?", "What is 84 / 2?")


async def best_of_n(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def editor(topic: str) -> str:
        drafts = await asyncio.gather(*(team["writer"](topic) for _ in range(8)))
        marks = await asyncio.gather(*(team["judge"](draft) for draft in drafts))
        return str(max(zip(marks, drafts, strict=True))[1])

    async def writer(topic: str) -> str:
        written.append(topic)
        draft = f"{topic}, draft {len(written)}"
        if broken and len(written) == 21:
            await asyncio.Event().wait()  # the mistake: a connection hangs, and has no timeout
        await think(draft)
        return draft

    async def judge(draft: str) -> int:
        await think(draft)
        return int(pick(draft, "6", "7", "8"))

    written: list[str] = []
    first = watch.agents(team, editor=editor, writer=writer, judge=judge)
    return len(await each(first, "Rain", "Snow", "Hail"))


async def mixture_of_agents(watch: Watch, broken: bool) -> Any:
    team: Team = {}
    names = ("ann", "bob", "cyd")

    async def aggregator(question: str) -> str:
        first = await asyncio.gather(*(team[name](question) for name in names))
        second = [asyncio.create_task(team[name]("; ".join(first))) for name in names]
        if broken:
            second.pop()  # the mistake: the last one is asked, and never awaited
        return ", ".join(sorted(await asyncio.gather(*second)))

    def proposer(name: str, least_s: float) -> Any:
        async def propose(prompt: str) -> str:
            await think(prompt, least_s)
            return f"{name} on {len(prompt.split(';'))}"

        return propose

    team.update(
        aggregator=aggregator, ann=proposer("ann", 1), bob=proposer("bob", 2),
        cyd=proposer("cyd", 9),
    )  # fmt: skip
    watch(team)
    return await at_once(team["aggregator"], "Why is it blue?", "Why is it green?")


async def map_reduce(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def splitter(text: str) -> str:
        asked = [asyncio.create_task(team["mapper"](f"{text} {n}")) for n in range(12)]
        if broken:  # the mistake: what takes longer than ten seconds is dropped
            done, _ = await asyncio.wait(asked, timeout=10)
            counts = [task.result() for task in done]
        else:
            counts = await asyncio.gather(*asked)
        return str(await team["reducer"](counts))

    async def mapper(chunk: str) -> int:
        await think(chunk, 40 if chunk.endswith(" 7") else 1)  # one chunk is hard
        return len(chunk.split())

    async def reducer(counts: list[int]) -> int:
        await think(str(counts))
        return sum(counts)

    first = watch.agents(team, splitter=splitter, mapper=mapper, reducer=reducer)
    return await each(first, "a short book", "a longer book, though")


async def chain_of_five(watch: Watch, broken: bool) -> Any:
    """Four gateways, which pass a request on as it is, and an answerer."""
    team: Team = {}
    order = ("login", "quota", "filter", "router", "answerer")

    def gateway(onward: str) -> Any:
        async def look(request: str) -> str:
            await think(request, 0.2)
            return str(await team[onward](request))

        return look

    async def answerer(request: str) -> str:
        await think(request)
        return f"{request} Yes."

    for name, onward in pairwise(order):
        team[name] = gateway(onward)
    if broken:
        team["router"] = gateway("login")  # the mistake: the router's table names the entrance
    team["answerer"] = answerer

    async def ask(request: str) -> Any:
        async with asyncio.timeout(120):
            return await team["login"](request)

    watch(team)
    return await each(ask, "May I?", "May we?")


async def worker_and_checker(watch: Watch, broken: bool) -> Any:
    """Each of the two serves one call at a time."""
    team: Team = {}
    worker_free, checker_free = asyncio.Lock(), asyncio.Lock()

    async def manager(task: str) -> str:
        work = str(await team["worker"](task))
        for _ in range(3):
            verdict = await team["checker"](task, work)
            if verdict == "fine":
                break
            work = await team["worker"](f"{task} ({verdict})")
        return work

    async def worker(task: str) -> str:
        async with worker_free:
            await think(task)
            return "a plan with sources" if "source" in task else "a plan"

    async def checker(task: str, work: str) -> str:
        async with checker_free:
            await think(work)
            if broken:  # the mistake: the worker is asked back, and it asks the checker
                return str(await team["explainer"](work))
            return "fine" if "sources" in work else "name your source"

    async def explainer(work: str) -> str:
        async with worker_free:
            return str(await team["checker"]("explain", work))

    first = watch.agents(team, manager=manager, worker=worker, checker=checker, explainer=explainer)
    return await each(first, "Plan a trip.", "Plan a feast.")


async def retry(watch: Watch, broken: bool) -> Any:
    team: Team = {}
    calls: Counter[str] = Counter()

    async def planner(question: str) -> str:
        tries = 0
        while True:
            try:
                return f"Take a coat: {await team['weather'](question)}"
            except ConnectionError:
                tries += 1
                if tries == 4 and not broken:  # the mistake: it tries for ever
                    raise
                await asyncio.sleep(min(2**tries, 30))

    async def weather(question: str) -> str:
        calls[question] += 1
        await think(question, 0.2)
        if broken or calls[question] < 3:
            raise ConnectionError("the service is down")
        return "rain"

    first = watch.agents(team, planner=planner, weather=weather)
    return await each(first, "Rome today?", "Oslo today?")


async def race(watch: Watch, broken: bool) -> Any:
    team: Team = {}

    async def racer(question: str) -> str:
        asked = [asyncio.create_task(team[name](question)) for name in ("small", "large", "huge")]
        done, late = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        if not broken:  # the mistake: those who lost go on
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        return str(next(iter(done)).result())

    def model(name: str, least_s: float) -> Any:
        async def answer(question: str) -> str:
            await think(question, least_s)
            return name

        return answer

    first = watch.agents(
        team, racer=racer, small=model("small", 1), large=model("large", 4), huge=model("huge", 20)
    )
    return await each(first, "Who is first?", "And now?")


async def audit_log(watch: Watch, broken: bool) -> Any:
    team: Team = {}
    background: set[asyncio.Task[Any]] = set()

    def begin(call: Any) -> None:
        task = asyncio.ensure_future(call)
        background.add(task)
        task.add_done_callback(background.discard)

    async def shop(order: str) -> str:
        price = await team["pricing"](order)
        begin(team["audit"](f"{order}: {price}"))  # nobody waits for the log
        sent = asyncio.create_task(team["shipping"](order))
        letter = await team["mail"](f"{order} for {price}")
        if not broken:  # the mistake: nobody waits for the parcel either
            await sent
        return str(letter)

    async def pricing(order: str) -> int:
        await think(order)
        return 10 * len(order.split())

    async def shipping(order: str) -> str:
        await think(order, 10)
        return "sent"

    async def mail(sale: str) -> str:
        await think(sale)
        return f"{sale}, on its way"

    async def audit(entry: str) -> None:
        await think(entry, 20)

    first = watch.agents(
        team, shop=shop, pricing=pricing, shipping=shipping, mail=mail, audit=audit
    )
    return await each(first, "two books", "a lamp")


SHAPES = [
    Shape(
        "voting", "A chair asks three voters the same question, and counts.", voting,
        ["yes", "yes", "yes"],
        "The chair answers after two votes, while the third is still asked for.", ("ET",),
    ),
    Shape(
        "self-consistency", "A solver samples one model nine times; the commonest answer wins.",
        self_consistency, ["42", "42"],
        "The solver samples on until all samples agree, which never happens.",
        ("LIVELOCK",), ("LIVELOCK: sampler, solver", "LOOP: sampler", "LOOP: solver"),
        line='LOOP = {action = "off", agents = ["solver", "sampler"]}', without_line=("LOOP",),
    ),
    Shape(
        "best of N", "A writer makes eight drafts at once; a judge marks each.", best_of_n, 3,
        "A model's connection hangs, and the call has no timeout.", ("DL", "STALL"),
        ("LOOP: editor",),
        line='LOOP = {action = "off", agents = ["editor"]}', without_line=("LOOP",),
    ),
    Shape(
        "mixture of agents", "Three proposers answer twice, the second time with all answers.",
        mixture_of_agents, ["ann on 3, bob on 3, cyd on 3"] * 2,
        "One proposer of the second round is asked and never awaited.", ("ET",),
    ),
    Shape(
        "map-reduce", "A splitter gives out twelve chunks at once; a reducer adds the results.",
        map_reduce, ["48", "60"],
        "Results that take more than ten seconds are dropped.", ("ET",),
    ),
    Shape(
        "chain of five", "Four gateways pass each request on, until the fifth agent answers.",
        chain_of_five, ["May I? Yes.", "May we? Yes."],
        "The last gateway sends requests back to the first.", ("ER",),
    ),
    Shape(
        "worker and checker", "A checker sends work back until it is fine, three times at most.",
        worker_and_checker, ["a plan with sources"] * 2,
        "The checker asks the worker's side back, which asks the checker: both wait.", ("DL",),
    ),
    Shape(
        "retry", "A planner asks a service that fails twice, up to four times.", retry,
        ["Take a coat: rain"] * 2,
        "The planner asks for ever.", ("FAIL answer", "LIVELOCK", "LOOP"),
        ("FAIL turn: weather", "FAIL answer: planner without weather",
         "LIVELOCK: planner, weather", "LOOP: planner"),
    ),
    Shape(
        "race with cancel", "Three models answer; the first one wins, the others are cancelled.",
        race, ["small", "small"],
        "The others are not cancelled.", ("ET",),
    ),
    Shape(
        "fire-and-forget audit", "A shop tells an audit log of each sale and does not wait for it.",
        audit_log, ["two books for 20, on its way", "a lamp for 20, on its way"],
        "The shop does not wait for the shipping either.", ("ET",),
        line='notices = ["audit"]', without_line=("ET",),
    ),
    *FAILING,
]  # fmt: skip
