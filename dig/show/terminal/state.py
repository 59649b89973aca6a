"""The state of a live picture: a lane for each agent, events on their way, and news.

A `TerminalState` follows the records of a run. The state comes from an `InteractionGraph` of its
own, so that the picture cannot differ from the graph; it adds data that a graph does not keep:
counts, and marks on a time line. `frame()` is a picture of one moment that shares nothing with it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator

from dig._util.text import counted, cut, name, names, one_line
from dig.detectors import describe, is_rivals
from dig.detectors.run_so_far import RunSoFar
from dig.graph.graph import InteractionGraph
from dig.graph.records import (
    SYSTEM,
    Deliver,
    Emit,
    End,
    FindingRow,
    Finish,
    HealRow,
    IncidentRow,
    Join,
    Leave,
    Record,
    Run,
    Start,
)
from dig.graph.words import action_text, failed_component, healing_text, incident_text, moment
from dig.monitor.sinks import Eviction
from dig.show.standstill import SHORT_US, Progress
from dig.traces.usage import Costs, cost_text

from .frame import Frame, Lane, LogLine, TimeMark

MOST_NEWS = 100
MOST_HELD = 3
MOST_LANES = 1000  # hosts may make an agent for every turn

_STYLES = {"error": "bad", "warning": "warning", "notice": "notice", "silenced": "silenced"}
"""The style of a finding's line, by what it is worth."""


