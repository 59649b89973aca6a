"""Diagnoses of failed runs: the search for a cause, and the document."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from dig.detectors.five_answers import five_answers
from dig.detectors.run_so_far import RunSoFar
from dig.diagnosis import Diagnosis, Goal, diagnose, read_case, try_changes, verify
from dig.diagnosis.case import RunSource
from dig.diagnosis.diagnosing import InterruptedDiagnosis
from dig.diagnosis.experiments import Experiments
from dig.diagnosis.telling import MOST_LINES, tell
from dig.diagnosis.trials.arms import Trials
from dig.diagnosis.trials.replays import TrialBudget, Trying
from dig.errors import SettingsError, TraceError
from dig.graph.records import Deliver, Record, Start
from dig.runtime.simulator import Simulation
from dig.tasks.run.arrange import arrange, make_problem, make_task
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.journal import SIDE, RunDirectory
from dig.traces.journal.reader import TRACE, read_records
from tests.chaos import chaos_run
from tests.diagnosis.failed_runs import ANSWERED, failed, files, trying
from tests.traces.journals import journalled


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which agent-3 says nothing."""
    return failed(tmp_path_factory.mktemp("silent"))


@pytest.fixture(scope="module")
def explained(silent: Path) -> Diagnosis:
    """Its diagnosis, by experiments."""
    return diagnose(silent, ANSWERED, trying=trying(silent))


def test_the_search_names_the_agent_at_fault(explained: Diagnosis) -> None:
    """Without a rule for the fault, the seats alone name the culprit, and the run is only read."""
    assert explained.answer and explained.answer.agent == "agent-3"
    assert explained.answer.confidence == "high"
    assert explained.confidence == "verified"
    fix = explained.hypothesis(explained.fix)
    assert fix and fix.verdict == "validated"
    assert fix.candidate == explained.candidates[0].id
    assert explained.candidates[0].status == "origin"


def test_a_seat_that_helps_has_an_onset_and_an_end(explained: Diagnosis, silent: Path) -> None:
    """The first record that differs, and a start of the agent from which the seat still helps."""
    seat = next(h for h in explained.hypotheses if h.interventions[0]["kind"] == "seat"
                and h.verdict == "validated")  # fmt: skip
    starts = [r.t for r in read_records(silent) if isinstance(r, Start) and r.agent == "agent-3"]
    assert seat.no_return in starts
    assert seat.onset is not None and seat.onset >= seat.interventions[0]["at"]


def test_the_document_is_whole_and_can_be_read_again(explained: Diagnosis) -> None:
    """Each key of version 1 is there, and `from_json` reads what `to_json` writes."""
    text = explained.to_json()
    assert Diagnosis.from_json(text) == explained
    assert [*json.loads(text)] == [
        "format", "version", "dig", "source", "goal", "failures", "attempts", "method", "model",
        "answer", "candidates", "chain", "hypotheses", "fix", "confidence", "stages", "cost",
        "notes",
    ]  # fmt: skip
    assert sum(one.share for one in explained.candidates) == pytest.approx(1)
    assert all(one.evidence for one in explained.candidates)


@pytest.mark.parametrize(
    ("change", "place"),
    [({"surplus": 1}, "surplus"), ({"version": 2}, "version"), ({"cost": {}}, None)],
)
def test_a_document_is_read_strictly(
    explained: Diagnosis, change: dict[str, Any], place: str | None
) -> None:
    """What does not belong into a diagnosis is refused, with its place."""
    text = json.dumps({**json.loads(explained.to_json()), **change})
    if place is None:
        assert Diagnosis.from_json(text).cost.replays == 0
    else:
        with pytest.raises(SettingsError, match=place):
            Diagnosis.from_json(text)


def test_a_good_run_needs_no_explanation(tmp_path: Path) -> None:
    """There is no answer, no candidate and no replay."""
    run = execute(TeamRun(agents=4, size=3000, seed=1), tmp_path).directory
    found = diagnose(run, ANSWERED, trying=trying(run))
    assert found.goal.good and not found.failures
    assert (found.answer, found.candidates, found.hypotheses) == (None, (), ())
    assert found.confidence == "unknown" and found.cost.replays == 0
    assert not (run / "why").exists()


