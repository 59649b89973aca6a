"""`digmon why` for conversations, and `digmon bench whowhen`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.diagnosis.attribution.talks import history, write


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "chat.json", history(mistake_agent="Map_Expert", mistake_step="3"))


def test_a_conversation_is_explained(call: Any, file: Path) -> None:
    """The agent and the step are named first, in words; the status is 1."""
    status, out, err = call("why", file)
    assert (status, err) == (1, "")
    assert "Cause: Map_Expert, step 3 (suspected" in out
    assert "no probabilities" in out and "record" not in out
    assert len(out.splitlines()) <= 15


def test_each_source_has_a_line_of_json(call: Any, file: Path, tmp_path: Path) -> None:
    """A source that cannot be read is told on standard error, and the others go on."""
    bad = write(tmp_path / "bad.json", {"history": 3})
    status, out, err = call("why", file, bad, file, "--json")
    assert status == 2
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["source"]["name"] for row in rows] == ["chat", "chat"]
    assert "graph" not in rows[0]
    assert err.startswith("digmon: ") and "bad.json" in err


def test_a_layout_can_be_named(call: Any, file: Path) -> None:
    """`--as` is believed: a file read in another layout, or as a trace, is refused."""
    assert call("why", file, "--as", "whowhen")[0] == 1
    status, _, err = call("why", file, "--as", "messages")
    assert status == 2 and "says not who" in err
    assert call("why", file, "--as", "trace")[0] == 2


def test_the_graph_is_there_on_request(call: Any, file: Path) -> None:
    """`--graph` adds it to the document, and changes nothing else."""
    bare, full = (json.loads(call("why", file, "--json", *more)[1]) for more in ([], ["--graph"]))
    assert full.pop("graph")["subtasks"][0]["id"] == "s1"
    assert full == bare


@pytest.mark.parametrize("option", [["--try"], ["--good", "score.rmse<=2"]])
def test_a_conversation_is_no_run(call: Any, file: Path, option: list[str]) -> None:
    """It cannot be continued or judged."""
    status, _, err = call("why", file, *option)
    assert status == 2 and "is a conversation" in err


def test_the_task_can_be_given(call: Any, tmp_path: Path) -> None:
    """A list of messages has no task of its own; with one, the missing question counts."""
    rows = [{"from": one["name"], "content": one["content"]} for one in history()["history"]]
    path = write(tmp_path / "a.json", rows)
    without = json.loads(call("why", path, "--json")[1])
    with_task = json.loads(call("why", path, "--json", "--task", "Name the best cake of Arvo")[1])
    assert without["candidates"] != with_task["candidates"]
    (tmp_path / "right.txt").write_text("12")
    assert call("why", path, "--expected", f"@{tmp_path / 'right.txt'}")[0] == 1
    assert call("why", path, "--expected", "from-file")[0] == 2
    assert call("why", path, "--expected", "@nowhere")[0] == 2


def test_bench_whowhen_scores_and_fits(call: Any, tmp_path: Path) -> None:
    """Floors stand beside the answers; a fit is written, used, and told to be no measure."""
    for number in range(1, 7):
        labelled = history(mistake_agent="Map_Expert", mistake_step="3")
        write(tmp_path / f"{number}.json", labelled)
    status, out, _ = call("bench", "whowhen", tmp_path, "--official")
    assert status == 0
    assert "| last worker |" in out and "100.0 [61, 100]" in out and "By the benchmark's" in out
    weights = tmp_path / "weights.out"
    assert call("bench", "whowhen", tmp_path, "--fit", weights)[0] == 0
    assert json.loads(weights.read_text())["cases"] == 6
    out = call("bench", "whowhen", tmp_path, "--weights", weights, "--json")[1]
    assert "no measure" in json.loads(out)["notes"][0]
    answers = tmp_path / "answers.out"
    out = call("bench", "whowhen", tmp_path, "--folds", 3, "--json", "-o", answers)[1]
    assert json.loads(out)["repetitions"] == len(json.loads(answers.read_text())) == 5
