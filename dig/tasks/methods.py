"""What is done about failures, by name: each method changes how a run is arranged.

All of them find failures in the same way, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from dig.runtime.host import Setup

from .teams import Team

if TYPE_CHECKING:
    from .runs import TeamRun


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
    """`dig`: failures are found and healed."""
    return replace(plain, setup=replace(plain.setup, healers=run.healers))


METHODS: Mapping[str, Callable[[TeamRun, Arrangement], Arrangement]] = MappingProxyType(
    {"mas": observe, "dig": heal}
)
"""From an arrangement that only observes to that of a method."""
