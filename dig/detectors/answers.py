"""The five answers about a run as data, and as lines of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dig._util.text import cut
from dig.graph.words import MOST_NAMED, moment

Grade = Literal["good", "inexact", "bad", "open", "unknown"]
"""The colour of an end; `open`: the run goes on, `unknown`: no one has scored its answer."""

ANSWERS = {
    "ended": "How it ended", "wrong": "What went wrong", "who": "Who",
    "monitor": "What the monitor did", "next": "Do next",
}  # fmt: skip
"""The labels of the five answers, by field, in their order."""

Line = tuple[str, str]
"""A label and one or two sentences."""


@dataclass(frozen=True)
class FailureStep:
    """A step on the way to the end of a run.

    Attributes:
        t: The record of its finding or of its first error.
        us: The moment of that record.
        says: What happened.
    """

    t: int
    us: int
    says: str


@dataclass(frozen=True)
class InvolvedAgent:
    """An agent with a part in what went wrong.

    Attributes:
        says: The part.
        is_at_fault: Whether the agent acted; else it was hit.
        activation: The first turn of the agent that failed; empty: not known.
    """

    agent: str
    says: str
    is_at_fault: bool
    activation: str = ""


@dataclass(frozen=True)
class FiveAnswers:
    """The five answers about a run, and two facts about it.

    Attributes:
        verdict: The end of the run in a word or two; `headline` begins with it.
        grade: The colour of the verdict.
        headline: The run in a sentence.
        ended: What is there at the end, and what is missing.
        wrong: What went wrong, step by step.
        who: The agents with a part in that, the likeliest culprit first.
        monitor: The deeds of the monitor.
        helped: Whether these helped; ``None``: there were none, or that is not known yet.
        next: What to do now.
        command: The command for that; empty: there is none.
        task: The first request, and the number of agents.
        cost: The turns, the messages, the time, and the expenses if they are known.
    """

    verdict: str = ""
    grade: Grade = "unknown"
    headline: str = ""
    ended: str = ""
    wrong: tuple[FailureStep, ...] = ()
    who: tuple[InvolvedAgent, ...] = ()
    monitor: str = ""
    helped: bool | None = None
    next: str = ""
    command: str = ""
    task: str = ""
    cost: str = ""

    @property
    def unexplained(self) -> str:
        """The sentence in place of steps, for a bad end without any; else empty."""
        is_bad = self.grade in ("bad", "inexact") and not self.wrong
        return "No pattern of failure was found." if is_bad else ""

    def lines(self) -> list[Line]:
        """The answers with a text, as lines with labels."""
        steps = [f"at {moment(step.us)} {step.says}" for step in self.wrong]
        agents = [f"{agent.agent}: {agent.says}" for agent in self.who]
        lines = {
            "verdict": self.headline,
            "task": self.task,
            "ended": self.ended,
            "wrong": " -> ".join(steps) or self.unexplained or "Nothing.",
            "who": cut(agents, "; ", most=MOST_NAMED),
            "monitor": self.monitor,
            "next": f"{self.next}{f': {self.command}' if self.command else ''}",
            "cost": self.cost,
        }
        return [(label, text) for label, text in lines.items() if text]
