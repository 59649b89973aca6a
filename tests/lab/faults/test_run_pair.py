"""Runs with faults and their twins."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.errors import SettingsError
from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS
from dig.faults.inject.faulty_team import FaultyTeam
from dig.graph.records import Emit, End, IncidentRow, Leave, Start
from dig.lab.run_pair import lines, play
from dig.tasks.run.arrange import arrange, make_task
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from dig.traces.journal.reader import read_records
from tests.faults.plays import LIMITS, STEADY, nulls_of, twin

CLUMSY = replace(STEADY, profile=Profile())
NULLS = [(name, parameter) for name in KINDS for parameter in nulls_of(name)]


@pytest.mark.parametrize(("kind", "parameter"), NULLS)
@pytest.mark.parametrize("target", ["agent-1", "agent-2"])
def test_without_effect_a_fault_leaves_no_trace(kind: str, parameter: str, target: str) -> None:
    """Each of the parameters that take all effect away leaves the twin, byte for byte."""
    nulls = nulls_of(kind)
    fault = Fault(kind=kind, target=target, parameters={parameter: nulls[parameter]})
    played = play(STEADY, [fault])
    assert lines(played.records) == lines(twin(STEADY.seed).records)
    assert played.injections == ()


@given(
    kind=st.sampled_from([*KINDS]),
    target=st.sampled_from(["agent-1", "agent-2", "agent-4"]),
    seed=st.integers(1, 1000),
    start_s=st.floats(0, 40),
    to=st.sampled_from(["one", "all"]),
    method=st.sampled_from(["mas", "dig"]),
)
def test_before_it_acts_a_faulted_run_is_its_twin(
    kind: str, target: str, seed: int, start_s: float, to: Any, method: str
) -> None:
    """Byte for byte: all before the window, and all before the first act that is told of."""
    run = replace(CLUMSY, size=2000, seed=seed, to=to, method=method)
    played, alone = play(run, [Fault(kind=kind, target=target, start_s=start_s)]), play(run)
    before = [record for record in played.records if record.ts < start_s]
    if played.injections:
        before = list(played.records[: played.injections[0].t])
    else:
        assert played.records == alone.records
    assert lines(before) == lines(alone.records[: len(before)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_fault_did_is_told_beside_the_trace_and_not_in_it(kind: str) -> None:
    """Each act names the record that it changed, of the target; the trace has no word of it."""
    run = replace(CLUMSY, method="dig", to="all")
    played = play(run, [Fault(kind=kind, target="agent-1")])
    assert played.injections or kind == "ignore_notes"
    for injection in played.injections:
        record = played.records[injection.t]
        assert isinstance(record, Start | Emit | End | Leave)
        assert (record.t, record.ts) == (injection.t, injection.ts)
        activation = injection.activation
        if activation is not None:
            begun = [r for r in played.records if isinstance(r, Start)]
            assert next(r.agent for r in begun if r.activation == activation) == "agent-1"
        assert injection.what
        assert injection.what.encode() not in lines(played.records)
    assert b"fault" not in lines(played.records).replace(b"default", b"")
    incidents = {record.what for record in played.records if isinstance(record, IncidentRow)}
    assert incidents <= {"request_failed"}
    assert not any(isinstance(r, Emit) and r.policy is not None for r in played.records)


def test_a_trace_can_be_read_as_any_other(tmp_path: Any) -> None:
    """Its lines are a trace, with the records that were played."""
    played = play(STEADY, [Fault(kind="drop", target="agent-2")])
    path = tmp_path / "t.dig.jsonl"
    path.write_bytes(lines(played.records))
    assert tuple(read_records(path)) == played.records


ROOT = Path(__file__).parents[3]
DIGEST = "from tests.lab.faults.test_run_pair import hybrid; print(hybrid())"


def hybrid() -> str:
    """A checksum of a run with faults of each family, which draw random numbers."""
    faults = [
        Fault(kind="misaddress", target="agent-1", parameters={"probability": 0.5}),
        Fault(kind="pass_on", target="agent-2", parameters={"probability": 0.5}),
        Fault(kind="corrupt", target="agent-3", parameters={"probability": 0.5}),
    ]
    played = play(replace(CLUMSY, to="all"), faults)
    assert {injection.fault for injection in played.injections} == {0, 1, 2}
    told = repr(played.injections).encode()
    return hashlib.sha256(lines(played.records) + told).hexdigest()


def test_the_same_seed_gives_the_same_bytes_in_another_process() -> None:
    """Whatever its hash seed is."""
    there = subprocess.run(
        [sys.executable, "-c", DIGEST], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert there.stdout.strip() == hybrid()


def test_a_hybrid_is_all_of_its_faults() -> None:
    """Both act in one run, and the second one's act depends on nothing but what it is shown."""
    loud = Fault(kind="crash", target="agent-2", start_s=3)
    subtle = Fault(kind="corrupt", target="agent-3", start_s=3, parameters={"how": "counts"})
    both = play(STEADY, [loud, subtle])
    assert {i.fault: i.agent for i in both.injections} == {0: "agent-2", 1: "agent-3"}
    one = play(STEADY, [subtle])
    assert lines(one.records) != lines(both.records) != lines(play(STEADY, [loud]).records)
    assert one.injections[0].ts == next(i.ts for i in both.injections if i.fault == 1)


def test_two_faults_on_one_agent_act_in_their_order() -> None:
    """What the first one changes, the second one is given."""
    twice = [
        Fault(kind="duplicate", target="agent-2", start_s=3),
        Fault(kind="address_nobody", target="agent-2", start_s=3),
    ]
    played = play(STEADY, twice)
    astray = [r for r in played.records if isinstance(r, Emit) and "assistant" in str(r.to)]
    assert len(astray) == 2 * sum(i.fault == 0 for i in played.injections) > 0


def test_only_the_target_is_wrapped() -> None:
    """Everybody else is the object that they were."""
    arranged = arrange(STEADY, make_task(STEADY))
    injected = FaultyTeam.of_arrangement(arranged, [Fault(kind="crash", target="agent-2")])
    others = {name for name in arranged.team if injected.team[name] is arranged.team[name]}
    assert others == {*arranged.team} - {"agent-2"}
    assert injected.team["agent-2"].profile is STEADY.profile  # what it has is passed through


def test_a_target_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingsError, match="crash has the target 'ada', who is not in the team"):
        play(STEADY, [Fault(kind="crash", target="ada")])


def test_a_user_s_own_team_can_be_a_target() -> None:
    """Agents of a task of their own, of which nothing is known."""
    run = TeamRun(task="tests.faults.own_team:TASK", agents_are="own", method="mas", limits=LIMITS)
    assert play(run).result.answer == 3
    corrupt = Fault(kind="corrupt", target="adder")
    assert play(run, [corrupt]).result.answer == "\ufffd" * 8
    silent = play(run, [Fault(kind="silent", target="adder")])
    assert (silent.result.outcome, silent.score) == ("stopped", None)


def test_what_was_played_can_be_sent_to_another_process() -> None:
    """As it is needed to play many at once."""
    played = play(STEADY, [Fault(kind="crash", target="agent-2")])
    assert pickle.loads(pickle.dumps(played)) == played
