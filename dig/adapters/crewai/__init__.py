"""CrewAI: a crew hands tasks to agents, and agents ask each other (docs/wrapping-crewai.md).

- `crews`: the kickoffs of crews and agents, and the copies of crews.
- `tasks`: the tasks of a kickoff: notes, the budget, the answer.
"""

from __future__ import annotations

from typing import Any

from dig.adapters.base import HOOKED, Attached, Session, WrapPlan, importing

__all__ = ["plan"]

VERSIONS = ("1.15.0", "1.16")
"""The lowest version that this was tested with, and the first that it was not."""


def plan(team: Any) -> WrapPlan:
    """Plan the wrapping of a crew or an agent; refuse other teams.

    Args:
        team: A `Crew`, or an `Agent`.

    Raises:
        SettingsError: The team is something else, or CrewAI is not one that was tested.
    """
    with importing("CrewAI", ("crewai",), VERSIONS, extra="crewai"):
        from .crews import CREW, WatchedCrew, agents_of
    agents = agents_of(team)

    def attach(session: Session) -> Attached:
        return Attached(team, WatchedCrew(session, team, agents).restore)

    return WrapPlan("a CrewAI team", (CREW, *(name for name, _ in agents)), attach, HOOKED)
