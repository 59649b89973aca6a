"""Tasks: a problem for a team, tools for the data, and a scorer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dig._util.text import one_line
from dig.monitor.messages import Output
from dig.runtime.agents import Tool


@dataclass(frozen=True, slots=True)
class MistakeOrigin:
    """A step on the way to a mistake.

    Attributes:
        t: The record of the step; us: its moment, in microseconds.
        says: The step, beginning with its agent.
        is_healing: Whether the monitor took it.
    """

    t: int
    us: int
    says: str
    is_healing: bool = False


@dataclass(frozen=True, slots=True)
class Mistake:
    """An agent's own part in a wrong answer.

    Attributes:
        activation: The turn with the largest share of it.
        t: The record of the first result with it.
        us: The moment of that record, in microseconds.
        says: What the agent did.
        share: The share of the elements that the agent counted wrong; 0: of none of its own.
        counts: What its results with the mistake count, by event, the largest share first.
        errors: The values that these count wrong, by event.
        cancelled: The number of elements counted wrong by the agents and not by the answer, in
            which their errors cancel out; the first mistake has it.
        origins: The steps that led to it, by time; none: not known.
    """

    agent: str
    activation: str
    t: int
    us: int
    says: str
    share: float = 0.0
    counts: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    cancelled: int = 0
    origins: tuple[MistakeOrigin, ...] = ()


@dataclass(frozen=True, slots=True)
class Score:
    """The quality of an answer.

    Attributes:
        valid: Whether the answer has the shape that the problem asks for.
        rmse: Root of the mean squared error of the counts, in elements; ``None`` if not valid.
        reason: Why it is not valid; empty if it is.
        complete: Whether the answer is about all of the problem; ``None``: the answer does not say.
        says: A sentence about it with its scale, for a reader who does not know the task.
        wrong: The share of the elements that are missing or counted wrong; ``None``: not known.
        mistakes: The agents behind a wrong answer, the largest part first; none: not known.
    """

    valid: bool
    rmse: float | None = None
    reason: str = ""
    complete: bool | None = None
    says: str = ""
    wrong: float | None = None
    mistakes: tuple[Mistake, ...] = ()

    def __str__(self) -> str:
        if not self.valid:
            return f"no valid answer: {one_line(self.reason)}"
        return "valid" if self.rmse is None else f"RMSE {self.rmse:.2f}"


class Task(Protocol):
    """A problem with data.

    It may have further attributes:

    - `team`: agents of its own, a mapping from names to agents;
    - `accounting`: says which parts of the task an event is about
      (`dig.tasks.accounting.Accounting`);
    - `target()`: the values that the score compares an answer with, which nobody may be told;
    - `milestones(records)`: how far a run came (`dig.tasks.milestones.Milestone`), five at most;
    - `mistakes(records)`: the agents behind a wrong answer (`Mistake`), the largest part first.
    """

    @property
    def name(self) -> str:
        """The name of the task in the trace."""
        ...

    @property
    def size(self) -> int:
        """The number of elements of the data."""
        ...

    @property
    def data(self) -> str:
        """The description of the data, repeated by every output."""
        ...

    def problem(self, *to: str) -> Output:
        """Make the first event of a run: a description and a handle, never the data.

        Args:
            to: The agents that are given the problem.
        """
        ...

    def tools(self) -> Mapping[str, Tool]:
        """The tools for the agents, by name; no path leads from a tool to the scorer."""
        ...

    def score(self, answer: object) -> Score | None:
        """The score of an answer; ``None``, if the task does not score."""
        ...
