"""Rehearsal: a step of healing turns to the agent with which the run goes best."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.faults.inject.fault import Fault
from dig.faults.inject.faulty_team import Injected
from dig.faults.inject.run_pair import Played, play
from dig.graph.records import FindingRow, HealRow, IncidentRow, Record, Redirect
from dig.monitor.healing import REHEARSED
from dig.runtime import Decision, EventFate, NewEvent, Plan, View
from dig.runtime.checkpoint import PastActivation
from dig.tasks.run.arrange import make_run
from dig.tasks.run.execute import INTERRUPTED, Execution, execute
from dig.tasks.run.fork import fork, simulated_crew
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.journal import read_side
from dig.traces.journal.reader import TRACE, read_records
from dig.traces.replay.rerun import rerun
from dig.traces.verify import verify

WINDOWS = Thresholds(mc_window_s=10.0, oe_window_s=5.0, dl_window_s=10.0, stall_min_s=20.0)
TROUBLED = make_run("count-frequency", WINDOWS, method="dig+", seed=3)
FAULTS = [Fault.parse("silent target=agent-2"), Fault.parse("stall target=agent-3")]
INJECTED = partial(Injected.into, faults=FAULTS)


def choices(records: Sequence[Record]) -> list[Mapping[str, Any]]:
    """What the trace says about the choices of a run."""
    return [row.detail for row in records if isinstance(row, IncidentRow) and row.what == REHEARSED]


def without_choices(records: Sequence[Record]) -> list[Record]:
    """The records of a run without its choices, numbered anew."""
    kept = [one for one in records if not (isinstance(one, IncidentRow) and one.what == REHEARSED)]
    number = {one.t: t for t, one in enumerate(kept)}
    return [
        replace(one, t=number[one.t], finding=number[one.finding])
        if isinstance(one, HealRow)
        else replace(one, t=number[one.t])
        for one in kept
    ]


@pytest.mark.parametrize(
    "run", [TROUBLED, replace(TROUBLED, remembers=True), replace(TROUBLED, problems=2)]
)
def test_a_run_whose_choices_are_all_the_default_is_the_same_but_for_the_choices(
    run: TeamRun,
) -> None:
    rehearsed = play(replace(run, rehearse=1), FAULTS).records
    assert choices(rehearsed)
    assert without_choices(rehearsed)[1:] == [*play(run, FAULTS).records][1:]  # but for its name


@pytest.fixture(scope="module")
def rehearsed() -> Played:
    return play(replace(TROUBLED, rehearse=3), FAULTS)


def test_the_agent_with_the_best_end_is_chosen_and_the_run_ends_as_it_was_tried(
    rehearsed: Played,
) -> None:
    """An end with an answer is better than one without, and then a complete and an early one."""
    made = choices(rehearsed.records)
    for choice in made:
        ends = choice["tried"]
        best = max(ends.values(), key=lambda end: (
            end["answers"], -end["gaps"], -end["seconds"], -end["calls"],
        ))  # fmt: skip
        assert ends[choice["agent"]] == best
    assert any(choice["agent"] != next(iter(choice["tried"])) for choice in made)
    last = made[-1]["tried"][made[-1]["agent"]]
    assert (last["seconds"], last["calls"]) == (
        rehearsed.result.seconds, rehearsed.result.activations,
    )  # fmt: skip
    assert rehearsed.result.outcome == "submitted"
    assert play(TROUBLED, FAULTS).result.outcome == "timeout"


def test_the_step_turns_to_the_agent_that_its_choice_names(rehearsed: Played) -> None:
    records = rehearsed.records
    for row in records:
        if isinstance(row, IncidentRow) and row.what == REHEARSED:
            assert isinstance(records[row.detail["finding"]], FindingRow)
            after = [one for one in records[row.t + 1 :] if isinstance(one, Redirect)]
            assert after[0].to == (row.detail["agent"],)


def test_a_rehearsed_run_is_driven_again_checked_and_forked_like_any_other(tmp_path: Path) -> None:
    """A fork without a change has all its bytes, with the choices before and after it."""
    run = replace(TROUBLED, rehearse=2)
    parent = execute(run, tmp_path, disturb=INJECTED).directory
    records = [*read_records(parent)]
    made = [row.t for row in records if isinstance(row, IncidentRow) and row.what == REHEARSED]
    assert made
    assert rerun(parent).records == len(records)
    assert not verify(parent / TRACE).problems
    for at in (made[0] - 5, made[0], made[0] + 1):
        forked = fork(parent, at, tmp_path, disturb=INJECTED).directory
        assert (forked / TRACE).read_bytes() == (parent / TRACE).read_bytes()
    again = fork(parent, made[0] - 5, tmp_path, repeat=1, disturb=INJECTED).directory
    assert not verify(again / TRACE).problems
    assert read_side(parent)["rehearse"] == 2
    assert simulated_crew(read_side(parent)).setup is not None


# --- a team of a test's own ---


def hands_out(view: View, part: str = "part") -> Decision:
    """It gives its part away, and waits."""
    asked = any(event.type == "problem" for event in view.events)
    outputs = [NewEvent(payload=part, to=["ann"])] if asked else []
    fates = [EventFate(event=e.id, fate="consume" if asked else "delay") for e in view.events]
    return Decision(fates=fates, outputs=outputs)


def waits(view: View) -> Decision:
    return Decision(fates=[EventFate(event=e.id, fate="delay") for e in view.events])


def submits(view: View) -> Decision:
    if all(event.sender == "system" for event in view.events):
        return Decision()
    fates = [EventFate(event=e.id, fate="consume") for e in view.events]
    return Decision(fates=fates, outputs=[NewEvent(payload="done", final=True)])


class Agent:
    """An agent that does as a function says, and counts its turns."""

    def __init__(self, act: Callable[[View], Decision]) -> None:
        self.turns = 0
        self._act = act

    def plan(self, view: View) -> Plan:
        self.turns += 1
        assert self.turns == view.turn, "it was brought back to the beginning"
        return Plan(1.0, self._act(view))


class BroughtBack(Agent):
    """The same, and it can be brought back."""

    def restore(self, past: Sequence[PastActivation]) -> None:
        self.turns = len(past)


def members(kind: type[Agent]) -> dict[str, Agent]:
    """Ann keeps what she is given, ben and cyd do not help, dan answers whatever he is given."""
    acts = {"lea": hands_out, "ann": waits, "ben": waits, "cyd": waits, "dan": submits}
    return {name: kind(act) for name, act in acts.items()}


RESTORABLE, STATEFUL = members(BroughtBack), members(Agent)
OWN = make_run(
    "count-frequency", WINDOWS, method="dig+", rehearse=4,
    agents_are="tests.tasks.test_rehearsal:RESTORABLE",
)  # fmt: skip


def chosen_in(done: Execution) -> list[Mapping[str, Any]]:
    return choices([*read_records(done.directory)])


@pytest.fixture(autouse=True)
def _rested() -> None:
    for agent in (*RESTORABLE.values(), *STATEFUL.values()):
        agent.turns = 0


def test_agents_with_a_state_are_brought_back_to_the_beginning_for_each_try(
    tmp_path: Path,
) -> None:
    done = execute(OWN, tmp_path)
    first, *_ = chosen_in(done)
    assert (first["agent"], list(first["tried"])) == ("dan", ["dan", "lea", "ben", "cyd"])
    assert done.result.outcome == "submitted"
    assert RESTORABLE["dan"].turns < 5, "tries are made with agents of their own"


def test_a_run_that_is_interrupted_in_a_try_ends_at_once_with_a_whole_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Counter[int] = Counter()

    def act(view: View) -> Decision:
        seen[view.turn] += 1
        if seen[view.turn] == 2:  # the first turn of the first try
            signal.raise_signal(signal.SIGINT)
        return hands_out(view)

    monkeypatch.setitem(RESTORABLE, "lea", BroughtBack(act))
    done = execute(OWN, tmp_path)
    assert (done.result.outcome, done.result.reason) == ("stopped", INTERRUPTED)
    assert seen[1] == 2
    assert chosen_in(done) == []
    assert not verify(done.directory / TRACE).problems


def test_nothing_is_tried_any_more_if_a_team_does_something_else_when_it_is_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Counter[int] = Counter()

    def act(view: View) -> Decision:
        seen[view.turn] += 1
        return hands_out(view, part=str(seen[view.turn]))

    monkeypatch.setitem(RESTORABLE, "lea", BroughtBack(act))
    (only,) = chosen_in(execute(OWN, tmp_path))
    assert "tried" not in only
    assert "did not do the same" in only["why"]
    assert seen[1] == 2, "the run itself, and one try"


@pytest.mark.parametrize(
    ("run", "speed", "says"),
    [
        (TROUBLED, 10.0, "only in virtual time"),
        (replace(TROUBLED, agents_are="model m"), None, "only in virtual time"),
        (
            replace(OWN, agents_are="tests.tasks.test_rehearsal:STATEFUL"),
            None,
            "may keep a state of its own",
        ),
    ],
)
def test_what_cannot_be_played_again_is_not_rehearsed_and_leaves_nothing(
    run: TeamRun, speed: float | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with pytest.raises(SettingsError, match=says):
        execute(replace(run, rehearse=2), tmp_path, speed=speed)
    assert not [*tmp_path.iterdir()]


def test_only_healing_step_by_step_can_be_rehearsed() -> None:
    with pytest.raises(SettingsError, match=r"only the steps of dig\+"):
        TeamRun(method="dig", rehearse=2)


def test_a_rehearsal_is_part_of_the_configuration() -> None:
    """Another number is another run, and the side file has it; none is as it was before."""
    run = replace(TROUBLED, rehearse=3)
    assert run.name not in {TROUBLED.name, replace(run, rehearse=2).name}
    assert TeamRun.read(run.about()) == run
    assert asdict(TROUBLED)["rehearse"] == 0
