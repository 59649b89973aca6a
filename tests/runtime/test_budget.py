"""A budget on the bus: a team is stopped before its next turn, and hands back what there is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import dig
from dig import Output
from dig.detectors import standard, standard_healers
from dig.detectors.policy_settings import load_policy
from dig.errors import SettingsError
from dig.graph.records import End, IncidentRow, Start
from dig.runtime import Alerts, Bus, Decision, EventFate, NewEvent, Setup, View
from dig.runtime.simulator import Simulation
from dig.show.gate.checked import check_run
from dig.traces.journal.reader import read_records
from dig.traces.replay.rerun import rerun
from dig.traces.verify import verify
from tests.helpers import CALM, Recorder, Scripted, tell
from tests.runtime.test_resumed_bus import cut, go_on, journalled, play


def loop(answer: Any = None) -> dict[str, Any]:
    """Two agents that hand over to each other for ever; at the limit `a` may answer."""

    async def a(view: View) -> Decision:
        if answer is not None and any("used up" in str(event.payload) for event in view.events):
            return Decision.submit(view, answer)
        return Decision.respond(view, NewEvent(payload=f"a{view.turn}", to=["b"]))

    async def b(view: View) -> Decision:
        return Decision.respond(view, NewEvent(payload=f"b{view.turn}", to=["a"]))

    return {"a": a, "b": b}


def stages(sink: Recorder) -> list[str]:
    """The stages of the incidents `budget`."""
    return [
        row.detail["stage"] for row in sink if isinstance(row, IncidentRow) and row.what == "budget"
    ]


def starts(sink: Recorder) -> list[str]:
    return [row.agent for row in sink if isinstance(row, Start)]


@pytest.mark.anyio
async def test_a_loop_is_stopped_and_the_entry_agent_hands_back() -> None:
    """The 21st turn does not begin; the entry agent answers in one turn more."""
    sink = Recorder()
    result = await Bus(loop("half"), sink=sink, budget={"turns": 20}).run("?")
    assert (result.outcome, result.answer) == ("submitted", "half")
    assert starts(sink) == ["a", "b"] * 10 + ["a"]
    assert stages(sink) == ["warning", "stopped", "partial"]
    assert result.partial


@pytest.mark.anyio
async def test_an_entry_agent_without_an_answer_fails_the_request() -> None:
    """And the result has what it was given last."""
    sink = Recorder()
    result = await Bus(loop(), sink=sink, budget={"turns": 20}).run("?")
    assert (result.outcome, result.answer, result.partial) == ("stopped", None, False)
    assert starts(sink) == ["a", "b"] * 10 + ["a"]
    assert stages(sink) == ["warning", "stopped"]
    failed = [
        row.detail for row in sink if isinstance(row, IncidentRow) and row.what == "request_failed"
    ]
    assert [(row["how"], row["event"]) for row in failed] == [("limit", "e1")]
    assert result.exceeded is not None
    assert (result.exceeded.limit, result.exceeded.spent, result.exceeded.most) == ("turns", 20, 20)
    assert result.exceeded.partial[-1] == "b10"
    assert "stopped at 20 turns, and `a` handed back no answer" in str(result.exceeded)
    assert result.verdict.ended.startswith("The run was stopped at 20 turns, after ")


@pytest.mark.anyio
async def test_each_request_of_a_session_has_its_own_budget() -> None:
    """The caller of a request gets the exception; others go on."""
    outcomes: dict[str, Any] = {}

    async def a(view: View) -> Decision:
        texts = [str(event.payload) for event in view.events]
        if "short" in texts:
            return Decision.submit(view, "done")
        return Decision.respond(view, NewEvent(payload="a", to=["b"]))

    async def b(view: View) -> Decision:
        return Decision.respond(view, NewEvent(payload="b", to=["a"]))

    bus = Bus({"a": a, "b": b}, Setup(session=True), budget={"turns": 6})

    async def ask(problem: str) -> None:
        try:
            outcomes[problem] = await bus.ask(problem)
        except dig.BudgetExceeded as error:
            outcomes[problem] = error

    async with bus.open(), anyio.create_task_group() as tasks:
        await ask("long")
        tasks.start_soon(ask, "long again")
        await anyio.sleep(1)
        await ask("short")
    assert outcomes["short"] == "done"
    assert outcomes["long"].request == "e1"
    assert outcomes["long"].partial == ["b", "b", "b"]
    assert isinstance(outcomes["long again"], dig.BudgetExceeded)


@pytest.mark.anyio
async def test_a_request_is_stopped_by_the_clock() -> None:
    """Also when no agent is about to start; the alarm comes at four fifths."""
    sink = Recorder()

    async def a(view: View) -> Decision:
        if any("used up" in str(event.payload) for event in view.events):
            return Decision.submit(view, "half")
        return Decision.wait()

    setup = Setup(limit_s=1000)
    result = await Bus({"a": a}, setup, sink=sink, budget={"seconds": 100}).run("?")
    # A run in which nothing can go on ends before.
    assert result.reason == "nothing could happen any more"
    setup = Setup(limit_s=1000, session=True)
    bus = Bus({"a": a}, setup, sink=sink, budget={"seconds": 100})
    async with bus.open():
        assert await bus.ask("?") == "half"
    rows = [row for row in sink if isinstance(row, IncidentRow) and row.what == "budget"]
    assert [(row.detail["stage"], row.us // 1_000_000) for row in rows] == [
        ("warning", 80), ("stopped", 100), ("partial", 100),
    ]  # fmt: skip


@pytest.mark.anyio
async def test_turns_that_go_on_end_before_the_last_one() -> None:
    """The entry agent is given what they have said, too, and one note."""
    sink = Recorder()
    seen: list[Any] = []

    async def a(view: View) -> Decision:
        if view.turn == 1:
            return Decision.respond(view, NewEvent(payload="go", to=["b", "c"]))
        seen.extend(event.payload for event in view.events)
        return Decision.submit(view, "half")

    async def b(view: View) -> Decision:
        return Decision.respond(view, NewEvent(payload="from b", to=["d"]))

    async def c(view: View) -> Decision:
        await anyio.sleep(5)
        return Decision.respond(view, NewEvent(payload="from c", to=["d"]))

    result = await Bus({"a": a, "b": b, "c": c, "d": b}, sink=sink, budget={"turns": 3}).run("?")
    assert (result.answer, result.partial) == ("half", True)
    assert sorted(starts(sink)) == ["a", "a", "b", "c"]
    assert seen[:2] == ["from b", "from c"]  # `c` takes longer
    assert len(seen) == 3


@pytest.mark.anyio
async def test_an_early_answer_of_the_last_turn_stands() -> None:
    """Healing does not send it back, since no further turn could look at it."""
    sink = Recorder()

    async def a(view: View) -> Decision:
        if view.turn == 1:
            return Decision.respond(view, NewEvent(payload="go", to=["b"]))
        events = [EventFate(event=view.events[-1].id, fate="consume")]
        return Decision(
            fates=events, outputs=[NewEvent(payload="half", type="solution", final=True)]
        )

    async def b(view: View) -> Decision:
        return Decision.respond(view, NewEvent(payload="b", to=["b"]))

    setup = Setup(detectors=standard, healers=standard_healers)
    result = await Bus({"a": a, "b": b}, setup, sink=sink, budget={"turns": 3}).run("?")
    assert (result.answer, result.partial) == ("half", True)
    assert "ET" in result.raised()


@pytest.mark.anyio
async def test_usage_of_decisions_counts() -> None:
    """As tokens, and by the table of prices as dollars."""
    team = {"a": Keeps(tell("b")), "b": Keeps(tell("a"))}
    prices = {"m": {"input": 1, "output": 2, "cached": 0.1}, "details": {"input": 1, "output": 1}}
    for budget in ({"tokens": 5000}, {"dollars": 0.008, "prices": prices}):
        result = await Bus(team, budget=budget).run("?")
        assert result.exceeded is not None
        assert result.exceeded.limit == next(iter(budget))
        assert result.activations == 5 + 1


class Keeps:
    """Does the same each time, for 1,000 tokens."""

    def __init__(self, move: Callable[[View], Decision]) -> None:
        self._move = move

    async def act(self, view: View) -> Decision:
        details = {"cached_tokens": 100}  # nested, as some servers tell of them
        view.usage.update(model="m", input_tokens=400, output_tokens=600, details=details)
        return self._move(view)


@pytest.mark.parametrize("answer", ["half", None])
def test_a_run_with_a_budget_is_driven_and_resumed(tmp_path: Path, answer: str | None) -> None:
    """A rerun makes the same records; one that stopped anywhere has the last turn twice at most."""
    setup = Setup(limits=CALM).ruled(None, {"turns": 6})
    whole = journalled(tmp_path / "whole.dig.jsonl", loop(answer), setup)
    assert rerun(whole.path).is_finished
    assert not verify(whole.path).problems
    for end in whole.ends[1:-1]:
        path = tmp_path / f"{end}.dig.jsonl"
        path.write_bytes(whole.path.read_bytes())
        cut(path, end)
        result = play(go_on(path, loop(answer), setup))
        assert (result.answer, result.partial) == (answer, answer is not None)
        ended = [row for row in read_records(path) if isinstance(row, End)]
        assert len(ended) <= 6 + 2
        assert rerun(path).is_finished


def test_a_simulation_keeps_a_budget() -> None:
    """As the bus does."""
    sink = Recorder()
    team = {"a": Scripted(*[tell("b")] * 9), "b": Scripted(*[tell("a")] * 9)}
    simulation = Simulation(team, Setup().ruled(None, {"turns": 5}), sink=sink)
    simulation.plan(0, lambda monitor: monitor.inject(Output("?", ("a",), "problem")))
    result = simulation.run()
    assert result.outcome == "stopped"
    assert result.exceeded is not None
    assert starts(sink) == ["a", "b", "a", "b", "a", "a"]


def test_the_policy_file_has_a_budget(tmp_path: Path) -> None:
    """In a table beside that of the policy."""
    file = tmp_path / "team.toml"
    file.write_text(
        "[budget]\nturns = 20\n[budget.team]\ndollars = 5\n"
        "[budget.prices.'gpt-5']\ninput = 1.25\noutput = 10\n"
    )
    budget = load_policy(file, {}).budget
    assert budget is not None
    assert budget.limits() == {"turns": 20}
    assert budget.prices["gpt-5"] == dig.Price(input=1.25, output=10)
    assert budget.team == dig.SpendingLimits(dollars=5)
    assert dig.TeamBudget.of(json.loads(json.dumps(budget.to_json()))) == budget
    assert load_policy(None, {}).budget is None
    file.write_text("[budget]\nturn = 20\n")
    with pytest.raises(SettingsError, match=r"team.toml, \[budget\]: .*no key 'turn'; did you"):
        load_policy(file, {})


@pytest.mark.anyio
async def test_four_fifths_of_a_budget_are_an_alarm() -> None:
    """Once for each request and limit; an alarm goes where alarms go."""
    alarms: list[Any] = []
    alerts = Alerts(alarms.append)
    await Bus(loop(), on_alarm=alerts, budget={"turns": 10}).run("?")
    alerts.flush()
    warnings = [alarm for alarm in alarms if alarm.finding.pattern == "budget"]
    assert [alarm.headline for alarm in warnings] == ["budget: 80% of 10 turns are used"]
    assert warnings[0].to_json()["subject"] == {"event": "e1"}


@pytest.mark.anyio
async def test_the_verdict_says_that_an_answer_is_partial() -> None:
    """In words, wherever a verdict is shown."""
    result = await Bus(loop("half"), budget={"turns": 10}).run("?")
    assert "A partial answer was accepted" in result.verdict.ended
    assert "stopped at 10 turns" in result.verdict.ended
    bus = Bus(loop("half"), Setup(session=True), budget={"turns": 10})
    async with bus.open():
        assert await bus.ask("?") == "half"
    assert (
        "The request was answered in part: the team was stopped at 10 turns."
        in bus.result.verdict.ended
    )


def test_a_check_tells_of_partial_answers_and_of_the_budget(tmp_path: Path) -> None:
    """And the headline of a request without one names the budget."""
    setup = Setup(limits=CALM).ruled(None, {"turns": 6})
    partial = journalled(tmp_path / "partial.dig.jsonl", loop("half"), setup)
    headline = check_run(partial.path, standard()).headline
    assert headline.startswith("Partial answer after 0.0 s, since the team was stopped at 6 turns")
    failed = journalled(tmp_path / "failed.dig.jsonl", loop(), setup)
    headline = check_run(failed.path, standard()).headline
    assert headline.startswith(
        "Failed: the request was stopped at 6 turns, and `a` handed back no answer"
    )
