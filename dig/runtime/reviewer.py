"""A reviewer: a member of the team that reads what has happened while all others wait.

After every so many activations the run pauses for it: nobody is started until it has read.
Activations that are in progress go on. It is present only while it reads, so nobody can send it
anything, and it is a colleague of nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dig.graph import InteractionGraph
from dig.records import ASIDE, Emit, End, Finish, Join, Leave, Record, Start


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Who reads along, and when; its agent is in the team under the same name.

    Attributes:
        name: What it is called.
        every: It reads when so many activations have ended that began after it last read.
    """

    name: str
    every: int

    def is_reading(self, graph: InteractionGraph) -> bool:
        """Whether nobody else may be started now."""
        return self.name in graph.agents

    def is_due(self, graph: InteractionGraph) -> bool:
        """Whether it is to read now.

        It follows from the graph alone, so a fork goes on counting where its parent did.
        """
        if self.is_reading(graph) or graph.is_over:
            return False
        history, ended = graph.history, 0
        own = history.agents.get(self.name)
        for v in range(len(history.agent_of) - 1, -1, -1):
            if history.agent_of[v] == own:
                break
            ended += history.t_end[v] >= 0
        return ended >= self.every


class Log:
    """What a reviewer is shown: the records, without payloads and without its own doings.

    What was found and done about it is left out too, so that a reviewer finds by itself. The
    records are numbered anew, so that they are a trace of their own.

    Attributes:
        reader: The reviewer's name.
        records: What has happened, in order.
    """

    def __init__(self, reader: str) -> None:
        """Begin empty."""
        self.reader = reader
        self.records: list[Record] = []
        self._own: set[str] = set()

    def __call__(self, record: Record) -> None:
        """Take one record."""
        if self._is_own(record) or isinstance(record, (*ASIDE, Finish)):
            return
        t = len(self.records)
        if isinstance(record, Emit):
            self.records.append(replace(record, t=t, payload=None))
        else:
            self.records.append(replace(record, t=t))

    def _is_own(self, record: Record) -> bool:
        if isinstance(record, Start) and record.agent == self.reader:
            self._own.add(record.activation)
        if isinstance(record, Start | Join | Leave):
            return record.agent == self.reader
        if isinstance(record, End):
            return record.activation in self._own
        return isinstance(record, Emit) and record.by in self._own
