"""Forks: the recorded beginning byte by byte, one change, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from dig.errors import ReplayError, SettingsError, TraceError
from dig.graph import records
from dig.monitor.messages import Output
from dig.monitor.monitor import Monitor
from dig.runtime import Decision, NewEvent, Plan, Setup, View
from dig.runtime.bus import Resumed
from dig.runtime.checkpoint import PastActivation, restore
from dig.runtime.simulator import Simulation
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import read_records
from dig.traces.replay.changes import AskAgain, Reseat, RunChange, TellAgent
from dig.traces.replay.rerun import rerun
from dig.traces.replay.rewind import rewind
from dig.traces.verify import verify
from tests.chaos import chaos_run
from tests.helpers import Recorder, backends

from .forks import forked, lines, turns_before
from .journals import journalled, reseal, rows_of, simple_run, write

RICH = (3, 12, 25, 41)  # runs with healing, scripts, failures, comings and goings


# --- nothing is changed ---


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", RICH)
@pytest.mark.parametrize("offset", range(4))
def test_at_every_record_a_fork_that_changes_nothing_is_the_same_run(
    tmp_path: Path, seed: int, offset: int
) -> None:
    """And no agent is called for an activation whose decision was recorded before."""
    run = simple_run(seed)
    path = journalled(run, tmp_path)
    parent = path.read_bytes()
    for at in range(offset, len(lines(path)), 4):
        fork, calls = forked(path, at, run)
        assert fork.read_bytes() == parent, f"simple_run({seed}) at {at}"
        assert not set(calls) & turns_before(path, at)
    assert path.read_bytes() == parent


def test_no_agent_is_asked_again_what_ended_when_it_left(tmp_path: Path) -> None:
    """The agent has come back and works at something else when the fork begins."""
    asked: list[int] = []

    class Slow:
        stateless = True

        def plan(self, view: View) -> Plan:
            asked.append(view.turn)
            return Plan(1.0, Decision.submit(view, view.turn))

    setup, path = Setup(), tmp_path / "parent.dig.jsonl"
    journal = Journal(path, header=setup.header())
    simulation = Simulation({"a": Slow(), "b": Slow()}, setup, journal)
    problem = Output("?", ("a",), "problem")
    simulation.plan(0.0, lambda monitor: monitor.inject(problem))
    simulation.plan(0.5, lambda monitor: monitor.leave("a"))
    simulation.plan(0.8, lambda monitor: monitor.join("a"))
    simulation.plan(0.9, lambda monitor: monitor.inject(problem))
    simulation.run()
    journal.close()
    assert asked == [1, 2]
    asked.clear()
    moment = rewind(path, first(path, "start", 1) + 1)
    Simulation.resume(moment, {"a": Slow(), "b": Slow()}).run()
    assert asked == []
    assert [one.end is None for one in moment.past["a"]] == [True, False]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(2, 6))
def test_a_run_that_was_cut_off_goes_on_as_if_nothing_had_been(tmp_path: Path, first: int) -> None:
    run = simple_run(12)
    whole = journalled(run, tmp_path)
    all_lines = lines(whole)
    cut = tmp_path / "cut.dig.jsonl"
    for count in range(first, len(all_lines), 4):
        cut.write_bytes(b"".join(all_lines[:count]))
        if len(_awaited(cut)):
            with pytest.raises(ReplayError, match="was cut off before all outputs"):
                rewind(cut, count)
        else:
            fork, _ = forked(cut, count, run)
            assert fork.read_bytes() == whole.read_bytes()


def _awaited(path: Path) -> set[str]:
    """The outputs whose `emit` is not there."""
    named: set[str] = set()
    for record in read_records(path):
        if isinstance(record, records.End):
            named |= set(record.outputs)
        elif isinstance(record, records.Emit):
            named.discard(record.event)
    return named


# --- something is changed ---


def ring(to: str = "b") -> dict[str, Any]:
    """Ada gets a problem, tells somebody, who submits."""

    @dataclass(frozen=True)
    class Talker:
        def plan(self, view: View) -> Plan:
            if view.events[0].type == "problem":
                return Plan(1.0, Decision.respond(view, NewEvent(payload="please", to=[to])))
            said = [view.events[0].payload, *view.events[0].notes]
            return Plan(1.0, Decision.submit(view, said))

    return dict.fromkeys("abc", Talker())


def original(folder: Path, setup: Setup | None = None) -> Path:
    setup = setup or Setup()
    path = folder / "parent.dig.jsonl"
    journal = Journal(path, header=setup.header())
    simulation = Simulation(ring(), setup, journal)
    simulation.plan(0.0, lambda monitor: monitor.inject(Output("?", ("a",), "problem")))
    simulation.run()
    journal.close()
    return path


def first(path: Path, kind: str, number: int = 0) -> int:
    return [t for t, row in enumerate(rows_of(path)) if row["kind"] == kind][number]


def after(path: Path, at: int, edit: dict[str, Any], **more: Any) -> Recorder:
    """The records of a fork with a change."""
    sink = Recorder()
    before = path.read_bytes()
    Simulation.resume(rewind(path, at, edit=edit, sink=sink, **more), ring()).run()
    assert path.read_bytes() == before, "the parent is only read"
    assert sink[:at] == list(read_records(path))[:at]
    return sink


def test_a_decision_can_be_changed(tmp_path: Path) -> None:
    path = original(tmp_path)
    outputs = [{"payload": "hurry", "to": ["c"]}]
    sink = after(path, first(path, "end"), {"outputs": outputs})
    assert [r.agent for r in sink if isinstance(r, records.Start)] == ["a", "c"]
    assert sink[-1].answer == ["hurry"]  # type: ignore[union-attr]  # it is the last record


def test_a_decision_can_be_made_to_fail(tmp_path: Path) -> None:
    path = original(tmp_path)
    sink = after(path, first(path, "end"), {"error": "it fell asleep"})
    ends = [r for r in sink if isinstance(r, records.End)]
    assert ends[0].error == "it fell asleep" and ends[0].outputs == ()
    assert [r.agent for r in sink if isinstance(r, records.Start)] == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("number", "edit", "answer"),
    [
        (0, {"type": "message", "payload": "tell me"}, ["tell me"]),
        (1, {"payload": "thanks"}, ["thanks"]),
        (1, {"to": ["c"]}, ["please"]),
        (2, {"payload": 8}, 8),
    ],
)
def test_an_event_can_be_changed(
    tmp_path: Path, number: int, edit: dict[str, Any], answer: Any
) -> None:
    path = original(tmp_path)
    sink = after(path, first(path, "emit", number), edit)
    assert sink[-1].answer == answer  # type: ignore[union-attr]
    changed = [r for r in sink if isinstance(r, records.Emit)][number]
    for key, value in edit.items():
        assert getattr(changed, key) == (tuple(value) if key == "to" else value)


def test_a_note_and_its_recipients_can_be_changed(tmp_path: Path) -> None:
    """Of the many things that healing says, the one that is meant."""
    for seed in (8, 20, 41, 44):
        run = simple_run(seed)
        path = journalled(run, tmp_path)
        for at, row in enumerate(rows_of(path)):
            if row["kind"] != "heal" or row["action"] == "refused":
                continue
            fork, _ = forked(path, at, run, {"note": "look here"})
            assert lines(fork)[:at] == lines(path)[:at]
            assert rows_of(fork)[at] == {**row, "note": "look here"}
            assert verify(fork).problems == []
            if row["action"] != "inject":
                fork, _ = forked(path, at, run, {"to": ["a"]})
                assert rows_of(fork)[at] == {**row, "to": ["a"]}
        path.unlink()


def test_what_a_host_redirected_can_go_elsewhere(tmp_path: Path) -> None:
    seen = 0
    for seed in (3, 20, 41):
        run = simple_run(seed)
        path = journalled(run, tmp_path)
        rows = rows_of(path)
        for at, row in enumerate(rows):
            if row["kind"] == "redirect" and rows[at - 1]["kind"] != "heal":
                fork, _ = forked(path, at, run, {"to": []})
                assert rows_of(fork)[at] == {**row, "to": []}
                seen += 1
        path.unlink()
    assert seen


@pytest.mark.parametrize("seed", RICH[2:])
def test_whatever_is_changed_the_beginning_stays_and_the_rest_is_sound(
    tmp_path: Path, seed: int
) -> None:
    """A fork of a fork runs again byte for byte, too."""
    run = simple_run(seed)
    path = journalled(run, tmp_path)
    for at, row in enumerate(rows_of(path)):
        edit: dict[str, Any] | None = None
        if row["kind"] == "end":
            edit = {"fates": [], "outputs": [{"payload": "new", "to": ["a"]}]}
        elif row["kind"] == "emit" and row["by"] != "system":
            edit = {"payload": "new", "type": "notice"}
        if edit:
            fork, calls = forked(path, at, run, edit)
            assert lines(fork)[:at] == lines(path)[:at]
            assert not set(calls) & turns_before(path, at)
            assert verify(fork).problems == []
            assert rerun(fork).records == len(lines(fork))


def test_what_comes_from_outside_and_makes_no_sense_any_more_is_written_down(
    tmp_path: Path,
) -> None:
    """Here the host redirects an event that an earlier change has kept from being."""
    setup = Setup(limit_s=30.0)
    path = tmp_path / "parent.dig.jsonl"
    journal = Journal(path, header=setup.header())
    simulation = Simulation(ring("nobody"), setup, journal)
    simulation.plan(0.0, lambda monitor: monitor.inject(Output("?", ("a",), "problem")))
    simulation.plan(3.0, lambda monitor: monitor.redirect("e2", ["c"]))
    simulation.run()
    journal.close()
    sink = after(path, first(path, "end"), {"outputs": []})
    (incident,) = [r for r in sink if isinstance(r, records.IncidentRow)]
    assert incident.what == "could not be repeated"
    assert "'e2' does not exist" in incident.detail["why"]


# --- what cannot be ---


@pytest.mark.parametrize(
    ("kind", "edit", "reason"),
    [
        ("start", {"inputs": []}, "in which nothing can be changed"),
        ("deliver", {"to": "b"}, "in which nothing can be changed"),
        ("end", {"activation": "a9"}, "not `activation`"),
        ("end", {"outputs": [{"final": 1, "x": 1}]}, "wrong at outputs.0"),
        ("end", {"error": 5}, "`error` is a text"),
        ("end", {"error": "no", "fates": []}, "`error` is a text"),
        ("end", {"fates": [{"event": "e9", "fate": "consume"}]}, "names event 'e9'"),
        ("emit", {}, "not nothing"),
        ("emit", {"to": "bob"}, "`to` must be a list"),
        ("emit", {"type": ""}, "`type` must be a text"),
        ("emit", {"by": None}, "not `by`"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(
    tmp_path: Path, kind: str, edit: dict[str, Any], reason: str
) -> None:
    path = original(tmp_path)
    with pytest.raises(ReplayError, match=reason):
        rewind(path, first(path, kind), edit=edit)


def test_what_follows_from_healing_is_changed_where_it_was_decided(tmp_path: Path) -> None:
    reasons = {"emit": "change the `heal` record before it", "redirect": "follows from healing"}
    seen = set()
    for seed in (8, 20, 41, 44):
        path = journalled(simple_run(seed), tmp_path)
        rows = rows_of(path)
        for at, row in enumerate(rows):
            if row["kind"] in reasons and rows[at - 1]["kind"] == "heal":
                with pytest.raises(ReplayError, match=reasons[row["kind"]]):
                    rewind(path, at, edit={"to": ["a"]})
                seen.add(row["kind"])
        path.unlink()
    assert seen == {"emit", "redirect"}


def test_there_must_be_such_a_record(tmp_path: Path) -> None:
    path = original(tmp_path)
    count = len(lines(path))
    with pytest.raises(TraceError, match=f"there is no record {count}; the last is {count - 1}"):
        rewind(path, count)


def test_a_run_with_gates_is_refused(tmp_path: Path) -> None:
    """In a line that says why."""
    run = next(run for run in (chaos_run(seed, heal=True) for seed in range(25)) if run.setup.gates)
    path = journalled(run, tmp_path)
    with pytest.raises(ReplayError, match=r"the run had gates: .*; what they decided is not"):
        rewind(path, len(lines(path)) - 1)
    with pytest.raises(ReplayError, match="the run has gates; what they decided is not"):
        rewind(path, len(lines(path)) - 1, setup=run.setup)


def test_a_damaged_or_forged_beginning_is_refused(tmp_path: Path) -> None:
    path = original(tmp_path)
    rows = rows_of(path)
    rows[2]["to"] = "b"
    with pytest.raises(ReplayError, match="record 2 differs"):
        rewind(reseal(path, rows), 4)


# --- agents of a user's own ---


class Remembers:
    """Counts what it was told, which only `restore` can bring back."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def plan(self, view: View) -> Plan:
        self.told += [event.payload for event in view.events]
        if len(self.told) > 2:
            return Plan(1.0, Decision.submit(view, self.told))
        more = NewEvent(payload=len(self.told), to=[view.agent])
        return Plan(1.0, Decision.respond(view, more))


