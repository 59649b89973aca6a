"""Teams of simulated agents: able, pure, forgetful, honest; and a default team that stumbles."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

import pytest

from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.graph.records import Record
from dig.runtime.result import RunResult
from dig.runtime.setup import Setup
from dig.runtime.simulator import simulate
from dig.tasks.count_frequency import CountFrequency
from dig.tasks.simulated.profile import Profile
from dig.tasks.simulated.simulated_agent import SimulatedAgent
from dig.tasks.task import Task

from .turns import PERFECT, TASK, TEAM, problem, see


def run(
    task: Task, agents: int, seed: int, profile: Profile, *, heal: bool = False,
    limit_s: float = 120.0, broadcast: bool = False, sink: Callable[[Record], None] | None = None,
    agent: Callable[[int, Profile], SimulatedAgent] = SimulatedAgent,
) -> RunResult:  # fmt: skip
    names = [f"a{i + 1}" for i in range(agents)]
    setup = Setup(
        seed=seed,
        detectors=standard,
        healers=standard_healers if heal else None,
        policy=HEAL_ALL,
        tools=task.tools(),
        limit_s=limit_s,
    )
    given = task.problem(*(names if broadcast else names[:1]))
    team = {name: agent(seed, profile) for name in names}
    return simulate(team, given, setup=setup, sink=sink or (lambda record: None))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("heal", [False, True])
@pytest.mark.parametrize("size", [1000, 10_000])
@pytest.mark.parametrize("agents", [1, 3, 6])
def test_a_perfect_team_solves_exactly_and_raises_nothing(
    agents: int, size: int, heal: bool
) -> None:
    for seed in range(15):
        task = CountFrequency(size, seed)
        result = run(task, agents, seed, PERFECT, heal=heal)
        assert (result.outcome, task.score(result.answer).rmse) == ("submitted", 0.0), seed
        assert result.raised() == {}, seed


@pytest.mark.parametrize(("agents", "limit_s"), [(1, 240.0), (20, 60.0)])
def test_a_perfect_team_solves_a_large_problem(agents: int, limit_s: float) -> None:
    task = CountFrequency(100_000, 1)
    result = run(task, agents, 1, PERFECT, limit_s=limit_s)
    assert task.score(result.answer).rmse == 0.0


@pytest.mark.parametrize("heal", [False, True])
def test_a_perfect_team_solves_a_problem_that_everybody_was_given(heal: bool) -> None:
    for seed in range(5):
        result = run(TASK, 3, seed, PERFECT, heal=heal, broadcast=True)
        assert TASK.score(result.answer).rmse == 0.0


@pytest.mark.parametrize(("agents", "least", "most"), [(1, 10.0, 25.0), (6, 10.0, 50.0)])
def test_ten_thousand_elements_take_as_long_as_language_models_take(
    agents: int, least: float, most: float
) -> None:
    for seed in range(10):
        seconds = run(CountFrequency(10_000, seed), agents, seed, PERFECT).seconds
        assert least < seconds < most


def test_a_perfect_team_goes_on_without_an_agent_that_leaves_with_its_work() -> None:
    """The system's word about what was lost has it counted again."""
    task = CountFrequency(10_000, 1)
    setup = Setup(seed=1, detectors=standard, healers=standard_healers, tools=task.tools())
    team = {name: SimulatedAgent(1, PERFECT) for name in TEAM}
    script = [(4.0, lambda monitor: monitor.leave("a2"))]
    result = simulate(team, task.problem("a1"), setup=setup, script=script)
    assert result.raised().keys() & {"OE", "DL"}
    assert task.score(result.answer).rmse == 0.0


def test_the_default_team_of_six_stumbles_and_healing_helps() -> None:
    """Most of its answers come too early; healed ones are whole."""
    alone, healed = Counter[str](), Counter[str]()
    for seed in range(20):
        for tally, heal in ((alone, False), (healed, True)):
            task = CountFrequency(10_000, seed)
            result = run(task, 6, seed, Profile(), heal=heal)
            score = task.score(result.answer)
            tally.update(result.raised().keys())
            tally["whole"] += score.complete is True
    assert alone["ET"] >= 10
    assert alone["whole"] <= 12 and healed["whole"] >= 17


# --- pure, forgetful, honest ---


def test_the_same_seed_and_view_give_the_same_plan() -> None:
    """Whatever agent object is asked, however often, and whatever it was asked before."""
    views = [see(problem(), turn=turn) for turn in range(30)]
    profile = Profile(wait=0.3, duplicate=0.3)
    fresh = [SimulatedAgent(5, profile).plan(view) for view in views]
    again = SimulatedAgent(5, profile)
    assert [again.plan(view) for view in reversed(views)][::-1] == fresh
    assert SimulatedAgent(6, profile).plan(views[0]) != fresh[0]


def test_the_same_seed_gives_the_same_records() -> None:
    def records() -> list[Record]:
        kept: list[Record] = []
        run(CountFrequency(5000, 3), 6, 3, Profile(), heal=True, sink=kept.append)
        return kept

    assert records() == records()


def test_payloads_are_plain_json() -> None:
    kept: list[Any] = []
    run(TASK, 3, 2, Profile(broadcast=1.0, merge=1.0), sink=kept.append)
    json.dumps([record.payload for record in kept if hasattr(record, "payload")])


def test_nothing_that_an_agent_does_depends_on_the_true_counts() -> None:
    def answers(truth: Counter[int] | None) -> list[Any]:
        task = CountFrequency(5000, 1)
        if truth is not None:
            task._truth = truth
        return [run(task, 3, seed, Profile()).answer for seed in range(10)]

    assert answers(None) == answers(Counter()) == answers(Counter({0: 10**6}))


def reachable(thing: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Everything that a value leads to, except modules, classes and what functions import."""
    if id(thing) in seen or isinstance(thing, type):
        return
    seen[id(thing)] = thing
    yield thing
    nearby: list[Any] = []
    if isinstance(thing, Mapping):
        nearby = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set):
        nearby = list(thing)
    elif isinstance(thing, FunctionType):
        nearby = [cell.cell_contents for cell in thing.__closure__ or ()]
        nearby += [thing.__defaults__, thing.__kwdefaults__, thing.__dict__]
    nearby += [getattr(thing, name, None) for name in ("__self__", "__func__", "__wrapped__")]
    nearby += list(getattr(thing, "__dict__", {}).values())
    nearby += [getattr(thing, name, None) for name in getattr(thing, "__slots__", ())]
    for one in nearby:
        yield from reachable(one, seen)


def test_no_path_leads_from_a_view_to_the_true_counts() -> None:
    things = list(reachable(see(problem()), {}))
    assert any(callable(thing) for thing in things), "the tools are looked into"
    assert not any(isinstance(thing, CountFrequency) for thing in things)
    truth = dict(TASK._truth)
    assert not any(isinstance(thing, Mapping) and dict(thing) == truth for thing in things)
