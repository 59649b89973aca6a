"""A task of your own with a team of your own: `digmon run own_task:Summing --size 40 --quiet`."""

from __future__ import annotations

import random
from typing import Any

from dig.monitor.messages import Output
from dig.runtime import Decision, NewEvent, View
from dig.tasks.task import Score


class Summing:
    """Add up some numbers; the one who is asked has a colleague add up half of them."""

    name = "summing"
    data = "random numbers, made from the seed"

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self._numbers = random.Random(seed).choices(range(100), k=size)
        self.team = {"ada": ada, "bob": bob}

    def problem(self, *to: str) -> Output:
        return Output([0, self.size], to, "problem")

    def tools(self) -> dict[str, Any]:
        numbers = list(self._numbers)  # and nothing that leads to the scorer
        return {"read": lambda start, stop: numbers[start:stop]}

    def score(self, answer: object) -> Score:
        if not isinstance(answer, int):
            return Score(False, reason="the answer is no number")
        return Score(True, abs(answer - sum(self._numbers)))


async def ada(view: View) -> Decision:
    if view.events[0].type == "problem":
        start, stop = view.events[0].payload
        half = (start + stop) // 2
        mine = NewEvent(payload=sum(view.tools["read"](start, half)), to=["ada"])
        return Decision.respond(view, mine, NewEvent(payload=[half, stop], to=["bob"]))
    if len(view.events) < 2:
        return Decision.wait()
    return Decision.submit(view, sum(event.payload for event in view.events))


async def bob(view: View) -> Decision:
    return Decision.respond(
        view, NewEvent(payload=sum(view.tools["read"](*view.events[0].payload)), to=["ada"])
    )
