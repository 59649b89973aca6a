"""`digmon try` and `why` of runs that a language model decided for, on a scripted server."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dig.cli import app
from dig.diagnosis.case import RunSource
from dig.errors import SettingsError
from dig.graph.records import End
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.reader import read_records
from tests.diagnosis.failed_runs import failed as failed_run
from tests.llm.server import Answer, Server, says, serving
from tests.llm.stubborn import SERVER, answer

TEAM = "tests.llm.stubborn:team"


def invoke(server: Server, *arguments: Any) -> Result:
    given = [str(one) for one in arguments]
    return CliRunner().invoke(app, given, env={SERVER: server.url})


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ends by its time limit, since agent-2 waits."""
    folder = tmp_path_factory.mktemp("model")
    with serving(answer) as server:
        done = invoke(
            server, "run", "count-frequency", "--size", 60, "--agents", 3, "--method", "mas",
            "--limit", 2, "--model", "m", "--base-url", server.url, "--runs", folder, "--json",
        )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["outcome"] == "timeout"
    return Path(told["directory"])


def quiet(run: Path) -> int:
    return 1 + max(one.t + len(one.outputs) for one in read_records(run) if isinstance(one, End))


def test_a_change_of_a_model_run_is_tried(failed: Path) -> None:
    """Controls are independent, the verdict says so, and what it cost is told."""
    with serving(answer) as server:
        done = invoke(
            server, "try", failed, "--tell", "agent-2=go on", "--at", quiet(failed), "--team",
            TEAM, "--max-replays", 4, "--repeat", 2, "--good", "dig.diagnosis.goal:has_answer",
            "--json",
        )  # fmt: skip
        asked = len(server.requests)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (tried,) = found["hypotheses"]
    assert tried["verdict"] == "validated" and tried["p"] == pytest.approx(1 / 6)
    assert tried["arms"]["unchanged"] == {
        "n": 2, "good": 0, "progress": tried["arms"]["unchanged"]["progress"],
        "forks": tried["arms"]["unchanged"]["forks"],
    }  # fmt: skip
    assert found["cost"]["replays"] == 4
    assert found["cost"]["model_calls"] == asked > 0
    assert any("p = .05" in note for note in found["notes"])


def test_money_needs_a_budget_where_nobody_can_be_asked(failed: Path) -> None:
    """Without a terminal, --max-replays or --max-usd must be given before anything is asked."""
    with serving(answer) as server:
        done = invoke(server, "why", failed, "--try", "--team", TEAM)
        assert server.requests == []
    assert done.exit_code == 2 or isinstance(done.exception, Exception)
    assert "--max-usd or --max-replays" in f"{done.output}{done.exception}"


def test_a_file_never_says_who_is_paid(failed: Path) -> None:
    """A run of models is tried with a team that the user names, and without one refused."""
    with serving(answer) as server:
        done = invoke(server, "why", failed, "--try", "--max-replays", 3)
        assert server.requests == []
    assert done.exit_code == 2 or isinstance(done.exception, Exception)
    assert "--team" in f"{done.output}{done.exception}"


def test_a_fork_of_a_model_run_is_refused_with_the_command(failed: Path) -> None:
    """It has the run, the record and the task; only the team is to be filled in."""
    done = CliRunner().invoke(app, ["fork", str(failed), "--at", "3"])
    assert done.exit_code != 0
    told = " ".join(f"{done.output}{done.exception}".split())
    assert "a language model decided in the run ('model m'); name who goes on: digmon fork" in told
    assert f"{failed} --at 3 --task count-frequency --team MODULE:TEAM" in told


# --- the run's own team again ---


def test_the_same_model_goes_on_if_it_is_named_again(failed: Path) -> None:
    """With the model and the server of the run, its own team is made again."""
    with serving(answer) as server:
        side = failed / "side.json"
        told = json.loads(side.read_text())
        told["options"]["base_url"] = server.url  # the server of the run has another port by now
        again = failed.with_name("again")
        copytree(failed, again)
        spec = {key: value for key, value in told.items() if key != "run"}
        (again / "side.json").write_text(json.dumps({**spec, "run": renamed(told)}))
        given = (
            "try", again, "--tell", "agent-2=go on", "--at", quiet(failed), "--max-replays", 2,
            "--repeat", 1, "--good", "dig.diagnosis.goal:has_answer", "--same-model", "--json",
        )  # fmt: skip
        done = invoke(server, *given, "--model", "m", "--base-url", server.url)
        others = [
            invoke(server, *given, "--model", "another", "--base-url", server.url),
            invoke(server, *given, "--model", "m", "--base-url", "http://127.0.0.1:9/v1"),
            invoke(server, *given),
        ]
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["hypotheses"][0]["verdict"] == "validated"
    for other, why in zip(others, ("another", "127.0.0.1:9", "--model"), strict=True):
        assert other.exit_code != 0 and why in f"{other.output}{other.exception}"


