"""A reviewer: a member of the team with the log of the run, read while all others wait.

After every so many activations the run pauses for it: no other agent is started until it has read.
Activations that are in progress go on. It is present only while it reads, so no agent can send it
anything, or takes it for a colleague.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from dig.graph.graph import InteractionGraph
from dig.graph.records import ASIDE, Emit, End, Finish, Join, Leave, Record, Start


@dataclass(frozen=True, slots=True)
class Reviewer:
    """The name and the rhythm of a reviewer; the team has the agent by the same name.

    Attributes:
        name: The name of the reviewer.
        every: The reviewer reads when so many activations have ended that began after its last
            reading.
    """

    name: str
    every: int

    def is_reading(self, graph: InteractionGraph) -> bool:
        """Whether no other agent may be started now."""
        return self.name in graph.agents

    def next_step(self, graph: InteractionGraph) -> Literal["come", "start", "go"] | None:
        """The reviewer's step now, after an activation has ended; ``None``: nothing.

        It follows from the graph alone, so a fork goes on where its parent was.
        """
        if graph.is_over:
            return None
        own = graph.agents.get(self.name)
        if own is None:
            return "come" if self._is_due(graph) else None
        if own.activation is not None:
            return None
        return "start" if self._is_due(graph) else "go"

    def _is_due(self, graph: InteractionGraph) -> bool:
        history, ended = graph.history, 0
        own = history.agents.get(self.name)
        for v in range(len(history.agent_of) - 1, -1, -1):
            if history.agent_of[v] == own:
                break
            ended += history.t_end[v] >= 0
        return ended >= self.every


@dataclass(frozen=True, slots=True)
class ReviewMaterial:
    """The material for a reading.

    Attributes:
        log: The records of the run, without payloads.
        before: The number of these records that the reviewer was shown before.
        since_us: When that was, in microseconds; -1: this is the first time.
    """

    log: tuple[Record, ...]
    before: int = 0
    since_us: int = -1


class ReviewLog:
    """Collects the material for a reviewer: records without payloads and without own acts.

    What was found and done about it is left out too, so that a reviewer finds by itself. The
    records are numbered anew, so that they are a trace of their own.

    Attributes:
        reader: The reviewer's name.
    """

    def __init__(self, reader: str) -> None:
        """Begin empty."""
        self.reader = reader
        self._records: list[Record] = []
        self._own: set[str] = set()
        self._shown, self._since_us = 0, -1

    def read(self, us: int) -> ReviewMaterial:
        """Everything up to now, for a reading at this moment."""
        reading = ReviewMaterial(tuple(self._records), self._shown, self._since_us)
        self._shown, self._since_us = len(self._records), us
        return reading

    def __call__(self, record: Record) -> None:
        """Take a record."""
        if self._is_own(record) or isinstance(record, (*ASIDE, Finish)):
            return
        shown = replace(record, t=len(self._records))
        self._records.append(replace(shown, payload=None) if isinstance(shown, Emit) else shown)

    def _is_own(self, record: Record) -> bool:
        if isinstance(record, Start) and record.agent == self.reader:
            self._own.add(record.activation)
        if isinstance(record, Start | Join | Leave):
            return record.agent == self.reader
        if isinstance(record, End):
            return record.activation in self._own
        return isinstance(record, Emit) and record.by in self._own
