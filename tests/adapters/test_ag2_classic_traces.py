"""AG2 classic, wrapped: what the docs and the example show."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")


from .ag2_classic_asked import group
from .conformance import example, lines_of
from .harness import Script


def test_the_example_shows_both_failures_and_both_cures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert example("ag2_classic", tmp_path, capsys, "ER", "ET") == [
        "billing: None",
        "refunds: Paid back.",
        "shipping: Sent again.",
        "shipping: Sent again, and billing will pay you back.",
    ]


def test_the_lines_in_the_docs_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, *_ = lines_of("wrapping-ag2-classic.md")
    built = group(Script())
    names: dict[str, Any] = {"manager": built.first, "user": built.user}
    monkeypatch.chdir(tmp_path)

    async def drive() -> None:
        await eval(lines, names)

    asyncio.run(drive())
    assert built.first.groupchat.messages[-1]["content"] == "C TERMINATE"
    assert len([*tmp_path.glob("runs/*/result.json")]) == 1
