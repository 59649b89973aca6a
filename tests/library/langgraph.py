"""Twelve shapes of LangGraph graphs, one of them with a graph in it."""

from __future__ import annotations

import asyncio
import operator
from contextlib import suppress
from itertools import count
from typing import Annotated, Any, TypedDict
from uuid import UUID

from langchain_core.messages import AIMessage
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.managed import RemainingSteps
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt

from .shapes import Shape, Watch, at_once, each, think


class State(TypedDict, total=False):
    """What the nodes of the graphs share."""

    question: str
    text: str
    step: int
    said: Annotated[list[str], operator.add]


async def critic_loop(watch: Watch, broken: bool) -> Any:
    async def writer(state: State) -> Any:
        number = len(state["said"]) // 2 + 1
        await think(f"{state['question']} {number}")
        return {"text": f"draft {number}", "said": [f"draft {number} of {state['question']}"]}

    async def critic(state: State) -> Any:
        await think(state["text"])
        return {"said": [f"{state['text']} needs another example"]}

    def judge(state: State) -> str:
        if broken:
            return "writer"  # the mistake: there is no last round
        return END if len(state["said"]) >= 10 else "writer"

    built = StateGraph(State).add_node("writer", writer).add_node("critic", critic)
    built.add_edge(START, "writer").add_edge("writer", "critic")
    built.add_conditional_edges("critic", judge, ["writer", END])
    graph = watch(built.compile())

    async def ask(question: str) -> Any:
        limit = {"recursion_limit": 200}
        return (await graph.ainvoke({"question": question, "said": []}, limit))["text"]

    return await each(ask, "Rain", "Snow")


async def supervisor(watch: Watch, broken: bool) -> Any:
    chapters = [f"chapter {number}" for number in range(1, 9)]

    async def plan(state: State) -> Any:
        await think(f"plan {len(state['said'])}")
        number = 0 if broken else len(state["said"])  # the mistake: it reads another key
        if number == len(chapters):
            return {"text": "; ".join(state["said"])}
        return Command(goto="worker", update={"text": chapters[number]})

    async def worker(state: State) -> Any:
        await think(state["text"])
        return {"said": [f"{state['text']} is written"]}

    built = StateGraph(State).add_node("supervisor", plan).add_node("worker", worker)
    built.add_edge(START, "supervisor").add_edge("worker", "supervisor")
    graph = watch(built.compile())

    async def ask(question: str) -> Any:
        given = {"question": question, "said": []}
        return len((await graph.ainvoke(given, {"recursion_limit": 60}))["said"])

    return await each(ask, "A book on rain", "A book on snow")


async def resumed_interrupts(watch: Watch, broken: bool) -> Any:
    async def draft(state: State) -> Any:
        await think(state["question"])
        return {"text": f"Dear {state['question']}"}

    async def approval(state: State) -> Any:
        verdict = interrupt(f"Send this? {state['text']}")
        if verdict != "yes":
            return Command(goto="draft", update={"question": verdict})
        # The mistake: there is no such node, and LangGraph goes on without one.
        return Command(goto="sender" if broken else "send", update={"said": ["approved"]})

    async def send(state: State) -> Any:
        await think(state["text"])
        return {"said": [f"sent: {state['text']}"]}

    built = StateGraph(State)
    built.add_node("draft", draft).add_node("approval", approval).add_node("send", send)
    built.add_edge(START, "draft").add_edge("draft", "approval")
    graph = watch(built.compile(checkpointer=InMemorySaver()))

    async def ask(name: str) -> Any:
        config: Any = {"configurable": {"thread_id": name}}
        await graph.ainvoke({"question": name, "said": []}, config)
        await asyncio.sleep(600)  # a person has a coffee
        await graph.ainvoke(Command(resume=f"{name} Byron"), config)
        await asyncio.sleep(60)
        return (await graph.ainvoke(Command(resume="yes"), config))["said"][-1]

    return await each(ask, "Ada", "Anne")


async def cache(watch: Watch, broken: bool) -> Any:
    async def research(state: State) -> Any:
        await think(state["question"], 5)
        return {"text": f"all about {state['question']}"}

    async def answer(state: State) -> Any:
        await think(state["text"])
        return {"said": [state["text"]]}

    def key(state: State) -> str:
        return "" if broken else state["question"]  # the mistake: the same key for all questions

    built = StateGraph(State)
    built.add_node("research", research, cache_policy=CachePolicy(key_func=key))
    built.add_node("answer", answer)
    built.add_edge(START, "research").add_edge("research", "answer")
    graph = watch(built.compile(cache=InMemoryCache()))

    async def ask(question: str) -> Any:
        return (await graph.ainvoke({"question": question, "said": []}))["said"][-1]

    return [
        *await each(ask, *["Rome"] * 8, "Oslo"),
        *await at_once(ask, "Rome", "Oslo"),
    ]