def test_without_experiments_nothing_is_made(silent: Path, tmp_path: Path) -> None:
    """A diagnosis without experiments writes nothing, and is the same each time."""
    before = files(silent)
    found = diagnose(silent, ANSWERED)
    assert found == diagnose(silent, ANSWERED)
    assert not found.hypotheses and found.fix is None and found.cost.seconds == 0
    assert found.confidence in ("suspected", "unknown")
    assert files(silent) == before


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_number_of_processes_is_not_in_the_document(
    jobs: int, silent: Path, explained: Diagnosis, tmp_path: Path
) -> None:
    """But for its costs in seconds, the document does not depend on --jobs."""
    found = diagnose(silent, ANSWERED, trying=trying(silent, jobs=jobs, runs=tmp_path / "forks"))

    def without_seconds(one: Diagnosis) -> Any:
        return {**json.loads(one.to_json()), "cost": one.cost.replays}

    assert without_seconds(found) == without_seconds(explained)


@pytest.mark.parametrize("replays", [1, 2, 5, 8])
def test_a_budget_bounds_all_replays(replays: int, silent: Path, tmp_path: Path) -> None:
    """Whenever it ends, no more replays were made, and there is a document."""
    budget = TrialBudget(replays=replays)
    found = diagnose(
        silent, ANSWERED, trying=trying(silent, budget=budget, runs=tmp_path / "forks")
    )
    assert found.cost.replays <= replays
    assert len(list((tmp_path / "forks").iterdir())) == found.cost.replays
    assert Diagnosis.from_json(found.to_json()) == found


@pytest.mark.parametrize("after", range(1, 9))
def test_an_interruption_keeps_what_is_finished(after: int, silent: Path, tmp_path: Path) -> None:
    """The diagnosis so far is there; the hypothesis in progress says that it was interrupted."""
    left = after

    def told(line: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedDiagnosis) as stopped:
        diagnose(silent, ANSWERED, trying=trying(silent, runs=tmp_path / "f"), tell=told)
    found = stopped.value.diagnosis
    assert "the experiments were interrupted" in found.notes
    assert Diagnosis.from_json(found.to_json()) == found
    assert len(list((tmp_path / "f").iterdir())) == after
    assert {one.reason for one in found.hypotheses[-1:]} <= {"interrupted", None}


def test_what_a_person_asks_is_what_is_tried(silent: Path) -> None:
    """Candidates and hypotheses are those that were named; the answer needs a validated one."""
    start = next(r.t for r in read_records(silent) if isinstance(r, Start) and r.agent == "agent-3")
    helps = {"kind": "seat", "at": start, "agent": "agent-3", "by": "agent-1"}
    idle = {"kind": "seat", "at": start, "agent": "agent-2", "by": "agent-1"}
    found = try_changes(silent, [[idle], [helps]], ANSWERED, trying=trying(silent))
    assert [one.by for one in found.candidates] == [("person",), ("person",)]
    assert found.fix == "h2" and found.answer and found.answer.agent == "agent-3"
    none = try_changes(silent, [[idle]], ANSWERED, trying=trying(silent))
    assert none.answer is None and none.fix is None


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"kind": "seat", "at": 3, "agent": "agent-1"}], "by"),
        ([{"kind": "dance", "at": 3}], "dance"),
        ([{"kind": "wait", "at": 3, "seconds": -1.0}], "greater than 0"),
        ([], "1 to 3 interventions"),
        ([{"kind": "omit", "at": 3, "t": 4}] * 4, "1 to 3 interventions"),
    ],
)
def test_what_is_no_change_is_refused(silent: Path, rows: list[Any], why: str) -> None:
    """A wrong intervention is told before anything is made."""
    with pytest.raises(SettingsError, match=why):
        try_changes(silent, [rows], ANSWERED, trying=trying(silent))


def test_experiments_within_a_loop(silent: Path) -> None:
    """`verify` can be awaited: replays are made in a thread."""
    start = next(r.t for r in read_records(silent) if isinstance(r, Start) and r.agent == "agent-3")
    change = {"kind": "seat", "at": start, "agent": "agent-3", "by": "agent-1"}
    from tests.diagnosis.failed_runs import hypothesis

    async def main() -> str:
        found = await verify(silent, hypothesis(change), ANSWERED, trying(silent, is_fresh=True))
        return found.verdict

    assert anyio.run(main) == "validated"


def test_a_case_has_nothing_that_gives_the_answer_away(silent: Path) -> None:
    """What suspects are given does not hold the faults, the seed, or the score."""
    case = read_case(silent, ANSWERED)
    public = {"name", "kind", "run", "failures", "attempts", "accounting", "usual", "headline"}
    assert {*vars(case)} - {"steps", "seen"} == public
    assert "faults" not in repr(vars(case)["failures"])


