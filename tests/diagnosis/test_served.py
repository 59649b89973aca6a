"""Experiments on a run of a wrapped team of plain callables, which an entry runs again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

import dig
from dig.adapters.plain import served
from dig.diagnosis.case import RunSource
from dig.diagnosis.diagnosing import diagnose, try_changes
from dig.diagnosis.goal import Goal
from dig.diagnosis.telling import tell
from dig.diagnosis.trials.replays import Trying
from dig.errors import SettingsError
from dig.graph.codec import encode
from dig.show.document import Diagnosis
from dig.traces.journal.journal import SIDE
from dig.traces.journal.reader import TRACE
from dig.traces.run import RecordedRun

from .failed_runs import failed as simulated
from .failed_runs import files
from .served_teams import failed, undeclared

TEAMS = "tests.diagnosis.served_teams:"
RAISED = "`clerk` raised ValueError: no price, "


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clerk got no price, so there is no offer."""
    return failed(tmp_path_factory.mktemp("wrapped"))


def answer_of(run: Path, agent: str) -> int:
    """The record of an agent's answer."""
    events = RecordedRun.read(run).events.values()
    return next(event.t for event in events if event.agent == agent)


def tried(run: Path, row: dict[str, Any], entry: str = "entry", **more: Any) -> Diagnosis:
    return try_changes(run, [[row]], trying=Trying(entry=f"{TEAMS}{entry}", **more))


def edit(run: Path, value: Any) -> dict[str, Any]:
    return {"kind": "edit", "at": answer_of(run, "prices"), "edit": {"payload": value}}


def test_a_session_is_good_if_each_problem_has_an_answer(run: Path) -> None:
    """It has no outcome but being stopped; a request that failed is one failure, said once."""
    judged = RunSource.read(run).judged(Goal.parse("default"))
    assert not judged.good and judged.why.startswith(RAISED)
    [failure] = diagnose(run).failures
    assert failure.kind == "finding" and "ValueError: no price" in failure.evidence[0].says


def test_a_repaired_answer_is_validated(run: Path) -> None:
    """The edited answer reaches the clerk in all replays; the run is only read."""
    before = files(run)
    found = tried(run, edit(run, 7))
    (one,) = found.hypotheses
    assert one.verdict == "validated" and found.confidence == "verified"
    assert (one.arms.changed.good, one.arms.unchanged.good) == (3, 0)
    assert found.answer is not None and found.answer.agent == "prices"
    assert files(run) == before
    text = "\n".join(tell(found, RunSource.read(run)))
    assert "First record that differs" in text and ": 7; recorded was" in text


def test_forks_begin_as_the_run_does(run: Path) -> None:
    """Byte for byte up to the change; the side file names the run and the change."""
    row = edit(run, 7)
    (one,) = tried(run, row).hypotheses
    parent = RecordedRun.read(run).records[: row["at"]]
    for name in (*one.arms.changed.forks, *one.arms.unchanged.forks):
        fork = run / "why" / name
        assert [*map(encode, RecordedRun.read(fork).records[: row["at"]])] == [*map(encode, parent)]
        origin = json.loads((fork / SIDE).read_text())["forked_from"]
        assert (origin["run"], origin["execution"]) == (str(run), run.name)
        assert origin["at"] == row["at"]


def test_a_wrong_repair_is_refuted(run: Path) -> None:
    """It is carried out, and nothing comes of it."""
    (one,) = tried(run, edit(run, -3)).hypotheses
    assert (one.verdict, one.arms.changed.fulfilled) == ("refuted", 3)


def test_a_null_change_is_not_carried_out(run: Path) -> None:
    """An answer that equals the recorded one changes nothing."""
    (one,) = tried(run, edit(run, 0)).hypotheses
    assert (one.verdict, one.reason) == ("inconclusive", "not carried out")


def test_a_note_can_help(run: Path) -> None:
    """The clerk reads it with what it takes up next."""
    at = answer_of(run, "prices") + 1
    row = {"kind": "tell", "at": at, "agent": "clerk", "note": "take 5"}
    (one,) = tried(run, row).hypotheses
    assert one.verdict == "validated"


def test_why_asks_each_stateless_agent_again(run: Path, tmp_path: Path) -> None:
    """By now the prices are known: to ask for them again makes the run good."""
    lines: list[str] = []
    found = diagnose(run, trying=Trying(entry=f"{TEAMS}mended", runs=tmp_path), tell=lines.append)
    fix = found.hypothesis(found.fix)
    assert fix is not None and fix.interventions[0]["kind"] == "again"
    assert found.answer is not None and found.answer.agent == "prices"
    assert "cannot be replayed" not in " ".join(lines)


