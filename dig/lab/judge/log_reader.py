"""The reading of a log by a simulated judge, with simple rules and without a graph.

The rules are what a careful reader would look for line by line:

- ET: an answer is submitted while an event is unread: it reached an agent, and no agent has
  consumed or discarded it.
- DL, MC: nothing happens for ten seconds, no agent is at work, and the problem has no answer: DL
  if an event is unread, else MC.
- OE: an event is sent or passed on to no agent that is there, or is discarded by the last one that
  had it.
- ER: an event is passed on more than three times before an agent consumes it.
- RSP: two agents consume the same event.

There is no rule for CLA, which takes the ancestry of events, nor for LATE, LOOP, STALL and
LIVELOCK. The rules are about work: system events and notices are none. A rule speaks of an event
once; of silences, each time that there is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dig.graph import records
from dig.graph.records import NOTICE, SYSTEM, Emit, End, Fate, Record, micros

WAITING_S = 10.0
MOST_PASSED_ON = 3


@dataclass(frozen=True)
class Suspicion:
    """The words of a rule.

    Attributes:
        pattern: The short name of the failure.
        t: The record that shows it; us: its moment, in microseconds.
        events: The events concerned: the answer and what is unread; all that is unread; or one.
        agents: The agents concerned: that submitted, made the lost event, passed it on last,
            consumed it twice, or worked last.
    """

    pattern: str
    t: int
    us: int
    events: tuple[str, ...]
    agents: tuple[str, ...]


@dataclass
class _Work:
    maker: str | None
    arrived: bool = False
    holders: set[str] = field(default_factory=set)
    consumed_by: list[str] = field(default_factory=list)
    discarded_by: set[str] = field(default_factory=set)
    passed_on: int = 0


class LogReader:
    """Reads a log record by record.

    Attributes:
        team: The agents that are there, in order of their coming.
        work: All events of work, by id, in order of generation.
        suspicions: The suspicions of the rules so far.
    """

    def __init__(self, log: Iterable[Record], now_us: int) -> None:
        """Read a log up to a moment.

        Args:
            log: The records, without payloads.
            now_us: The moment of reading, in microseconds.
        """
        self.team: dict[str, None] = {}
        self.work: dict[str, _Work] = {}
        self.suspicions: list[Suspicion] = []
        self._agent_of: dict[str, str] = {}  # by activation
        self._running: set[str] = set()
        self._worked_last: tuple[str, ...] = ()
        self._unanswered = 0
        self._suspected: set[tuple[str, str]] = set()
        self._last_t = self._last_us = 0
        for record in log:
            # Before the record is read: a silence ends with it, and is judged by the state before.
            self._look_for_silence(record.us)
            self._read(record)
            self._last_t, self._last_us = record.t, record.us
        self._look_for_silence(now_us)

    def unread(self) -> tuple[str, ...]:
        """The work that arrived and that nobody has consumed or discarded."""
        return tuple(
            name for name, work in self.work.items()
            if work.arrived and not work.consumed_by and not work.discarded_by
        )  # fmt: skip

    def _look_for_silence(self, us: int) -> None:
        silent = us - self._last_us >= micros(WAITING_S)
        if silent and self._unanswered and not self._running:
            unread, at = self.unread(), self._last_us + micros(WAITING_S)
            holders = [a for a in self.team if any(a in self.work[e].holders for e in unread)]
            pattern, agents = ("DL", tuple(holders)) if unread else ("MC", self._worked_last)
            self.suspicions.append(Suspicion(pattern, self._last_t, at, unread, agents))

    def _read(self, record: Record) -> None:
        match record:
            case records.Run():
                self.team = dict.fromkeys(record.agents)
            case records.Join():
                self.team[record.agent] = None
            case records.Leave():
                self.team.pop(record.agent, None)
                # No `end` follows for an agent that left: its activation would run for ever.
                self._running -= {v for v in self._running if self._agent_of[v] == record.agent}
                for work in self.work.values():
                    work.holders.discard(record.agent)
            case Emit():
                self._read_event(record)
            case records.Deliver(to=None):
                # More answers than problems may be accepted.
                self._unanswered = max(0, self._unanswered - 1)
            case records.Deliver() if record.event in self.work and record.to is not None:
                self.work[record.event].holders.add(record.to)
                self.work[record.event].arrived = True
            case records.Start():
                self._agent_of[record.activation] = record.agent
                self._running.add(record.activation)
            case End():
                self._running.remove(record.activation)
                agent = self._agent_of[record.activation]
                self._worked_last = (agent,)
                for fate in record.fates:
                    if fate.event in self.work:
                        self._read_fate(record, agent, fate)

    def _read_event(self, record: Emit) -> None:
        maker = self._agent_of.get(record.by or "")
        if record.final:
            unread = self.unread()
            if unread:
                self._suspect("ET", record, (record.event, *unread), (maker,))
        elif record.by != SYSTEM and record.type != NOTICE:
            self.work[record.event] = _Work(maker)
            self._unanswered += record.by is None
            if not any(name in self.team for name in record.to):
                self._suspect("OE", record, (record.event,), (maker,))

    def _read_fate(self, record: End, agent: str, fate: Fate) -> None:
        work, about = self.work[fate.event], (fate.event,)
        # A delayed event stays with its agent.
        if fate.fate != "delay":
            work.holders.discard(agent)
        if fate.fate == "consume":
            work.consumed_by.append(agent)
            # Twice by the same agent is no duplicate of work between agents.
            if len(set(work.consumed_by)) > 1:
                self._suspect("RSP", record, about, tuple(dict.fromkeys(work.consumed_by)))
        elif fate.fate == "discard":
            work.discarded_by.add(agent)
            if not (work.consumed_by or work.holders):
                self._suspect("OE", record, about, (work.maker,))
        elif fate.fate == "reroute" and not work.consumed_by:
            work.passed_on += 1
            if work.passed_on > MOST_PASSED_ON:
                self._suspect("ER", record, about, (agent,))
            if not (work.holders or any(name in self.team for name in fate.to)):
                self._suspect("OE", record, about, (work.maker,))

    def _suspect(
        self, pattern: str, record: Record, events: tuple[str, ...], agents: Iterable[str | None]
    ) -> None:
        # Once an event; `_look_for_silence` adds silences itself, each time anew.
        if (pattern, events[0]) not in self._suspected:
            self._suspected.add((pattern, events[0]))
            present = tuple(agent for agent in agents if agent is not None)
            self.suspicions.append(Suspicion(pattern, record.t, record.us, events, present))
