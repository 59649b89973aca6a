"""Stored runs for tests: traces of rows, and whole run directories."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.histories import arrive, deliver, emit, final, row, trace, turn
from tests.oracle import Row


def store(path: Path, rows: Iterable[Row]) -> Path:
    """Write a trace file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def directory(parent: Path, name: str, rows: Iterable[Row], **side: Any) -> Path:
    """Write a run directory, with a side file of these keys and a result with this `score`."""
    score = side.pop("score", None)
    store(parent / name / "trace.dig.jsonl", rows)
    (parent / name / "side.json").write_text(json.dumps({"execution": name, **side}))
    if score is not None:
        (parent / name / "result.json").write_text(json.dumps({"score": score}))
    return parent / name


def solved(*, tokens: int = 0, **fates: str) -> list[Row]:
    """`a` splits `p`; `b` solves `q`, `a` submits: an answer that is accepted."""
    usage = {"input_tokens": tokens, "output_tokens": 1, "model": "m"} if tokens else None
    work = turn(1, "v", "a", "q", p="consume")
    if usage:
        work[-1]["usage"] = usage
    return trace(
        arrive(0, "p", None, "a"),
        work,
        arrive(1, "q", "v", "b"),
        turn(2, "w", "b", "s", q=fates.get("q", "consume")),
        arrive(2, "s", "w", "a", "solution"),
        turn(3, "x", "a", "f", s="consume"),
        final(3, "f", "x"),
        deliver(3, "f", None),
        row(3, "finish", outcome="submitted"),
        task="adding",
    )


def hasty() -> list[Row]:
    """`a` splits `p`, and submits before `b` has done anything; healing sends it back."""
    return trace(
        arrive(0, "p", None, "a"),
        turn(1, "v", "a", "q m", p="consume"),
        [{**r, "to": ["b"]} for r in arrive(1, "q", "v", "")],
        [{**r, "to": ["a"]} for r in arrive(1, "m", "v", "")],
        deliver(1, "q", "b"),
        deliver(1.5, "m", "a"),
        turn(2, "w", "a", "f", m="consume"),
        final(2, "f", "w"),
        row(2, "finding", pattern="ET", stage=None, subject={"event": "f"},
            evidence={"unresolved": ["q"], "uncovered": []}),
        row(2, "heal", finding=12, action="reroute", event="f", to=["a"], note="q is open"),
        row(2, "redirect", event="f", to=["a"]),
        deliver(2.5, "f", "a"),
        turn(3, "x", "a", f="delay"),
        row(4, "leave", agent="b"),
    )  # fmt: skip


def late_twice() -> list[Row]:
    """Two events, of types `one` and `other`, are late at the same moment; no finding is stored."""
    return trace(
        arrive(0, "p", None, "a"),
        turn(1, "v", "a", "q m", p="consume"),
        emit(1, "q", "v", "b", "one"),
        emit(1, "m", "v", "c", "other"),
        row(500, "leave", agent="d"),
        agents="abcd",
        limits={"late_window_s": 60},
    )
