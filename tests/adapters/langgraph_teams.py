"""Scripted teams on LangGraph: one for each feature that a wrapper could disturb, and asked."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from enum import Enum
from inspect import signature
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel

from dig import InteractionGraph
from dig.adapters import langgraph

from . import framework_watch
from .harness import Scenario, Script


class Watched(framework_watch.Watched):
    """Wraps graphs."""

    adapter = langgraph

    def leaves_nothing_open(self) -> bool:
        """As elsewhere; and nobody has joined, since a graph's nodes are known."""
        monitored = self.session.monitor.graph
        return super().leaves_nothing_open() and {*monitored.agents} == {*monitored.run.agents}


def seats(monitored: InteractionGraph) -> set[str]:
    """Who has worked: agents and their instances."""
    history = monitored.history
    return {history.agent(v) for v in range(len(history.activation_ids))}


Node = Callable[..., Any]


class State(TypedDict, total=False):
    """What most of the teams share."""

    done: Annotated[list[str], operator.add]
    messages: Annotated[list[AnyMessage], add_messages]
    name: str


def node(script: Script, name: str, update: Callable[[Any, int], Any] | None = None) -> Node:
    """A node that tells the script of its turn; `update` gets its state and its turn's number."""

    async def act(state: Any) -> Any:
        async with script.turn(name, state) as number:
            return update(state, number) if update else {"done": [name]}

    act.__name__ = name
    return act


def graph(
    script: Script, names: Iterable[str] = (), edges: Iterable[tuple[Any, str]] = (), **more: Node
) -> StateGraph[Any]:
    """A graph of scripted nodes; further nodes are given by name."""
    built: StateGraph[Any] = StateGraph(State)
    for name in names:
        built.add_node(name, node(script, name))
    for name, action in more.items():
        built.add_node(name, action)
    for source, target in edges:
        built.add_edge(source, target)
    return built


# --- teams ------------------------------------------------------------------------------------


def chain(script: Script) -> Any:
    return graph(script, "abc", [(START, "a"), ("a", "b"), ("b", "c"), ("c", END)]).compile()


def fan(script: Script) -> Any:
    edges: list[tuple[Any, str]] = [(START, "a"), ("a", "b"), ("a", "c"), ("c", "d")]
    return graph(script, "abcdj", [*edges, (["b", "d"], "j"), ("j", END)]).compile()


class Step(str, Enum):  # noqa: UP042  # a StrEnum is its value as text, too
    """Names of nodes that are members of an enum: as text they are not the nodes' names."""

    SPLIT, WORK, CHECK, JOIN, LAST = "split", "work", "check", "join", "last"


def by_enum(script: Script) -> Any:
    """Edges, a join, a goto and a send between nodes that an enum names."""

    def parts(state: Any, number: int) -> Command[Any]:
        return Command(goto=[Send(Step.WORK, {"name": "x"}), Step.CHECK], update={"done": ["a"]})

    split = node(script, "split", parts)
    built = graph(script, [Step.WORK, Step.CHECK, Step.JOIN, Step.LAST], [(START, Step.SPLIT)])
    built.add_node(Step.SPLIT, split)
    built.add_edge([Step.WORK, Step.CHECK], Step.JOIN)
    built.add_edge(Step.JOIN, Step.LAST)
    return built.compile()


def two_doors(script: Script) -> Any:
    return graph(script, "abc", [(START, "a"), (START, "b"), ("a", "c"), ("b", "c")]).compile()


def command(script: Script) -> Any:
    def go(state: Any, number: int) -> Command[Any]:
        return Command(goto="b" if number < 3 else END, update={"done": ["a"]})

    a = node(script, "a", go)
    return graph(script, "b", [(START, "a"), ("b", "a")], a=a).compile()


def both(script: Script) -> Any:
    """A goto beside a static edge runs both."""
    a = node(script, "a", lambda state, number: Command(goto="c", update={"done": ["a"]}))
    return graph(script, "bc", [(START, "a"), ("a", "b")], a=a).compile()


def send(script: Script) -> Any:
    def split(state: Any) -> list[Send]:
        return [Send("work", {"name": str(i)}) for i in range(4)]

    work = node(script, "work", lambda state, number: {"done": [state["name"]]})
    built = graph(script, ["a", "join"], [(START, "a"), ("work", "join")], work=work)
    built.add_conditional_edges("a", split, ["work"])
    return built.compile()


