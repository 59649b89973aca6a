"""Methods against failures, by name: each changes the arrangement of a run.

All methods detect failures in the same way, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dig._util.registry import Registry
from dig.detectors import plugins, standard_healers
from dig.detectors.protocols import Healer
from dig.errors import SettingsError
from dig.runtime.setup import Setup
from dig.tasks.user_objects import call, load

from .team_run import TeamRun
from .teams import Team


@dataclass(frozen=True)
class Arrangement:
    """Setup and team of a run, without a clock.

    Attributes:
        setup: Everything but the agents.
        team: The agents, by name.
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


def climb(run: TeamRun, plain: Arrangement) -> Arrangement:
    """`dig+`: healing goes on step by step where a first step does not help."""
    healed = heal(run, plain)
    return replace(healed, setup=replace(healed.setup, ladder=True))


METHODS: Mapping[str, Callable[[TeamRun, Arrangement], Arrangement]] = Registry(
    "methods", {"mas": observe, "dig": heal, "dig+": climb}
)
"""By name: from an arrangement that only observes to that of a method."""


def use_method(run: TeamRun, plain: Arrangement) -> Arrangement:
    """Arrange a run by a method of ours, or by a function of the user.

    Raises:
        SettingsError: There is no such function, or it does not return an `Arrangement`.
    """
    if ":" not in run.method:
        return METHODS[run.method](run, plain)
    method = load(run.method, "method")
    arranged = call(lambda: method(run, plain), run.method)
    if not isinstance(arranged, Arrangement):
        raise SettingsError(f"{run.method!r} returned {arranged!r:.60}, which is no Arrangement")
    return arranged
