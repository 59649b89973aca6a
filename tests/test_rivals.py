"""The contest with other tools: dig finds every failure, and is quiet about healthy teams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import rivals
from bench.streams import OUTSIDE, Stream, streams

PAGE = Path(__file__).parents[1] / "docs" / "comparison.md"
STREAMS = [*streams()]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """The scores of dig, imported and live."""
    return rivals.contest(("dig, imported", "dig, live"))


@pytest.mark.parametrize("way", ["dig, imported", "dig, live"])
def test_dig_finds_every_failure_and_raises_no_false_alarm(
    rows: list[dict[str, Any]], way: str
) -> None:
    """Each culprit is named, in an alarm or a notice."""
    scores = {row["stream"]: row["scores"][way] for row in rows}
    missed = [stream.name for stream in STREAMS if stream.failure]
    missed = [name for name in missed if scores[name]["found"] is None]
    false = {name: score["false"] for name, score in scores.items() if score["false"]}
    assert (missed, false) == ([], {})
    assert rivals.totals(rows, way) == {
        "found": 17, "missed": 0, "false": 0, "healthy": 0,
        "lines": sum(score["lines"] for score in scores.values()),
    }  # fmt: skip


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs")
@pytest.mark.parametrize("way", ["dig, imported", "dig, live"])
def test_the_page_has_the_figures(rows: list[dict[str, Any]], way: str) -> None:
    """Those of dig, the numbers of streams among them; the others are not here."""
    page, score = PAGE.read_text("utf-8"), rivals.totals(rows, way)
    assert score is not None
    assert f"| {way} | {' | '.join(map(str, score.values()))} |" in page
    assert f"makes {len(STREAMS)} message streams" in page


def test_lost_reports_are_an_alarm_that_names_no_other_worker() -> None:
    """The four whose reports were not read, and the lead."""
    (spawner,) = [stream for stream in STREAMS if "4 reports" in stream.name]
    for way in (rivals.dig_imported, rivals.dig_live):
        (names,) = way(spawner).alarms
        assert names - {"lead"} == spawner.culprits


@pytest.mark.parametrize("stream", STREAMS, ids=[stream.name for stream in STREAMS])
def test_a_stream_is_in_order_and_made_by_its_seed(stream: Stream) -> None:
    """Each message replies to earlier ones that have reached its sender."""
    assert stream in streams()
    received: dict[str, set[str]] = {}
    for before, message in zip((None, *stream.messages), stream.messages, strict=False):
        assert before is None or before.at <= message.at
        assert {*message.replies_to} <= received.get(message.sender, set())
        for name in {*message.to} - {OUTSIDE}:
            received.setdefault(name, set()).add(message.id)


def test_a_tool_is_scored_by_the_names_in_its_alarms_and_notices() -> None:
    """An alarm that names no culprit is false; so is each on a healthy stream."""
    sick = Stream("s", "a ring", frozenset("ab"), ())
    ab, c = frozenset("ab"), frozenset("c")
    assert rivals.Report([ab, c], []).score(sick) | {"lines": 0} == {
        "found": "alarm", "false": 1, "notices": 0, "lines": 0,
    }  # fmt: skip
    assert rivals.Report([], [ab]).score(sick)["found"] == "notice"
    assert rivals.Report([frozenset("a")], [c]).score(sick)["found"] is None
    healthy = rivals.Report([ab], [c]).score(Stream("h", "", frozenset(), ()))
    assert (healthy["found"], healthy["false"], healthy["notices"]) == (None, 1, 1)


def test_a_tool_that_is_not_installed_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table says how to install it, and the others are scored."""
    monkeypatch.setattr(rivals, "find_spec", lambda name: None)
    monkeypatch.setattr(rivals, "streams", lambda: STREAMS[:1])
    rivals.main([])
    printed = capsys.readouterr().out
    assert "not installed: pip install agentsonar==0.7.0 looptrip==0.1.2" in printed
    rivals.main(["--json"])
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert row["scores"]["AgentSonar"] is None and row["scores"]["dig, live"]["found"] == "notice"