def send_in_command(script: Script) -> Any:
    parts = [Send("work", {"name": "x"}), Send("work", {"name": "x"}), "b"]
    a = node(script, "a", lambda state, number: Command(goto=parts))
    return graph(script, ["work", "b"], [(START, "a")], a=a).compile()


def conditional(script: Script) -> Any:
    built = graph(script, "abc", [(START, "a"), ("b", "a")])
    built.add_conditional_edges(
        "a", lambda state: "b" if state["done"].count("a") < 3 else ["c", END], ["b", "c", END]
    )
    return built.compile()


def deferred(script: Script) -> Any:
    built = graph(script, "abcd", [(START, "a"), (START, "b"), ("b", "c")])
    built.add_node("late", node(script, "late"), defer=True)
    for name in "acd":
        built.add_edge(name, "late")
    built.add_edge("c", "d")
    return built.compile()


def subgraph(script: Script) -> Any:
    inner = graph(script, ["x", "y"], [(START, "x"), ("x", "y")]).compile()
    return graph(script, "ab", [(START, "a"), ("a", "sub"), ("sub", "b")], sub=inner).compile()


def around(script: Script, inner: Any) -> Any:
    """A graph of which another one is a node."""
    inner.checkpointer = None  # the outer graph's is for both
    outer = graph(script, ["west"], [(START, "team")], team=inner)
    return outer.compile(checkpointer=InMemorySaver())


def two_teams(script: Script) -> Any:
    """Two subgraphs of which each hands over to the other, past its own end."""

    def team(name: str, other: str) -> Any:
        def over(state: Any, number: int) -> Any:
            if len(state["done"]) > 5:
                return {"done": [name]}
            return Command(goto=other, graph=Command.PARENT, update={"done": [name]})

        return graph(script, [], [(START, name)], **{name: node(script, name, over)}).compile()

    east, west = team("e", "west"), team("w", "east")
    return graph(script, [], [(START, "east")], east=east, west=west).compile()


def nested_send(script: Script) -> Any:
    """A subgraph that is sent several parts at once."""
    inner = graph(script, ["x"], [(START, "x")]).compile()
    a = node(script, "a", lambda s, n: Command(goto=[Send("sub", {"name": n}) for n in "123"]))
    return graph(script, [], [(START, "a")], a=a, sub=inner).compile()


def failing(script: Script) -> Any:
    def fail(state: Any, number: int) -> Any:
        raise ValueError("no such city")

    b = node(script, "b", fail)
    return graph(script, "ac", [(START, "a"), ("a", "b"), ("a", "c")], b=b).compile()


def retried(script: Script) -> Any:
    def fail(state: Any, number: int) -> Any:
        if number < 3:
            raise ConnectionError("try again")
        return {"done": ["b"]}

    built = graph(script, "a", [(START, "a"), ("a", "b")])
    policy = RetryPolicy(initial_interval=0.1, jitter=False, retry_on=ConnectionError)
    built.add_node("b", node(script, "b", fail), retry_policy=policy)
    return built.compile()


def endless(script: Script) -> Any:
    return graph(script, "ab", [(START, "a"), ("a", "b"), ("b", "a")]).compile()


def lost(script: Script) -> Any:
    """A goto to nobody."""
    a = node(script, "a", lambda state, number: Command(goto="ghost"))
    return graph(script, [], [(START, "a")], a=a).compile()


def half_join(script: Script) -> Any:
    """A join of which one part is never made, so that it never runs."""
    built = graph(script, "abcj", [(START, "a"), (["b", "c"], "j")])
    built.add_conditional_edges("a", lambda state: "b", ["b", "c"])
    return built.compile()


def bad_update(script: Script) -> Any:
    return graph(script, [], [(START, "a")], a=node(script, "a", lambda s, n: "nonsense")).compile()


def remembering(script: Script) -> Any:
    return graph(script, "ab", [(START, "a"), ("a", "b")]).compile(checkpointer=InMemorySaver())


def asking(script: Script) -> Any:
    async def ask(state: Any) -> Any:
        async with script.turn("ask", state):
            return {"name": interrupt("What is your name?"), "done": ["ask"]}

    edges: list[tuple[Any, str]] = [(START, "a"), ("a", "b"), ("a", "ask"), (["b", "ask"], "c")]
    return graph(script, "abc", edges, ask=ask).compile(checkpointer=InMemorySaver())


