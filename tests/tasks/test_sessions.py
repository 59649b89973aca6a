"""Runs with several problems at once, and agents with a memory: team, task and scores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dig.errors import SettingsError
from dig.graph.records import Emit
from dig.lab.run_pair import play
from dig.monitor.messages import Pending
from dig.runtime.agents import View
from dig.runtime.checkpoint import PastActivation
from dig.tasks.accounting import PAYLOADS, ReferenceAccounting, TaskParts
from dig.tasks.count_frequency import CountFrequency
from dig.tasks.run.arrange import make_bus, make_simulation, make_task
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from dig.tasks.simulated.remembering import RememberingAgent
from dig.tasks.simulated.simulated_agent import SimulatedAgent
from dig.traces.run import RecordedRun

RUN = TeamRun(size=4000, agents=4, method="mas", profile=Profile.perfect())
SESSION = replace(RUN, problems=2)
REMEMBERING = replace(RUN, remembers=True)


def test_an_answer_is_scored_against_the_part_that_was_asked_about() -> None:
    """The counts of that part alone are right, and it is complete if it covers that part."""
    task = CountFrequency(1000, 3, most_per_message=500)
    data = task.tools()["raw_data"]([500, 1000])
    counts = {str(value): data.count(value) for value in task.values}
    answer = {"counts": counts, "covers": [[500, 1000]]}
    half = task.score(answer, (500, 1000))
    assert (half.rmse, half.complete) == (0.0, True)
    whole = task.score(answer)
    assert whole.rmse and whole.complete is False
    assert task.score({**answer, "covers": [[500, 999]]}, (500, 1000)).complete is False


def test_each_problem_of_a_session_is_answered_by_itself() -> None:
    """All answers are accepted, each about its own part, by way of its own lineage alone."""
    run = play(SESSION)
    assert SESSION.problem_parts == ((0, 2000), (2000, 4000)) and RUN.problem_parts == (None,)
    assert [one.result.outcome for one in run.problems] == ["submitted"] * 2
    for one in run.problems:
        assert one.score is not None and one.score.complete
        assert one.parts.whole == (one.problem,)
        assert one.parts.answer is not None and one.parts.about(one.parts.answer) == (one.problem,)
    assert "CLA" not in run.raised and run.raised["CLA beside"] > 0
    assert TeamRun.read(SESSION.about()) == SESSION


def test_several_problems_need_room_virtual_time_and_a_task_with_parts() -> None:
    """Else a sentence says what is wrong."""
    with pytest.raises(SettingsError, match="problems must be from 1 to 2000, half of the size"):
        replace(RUN, problems=2001)
    with pytest.raises(SettingsError, match="2 problems at once are posed in virtual time alone"):
        make_bus(SESSION, make_task(SESSION), lambda record: None)
    other = replace(SESSION, task="tests.faults.own_lineages:TASK", agents_are="own")
    with pytest.raises(SettingsError, match="poses one problem, not 2"):
        make_simulation(other, make_task(other), lambda record: None)


def test_messages_of_agents_with_a_memory_do_not_say_what_they_cover() -> None:
    """The references in a trace lead to the parts; a payload alone does not."""
    played = play(REMEMBERING)
    assert played.score is not None and played.score.rmse is not None
    assert played.result.outcome == "submitted" and played.score.complete is None
    sent = [row for row in played.records if isinstance(row, Emit) and row.type == "solution"]
    assert sent and not any("covers" in row.payload for row in sent)
    run = RecordedRun(played.records)
    parts = TaskParts(run, ReferenceAccounting(run))
    assert run.answer is not None and parts.about(run.answer) == ((0, 4000),)
    assert TaskParts(run, PAYLOADS).about(run.answer) == ()


def test_a_memory_is_restored_from_what_was_seen_and_generated() -> None:
    """An agent that is brought back knows the same references as one that went on."""
    agent = RememberingAgent(SimulatedAgent(1, Profile.perfect()))
    problem = {"task": "count-frequency", "part": [0, 4000], "most_per_message": 1000}
    tools = CountFrequency(4000, 1).tools()
    event = Pending("e1", "problem", None, problem)
    view = View("a", ("a", "b"), turn=1, time_s=0.0, events=(event,), tools=tools)
    decision = agent.plan(view).decision
    assert not isinstance(decision, str)
    _, outputs = decision.parts()
    other = RememberingAgent(agent.agent)
    other.restore([PastActivation(view, None, outputs)])
    assert other.parts == agent.parts and len(agent.parts) > 2
    assert other.parts["whole"] == (0, 4000)
    assert agent.reseeded(1).parts == agent.parts
