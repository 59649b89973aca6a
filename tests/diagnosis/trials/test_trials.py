"""Experiments: replays, arms and budgets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dig.diagnosis.goal import Goal
from dig.diagnosis.interventions.recorded import decision_of
from dig.diagnosis.trials.arms import Trials, Tried
from dig.diagnosis.trials.replays import (
    ReplayRequest,
    TrialBudget,
    Trying,
    make_replay,
    read_source,
)
from dig.diagnosis.trials.seats import first_difference, starts_of
from dig.errors import SettingsError
from dig.faults.inject.fault import Fault
from dig.graph.records import Emit, Leave
from dig.show.document import Hypothesis
from dig.tasks.run import run_fork as run_fork
from dig.tasks.run.crew import Crew, simulated_crew
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.journal import SIDE, Journal, read_side
from dig.traces.journal.reader import TRACE, read_records
from dig.traces.run import RecordedRun
from tests.diagnosis.failed_runs import ANSWERED, failed, files, hypothesis, seat, trace, trying
from tests.faults.forks import faulty

DEFAULT = Goal.parse("default")


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which agent-3 says nothing from its second second on."""
    return failed(tmp_path_factory.mktemp("silent"))


def first_start(run: Path, agent: str) -> int:
    return starts_of(read_source(run).run, agent, 0)[0]


def tried(run: Path, one: Hypothesis, goal: Goal = ANSWERED, **more: Any) -> Tried:
    """What comes of a hypothesis, with all that experiments promise about files."""
    before = files(run)
    settings = trying(run, **more)
    replayer = settings.replayer(run, goal)
    with Trials(replayer) as trials:
        found = trials.verify(one)
    assert files(run) == before
    for fork in found.changed.forks:
        assert_begins_as(run, replayer.forks / fork, found.at)
    assert not [path for path in replayer.forks.iterdir() if path.name.startswith(".")]
    return found


def assert_begins_as(parent: Path, fork: Path, at: int) -> None:
    assert trace(fork).splitlines()[:at] == trace(parent).splitlines()[:at]


# --- arms ---


def test_the_seat_of_the_agent_at_fault_is_validated(silent: Path) -> None:
    """With another member in the culprit's seat the run is good, and without it never."""
    found = tried(silent, seat("agent-3", "agent-1", first_start(silent, "agent-3")))
    assert (found.verdict, found.reason) == ("validated", None)
    assert found.changed.successes == found.changed.n >= 3
    assert found.p is not None and found.p <= 0.05


def test_the_seat_of_another_agent_is_not(silent: Path) -> None:
    """Another member in a seat that is not the culprit's does not help."""
    found = tried(silent, seat("agent-2", "agent-1", first_start(silent, "agent-2")))
    assert found.verdict != "validated"
    assert found.changed.successes == 0


def test_the_agent_at_fault_may_take_a_seat(tmp_path: Path) -> None:
    """Its fault goes with it; the payloads of any task can be disturbed there."""
    run = failed(tmp_path, task="newsgroups", size=60)
    found = tried(run, seat("agent-1", "agent-3", first_start(run, "agent-1")))
    assert found.reason != "cannot be replayed" and found.changed.n == 3, found.why


def test_an_agent_that_is_late_is_so_from_its_start(tmp_path: Path) -> None:
    """With a prompt agent in its seat an activation ends sooner: the onset is its start."""
    run = failed(tmp_path, "slow")
    asked = trying(run)
    one = seat("agent-3", "agent-1", first_start(run, "agent-3"))
    with Trials(asked.replayer(run, ANSWERED)) as trials:
        trials.verify(one)
        fork = trials.fork_of(one)
    recorded = RecordedRun.read(run)
    assert fork is not None
    onset = first_difference(fork, recorded)
    assert onset in [a.t for a in recorded.activations.values() if a.agent == "agent-3"]


def test_a_null_change_gives_the_bytes_of_its_control(silent: Path) -> None:
    """A change that changes nothing is the recorded run, and in each repeat the control."""
    run = RecordedRun.read(silent, payloads=True)
    ended = next(one for one in run.activations.values() if one.outputs and one.end)
    assert ended.end is not None
    row = {"kind": "edit", "at": ended.end.t, "edit": decision_of(run, ended)}
    found = tried(silent, hypothesis(row))
    assert found.verdict == "inconclusive" and found.reason == "not carried out"
    forks = silent / "why"
    assert trace(forks / found.changed.forks[0]) == trace(silent)
    for one, other in zip(found.changed.forks[1:], found.unchanged.forks[1:], strict=True):
        assert trace(forks / one) == trace(forks / other) != trace(silent)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["drop", "delay", "crash", "leave", "duplicate", "hoard"])
