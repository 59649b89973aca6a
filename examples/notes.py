"""A task of your own for model agents with roles: `digmon run notes:Notes --team notes:team`.

The environment names the model (MODEL) and its server (OPENAI_BASE_URL).
"""

from __future__ import annotations

import os
import random
from typing import Any

from dig.monitor.messages import Output
from dig.runtime.llm import Model, ModelAgent, ModelSettings
from dig.tasks.general_agent import GeneralBrief
from dig.tasks.task import Score


class Notes:
    """How much was spent in all? Each note says it of one day."""

    name = "notes"
    data = "notes about expenses, made from the seed"

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self._spent = random.Random(seed).choices(range(1, 50), k=size)

    def problem(self, *to: str) -> Output:
        return Output({"question": "How much was spent?", "notes": self.size}, to, "problem")

    def tools(self) -> dict[str, Any]:
        texts = [f"Day {day + 1}: we spent {usd} dollars." for day, usd in enumerate(self._spent)]

        def read(number: int) -> str:
            """Read a note; the first has the number 0."""
            return texts[number]

        return {"read": read}

    def score(self, answer: object) -> Score:
        if not isinstance(answer, int):
            return Score(False, reason="the answer is no whole number")
        return Score(True, abs(answer - sum(self._spent)))


TASK = """
Find out how much was spent on all days together. The answer is a whole number of dollars, and
nothing else.
"""

ROLES = {
    "editor": "You get the question. Ask the reader for the notes. When its amounts are there, "
    "add them up and submit the sum.",
    "reader": "You read the notes that you are asked for with the tool `read`, and send their "
    "amounts to the editor, as a list of whole numbers.",
}


def team(
    model: str = os.environ.get("MODEL", ""),
    base_url: str = os.environ.get("OPENAI_BASE_URL", "http://localhost:8000/v1"),
    max_tokens: int | None = None,
) -> dict[str, ModelAgent]:
    """The editor, who gets the problem, and the reader, with one model for both."""
    asked = Model(ModelSettings(model, base_url, max_tokens=max_tokens))
    return dict.fromkeys(ROLES, ModelAgent(asked, GeneralBrief(instructions=TASK, roles=ROLES)))
