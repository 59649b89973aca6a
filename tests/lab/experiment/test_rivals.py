"""The rivals that know no graph: what they see, what they do, and that their runs are like any."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from dig import InteractionGraph, Output
from dig._util.text import counted
from dig.detectors import RETRY, WATCHDOG, is_rivals, standard
from dig.detectors.finding import Finding
from dig.detectors.interventions import Budget
from dig.detectors.patterns import NAMES
from dig.detectors.policy import HEAL_ALL
from dig.errors import SettingsError
from dig.graph.records import FindingRow, HealRow, Record
from dig.lab.experiment.grid import WINDOWS
from dig.lab.rivals import (
    MOST,
    SILENCE_S,
    WORD,
    HealByProblem,
    HealByWord,
    Rival,
    Silence,
    silence_of,
)
from dig.monitor.messages import Effect
from dig.monitor.monitor import Monitor
from dig.monitor.policies import Delayed, ToAgents
from dig.runtime import Bus, PlannedAgent, Setup, simulate
from dig.runtime.result import RunResult
from dig.runtime.simulator import Happening
from dig.show.terminal.terminal_state import TerminalState
from dig.tasks.run.arrange import make_bus, make_problem, make_simulation, make_task
from dig.tasks.run.execute import execute
from dig.tasks.run.run_fork import fork
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from dig.traces.replay.rerun import replay, rerun
from dig.traces.replay.rewind import rewind
from dig.traces.verify import verify
from tests.helpers import Recorder, Scripted, backends, read, rows, submit, tell, wait

HEALERS = {WATCHDOG: HealByWord, RETRY: HealByProblem}
RIVALS = pytest.mark.parametrize("rival", HEALERS)


def runs(rival: str) -> list[TeamRun]:
    """Runs of simulated agents that often wait for each other."""
    plain = TeamRun(agents=3, size=1000, method=rival, profile=Profile(wait=0.5))
    return [replace(plain, seed=seed) for seed in range(1, 9)]


def setup(rival: Rival, **more: Any) -> Setup:
    return Setup(
        detectors=lambda: [Silence(rival)],
        healers=lambda: {silence_of(rival): HEALERS[rival]()},
        policy=HEAL_ALL,
        limit_s=1000.0,
        **more,
    )


def silent(rival: Rival, team: dict[str, PlannedAgent]) -> tuple[Recorder, RunResult]:
    """A run of a team, with a rival and without any detector."""
    sink = Recorder()
    problem = Output("the problem", ("a",), "problem")
    return sink, simulate(team, problem, setup=setup(rival), sink=sink, latency_s=0.0)


def done(records: Iterable[Record]) -> list[tuple[float, str, tuple[str, ...]]]:
    """What a rival did: when, what, and to whom."""
    return [(row.ts, row.action, row.to) for row in rows(records, "heal")]


# --- the watchdog ---


def test_the_watchdog_says_one_word_to_all_agents_after_each_silence() -> None:
    """The first is counted from the last thing that happened, the next from the word's delivery
    or, if agents were woken by it, from what they did last."""
    team: dict[str, PlannedAgent] = {name: Scripted(wait, wait, wait, submit()) for name in "ab"}
    sink, result = silent(WATCHDOG, team)
    assert [ts for ts, *_ in done(sink)][:2] == [10.1, 20.3]
    assert {(action, to) for _, action, to in done(sink)} == {("create", ("a", "b"))}
    said = [(row.by, row.type, row.payload) for row in rows(sink, "emit")[1:3]]
    assert said == [("system", "system", WORD)] * 2
    assert result.outcome == "submitted"


def test_a_note_of_the_watchdog_says_nothing_about_any_event() -> None:
    """Neither in words nor as data."""
    sink, _ = silent(WATCHDOG, {"a": Scripted(wait), "b": Scripted()})
    for row in rows(sink, "heal"):
        nothing = {"pattern": "watchdog:silence", "events": [], "agents": []}
        assert (row.note, row.about) == (WORD, nothing)


def test_the_watchdog_gives_up_after_thirty_words_about_a_problem() -> None:
    """A team that never answers is stopped when nothing can happen any more, before the limit."""
    sink, result = silent(WATCHDOG, {"a": Scripted()})
    assert [action for _, action, _ in done(sink)] == ["create"] * MOST[WATCHDOG]
    assert (MOST[WATCHDOG], result.outcome) == (30, "stopped")


# --- retry ---


def test_retry_gives_the_same_event_to_the_agent_that_is_idle_for_longest() -> None:
    """First to one that has never worked, by name; the next time to another; with the payload of
    the problem, no note, and no second problem."""
    team = {name: Scripted(read) for name in "abc"}
    sink, result = silent(RETRY, dict(team))
    assert done(sink) == [
        (10.1, "reroute", ("b",)), (20.2, "reroute", ("c",)), (30.3, "reroute", ("a",)),
    ]  # fmt: skip
    for agent in team.values():
        shown = [event for view in agent.views for event in view.events]
        assert {(event.id, event.payload, event.notes) for event in shown} == {
            ("e1", "the problem", ())
        }
    assert [row.event for row in rows(sink, "emit")] == ["e1"]
    assert result.outcome == "stopped"


@pytest.mark.parametrize(("budget", "most"), [(Budget(), 3), (Budget(per_run=5), 5)])
def test_retry_tries_three_times_or_as_often_as_the_budget_says(budget: Budget, most: int) -> None:
    run = TeamRun(agents=3, size=1000, method=RETRY, profile=Profile(wait=1.0), budget=budget)
    sink = Recorder()
    make_simulation(run, make_task(run), sink).run()
    assert len(done(sink)) == most


def test_another_draw_poses_the_same_problem_and_does_nothing() -> None:
    plain, again = (TeamRun(agents=3, size=1000, method=name) for name in ("mas", "redraw"))
    sinks = Recorder(), Recorder()
    for run, sink in zip((plain, again), sinks, strict=True):
        make_simulation(run, make_task(run), sink).run()
    problems = [rows(sink, "emit")[0] for sink in sinks]
    assert problems[0].payload == problems[1].payload
    assert [r.ts for r in rows(sinks[0], "end")] != [r.ts for r in rows(sinks[1], "end")]
    assert not rows(sinks[1], "heal")


def test_an_agent_that_has_the_problem_still_is_told_to_continue_instead() -> None:
    """One event cannot lie in front of an agent twice, and nothing else would wake it."""
    sink, result = silent(RETRY, {"a": Scripted(wait, submit())})
    assert done(sink) == [(10.1, "create", ("a",))]
    assert (rows(sink, "emit")[1].payload, result.outcome) == (WORD, "submitted")


def test_a_problem_that_was_solved_twice_is_repeated_work_for_the_detectors() -> None:
    """The graph takes a problem that is sent again for one event with two activations: RSP."""
    sink, retrying = Recorder(), setup(RETRY)
    detecting = replace(retrying, detectors=lambda: [*standard(), Silence(RETRY)])
    team = {"a": Scripted(tell("b")), "b": Scripted(wait, submit()), "c": Scripted(tell("b"))}
    problem = Output("?", ("a",), "problem")
    simulate(dict(team), problem, setup=detecting, sink=sink, latency_s=0.0)
    (found,) = [row for row in rows(sink, "finding") if row.pattern == "RSP"]
    assert found.evidence["shared"][0]["event"] == "e1"


# --- what they see ---


@RIVALS
def test_a_rival_finds_the_same_without_a_graph(rival: Rival) -> None:
    """The detector is shown a stand-in that has the number of the last record and nothing else."""
    compared = 0
    for run in runs(rival):
        sink = Recorder()
        make_simulation(run, make_task(run), sink).run()
        said = [row for row in rows(sink, "finding") if is_rivals(row.pattern)]
        found = without_graph(Silence(rival), sink)
        assert [(f.us, f.subject, f.evidence) for f in found] == [
            (row.us, row.subject, row.evidence) for row in said
        ]
        compared += len(said)
    assert compared >= 3


def without_graph(detector: Silence, log: Iterable[Record]) -> list[Finding]:
    """What a detector raises that is fed records as `Watch` does, beside no graph."""
    found: list[Finding] = []
    for record in log:
        no_graph = cast("InteractionGraph", SimpleNamespace(t=record.t))
        while detector.due is not None and detector.due <= record.us:
            found += detector.expire(no_graph, detector.due)
        if isinstance(record, Silence.kinds):
            found += detector.detect(no_graph, record)
    return found


@RIVALS
def test_silence_is_the_same_whether_work_is_left_or_not(rival: Rival) -> None:
    """Work in a buffer, work on its way, and no work at all: the rival cannot tell them apart."""
    first = []
    later = Delayed(ToAgents(("b",)), 500.0)
    for move in (wait, read, tell("b", policy=later)):
        sink, _ = silent(rival, {"a": Scripted(move), "b": Scripted()})
        first.append(rows(sink, "finding")[0].ts)
    assert first == [10.1, 10.1, 10.1]


def test_a_silence_is_as_long_as_the_windows_of_the_experiments() -> None:
    """So that a rival speaks about as early as healing does for MC and DL."""
    assert SILENCE_S == WINDOWS.mc_window_s == WINDOWS.dl_window_s


@RIVALS
def test_there_is_no_silence_while_an_agent_is_at_work(rival: Rival) -> None:
    """An agent that thinks for half a minute is left alone."""
    sink, _ = silent(rival, {"a": Scripted(submit(), think_s=30.0)})
    assert not rows(sink, "finding")


@RIVALS
def test_there_is_no_silence_before_a_problem_and_after_its_answer(rival: Rival) -> None:
    """A session that rests is not spoken to."""
    sink = Recorder()
    problem = Output("?", ("a",), "problem")
    script = [(100.0, lambda monitor: monitor.inject(problem)), (300.0, lambda monitor: [])]
    team = {"a": Scripted(submit())}
    simulate(team, setup=setup(rival, session=True), script=script, sink=sink)
    assert len(rows(sink, "deliver")) == 2
    assert not rows(sink, "finding")


def happening(at_s: float, what: Callable[[Monitor], list[Effect]]) -> Happening:
    return at_s, what


def test_a_further_problem_has_a_right_to_further_attempts() -> None:
    """Three for the first problem of a session, three for the second, and then no more."""
    sink = Recorder()
    script = [
        happening(at, lambda monitor: monitor.inject(Output("?", ("a",), "problem")))
        for at in (0.0, 100.0)
    ]
    script.append(happening(200.0, lambda monitor: []))
    simulate(
        {"a": Scripted(*[read] * 9)}, setup=setup(RETRY, session=True), script=script, sink=sink
    )
    assert [row.event for row in rows(sink, "heal")] == ["e1"] * 3 + ["e2"] * 3


def test_an_agent_that_goes_and_comes_ends_no_silence() -> None:
    """To join and to leave is not to do anything."""
    sink = Recorder()
    script = [
        happening(2.0, lambda monitor: monitor.leave("z")),
        happening(5.0, lambda monitor: monitor.join("z")),
    ]
    team, problem = {"a": Scripted(wait), "z": Scripted()}, Output("?", ("a",), "problem")
    simulate(team, problem, setup=setup(RETRY), script=script, sink=sink, latency_s=0.0)
    assert rows(sink, "finding")[0].ts == 10.1


def test_an_agent_that_left_is_neither_at_work_nor_idle() -> None:
    """The problem goes to the one that stayed, and the turn of the other is waited for no more."""
    sink = Recorder()
    script = [happening(5.0, lambda monitor: monitor.leave("a"))]
    team = {"a": Scripted(think_s=30.0), "b": Scripted(submit())}
    problem = Output("?", ("a",), "problem")
    result = simulate(team, problem, setup=setup(RETRY), script=script, sink=sink, latency_s=0.0)
    assert done(sink) == [(10.0, "reroute", ("b",))]
    assert result.outcome == "submitted"


def test_a_problem_can_be_given_again_although_history_was_evicted() -> None:
    """A session that keeps no closed history still knows its latest problem, with its payload, as
    long as one problem has no answer."""
    sink, count = Recorder(), 80
    agents = {"a": Scripted(read, submit()), "b": Scripted(submit(), *[read] * count)}
    events = [Output("first", ("a",), "problem"), Output("second", ("b",), "problem")]
    events += [Output("by the way", ("b",), "notice")] * count
    script = [
        happening(float(i), partial(Monitor.inject, output=event)) for i, event in enumerate(events)
    ]
    script.append(happening(count + 15.0, lambda monitor: []))
    session = setup(RETRY, session=True, keep=0)
    simulate(dict(agents), setup=session, script=script, sink=sink)
    assert [row.event for row in rows(sink, "heal")] == ["e2"]
    assert not rows(sink, "incident")
    assert agents["a"].views[1].events[0].payload == "second"


@pytest.mark.parametrize("wrong", [("nobody", 10.0), (WATCHDOG, 0.0), (RETRY, float("inf"))])
def test_a_rival_that_makes_no_sense_is_refused(wrong: Any) -> None:
    """An unknown name, and a time that is none."""
    with pytest.raises(SettingsError):
        Silence(*wrong)


# --- their runs are runs like any other ---


@RIVALS
def test_their_traces_are_valid_and_come_out_again(tmp_path: Path, rival: str) -> None:
    """Verify finds no mistake; replay and rerun give the same records."""
    spoken = 0
    for run in runs(rival):
        execution = execute(run, tmp_path)
        path = execution.directory
        spoken += any(is_rivals(f.pattern) for f in execution.result.findings)
        assert not verify(path / "trace.dig.jsonl").problems
        assert replay(path).is_same
        assert rerun(path).is_finished
    assert spoken >= 2


@RIVALS
def test_a_fork_goes_on_at_any_record_as_its_parent_did(tmp_path: Path, rival: str) -> None:
    """Nothing is changed, so the same trace comes of it; also right before and after a silence."""
    execution = next(
        one
        for one in (execute(run, tmp_path) for run in runs(rival))
        if any(is_rivals(f.pattern) for f in one.result.findings)
    )
    path = execution.directory / "trace.dig.jsonl"
    lines = path.read_bytes().splitlines()
    silence = next(
        t
        for t, line in enumerate(lines)
        if b'"kind":"finding","pattern":"%s:silence"' % rival.encode() in line
    )
    for at in {1, 2, *range(silence - 2, silence + 5), len(lines) - 2}:
        again = fork(path.parent, at, tmp_path / "forks").directory / "trace.dig.jsonl"
        assert again.read_bytes().splitlines() == lines, f"at {at}"


@RIVALS
def test_a_trace_says_which_rival_there_was(tmp_path: Path, rival: str) -> None:
    """A setup made from the first line alone raises and does the same."""
    run = runs(rival)[0]
    path = execute(run, tmp_path).directory / "trace.dig.jsonl"
    made = rewind(path, 2, tools=make_task(run).tools()).setup
    (silence,) = [one for one in made.detectors() if isinstance(one, Silence)]
    assert silence.pattern == silence_of(cast("Rival", rival))
    assert made.healers is not None
    assert [type(one) for one in made.healers().values()] == [HEALERS[cast("Rival", rival)]]


@RIVALS
def test_the_detectors_find_in_a_rivals_run_what_they_find_in_any(rival: str) -> None:
    """Up to the first silence, a run is that of mas; and a rival's finding is none of theirs."""
    cut, longest = 0, 0
    for run in runs(rival):
        sink, plain = Recorder(), Recorder()
        result = make_simulation(run, make_task(run), sink).run()
        other = replace(run, method="mas")
        make_simulation(other, make_task(other), plain).run()
        found = [f for f in result.findings if not is_rivals(f.pattern)]
        assert {f.pattern for f in found} <= set(NAMES)
        assert sum(result.worth.values()) == len(found)
        silences = [r.t for r in sink if isinstance(r, FindingRow) and is_rivals(r.pattern)]
        before = silences[0] if silences else len(sink)
        assert sink[1:before] == plain[1:before]
        cut, longest = cut + bool(silences), max(longest, before)
    assert cut >= 2
    assert longest > 20


