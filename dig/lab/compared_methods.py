"""Methods to compare with healing: another draw, a judge, and two that notice only silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dig.detectors import JUDGE, RETRY, WATCHDOG
from dig.detectors.interventions import Budget
from dig.detectors.protocols import Detector, Healer
from dig.errors import SettingsError
from dig.runtime.agents import Agent, PlannedAgent
from dig.runtime.setup import Setup
from dig.tasks.run.arrange import make_task
from dig.tasks.run.judging import LIKE_TEAM, SIMULATED
from dig.tasks.run.methods import Arrangement
from dig.tasks.run.team_run import TeamRun
from dig.tasks.run.teams import Team, team

from .judge.judged import HealAsJudged, Judged, judged_healers
from .judge.reviewer import ReviewedSetup
from .judge.simulated import SimulatedJudge
from .rivals import HealByProblem, HealByWord, Silence, silence_of


def draw_again(run: TeamRun, plain: Arrangement) -> Arrangement:
    """`redraw`: nothing is done, but agents and schedule draw other random numbers.

    Where runs were chosen because they fail, that alone looks like healing.
    """
    again = replace(run, salt=f"{run.salt}/again")
    setup = replace(plain.setup, key=again.key)
    return Arrangement(setup, team(again, make_task(again)))


def speak(run: TeamRun, plain: Arrangement) -> Arrangement:
    """`watchdog`: after a silence, all agents are told to continue."""
    healers = {silence_of(WATCHDOG): HealByWord}
    return replace(plain, setup=_rival(plain.setup, lambda: Silence(WATCHDOG), healers))


def ask_again(run: TeamRun, plain: Arrangement) -> Arrangement:
    """`retry`: after a silence, an idle agent is given the problem again.

    With a budget of its own for the run, as often as that says.
    """
    healers, attempts = {silence_of(RETRY): HealByProblem}, run.budget.per_run
    most = None if attempts == Budget().per_run else attempts
    return replace(plain, setup=_rival(plain.setup, lambda: Silence(RETRY, most=most), healers))


def _rival(
    plain: Setup, detector: Callable[[], Detector], healers: Mapping[str, Callable[[], Healer]]
) -> Setup:
    """A setup with a rival beside the detectors; the policy carries out all acts of the rival."""
    return replace(
        plain,
        detectors=lambda: [*plain.detectors(), detector()],
        healers=lambda: {pattern: make() for pattern, make in healers.items()},
        policy=replace(plain.policy, heal="all"),
    )


def judge(run: TeamRun, plain: Arrangement) -> Arrangement:
    """`judge`: a member of the team reads the log now and then, and may intervene.

    Raises:
        SettingsError: An agent of the team is called `judge`.
    """
    if JUDGE in plain.team:
        raise SettingsError(f"an agent is called {JUDGE!r} already; the judge needs that name")
    healers = dict.fromkeys(judged_healers(), HealAsJudged)
    setup = ReviewedSetup(
        **vars(_rival(plain.setup, Judged, healers)), reviewer=JUDGE, every=run.judging.every
    )
    return Arrangement(setup, {**plain.team, JUDGE: _judge(run, plain.team)})


def _judge(run: TeamRun, team: Team) -> Agent | PlannedAgent:
    """The judge of a team: a model, perhaps the team's own, or a simulated judge."""
    by = run.judging.by
    model = next((agent.model for agent in team.values() if hasattr(agent, "model")), None)
    if by == SIMULATED or (by == LIKE_TEAM and model is None):
        return SimulatedJudge(run.key, run.judging)
    from dig.runtime.llm import Model, ModelSettings  # slow to import

    from .judge.model_judge import ModelJudge

    if model is None:
        return ModelJudge(Model(ModelSettings(by)))
    if by not in (LIKE_TEAM, model.settings.model):
        # The judge spends from the budget of its team.
        model = Model(replace(model.settings, model=by), spending=model.spending)
    return ModelJudge(model)