def test_agents_that_are_not_stateless_are_told_with_what_to_do(tmp_path: Path) -> None:
    """Nothing can be asked again; the text does not ask for the call that was just made."""
    run = failed(tmp_path, undeclared)
    diagnosis = diagnose(run, trying=Trying(entry=f"{TEAMS}undeclared"))
    lines = tell(diagnosis, RunSource.read(run))
    text = "\n".join(lines)
    assert "clerk, prices, postage cannot be asked again: declare the agents that keep" in text
    assert "Try it:" not in text
    act = next(act for act in RecordedRun.read(run).activations.values() if act.agent == "prices")
    again = {"kind": "again", "activation": act.id, "at": act.t}
    [refusal] = [note for note in tried(run, again, "undeclared").notes if note.startswith("h1")]
    assert "dig.wrap(team, stateless={'prices'})" in refusal


def test_of_a_cancelled_request_the_agent_that_was_working_is_named(tmp_path: Path) -> None:
    """Its caller gave up, so no agent has failed; the one that only waited is not named."""

    async def ask() -> Path | None:
        team: dict[str, Any] = {}

        async def clerk(thing: str) -> Any:
            return await team["prices"](thing)

        async def prices(thing: str) -> Any:
            await anyio.sleep_forever()

        team.update(clerk=clerk, prices=prices)
        dig.wrap(team, journal=tmp_path)
        with anyio.move_on_after(0.01):
            await team["clerk"]("lamp")
        session = dig.session_of(team)
        dig.unwrap(team)
        return session.directory

    directory = anyio.run(ask)
    assert directory is not None
    diagnosis = diagnose(directory)
    assert diagnosis.answer is not None and diagnosis.answer.agent == "prices"
    assert "was working when the request ended" in diagnosis.answer.reason


def test_a_team_that_is_otherwise_cannot_be_replayed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note has the first record that differs, in both versions."""
    monkeypatch.setattr(served, "GRACE_S", 0.1)  # no other task will make the recorded step
    found = tried(run, edit(run, 7), "other")
    (one,) = found.hypotheses
    assert (one.verdict, one.reason) == ("inconclusive", "cannot be replayed")
    (note,) = [note for note in found.notes if note.startswith("h1")]
    assert "record 1 differs" in note and "lamp" in note and "chair" in note


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"kind": "seat", "at": 9, "agent": "prices", "by": "postage"}, "different work"),
        ({"kind": "wait", "at": 9, "seconds": 3}, "no time limit"),
    ],
)
def test_a_change_that_makes_no_sense_cannot_be_replayed(
    row: dict[str, Any], why: str, run: Path
) -> None:
    """The note says why not."""
    found = tried(run, row)
    assert found.hypotheses[0].reason == "cannot be replayed"
    assert any(why in note for note in found.notes)


def test_what_an_entry_prints_does_not_mix_with_the_document(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes to standard error."""
    tried(run, edit(run, 7), runs=tmp_path)
    printed = capsys.readouterr()
    assert printed.out == "" and "the entry says lamp for 7" in printed.err


@pytest.mark.parametrize(
    ("trying", "why"),
    [
        (Trying(), "name the function that makes and runs the team again"),
        (Trying(entry=f"{TEAMS}entry", team="tests.llm.stubborn:team"), "nothing else"),
        (Trying(entry=f"{TEAMS}missing"), "there is no entry"),
    ],
)
def test_an_entry_is_named_rightly(trying: Trying, why: str, run: Path) -> None:
    """It is told before anything runs."""
    with pytest.raises(SettingsError, match=why):
        diagnose(run, trying=trying)


def test_an_entry_without_a_team_cannot_be_replayed(run: Path) -> None:
    """The reason stands in the notes."""
    found = tried(run, edit(run, 7), "nothing")
    assert any("wraps no team of plain callables" in note for note in found.notes)


def test_only_runs_of_plain_teams_have_an_entry(run: Path, tmp_path: Path) -> None:
    """A run of our own agents needs none; another framework keeps what the journal has not."""
    own = simulated(tmp_path / "own")
    with pytest.raises(SettingsError, match="needs no --entry"):
        diagnose(own, trying=Trying(entry=f"{TEAMS}entry"))
    other = tmp_path / "other"
    other.mkdir()
    (other / TRACE).write_bytes((run / TRACE).read_bytes())
    side = json.loads((run / SIDE).read_text()) | {"team": "a LangGraph graph"}
    (other / SIDE).write_text(json.dumps(side))
    with pytest.raises(SettingsError, match="its framework keeps state that is not in the journal"):
        diagnose(other, trying=Trying(entry=f"{TEAMS}entry"))


def test_without_try_the_command_is_told(run: Path) -> None:
    """With the option that it needs."""
    lines = tell(diagnose(run), RunSource.read(run))
    assert lines[-1] == f"Try it: digmon why {run} --try --entry MODULE:FUNCTION"
    lines = tell(diagnose(run, Goal.parse("none")), RunSource.read(run))
    assert lines[-1].endswith("--try --good none --entry MODULE:FUNCTION")
