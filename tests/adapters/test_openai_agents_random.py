"""OpenAI agents, wrapped: random teams, which do whatever a team may do."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from . import openai_agents_teams as teams
from .harness import Script, play
from .openai_agents_asked import raises

NAMES = "abcd"


def team_of(number: int) -> Any:
    """A team that is drawn from a number: who knows whom, and what everybody does."""

    def build(script: Script) -> Any:
        draw = Random(number)
        agents = {name: teams.agent(script, name, *replies(draw, name)) for name in NAMES}
        for name, one in agents.items():
            one.handoffs = [other for other in agents.values() if other is not one]
            one.tools = [teams.as_tool(agents[other]) for other in NAMES if other > name]
        return agents["a"]

    return build


def replies(draw: Random, name: str) -> list[teams.Reply]:
    others = [other for other in NAMES if other != name]
    below = [other for other in NAMES if other > name]
    found: list[teams.Reply] = []
    for _ in range(draw.randrange(4)):
        match draw.randrange(6):
            case 0:
                found.append(teams.hands(draw.choice(others)))
            case 1:
                found.append(teams.calls(*(f"transfer_to_{to}" for to in draw.sample(others, 2))))
            case 2:
                found.append(raises)
            case _ if below:
                asked = draw.choices(below, k=draw.randint(1, 3))
                found.append(teams.calls(*asked, input=draw.choice("xy")))
    return [*found, teams.says(f"{name} done")]


@pytest.mark.parametrize("part", range(8))
def test_random_teams_are_not_changed_and_their_traces_are_sound(part: int) -> None:
    for number in range(part, 96, 8):
        drive = (teams.ask, teams.stream, teams.at_once)[number % 3]
        asked = teams.scenario(team_of(number), drive, f"team {number}")
        watched = teams.Watched()
        assert play(asked, watched, seed=number) == play(asked, seed=number), number
        assert watched.leaves_nothing_open(), number
        watched.must_be_sound()


@pytest.mark.parametrize("part", range(4))
def test_random_teams_that_are_healed_end_and_leave_nothing_open(part: int) -> None:
    for number in range(part, 48, 4):
        drive = (teams.ask, teams.stream, teams.at_once)[number % 3]
        watched = teams.Watched("heal")
        play(teams.scenario(team_of(number), drive, f"team {number}"), watched, seed=number)
        assert watched.leaves_nothing_open(), number
        watched.must_be_sound()
