"""A reviewer: a member of the team with the log of the run, read while all others wait.

After every so many activations the run pauses for it: no other agent is started until it has read.
Activations that are in progress go on. It is present only while it reads, so no agent can send it
anything, or takes it for a colleague.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from dig.graph.graph import InteractionGraph
from dig.graph.records import ASIDE, Emit, End, Finish, Join, Leave, Record, Start
from dig.monitor.messages import Effect, Started
from dig.monitor.monitor import Monitor
from dig.runtime.agents import View
from dig.runtime.host import Host
from dig.runtime.setup import Setup


@dataclass(frozen=True, kw_only=True)
class ReviewedSetup(Setup):
    """A setup with a reviewer; the team has the agent by the same name.

    Attributes:
        reviewer: The name of the reviewer.
        every: The reviewer reads when so many activations have ended that began after its last
            reading.
    """

    reviewer: str
    every: int

    def monitor(self, agents: Sequence[str], *rest: Any, **more: Any) -> Monitor:
        """Make a monitor for one run of this setup; the reviewer joins later."""
        return super().monitor([name for name in agents if name != self.reviewer], *rest, **more)

    def is_host_made(self, record: Record) -> bool:
        """Whether a reviewer comes or goes, and no user asks for it."""
        return isinstance(record, Join | Leave) and record.agent == self.reviewer

    @property
    def kept_records(self) -> None:
        """All records are kept, since the reviewer reads all."""
        return None


class ReviewedHost(Host):
    """A host that pauses the run for the reviewer."""

    def __init__(self, setup: ReviewedSetup, monitor: Monitor) -> None:
        """Begin, before the first activation."""
        super().__init__(setup, monitor)
        self._reviewer, self._every = setup.reviewer, setup.every
        self._waiting: list[str] = []  # agents to start when the reviewer has read
        self._log = ReviewLog(setup.reviewer)
        monitor.follow(self._log)

    def start(self, agent: str) -> list[Effect]:
        """Start an activation of an agent; while the reviewer reads, others wait."""
        if agent == self._reviewer or self._reviewer not in self.monitor.graph.agents:
            return super().start(agent)
        self._waiting.append(agent)
        return []

    def after_activation(self) -> tuple[list[Effect], Sequence[str]] | None:
        """Have the reviewer join, start or leave, if due."""
        monitor = self.monitor
        match self._next_step():
            case "come":
                return monitor.join(self._reviewer), [self._reviewer]
            case "start":
                return [], [self._reviewer]
            case "go":
                waiting, self._waiting = self._waiting, []
                effects = monitor.leave(self._reviewer)
                return effects, [name for name in waiting if name in monitor.graph.present]
        return None

    def view(self, started: Started) -> View:
        """The view of an activation, for the agent; a reviewer's has the log."""
        view = super().view(started)
        if started.agent != self._reviewer:
            return view
        seen = {field.name: getattr(view, field.name) for field in fields(view)}
        return ReviewView(**seen, reading=self._log.read(self.monitor.graph.now))

    @property
    def is_stalled(self) -> bool:
        """Whether nothing can ever happen any more, except from outside."""
        # A reviewer that is due may speak.
        return super().is_stalled and not self._next_step()

    def _next_step(self) -> Literal["come", "start", "go"] | None:
        """The reviewer's step now, after an activation has ended; ``None``: nothing.

        It follows from the graph alone, so a fork goes on where its parent was.
        """
        graph = self.monitor.graph
        if self.monitor.is_over or graph.is_over:
            return None
        own = graph.agents.get(self._reviewer)
        if own is None:
            return "come" if self._is_due(graph) else None
        if own.activation is not None:
            return None
        return "start" if self._is_due(graph) else "go"

    def _is_due(self, graph: InteractionGraph) -> bool:
        history, ended = graph.history, 0
        own = history.agents.get(self._reviewer)
        for v in range(len(history.agent_of) - 1, -1, -1):
            if history.agent_of[v] == own:
                break
            ended += history.t_end[v] >= 0
        return ended >= self._every


ReviewedSetup.host_type = ReviewedHost


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewView(View):
    """The view of a reviewer.

    Attributes:
        reading: What has happened.
    """

    reading: ReviewMaterial


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
