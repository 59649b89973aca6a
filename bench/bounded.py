"""Whether a failure that goes on costs the same for each event, however long it goes on.

Each case is a small team that fails in one way for as many rounds as it is told: a run of n rounds
stands beside one of 4 n. The ratio of what one event costs must stay near 1 in all that a failure
makes work for: the live run with detectors and healing, the check of the stored trace, the report
page, the bytes of the trace, and what stays in memory (at a tenth of the rounds).
"""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Sequence
from statistics import median
from time import thread_time_ns
from typing import NamedTuple

from dig.detectors import standard, standard_healers
from dig.detectors.interventions import Budget
from dig.detectors.thresholds import Thresholds
from dig.detectors.watch import Watch
from dig.graph.codec import decode, encode
from dig.graph.records import Fate, FindingRow, Record
from dig.monitor.messages import Effect, Output, Started
from dig.monitor.monitor import Monitor
from dig.show.page.rows import Rows

from .measure import Table, claim

SIZE = 1_000
TIMES = 4
ROUNDS = 3
LIMIT = 1.5

MUCH = Budget(per_run=10**9, per_pattern=10**9, per_subject=10**9)


class Failing:
    """A team under a monitor that heals without end; a turn takes 0.01 s.

    Attributes:
        records: The trace.
        now: The time in seconds.
    """

    def __init__(self, *, heals: bool = True, session: bool = False) -> None:
        self.records: list[Record] = []
        self.now = 0.0
        self.monitor = Monitor(
            ("a", "b", "c"),
            clock=lambda: self.now,
            session=session,
            limits=Thresholds().limits,
            detectors=standard(),
            healers=standard_healers(cooldown_s=0.0) if heals else {},
            budget=MUCH,
            sink=self.records.append,
        )

    def pose(self, to: str, payload: str = "a problem") -> str:
        """A problem from outside; returns its id."""
        before = self.monitor.graph.event_count
        self.monitor.inject(Output(payload, (to,), "problem"))
        return self.monitor.graph.history.event_ids[before]

    def begin(self, agent: str) -> Started:
        """Start an agent."""
        self.now += 0.01
        return _started(self.monitor.start(agent))

    def act(self, agent: str, fates: dict[str, Fate], *outputs: Output) -> None:
        """An activation: what has no fate of its own is consumed."""
        begun = self.begin(agent)
        names = [one.id for one in begun.events]
        given = [fates.get(name, Fate(name, "consume")) for name in names]
        self.monitor.end(begun.activation, given, outputs)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.monitor.tick()


def _started(effects: Sequence[Effect]) -> Started:
    return next(effect for effect in effects if isinstance(effect, Started))


# --- the failures ---


def rerouted(n: int) -> Failing:
    """Two agents reroute one event to each other."""
    team = Failing()
    event = team.pose("a")
    for i in range(n):
        here, there = "ab"[i % 2], "ab"[(i + 1) % 2]
        team.act(here, {event: Fate(event, "reroute", (there,))})
    return team


def bounced(n: int) -> Failing:
    """An agent submits although work is open, gets its answer back, and submits it again."""
    team = Failing()
    team.pose("a")
    team.pose("b")
    team.begin("b")  # what it has in front of it can still move, so the answer is always sent back
    for _ in range(n):
        team.act("a", {}, Output("an answer", final=True))
    return team


def waiting(n: int) -> Failing:
    """Two agents wait for each other, whatever healing says."""
    team = Failing()
    held = {agent: team.pose(agent) for agent in "ab"}
    for _ in range(n):
        team.wait(60.0)
        for agent, event in held.items():
            team.act(agent, {event: Fate(event, "delay")})
    return team


def merged(n: int) -> Failing:
    """Answers reach an agent that keeps an answer to another problem: as many equal findings."""
    team = Failing(heals=False)
    for agent in "bc":
        team.pose(agent)
    team.act("b", {}, Output("kept", ("a",)))
    kept = team.monitor.graph.history.event_ids[team.monitor.graph.event_count - 1]
    for i in range(n):
        team.act("c", {}, Output(f"answer {i}", ("a", "c")))
        team.act("a", {kept: Fate(kept, "delay")})
    return team