class TerminalState:
    """Follows one run, from its first record on."""

    def __init__(self, agents: Iterable[str] = ()) -> None:
        """Begin with the agents that are known to come."""
        self._graph = InteractionGraph()
        self._so_far = RunSoFar(self._graph)
        self._caption, self._caption_us = "", -1
        self._progress = Progress()
        self._system = Lane(SYSTEM)
        self._lanes = {agent: Lane(agent) for agent in agents}
        self._author: Lane | None = None  # whose outputs are being emitted
        self._moving: dict[str, None] = {}
        self._released = "nothing yet"
        self._news: deque[LogLine] = deque(maxlen=MOST_NEWS)
        self._found = Counter[str]()
        self._healed = 0
        self._costs = Costs()
        self._failed: dict[str, None] = {}  # the parts of the monitor that failed

    def follow(self, record: Record) -> list[LogLine]:
        """Take in a record; returns the news in it."""
        self._graph.apply(record)
        self._costs(record)
        self._so_far(record)
        self._note_moment(record)
        told = list(self._look(record))
        for event in self._graph.touched:
            self._moving.pop(event.id, None)
            waits = event.final and not (
                self._graph.is_bounced(event.id) or self._graph.is_accepted(event.id)
            )
            if event.flight or waits:
                self._moving[event.id] = None
        self._news += told
        return told

    def _note_moment(self, record: Record) -> None:
        """Take note of a moment that matters: a failure, what healing does, an answer, the end."""
        self._progress.follow(record, self._graph)
        match record:
            case FindingRow() if describe.worth(record) == "error":
                limits, agents = self._graph.run.limits, self._so_far.agents
                told = describe.plain_text(record, limits, agents)
                self._tell_moment(record.us, f"{describe.pattern_title(record.pattern)}: {told}.")
            case HealRow() if record.action != "refused":
                told = action_text(record, len(self._so_far.agents))
                self._tell_moment(record.us, f"The monitor {told}.")
            case Finish():
                self._tell_moment(record.us, self._so_far.verdict().end)

    def _tell_moment(self, us: int, text: str) -> None:
        """Put a sentence into the caption, beside those of the same time."""
        before = f"{self._caption} " if us == self._caption_us else f"{moment(us)}: "
        self._caption, self._caption_us = before + text, us

    def _standstill(self, us: int) -> str:
        """Since when no agent works although work is waiting, and when that is a deadlock."""
        found = self._progress.standstill(self._graph)
        if not found or not max(found.since_us, self._caption_us) + SHORT_US <= us < found.due_us:
            return ""
        return (
            f"{moment(us)}: no agent has got on with the work since {moment(found.since_us)}. "
            f"At {moment(found.due_us)} the monitor takes that for a deadlock (DL)."
        )

    def tell(self, news: LogLine) -> None:
        """Take in news that no record tells."""
        self._news.append(news)

    def evicted(self, eviction: Eviction) -> None:
        """Repeat an eviction of the session."""
        eviction.repeat(self._graph)
        self._moving = {event: None for event in self._moving if self._graph.knows(event)}

    # --- one function a kind of record ---

    def _look(self, record: Record) -> Iterator[LogLine]:
        us = record.us
        match record:
            case Run():
                self._system.become(us, TimeMark.IDLE)
                for agent in record.agents:
                    self._settle(us, agent)
            case Emit():
                yield from self._emitted(record)
            case Deliver():
                yield from self._delivered(record)
            case Start():
                self._lane(record.agent).turns += 1
                self._settle(us, record.agent)
            case End():
                yield from self._ended(record)
            case Join() | Leave():
                self._settle(us, record.agent)
            case FindingRow():
                yield self._raised(record)
            case HealRow():
                is_refused = record.action == "refused"
                if not is_refused:
                    self._healed += 1
                    self._system.mark(us, TimeMark.HEALED)
                style = "warning" if is_refused else "good"
                yield LogLine(us, "healing", healing_text(record), style)
            case IncidentRow():
                self._system.mark(us, TimeMark.INCIDENT)
                failed = failed_component(record)
                if failed is not None:
                    self._failed[failed] = None
                style = "warning" if failed is None else "bad"
                yield LogLine(us, "incident", incident_text(record), style)
            case Finish():
                style = "good" if record.outcome == "submitted" else "warning"
                yield LogLine(us, "end", f"the run is over: {record.outcome}", style)

    def _raised(self, record: FindingRow) -> LogLine:
        worth = describe.worth(record)
        if not is_rivals(str(record.pattern)):
            self._found[worth] += 1
        self._system.mark(record.us, TimeMark.FOUND)
        text = describe.silenced_text(record) or worth
        says = f"{text}: {describe.finding_text(record)}"
        return LogLine(record.us, describe.pattern_label(record), says, _STYLES[worth])

    def _emitted(self, record: Emit) -> Iterator[LogLine]:
        if record.by is None:
            self._system.mark(record.us, TimeMark.OUTSIDE)
        elif record.by == SYSTEM:
            self._system.sent += 1
        elif self._author is not None:
            self._author.sent += 1
            if record.final:
                self._author.mark(record.us, TimeMark.SUBMITTED)
                text = f"{name(self._author.name)} submits {name(record.event)}"
                yield LogLine(record.us, "answer", text, "plain")

    def _delivered(self, record: Deliver) -> Iterator[LogLine]:
        self._released = self._parcel(record.event, record.to or "outside")
        if record.to is not None:
            self._settle(record.us, record.to)
        else:
            self._system.mark(record.us, TimeMark.ACCEPTED)
            yield LogLine(record.us, "answer", f"{name(record.event)} is accepted", "good")

    def _ended(self, record: End) -> Iterator[LogLine]:
        assert self._graph.ended is not None  # the record has just ended one
        agent = self._graph.ended.agent
        self._author = lane = self._lane(agent)
        lane.has_failed = record.error is not None
        lane.mark(record.us, _did(record))
        self._settle(record.us, agent)
        if lane.has_failed:
            lane.fails += 1
            text = f"{name(agent)} failed: {one_line(record.error)}"
            yield LogLine(record.us, "failure", text, "bad")

    def _lane(self, agent: str) -> Lane:
        lane = self._lanes.get(agent)
        if lane is None:
            if len(self._lanes) >= MOST_LANES:
                gone = [name for name in self._lanes if name not in self._graph.agents]
                for name in gone[: len(gone) // 2 + 1]:
                    del self._lanes[name]
            lane = self._lanes[agent] = Lane(agent)
        return lane

    def _settle(self, us: int, agent: str) -> None:
        """Have a lane show the state that its agent is in."""
        lane, state = self._lane(agent), self._graph.agents.get(agent)
        lane.holds = len(state.buffer) if state else 0
        if state is None:
            lane.become(us, TimeMark.ABSENT)
        elif state.activation is not None:
            lane.become(us, TimeMark.BUSY)
        else:
            lane.become(us, TimeMark.HOLDS if state.buffer else TimeMark.IDLE)

    # --- a picture of it ---

    def frame(self, us: int) -> Frame:
        """The picture of a moment, which is at the earliest that of the latest record."""
        graph, lanes = self._graph, tuple(lane.copy() for lane in self._lanes.values())
        fails = sum(lane.fails for lane in lanes)
        worths = describe.counts_text(self._found)
        counts = [
            counted(graph.t + 1, "record"),
            counted(graph.event_count, "event"),
            f"{len(graph.open_events()) if graph.t >= 0 else 0:,} open",
            counted(graph.activation_count, "turn") + (f" ({fails:,} failed)" if fails else ""),
            counted(self._found.total(), "finding") + (f" ({worths})" if worths else ""),
            f"{self._healed:,} healed",
        ]
        return Frame(
            us=max(us, graph.now),
            outcome=graph.finished.outcome if graph.finished else "",
            lanes=lanes,
            system=self._system.copy(),
            counts=", ".join(counts),
            caption=self._standstill(us) or self._caption,
            cost=cost_text(self._costs.sums),
            failed=f"failed: {cut(list(self._failed))}" if self._failed else "",
            held=tuple(self._parcel(e) for e in list(self._moving)[: -MOST_HELD - 1 : -1]),
            moving=len(self._moving),
            released=self._released,
            news=tuple(self._news),
        )

    def _parcel(self, event: str, to: str | None = None) -> str:
        """An event and its way, in"""
        it, history = self._graph.event(event), self._graph.history
        sender = it.by or "outside"
        if it.by not in (None, SYSTEM):
            sender = history.agent(history.generator[it.n])
        ways = [to] if to is not None else list(it.flight) or ["outside"]
        return f"{name(event)} {name(it.type)}, {name(sender)} → {names(ways, 4)}"


def _did(record: End) -> str:
    """The mark of an activation that ended."""
    if record.error is not None:
        return TimeMark.FAILED
    if record.outputs:
        return TimeMark.SENT
    fates = {fate.fate for fate in record.fates}
    if "reroute" in fates:
        return TimeMark.REROUTED
    if "discard" in fates:
        return TimeMark.DISCARDED
    return TimeMark.CONSUMED if "consume" in fates else TimeMark.WAITED
