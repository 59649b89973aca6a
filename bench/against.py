"""`python -m bench.against TREE [--turns N] [NAME ...]`: what the code costs, beside another state.

TREE is a checkout of the other state, made by `git worktree add TREE COMMIT`. Each state works in
a process of its own, and the two take turns, so a busy machine is unfair to both alike. What is
compared is processor time. The figure is the median of the ratios within a turn, with the interval
that holds the true median in 95 % of cases, whatever the distribution.

All eleven patterns are on where there are eleven; a state from before them has its seven. `alike`
is a hold with the same seven in both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from math import comb
from pathlib import Path
from statistics import median
from time import process_time, thread_time
from typing import Any

HOME = Path(__file__).resolve().parents[1]
HOLDS, MESSAGES, MONITORS, CALLS = 1_500, 1_500, 300, 400


def _imported(*places: str) -> Any:
    """An object, from the first of some modules that there is: `module:name`."""
    from importlib import import_module

    for place in places:
        module, _, name = place.partition(":")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"there is none of {', '.join(places)}")


def _watching() -> dict[str, Any]:
    """The arguments of a monitor with all patterns and healers that the state of the code has."""
    from dig.detectors import standard, standard_healers

    thresholds = _imported("dig.detectors.thresholds:Thresholds", "dig.settings:Thresholds")
    return {
        "detectors": standard(), "healers": standard_healers(), "limits": thresholds().limits,
    }  # fmt: skip


# --- what is measured; each yields one figure a turn ---


def _work(*, seven: bool = False) -> Iterator[list[int]]:
    """The nanoseconds of the holds of a turn, of a session of 20 agents."""
    from inspect import signature

    from bench.workload import Work

    has_eleven = "limits" in signature(Work).parameters
    more = {"limits": _watching()["limits"]} if has_eleven and not seven else {}
    work = Work(**more)
    work.grow(5_000)
    while True:
        work.times = {}
        while len(work.times.get("hold", ())) < HOLDS:
            work.step()
        yield sorted(work.times["hold"])


def hold() -> Iterator[float]:
    """Microseconds of the median hold."""
    return (times[len(times) // 2] / 1e3 for times in _work())


def alike() -> Iterator[float]:
    """The same with the seven patterns of the paper alone."""
    return (times[len(times) // 2] / 1e3 for times in _work(seven=True))


def tail() -> Iterator[float]:
    """The longest of a thousand holds, in microseconds."""
    return (times[-2] / 1e3 for times in _work())


def _messages(sink: Callable[[Any], None] | None) -> Iterator[float]:
    from itertools import count

    from bench.peers import NAMES, _ring
    from dig import Monitor

    clock = count()
    kept = {} if sink is None else {"sink": sink}
    ring = _ring(Monitor(NAMES, clock=lambda: next(clock) / 1000, **kept, **_watching()))
    while True:
        began = process_time()
        for _ in range(MESSAGES):
            next(ring)
        yield (process_time() - began) * 1e6 / MESSAGES


def message() -> Iterator[float]:
    """Microseconds of a message round a ring."""
    return _messages(None)


def journalled() -> Iterator[float]:
    """The same, with a journal."""
    journal = _imported("dig.traces.journal.journal:Journal", "dig.traces.journal:Journal")
    with tempfile.TemporaryDirectory() as folder:
        yield from _messages(journal(Path(folder) / "trace.dig.jsonl"))


def span() -> Iterator[float]:
    """Microseconds of an OpenTelemetry span; it is the same in both states."""
    from bench.peers import _spans

    once = _spans()
    while True:
        began = process_time()
        units = once() + once() + once()
        yield (process_time() - began) * 1e6 / units


def building() -> Iterator[float]:
    """Microseconds to build a monitor, with fresh detectors and healers."""
    from bench.peers import NAMES
    from dig import Monitor

    while True:
        began = process_time()
        for _ in range(MONITORS):
            Monitor(NAMES, clock=lambda: 0.0, **_watching())
        yield (process_time() - began) * 1e6 / MONITORS


def wrapped() -> Iterator[float]:
    """Microseconds that wrapping adds to a call and its answer, of a plain team."""
    import anyio

    times = _imported("bench.wrap:times", "bench.wrap:_times")

    while True:
        bare = median(anyio.run(times, None, False, CALLS))
        yield median(anyio.run(times, "heal", False, CALLS)) - bare


def simulated() -> Iterator[float]:
    """Milliseconds of a simulated run: six agents pass 2,000 messages."""
    from bench.teams import _simulator

    while True:
        began = thread_time()
        _simulator(True, lambda record: None)
        yield (thread_time() - began) * 1e3


MEASURES: dict[str, Callable[[], Iterator[float]]] = {
    measure.__name__: measure
    for measure in (hold, alike, tail, message, journalled, span, building, wrapped, simulated)
}


# --- two states of the code, in turns ---


class _State:
    """A process that measures with the code of one checkout."""

    def __init__(self, tree: Path) -> None:
        # -P: what stands beside this file must not be imported in place of the other state's.
        command = [sys.executable, "-P", __file__, "--serve"]
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        self._process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, name: str) -> float:
        """One more figure of a measure."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        print(name, file=process.stdin, flush=True)
        return float(process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def _serve() -> None:
    running: dict[str, Iterator[float]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in running:
            running[name] = MEASURES[name]()
            next(running[name])  # the first turn warms up
        print(next(running[name]), flush=True)


def interval(values: list[float]) -> tuple[float, float]:
    """The interval of the median at 95 %, by order statistics."""
    ordered, n = sorted(values), len(values)
    outside, rank = 0.0, 0
    while rank < (n - 1) // 2 and outside + 2 * comb(n, rank) / 2**n <= 0.05:
        outside += 2 * comb(n, rank) / 2**n
        rank += 1
    least = max(0, rank - 1)
    return ordered[least], ordered[n - 1 - least]


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.against", description=__doc__.split("\n")[0])
    parser.add_argument("tree", type=Path, help="a checkout of the other state of the code")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"by default all: {', '.join(MEASURES)}"
    )
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_intermixed_args()
    before, now = _State(options.tree.resolve()), _State(HOME)
    print(f"{'':12}{'before':>10}{'now':>10}{'ratio':>8}   95 %")
    for name in options.names or MEASURES:
        pairs = [(before.ask(name), now.ask(name)) for _ in range(options.turns)]
        ratios = [b / a for a, b in pairs]
        low, high = interval(ratios)
        a, b = (median(each) for each in zip(*pairs, strict=True))
        print(f"{name:12}{a:10.2f}{b:10.2f}{median(ratios):8.3f}   {low:.3f} to {high:.3f}")
    before.close()
    now.close()


if __name__ == "__main__":
    _serve() if "--serve" in sys.argv else main()
