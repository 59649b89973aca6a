"""Six shapes of crews of CrewAI, whose models are functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from threading import Event, Thread
from typing import Any
from zlib import crc32

from tests.adapters import crewai_teams as teams  # first: it switches off what CrewAI sends

# isort: split
from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

from .shapes import Shape, Watch, pick

Reply = Callable[[str, int], str]
"""What a model says to all that it was given, and to the number of results that its tools gave."""


class Model(BaseLLM):  # type: ignore[misc]
    """A model that takes its time: that of the loop, which stands still meanwhile."""

    reply: Any
    loop: Any
    least_s: float

    def call(self, messages: Any, *args: Any, **options: Any) -> str:
        given = "\n".join(str(message["content"]) for message in messages)
        self.loop.now += self.least_s + crc32(given.encode()) % 50 / 10
        return str(
            self.reply(given, given.count("Observation: ") - given.count("Observation: the"))
        )

    def supports_function_calling(self) -> bool:
        return False


def agent(role: str, reply: Reply, least_s: float = 1.0, **more: Any) -> Agent:
    llm = Model(model=role, reply=reply, loop=asyncio.get_running_loop(), least_s=least_s)
    more = {"max_retry_limit": 0, **more}
    return Agent(role=role, goal="help", backstory="-", llm=llm, **more)


def task(what: str, by: Agent, **more: Any) -> Task:
    return Task(description=what, expected_output="a text", agent=by, **more)


async def kickoff(crew: Crew, *inputs: str) -> list[str]:
    """Ask a crew as its users do, one input after the other."""

    def ask() -> list[str]:
        return [out.raw for out in crew.kickoff_for_each([{"what": it} for it in inputs])]

    answers: list[str] = await teams.on_thread(ask)
    return answers


async def coworkers(watch: Watch, broken: bool) -> Any:
    threads: list[Thread] = []
    begun, answered = Event(), Event()

    def look(given: str, results: int) -> str:
        if broken:
            begun.set()
            answered.wait(20)
        return teams.answer("One at ten.")

    weather = agent("weather", lambda given, results: teams.answer("It rains."))
    trains = agent("trains", look)

    @tool("begin_trains")  # type: ignore[untyped-decorator]
    def begin_trains(text: str) -> str:
        """Begin to look the trains up."""
        context = copy_context()
        threads.append(Thread(target=lambda: context.run(trains.kickoff, text)))
        threads[-1].start()
        begun.wait(20)
        return "The trains are looked up."

    def plan(given: str, results: int) -> str:
        if results == 0:
            return teams.asks("weather", "What about it?")(given, 0)
        if results == 1 and broken:  # the mistake: nothing ever reads what is found
            return teams.uses("begin_trains", text="When?")(given, 0)
        if results == 1:
            return teams.asks("trains", "When?")(given, 0)
        return teams.answer("It rains. Go.")

    planner = agent("planner", plan, allow_delegation=True, tools=[begin_trains])
    crew = watch(Crew(agents=[planner, weather, trains], tasks=[task("To {what}", planner)]))
    answers = [(await teams.on_thread(lambda: crew.kickoff({"what": "Rome"}))).raw]
    answered.set()
    for thread in threads:
        thread.join()
    return answers


async def report(watch: Watch, broken: bool) -> Any:
    def edit(given: str, results: int) -> str:
        if broken:  # the mistake: a small model writes down what it should call
            return teams.answer('{"name": "cut", "arguments": {"words": 10}}')
        return teams.answer("edited")

    researcher = agent("researcher", lambda given, results: teams.answer("facts"))
    writer = agent("writer", lambda given, results: teams.answer("draft of facts"))
    editor = agent("editor", edit)
    tasks = [task("find {what}", researcher), task("write", writer), task("edit", editor)]
    crew = watch(Crew(agents=[researcher, writer, editor], tasks=tasks))
    return await kickoff(crew, "rain", "snow")


async def second_source(watch: Watch, broken: bool) -> Any:
    """A coworker whose service fails; CrewAI tells the asking model of the failure."""

    def fail(given: str, results: int) -> str:
        raise ConnectionError("the exchange answers 502")

    def trade(given: str, results: int) -> str:
        if "502" not in given:
            return teams.asks("live", "The price?")(given, 0)
        if "540" not in given and not broken:
            return teams.asks("list", "The price?")(given, 0)
        return teams.answer("About 600." if broken else "540")  # the mistake: it is made up

    live, listed = agent("live", fail), agent("list", lambda given, results: teams.answer("540"))
    broker = agent("broker", trade, allow_delegation=True)
    crew = watch(Crew(agents=[broker, live, listed], tasks=[task("sell {what}", broker)]))
    return await kickoff(crew, "steel", "zinc")


async def letters(watch: Watch, broken: bool) -> Any:
    """A tool asks a classifier about twelve letters, one after the other."""

    def classify(given: str, results: int) -> str:
        return teams.answer(pick(given, "ham", "ham", "ham", "spam"))

    sorter = agent("classifier", classify, 0.2)

    @tool("sort")  # type: ignore[untyped-decorator]
    def sort(number: int) -> str:
        """Have a letter sorted."""
        said = sorter.kickoff(f"letter {0 if broken else number}")  # the mistake: the wrong name
        return f"number {number} is {said.raw}"

    def take_in(given: str, results: int) -> str:
        number = sum(f"number {one} is" in given for one in range(12))
        if number == 12:
            return teams.answer("all sorted")
        return teams.uses("sort", number=number)(given, 0)

    intake = agent("intake", take_in, 0.5, tools=[sort])
    crew = watch(Crew(agents=[intake, sorter], tasks=[task("sort {what}", intake)]))
    return await kickoff(crew, "Monday")


async def experts(watch: Watch, broken: bool) -> Any:
    """Three tasks at once, and one that has their outputs; five customers."""
    asked, others = [0], [Event() for _ in range(10)]

    def law(given: str, results: int) -> str:
        number, asked[0] = asked[0], asked[0] + 1
        for event in others[2 * number : 2 * number + 2]:
            event.wait(20)  # threads have no order in virtual time
        if broken and number == 4:  # the mistake: the model's service hangs, without a timeout
            asyncio_loop.now += 1200
        return teams.answer("law says yes")

    def other(name: str, at: int) -> Agent:
        count = [0]

        def reply(given: str, results: int) -> str:
            others[2 * count[0] + at].set()
            count[0] += 1
            return teams.answer(f"{name} says yes")

        return agent(name, reply)

    asyncio_loop: Any = asyncio.get_running_loop()
    group = [agent("law", law), other("tax", 0), other("it", 1)]
    writer = agent("writer", lambda given, results: teams.answer("All say yes."))
    parts = [task("look at {what}", by, async_execution=True) for by in group]
    tasks = [*parts, task("write", writer, context=parts)]
    crew = watch(Crew(agents=[*group, writer], tasks=tasks))
    return await kickoff(crew, "a", "b", "c", "d", "e")


async def batch(watch: Watch, broken: bool) -> Any:
    def write(given: str, results: int) -> str:
        if broken and "Bob" in given:  # the mistake: nobody catches what one customer's data cause
            raise ValueError("Bob has no address")
        return teams.answer("Dear customer")

    reader = agent("reader", lambda given, results: teams.answer("a complaint"))
    writer = agent("writer", write)
    tasks = [task("read {what}", reader), task("answer {what}", writer)]
    crew = watch(Crew(agents=[reader, writer], tasks=tasks))
    return await kickoff(crew, "Ann", "Bob", "Cyd")


SHAPES = [
    Shape(
        "crew of coworkers", "A planner asks two coworkers, one after the other.", coworkers,
        ["It rains. Go."],
        "A tool begins the work of an agent in the background; nothing awaits it.", ("ET",),
    ),
    Shape(
        "crew for a report", "A researcher, a writer and an editor; each has what was said.",
        report, ["edited"] * 2,
        "The editor's model writes the call of its tool down as its answer.", ("VOID",),
        ("VOID: call of editor",),
    ),
    Shape(
        "crew with a second source", "The live prices fail, and a price list is asked the same.",
        second_source, ["540", "540"],
        "The price list is not asked, and the price is made up.", ("FAIL answer",),
        ("FAIL turn: live", "FAIL answer: broker without live"),
    ),
    Shape(
        "crew for letters", "An intake has twelve letters sorted, one after the other.", letters,
        ["all sorted"], "Each time the first letter is sorted.", ("LOOP",),
        ("LIVELOCK: __crew__, classifier, intake", "LOOP: classifier", "LOOP: intake"),
    ),
    Shape(
        "crew of experts", "Three experts at once, and a writer, for five customers.", experts,
        ["All say yes."] * 5, "An expert's model hangs, and its client has no timeout.",
        ("DL", "STALL"),
    ),
    Shape(
        "crew for a batch", "Three complaints are answered, one after the other.", batch,
        ["Dear customer"] * 3, "What one customer's data cause ends the whole batch.",
        ("FAIL request",), ("FAIL turn: writer", "FAIL request: error of writer"),
    ),
]  # fmt: skip
