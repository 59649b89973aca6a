"""Forks of simulated runs: repeats, changes, and forks of forks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dig.errors import ReplayError, SettingsError, TraceError
from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS
from dig.faults.inject.faulty_team import disturbance_of
from dig.graph.records import Deliver, Emit, End, Expire, IncidentRow, Join, Leave, Record, Start
from dig.monitor.messages import Output
from dig.runtime import Decision, NewEvent, Plan, Setup, View, simulate
from dig.runtime.checkpoint import PastActivation, is_deterministic
from dig.runtime.simulator import Simulation
from dig.tasks.run.arrange import arrange, make_task
from dig.tasks.run.crew import Crew, simulated_crew, task_crew
from dig.tasks.run.execute import execute
from dig.tasks.run.judging import Judging
from dig.tasks.run.run_fork import fork
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from dig.traces.journal.journal import SIDE, Journal, read_side
from dig.traces.journal.reader import TRACE, read_records
from dig.traces.replay.changes import (
    AskAgain,
    EditRecord,
    OmitRecord,
    ReleaseSooner,
    Reseat,
    Resend,
    RunChange,
    TellAgent,
    WaitLonger,
    read_change,
)
from dig.traces.replay.rerun import rerun
from dig.traces.replay.rewind import rewind
from dig.traces.verify import verify
from tests.faults.forks import faulty


def trace(run: Path) -> bytes:
    return (run / TRACE).read_bytes()


def records(run: Path) -> list[Record]:
    return list(read_records(run))


def lines(run: Path) -> list[bytes]:
    return trace(run).splitlines()


def forked(parent: Path, at: int, folder: Path, **more: Any) -> Path:
    """A fork, sound, with its parent's beginning, of a parent that is only read."""
    before = {path: path.read_bytes() for path in parent.iterdir() if path.is_file()}
    disturb = disturbance_of(read_side(parent))
    made = fork(parent, at, folder / "forks", disturb=disturb, **more).directory
    assert {path: path.read_bytes() for path in parent.iterdir() if path.is_file()} == before
    assert lines(made)[:at] == lines(parent)[:at]
    assert verify(made / TRACE).problems == []
    assert rerun(made).records == len(lines(made))
    return made


def changed(parent: Path, folder: Path, *changes: RunChange, **more: Any) -> Path:
    return forked(parent, min(one.at for one in changes), folder, changes=changes, **more)


@pytest.fixture(scope="module")
def healed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healed run with a fault that lasts."""
    folder = tmp_path_factory.mktemp("healed")
    return faulty(Fault(kind="pass_on", target="agent-2", start_s=2.0), 2, folder)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that fails: an agent hoards all that comes, and nobody heals."""
    folder = tmp_path_factory.mktemp("failed")
    fault = Fault(kind="hoard", target="agent-2", start_s=0.0)
    return faulty(fault, 2, folder, method="mas", profile=Profile.perfect())


def first(run: Path, kind: type[Record], **said: Any) -> Any:
    return next(
        r for r in records(run)
        if isinstance(r, kind) and all(getattr(r, k) == v for k, v in said.items())
    )  # fmt: skip


# --- repeats ---


def test_repeats_draw_other_numbers_after_the_record_and_none_before(
    healed: Path, tmp_path: Path
) -> None:
    """The same repeat is the same bytes, another is another run, and the task stays the same."""
    at = len(lines(healed)) // 3
    made = [forked(healed, at, tmp_path, repeat=number) for number in (0, 1, 1, 2)]
    same, one, again, two = map(trace, made)
    assert same == trace(healed)
    assert one == again
    assert len({same, one, two}) == 3
    assert [read_side(run)["forked_from"]["repeat"] for run in made] == [0, 1, 1, 2]
    expected = {json.loads((run / "result.json").read_text())["score"]["valid"] for run in made}
    assert expected == {True}, "the data are the parent's, or no answer would be right"


