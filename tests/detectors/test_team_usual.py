"""What is usual for a team: the file, whose runs it fits, and what a monitor makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig.detectors import standard
from dig.detectors.team_usual import TeamUsual
from dig.detectors.usual import most_usual
from dig.detectors.watch import Watch
from dig.errors import SettingsError
from dig.graph.codec import encode
from dig.graph.records import FindingRow, Limits, Usual
from dig.traces.journal.reader import check_trace
from tests.helpers import CALM, Stage, answer, bodies, found_again, out, rows

OFTEN = Usual(100, {"ET message": (100, 3)})
TEAM = TeamUsual(("a", "b"), CALM, OFTEN)


def written(folder: Path, **changed: Any) -> Path:
    path = folder / "team.usual.json"
    path.write_text(json.dumps({**TEAM.to_json(), **changed}))
    return path


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = written(tmp_path)
    read = TeamUsual.read(path)
    assert (read.agents, read.limits, read.usual, read.path) == (("a", "b"), CALM, OFTEN, path)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"format": "digmon-trace"}, '`format` is not "digmon-usual"'),
        ({"version": 2}, "`version` is not 1"),
        ({"usual": None}, "`usual` is missing"),
        ({"usual": {"runs": -1, "counts": {}}}, "`runs` is -1; it must be at least 0"),
        ({"usual": {"runs": 9, "counts": {"ET": "often"}}}, '`usual` has "often" for "ET"'),
        ({"agents": "ab"}, '`agents` is "ab"; it must be a list'),
        ({"limits": {"reroute_limit": 0}}, "`reroute_limit` is 0; it must be at least 1"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_place_and_a_cure(
    tmp_path: Path, changed: dict[str, Any], why: str
) -> None:
    path = written(tmp_path, **changed)
    with pytest.raises(SettingsError) as refused:
        TeamUsual.read(path)
    told = str(refused.value)
    assert told.startswith(f"{path} is no file of what is usual: ")
    assert why in told and told.endswith("`digmon learn` makes one")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.json cannot be read: No such file"):
        TeamUsual.read(tmp_path / "none.json")
    (tmp_path / "torn.json").write_text('{"format":')
    with pytest.raises(SettingsError, match=r"torn\.json is not JSON"):
        TeamUsual.read(tmp_path / "torn.json")


def test_the_runs_of_the_team_get_the_counts_and_no_others() -> None:
    """An instance is its agent; thresholds belong to the team, since findings depend on them."""
    assert TEAM.of_team(["b", "a", "a#2"], CALM) is OFTEN
    with pytest.raises(SettingsError, match=r"1 agent \(a\) and not 2 agents \(a, b\): learn from"):
        TEAM.of_team("a", CALM)
    with pytest.raises(SettingsError, match=r"reroute_limit 7 and not"):
        TEAM.of_team("ab", Limits(reroute_limit=7))


def test_how_many_of_a_pattern_are_usual_follows_from_the_counts() -> None:
    """(1 + k) / (1 + n) > 0.05, for n of at least 19."""
    usual = Usual(100, {"CLA": (100, 50, 5, 4), "ET": (4,)})
    assert most_usual(usual) == {"CLA": 3}
    assert most_usual(Usual(18, {"CLA": (18, 18)})) == {}
    assert most_usual(Usual(19, {"CLA": (19, 1, 0)})) == {"CLA": 2}


def early(stage: Stage) -> Stage:
    """Two answers while work is open; nothing bounces them, the first is accepted."""
    stage.give("a")
    stage.turn("a", out("b", 1), out("a", 2))
    stage.turn("a", answer())
    return stage


def test_a_monitor_writes_the_counts_and_a_check_finds_the_same() -> None:
    """The counts stand in the trace's first record, so the usual ET is a notice in both."""
    stage = early(Stage(detectors=standard(), usual=OFTEN))
    [first] = rows(stage.sink[:1], "run")
    assert first.usual == OFTEN
    told: list[FindingRow] = rows(stage.sink, "finding")
    assert [(row.pattern, row.severity) for row in told] == [("ET", "notice")]
    watch = Watch(standard())
    found = [found for record in stage.sink for found in watch.feed(record)]
    assert [(one.pattern, one.severity) for one in found] == [("ET", "notice")]
    assert bodies(found) == found_again(stage.sink, Watch(standard()))


def test_a_check_takes_what_is_usual_from_a_file_if_it_is_of_the_team(tmp_path: Path) -> None:
    trace = tmp_path / "run.dig.jsonl"
    stage = early(Stage(detectors=standard()))
    trace.write_text("".join(encode(record) + "\n" for record in stage.sink))
    plain = [one.severity for one in check_trace(trace, Watch(standard()))]
    told = [one.severity for one in check_trace(trace, Watch(standard()), usual=TEAM)]
    assert (plain, told) == (["error"], ["notice"])
    other = TeamUsual(("a", "z"), CALM, OFTEN)
    with pytest.raises(SettingsError, match=r"\(a, b\) and not 2 agents \(a, z\)"):
        list(check_trace(trace, Watch(standard()), usual=other))
