"""What reading and checking a stored trace costs, beside parsing its JSON alone."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from dig.detectors import standard
from dig.detectors.watch import Watch
from dig.graph.codec import encode
from dig.graph.graph import InteractionGraph
from dig.graph.records import Deliver, Emit, End, Fate, Record, Run, Start
from dig.traces.journal.reader import check_trace, read_records

from .measure import Table, compared, per_unit

LINES = 100_000


def ring(agents: int = 20, records: int = LINES) -> list[Record]:
    """A long trace: messages round a ring, four records each."""
    names = tuple(f"agent-{i}" for i in range(agents))
    made: list[Record] = [
        Run(0, 0, "bench", names),
        Emit(1, 0, "e0", None, names[:1], "message"),
    ]
    made.append(Deliver(2, 0, "e0", names[0]))
    n = 0
    while len(made) + 4 <= records:
        agent, after, t = names[n % agents], names[(n + 1) % agents], len(made)
        us, event = 1000 * n, f"e{n + 1}"
        made.append(Start(t, us, f"a{n}", agent, (f"e{n}",)))
        made.append(End(t + 1, us, f"a{n}", (Fate(f"e{n}", "consume"),), (event,)))
        made.append(Emit(t + 2, us, event, f"a{n}", (after,), "message"))
        made.append(Deliver(t + 3, us, event, after))
        n += 1
    return made


def reading() -> Table:
    """Microseconds a record of a trace of 100,000 lines."""
    records = ring()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ring.dig.jsonl"
        path.write_text("".join(encode(record) + "\n" for record in records))
        lines = path.read_bytes().splitlines()

        def parsed() -> int:
            return sum(1 for line in lines if json.loads(line))

        def check() -> int:
            list(check_trace(path, Watch(standard())))
            return len(lines)

        times = per_unit(
            {
                "json.loads alone": parsed,
                "read into records": lambda: sum(1 for _ in read_records(path)),
                "digmon check (read, graph, detectors)": check,
                "graph alone, from records": lambda: InteractionGraph.of(records).t,
                "encode": lambda: sum(1 for record in records if encode(record)),
            },
            rounds=3,
        )
    return compared(f"A stored trace of {len(records):,} lines", "line", times)
