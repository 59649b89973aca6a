"""`digmon why` for conversations, and `python -m bench.whowhen`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.whowhen.__main__ import main
from tests.diagnosis.conversations.talks import history, write
from tests.diagnosis.stages.test_pipeline import script
from tests.llm.server import fails, serving
from tests.show.page.pages import inlined


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark of conversations, to be called with its arguments."""

    def call(*arguments: Any) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["bench", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return (int(ended.value.code or 0), *capsys.readouterr())

    return call


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
    assert status == 2 and "does not say who" in err
    assert call("why", file, "--as", "trace")[0] == 2


def test_fewer_candidates_can_be_listed(call: Any, file: Path) -> None:
    """`--top` lists the first ones, and a note counts the others."""
    row = json.loads(call("why", file, "--top", 2, "--by", "attribution", "--json")[1])
    assert [one["rank"] for one in row["candidates"]] == [1, 2]
    assert row["notes"][-1] == "3 further candidates not listed"


def test_the_graph_is_there_on_request(call: Any, file: Path) -> None:
    """`--graph` adds it to the document, and changes nothing else."""
    bare, full = (json.loads(call("why", file, "--json", *more)[1]) for more in ([], ["--graph"]))
    assert full.pop("graph")["subtasks"][0]["id"] == "s1"
    assert full == bare


@pytest.mark.parametrize(
    "option", [["--try"], ["--good", "score.rmse<=2"], ["--by", "signs"], ["--peers", "."]]
)
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


def test_bench_whowhen_scores_and_fits(bench: Any, tmp_path: Path) -> None:
    """Floors stand beside the answers; a fit is written, used, and told to be no measure."""
    for number in range(1, 7):
        labelled = history(mistake_agent="Map_Expert", mistake_step="3")
        write(tmp_path / f"{number}.json", labelled)
    status, out, _ = bench(tmp_path, "--official")
    assert status == 0
    assert "| last worker |" in out and "100.0 [61, 100]" in out and "By the benchmark's" in out
    weights = tmp_path / "weights.out"
    assert bench(tmp_path, "--fit", weights)[0] == 0
    assert json.loads(weights.read_text())["cases"] == 6
    out = bench(tmp_path, "--weights", weights, "--json")[1]
    assert "no measure" in json.loads(out)["notes"][0]
    answers = tmp_path / "answers.out"
    out = bench(tmp_path, "--folds", 3, "--json", "-o", answers)[1]
    assert json.loads(out)["repetitions"] == len(json.loads(answers.read_text())) == 5


@pytest.mark.parametrize("more", [[], ["--method", "all-at-once"]])
def test_a_model_is_asked(call: Any, file: Path, more: list[str]) -> None:
    """The document names model and method, and what it cost; the status stays 1."""
    with serving(script()) as server:
        status, out, _ = call(
            "why", file, "--model", "m", "--base-url", server.url, "--json", *more
        )
    row = json.loads(out)
    assert (status, row["model"]) == (1, "m")
    assert row["method"] == (more or ["model"])[-1]
    assert row["cost"]["model_calls"] == len(server.requests) > 0
    assert "ground_truth" not in str(server.requests) and "12" not in str(server.requests)


def test_a_stage_that_fails_is_an_error_if_it_is_to_be(call: Any, file: Path) -> None:
    """`--strict`: status 2, and nothing on standard output."""
    with serving([fails(500, "oops")]) as server:
        options = ["--model", "m", "--base-url", server.url, "--request-timeout", 5]
        status, out, err = call("why", file, *options, "--strict")
    assert (status, out) == (2, "")
    assert "the stage 'plan' failed" in err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--max-tokens", 5], "name it with --model"),
        (["--method", "model"], "name it with --model"),
        (["--model", "m", "--method", "structural"], "leave --model out"),
        (["--model", "m", "--base-url", "nowhere"], "no address"),
        (["--model", "m", "--exemplars", "nowhere"], "cannot be read"),
    ],
)
def test_options_that_contradict_each_other(
    call: Any, file: Path, options: list[Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 2, and a sentence that says what to do."""
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 10)
    status, _, err = call("why", file, *options)
    assert status == 2 and why in err


def test_bench_whowhen_asks_a_model(bench: Any, tmp_path: Path) -> None:
    """The table names model and method, and tells tokens a case."""
    write(tmp_path / "1.json", history(mistake_agent="Map_Expert", mistake_step="1"))
    with serving(script()) as server:
        options = ["--model", "m", "--base-url", server.url, "--max-tokens", 9000]
        _, out, _ = bench(tmp_path, *options)
    assert "| m: model | 100.0" in out and "6 requests, 660 tokens a case" in out


def test_a_report_is_a_page_of_the_conversation(call: Any, file: Path, tmp_path: Path) -> None:
    """It has the answer that is printed, which is the same with it; it is about one source."""
    page = tmp_path / "page.html"
    status, out, _ = call("why", file, "--json", "--report", page)
    assert status == 1 and out == call("why", file, "--json")[1]
    finding = next(r for r in inlined(page.read_text("utf-8"))["rows"] if r["kind"] == "finding")
    answer = json.loads(out)["answer"]
    assert finding["title"] == f"Cause: {answer['agent']}, step {answer['step']}"
    status, _, err = call("why", file, file, "--report", page)
    assert status == 2 and "one source" in err