class Restores(Remembers):
    def restore(self, past: Sequence[PastActivation]) -> None:
        self.told = [event.payload for turn in past for event in turn.view.events]


def remembered(folder: Path) -> Path:
    path = folder / "parent.dig.jsonl"
    journal = Journal(path, header=Setup().header())
    simulation = Simulation({"a": Remembers()}, Setup(), journal)
    simulation.plan(0.0, lambda monitor: monitor.inject(Output("?", ("a",), "problem")))
    simulation.run()
    journal.close()
    return path


def test_an_agent_with_a_state_of_its_own_is_brought_back(tmp_path: Path) -> None:
    path = remembered(tmp_path)
    for at in range(len(lines(path))):
        sink = Recorder()
        Simulation.resume(rewind(path, at, sink=sink), {"a": Restores()}).run()
        assert sink == list(read_records(path))


def test_an_agent_that_cannot_be_brought_back_is_refused_if_it_did_something(
    tmp_path: Path,
) -> None:
    path = remembered(tmp_path)
    begun = first(path, "start")
    Simulation.resume(rewind(path, begun), {"a": Remembers()}).run()
    with pytest.raises(ReplayError, match=r"agent 'a' \(Remembers\) may keep a state"):
        Simulation.resume(rewind(path, begun + 1), {"a": Remembers()})