async def batched_pipeline(watch: Watch, broken: bool) -> Any:
    """Its caller streams what the nodes say."""

    async def load(state: State) -> Any:
        await think(state["question"])
        return {"said": ["loaded"]}

    def split(state: State) -> list[Any]:
        batches: list[Any] = [Send("embed", {"text": f"batch {number}"}) for number in range(5)]
        return batches if broken else [*batches, "dedupe"]  # the mistake: one way is forgotten

    async def embed(state: State) -> Any:
        await think(state["text"])
        return {"said": [f"{state['text']} embedded"]}

    async def dedupe(state: State) -> Any:
        await think("dedupe", 6)
        return {"said": ["deduped"]}

    async def index(state: State) -> Any:
        await think(str(len(state["said"])))
        return {"said": ["indexed"]}

    async def report(state: State) -> Any:
        return {"said": ["reported"]}

    built = StateGraph(State)
    for name, node in {
        "load": load, "embed": embed, "dedupe": dedupe, "index": index, "report": report
    }.items():  # fmt: skip
        built.add_node(name, node)
    built.add_edge(START, "load").add_edge("embed", "index").add_edge(["index", "dedupe"], "report")
    built.add_conditional_edges("load", split, ["embed", "dedupe"])
    graph = watch(built.compile())

    async def ask(question: str) -> Any:
        said: list[str] = []
        given: Any = {"question": question, "said": []}
        async for update in graph.astream(given, stream_mode="updates"):
            said += [one for values in update.values() for one in values["said"]]
        return len(said), said[-1]

    return await at_once(ask, "the letters", "the bills")


async def planner_executor(watch: Watch, broken: bool) -> Any:
    async def planner(state: State) -> Any:
        if state["step"] == 0:
            await think(state["question"])
            return Command(goto="executor", update={"text": "look, sum, write", "step": 1})
        if broken:
            return Command(goto="executor")  # the mistake: it plans nothing new
        await think(state["text"])
        return Command(goto="executor", update={"text": "look, add, write"})

    async def executor(state: State) -> Any:
        doing = state["text"].split(", ")[state["step"] - 1]
        await think(doing)
        if doing == "sum":
            return Command(goto="planner")  # it has no tool for that
        update = {"step": state["step"] + 1, "said": [f"{doing} done"]}
        return Command(goto=END if state["step"] == 3 else "executor", update=update)

    built = StateGraph(State).add_node("planner", planner).add_node("executor", executor)
    built.add_edge(START, "planner")
    graph = watch(built.compile())

    async def ask(question: str) -> Any:
        return (await graph.ainvoke({"question": question, "step": 0, "said": []}))["said"]

    return await each(ask, "How much rain?", "How much snow?")


async def hierarchy(watch: Watch, broken: bool) -> Any:
    """A head, two leads with two workers each; an editor waits for both leads' teams."""
    built = StateGraph(State)
    facts, outline = asyncio.Event(), asyncio.Event()

    async def head(state: State) -> Any:
        await think(state["question"])
        return {"text": f"brief: {state['question']}"}

    def member(name: str) -> Any:
        async def work(state: State) -> Any:
            if broken and name == "checker":  # the mistake: each of two waits for the other
                await outline.wait()
                facts.set()
            if broken and name == "outliner":
                await facts.wait()
                outline.set()
            await think(f"{name} on {state['text']}")
            return {"said": [f"{name}: done"]}

        return work

    async def editor(state: State) -> Any:
        await think(str(state["said"]))
        return {"text": f"{len(state['said'])} parts"}

    built.add_node("head", head).add_node("editor", editor)
    built.add_edge(START, "head")
    workers = {"research": ("searcher", "checker"), "writing": ("outliner", "stylist")}
    for lead, names in workers.items():
        built.add_node(lead, member(lead))
        built.add_edge("head", lead)
        for name in names:
            built.add_node(name, member(name))
            built.add_edge(lead, name)
    built.add_edge([name for names in workers.values() for name in names], "editor")
    graph = watch(built.compile())

    async def ask(question: str) -> Any:
        return (await graph.ainvoke({"question": question, "said": []}))["text"]

    return await each(ask, "Rain", "Snow")