def cached(script: Script) -> Any:
    built = graph(script, "ac", [(START, "a"), ("b", "c"), ("a", "b")])
    by_name = CachePolicy(key_func=lambda state: str(state.get("name")))
    built.add_node("b", node(script, "b"), cache_policy=by_name)
    return built.compile(cache=InMemoryCache())


def cached_fan(script: Script) -> Any:
    """Two nodes are started by one whose result comes from a cache, and meet again."""
    built = graph(script, "bcj", [(START, "a"), ("a", "b"), ("a", "c"), (["b", "c"], "j")])
    by_name = CachePolicy(key_func=lambda state: str(state.get("name")))
    built.add_node("a", node(script, "a"), cache_policy=by_name)
    return built.compile(cache=InMemoryCache())


class Form(BaseModel):
    """A state that is a pydantic model."""

    done: Annotated[list[str], operator.add] = []
    name: str = ""


def typed(script: Script) -> Any:
    built: StateGraph[Any] = StateGraph(Form)
    built.add_node("a", node(script, "a"))
    built.add_node("b", node(script, "b", lambda state, number: {"done": [state.name]}))
    built.add_edge(START, "a")
    built.add_edge("a", "b")
    return built.compile()


def talking(script: Script) -> Any:
    """Two nodes that ask a fake chat model, token by token."""

    def speaker(name: str, text: str) -> Node:
        model = GenericFakeChatModel(messages=iter([AIMessage(text)] * 9))

        async def speak(state: Any) -> Any:
            async with script.turn(name, [m.content for m in state["messages"]]):
                return {"messages": [await model.ainvoke(state["messages"])], "done": [name]}

        return speak

    ann, bob = speaker("ann", "It rains in Rome."), speaker("bob", "So take a coat.")
    return graph(script, [], [(START, "ann"), ("ann", "bob")], ann=ann, bob=bob).compile()


def writing(script: Script) -> Any:
    """A node that streams what it likes."""
    from langgraph.config import get_stream_writer

    async def a(state: Any) -> Any:
        async with script.turn("a", state):
            write = get_stream_writer()
            for i in range(3):
                write({"progress": i})
                await asyncio.sleep(0.1)
            return {"done": ["a"]}

    return graph(script, "b", [(START, "a"), ("a", "b")], a=a).compile()


def handled(script: Script) -> Any:
    """A node that fails, and another one that takes care of that."""

    def fail(state: Any, number: int) -> Any:
        raise ValueError("no such city")

    built = graph(script, "ac", [(START, "a"), ("a", "b"), ("b", "c")])
    care = node(script, "care")
    built.add_node("b", node(script, "b", fail), error_handler=care)
    return built.compile()


HAS_HANDLERS = "error_handler" in signature(StateGraph.add_node).parameters
"""Whether a node can take care of the error of another one: LangGraph has that since 1.2."""


def remembered(script: Script) -> Any:
    """An answer can go back, and the join runs that never ran."""
    built = half_join(script)
    built.checkpointer = InMemorySaver()
    return built


# --- what they are asked, in every way in which a graph can be called ---


def thread(number: int = 1, **more: Any) -> Any:
    """A config with a thread of a checkpointer."""
    return {"configurable": {"thread_id": str(number)}, **more}


QUESTION = {"done": ["?"], "messages": [HumanMessage("Rome?", id="q")]}
MODES = ("values", "updates", "custom", "messages", "checkpoints", "tasks", "debug")


async def ask(team: Any) -> Any:
    return await team.ainvoke(QUESTION)


async def ask_with_limit(team: Any) -> Any:
    return await team.ainvoke(QUESTION, {"recursion_limit": 5})


async def ask_form(team: Any) -> Any:
    return await team.ainvoke({"done": ["?"], "name": "form"})


def team(build: Callable[[Script], Any], drive: Callable[[Any], Any] = ask) -> Scenario:
    return Scenario(f"{build.__name__}-{drive.__name__}", build, drive)


async def ask_at_once(team: Any) -> Any:
    return await asyncio.gather(*(team.ainvoke({"done": [str(i)]}) for i in range(3)))


