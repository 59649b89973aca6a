"""What the models of wrapped teams say, behind a server that behaves like llama.cpp.

A model is known by its agent, which its system message names first: `You are sales. ...`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dig.adapters import Session
from tests.llm.llama import Llama
from tests.llm.server import Answer, Script, calls, fails, says, serving

ANSWER = "A melon costs 2 dollars, and there are 4 of them."
PRICE, STOCK = calls(("price", {"item": "melon"})), calls(("stock", {"item": "melon"}))
TRANSFER = calls(("transfer_to_sales", {}))
REFUSED = fails(400, "the request exceeds the available context size")
QUESTION = "What does a melon cost, and how many are there?"


def price(item: str) -> str:
    """What one of these costs."""
    return "2"


def stock(item: str) -> str:
    """How many of these there are."""
    return "4"


def you_are(name: str) -> str:
    """The instructions of an agent."""
    return f"You are {name}. Answer in one sentence."


def says_in_turn(**turns: Sequence[Answer]) -> Script:
    """By agent: one answer after the other; the last one again and again."""
    number = Counter[str]()

    def answer(request: dict[str, Any]) -> Answer:
        (system, *_) = request["messages"]
        name = str(system["content"]).removeprefix("You are ").partition(".")[0]
        number[name] += 1
        return turns[name][min(number[name], len(turns[name])) - 1]

    return answer


@contextmanager
def model_server(knows_calls: bool = True, **turns: Sequence[Answer]) -> Iterator[str]:
    """The address of a server with a model that says this, for as long as the block lasts."""
    with serving(Llama(says_in_turn(**turns), knows_calls=knows_calls)) as server:
        yield server.url


Alarm = tuple[str, str | None, Any]
"""A pattern, its stage, and what VOID and FAIL say of how."""


def alarms(session: Session) -> set[Alarm]:
    """The errors and warnings of a session; healing may ask again, and find the same again."""
    return {
        (one.pattern, one.stage, one.evidence.get("how"))
        for one in session.findings
        if one.severity in ("error", "warning")
    }


def both(watched: Any, ask: Callable[[str, Any], Any], **script: Any) -> tuple[Any, set[Alarm]]:
    """Ask a team bare and wrapped: the answers are the same; return them, and the alarms.

    Args:
        watched: What wraps it.
        ask: Asks the team whose models are at an address, given that and what wraps it.
        script: What the models say, by agent.
    """
    answers = []
    for wrap in (lambda team: team, watched):
        with model_server(**script) as url:
            answers.append(ask(url, wrap))
    watched.must_be_sound()
    assert answers[0] == answers[1]
    return answers[0], alarms(watched.session)


HEALTHY: dict[str, Any] = {"desk": [PRICE, STOCK, says(ANSWER)]}
CASES: dict[str, tuple[dict[str, Any], Alarm]] = {
    "an answer that is blank": ({"desk": [PRICE, says(" ")]}, ("VOID", None, "blank")),
    "a written call": (
        {"desk": [PRICE], "knows_calls": False},
        ("VOID", None, "call"),
    ),
    "a question that comes back": ({"desk": [PRICE, says(QUESTION)]}, ("VOID", None, "echo")),
    "a refused request": ({"desk": [PRICE, REFUSED]}, ("FAIL", "request", "error")),
    "the same call without an end": ({"desk": [STOCK] * 8 + [says(ANSWER)]}, ("LOOP", None, None)),
}
"""What a weak model does alone, with two tools: the script, and what is to be found."""
