"""`python -m bench [NAME ...]`: run the benchmarks, all of them by default."""

from __future__ import annotations

import sys
from collections.abc import Callable

from . import starting, teams, traces
from .measure import Table

BENCHES: dict[str, Callable[[], Table]] = {
    "bus": teams.bus,
    "simulator": teams.simulator,
    "reading": traces.reading,
    "starting": starting.starting,
}


def main() -> None:
    names = sys.argv[1:] or list(BENCHES)
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"bench: there is no {', '.join(unknown)}; known are: {', '.join(BENCHES)}")
    for name in names:
        print(BENCHES[name](), end="\n\n", flush=True)


main()