def renamed(told: dict[str, Any]) -> str:
    """The name of a run whose model is asked elsewhere: it follows from the settings."""
    with pytest.raises(SettingsError) as error:
        TeamRun.read(told)
    return str(error.value).split("would be ")[1].split("'")[1]


# --- a model that helps ---


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of simulated agents in which agent-3 says nothing."""
    return failed_run(tmp_path_factory.mktemp("silent"))


def change(kind: str, **more: Any) -> dict[str, Any]:
    empty = {"activation": "", "agent": "", "note": "", "events": [], "to": []}
    return {"kind": kind, **empty, "why": "it may help", "expects": None, **more}


def helper(*changes: dict[str, Any], followed: bool = True, reached: str = "no") -> Any:
    """A script of a model that helps, by the shape that it is asked for."""
    stage = {"state": reached, "record": 3, "why": "it is so"}
    answers: dict[str, dict[str, Any]] = {
        "ProposedChanges": {"changes": [*changes]},
        "FollowedNote": {"followed": followed, "record": 5, "why": "it did"},
        "MilestoneTitles": {"titles": ["it is split", "it is counted"]},
        "ReachedStages": {"stages": [{**stage, "state": "reached"}, stage]},
        "MergedAttempts": {"attempts": []},
    }

    def script(request: dict[str, Any]) -> Answer:
        return says(answers[request["response_format"]["json_schema"]["name"]])

    return script


def ask(server: Server, run: Path, folder: Path, *more: Any) -> Any:
    done = invoke(
        server, "why", run, "--try", "--model", "m", "--base-url", server.url, "--max-replays",
        40, "--runs", folder, "--good", "dig.diagnosis.goal:has_answer", "--json", *more,
        *([] if "--method" in more else ["--method", "structural"]),
    )  # fmt: skip
    assert done.exit_code == 1, f"{done.output}{done.exception}"
    return json.loads(done.stdout)


def test_a_model_proposes_what_is_tried(silent: Path, tmp_path: Path) -> None:
    """Its changes are tried, their cost is in the document, and no score in a prompt."""
    seat = change("seat", agent="agent-2", why="agent-3 says nothing")
    with serving(helper(seat)) as server:
        found = ask(server, silent, tmp_path)
        asked = json.dumps(server.requests)
    assert found["model"] == "m" and found["cost"]["model_calls"] == len(server.requests) > 0
    assert {"name": "propose", "by": "model", "status": "done", "why": None} in found["stages"]
    assert any("m proposes: agent-2 decides in place of" in note for note in found["notes"])
    assert all(word not in asked for word in ("rmse", "seed", "faults", "score"))


def test_a_proposal_that_gives_the_answer_away_is_refused(silent: Path, tmp_path: Path) -> None:
    """A number of the true counts in a note: the change is not tried, and a note says so."""
    count = max(RunSource.read(silent).task.target())  # type: ignore[union-attr]
    told = change("tell", agent="agent-1", note=f"the count is {count}")
    with serving(helper(told)) as server:
        found = ask(server, silent, tmp_path)
    assert any("was refused: its text has a value of the right answer" in n for n in found["notes"])
    assert str(count) not in json.dumps(found["hypotheses"])
    done = invoke(server, "try", silent, "--tell", f"agent-1=it is {count}", "--at", 9)
    assert "right answer" in f"{done.output}{done.exception}"


@pytest.mark.parametrize("followed", [True, False])
def test_a_model_judges_whether_a_note_was_followed(
    followed: bool, failed: Path, tmp_path: Path
) -> None:
    """Only after the records have shown that the note was read; its reason is kept."""
    script = helper(followed=followed)

    def both(request: dict[str, Any]) -> Answer:
        is_judge = request["response_format"]["json_schema"]["name"] == "FollowedNote"
        return script(request) if is_judge else answer(request)

    with serving(both) as server:
        done = invoke(
            server, "try", failed, "--tell", "agent-2=go on", "--at", quiet(failed), "--team",
            TEAM, "--max-replays", 2, "--repeat", 1, "--runs", tmp_path, "--model", "m",
            "--base-url", server.url, "--good", "dig.diagnosis.goal:has_answer", "--json",
        )  # fmt: skip
    assert done.exit_code == (0 if followed else 1), f"{done.output}{done.exception}"
    found = json.loads(done.stdout)
    assert found["hypotheses"][0]["arms"]["changed"]["fulfilled"] == int(followed)
    said = "was followed" if followed else "was not followed"
    assert any(f"'go on' {said}: record 5" in note for note in found["notes"])


def test_a_model_names_milestones_by_the_right_answer(silent: Path, tmp_path: Path) -> None:
    """With --expected its stages are the progress: one of two, and all of a good replay."""
    with serving(helper(change("seat", agent="agent-2"), reached="partly")) as server:
        found = ask(server, silent, tmp_path, "--expected", "the sum is 123456")
        named = [r for r in server.requests if "123456" in json.dumps(r)]
    tried = next(one for one in found["hypotheses"] if one["verdict"] == "validated")
    assert {*tried["arms"]["changed"]["progress"]} == {1.0}
    assert {*tried["arms"]["unchanged"]["progress"]} == {0.5}
    assert [r["response_format"]["json_schema"]["name"] for r in named] == ["MilestoneTitles"]


def test_an_answer_of_no_use_leaves_the_rules(silent: Path, tmp_path: Path) -> None:
    """The stage has failed, and says why; experiments go on without the model."""
    with serving(helper(change("tell", agent="nobody", note="go on"))) as server:
        found = ask(server, silent, tmp_path)
    (stage,) = (one for one in found["stages"] if one["by"] == "model")
    assert stage["status"] == "failed" and "no agent 'nobody'" in stage["why"]
    assert found["confidence"] == "verified"


def test_a_model_needs_a_budget(silent: Path) -> None:
    """How often it will be asked is told before anything is sent."""
    with serving(helper()) as server:
        model = ("--model", "m", "--base-url", server.url)
        first = invoke(server, "why", silent, "--try", *model)
        third = invoke(server, "why", silent, "--try", "--expected", "4")
        assert server.requests == []
    assert "this asks m about 71 times" in f"{first.output}{first.exception}"
    assert "name it with --model" in f"{third.output}{third.exception}"


def blames(request: dict[str, Any]) -> Answer:
    """A model that names step 3 if it is asked all at once, and else helps."""
    if request["response_format"]["json_schema"]["name"] != "StepVerdict":
        return helper()(request)  # type: ignore[no-any-return]
    return says({"agent": "agent-3", "step": 3, "why": "it sent nothing"})


def test_a_model_says_which_agent_and_step_of_a_run(silent: Path, tmp_path: Path) -> None:
    """Without --try it is asked nothing else; the cache and the graph are as with conversations."""
    given = ("--model", "m", "--method", "all-at-once", "--cache", tmp_path, "--graph", "--json")
    with serving(blames) as server:
        done = [invoke(server, "why", silent, *given, "--base-url", server.url) for _ in range(2)]
    first, second = (json.loads(one.stdout) for one in done)
    assert [one.exit_code for one in done] == [1, 1] and len(server.requests) == 1
    assert first["answer"]["agent"] == "agent-3" and first["answer"]["activation"] == "a4"
    assert first["method"] == "all-at-once" and first["graph"]["subtasks"]
    assert first.pop("cost")["model_calls"] == 1 and second.pop("cost")["model_calls"] == 0
    assert first == second


def test_what_a_model_cost_is_told_and_where_it_has_no_place(silent: Path) -> None:
    """In words: which model, how, and how much. Another suspect alone asks no model: status 2."""
    model = ("--model", "m", "--method", "all-at-once", "--base-url")
    with serving(blames) as server:
        told = invoke(server, "why", silent, *model, server.url)
        other = invoke(server, "why", silent, *model, server.url, "--by", "beliefs")
        assert len(server.requests) == 1
    assert "m was asked (all-at-once): 1 request, 110 tokens" in told.output
    assert len(told.output.splitlines()) <= 15
    assert other.exit_code == 2 and "--by attribution" in other.output


def test_a_model_names_candidates_of_experiments(silent: Path, tmp_path: Path) -> None:
    """With --try its candidate is tried, too, and one budget is for all that is asked."""
    with serving(blames) as server:
        found = ask(server, silent, tmp_path, "--method", "all-at-once")
    names = [one["name"] for one in found["stages"]]
    assert names == ["all-at-once", "propose", "try"]
    assert found["cost"]["model_calls"] == len(server.requests) > 1
    assert found["candidates"][0]["agent"] == "agent-3" and found["confidence"] == "verified"


def test_strict_and_from_file_are_refused_for_a_run(silent: Path) -> None:
    """A failed stage with --strict, and a right answer where there is none: exit status 2."""
    with serving([Answer(b"oops", 500)]) as server:
        model = ("--model", "m", "--base-url", server.url)
        strict = invoke(server, "why", silent, *model, "--strict")
        sent = len(server.requests)
        other = invoke(server, "why", silent, *model, "--expected", "from-file")
        assert len(server.requests) == sent
    assert strict.exit_code == other.exit_code == 2
    assert "the stage 'plan' failed" in strict.output and "--expected TEXT" in other.output