# --- sources of all sorts ---


def test_a_session_with_two_problems_is_explained(tmp_path: Path) -> None:
    """Each problem of a session has attempts of its own, and experiments are made as ever."""
    run = TeamRun(agents=3, size=2000, seed=3, method="mas", limit_s=40.0)
    task = make_task(run)
    arranged = arrange(run, task)
    setup = arranged.setup
    setup = type(setup)(**{**setup.__dict__, "session": True})
    directory = RunDirectory(tmp_path, run.about(), header=setup.header())
    simulation = Simulation(arranged.team, setup, directory.journal)
    for at_s in (0.0, 3.0):
        simulation.plan(at_s, lambda monitor: monitor.inject(make_problem(run, task)))
    directory.write_result(simulation.run().to_json())
    directory.journal.close()
    found = diagnose(directory.path, Goal.parse("none"), trying=trying(directory.path))
    assert len(found.attempts) >= 2
    assert found.failures[-1].kind == "complaint"
    assert all(one.reason != "cannot be replayed" for one in found.hypotheses), found.notes


def test_concurrent_attempts_are_told_apart(tmp_path: Path) -> None:
    """A hypothesis names the attempt of its place."""
    run = failed(tmp_path, "split_twice", to="all", seed=4)
    found = diagnose(run, Goal.parse("none"), trying=trying(run, budget=TrialBudget(replays=20)))
    known = {one.id for one in found.attempts}
    assert known and {one.attempt for one in found.hypotheses} <= known | {None}


def test_a_damaged_journal_is_told(silent: Path, tmp_path: Path) -> None:
    """A line that is damaged is an error that names it; nothing is made."""
    broken = tmp_path / "broken"
    broken.mkdir()
    lines = (silent / TRACE).read_bytes().splitlines(keepends=True)
    lines[20] = lines[20][:30] + b"\n"
    (broken / TRACE).write_bytes(b"".join(lines))
    with pytest.raises(TraceError, match="21"):
        diagnose(broken, ANSWERED)


def test_no_team_is_told_before_anything_is_made(silent: Path, tmp_path: Path) -> None:
    """A trace without a side file needs a team."""
    plain = tmp_path / "plain.dig.jsonl"
    plain.write_bytes((silent / TRACE).read_bytes())
    assert diagnose(plain, ANSWERED).source.kind == "trace"
    with pytest.raises(SettingsError, match="--team"):
        diagnose(plain, ANSWERED, trying=trying(silent))


def test_a_wrapped_run_is_refused_with_the_reason(silent: Path, tmp_path: Path) -> None:
    """Its code is not in the trace; without experiments it is explained as any other."""
    wrapped = tmp_path / "wrapped"
    wrapped.mkdir()
    (wrapped / TRACE).write_bytes((silent / TRACE).read_bytes())
    side = {"run": "wrapped", "mode": "observe", "team": "a LangGraph", "capabilities": ["hold"]}
    (wrapped / SIDE).write_text(json.dumps(side))
    found = diagnose(wrapped, ANSWERED)
    assert found.failures
    assert "cannot be continued" in "\n".join(tell(found, RunSource.read(wrapped)))
    for team in (None, "tests.llm.stubborn:team"):
        with pytest.raises(SettingsError, match=r"a LangGraph.* cannot be continued"):
            diagnose(wrapped, ANSWERED, trying=Trying(team=team))
    assert not (wrapped / "why").exists()


def test_a_run_with_gates_is_refused_with_the_reason(tmp_path: Path) -> None:
    """What gates decided is not in the trace; without experiments it is explained as any other."""
    run = next(run for run in (chaos_run(seed, heal=True) for seed in range(25)) if run.setup.gates)
    gated = journalled(run, tmp_path)
    taken = Goal.parse("none")
    assert diagnose(gated, taken).failures
    with pytest.raises(SettingsError, match="had 1 gate, and what they decided is not recorded"):
        diagnose(gated, taken, trying=Trying(team="tests.llm.stubborn:team"))


def test_a_change_that_cannot_be_made_is_tried_once(silent: Path, tmp_path: Path) -> None:
    """The reason of the first replay is told; no further one is attempted."""
    change = {"kind": "tell", "at": 20, "agent": "agent-9", "note": "go on"}
    lines: list[str] = []
    found = try_changes(
        silent, [[change]], ANSWERED, trying=trying(silent, runs=tmp_path), tell=lines.append
    )
    assert found.hypotheses[0].reason == "cannot be replayed" and len(lines) == 1
    assert "'agent-9' is not present" in "\n".join(tell(found, RunSource.read(silent)))