async def ask_again(team: Any) -> Any:
    return [await team.ainvoke(QUESTION, thread(i), durability="sync") for i in (1, 2, 1)]


async def ask_twice(team: Any) -> Any:
    return [await ask(team), await ask(team)]


async def answer_back(team: Any) -> Any:
    asked = await team.ainvoke(QUESTION, thread())
    before = await team.aget_state(thread())
    return [asked, before.next, await team.ainvoke(Command(resume="Ada"), thread())]


async def stop_before(team: Any) -> Any:
    first = await team.ainvoke(QUESTION, thread(), interrupt_before=["b"])
    await team.aupdate_state(thread(), {"done": ["!"]})
    return [first, await team.ainvoke(None, thread())]


async def branch_off(team: Any) -> Any:
    await team.ainvoke(QUESTION, thread())
    states = [state async for state in team.aget_state_history(thread())]
    return [await team.ainvoke(None, state.config) for state in states if state.next]


async def look_at_first(team: Any) -> Any:
    async with aclosing(team.astream(QUESTION, stream_mode="updates")) as stream:
        async for piece in stream:
            return piece


async def events(team: Any) -> Any:
    found = [event async for event in team.astream_events(QUESTION, version="v2")]
    return [(event["event"], event["name"], event["tags"], event["data"]) for event in found]


async def batch(team: Any) -> Any:
    return await team.abatch([{"done": [str(i)]} for i in range(2)])


def streamed(mode: Any, **more: Any) -> Callable[[Any], Awaitable[Any]]:
    async def drive(team: Any) -> Any:
        return [piece async for piece in team.astream(QUESTION, stream_mode=mode, **more)]

    return drive


ASKED: dict[Callable[[Any], Awaitable[Any]], tuple[Callable[[Script], Any], ...]] = {
    ask: (
        chain, fan, two_doors, command, both, send, send_in_command, conditional, deferred,
        subgraph, two_teams, nested_send, failing, retried, lost, half_join, bad_update, talking,
        writing, by_enum,
    ),
    ask_with_limit: (endless,),
    ask_form: (typed,),
    ask_at_once: (chain, fan, send, subgraph),
    ask_again: (remembering,),
    ask_twice: (cached, cached_fan, chain),
    answer_back: (asking,),
    stop_before: (remembering,),
    branch_off: (remembering,),
    look_at_first: (fan,),
    events: (chain, subgraph, talking),
    batch: (chain,),
}  # fmt: skip

SCENARIOS = [
    *(team(build, drive) for drive, builds in ASKED.items() for build in builds),
    *(Scenario(f"{build.__name__}-{mode}", build, streamed(mode))
      for mode in MODES for build in (fan, talking, writing)),
    Scenario("subgraph-streamed-inside", subgraph, streamed(["updates", "values"], subgraphs=True)),
    Scenario("failing-streamed", failing, streamed("updates")),
]  # fmt: skip


# --- graphs that are nodes of others ---


def over_to_west(script: Script) -> Any:
    """A graph that hands over to a node of the graph above it."""
    leave = Command(goto="west", graph=Command.PARENT, update={"done": ["a"]})
    return graph(
        script, "b", [(START, "a"), (START, "b")], a=node(script, "a", lambda s, n: leave)
    ).compile()


def line(script: Script) -> Any:
    return graph(script, "abcd", [(START, "a"), ("a", "b"), ("b", "c")]).compile()


async def ask_thread(wrapped: Any) -> Any:
    return await wrapped.ainvoke(QUESTION, thread())


def nested(inner: Scenario) -> Callable[[Any], Scenario]:
    """The wrapped graph is a node of another graph."""

    def asked(wrap: Any) -> Scenario:
        def build(script: Script) -> Any:
            return around(script, wrap(inner.build(script)))

        return Scenario(f"nested-{inner}", build, inner.drive)

    asked.__qualname__ = f"nested-{inner}"
    return asked


def inside(inner: Scenario) -> Scenario:
    """The graph is a node of another one, which is wrapped."""

    def build(script: Script) -> Any:
        return around(script, inner.build(script))

    return Scenario(f"inside-{inner}", build, inner.drive)


HEALED_TWICE = team(half_join, ask_thread)
INNER = [team(build, ask_thread) for build in (fan, subgraph, failing, over_to_west)]
INNER += [HEALED_TWICE, team(asking, answer_back)]
