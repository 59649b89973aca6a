"""AutoGen, wrapped: a participant hangs, and another one is asked to speak in its place."""

from __future__ import annotations

import asyncio
import runpy
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from autogen_agentchat.teams import RoundRobinGroupChat

from dig.detectors import standard, standard_healers
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.runtime.host import Setup
from dig.traces.journal.reader import read_records
from dig.traces.replay.rerun import rerun

from .autogen_teams import DONE, Watched, agents, graph, shown, until
from .conformance import ROOT
from .framework_watch import ticking
from .harness import Outcome, Scenario, Script, play


def ladder() -> Setup:
    """Healing step by step, by the thresholds of the commands."""
    limits = Thresholds().limits
    return Setup(detectors=standard, healers=standard_healers, limits=limits, ladder=True)


def healing(**options: Any) -> Watched:
    return Watched("heal", ladder(), **options)


def hanging(script: Script, *, stubborn: bool = False) -> Any:
    """Ann, bob and cyd in turn; bob's fifth turn takes ten minutes. Cyd ends the chat."""

    async def bob(number: int) -> str:
        if number == 5:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                if not stubborn:
                    raise
        return "bob's part"

    def cyd(texts: list[str], number: int) -> Any:
        return f"{texts[-1]}, {DONE}"

    team = agents(
        script,
        ann=lambda texts, number: "ann's part",
        bob=lambda texts, number: bob(number),
        cyd=cyd,
    )
    return RoundRobinGroupChat(team, termination_condition=until(40))


async def ask(team: Any) -> Any:
    """Five requests."""
    for _ in range(4):
        await team.run(task="What now?")
        await team.reset()
    return shown(await team.run(task="What now?"))


def relieved(wrap: Any, build: Any = hanging) -> Scenario:
    """Five requests while time makes itself felt."""
    return ticking(Scenario("hanging", build, ask), wrap)


def ask_five_times(watched: Watched, build: Any = hanging) -> Outcome:
    return play(relieved(watched, build))


def test_another_participant_speaks_in_place_of_one_that_hangs() -> None:
    """STALL healed: the manager waits for another participant, and goes on with what that says."""
    watched = healing(allow={"reassign"})
    outcome = ask_five_times(watched)
    assert "TERMINATE" in str(outcome.returned) and "bob" not in str(outcome.returned)
    assert watched.patterns == ["STALL"] and watched.healed() == ["reassign"]
    assert watched.leaves_nothing_open()
    watched.must_be_sound()


def test_what_a_participant_says_after_its_cancellation_is_dropped() -> None:
    """One that swallows its cancellation is late: another one was asked, and its words count."""
    watched = healing(allow={"reassign"})
    outcome = ask_five_times(watched, partial(hanging, stubborn=True))
    assert "TERMINATE" in str(outcome.returned) and "bob" not in str(outcome.returned)
    assert watched.leaves_nothing_open()


def test_a_participant_that_hangs_is_left_alone_unless_that_is_allowed() -> None:
    """With `allow` empty no participant is cancelled: the team waits for it, as without us."""
    watched = healing()
    assert "bob's part" in str(ask_five_times(watched).returned)
    assert watched.patterns[0] == "STALL" and "reassign" not in watched.healed()
    assert "downgraded" in watched.incidents()


def test_in_a_team_that_plans_who_speaks_no_other_can_be_asked() -> None:
    """A graph flow runs its nodes: another one in place of one of them is refused."""
    with pytest.raises(SettingsError, match="reassign"):
        healing(allow={"reassign"})(graph(Script()))


def test_the_example_answers_although_an_agent_hangs(tmp_path: Path) -> None:
    """Another courier brings the last parcel, in real time; the journal can be run once more."""
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "wrap_hanging.py"))
    assert anyio.run(example["main"], "autogen", str(tmp_path)) == "Bob has brought parcel 12"
    [run] = tmp_path.iterdir()
    assert rerun(run).records == len(list(read_records(run)))
