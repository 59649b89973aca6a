"""A LangGraph team, monitored: a handoff that goes round and round, and an answer without a part.

    python examples/wrap_langgraph.py [DIRECTORY]

Two teams, both run twice: observed, then healed. In the first, two desks of a shop each believe
that the other one is responsible, until the graph's recursion limit ends it. In the second, a
writer waits for two reviews, the router asks for one of them only, and the graph ends in silence
without the writer. Their models are fakes of LangChain's own kind; no key, no network.
"""

import operator
import sys
import tempfile
from collections.abc import Callable
from typing import Annotated, Any

from langchain_core.language_models import SimpleChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

import dig


class Clerk(SimpleChatModel):
    """A fake model: it says what it is responsible for, or, after a note, what can be done."""

    duty: str

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def _call(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> str:
        if messages[-1].name == "monitor":  # a note is the last message that a node is given
            return f"Nobody else will: {self.duty} pays it back."
        return "That is not my department."


def shop() -> Any:
    """Two desks that hand a customer to each other."""

    def desk(name: str, other: str) -> Callable[[MessagesState], Command[Any]]:
        model = Clerk(duty=name)

        def act(state: MessagesState) -> Command[Any]:
            reply = model.invoke(state["messages"])
            if reply.content.startswith("That is not"):
                return Command(goto=other)
            return Command(update={"messages": [reply]})

        return act

    graph = StateGraph(MessagesState)
    graph.add_node("refunds", desk("refunds", "billing"))
    graph.add_node("billing", desk("billing", "refunds"))
    graph.add_edge(START, "refunds")
    return graph.compile()


class Draft(MessagesState):
    """What the writing team shares."""

    reviews: Annotated[list[str], operator.add]
    text: str


def writers() -> Any:
    """A writer who waits for two reviews, of which one is never asked for."""

    def write(state: Draft) -> dict[str, Any]:
        missing = "" if len(state["reviews"]) == 2 else " (one review is missing)"
        return {"text": f"A text after {', '.join(state['reviews'])}{missing}."}

    graph = StateGraph(Draft)
    graph.add_node("router", lambda state: {})
    graph.add_node("facts", lambda state: {"reviews": ["a check of the facts"]})
    graph.add_node("style", lambda state: {"reviews": ["a look at the style"]})
    graph.add_node("writer", write)
    graph.add_edge(START, "router")
    graph.add_conditional_edges("router", lambda state: "facts", ["facts", "style"])
    graph.add_edge(["facts", "style"], "writer")
    return graph.compile(checkpointer=InMemorySaver())


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the team works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


def ask(team: Any, mode: Any, runs: str, question: str) -> Any:
    """Ask a team one question, and say what the monitor has seen and done."""
    print(f"{mode}:")
    team = dig.wrap(team, mode=mode, journal=runs, on_finding=tell)
    config: Any = {"recursion_limit": 8, "configurable": {"thread_id": "1"}}
    try:
        result = team.invoke({"messages": [("user", question)]}, config)
        answer = result.get("text") or result["messages"][-1].content
    except GraphRecursionError as error:
        answer = f"{type(error).__name__}: {str(error).split('.')[0]}"
    session = dig.session_of(team)
    dig.unwrap(team)
    print(f"  answer: {answer}")
    print(f"  healed: {session.result().heals or 'nothing'}")
    print(f"  trace and result: {session.directory}")
    print(f"  why: digmon check {session.directory}")
    print(f"  as a page: digmon report {session.directory}\n")
    return answer


def main(runs: str) -> list[str]:
    """Both teams, observed and healed; returns the four answers."""
    asked = ((shop, "I was charged twice."), (writers, "A text about rain, please."))
    return [ask(team(), mode, runs, q) for team, q in asked for mode in ("observe", "heal")]


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-"))