def test_a_spent_budget_is_told(silent: Path, tmp_path: Path) -> None:
    """What was not tried any more does not count as tried."""
    budget = TrialBudget(replays=2)
    found = diagnose(silent, ANSWERED, trying=trying(silent, budget=budget, runs=tmp_path))
    assert "2 replays were made, which is all that was allowed" in found.notes
    assert not any("tried once only" in note for note in found.notes)


# --- in lines ---


def test_a_diagnosis_fits_on_a_screen(explained: Diagnosis, silent: Path) -> None:
    """At most 15 lines, the agent and the smallest change among them, without surprises."""
    lines = tell(explained, RunSource.read(silent))
    assert len(lines) <= MOST_LINES
    text = "\n".join(lines)
    assert "Cause: agent-3" in text and "confirmed by experiment" in text
    assert "with it 3 of 3 replays are good" in text and "without it 0 of 3" in text
    assert "digmon diff" in lines[-1]


def test_several_causes_are_mended_one_after_the_other(tmp_path: Path) -> None:
    """A run that is not healed: what is left is tried in the fork so far."""
    run = execute(TeamRun(seed=632, method="mas"), tmp_path).directory
    found = diagnose(run, trying=Trying())
    fix = found.hypothesis(found.fix)
    assert fix and [row["kind"] for row in fix.interventions] == ["resend", "edit", "edit"]
    assert fix.verdict == "validated" and found.answer
    origins = {one.agent for one in found.candidates if one.status == "origin"}
    assert origins == {"agent-1", "agent-4", "agent-5"} and found.answer.agent in origins
    made = run / "why" / fix.arms.unchanged.forks[0]
    beginning = (run / "why" / fix.arms.changed.forks[0] / TRACE).read_bytes().splitlines()
    at = fix.interventions[-1]["at"]
    assert beginning[:at] == (made / TRACE).read_bytes().splitlines()[:at]
    text = "\n".join(tell(found, RunSource.read(run)))
    assert "3. after that, " in text and "without the last 0 of 3" in text
    assert len(text.splitlines()) <= MOST_LINES


def test_changes_in_stages_are_three_at_most(tmp_path: Path) -> None:
    """A run with many causes is not explained, and no hypothesis has a fourth change."""
    run = execute(TeamRun(seed=607, method="mas"), tmp_path).directory
    found = diagnose(run, trying=Trying())
    assert found.fix is None and found.answer and found.cost.replays <= 60
    assert all(len(one.interventions) <= 3 for one in found.hypotheses)


def test_experiments_can_be_used_alone(silent: Path) -> None:
    """The search needs a case, candidates and experiments, and no document."""
    settings = trying(silent)
    case = read_case(silent, ANSWERED)
    with Trials(settings.replayer(silent, ANSWERED)) as trials:
        made = Experiments(case, trials, [], {})
        made.run()
    assert made.findings.fix is None and made.findings.notes


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy run that a person ended before anybody began."""

    def press(record: Record) -> None:
        if isinstance(record, Deliver):  # the first: of the problem
            signal.raise_signal(signal.SIGINT)

    team = TeamRun(agents=3, size=3000, method="mas")
    return execute(team, tmp_path_factory.mktemp("interrupted"), follow=press).directory


def test_an_interrupted_run_is_no_control_of_its_own(interrupted: Path, tmp_path: Path) -> None:
    """The trace says who ended the run, also without the result beside it."""
    assert not RunSource.read(interrupted).is_whole
    alone = tmp_path / "alone.dig.jsonl"
    alone.write_bytes((interrupted / TRACE).read_bytes())
    assert not RunSource.read(alone).is_whole


def test_no_cause_is_confirmed_of_a_run_that_a_person_ended(interrupted: Path) -> None:
    """Without a change the run goes on and succeeds, so no change has helped."""
    diagnosis = diagnose(interrupted, trying=trying(interrupted))
    assert diagnosis.fix is None
    assert diagnosis.confidence != "verified"


def test_an_interrupted_run_did_not_get_stuck(interrupted: Path) -> None:
    """A run that could go on was stopped."""
    so_far = RunSoFar()
    so_far.write([*read_records(interrupted)])
    assert five_answers(so_far).verdict == "Stopped"
