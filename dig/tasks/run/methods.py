"""Methods against failures, by name: each changes the arrangement of a run.

All methods detect failures in the same way, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from dig.detectors import JUDGE, Judged, judged_healers, plugins, standard_healers
from dig.detectors.protocols import Healer
from dig.errors import SettingsError
from dig.runtime.agents import Agent, PlannedAgent
from dig.runtime.host import Setup
from dig.runtime.reviewer import Reviewer
from dig.tasks.judge.judge import LIKE_TEAM, SIMULATED
from dig.tasks.judge.simulated import SimulatedJudge

from .team_run import TeamRun
from .teams import Team


@dataclass(frozen=True)
class Arrangement:
    """A run that only lacks its clock.

    Attributes:
        setup: Everything about it but its agents.
        team: Its agents, by name.
    """

    setup: Setup
    team: Team


def observe(run: TeamRun, plain: Arrangement) -> Arrangement:
    """`mas`: failures are found, and nothing is done."""
    return plain


def heal(run: TeamRun, plain: Arrangement) -> Arrangement:
    """`dig`: failures are found and healed, as far as the means of healing go."""

    def healers() -> dict[str, Healer]:
        ours = standard_healers(cooldown_s=run.cooldown_s, designate=run.designate)
        return {**ours, **plugins.healers()}

    return replace(plain, setup=replace(plain.setup, healers=healers, means=run.means))


def judge(run: TeamRun, plain: Arrangement) -> Arrangement:
    """`judge`: a member of the team reads the log now and then, and may intervene.

    Raises:
        SettingsError: An agent of the team is called `judge`.
    """
    if JUDGE in plain.team:
        raise SettingsError(f"an agent is called {JUDGE!r} already; the judge needs that name")
    setup = replace(
        plain.setup,
        detectors=lambda: [*plain.setup.detectors(), Judged()],
        healers=judged_healers,
        policy=replace(plain.setup.policy, heal="all"),  # what the judge wants is done
        reviewer=Reviewer(JUDGE, run.judging.every),
    )
    return Arrangement(setup, {**plain.team, JUDGE: _judge(run, plain.team)})


def _judge(run: TeamRun, team: Team) -> Agent | PlannedAgent:
    """The judge of a team: a model, the team's own if that is meant, or a simulated judge."""
    by = run.judging.by
    model = next((agent.model for agent in team.values() if hasattr(agent, "model")), None)
    if by == SIMULATED or (by == LIKE_TEAM and model is None):
        return SimulatedJudge(run.key, run.judging)
    from dig.runtime.llm import Model, ModelSettings  # slow to import
    from dig.tasks.judge.model import ModelJudge

    if model is None:
        return ModelJudge(Model(ModelSettings(by)))
    if by not in (LIKE_TEAM, model.settings.model):
        model = Model(replace(model.settings, model=by), spending=model.spending)
    return ModelJudge(model)


METHODS: Mapping[str, Callable[[TeamRun, Arrangement], Arrangement]] = MappingProxyType(
    {"mas": observe, "judge": judge, "dig": heal}
)
"""From an arrangement that only observes to that of a method."""
