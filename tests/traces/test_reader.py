"""Reading trace files: what is refused, at which line, and what a hostile file costs."""

from __future__ import annotations

import json
import random
import re
import tracemalloc
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from dig._util import json_text
from dig.detectors.watch import Watch
from dig.errors import TraceError
from dig.graph.codec import decode
from dig.traces.journal import reader
from dig.traces.journal.reader import TRACE, check_trace, read_graph, read_records
from tests.comparison import detectors_with_an_oracle
from tests.histories import arrive, emit, end, start, trace, turn
from tests.oracle import Row
from tests.oracle_findings import findings
from tests.random_traces import BREAKERS, break_trace, random_trace


def written(path: Path, rows: Iterable[Row]) -> Path:
    """A trace file of these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def refusal(path: Path) -> TraceError:
    """The error with which a trace is refused."""
    with pytest.raises(TraceError) as caught:
        read_graph(path)
    return caught.value


SMALL = trace(arrive(0, "e", None, "a"), turn(1, "v", "a", "x", e="consume"), emit(1, "x", "v"))


# -- what can be read ---


def test_a_file_is_read_record_by_record(tmp_path: Path) -> None:
    """Records come in the order of the lines, each as its line says."""
    path = written(tmp_path / "small.dig.jsonl", SMALL)
    assert list(read_records(path)) == [decode(row) for row in SMALL]
    assert read_graph(path).t == len(SMALL) - 1


def test_a_run_directory_stands_for_its_trace(tmp_path: Path) -> None:
    """Commands take the folder of a run as well as the file in it."""
    written(tmp_path / TRACE, SMALL)
    assert read_graph(tmp_path).t == read_graph(tmp_path / TRACE).t == len(SMALL) - 1


def test_a_trace_may_stop_after_any_record(tmp_path: Path) -> None:
    """A run that still goes on, or was cut off, can be read."""
    for length in range(1, len(SMALL) + 1):
        path = written(tmp_path / "cut.dig.jsonl", SMALL[:length])
        assert read_graph(path).t == length - 1


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    """A file without a newline at its end is a trace all the same."""
    path = tmp_path / "trace.dig.jsonl"
    path.write_text("\r\n".join(map(json.dumps, SMALL)), encoding="utf-8")
    assert read_graph(path).t == len(SMALL) - 1


def test_a_long_trace_is_read_in_full(tmp_path: Path) -> None:
    """20,000 lines: each is there, and the graph is what they lead to."""
    problems = 2000
    parts: list[Row | list[Row]] = []
    for n in range(problems):
        solver = "abc"[n % 3]
        parts += [
            arrive(n, f"p{n}", None, solver),
            turn(n, f"v{n}", solver, f"x{n}", **{f"p{n}": "consume"}),
            arrive(n, f"x{n}", f"v{n}", "d"),
            turn(n, f"w{n}", "d", **{f"x{n}": "consume"}),
            emit(n, f"n{n}", None, "", "notice"),
            {"ts": n, "kind": "incident", "what": "x", "detail": n},
        ]
    rows = trace(*parts, agents="abcd")
    assert len(rows) == 20_001
    path = written(tmp_path / "long.dig.jsonl", rows)
    assert [record.t for record in read_records(path)] == list(range(len(rows)))
    graph = read_graph(path)
    assert (graph.t, graph.now) == (20_000, 1999 * 1_000_000)
    assert len(graph.history.event_ids) == 3 * problems
    assert len(graph.history.activation_ids) == 2 * problems
    assert (graph.open_events(), graph.orphans()) == ([], {})
    assert graph.roots("x1999") == {"v1999"}


def test_a_stored_trace_is_checked_as_it_was_live(tmp_path: Path) -> None:
    """Detectors find in the file what they find in the records that it was made of."""
    for seed in range(20):
        rows = random_trace(random.Random(seed))
        path = written(tmp_path / "random.dig.jsonl", rows)
        found = check_trace(path, Watch(detectors_with_an_oracle()))
        assert [finding.row() for finding in found] == findings(rows)


# -- what cannot ---


@cache
def sound() -> list[list[Row]]:
    """Traces to be broken."""
    return [random_trace(random.Random(f"sound {seed}")) for seed in range(120)]


@cache
def broken(kind: str) -> list[tuple[list[Row], int]]:
    """Traces that are broken in one way, each with the index of the row at fault."""
    made: list[tuple[list[Row], int]] = []
    rng = random.Random(kind)
    for rows in rng.sample(sound(), len(sound())):
        with suppress(ValueError):  # there is nothing in it to be broken in this way
            made.append(break_trace(rng, rows, [kind])[:2])
        if len(made) == 5:
            break
    return made


@pytest.mark.parametrize("kind", BREAKERS)
def test_a_broken_trace_is_refused_at_the_line_at_fault(kind: str, tmp_path: Path) -> None:
    """Every rule of the format is kept, at the very line that breaks it."""
    assert broken(kind)
    for rows, index in broken(kind):
        path = written(tmp_path / "broken.dig.jsonl", rows)
        error = refusal(path)
        assert error.line == index + 1, error.reason
        assert error.path == path
        assert str(error) == f"{path}:{index + 1}: {error.reason}"
        assert "\n" not in str(error)


def test_the_line_is_named_below_a_directory_too(tmp_path: Path) -> None:
    """The message names the file that was read, not the folder."""
    path = written(tmp_path / TRACE, [*SMALL, SMALL[-1]])
    assert str(refusal(tmp_path)).startswith(f"{path}:{len(SMALL) + 1}: `t` is")


def test_records_before_the_line_at_fault_are_handed_out(tmp_path: Path) -> None:
    """A reader that follows a file sees what was right before it hears what was wrong."""
    path = written(tmp_path / "trace.dig.jsonl", SMALL)
    with path.open("a") as file:
        file.write('{"t": 99')
    records = read_records(path)
    assert list(islice(records, len(SMALL))) == [decode(row) for row in SMALL]
    with pytest.raises(TraceError, match="is not JSON"):
        next(records)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\n", "not JSON"),
        (b"   \n", "not JSON"),
        (b"\xff\n", "not UTF-8"),
        (b"[]\n", "must be a JSON object"),
        (b'{"t": NaN}\n', "NaN"),
        (b'{"t": 1e999}\n', "1e999"),
        (b'{"t": 1, "t": 1}\n', "stands twice"),
        (b'{"%b": 1, "%b": 1}\n' % (b"x" * 1000, b"x" * 1000), "stands twice"),
        (b"[" * 100_000 + b"\n", "nested too deeply"),
        (b'{"t": ' + b"1" * 5000 + b"}\n", "cannot be read"),
        (b'{"t": ' + b"1" * 4000 + b', "ts": 0, "kind": "join", "agent": "x"}\n', "`t` is 1"),
        (b'{"t": 7, "ts": ' + b"1" * 4000 + b', "kind": "join", "agent": "x"}\n', "`ts` is 1"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_line_that_is_no_record_is_named(line: bytes, reason: str, tmp_path: Path) -> None:
    """Whatever is in a line, the error names it, in a message of reasonable length."""
    path = written(tmp_path / "trace.dig.jsonl", SMALL)
    with path.open("ab") as file:
        file.write(line)
    error = refusal(path)
    assert error.line == len(SMALL) + 1
    assert reason in error.reason
    assert len(error.reason) <= 300


HOSTILE = "\n" + "x" * 100_000
"""A name that would fill a screen, and break a line."""


@pytest.mark.parametrize(
    "rows",
    [
        trace(agents=[HOSTILE, HOSTILE]),
        trace(emit(0, HOSTILE, None), emit(0, HOSTILE, None)),
        trace(emit(0, HOSTILE, None, "a"), {"ts": 0, "kind": "leave", "agent": HOSTILE}),
        trace(arrive(0, HOSTILE, None, "a"), start(1, "v", "a")),
        trace(start(0, HOSTILE, "a"), start(1, "v", "a")),
        trace(start(0, HOSTILE, "a"), end(0, HOSTILE, "x"), emit(0, "y", HOSTILE)),
        trace({"ts": 0, "kind": "expire", "event": HOSTILE}),
        trace({"ts": 0, "kind": "heal", "finding": HOSTILE, "action": "", "event": "", "note": ""}),
    ],
)
def test_a_message_is_one_short_line_whatever_the_names(rows: list[Row], tmp_path: Path) -> None:
    """Names in a trace are anybody's; a message quotes them and is cut."""
    error = refusal(written(tmp_path / "trace.dig.jsonl", rows))
    assert "\n" not in error.reason
    assert len(error.reason) <= 300


