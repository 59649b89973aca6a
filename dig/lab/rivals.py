"""Rivals of healing, without a graph: only the time of the last record counts.

A person who watches a team without any graph would see that nothing happens, which agents are
idle, and the text of the problem. `Silence` sees no more: it reads the records one by one, as a
log, and raises `watchdog:silence` or `retry:silence` when nothing has happened for a while.
`HealByWord` then says one word to all agents; `HealByProblem` gives the problem again to an idle
one. Their findings, as those of a judge, are not findings of the detectors: see `is_rivals`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from dig.detectors.finding import RETRY, WATCHDOG, Finding
from dig.detectors.interventions import Create, Intervention, Reroute
from dig.detectors.protocols import Detector, Healer
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.records import NOTICE, Deliver, Emit, End, Join, Leave, Record, Run, Start, micros

Rival = Literal["watchdog", "retry"]

MOST: dict[Rival, int] = {WATCHDOG: 30, RETRY: 3}
"""The number of times that a rival acts on one problem. The watchdog's number is that of the
findings of one pattern that healing may act on (`Budget.per_pattern`)."""

SILENCE_S = 10.0
"""Seconds in which nothing happens; the windows of MC and DL in the experiments are as long."""

WORD = "Continue."


def silence_of(rival: Rival) -> str:
    """The pattern of a rival's findings."""
    return f"{rival}:silence"


class Silence(Detector):
    """Raises a rival's finding when nothing has happened for a while, and again after as long.

    Nothing happens while no agent is at work and no event is generated or delivered. Whether
    work is left is not asked. Before there is a problem, and after its answer, there is no silence.
    """

    recorded_as = "dig.detectors.rivals.Silence"
    kinds = (Run, Emit, Deliver, Start, End, Join, Leave)

    def __init__(
        self, rival: Rival = WATCHDOG, after_s: float = SILENCE_S, most: int | None = None
    ) -> None:
        """Begin with an empty log.

        Args:
            rival: The rival whose findings it raises.
            after_s: Seconds of silence after which one is raised.
            most: How often it acts on one problem; ``None``: as `MOST` says.

        Raises:
            SettingsError: There is no such rival, or the time is not above 0.
        """
        if rival not in MOST:
            raise SettingsError(f"there is no rival {rival!r}; known are {', '.join(MOST)}")
        if not 0 < after_s < 1e9:
            raise SettingsError(f"after_s must be above 0 and below 1e9 seconds, got {after_s!r}")
        self.pattern = silence_of(rival)
        self._rival: Rival = rival
        self._after_s, self._most = after_s, MOST[rival] if most is None else most
        self._at_work: dict[str, str] = {}  # activation -> agent
        self._free: dict[str, int] = {}  # agent -> since when it has had nothing to do
        self._problem: str | None = None
        self._unanswered = 0
        self._times = 0  # raised for this problem
        self._last = 0

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Take note of a record; raises nothing, since something happens."""
        us = record.us
        match record:
            case Run():
                self._free = dict.fromkeys(record.agents, us)
            case Join():
                self._free[record.agent] = us
            case Leave():
                self._free.pop(record.agent, None)
                # The activation of an agent that left never ends.
                self._at_work = {v: a for v, a in self._at_work.items() if a != record.agent}
            case Start():
                self._at_work[record.activation] = record.agent
            case End():
                agent = self._at_work.pop(record.activation)
                self._free[agent] = us
            case Emit(by=None) if record.type != NOTICE:
                self._problem, self._times = record.event, 0
                self._unanswered += 1
            case Deliver(to=None):
                self._unanswered, self._times = max(0, self._unanswered - 1), 0
        if not isinstance(record, Run | Join | Leave):
            self._last = us
        self._set_due()
        yield from ()

    def expire(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """There has been silence for long enough."""
        idle = sorted(self._free, key=lambda agent: (self._free[agent], agent))
        self._times, self._last = self._times + 1, us
        self._set_due()
        evidence: dict[str, Any] = {"times": self._times}
        if self._rival == RETRY:  # the watchdog's word is about nothing
            evidence |= {"problem": self._problem, "idle": idle}
        yield Finding(self.pattern, graph.t, us, {}, evidence)

    def awaited(self) -> tuple[str, ...]:
        """The problem, as long as there is no answer: a healer may repeat the problem."""
        return (self._problem,) if self._problem is not None and self._unanswered else ()

    def _set_due(self) -> None:
        can_speak = self._times < self._most and bool(self._free)
        is_silent = self._unanswered > 0 and not self._at_work
        self.due = self._last + micros(self._after_s) if can_speak and is_silent else None


class HealByWord(Healer):
    """Says "Continue." to all agents, and nothing about any event."""

    recorded_as = "dig.detectors.rivals.HealByWord"

    def about(self, finding: Finding) -> object:
        """The silence: each silence is another subject, so that all of them are answered."""
        return finding.evidence["times"]

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Send a system event to all present agents."""
        yield Create(WORD, tuple(graph.agents))


class HealByProblem(Healer):
    """Repeats the problem for the agent with the longest idle time, without a note."""

    recorded_as = "dig.detectors.rivals.HealByProblem"
    repeats_problems = True

    def about(self, finding: Finding) -> object:
        """The silence, as for the other rival."""
        return finding.evidence["times"]

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Repeat the problem for the agent; a word, if the agent still has the problem to do."""
        problem, agent = finding.evidence["problem"], finding.evidence["idle"][0]
        if agent in graph.event(problem).copies:  # it cannot have one event twice
            yield Create(WORD, (agent,))
        else:
            yield Reroute(problem, "", (agent,))