def lost(n: int) -> Failing:
    """An agent sends part after part to an agent that there is not."""
    team = Failing()
    team.pose("a")
    for i in range(n):
        team.act("a", {}, Output(f"part {i}", ("nobody",)), Output(f"rest {i}", ("a",)))
        team.wait(20.0)
    return team


def repeated(n: int) -> Failing:
    """Two agents hand the same words to each other."""
    team = Failing()
    team.pose("a")
    for i in range(n):
        here, there = "ab"[i % 2], "ab"[(i + 1) % 2]
        team.act(here, {}, Output("after you", (there,)))
    return team


CASES: dict[str, Callable[[int], Failing]] = {
    "reroute loop": rerouted,
    "answer sent back for ever": bounced,
    "deadlock that goes on": waiting,
    "equal merges of two lineages": merged,
    "work sent to nobody": lost,
    "the same words for ever": repeated,
}


class Costs(NamedTuple):
    """What one event of a run costs.

    Attributes:
        live, check, report: CPU microseconds.
        size: Bytes of the trace.
        findings: The number of findings, of the whole run.
    """

    live: float
    check: float
    report: float
    size: float
    findings: int


def measured(case: Callable[[int], Failing], n: int) -> Costs:
    """The costs of a case of n rounds."""
    begin = _clock()
    team = case(n)
    live = thread_time_ns() - begin
    lines = [encode(record) for record in team.records]
    begin = _clock()
    watch = Watch(standard())
    for line in lines:
        watch.feed(decode(json.loads(line)))
    check = thread_time_ns() - begin
    begin = _clock()
    rows = Rows()
    for record in team.records:
        rows.of(record)
    report = thread_time_ns() - begin
    found = sum(isinstance(record, FindingRow) for record in team.records)
    units = _units(team)
    per_unit = 1e-3 / units  # microseconds of nanoseconds
    size = sum(map(len, lines)) / units
    return Costs(live * per_unit, check * per_unit, report * per_unit, size, found)


def kept(case: Callable[[int], Failing], n: int) -> float:
    """The bytes that stay in memory for each event of a case of n rounds, without its trace."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    team = case(n)
    units = _units(team)
    team.records.clear()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / units


def _units(team: Failing) -> float:
    """The number of events; a reroute loop has one only, so ten records count as an event."""
    return max(team.monitor.graph.event_count, len(team.records) / 10)


def _clock() -> int:
    gc.collect()
    return thread_time_ns()


FIGURES = ("live", "check", "report", "size")


def bounded(quick: bool = False) -> Table:
    """What an event costs in a failure that goes on four times as long."""
    n = SIZE // 10 if quick else SIZE
    rows, worst = [], dict.fromkeys((*FIGURES, "memory"), 0.0)
    for name, case in CASES.items():
        pairs = [(measured(case, n), measured(case, TIMES * n)) for _ in range(ROUNDS)]
        ratios = {
            figure: median(getattr(long, figure) / getattr(short, figure) for short, long in pairs)
            for figure in FIGURES
        }
        memory = kept(case, n // 10), kept(case, TIMES * n // 10)
        ratios["memory"] = memory[1] / memory[0]
        worst = {figure: max(worst[figure], ratios[figure]) for figure in worst}
        short, long = pairs[-1]
        found = f"{short.findings:,} / {long.findings:,}"
        costs = (f"{getattr(long, figure):.0f} ({ratios[figure]:.2f})" for figure in FIGURES)
        rows.append((name, found, *costs, f"{memory[1]:.0f} ({ratios['memory']:.2f})"))
    title = (
        f"An event in a failure of {TIMES * n:,} rounds; in brackets the ratio to {n:,} rounds "
        "(a record counts as a tenth of an event, if there are more of these)"
    )
    columns = ("", "findings", "live us", "check us", "report us", "trace bytes", "memory bytes")
    claims = (claim(f"{figure}: worst ratio", worst[figure], LIMIT) for figure in worst)
    return Table(title, columns, rows, "\n".join(claims))
