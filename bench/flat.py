"""Whether a hold costs the same however long the run is, however many agents and open events.

A *hold* is one request to the monitor that brings new events: it checks and copies them, applies
and writes the records, lets seven detectors look, heals, and delivers. Every setting is a process
of its own that grows its run first; then all take windows in turns.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from dig.detectors import standard
from dig.detectors.watch import Watch

from .apart import Pauses, made_ready
from .measure import Table, claim
from .workload import Work

HOLDS = 2_000
ROUNDS = 7
FRESH_UP_TO = 10_000  # a small run is made anew for every window, since a window lets it grow


class Setting(NamedTuple):
    """A run to measure at a size."""

    nodes: int
    agents: int = 20
    watch: bool = False
    session: bool = True
    open: int = 0  # events that lie in front of further agents, who never act


class Window(NamedTuple):
    """What was measured over some thousand holds."""

    holds: array[int]  # nanoseconds each
    ns: int  # of all requests
    events: int
    pause_ns: int  # the longest of the garbage collector


def _percentile(window: Window, share: float) -> float:
    return sorted(window.holds)[min(int(len(window.holds) * share), len(window.holds) - 1)] / 1e3


def p50(window: Window) -> float:
    return _percentile(window, 0.5)


def p99(window: Window) -> float:
    return _percentile(window, 0.99)


def p999(window: Window) -> float:
    return _percentile(window, 0.999)


def tail(window: Window) -> float:
    return p999(window) / p50(window)


def per_event(window: Window) -> float:
    """Microseconds of all requests, by event."""
    return window.ns / window.events / 1e3


def _serve(setting: Setting) -> Callable[[int], Window]:
    pauses = Pauses()
    grown = None if setting.nodes <= FRESH_UP_TO else _grown(setting, 1)

    def window(turn: int) -> Window:
        most = min(HOLDS, setting.nodes * 3 // 10)
        windows = []
        for part in range(HOLDS // most if grown is None else 1):
            work = grown or _grown(setting, 100 * turn + part)
            pauses.taken()
            windows.append(_measure(work, most, pauses))
        return Window(
            sum((w.holds for w in windows), array("q")),
            sum(w.ns for w in windows),
            sum(w.events for w in windows),
            max(w.pause_ns for w in windows),
        )

    return window


def _grown(setting: Setting, seed: int) -> Work:
    gc.collect()  # the one before
    watch = Watch(standard()) if setting.watch else None
    work = Work(setting.agents, setting.session, watch, seed, open=setting.open)
    work.grow(setting.nodes)
    return work


def _measure(work: Work, holds: int, pauses: Pauses) -> Window:
    events, work.times = work.events, {}
    while len(work.times.get("hold", ())) < holds:
        work.step()
    ns = sum(sum(times) for kind, times in work.times.items() if kind != "hold")
    longest = max((ns for generation in pauses.taken() for ns in generation), default=0)
    return Window(work.times["hold"], ns, work.events - events, longest)


def measured(settings: Sequence[Setting], rounds: int = ROUNDS) -> dict[Setting, list[Window]]:
    """Windows of all settings, taken in turns; the first turn warms up."""
    processes = made_ready(_serve, settings)
    windows: dict[Setting, list[Window]] = {setting: [] for setting in settings}
    for turn in range(rounds + 1):
        for setting, process in processes.items():
            window = process.ask(turn)
            if turn:
                windows[setting].append(window)
    for process in processes.values():
        process.close()
    return windows


def middle(windows: Sequence[Window], figure: Callable[[Window], float]) -> float:
    """The median of a figure over the rounds."""
    return median(figure(window) for window in windows)


def ratio(
    above: Sequence[Window], below: Sequence[Window], figure: Callable[[Window], float]
) -> float:
    """The median over the rounds of a ratio within a round."""
    return median(figure(a) / figure(b) for a, b in zip(above, below, strict=True))


# --- tables ---

COLUMNS = ("us", "p50", "p99", "p99.9", "/p50", "us/event", "p50 ratio", "longest gc")


def _row(name: str, windows: Sequence[Window], base: Sequence[Window]) -> tuple[str, ...]:
    return (
        name,
        *(f"{middle(windows, figure):.1f}" for figure in (p50, p99, p999, tail, per_event)),
        f"{ratio(windows, base, p50):.2f}",
        f"{max(w.pause_ns for w in windows) / 1e6:.1f} ms",
    )


def flat(quick: bool = False) -> Table:
    """Hold time by length of run and by number of agents."""
    sizes = (1_000, 10_000, 100_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
    lines = {
        "session": [Setting(size) for size in sizes],
        "one run": [Setting(size, session=False) for size in sizes[:3]],
        "session, Watch.feed alone": [Setting(size, watch=True) for size in sizes],
    }
    teams = [Setting(100_000, agents) for agents in (20, 200, 1_000)]
    settings = {*(setting for line in lines.values() for setting in line), *teams}
    windows = measured(sorted(settings, reverse=True), 3 if quick else ROUNDS)
    rows, claims = [], []
    for name, line in lines.items():
        first, last = windows[line[0]], windows[line[-1]]
        rows += [_row(f"{name}: {s.nodes:,} nodes", windows[s], first) for s in line]
        claims.append(
            claim(f"{name}: p50 at {line[-1].nodes:,} / 1,000 nodes", ratio(last, first, p50), 1.25)
        )
        worst = max(middle(windows[s], tail) for s in line[1:])
        claims.append(claim(f"{name}: p99.9 / p50, worst from 10,000 up", worst, 15))
    few, *_, many = (windows[setting] for setting in teams)
    rows += [_row(f"session: {s.agents:,} agents", windows[s], few) for s in teams]
    claims.append(claim("p50 with 1,000 / 20 agents", ratio(many, few, p50), 2))
    claims.append(claim("us/event with 1,000 / 20 agents", ratio(many, few, per_event), 2))
    title = "Hold: monitor, seven detectors, healing; 20 agents; rows by agents at 100,000 nodes"
    return Table(title, COLUMNS, rows, "\n".join(claims))


def many_open(quick: bool = False) -> Table:
    """Hold time by number of open events."""
    settings = [Setting(n + 5_000, open=n) for n in (1_000, 10_000, 100_000)]
    windows = measured(settings, 3 if quick else ROUNDS)
    low, high = windows[settings[1]], windows[settings[2]]
    rows = [_row(f"{s.open:,} open", windows[s], low) for s in settings]
    claims = (
        claim("us/event with 100,000 / 10,000 open", ratio(high, low, per_event), 4),
        claim("p50 with 100,000 / 10,000 open", ratio(high, low, p50), 4),
    )
    return Table("Hold: session, 20 agents, many events open", COLUMNS, rows, "\n".join(claims))