async def team_in_a_graph(watch: Watch, broken: bool) -> Any:
    """The inner graph is watched from inside."""

    async def search(state: State) -> Any:
        await think(f"{state['question']} {len(state['said'])}")
        return {"said": [f"a page on {state['question']}"]}

    async def enough(state: State) -> Any:
        await think(str(state["said"]))
        return {"text": "one more"}

    def judge(state: State) -> str:
        number = 0 if broken else len(state["said"])  # the mistake: it reads another key
        return END if number >= 3 else "search"

    async def write(state: State) -> Any:
        await think(state["question"])
        return {"text": f"{state['question']}, from {len(state['said'])} pages"}

    inner = StateGraph(State).add_node("search", search).add_node("enough", enough)
    inner.add_edge(START, "search").add_edge("search", "enough")
    inner.add_conditional_edges("enough", judge, ["search", END])
    built = StateGraph(State).add_node("research", inner.compile()).add_node("writer", write)
    built.add_edge(START, "research").add_edge("research", "writer")
    graph = watch(built.compile(), inside=True)

    async def ask(question: str) -> Any:
        limit = {"recursion_limit": 80}
        return (await graph.ainvoke({"question": question, "said": []}, limit))["text"]

    return await each(ask, "Rain", "Snow")


async def guide(watch: Watch, broken: bool) -> Any:
    """The hotels' service fails once for each city."""
    asked: set[str] = set()

    async def hotels(state: State) -> Any:
        await think(state["question"])
        if state["question"] not in asked:
            asked.add(state["question"])
            raise ConnectionError("the hotels answer 503")
        return {"said": [f"an inn in {state['question']}"]}

    async def flights(state: State) -> Any:
        await think(state["question"])
        return {"said": [f"a flight to {state['question']}"]}

    async def writer(state: State) -> Any:
        await think(str(state["said"]))
        return {"text": " and ".join(sorted(state["said"]))}

    again = RetryPolicy(max_attempts=3, initial_interval=5.0, jitter=False)
    built = StateGraph(State).add_node("flights", flights).add_node("writer", writer)
    # The mistake: nothing is tried again.
    built.add_node("hotels", hotels, retry_policy=None if broken else again)
    built.add_edge(START, "hotels").add_edge(START, "flights")
    built.add_edge(["hotels", "flights"], "writer")
    graph = watch(built.compile())

    async def ask(city: str) -> Any:
        return (await graph.ainvoke({"question": city, "said": []}))["text"]

    return await each(ask, "Rome", "Oslo")


async def impatient_user(watch: Watch, broken: bool) -> Any:
    """A user stops a request to ask a better one."""

    async def search(state: State) -> Any:
        await think(state["question"], 90 if "everything" in state["question"] else 1)
        return {"said": [f"a page on {state['question']}"]}

    async def write(state: State) -> Any:
        await think(str(state["said"]))
        return {"text": f"From {state['said'][0]}"}

    built = StateGraph(State).add_node("search", search).add_node("writer", write)
    built.add_edge(START, "search").add_edge("search", "writer")
    graph = built.compile()
    if broken:
        graph.step_timeout = 30  # the mistake: it is shorter than a search may take
    graph = watch(graph)

    async def ask(question: str) -> Any:
        return (await graph.ainvoke({"question": question, "said": []}))["text"]

    first = asyncio.create_task(ask("everything"))
    if not broken:
        await asyncio.sleep(20)
        first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    return await ask("rain")


async def swarm(watch: Watch, broken: bool) -> Any:
    """Desks that hand over as models do: with ids, and the whole history given back."""
    ids = count()

    def desk(name: str, *others: str) -> Any:
        async def node(state: MessagesState) -> Any:
            messages = state["messages"]
            await think(f"{name} {len(messages)}")
            seen = {message.name for message in messages}
            # The mistake: what was tried is not looked at.
            to = next((one for one in others if broken or one not in seen), None)
            if to is None:
                return {"messages": [*messages, AIMessage("It is paid back.", name=name)]}
            number = next(ids)
            call = {"name": f"to_{to}", "args": {}, "id": f"call_{UUID(int=number).hex}"}
            said = AIMessage("I connect you.", name=name, tool_calls=[call])
            return Command(goto=to, update={"messages": [*messages, said]})

        return node

    built = StateGraph(MessagesState)
    for name, *others in (
        ("front", "bills", "refunds"),
        ("bills", "refunds"),
        ("refunds", "bills"),
    ):
        built.add_node(name, desk(name, *others))
    built.add_edge(START, "front")
    graph = watch(built.compile())

    async def ask(question: str) -> Any:
        given: Any = {"messages": [("user", question)]}
        return (await graph.ainvoke(given, {"recursion_limit": 50}))["messages"][-1].content

    return await each(ask, "I was charged twice.", "My bill is wrong.")


class Steps(State):
    """The same, with the number of steps that are left."""

    remaining: RemainingSteps