def test_a_repeat_is_the_same_in_another_process(healed: Path, tmp_path: Path) -> None:
    """With another hash seed, too."""
    code = (
        "import sys; from pathlib import Path; from tests.tasks.test_forks import forked, trace;"
        "from hashlib import sha256;"
        "made = forked(Path(sys.argv[1]), 40, Path(sys.argv[2]), repeat=3);"
        "print(sha256(trace(made)).hexdigest())"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", code, str(healed), str(tmp_path / "elsewhere")],
        env={**os.environ, "PYTHONHASHSEED": "77"}, check=True, capture_output=True,
        text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    here = trace(forked(healed, 40, tmp_path / "here", repeat=3))
    assert elsewhere.stdout.strip() == sha256(here).hexdigest()


def test_a_fork_of_a_repeat_goes_on_with_its_numbers(healed: Path, tmp_path: Path) -> None:
    """Its unchanged forks are the same bytes, from its first free record on; faults included."""
    at = len(lines(healed)) // 3
    once = forked(healed, at, tmp_path, repeat=1)
    for later in (at, at + 1, (at + len(lines(once))) // 2, len(lines(once)) - 1):
        assert trace(forked(once, later, tmp_path)) == trace(once)
    twice = forked(once, at + 9, tmp_path, repeat=1)
    assert trace(twice) not in (trace(once), trace(healed))
    for later in (at + 9, (at + len(lines(twice))) // 2):
        assert trace(forked(twice, later, tmp_path)) == trace(twice)
    with pytest.raises(ReplayError, match=f"was changed before record {at}: fork it there"):
        forked(once, at - 1, tmp_path)


@pytest.mark.nightly
def test_a_fault_of_a_repeat_knows_by_which_numbers_it_acted(tmp_path: Path) -> None:
    """It may act three times, by chance; a fork of the repeat counts the acts of the repeat."""
    for seed in (1, 2, 3, 4):
        parameters = {"probability": 0.5, "at_most": 3}
        fault = Fault(kind="hoard", target="agent-1", parameters=parameters)
        once = forked(faulty(fault, seed, tmp_path / "runs"), 3, tmp_path, repeat=1)
        for at in range(4, len(lines(once)), 9):
            assert trace(forked(once, at, tmp_path)) == trace(once)


def test_a_team_says_whether_repeats_make_a_difference() -> None:
    class Planned:
        def plan(self, view: Any) -> None: ...

    class Acts:
        async def act(self, view: Any) -> None: ...

    run = TeamRun(agents=2)
    assert is_deterministic({"a": Planned()})
    assert not is_deterministic({"a": Planned(), "b": Acts()})
    assert not is_deterministic(arrange(run, make_task(run)).team)


RUNS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([*KINDS]),
        "target": st.sampled_from(["agent-1", "agent-2", "agent-3"]),
        "seed": st.integers(1, 50),
        "method": st.sampled_from(["mas", "dig", "judge"]),
        "to": st.sampled_from(["one", "all"]),
        "profile": st.sampled_from([Profile(), Profile(look_again_s=5.0), Profile.perfect()]),
    }
)


@given(RUNS, st.data())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_rewinding_at_any_record_and_going_on_is_the_same_run(
    tmp_path: Path, drawn: dict[str, Any], data: st.DataObject
) -> None:
    """Runs with any fault, healed, judged or only watched."""
    drawn = dict(drawn)
    fault = Fault(kind=drawn.pop("kind"), target=drawn.pop("target"), start_s=1.0)
    parent = faulty(fault, drawn.pop("seed"), tmp_path / "runs", size=1500, **drawn)
    at = data.draw(st.integers(0, len(lines(parent)) - 1))
    again = fork(parent, at, tmp_path / "forks", disturb=disturbance_of(read_side(parent)))
    assert trace(again.directory) == trace(parent)


def drawn_change(data: st.DataObject, run: Path, earliest: int) -> RunChange | None:
    """A change of a run that makes sense, or none."""
    rows = [r for r in records(run) if r.t >= earliest]
    at = data.draw(st.integers(earliest, rows[-1].t))
    one, other, _ = data.draw(st.permutations(["agent-1", "agent-2", "agent-3"]))
    ended = {r.activation for r in records(run) if isinstance(r, End)}
    asked = [r for r in rows if isinstance(r, Start) and r.activation in ended]
    possible: list[RunChange] = [
        WaitLonger(at, 20), Reseat(at, one, other),
        TellAgent(at, "agent-1", "Do it.", data.draw(st.booleans())), Resend(at, ("e1",)),
        *[AskAgain(start.t, start.activation, "Again.") for start in asked[:1]],
        *[OmitRecord(at, r.t) for r in rows if isinstance(r, Expire | Leave | Join) and r.t >= at],
        *[EditRecord(r.t, {"error": "no"}) for r in rows if isinstance(r, End)][:1],
    ]  # fmt: skip
    return data.draw(st.sampled_from([None, *possible]))


@pytest.mark.nightly
@given(RUNS, st.data())
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_an_unchanged_fork_of_a_fork_is_that_fork_whatever_was_changed(
    tmp_path: Path, drawn: dict[str, Any], data: st.DataObject
) -> None:
    """Down to forks of forks of forks, with repeats."""
    drawn = dict(drawn)
    fault = Fault(kind=drawn.pop("kind"), target=drawn.pop("target"), start_s=1.0)
    run = faulty(fault, drawn.pop("seed"), tmp_path / "runs", size=1500, agents=3, **drawn)
    lowest = 1
    for _ in range(3):
        change = drawn_change(data, run, lowest)
        at = change.at if change else data.draw(st.integers(lowest, len(lines(run)) - 1))
        repeat = data.draw(st.integers(0, 2))
        run = forked(run, at, tmp_path, changes=[change] if change else [], repeat=repeat)
        lowest = max(1, read_side(run)["forked_from"]["earliest"])
        if lowest >= len(lines(run)):
            break
        again = forked(run, data.draw(st.integers(lowest, len(lines(run)) - 1)), tmp_path)
        assert trace(again) == trace(run)


# --- changes ---


def test_nothing_changes_if_an_agent_that_draws_the_same_is_asked_again(
    failed: Path, tmp_path: Path
) -> None:
    for start in [r for r in records(failed) if isinstance(r, Start)][1:12:4]:
        change = AskAgain(start.t, start.activation)
        assert trace(changed(failed, tmp_path, change)) == trace(failed)


def test_an_agent_is_asked_again_with_a_note_beside_what_it_sees(
    failed: Path, tmp_path: Path
) -> None:
    """It may decide otherwise, and the trace says what it was told. At the end of its activation
    it can still be asked; after it, not."""
    start = first(failed, Start, agent="agent-3")
    end = first(failed, End, activation=start.activation)
    for at in (start.t, end.t):
        made = changed(failed, tmp_path, AskAgain(at, start.activation, "Count again."))
        told = first(made, IncidentRow, what="asked again")
        assert told.detail == {"activation": start.activation, "note": "Count again."}
        assert start.t < told.t
    with pytest.raises(ReplayError, match=f"anew from record {start.t} to {end.t}"):
        changed(failed, tmp_path, AskAgain(end.t + 1, start.activation))
    with pytest.raises(ReplayError, match="there is no activation 'a999'"):
        changed(failed, tmp_path, AskAgain(end.t, "a999"))


def test_an_agent_that_is_asked_again_does_not_remember_that_it_was_asked(tmp_path: Path) -> None:
    """It knows its activations before that one, and no other."""

    class Diarist:
        def __init__(self) -> None:
            self.turns: list[int] = []

        def plan(self, view: View) -> Plan:
            self.turns.append(view.turn)
            told = NewEvent(payload=[*self.turns], to=[view.agent])
            return Plan(1.0, Decision.respond(view, told))

        def restore(self, past: Sequence[PastActivation]) -> None:
            self.turns = [one.view.turn for one in past]

    setup, path = Setup(limit_s=5.0), tmp_path / TRACE
    with closing(Journal(path, header=setup.header())) as journal:
        simulate({"diarist": Diarist()}, Output("?", ("diarist",)), setup=setup, sink=journal)
    before = list(read_records(path))
    starts = [one for one in before if isinstance(one, Start)]
    assert len(starts) > 3
    for start in starts[:3]:
        again: list[Record] = []
        change = AskAgain(start.t, start.activation)
        moment = rewind(path, start.t, changes=[change], sink=again.append)
        Simulation.resume(moment, {"diarist": Diarist()}).run()
        assert again == before


def test_another_member_in_the_seat_mends_what_the_agent_does_wrong(
    failed: Path, tmp_path: Path
) -> None:
    """A fork of that fork keeps the seat."""
    at = first(failed, Start, agent="agent-2").t
    assert records(failed)[-1].outcome == "stopped"  # type: ignore[union-attr]
    made = changed(failed, tmp_path, Reseat(at, "agent-2", "agent-3"))
    assert records(made)[-1].outcome == "submitted"  # type: ignore[union-attr]
    later = (at + len(lines(made))) // 2
    for record in (at, later):
        assert trace(forked(made, record, tmp_path)) == trace(made)
    other = changed(failed, tmp_path, Reseat(at, "agent-3", "agent-1"))
    assert trace(other) == trace(failed), "healthy members decide alike"


def test_a_seat_needs_two_members_of_the_team(failed: Path, tmp_path: Path) -> None:
    from dig.errors import SettingsError

    with pytest.raises(SettingsError, match="no agent called 'agent-9'"):
        changed(failed, tmp_path, Reseat(9, "agent-2", "agent-9"))


def test_an_agent_that_is_faulty_may_take_another_seat(failed: Path, tmp_path: Path) -> None:
    """It brings its fault, whose acts are told of that seat."""
    at = first(failed, Start, agent="agent-3").t
    made = changed(failed, tmp_path, Reseat(at, "agent-3", "agent-2"))
    acts = json.loads((made / "result.json").read_text())["injections"]
    assert {act["agent"] for act in acts} == {"agent-2", "agent-3"}
    assert trace(forked(made, at + 5, tmp_path)) == trace(made)


def test_an_agent_can_be_told_something(healed: Path, tmp_path: Path) -> None:
    """By a system event, which comes at once, once or in all that it sees from then on."""
    at = len(lines(healed)) // 2
    for once in (True, False):
        made = changed(healed, tmp_path, TellAgent(at, "agent-1", "Do it now.", once))
        told = first(made, IncidentRow, what="told")
        event = records(made)[told.t + 1]
        assert isinstance(event, Emit) and (event.by, event.to) == ("system", ("agent-1",))
        assert event.payload == "Do it now."
        assert event.us == records(healed)[at - 1].us
        assert trace(forked(made, event.t + 1, tmp_path)) == trace(made)


def test_what_was_sent_comes_again_from_outside(failed: Path, tmp_path: Path) -> None:
    """To the same recipients, or to others who are present."""
    sent = first(failed, Emit, to=("agent-2",))
    at = sent.t + 4
    for to, wanted in ((None, ("agent-2",)), (("agent-3", "nobody"), ("agent-3",))):
        made = changed(failed, tmp_path, Resend(at, (sent.event,), to))
        again = next(r for r in records(made) if isinstance(r, Emit) and r.by is None and r.t > 1)
        assert (again.to, again.payload, again.type) == (wanted, sent.payload, sent.type)
    made = changed(failed, tmp_path, Resend(at, (sent.event,), ("nobody",)))
    (incident,) = [r for r in records(made) if isinstance(r, IncidentRow)]
    assert incident.what == "could not be changed"
    assert "none of the recipients" in incident.detail["why"]
    with pytest.raises(ReplayError, match="no event 'e999' before it"):
        changed(failed, tmp_path, Resend(at, ("e999",)))


def test_an_agent_that_left_stays_if_its_leave_is_left_out(tmp_path: Path) -> None:
    fault = Fault(kind="leave", target="agent-3", start_s=2.0)
    parent = faulty(fault, 3, tmp_path / "runs", method="mas")
    leave = first(parent, Leave)
    made = changed(parent, tmp_path, OmitRecord(leave.t, leave.t))
    assert not any(isinstance(r, Leave) for r in records(made))
    assert any(isinstance(r, Start) and r.agent == "agent-3" for r in records(made)[leave.t :])
    assert not json.loads((made / "result.json").read_text())["injections"]
    early = changed(parent, tmp_path, OmitRecord(leave.t - 5, leave.t))
    assert trace(early) == trace(made)
    for at, t in ((leave.t, leave.t - 1), (leave.t + 1, leave.t)):
        with pytest.raises(ReplayError, match=f"record {t} cannot be left out"):
            changed(parent, tmp_path, OmitRecord(at, t))


def test_a_lost_message_arrives_if_its_expiry_is_left_out(tmp_path: Path) -> None:
    fault = Fault(kind="drop", target="agent-2", start_s=1.0, parameters={"at_most": 1})
    parent = faulty(fault, 2, tmp_path / "runs", method="mas")
    lost = first(parent, Expire)
    made = changed(parent, tmp_path, OmitRecord(lost.t, lost.t))
    arrived = first(made, Deliver, event=lost.event)
    assert arrived.us == lost.us
    assert trace(forked(made, arrived.t + 1, tmp_path)) == trace(made)


def test_a_late_message_can_come_sooner(tmp_path: Path) -> None:
    fault = Fault(kind="delay", target="agent-2", start_s=1.0)
    parent = faulty(fault, 2, tmp_path / "runs", method="mas")
    late = first(parent, Emit, policy="fault")
    at = late.t + 3
    made = changed(parent, tmp_path, ReleaseSooner(at, late.event))
    arrived = first(made, Deliver, event=late.event)
    assert arrived.us == records(parent)[at - 1].us
    for later in (arrived.t, arrived.t + 1, len(lines(made)) - 1):
        assert trace(forked(made, later, tmp_path)) == trace(made)
    early = changed(parent, tmp_path, ReleaseSooner(late.t + 1, late.event))
    assert trace(forked(early, len(lines(early)) - 1, tmp_path)) == trace(early)
    with pytest.raises(ReplayError, match="event 'e1' is not on its way there"):
        changed(parent, tmp_path, ReleaseSooner(at, "e1"))


def test_a_run_that_was_ended_by_its_time_limit_can_last_longer(tmp_path: Path) -> None:
    """A fork of that fork has the longer limit, too."""
    short = faulty(Fault(kind="slow", target="agent-2"), 2, tmp_path / "runs", limit_s=5.0)
    count = len(lines(short))
    assert records(short)[-1].outcome == "timeout"  # type: ignore[union-attr]
    made = changed(short, tmp_path, WaitLonger(count // 2, 1.5))
    assert records(made)[-1].ts == 6.5
    for at in (count // 2, len(lines(made)) - 1):
        assert trace(forked(made, at, tmp_path)) == trace(made)
    longer = changed(made, tmp_path, WaitLonger(count // 2, 500.0))
    assert records(longer)[-1].outcome == "submitted"  # type: ignore[union-attr]


def test_several_changes_at_once(failed: Path, tmp_path: Path) -> None:
    """Each at its moment; what lasts is made where the fork begins."""
    at = first(failed, Start, agent="agent-2").t
    sent = first(failed, Emit, to=("agent-3",))
    changes: list[RunChange] = [
        Reseat(at, "agent-2", "agent-1"), Resend(at + 9, (sent.event,)), WaitLonger(at, 5),
    ]  # fmt: skip
    made = changed(failed, tmp_path, *changes)
    again = next(r for r in records(made) if isinstance(r, Emit) and r.by is None and r.t > 1)
    assert again.us >= records(failed)[at + 8].us
    assert read_side(made)["forked_from"]["changes"] == [one.to_json() for one in changes]
    with pytest.raises(ReplayError, match="`seat` is made where the fork begins"):
        changed(failed, tmp_path, WaitLonger(at, 5), Reseat(at + 2, "agent-2", "agent-1"))


def test_an_edit_is_a_change_like_any_other(failed: Path, tmp_path: Path) -> None:
    """And an edit that says what is there gives the same bytes."""
    end = first(failed, End)
    edit = {"error": "it fell asleep"}
    made = changed(failed, tmp_path, EditRecord(end.t, edit))
    same = forked(failed, end.t, tmp_path, edit=edit)
    assert trace(made) == trace(same) != trace(failed)
    assert read_side(same)["forked_from"]["changes"] == [EditRecord(end.t, edit).to_json()]
    sent = first(failed, Emit, to=("agent-3",))
    null = EditRecord(sent.t, {"to": ["agent-3"], "payload": sent.payload, "type": sent.type})
    assert trace(changed(failed, tmp_path, null)) == trace(failed)
    with pytest.raises(ReplayError, match="one record can be edited"):
        forked(failed, end.t, tmp_path, edit=edit, changes=[EditRecord(end.t, edit)])
    with pytest.raises(ReplayError, match="was changed before record"):
        forked(made, end.t, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        EditRecord(4, {"to": ["bob"]}), AskAgain(4, "a1", "why?"), AskAgain(4, "a1"),
        TellAgent(4, "bob", "hm", once=False), Resend(4, ("e1", "e2"), ("bob",)),
        Resend(4, ("e1",)), Reseat(4, "bob", "eve"), OmitRecord(4, 9), ReleaseSooner(4, "e1"),
        WaitLonger(4, 2.5),
    ],
)  # fmt: skip
def test_a_change_survives_its_json(change: RunChange) -> None:
    assert read_change(json.loads(json.dumps(change.to_json()))) == change


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"kind": "magic", "at": 1}, "magic"),
        ({"at": 1}, "kind"),
        ({"kind": "seat", "at": 1, "agent": "a"}, "by"),
        ({"kind": "omit", "at": 1, "t": "x"}, "t"),
        ({"kind": "omit", "at": 1, "t": 2, "u": 3}, "u"),
        ({"kind": "wait", "at": 1, "seconds": 0}, "seconds"),
    ],
)
def test_json_that_describes_no_change_is_refused(row: Any, says: str) -> None:
    with pytest.raises(ReplayError, match=says):
        read_change(row)


@pytest.mark.parametrize(
    "said",
    [{"phases": 3}, {"phases": [{"at": "x"}]}, {"phases": [{"wait_s": -1}]}, {"earliest": -1},
     {"phases": [{"wait_s": 1e300}]}, {"phases": [{"seats": ["a"]}]}],
)  # fmt: skip
def test_a_side_file_that_garbles_what_the_run_was_forked_from_is_refused(
    tmp_path: Path, failed: Path, said: dict[str, Any]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    side = read_side(failed) | {"forked_from": said}
    (run / "side.json").write_text(json.dumps(side))
    (run / TRACE).write_bytes(trace(failed))
    with pytest.raises(ReplayError, match="the side file's `forked_from`"):
        forked(run, 9, tmp_path)


# --- what else is promised ---


def test_a_run_that_was_cut_off_goes_on_with_its_fault(tmp_path: Path, healed: Path) -> None:
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "side.json").write_bytes((healed / "side.json").read_bytes())
    whole = trace(healed).splitlines(keepends=True)
    for count in (len(whole) // 4, len(whole) // 2):
        (cut / TRACE).write_bytes(b"".join(whole[:count]))
        try:
            made = forked(cut, count, tmp_path)
        except ReplayError as error:  # it was cut within the outputs of a decision
            at = int(str(error).split("fork it at ")[1].split()[0])
            made = forked(cut, at, tmp_path)
        assert trace(made) == trace(healed)


def test_a_damaged_journal_is_refused(tmp_path: Path, healed: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "side.json").write_bytes((healed / "side.json").read_bytes())
    (broken / TRACE).write_bytes(trace(healed).replace(b'"agent-3"', b'"agent-4"', 1))
    with pytest.raises(TraceError):
        fork(broken, 30, tmp_path / "forks", disturb=disturbance_of(read_side(broken)))


def test_a_run_of_a_task_is_not_rewound_without_its_tools(healed: Path) -> None:
    """Without them its agents would fail one after the other."""
    with pytest.raises(ReplayError, match=r"agents may call tools.*hand in `tools="):
        rewind(healed, 30)
    crew = simulated_crew(read_side(healed))
    assert crew.setup is not None
    assert rewind(healed, 30, setup=crew.setup).us == rewind(healed, 30, tools={}).us


def test_a_plain_trace_is_forked_with_a_setup(tmp_path: Path) -> None:
    """The records before the fork are its parent's; the fork itself is a journal."""
    run = TeamRun(agents=3, size=1500, method="dig", seed=4)
    whole = execute(run, tmp_path / "runs").directory
    plain = tmp_path / "plain.dig.jsonl"
    rows = [json.loads(line) for line in lines(whole)]
    for row in rows:
        del row["chain"]
        row.pop("journal", None)
    plain.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arranged = arrange(run, make_task(run))
    crew = Crew(arranged.team, arranged.setup)
    for at in (3, len(rows) // 2):
        made = fork(plain, at, tmp_path / "forks", crew=crew).directory
        assert records(made) == records(whole)
        assert trace(fork(made, at + 1, tmp_path / "forks", crew=crew).directory) == trace(made)
    for without in (None, Crew(arranged.team)):
        with pytest.raises(ReplayError, match="is a plain trace; only a journal"):
            fork(plain, 3, tmp_path / "forks", crew=without)


# --- judges ---


def test_no_model_judges_because_a_side_file_names_it(tmp_path: Path) -> None:
    """The error says where a model can be named. With a simulated judge the run goes on."""
    spec = TeamRun(agents=3, size=400, method="judge")
    parent = execute(spec, tmp_path / "runs").directory
    assert fork(parent, 20, tmp_path / "forks").directory.is_dir()
    hostile = replace(spec, judging=Judging(by="gpt-9\n")).about()
    (parent / SIDE).write_text(json.dumps({**read_side(parent), **hostile}))
    with pytest.raises(SettingsError, match="no model is asked because a file names it") as refused:
        fork(parent, 20, tmp_path / "forks")
    assert "the model 'gpt-9', and" in str(refused.value)
    assert "--judge by=MODEL" in str(refused.value)


def test_no_model_judges_a_team_of_the_user_because_a_side_file_names_it() -> None:
    """A task and a team that are named bring no permission to ask another model."""
    spec = TeamRun(task="mine:task", agents_are="own", method="judge", judging=Judging(by="gpt-9"))
    with pytest.raises(SettingsError, match="no model is asked because a file names it"):
        task_crew(spec.about(), "mine:task", "mine:team")


def test_a_judge_is_a_model_that_the_caller_names() -> None:
    """The model of the team, named again, may judge, too."""
    spec = TeamRun(method="judge", judging=Judging(by="m"))
    assert spec.with_named((), "m") is spec
    with pytest.raises(SettingsError, match="no model is asked because a file names it"):
        spec.with_named((), "n")
    watched = replace(spec, method="dig")
    assert watched.with_named(()) is watched, "nobody judges"
