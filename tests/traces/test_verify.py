"""The independent checker: silent about what is sound, and loud about what is not."""

from __future__ import annotations

import ast
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dig.errors import TraceError
from dig.graph.codec import to_row
from dig.traces import verify as package
from dig.traces.journal.reader import read_graph
from dig.traces.verify import VerificationReport, verify
from tests.chaos import chaos_run
from tests.random_traces import BREAKERS, break_trace, random_trace

from .journals import LARGE, journalled, reseal, rows_of, story, write

Rows = list[dict[str, Any]]


def plain(path: Path, rows: Rows) -> VerificationReport:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return verify(path)


def test_it_shares_no_code_with_what_it_checks() -> None:
    """It imports the standard library and itself."""
    for file in Path(package.__file__ or "").parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert all(alias.name in sys.stdlib_module_names for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert (node.module or "").split(".")[0] in sys.stdlib_module_names


def test_sound_traces_are_sound(tmp_path: Path) -> None:
    for seed in range(150):
        rows = random_trace(random.Random(seed))
        report = plain(tmp_path / "t.dig.jsonl", rows)
        assert report.problems == [], f"random_trace({seed})"
        assert report.records == len(rows)


@pytest.mark.parametrize("kind", BREAKERS)
def test_a_broken_trace_is_told_at_its_line(tmp_path: Path, kind: str) -> None:
    seen = 0
    for seed in range(60):
        try:
            broken, index, _ = break_trace(
                random.Random(seed), random_trace(random.Random(seed)), [kind]
            )
        except ValueError:
            continue
        seen += 1
        report = plain(tmp_path / "t.dig.jsonl", broken)
        assert [problem.line for problem in report.problems[:1]] == [index + 1], seed
        if seen == 5:
            break
    assert seen


@pytest.mark.parametrize(
    ("at", "change"),
    [
        (0, {"run": 7}),
        (0, {"version": True}),
        (0, {"ts": 2e15}),
        (0, {"limits": {"activation_limit_s": 2e15}}),
        (1, {"type": None}),
        (1, {"type": ["problem"]}),
        (1, {"payload": 1e400}),
        (4, {"fates": {}}),
        (4, {"outputs": ["e2", "e2"]}),
        (4, {"outputs": ["e1"]}),
        (4, {"outputs": ["a1"]}),
        (4, {"outputs": ["system"]}),
        (5, {"to": [1]}),
        (5, {"kind": "incident", "what": 7, "detail": None}),
    ],
)
def test_what_the_reader_refuses_is_refused(
    tmp_path: Path, at: int, change: dict[str, Any]
) -> None:
    """Even where nothing follows that would not fit it."""
    rows = [to_row(record) for record in story()][: at + 1]
    path = tmp_path / "t.dig.jsonl"
    assert plain(path, rows).problems == []
    broken = [*rows[:-1], {**rows[at], **change}]
    line = json.dumps(broken[-1]).replace("Infinity", "1e400")
    path.write_text("".join(json.dumps(row) + "\n" for row in broken[:-1]) + line + "\n")
    with pytest.raises(TraceError):
        read_graph(path)
    assert [problem.line for problem in verify(path).problems] == [at + 1]


def test_whatever_a_team_does_its_journal_is_sound(tmp_path: Path) -> None:
    """With gates, delivery policies, scripts, healing, sessions."""
    for seed in range(40):
        report = verify(journalled(chaos_run(seed, heal=seed % 2 == 0), tmp_path))
        assert report.problems == [], f"chaos_run({seed})"
        assert report.is_journal and report.outcome
        assert sum(report.work.values()) > 0


def test_a_journal_that_was_cut_off_is_sound_as_far_as_it_goes(tmp_path: Path) -> None:
    path = journalled(chaos_run(22, heal=True), tmp_path)
    rows = rows_of(path)
    for count in range(1, len(rows)):
        report = verify(reseal(path, rows[:count]))
        assert (report.problems, report.outcome, report.records) == ([], None, count)


# --- what a journal promises ---


def run_row() -> dict[str, Any]:
    return {
        "t": 0, "ts": 0.0, "kind": "run", "version": 1, "run": "r", "agents": ["a", "b"],
        "journal": {"version": 1, "budget": {"per_run": 1, "per_pattern": 1, "per_subject": 1,
                                            "per_problem": 1}},
    }  # fmt: skip


def emit(event: str, by: str | None, *to: str, **more: Any) -> dict[str, Any]:
    return {
        "ts": 0.0, "kind": "emit", "event": event, "by": by, "to": list(to), "type": "problem",
        "final": False, **more,
    }  # fmt: skip


def deliver(event: str, to: str | None) -> dict[str, Any]:
    return {"ts": 0.0, "kind": "deliver", "event": event, "to": to}


def found(number: int) -> dict[str, Any]:
    subject = {"event": f"e{number}"}
    return {"ts": 0.0, "kind": "finding", "pattern": "X", "stage": None, "subject": subject,
            "evidence": {}}  # fmt: skip


def heal(t: int, action: str = "inject", event: str | None = "e1", **more: Any) -> dict[str, Any]:
    return {"ts": 0.0, "kind": "heal", "finding": t, "action": action, "event": event,
            "note": "n", **more}  # fmt: skip


def redirect(event: str, to: str, ts: float) -> dict[str, Any]:
    return {"ts": ts, "kind": "redirect", "event": event, "to": [to]}


ANSWER = [
    emit("e1", None, "a"),
    deliver("e1", "a"),
    {"ts": 0.0, "kind": "start", "activation": "a1", "agent": "a", "inputs": ["e1"]},
    {"ts": 0.0, "kind": "end", "activation": "a1", "fates": [{"event": "e1", "fate": "consume"}],
     "outputs": ["e2"]},
    emit("e2", "a1", final=True, payload=7),
    deliver("e2", None),
]  # fmt: skip


def finish(answer: Any, outcome: str = "submitted") -> dict[str, Any]:
    return {"ts": 0.0, "kind": "finish", "outcome": outcome, "answer": answer}


PROMISES: dict[str, tuple[Rows, int, str]] = {
    "order": (
        [emit("e1", None, "a"), emit("e2", None, "a"), deliver("e2", "a"), deliver("e1", "a")],
        4,
        "'e2' reaches 'a' before 'e1'",
    ),
    "reroute without effect": (
        [emit("e1", None, "a"), found(1), heal(2, "reroute", to=["b"]), deliver("e1", "a")],
        5,
        "the `redirect` of 'e1' that healing promised is missing",
    ),
    "another effect": (
        [found(1), heal(1, "create", "e1", to=["b"]), emit("e1", "system", "a")],
        4,
        "the `emit` of 'e1' that healing promised is missing",
    ),
    "replace without effect": (
        [found(1), heal(1, "replace", None, to=["b"]), emit("e1", None, "a")],
        4,
        "the `leave` of ['b'] that healing promised is missing",
    ),
    "restart without effect": (
        [emit("e1", None, "a"), found(1), heal(2, "restart", to=["b"]), deliver("e1", "a")],
        5,
        "the `redirect` of 'e1' that healing promised is missing",
    ),
    "budget of a problem": (
        [
            emit("e1", None, "a"),
            deliver("e1", "a"),
            found(1),
            heal(3, "reassign", to=["b"]),
            redirect("e1", "b", 0.0),
            heal(3, "reassign", to=["c"], ts=1.0),
            redirect("e1", "c", 1.0),
        ],
        7,
        "beyond its budget: per_problem is 1",
    ),
    "budget": ([found(1), found(2), heal(1), heal(2)], 5, "beyond its budget: per_pattern is 1"),
    "answer": ([*ANSWER, finish(8)], 8, "not what the accepted event carries"),
    "no answer": ([*ANSWER[:-1], finish(None)], 7, "none was accepted"),
}


@pytest.mark.parametrize("name", PROMISES)
def test_a_promise_of_the_monitor_that_is_broken_is_told(tmp_path: Path, name: str) -> None:
    rows, line, what = PROMISES[name]
    numbered = [{**row, "t": t} for t, row in enumerate([run_row(), *rows])]
    report = verify(reseal(tmp_path / "j.dig.jsonl", numbered))
    assert [problem.line for problem in report.problems] == [line]
    assert what in report.problems[0].what
    bare = [{k: v for k, v in row.items() if k != "journal"} for row in numbered]
    assert plain(tmp_path / "p.dig.jsonl", bare).problems == [], "a plain trace promises nothing"


def test_what_keeps_its_promises_is_sound(tmp_path: Path) -> None:
    rows = [*ANSWER[:-1], found(2), heal(6), *ANSWER[-1:], finish(7)]
    numbered = [{**row, "t": t} for t, row in enumerate([run_row(), *rows])]
    assert verify(reseal(tmp_path / "j.dig.jsonl", numbered)).problems == []


# --- damage ---


@pytest.mark.sampled(4)
@pytest.mark.parametrize("offset", range(0, 28, 7))
def test_every_flipped_bit_is_told_at_its_line(tmp_path: Path, offset: int) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    for at in range(offset, 8 * len(whole), 28):
        data = bytearray(whole)
        data[at // 8] ^= 1 << at % 8
        path.write_bytes(data)
        (problem,) = verify(path).problems
        assert problem.line in (whole[: at // 8].count(b"\n") + 1, None)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda blob: blob.unlink(), "cannot be read"),
        (lambda blob: blob.write_text("1"), "is damaged"),
    ],
)
def test_a_payload_beside_the_trace_is_checked_too(
    tmp_path: Path, spoil: Callable[[Path], Any], what: str
) -> None:
    path = write(tmp_path, story(LARGE))
    assert verify(path).problems == []
    (blob,) = (tmp_path / "blobs").iterdir()
    spoil(blob)
    assert what in verify(path).problems[0].what


def test_a_torn_tail_is_told_with_its_size(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    report = verify(path)
    assert report.torn_bytes > 0
    assert "torn last record" in report.problems[0].what
    assert report.records == len(story()) - 1
