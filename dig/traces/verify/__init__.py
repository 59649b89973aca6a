"""An independent checker of traces: reads nothing but the file, and shares no code with dig.

Written from docs/files.md and docs/meaning.md, with the standard library alone, so that
its verdict does not depend on the monitor, the journal or the reader. `trace_lines` reads the file,
`books` and `places` check it, `violations` has the result. It checks

- the hash chain of a journal, and the payloads that lie beside it;
- the rules of the format, line by line;
- conservation: each piece of work is at the end in exactly one of the states open, consumed and
  orphaned, and each delivered copy was taken, lost or is still there;
- that the graph is bipartite and acyclic: an id stands for one thing, and every edge leads to
  something later;
- for a journal, the further promises of the monitor: the order of events for each recipient, an
  effect after each intervention, the budget of healing, and that the answer is the accepted one.

The first rule that is broken ends the check, since nothing after it can be judged.
"""

from __future__ import annotations

from pathlib import Path

from .books import Books
from .trace_lines import rows
from .violations import Broken, VerificationReport, Violation

__all__ = ["VerificationReport", "Violation", "verify"]


def verify(path: Path) -> VerificationReport:
    """Check a trace file.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is empty, or no trace at all.
    """
    report = VerificationReport()
    books = Books(report, path.parent)
    try:
        for line, row in rows(path, report):
            books.line = line
            books.enter(row)
            report.records += 1
        books.close()
    except Broken as broken:
        report.add(broken.line or books.line, str(broken))
    report.events = books.places.events.count
    report.activations = books.places.activations.count
    return report