def test_everybody_who_is_there_must_be_in_the_team(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no agent called 'b', 'c'"):
        Simulation.resume(rewind(original(tmp_path), 3), {"a": ring()["a"]})


# --- in real time ---


class Acts:
    """An agent of `ring` in real time."""

    stateless = True

    def __init__(self, calls: list[str], to: str = "b") -> None:
        self.calls = calls
        self.to = to

    async def act(self, view: View) -> Decision:
        plan = ring(self.to)["a"].plan(view)
        self.calls.append(view.agent)
        await anyio.sleep(plan.think_s)
        assert isinstance(plan.decision, Decision)
        return plan.decision


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_team_in_real_time_goes_on_too(tmp_path: Path, backend: str) -> None:
    """From every record, to the same answer, and nobody is asked twice."""
    path = original(tmp_path)
    parent = list(read_records(path))
    ended = {t: [r for r in parent[:t] if isinstance(r, records.Start)] for t in range(len(parent))}
    for at in range(len(parent)):
        calls: list[str] = []
        sink = Recorder()
        bus = Resumed(rewind(path, at, sink=sink), dict.fromkeys("abc", Acts(calls)))

        async def go(bus: Resumed = bus) -> None:
            async with bus.open():
                await bus.wait()

        name, options = backends()[backend]()
        anyio.run(go, backend=name, backend_options=options)
        assert bus.result.answer == ["please"]
        assert sink[:at] == parent[:at]
        assert [replace(r, us=0) for r in sink] == [replace(r, us=0) for r in parent]
        assert calls == ["a", "b"][len(ended[at]) :]


def test_who_comes_and_goes_does_so_again_in_real_time(tmp_path: Path) -> None:
    setup = Setup(limit_s=20.0, session=True)
    path = tmp_path / "parent.dig.jsonl"
    journal = Journal(path, header=setup.header())
    simulation = Simulation(ring("d"), setup, journal)
    simulation._team["d"] = ring()["a"]
    script: list[tuple[float, Callable[..., Any]]] = [
        (0.5, lambda monitor: monitor.join("d")),
        (5.0, lambda monitor: monitor.leave("c")),
        (6.0, lambda monitor: monitor.inject(Output("again", ("a",), "problem"))),
    ]
    for when, what in [(0.0, lambda m: m.inject(Output("?", ("a",), "problem"))), *script]:
        simulation.plan(when, what)
    simulation.run()
    journal.close()
    parent = list(read_records(path))
    sink = Recorder()
    calls: list[str] = []
    team = dict.fromkeys("abcd", Acts(calls, "d"))
    bus = Resumed(rewind(path, 2, sink=sink), team)

    async def go() -> None:
        async with bus.open():
            await bus.wait()

    name, options = backends()["asyncio"]()
    anyio.run(go, backend=name, backend_options=options)
    kinds = [r.kind for r in sink if r.kind in ("join", "leave", "emit")]
    assert kinds == [r.kind for r in parent if r.kind in ("join", "leave", "emit")]
    assert calls == ["a", "d", "a", "d"]


def resumed(path: Path, team: dict[str, Any], at: int, *changes: RunChange) -> Recorder:
    """The records of a fork with changes, in real time."""
    sink = Recorder()
    bus = Resumed(rewind(path, at, changes=changes, sink=sink), team)

    async def go() -> None:
        async with bus.open():
            await bus.wait()

    name, options = backends()["asyncio"]()
    anyio.run(go, backend=name, backend_options=options)
    return sink


@pytest.mark.parametrize("later", [0, 1])
def test_an_agent_in_real_time_is_asked_again(tmp_path: Path, later: int) -> None:
    """At the start of its activation and later, with a note beside its input."""
    path = original(tmp_path)
    at = first(path, "start", 1) + later
    calls: list[str] = []
    team = dict.fromkeys("abc", Acts(calls))
    sink = resumed(path, team, at, AskAgain(at, "a2", "Again!"))
    assert calls == ["b"]
    assert sink[-1].answer == ["please", "Again!"]  # type: ignore[union-attr]


def test_an_agent_in_real_time_is_told_something(tmp_path: Path) -> None:
    path = original(tmp_path)
    at = first(path, "start", 1)
    calls: list[str] = []
    sink = resumed(path, dict.fromkeys("abc", Acts(calls)), at, TellAgent(at, "b", "Hurry."))
    starts = [r for r in sink if isinstance(r, records.Start)]
    told = next(r for r in sink if isinstance(r, records.Emit) and r.by == records.SYSTEM)
    assert told.event in starts[-1].inputs


def test_a_member_in_real_time_takes_a_seat(tmp_path: Path) -> None:
    path = original(tmp_path)
    calls: list[str] = []
    team = {**dict.fromkeys("abc", Acts(calls)), "c": Says("from c")}
    at = first(path, "start", 1)
    sink = resumed(path, team, at, Reseat(at, "b", "c"))
    assert sink[-1].answer == "from c"  # type: ignore[union-attr]
    assert calls == []


def test_a_member_with_a_state_takes_a_seat_with_the_past_of_that_seat(tmp_path: Path) -> None:
    """And its own state stays its own."""
    path = tmp_path / "parent.dig.jsonl"
    journal = Journal(path, header=Setup().header())
    simulation = Simulation({"a": Remembers(), "b": Remembers()}, Setup(), journal)
    for to in "ab":
        problem = Output(f"for {to}", (to,), "problem")
        simulation.plan(0.0, partial(Monitor.inject, output=problem))
    simulation.run()
    journal.close()
    at = first(path, "start", 2)
    moment = rewind(path, at, changes=[Reseat(at, "a", "b")])
    team = {"a": Remembers(), "b": Restores()}
    seated = restore(team, moment)
    assert (seated["a"].told, seated["b"].told) == (["for a"], ["for b"])
    assert seated["b"] is team["b"] is not seated["a"]


@dataclass(frozen=True)
class Says:
    """Submits the same whatever it sees."""

    answer: str

    async def act(self, view: View) -> Decision:
        return Decision.submit(view, self.answer)


def test_the_trace_of_a_parent_that_did_not_say_how_it_was_made(tmp_path: Path) -> None:
    """The setup is then handed in."""
    path = write(tmp_path)
    with pytest.raises(ReplayError, match="does not say what the run was made with"):
        rewind(path, 3)
    moment = rewind(path, 3, setup=Setup())
    assert json.dumps([type(item).__name__ for item in moment.agenda]) == '["PendingStart"]'
