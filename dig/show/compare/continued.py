"""A run and its fork side by side, from the first record that differs: what each agent decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from difflib import SequenceMatcher
from pathlib import Path

from dig._util.text import counted, name, names, one_line
from dig.graph.codec import encode
from dig.graph.records import Emit, End, FindingRow, Finish, Join, Leave, Record
from dig.graph.words import decision_text
from dig.traces.run import RecordedRun

LEAST = 3
"""So many records are the same at the beginning of a run and its fork; two runs share fewer."""
MOST_ROWS = 12
MOST_IN_CELL = 62


def side_by_side(a: Path, b: Path) -> Iterator[str]:
    """The decisions of a run and its fork from the first difference on; nothing for other runs.

    Args:
        a: The path of one.
        b: The path of the other.

    Raises:
        TraceError: One of them cannot be read.
    """
    one, other = (RecordedRun.read(path, payloads=True) for path in (a, b))
    first = _first_difference(one, other)
    if first is None:
        return
    rows = [*_rows(one, other, first)]
    yield f"the same up to record {first - 1}; then"
    cells = [("s", "A", "B"), *rows[:MOST_ROWS]]
    width = max(len(left) for _, left, _ in cells)
    for s, left, right in cells:
        yield f"  {s:>7}  {left:<{width}}  {right}".rstrip()
    if len(rows) > MOST_ROWS:
        yield f"  and {counted(len(rows) - MOST_ROWS, 'further row')}"


def _first_difference(one: RecordedRun, other: RecordedRun) -> int | None:
    """The first record that differs; ``None``, if neither run is a fork of the other."""
    pairs = enumerate(zip(one.records, other.records, strict=False))
    first = next((t for t, (x, y) in pairs if encode(x) != encode(y)), None)
    return first if first is not None and first >= LEAST else None


def _rows(one: RecordedRun, other: RecordedRun, first: int) -> Iterator[tuple[str, str, str]]:
    """The moment, and what happened then in each run; what is the same in both is left out."""
    left, right = [*_told(one, first)], [*_told(other, first)]
    a, b = ([key for key, _, _ in side] for side in (left, right))
    for tag, i, i_end, j, j_end in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs = zip(left[i:i_end], right[j:j_end], strict=True)
            yield from (
                (f"{us / 1e6:.1f}", did, other_did)
                for (_, us, did), (_, _, other_did) in pairs
                if did != other_did
            )
        else:
            alone = [(us, did, "") for _, us, did in left[i:i_end]]
            alone += [(us, "", did) for _, us, did in right[j:j_end]]
            yield from ((f"{us / 1e6:.1f}", x, y) for us, x, y in sorted(alone))


def _told(run: RecordedRun, first: int) -> Iterator[tuple[str, int, str]]:
    """The steps of a run from a record on: a key, the moment in microseconds, and a few words."""
    for record in run.records[first:]:
        said = _words(run, record)
        if said:
            key, words = said
            yield key, record.us, one_line(words, MOST_IN_CELL)


def _words(run: RecordedRun, record: Record) -> tuple[str, str] | None:
    match record:
        case End(activation=activation):
            made = run.activations[activation]
            did = decision_text([asdict(one) for one in record.fates], run.outputs(made), past=True)
            did = "failed" if record.error else did
            return f"{activation} {made.agent}", f"{name(made.agent)} {did}"
        case Emit(by=None, event=event, to=to):
            return f"outside {event}", f"{name(event)} came from outside for {names([*to])}"
        case Join(agent=agent) | Leave(agent=agent):
            did = "joined" if isinstance(record, Join) else "left"
            return f"{did} {agent}", f"{name(agent)} {did}"
        case FindingRow(pattern=pattern):
            return f"finding {pattern}", f"{name(pattern)} was found"
        case Finish(outcome=outcome):
            return "finish", f"the run ended: {outcome}"
    return None