@pytest.mark.parametrize("method", ["mas", "dig"])
def test_the_control_of_repeat_0_is_the_recorded_run(
    kind: str, method: str, tmp_path: Path
) -> None:
    """With faults, delivery policies and healing in it, an unchanged replay has the same bytes."""
    run = faulty(Fault(kind=kind, target="agent-2", start_s=1.0), 3, tmp_path, method=method)
    replayer = trying(run).replayer(run, DEFAULT)
    count = len(list(read_records(run)))
    for at in (count // 4, count // 2, 3 * count // 4):
        made = make_replay(replayer, ReplayRequest(at))
        assert made.fork is not None and trace(made.fork) == trace(run), made.why


def test_a_repeat_is_another_run_and_always_the_same_one(silent: Path, tmp_path: Path) -> None:
    """Repeats differ after the fork; one repeat is the same bytes in another process."""
    at = first_start(silent, "agent-3")
    replayer = trying(silent, runs=tmp_path / "here").replayer(silent, ANSWERED)
    first, second = (make_replay(replayer, ReplayRequest(at, (), k)) for k in (1, 2))
    assert first.fork and second.fork and trace(first.fork) != trace(second.fork)
    program = (
        "import sys; from pathlib import Path\n"
        "from dig.diagnosis.trials.replays import ReplayRequest, make_replay\n"
        "from tests.diagnosis.failed_runs import ANSWERED, trying\n"
        "run, there = map(Path, sys.argv[1:3])\n"
        "replayer = trying(run, runs=there).replayer(run, ANSWERED)\n"
        "print(make_replay(replayer, ReplayRequest(int(sys.argv[3]), (), 1)).fork)"
    )
    command = [sys.executable, "-c", program, str(silent), str(tmp_path / "there"), str(at)]
    path = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": path}
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    other = Path(said.stdout.strip())
    assert other.name == first.fork.name
    assert trace(other) == trace(first.fork)


# --- every kind of change ---


def test_an_edited_decision_helps(tmp_path: Path) -> None:
    """`edit`: an agent that submits too early waits instead."""
    run = failed(tmp_path, "submit_early")
    recorded = RecordedRun.read(run)
    assert recorded.answer and recorded.answer.by
    end = recorded.activations[recorded.answer.by].end
    assert end is not None
    found = tried(run, hypothesis({"kind": "edit", "at": end.t, "edit": {"fates": []}}))
    assert sum(found.changed.fulfilled) >= 2


def test_what_was_lost_is_sent_again(tmp_path: Path) -> None:
    """`resend`: lost work that comes once more is consumed, and the run is good."""
    run = failed(tmp_path, "address_nobody")
    recorded = RecordedRun.read(run)
    lost = [e.id for e in recorded.events.values() if recorded.orphaned_t(e.id) is not None]
    last = max(one.end.t for one in recorded.activations.values() if one.end)
    row = {"kind": "resend", "at": last + 1, "events": lost, "to": ["agent-1"]}
    found = tried(run, hypothesis(row))
    assert found.verdict == "validated"
    assert all(found.changed.fulfilled)


def test_an_agent_that_left_stays(tmp_path: Path) -> None:
    """`omit`: without the recorded `leave` the run is good."""
    run = failed(tmp_path, "leave")
    leave = next(one.t for one in read_records(run) if isinstance(one, Leave))
    found = tried(run, hypothesis({"kind": "omit", "at": leave, "t": leave}))
    assert found.verdict == "validated"


def test_a_delayed_event_comes_sooner(tmp_path: Path) -> None:
    """`sooner`: an event that was kept arrives earlier than recorded, and is consumed."""
    run = failed(tmp_path, "delay")
    recorded = RecordedRun.read(run)
    kept = next(one for one in recorded.records if isinstance(one, Emit) and one.policy)
    at = next(one.t for one in recorded.records if one.us > kept.us)
    found = tried(run, hypothesis({"kind": "sooner", "at": at, "event": kept.event}))
    assert found.reason != "cannot be replayed"
    assert found.changed.fulfilled[0]


def test_an_agent_is_told(silent: Path) -> None:
    """`tell`: the note lies before the agent in an activation that ends."""
    at = len(list(read_records(silent))) // 2
    found = tried(silent, hypothesis({"kind": "tell", "at": at, "agent": "agent-1", "note": "go"}))
    assert all(found.changed.fulfilled) and found.changed.n


def test_an_activation_is_asked_again(silent: Path) -> None:
    """`again`: the same agent with the same numbers decides the same, so nothing is changed."""
    run = RecordedRun.read(silent)
    one = next(one for one in run.activations.values() if one.agent == "agent-1")
    row = {"kind": "again", "at": one.t, "activation": one.id}
    found = tried(silent, hypothesis(row))
    assert found.reason == "not carried out"
    assert not any(found.changed.fulfilled)


def test_a_longer_limit_lets_a_run_go_on(tmp_path: Path) -> None:
    """`wait`: a run that ended by its time limit goes on beyond it."""
    run = execute(TeamRun(agents=4, size=3000, seed=2, method="mas", limit_s=5.0), tmp_path)
    assert run.result.outcome == "timeout"
    at = run.result.records - 1
    found = tried(run.directory, hypothesis({"kind": "wait", "at": at, "seconds": 60.0}))
    assert all(found.changed.fulfilled) and found.changed.n


def test_what_is_expected_must_come(silent: Path) -> None:
    """A change after which the expected does not happen was not carried out."""
    at = first_start(silent, "agent-3")
    row = {"kind": "seat", "at": at, "agent": "agent-3", "by": "agent-1"}
    comes = tried(silent, hypothesis(row, expects={"agent": "agent-1", "does": "submit"}))
    not_ = tried(silent, hypothesis(row, expects={"agent": "agent-3", "does": "submit"}))
    assert (comes.verdict, not_.verdict) == ("validated", "inconclusive")
    assert not_.reason == "not carried out"


def test_two_changes_at_once(tmp_path: Path) -> None:
    """All interventions of a hypothesis must be carried out."""
    run = failed(tmp_path)
    at = first_start(run, "agent-3")
    rows = (
        {"kind": "seat", "at": at, "agent": "agent-3", "by": "agent-1"},
        {"kind": "tell", "at": at, "agent": "agent-2", "note": "go"},
    )
    found = tried(run, hypothesis(*rows))
    assert found.verdict == "validated"


# --- sources of all sorts ---


def test_a_fork_of_a_fork_can_be_tried(silent: Path, tmp_path: Path) -> None:
    """A fork is a run, and so can be tried itself."""
    late = tried(silent, seat("agent-2", "agent-1", first_start(silent, "agent-2")))
    fork = silent / "why" / late.changed.forks[1]
    starts = [t for t in starts_of(RecordedRun.read(fork), "agent-3", 0) if t > late.at]
    found = tried(fork, seat("agent-3", "agent-1", starts[0]), runs=None)
    assert found.reason != "cannot be replayed" and found.changed.n >= 3


def test_a_run_that_was_cut_off_can_be_tried(silent: Path, tmp_path: Path) -> None:
    """Of a run without an end the control of repeat 0 is made, since it goes on."""
    cut = tmp_path / "cut"
    cut.mkdir()
    lines = trace(silent).splitlines(keepends=True)
    (cut / TRACE).write_bytes(b"".join(lines[: 2 * len(lines) // 3]))
    (cut / SIDE).write_bytes((silent / SIDE).read_bytes())
    found = tried(cut, seat("agent-3", "agent-1", first_start(cut, "agent-3")))
    assert found.verdict == "validated"
    assert found.unchanged.forks[0] != cut.name


def test_a_team_without_other_numbers_is_tried_once(silent: Path, tmp_path: Path) -> None:
    """Of a team that is not `reseeded` a repeat would be the same: there is one."""

    class Plain:
        """An agent that draws nothing."""

        stateless = True

        def __init__(self, inner: Any) -> None:
            self.plan = inner.plan

    def crew() -> Crew:
        made = simulated_crew(read_side(silent))
        return Crew({n: Plain(a) for n, a in made.team.items()}, made.setup, made.score)

    at = first_start(silent, "agent-3")
    found = tried(silent, seat("agent-3", "agent-1", at), crew=crew, runs=tmp_path / "forks")
    assert found.changed.n == found.unchanged.n == 1


# --- budgets and the cache ---


def test_a_budget_may_end_in_the_midst(silent: Path, tmp_path: Path) -> None:
    """After the last replay that is allowed, a hypothesis is inconclusive, and says why."""
    one = seat("agent-3", "agent-1", first_start(silent, "agent-3"))
    found = tried(silent, one, budget=TrialBudget(replays=3), runs=tmp_path / "forks")
    assert (found.verdict, found.reason) == ("inconclusive", "budget")
    assert "3 replays" in found.why
    assert len(list((tmp_path / "forks").iterdir())) == 3


def test_what_was_made_is_found_again(silent: Path, tmp_path: Path) -> None:
    """A second call makes no replay, and says the same; a fresh one makes all of them."""
    one = seat("agent-3", "agent-1", first_start(silent, "agent-3"))
    counts: list[int] = []
    results: list[Tried] = []
    for is_fresh in (False, False, True):
        settings = trying(silent, runs=tmp_path / "forks", is_fresh=is_fresh)
        with Trials(settings.replayer(silent, ANSWERED)) as trials:
            results.append(trials.verify(one))
            counts.append(trials.costs.replays)
    assert counts[0] == counts[2] > counts[1] == 0
    assert results[0] == results[1] == results[2]


def test_the_number_of_processes_changes_nothing(silent: Path, tmp_path: Path) -> None:
    """With two processes the verdict, the arms and the replays are the same, within budgets."""
    one = seat("agent-3", "agent-1", first_start(silent, "agent-3"))
    found: list[tuple[Tried, int]] = []
    for jobs in (1, 2):
        budget = TrialBudget(replays=4)
        settings = trying(silent, runs=tmp_path / str(jobs), jobs=jobs, budget=budget)
        with Trials(settings.replayer(silent, ANSWERED)) as trials:
            found.append((trials.verify(one), trials.costs.replays))
    assert found[0] == found[1]


def test_a_change_that_cannot_be_made_says_why(silent: Path) -> None:
    """A refused fork is no verdict; the reason is that of the fork."""
    row = {"kind": "again", "at": 5, "activation": "nobody"}
    found = tried(silent, hypothesis(row))
    assert found.reason == "cannot be replayed"
    assert "there is no activation 'nobody'" in found.why


def test_a_repeat_below_one_is_refused(silent: Path) -> None:
    """There is no experiment without a replay."""
    with pytest.raises(SettingsError, match="repeat must be at least 1"):
        Trials(Trying(repeat=0).replayer(silent, ANSWERED))


class _Stop:
    """Interrupts a program when it has called something a number of times."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, *args: object) -> None:
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Interrupts replays by a signal: at a record that is written or read, or between steps."""

    def stop(after: int) -> _Stop:
        stop, read, write, rename = _Stop(after), RecordedRun._add, Journal.__call__, Path.rename

        def taken(self: Any, record: Any) -> None:
            stop()
            read(self, record)

        def written(self: Any, record: Any) -> None:
            stop()
            write(self, record)

        def renamed(self: Path, to: Any) -> Path:
            stop()
            return rename(self, to)

        forked = run_fork.fork

        def fork(*args: Any, **more: Any) -> Any:
            stop()
            made = forked(*args, **more)
            stop()
            return made

        monkeypatch.setattr(run_fork, "fork", fork)
        monkeypatch.setattr(RecordedRun, "_add", taken)
        monkeypatch.setattr(Journal, "__call__", written)
        monkeypatch.setattr(Path, "rename", renamed)
        return stop

    return stop


@pytest.mark.sampled(4)
@pytest.mark.parametrize("after", [1, 2, 3, 4, 5, 7, 9, 12, 16, 20, 25, 40, 80, 120, 160, 200, 240,
                                   280, 320, 400])  # fmt: skip
def test_an_interruption_leaves_no_half_of_a_fork(
    after: int, silent: Path, tmp_path: Path, stopping: Any
) -> None:
    """Whenever Ctrl-C comes, each directory that is there is a whole run, and none is hidden."""
    settings = trying(silent, runs=tmp_path / "forks")
    replayer = settings.replayer(silent, ANSWERED)
    one = seat("agent-3", "agent-1", first_start(silent, "agent-3"))
    with Trials(replayer) as trials:
        stop = stopping(after)
        with suppress(KeyboardInterrupt):  # a run that is just ending ends well
            trials.verify(one)
        assert stop.left <= 0
    made = list((tmp_path / "forks").iterdir()) if (tmp_path / "forks").exists() else []
    assert not [path for path in made if path.name.startswith(".")]
    for path in made:
        assert json.loads((path / "result.json").read_text())["directory"] == str(path)
        assert len(list(read_records(path))) > 0
