"""An agent that hangs, in three kinds of teams: another agent is asked in its place.

    python examples/wrap_hanging.py plain|langgraph|autogen [DIRECTORY]

A shop has two couriers. Ann, the first one, never comes back from her twelfth parcel. The monitor
has seen how long turns take in this team, notices that this one takes far longer, and, because
`allow` says so, cancels it and asks the other courier. No model is called.
"""

import sys
import tempfile
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

import dig
from dig.detectors.thresholds import Thresholds

PARCELS = 12
LIMITS = Thresholds(stall_min_s=0.2).limits  # by default a turn is far too long after a minute

Ask = Callable[[Any, int], Awaitable[str]]


async def ann(parcel: int) -> str:
    """The first courier."""
    if parcel == PARCELS:
        await anyio.sleep_forever()
    return f"Ann has brought parcel {parcel}"


async def bob(parcel: int) -> str:
    """The second courier."""
    return f"Bob has brought parcel {parcel}"


def plain() -> tuple[Any, Ask]:
    """Two functions; the first one is called."""
    return {"ann": ann, "bob": bob}, lambda team, parcel: team["ann"](parcel)


def langgraph() -> tuple[Any, Ask]:
    """Two nodes; only the first one has an edge that leads to it."""
    from langgraph.graph import START, MessagesState, StateGraph

    async def first(state: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", await ann(int(state["messages"][0].text)))]}

    async def second(state: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", await bob(int(state["messages"][0].text)))]}

    async def ask(graph: Any, parcel: int) -> str:
        result = await graph.ainvoke({"messages": [("user", str(parcel))]})
        return str(result["messages"][-1].text)

    graph = StateGraph(MessagesState)
    graph.add_node("ann", first)
    graph.add_node("bob", second)
    graph.add_edge(START, "ann")
    return graph.compile(), ask


def autogen() -> tuple[Any, Ask]:
    """Two participants, of which the first one always speaks first, and alone."""
    from autogen_agentchat.agents import BaseChatAgent
    from autogen_agentchat.base import Response
    from autogen_agentchat.messages import TextMessage
    from autogen_agentchat.teams import RoundRobinGroupChat

    class Courier(BaseChatAgent):  # type: ignore[misc]
        produced_message_types = (TextMessage,)

        def __init__(self, name: str, brings: Callable[[int], Awaitable[str]]) -> None:
            super().__init__(name, f"This is {name}.")
            self.brings = brings

        async def on_messages(self, messages: Any, cancellation_token: Any) -> Response:
            parcel = next(int(one.content) for one in messages if one.content.isdigit())
            said = TextMessage(content=await self.brings(parcel), source=self.name)
            return Response(chat_message=said)

        async def on_reset(self, cancellation_token: Any) -> None:
            pass

    async def ask(team: Any, parcel: int) -> str:
        await team.reset()
        return str((await team.run(task=str(parcel))).messages[-1].content)

    return RoundRobinGroupChat([Courier("ann", ann), Courier("bob", bob)], max_turns=1), ask


async def main(kind: str, runs: str) -> str:
    """Have all parcels brought; returns what is said about the last one."""
    team, ask = {"plain": plain, "langgraph": langgraph, "autogen": autogen}[kind]()
    team = dig.wrap(team, mode="heal", journal=runs, limits=LIMITS, allow={"reassign"})
    for parcel in range(1, PARCELS + 1):
        answer = await ask(team, parcel)
    session = dig.session_of(team)
    dig.unwrap(team)
    print(f"answer: {answer}")
    print(f"found: {', '.join(one.pattern for one in session.findings)}")
    print(f"healed: {session.result().heals}")
    print(f"why: digmon check {session.directory}")
    return answer


if __name__ == "__main__":
    where = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="wrapped-")
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else "plain", where)