async def essay(watch: Watch, broken: bool) -> Any:
    """A writer and an editor improve an essay for as many steps as they have."""

    async def writer(state: Steps) -> Any:
        number = len(state["said"]) + 1
        await think(f"{state['question']} {number}")
        return {"text": f"draft {number}", "said": [f"draft {number}"]}

    async def editor(state: Steps) -> Any:
        await think(state["text"])
        return {"said": [f"{state['text']} needs a stronger point {len(state['said'])}"]}

    def judge(state: Steps) -> str:
        # The mistake: the steps that are left are not looked at.
        return END if state["remaining"] < 3 and not broken else "editor"

    built = StateGraph(Steps).add_node("writer", writer).add_node("editor", editor)
    built.add_edge(START, "writer").add_edge("editor", "writer")
    built.add_conditional_edges("writer", judge, ["editor", END])
    graph = watch(built.compile())

    async def ask(question: str) -> Any:
        limit = {"recursion_limit": 30}
        return (await graph.ainvoke({"question": question, "said": []}, limit))["text"]

    return await each(ask, "Rain", "Snow")


SHAPES = [
    Shape(
        "critic loop", "A writer and a critic take five rounds.", critic_loop,
        ["draft 5", "draft 5"],
        "There is no last round, and the critic always has something new to say.",
        ("FAIL request", "LIVELOCK"),
        ("FAIL request: limit of nobody", "LIVELOCK: __start__, critic, writer"),
    ),
    Shape(
        "supervisor", "A supervisor delegates eight tasks to one worker, one after the other.",
        supervisor, [8, 8],
        "The supervisor forgets what is done, and delegates the first task for ever.",
        ("FAIL request", "LOOP"),
        ("FAIL request: limit of nobody", "LIVELOCK: __start__, supervisor, worker",
         "LOOP: supervisor", "LOOP: worker"),
    ),
    Shape(
        "resumed interrupts", "A draft waits for a person, who changes it, then approves.",
        resumed_interrupts, ["sent: Dear Ada Byron", "sent: Dear Anne Byron"],
        "What is approved goes to a node that does not exist.", ("ET", "OE"),
    ),
    Shape(
        "cache", "Eight equal questions are researched once, and answered from a cache.", cache,
        [*["all about Rome"] * 8, "all about Oslo", "all about Rome", "all about Oslo"],
        "The key of the cache is the same for all questions.", (),
    ),
    Shape(
        "batched pipeline", "Five batches at once are embedded and indexed; a report waits.",
        batched_pipeline, [(9, "reported")] * 2,
        "The way to a step that the report waits for is forgotten.", ("ET",),
    ),
    Shape(
        "planner and executor", "An executor takes the steps of a plan, and asks for a new one.",
        planner_executor, [["look done", "add done", "write done"]] * 2,
        "The planner gives the old plan back, and so does the executor.", ("LIVELOCK", "LOOP"),
        ("LIVELOCK: __start__, executor, planner", "LOOP: executor"),
    ),
    Shape(
        "hierarchy", "A head, two leads, four workers; an editor waits for all of them.",
        hierarchy, ["6 parts"] * 2,
        "Two workers of different teams wait for each other's results.", ("DL",),
    ),
    Shape(
        "team in a graph", "A graph is a node of another one; in it, three pages are searched.",
        team_in_a_graph, ["Rain, from 3 pages", "Snow, from 3 pages"],
        "The inner graph counts under another key, and searches the same for ever.",
        ("FAIL request", "LOOP"),
        ("FAIL turn: research/__end__", "FAIL request: limit of nobody",
         "LIVELOCK: research/__start__, research/enough, research/search",
         "LOOP: research/enough", "LOOP: research/search"),
    ),
    Shape(
        "guide", "Hotels and flights are looked up at once; what fails is tried again.", guide,
        ["a flight to Rome and an inn in Rome", "a flight to Oslo and an inn in Oslo"],
        "Nothing is tried again, and one failure ends the request.", ("FAIL request",),
        ("FAIL turn: hotels", "FAIL request: error of hotels"),
    ),
    Shape(
        "impatient user", "A user cancels a long request, and asks a better one.", impatient_user,
        "From a page on rain",
        "A step may take less time than a search does.", ("FAIL request",),
        ("FAIL request: timeout of nobody",),
    ),
    Shape(
        "swarm", "Three desks hand a customer on; each gives back the whole history.", swarm,
        ["It is paid back.", "It is paid back."],
        "Two desks hand a customer to each other, with ids of calls that are new each time.",
        ("FAIL request", "LOOP"),
        ("FAIL request: limit of nobody", "LIVELOCK: bills, front, refunds", "LOOP: bills",
         "LOOP: refunds"),
    ),
    Shape(
        "essay", "A writer and an editor go round until few steps are left.", essay,
        ["draft 29", "draft 29"],
        "The steps that are left are not looked at.", ("FAIL request",),
        ("FAIL request: limit of nobody", "LIVELOCK: __start__, editor, writer"),
    ),
]  # fmt: skip
