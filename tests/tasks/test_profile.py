"""The habits of a profile show as often as it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from dig.errors import SettingsError
from dig.monitor.messages import About, Pending
from dig.runtime.agents import Decision, Plan
from dig.tasks.simulated.profile import Profile
from dig.tasks.simulated.simulated_agent import SimulatedAgent

from .turns import (
    PERFECT,
    TEAM,
    decide,
    fates,
    noted,
    problem,
    raw,
    see,
    solution,
    with_habit,
)  # fmt: skip

JUST_A_PROBLEM = (problem(0, 1000, "a2"),)
PARTS = (solution(0, 1000), solution(1000, 2000))


def is_wait(plan: Plan) -> bool:
    return plan.decision == Decision()


def has_fate(fate: str) -> Callable[[Plan], bool]:
    return lambda plan: fate in fates(plan.decision).values()  # type: ignore[arg-type]


def sends(test: Callable[[Any], bool]) -> Callable[[Plan], bool]:
    return lambda plan: any(map(test, plan.decision.outputs))  # type: ignore[union-attr]


def is_wrong(plan: Plan) -> bool:
    (answer,) = plan.decision.outputs  # type: ignore[union-attr]
    return bool(answer.payload["counts"] != {"1": 3000})


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("habit", "events", "shows", "expected"),
    [
        ("wait", JUST_A_PROBLEM, is_wait, 0.3),
        ("pass_on", JUST_A_PROBLEM, has_fate("reroute"), 0.3),
        ("discard", JUST_A_PROBLEM, has_fate("discard"), 0.3),
        ("discard_double", (*PARTS, solution(0, 500, name="d")), has_fate("discard"), 0.3),
        ("broadcast", (raw(0, 1000),), sends(lambda output: len(output.to) == 3), 0.3),
        ("duplicate", (problem(0, 2000),), sends(lambda output: len(output.to) == 2), 0.3),
        ("misaddress", (raw(0, 1000),), sends(lambda output: output.to[0] not in TEAM), 0.3),
        ("merge", PARTS, sends(lambda output: output.to == ["a1"]), 0.3),
        ("hand_over", PARTS, sends(lambda output: output.to != ["a1"]), 0.3),
        ("announce", (*PARTS, solution(2000, 3000)), sends(lambda o: o.type == "notice"), 0.3),
        ("chat", (raw(0, 1000),), sends(lambda output: output.type == "notice"), 0.3),
        ("fail", JUST_A_PROBLEM, lambda plan: isinstance(plan.decision, str), 0.3),
    ],
)
def test_a_habit_shows_with_about_its_probability_and_never_at_zero(
    habit: str, events: tuple[Pending, ...], shows: Callable[[Plan], bool], expected: float
) -> None:
    def often(profile: Profile) -> float:
        views = [see(*events, turn=turn) for turn in range(500)]
        return sum(shows(SimulatedAgent(1, profile).plan(view)) for view in views) / 500

    assert often(PERFECT) == 0
    assert often(with_habit(habit, 0.3)) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(
    ("habit", "events", "shows"),
    [
        ("submit_early", PARTS, lambda plan: plan.decision.outputs[0].final),
        ("count_twice", (*PARTS, solution(0, 1000, name="d"), solution(2000, 3000)), is_wrong),
        ("mix", (*PARTS, solution(500, 1500, name="d"), solution(2000, 3000)), is_wrong),
    ],
)
def test_a_lasting_habit_is_an_agents_own_and_the_same_in_all_its_turns(
    habit: str, events: tuple[Pending, ...], shows: Callable[[Plan], bool]
) -> None:
    """In as many runs as the profile says, and then in every turn, of repeats as well."""

    def often(profile: Profile) -> float:
        shown = 0
        for seed in range(200):
            agent = SimulatedAgent(seed, profile)
            again = agent.reseeded(1).reseeded(2)
            turns = {shows(one.plan(see(*events, turn=turn)))
                     for one, turn in ((agent, 1), (agent, 2), (again, 2), (again, 3))}  # fmt: skip
            assert len(turns) == 1
            shown += turns.pop()
        return shown / 200

    profile = replace(PERFECT, enough=0.0, merge=1.0)
    assert often(profile) == 0
    least = {"submit_early": 0.3 * 2 / 3}.get(habit, 0.3)
    more: dict[str, Any] = {habit: 0.3}
    assert often(replace(profile, **more)) == pytest.approx(least, abs=0.07)


def test_a_note_is_heeded_with_the_probability_of_the_profile_once_for_all() -> None:
    """An agent that has not heeded a note does not heed it in a later turn either."""
    profile, heeded = replace(PERFECT, compliance=0.3, unwanted=1.0, shirk=1.0), 0
    for number in range(500):
        event = noted(problem(0, 1000, "a2"), About("ER"))
        event = replace(event, id=f"p{number}")
        told = {fates(decide(see(event, turn=turn), profile))[event.id] for turn in (1, 2, 3)}
        assert len(told) == 1
        heeded += told == {"consume"}
    assert heeded / 500 == pytest.approx(0.3, abs=0.07)


def test_think_time_is_around_its_median_and_as_spread_as_it_should_be() -> None:
    thinks = sorted(
        SimulatedAgent(1, PERFECT).plan(see(*JUST_A_PROBLEM, turn=turn)).think_s
        for turn in range(1000)
    )
    assert thinks[500] == pytest.approx(PERFECT.think_s, rel=0.05)
    assert thinks[20] > 1.3 and thinks[-20] < 4.5


def test_the_longer_the_chunk_the_more_of_it_is_miscounted() -> None:
    profile = replace(PERFECT, error=0.2, error_growth=1.5, most_error=0.5)

    def share_missing(length: int) -> float:
        missing = 0
        for turn in range(20_000 // length):
            (output,) = decide(see(raw(0, length), turn=turn), profile).outputs
            missing += length - sum(output.payload["counts"].values())
        return missing / (20_000 // length * length)

    shares = [share_missing(length) for length in (100, 300, 1000)]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(0.1, abs=0.02), "half of the miscounted are skipped"
    assert profile.error_for(100_000) == 0.5


# --- the profile ---


def test_every_habit_is_explained() -> None:
    documented = Profile.__doc__ or ""
    assert all(f"        {field.name}: " in documented for field in fields(Profile))


@pytest.mark.parametrize(
    "wrong", [{"wait": 1.1}, {"wait": -0.1}, {"think_s": -1.0}, {"chunk_length": 0}]
)
def test_a_profile_that_makes_no_sense_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        Profile(**wrong)