@RIVALS
def test_what_a_rival_says_is_shown_and_not_weighed(rival: str) -> None:
    """The result lists it beside what the detectors raised; the counts of errors leave it out."""
    for run in runs(rival):
        watched, sink = TerminalState(), Recorder()
        result = make_simulation(run, make_task(run), sink).run()
        if silence_of(cast("Rival", rival)) not in result.raised():
            continue
        assert f"{rival}:silence" in result.findings_text()
        for record in sink:
            watched.follow(record)
        shown = watched.frame(0).counts.split(", ")
        assert counted(sum(result.worth.values()), "finding") in [c.split(" (")[0] for c in shown]
        return
    pytest.fail("no run was silent")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@RIVALS
def test_they_work_in_real_time_too(rival: Rival, backend: str) -> None:
    """On the bus a silence is 10 s on the run's clock, and a team that waits gets its answer, or
    all the attempts that there are."""
    spoken = 0
    for run in runs(rival)[:6]:
        sink, task = Recorder(), make_task(run)
        bus = make_bus(run, task, sink)
        name, options = backends()[backend]()
        anyio.run(_carried_out, bus, make_problem(run, task), backend=name, backend_options=options)
        healed = [row for row in sink if isinstance(row, HealRow)]
        for row in healed:
            before = [r.us for r in sink[: row.finding] if isinstance(r, Silence.kinds)]
            assert row.us - before[-1] == pytest.approx(SILENCE_S * 1e6, abs=2e4)
        spoken += bool(healed)
        assert bus.result.outcome == "submitted" or len(healed) == MOST[rival]
    assert spoken >= 1


async def _carried_out(bus: Bus, problem: Output) -> None:
    async with bus.open():
        bus.inject(problem)
        await bus.wait()
