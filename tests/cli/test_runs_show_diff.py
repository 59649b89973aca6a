"""`digmon runs`, `show` and `diff`: what they print, and how they exit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig.graph.records import End
from dig.traces.journal.reader import read_records
from tests import failing
from tests.diagnosis.failed_runs import failed
from tests.traces.runs import directory, hasty, solved, store


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    directory(tmp_path / "runs", "r1", solved(), method="dig", score={"rmse": 2.0})
    directory(tmp_path / "runs", "r2", hasty(), method="mas")
    directory(tmp_path / "runs", "r3", solved()[:3] + solved()[4:], method="dig")
    return tmp_path / "runs"


# --- runs ---


def test_runs_lists_them(call: Any, runs: Path) -> None:
    code, out, err = call("runs", runs)
    assert (code, err) == (0, "")
    lines = [line for line in out.splitlines() if not line.startswith("  ")]
    assert [line.split()[0] for line in lines[1:4]] == ["r1", "r2", "r3"]
    assert "Wrong answer" in lines[1]
    assert "Goes on" in lines[2]
    assert "ET:1" in lines[2]
    assert "broken" in lines[3]
    assert max(map(len, lines[:4])) <= 80


def test_runs_as_json_is_one_object_a_line(call: Any, runs: Path) -> None:
    code, out, _ = call("runs", runs, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [row["state"] for row in rows] == ["ended", "in progress", "broken"]
    assert rows[0]["method"] == "dig"
    assert rows[0]["score"] == {"rmse": 2.0}
    assert rows[1]["findings"] == {"ET": 1}


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (("--method", "dig"), ["r1", "r3"]),
        (("--task", "adding", "--outcome", "submitted"), ["r1"]),
        (("--outcome", "in progress"), ["r2"]),
        (("--pattern", "ET"), ["r2"]),
        (("--pattern", "ET", "--pattern", "DL"), []),
        (("--agents", "3", "--sort", "name", "--reverse"), ["r3", "r2", "r1"]),
    ],
)
def test_runs_can_be_filtered_and_sorted(
    call: Any, runs: Path, options: tuple[str, ...], left: list[str]
) -> None:
    _, out, _ = call("runs", runs, "--json", *options)
    assert [Path(json.loads(line)["path"]).name for line in out.splitlines()] == left


def test_no_runs_is_an_answer_too(call: Any, runs: Path) -> None:
    (runs.parent / "empty").mkdir()
    code, out, _ = call("runs", runs.parent / "empty")
    assert (code, out.strip().endswith("no runs")) == (0, True)
    assert "none of 3 runs is such a one" in call("runs", runs, "--task", "x")[1]


def test_a_verdict_may_be_written_in_any_case_and_one_that_is_not_there_names_those_that_are(
    call: Any, runs: Path
) -> None:
    everything = [json.loads(line) for line in call("runs", runs, "--json")[1].splitlines()]
    verdicts = sorted({run["verdict"] or run["state"] for run in everything})
    [first, *_] = verdicts
    chosen = call("runs", runs, "--json", "--verdict", first.upper())[1].splitlines()
    assert {json.loads(line)["verdict"] or json.loads(line)["state"] for line in chosen} == {first}
    assert f"; verdicts: {', '.join(verdicts)}" in call("runs", runs, "--verdict", "x")[1]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [(("nothing",), "No such file"), ((".", "--sort", "colour"), "sorted by 'colour'")],
)
def test_runs_refuses_what_makes_no_sense(
    call: Any, arguments: tuple[str, ...], reason: str
) -> None:
    code, out, err = call("runs", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err


# --- show ---


def test_show_explains_a_run_and_what_is_in_it(call: Any, runs: Path) -> None:
    for name, begins in [(None, "run r"), ("f", "event f"), ("w", "activation w of a"),
                         ("b", "agent b"), ("12", "error ET: answer f")]:  # fmt: skip
        code, out, err = call("show", runs / "r2", *([name] if name else []))
        assert (code, err) == (0, "")
        assert out.startswith(begins)
        assert max(map(len, out.splitlines())) <= 80
        _, out, _ = call("show", runs / "r2", *([name] if name else []), "--json")
        assert json.loads(out)["what"] in ("run", "event", "activation", "agent", "finding")


def test_show_refuses_what_is_not_there(call: Any, runs: Path) -> None:
    for arguments in ((runs / "r2", "zed"), (runs / "r3",), (runs / "r9",)):
        code, out, err = call("show", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)


# --- diff ---


def test_diff_exits_with_0_if_the_behaviour_is_the_same(call: Any, runs: Path) -> None:
    other = store(runs.parent / "other.dig.jsonl", solved(tokens=7))
    code, out, err = call("diff", runs / "r1", other)
    assert (code, err) == (0, "")
    assert out.startswith("the same behaviour (causally)\n")
    assert "input_tokens" in out
    assert call("diff", runs / "r1", other, "--strict")[0] == 0


def test_diff_exits_with_1_if_it_is_not_and_says_where(call: Any, runs: Path) -> None:
    code, out, _ = call("diff", runs / "r1", runs / "r2")
    assert code == 1
    assert "first divergence:" in out
    code, out, _ = call("diff", runs / "r1", runs / "r2", "--json")
    assert (code, json.loads(out)["same"]) == (1, False)


def test_diff_exits_with_2_if_a_run_cannot_be_read(call: Any, runs: Path) -> None:
    for pair in ((runs / "r1", runs / "r3"), (runs / "r9", runs / "r1")):
        code, out, err = call("diff", *pair)
        assert (code, out, err.count("\n")) == (2, "", 1)


def test_diff_exits_with_2_if_time_is_up(call: Any, tmp_path: Path) -> None:
    """That nobody knows is not that they are different."""
    from dig.show.compare import golden
    from tests.graph.test_behaviour import cycles

    golden.write(cycles(6, 6), tmp_path / "a")
    golden.write(cycles(12), tmp_path / "b")
    code, out, err = call("diff", tmp_path / "a", tmp_path / "b", "--limit", "1e-9")
    assert (code, out) == (2, "")
    assert "were not enough to compare" in err
    assert call("diff", tmp_path / "a", tmp_path / "b")[0] == 1
    assert call("diff", tmp_path / "a", tmp_path / "b", "--limit", "0")[0] == 2


def test_diff_of_a_fork_shows_both_runs_side_by_side(call: Any, tmp_path: Path) -> None:
    """From the first record that differs: what each agent decided, in columns; and no more rows."""
    run = failed(tmp_path)
    end = next(r for r in read_records(run) if isinstance(r, End) and r.fates)
    status, out, _ = call("fork", run, "--at", end.t, "--edit", '{"fates": [], "outputs": []}',
                          "--runs", tmp_path / "forks", "--json")  # fmt: skip
    assert status == 1
    code, out, _ = call("diff", run, json.loads(out)["directory"])
    assert code == 1
    lines = out.splitlines()
    place = lines.index(f"the same up to record {end.t - 1}; then")
    assert lines[place + 1].split() == ["s", "A", "B"]
    assert lines[place + 2].rstrip().endswith("agent-1 only waited")
    assert "agent-1 used e1 and sent" in lines[place + 2]
    other = failed(tmp_path, seed=3)
    assert "the same up to record" not in call("diff", run, other)[1]


# --- what failed, and what waits ---


@pytest.fixture
def troubled(tmp_path: Path) -> Path:
    runs = {
        "failed": failing.failed(),
        "resumed": failing.waiting(is_resumed=True),
        "waits": failing.waiting(),
    }
    for name, rows in runs.items():
        directory(tmp_path / "runs", name, rows, began="2026-01-02T10:00:00+00:00")
    return tmp_path / "runs"


def test_a_list_of_runs_tells_what_failed_and_how_many_wait(call: Any, troubled: Path) -> None:
    """The second time, too, when the index knows the runs."""
    for _ in range(2):
        lines = call("runs", troubled)[1].splitlines()
        assert f"  Failed: {failing.FAILED}." in lines
        rows = [json.loads(line) for line in call("runs", troubled, "--json")[1].splitlines()]
        assert [row["headline"] for row in rows] == [
            f"Failed: {failing.FAILED}.", "Goes on, 9.0 s so far.",
            "Waits since 2026-01-02 10:00 UTC: "
            "`buyer` waits for a person or for another system.",
        ]  # fmt: skip
        assert [len(row["waits"]) for row in rows] == [0, 0, 1]


def test_what_waits_for_a_person_is_listed_with_since_when(call: Any, troubled: Path) -> None:
    """A row an activation in progress; one that went on does not wait any more."""
    code, out, err = call("runs", troubled, "--waiting")
    since = "2026-01-02T10:00:03.500000+00:00"
    assert (code, out, err) == (
        0, f"since {since}: `buyer` of run waits: Buy the tickets\n", "",
    )  # fmt: skip
    (line,) = call("runs", troubled, "--waiting", "--json")[1].splitlines()
    assert json.loads(line) == {
        "run": "waits", "activation": "a1", "agent": "buyer", "since": since, "since_s": 3.5,
        "request": "Buy the tickets",
    }  # fmt: skip


def test_a_run_without_a_date_tells_its_own_time(call: Any, tmp_path: Path) -> None:
    store(tmp_path / "w.dig.jsonl", failing.waiting())
    assert "since 3.5 s after the beginning: `buyer`" in call("runs", tmp_path, "--waiting")[1]


def test_where_nothing_waits_that_is_said(call: Any, runs: Path) -> None:
    assert "nothing waits for a person" in call("runs", runs, "--waiting")[1]
    assert call("runs", runs, "--waiting", "--json")[1] == ""


def test_show_begins_with_the_headline(call: Any, troubled: Path) -> None:
    """As text below the name of the run, as JSON in the verdict."""
    text = " ".join(" ".join(call("show", troubled / "failed")[1].splitlines()[1:3]).split())
    assert text == f"verdict: Failed: {failing.FAILED}."
    shown = json.loads(call("show", troubled / "failed", "--json")[1])
    assert shown["answers"][0] == ["verdict", f"Failed: {failing.FAILED}."]


def test_the_name_of_a_run_is_enough_beside_its_directory_of_runs(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of a written report have no path; what lies here comes first."""
    directory(tmp_path / "runs", "mine", failing.failed())
    monkeypatch.chdir(tmp_path)
    for command in (["show", "mine", "p"], ["check", "mine"], ["why", "mine"], ["show", "mine"]):
        code, out, err = call(*command)
        assert code in (0, 1) and out and not err, command
    directory(tmp_path, "mine", failing.partial())
    assert "Incomplete answer" in call("show", "mine")[1]
    assert call("show", "other")[0] == 2
