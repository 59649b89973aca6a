"""The state of a live picture: a lane for each agent, moving events, and news.

A `TerminalState` follows the records of a run. The state comes from an `InteractionGraph` of its
own, so that the picture cannot differ from the graph; it adds data that a graph does not keep:
counts, and marks on a time line. `frame()` is a picture of one moment that shares nothing with it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator

from dig._util.text import counted, cut, name, names, one_line
from dig.detectors import describe, is_rivals
from dig.detectors.five_answers import five_answers
from dig.graph import records, words
from dig.graph.records import SYSTEM, End, FindingRow, Record
from dig.graph.words import action_text, failed_component, healing_text, incident_text, moment
from dig.monitor.sinks import Eviction
from dig.show.follower import SHORT_US, RunFollower
from dig.traces.usage import cost_text

from .frame import Frame, Lane, LogLine, TimeMark

MOST_NEWS = 100
MOST_HELD = 3
MOST_LANES = 1000  # hosts may make an agent for every turn

_STYLES = {"error": "bad", "warning": "warning", "notice": "notice", "silenced": "silenced"}
"""The style of a finding's line, by the worth of the finding."""


class TerminalState:
    """Follows a run, from the first record on."""

    def __init__(self, agents: Iterable[str] = ()) -> None:
        """Begin with the expected agents."""
        self._run = RunFollower()
        self._graph = self._run.graph
        self._caption, self._caption_us = "", -1
        self._system = Lane(SYSTEM)
        self._lanes = {agent: Lane(agent) for agent in agents}
        self._author: Lane | None = None  # whose outputs are being emitted
        self._moving: dict[str, None] = {}
        self._released = "nothing yet"
        self._news: deque[LogLine] = deque(maxlen=MOST_NEWS)
        self._findings = Counter[str]()
        self._heals = 0
        self._failed_parts: dict[str, None] = {}
        self._aside = ""  # the latest news without a record

    def follow(self, record: Record) -> list[LogLine]:
        """Take in a record; returns the news of the record."""
        self._run.follow(record)
        self._update_caption(record)
        news = list(self._log(record))
        for event in self._graph.touched:
            self._moving.pop(event.id, None)
            # An answer without a verdict is on its way, too: a gate may keep it.
            is_answer = event.final and not (
                self._graph.is_bounced(event.id) or self._graph.is_accepted(event.id)
            )
            if event.flight or is_answer:
                self._moving[event.id] = None
        self._news += news
        return news

    def _update_caption(self, record: Record) -> None:
        """Caption an important moment: a failure, an intervention, the end."""
        agents = self._run.so_far.agents
        match record:
            case FindingRow() if describe.worth(record) == "error":
                plain = describe.plain_text(record, self._graph.run.limits, agents)
                text = f"{describe.pattern_title(record.pattern)}: {plain}."
            case records.HealRow() if record.action != "refused":
                text = f"The monitor {action_text(record, len(agents))}."
            case records.Finish():
                text = five_answers(self._run.so_far).ended
            case _:
                return
        # Sentences of one moment stand together.
        us = record.us
        start = f"{self._caption} " if us == self._caption_us else f"{moment(us)}: "
        self._caption, self._caption_us = start + text, us

    def _standstill(self, us: int) -> str:
        """The caption of a standstill of more than two seconds, until the deadlock."""
        since_us, due_us = self._run.standstill or (us, us)
        if not max(since_us, self._caption_us) + SHORT_US <= us < due_us:
            return ""
        return (
            f"{moment(us)}: no agent has got on with the work since {moment(since_us)}. "
            f"At {moment(due_us)} the monitor takes that for a deadlock (DL)."
        )

    def add_news(self, line: LogLine) -> None:
        """Take in news without a record."""
        self._aside = line.text
        self._news.append(line)

    def evicted(self, eviction: Eviction) -> None:
        """Repeat an eviction of the session."""
        eviction.repeat(self._graph)
        self._moving = {event: None for event in self._moving if self._graph.knows(event)}

    def _log(self, record: Record) -> Iterator[LogLine]:
        """Update lanes and counts; yields the news in a record."""
        us = record.us
        match record:
            case records.Run():
                self._system.become(us, TimeMark.IDLE)
                for agent in record.agents:
                    self._settle(us, agent)
            case records.Emit():
                yield from self._log_emit(record)
            case records.Deliver():
                self._released = self._parcel(record.event, record.to or "outside")
                if record.to is not None:
                    self._settle(us, record.to)
                else:
                    self._system.mark(us, TimeMark.ACCEPTED)
                    yield LogLine(us, "answer", f"{name(record.event)} is accepted", "good")
            case records.Start():
                self._lane(record.agent).turns += self._run.so_far.starts_turn
                self._settle(us, record.agent)
            case End():
                yield from self._log_end(record)
            case records.Join() | records.Leave():
                self._settle(us, record.agent)
            case FindingRow():
                worth = describe.worth(record)
                if not is_rivals(str(record.pattern)):
                    self._findings[worth] += 1
                self._system.mark(us, TimeMark.FOUND)
                if (record.pattern, record.stage) == ("FAIL", "turn"):
                    return  # the turn's own line stands just before
                text = describe.silenced_text(record) or worth
                text = f"{text}: {describe.finding_text(record, self._graph)}"
                yield LogLine(us, describe.pattern_label(record), text, _STYLES[worth])
            case records.HealRow() if record.reason != words.NOTHING_TO_DO:
                is_refused = record.action == "refused"
                if not is_refused:
                    self._heals += 1
                    self._system.mark(us, TimeMark.HEALED)
                style = "warning" if is_refused else "good"
                yield LogLine(us, "healing", healing_text(record), style)
            case records.IncidentRow():
                self._system.mark(us, TimeMark.INCIDENT)
                part = failed_component(record)
                if part is not None:
                    self._failed_parts[part] = None
                style = "warning" if part is None else "bad"
                yield LogLine(us, "incident", incident_text(record), style)
            case records.Finish():
                style = "good" if record.outcome == "submitted" else "warning"
                yield LogLine(us, "end", f"the run is over: {record.outcome}", style)

    def _log_emit(self, record: records.Emit) -> Iterator[LogLine]:
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

    def _log_end(self, record: End) -> Iterator[LogLine]:
        agent = self._graph.ended.agent
        # The emits of the outputs follow their end, and do not name their agent.
        self._author = lane = self._lane(agent)
        lane.has_failed = record.error is not None
        lane.mark(record.us, _end_mark(record))
        self._settle(record.us, agent)
        if lane.has_failed:
            lane.fails += 1
            error = one_line(record.error)
            # The line of a failed request stands just before that of its turn.
            message = error.removesuffix("...").partition(": ")[2]
            is_repeated = message and message in self._aside
            text = f"{name(agent)} failed" + ("" if is_repeated else f": {error}")
            yield LogLine(record.us, "failure", text, "bad")

    def _lane(self, agent: str) -> Lane:
        lane = self._lanes.get(agent)
        if lane is None:
            if len(self._lanes) >= MOST_LANES:
                # Half of those who left go at once, so that this is not done for every new agent.
                absent = [name for name in self._lanes if name not in self._graph.agents]
                for name in absent[: len(absent) // 2 + 1]:
                    del self._lanes[name]
            lane = self._lanes[agent] = Lane(agent)
        return lane

    def _settle(self, us: int, agent: str) -> None:
        """Have a lane show the state of the agent."""
        lane, state = self._lane(agent), self._graph.agents.get(agent)
        lane.holds = len(state.buffer) if state else 0
        if state is None:
            lane.become(us, TimeMark.ABSENT)
        elif state.activation is not None:
            lane.become(us, TimeMark.BUSY)
        else:
            lane.become(us, TimeMark.HOLDS if state.buffer else TimeMark.IDLE)

    def frame(self, us: int) -> Frame:
        """The picture of a moment, at the earliest of the latest record."""
        graph, lanes = self._graph, tuple(lane.copy() for lane in self._lanes.values())
        fails = sum(lane.fails for lane in lanes)
        worths = describe.counts_text(self._findings)
        counts = [
            counted(graph.t + 1, "record"),
            counted(graph.event_count, "event"),
            f"{len(graph.open_events()) if graph.t >= 0 else 0:,} open",
            counted(graph.activation_count, "turn") + (f" ({fails:,} failed)" if fails else ""),
            counted(self._findings.total(), "finding") + (f" ({worths})" if worths else ""),
            f"{self._heals:,} healed",
        ]
        return Frame(
            us=max(us, graph.now),
            outcome=graph.finished.outcome if graph.finished else "",
            lanes=lanes,
            system=self._system.copy(),
            counts=", ".join(counts),
            caption=self._standstill(us) or self._caption,
            cost=cost_text(self._run.costs.sums),
            failed=f"failed: {cut(list(self._failed_parts))}" if self._failed_parts else "",
            held=tuple(self._parcel(e) for e in list(self._moving)[: -MOST_HELD - 1 : -1]),
            moving=len(self._moving),
            released=self._released,
            news=tuple(self._news),
        )

    def _parcel(self, event: str, to: str | None = None) -> str:
        """An event with sender and recipients, in words."""
        state, history = self._graph.event(event), self._graph.history
        sender = state.by or "outside"
        if state.by not in (None, SYSTEM):
            sender = history.agent(history.generator[state.n])
        recipients = [to] if to is not None else list(state.flight) or ["outside"]
        return f"{name(event)} {name(state.type)}, {name(sender)} → {names(recipients, 4)}"


def _end_mark(record: End) -> str:
    """The mark of an ended activation."""
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
