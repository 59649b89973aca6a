"""`digmon bench`: what it prints, and how it exits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dig.lab.benchmark import attributing, candidates, storing
from dig.lab.benchmark.answer_file import Answers
from dig.lab.benchmark.instances import FaultSet
from tests.lab.faults.conftest import SMALL

FEW = 8
EVERYBODY = ("random", "earliest_deviation", "rules")


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> FaultSet:
    """A set with runs of two configurations; its size is of no account here."""
    path = tmp_path_factory.mktemp("sets") / "few"
    storing.make_set(path, replace(SMALL, count=FEW))
    return FaultSet.open(path)


def test_help_says_that_speed_is_measured_elsewhere(call: Any) -> None:
    """`make bench` is something else."""
    code, out, _ = call("bench", "--help")
    assert code == 0
    assert "make bench" in " ".join(out.split())
    assert all(word in out for word in ("make", "score", "attribute", "detectors", "healing"))


def test_the_schema_is_printed(call: Any) -> None:
    """As JSON, and nothing else."""
    code, out, err = call("bench", "schema")
    assert (code, err) == (0, "")
    assert json.loads(out) == Answers.model_json_schema()


def test_experiments_tell_the_culprit_from_the_others(
    call: Any, few: FaultSet, tmp_path: Path
) -> None:
    """The culprit's seat helps, other seats and a change of nothing never do; twice the same."""
    texts = []
    for jobs in (1, 2):
        out = tmp_path / f"verdicts-{jobs}.json"
        status, said, _ = call("bench", "try", few.path, "-o", out, "--jobs", jobs, "--count", 2)
        assert status == 0 and said.startswith("## Experiments on runs whose cause is known")
        found = json.loads(out.read_text())
        rows = [row for row in found["instances"] if not row["why_not"]]
        assert len(found["instances"]) == 2 and rows
        for row in rows:
            assert row["named"] == row["culprit"]
            others = {
                place: row["verdicts"][place] for place in row["verdicts"].keys() - {"culprit"}
            }
            assert "validated" not in others.values()
        texts.append([{key: value for key, value in row.items() if key != "cpu_s"} for row in rows])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", EVERYBODY)
def test_attribute_and_score(call: Any, few: FaultSet, tmp_path: Path, name: str) -> None:
    """The answers of each attributor can be scored, as a table and as JSON."""
    answers = tmp_path / "answers.json"
    code, out, err = call("bench", "attribute", name, few.path, "-o", answers)
    assert (code, out) == (0, f"{FEW} answers in {answers}\n")
    assert err.splitlines()[-1] == f"{FEW} of {FEW} answers"
    code, out, _ = call("bench", "score", answers, few.path)
    assert code == 0
    assert out.startswith(f"## Answers by {name}\n")
    code, out, _ = call("bench", "score", answers, few.path, "--json")
    found = json.loads(out)
    assert found["by"] == name
    assert found["strata"]["all"]["f1"]["count"] == FEW


def test_exchanged_labels_give_other_scores(call: Any, few: FaultSet, tmp_path: Path) -> None:
    """`--shuffle` says what is left by chance, the same for the same seed."""
    answers = tmp_path / "answers.json"
    call("bench", "attribute", "earliest_deviation", few.path, "-o", answers)

    def scored(*more: object) -> Any:
        return json.loads(call("bench", "score", answers, few.path, "--json", *more)[1])["runs"]

    once = scored("--shuffle", 1)
    assert once == scored("--shuffle", 1) != scored()


def test_bad_answers_are_refused_in_one_line(call: Any, few: FaultSet, tmp_path: Path) -> None:
    """Exit status 2, and the place in the file."""
    answers = tmp_path / "answers.json"
    answers.write_text('{"answers": {"i0001": {"root_causes": [{"component": "a"}]}}}')
    code, out, err = call("bench", "score", answers, few.path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "answers.i0001.root_causes[0].kind: field required" in err


def test_what_is_no_set_is_refused(call: Any, tmp_path: Path) -> None:
    """With what would make one."""
    for command in (["detectors"], ["healing"], ["score", tmp_path / "a.json"]):
        if command[0] == "score":
            (tmp_path / "a.json").write_text('{"answers": {}}')
        code, _, err = call("bench", *command, tmp_path)
        assert code == 2
        assert "digmon bench make" in err


def test_detectors_and_healing_print_tables_or_json(call: Any, few: FaultSet) -> None:
    """The same figures in both."""
    code, out, _ = call("bench", "detectors", few.path)
    assert code == 0
    assert "| no fault | 40 |" in out
    code, out, _ = call("bench", "detectors", few.path, "--json")
    (found,) = json.loads(out).values()
    assert found["confusion"]["no fault"]["OE"]["count"] == 40
    code, out, err = call("bench", "healing", few.path, "--jobs", 1)
    assert (code, err.splitlines()[-1]) == (0, f"{FEW} of {FEW} runs")
    assert f"| all | {FEW} |" in out
    code, out, _ = call("bench", "healing", few.path, "--jobs", 1, "--json")
    assert json.loads(out)["all"]["dig+"]["count"] == FEW


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe that is done in a second."""

    few = partial(candidates.Recipe, configurations=SMALL.configurations[:1], baseline_runs=20)
    monkeypatch.setattr(candidates, "Recipe", few)


@pytest.mark.usefixtures("quick")
def test_make_makes_a_set_once(call: Any, tmp_path: Path) -> None:
    """And does not touch one that is there."""
    out = tmp_path / "set"
    made = call(
        "bench", "make", "--out", out, "--seed", 7, "--salt", "q1", "--count", 2, "--jobs", 1
    )
    assert made[1] == (f"2 instances in {out}; {out / 'CARD.md'} tells more\n"), made[2]
    assert "2 of 2 instances" in made[2]
    assert [one.id for one in FaultSet.open(out).index.instances] == ["i0001", "i0002"]
    code, _, err = call("bench", "make", "--out", out, "--seed", 7)
    assert code == 2
    assert "is not empty" in err


@pytest.mark.usefixtures("quick")
def test_make_can_be_interrupted(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 130, and nothing is left."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storing, "harvest", interrupted)
    code, out, err = call("bench", "make", "--out", tmp_path / "set", "--seed", 7, "--jobs", 1)
    assert (code, out) == (130, "")
    assert err.endswith("digmon: interrupted; nothing was kept\n")
    assert not [*tmp_path.iterdir()]


def test_attribute_can_be_interrupted(
    call: Any, few: FaultSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 130, and no file of answers is left."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(attributing, "answer", interrupted)
    answers = tmp_path / "answers.json"
    code, out, err = call("bench", "attribute", "random", few.path, "-o", answers)
    assert (code, out, err) == (130, "", "digmon: interrupted\n")
    assert not answers.exists()


@pytest.mark.parametrize("whole_group", [False, True])
def test_make_that_is_asked_to_end_leaves_nothing(tmp_path: Path, whole_group: bool) -> None:
    """As after Ctrl-C, with processes at work; whether they are asked too, or not."""
    command = [sys.executable, "-m", "dig", "bench", "make", "--out", "set", "--seed", "7"]
    making = subprocess.Popen(
        [*command, "--jobs", "2"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert making.stderr is not None
    assert "runs without a fault" in making.stderr.readline()
    (os.killpg if whole_group else os.kill)(making.pid, signal.SIGTERM)
    _, told = making.communicate(timeout=60)
    assert making.returncode == 130
    assert told.endswith("digmon: interrupted; nothing was kept\n")
    assert "Traceback" not in told and "Warning" not in told
    assert not [*tmp_path.iterdir()]
