"""AG2, wrapped: what the docs and the example show."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from .ag2_teams import CHAIN, PAIR, Team
from .conformance import example, lines_of
from .harness import Script


def test_the_example_shows_both_failures_and_both_cures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    round_and_round, paid, silence, text = example("ag2", tmp_path, capsys, "ER", "MC")
    assert round_and_round == "none: max_turns"
    assert paid == "Paid back."
    assert silence == "none: nobody speaks"
    assert text == "A text about rain."


def test_the_lines_in_the_docs_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, *_ = lines_of("wrapping-ag2.md")
    acts = {"planner": CHAIN["ann"], "writer": CHAIN["bob"]}

    async def drive() -> None:
        async with Team(Script(), acts) as team:
            knobs = {"graph": team.graph(("user", "planner"), ("planner", "writer"))}
            names: dict[str, Any] = {"hub": team.hub, "user": team.user, "knobs": knobs}
            await eval(lines, names)
            assert names["channel"].metadata.knobs == knobs
            assert len(await team.workflow(*_named(PAIR))) == 3

    monkeypatch.chdir(tmp_path)
    asyncio.run(drive())
    assert len([*tmp_path.glob("runs/*/result.json")]) == 1


def _named(pairs: Any) -> Any:
    names = {"user": "user", "ann": "planner", "bob": "writer"}
    return [(names[first], names[second]) for first, second in pairs]