def test_no_nesting_gets_past_the_reader_and_breaks_what_comes_after(tmp_path: Path) -> None:
    """Of a value nested as deeply as can just be read, no message makes an error of its own."""
    for depth in [*range(100, 900, 100), *range(900, 1000)]:
        heal = {
            "t": 1,
            "ts": 0,
            "kind": "heal",
            "finding": 0,
            "action": "",
            "event": "",
            "note": "",
        }
        line = json.dumps(heal).replace('"finding": 0', f'"finding": {"[" * depth + "]" * depth}')
        path = written(tmp_path / "trace.dig.jsonl", trace())
        with path.open("a") as file:
            file.write(line)
        assert refusal(path).line == 2


def test_an_empty_file_is_no_trace(tmp_path: Path) -> None:
    """A trace begins with a record of kind `run`."""
    error = refusal(written(tmp_path / "empty.dig.jsonl", []))
    assert (error.line, error.reason) == (
        None,
        "is empty; a trace begins with a record of kind `run`",
    )


def test_a_directory_without_a_trace_is_no_run(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert (error.path, error.reason) == (tmp_path, "is no run: there is no trace.dig.jsonl in it")


@pytest.mark.parametrize("name", ["missing.dig.jsonl", "missing/trace.dig.jsonl"])
def test_a_file_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    """So is the directory in which it would be."""
    error = refusal(tmp_path / name)
    assert error.line is None
    assert re.fullmatch(r".*\.dig\.jsonl: cannot be read: No such file or directory", str(error))


def test_a_directory_in_the_place_of_a_trace_is_named(tmp_path: Path) -> None:
    """What stands where the trace should be cannot be read."""
    (tmp_path / TRACE).mkdir()
    assert refusal(tmp_path).reason.startswith("cannot be read:")


def test_a_gigabyte_without_an_end_is_refused_at_the_cap(tmp_path: Path) -> None:
    """A line that never ends costs no more memory than the longest one that is allowed."""
    path = tmp_path / "zeros.dig.jsonl"
    with path.open("wb") as file:
        file.truncate(2**30)  # a hole: it takes no room on the disk
    tracemalloc.start()
    try:
        error = refusal(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error.line == 1
    assert error.reason.startswith(f"the line is longer than {reader.MOST_BYTES} bytes")
    assert peak < 3 * reader.MOST_BYTES


def test_a_line_beyond_the_cap_is_refused_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cap is one on lines, not on files; it counts the newline."""
    path = written(tmp_path / "trace.dig.jsonl", SMALL)
    lines = path.read_bytes().splitlines(keepends=True)
    longest = max(map(len, lines))
    for most in (longest, longest - 1):
        for module in (reader, json_text):
            monkeypatch.setattr(module, "MOST_BYTES", most)
        if most == longest:
            assert read_graph(path).t == len(SMALL) - 1
    assert refusal(path).line == 1 + [len(line) for line in lines].index(longest)
