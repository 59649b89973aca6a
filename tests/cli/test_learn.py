"""`digmon learn`, and `--usual` of run and check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig.detectors.team_usual import TeamUsual
from dig.detectors.thresholds import Thresholds
from dig.tasks.run.arrange import make_run
from dig.tasks.run.execute import execute
from dig.tasks.simulated.profile import Profile

ET = "ET raw_data,solution"
"""What is usual is counted for each set of types that an activation leaves open."""

RUN = ("run", "count-frequency", "--virtual", "--json", "--method", "mas", "--to", "all",
       "--size", 2000, "--agents", 3)  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty runs as `RUN` makes them, of agents that submit what is whole."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(30):
        how: dict[str, Any] = {"method": "mas", "to": "all", "agents": 3, "size": 2000}
        how["profile"] = Profile(submit_early=0.0)
        execute(make_run("count-frequency", Thresholds(), seed=seed, **how), folder)
    return folder


def alarms(out: str) -> list[str]:
    return [one["pattern"] for one in json.loads(out)["findings"] if one["severity"] != "notice"]


def test_what_good_runs_raise_is_no_alarm_in_the_next_ones(runs: Path, call: Any) -> None:
    """Given to all, each run of this team has ET and CLA; after learning, none is an alarm."""
    code, out, _ = call("learn", runs, "-o", "team.usual.json", "--at-least", 19, "--json")
    told = json.loads(out)
    assert (code, told["runs"]) == (0, 30)
    assert told["good"] == TeamUsual.read(Path("team.usual.json")).usual.runs >= 19
    assert told["usual"][ET] == 1
    before = alarms(call(*RUN, "--seed", 99, "--runs", "plain")[1])
    code, out, _ = call(*RUN, "--seed", 99, "--runs", "told", "--usual", "team.usual.json")
    assert "ET" in before and "ET" not in alarms(out)
    for folder, usual in (("plain", ("--usual", "team.usual.json")), ("told", ())):
        [path] = Path(folder).iterdir()
        lines = call("check", path, "--json", *usual)[1].splitlines()
        found = [json.loads(line) for line in lines]
        assert found == json.loads(out)["findings"], "live and stored, by the row or by the file"


def test_learning_says_from_how_many_runs_and_what_became_usual(runs: Path, call: Any) -> None:
    """So does a check, of a run that was judged by it."""
    code, out, _ = call("learn", runs, "-o", "usual.json", "--at-least", 20)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("Learned from ") and lines[0].endswith("good runs of 30.")
    assert f"  {ET} up to 1 time a run" in lines
    assert lines[-1] == "usual.json has it: give it to `digmon run` or `check` as --usual."
    [path] = [*runs.iterdir()][:1]
    assert "usual for the team, by" not in call("check", path)[1]
    told = call("check", path, "--usual", "usual.json")[1]
    good = lines[0].split()[2]
    assert f"usual for the team, by {good} good runs, and so notices: CLA consumption" in told


def test_too_few_runs_leave_no_file(call: Any) -> None:
    """A hundred good runs are wanted unless the user says otherwise."""
    call(*RUN, "--seed", 2, "--runs", "runs")
    code, out, err = call("learn", "runs", "-o", "usual.json")
    assert (code, out, Path("usual.json").exists()) == (2, "", False)
    assert "1 good run of 1 are too few to learn from; 100 are wanted" in err
    assert "with fewer than 19 nothing can be usual" in err and "--at-least" not in err


def test_the_file_of_another_team_is_refused_before_anything_runs(call: Any) -> None:
    call(*RUN, "--seed", 2, "--runs", "runs")
    call("learn", "runs", "-o", "usual.json", "--at-least", 1)
    code, out, err = call(*RUN[:-1], 4, "--runs", "more", "--usual", "usual.json")
    assert (code, out, Path("more").exists()) == (2, "", False)
    assert "usual.json was not learned from such runs as this one, which has 4 agents" in err
    [path] = Path("runs").iterdir()
    code, out, err = call("check", path, "--usual", "usual.json", "--set", "mc_window_s=5")
    assert (code, out) == (2, "")
    assert "mc_window_s 5.0 and not 30.0" in err and f"{path}: usual.json was not" in err
