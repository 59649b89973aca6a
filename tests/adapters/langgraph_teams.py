"""Scripted teams on LangGraph: one for each of its features that a wrapper could disturb."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel

from .harness import Script

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
