"""AutoGen, wrapped: a team that waits for a person is neither judged nor healed meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from autogen_agentchat.agents import UserProxyAgent
from autogen_agentchat.conditions import ExternalTermination, HandoffTermination
from autogen_agentchat.teams import (
    DiGraphBuilder,
    GraphFlow,
    RoundRobinGroupChat,
    SelectorGroupChat,
    Swarm,
)

from dig.graph.records import IncidentRow, Limits

from .autogen_teams import (
    DONE,
    Model,
    To,
    Watched,
    agents,
    ask,
    assistant,
    says,
    scenario,
    until,
)
from .harness import Scenario, Script, play

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])


def must_be_as_bare(asked: Scenario, mode: Any) -> Watched:
    """Nothing is raised, bounced or run that is not without a monitor."""
    watched = Watched(mode)
    bare, mine = play(asked), play(asked, watched)
    assert mine == bare
    assert watched.patterns == [] and watched.healed() == []
    assert "downgraded" not in watched.incidents()
    assert watched.leaves_nothing_open()
    watched.must_be_sound()
    return watched


def branches(script: Script, join: Any, end: Any) -> Any:
    """Bob asks the user while Cyd works, and Dan joins the two."""

    async def slow(texts: list[str], number: int) -> Any:
        await asyncio.sleep(5)
        return "Right"

    ann, bob, cyd, dan = agents(script, ann=says("Split"), bob=join, cyd=slow, dan=says("Both"))
    built = DiGraphBuilder().add_node(ann).add_node(bob).add_node(cyd).add_node(dan)
    built.add_edge(ann, bob).add_edge(ann, cyd).add_edge(bob, dan).add_edge(cyd, dan)
    return GraphFlow([ann, bob, cyd, dan], graph=built.build(), termination_condition=end)


def asks_user(texts: list[str], number: int) -> Any:
    return To("user", said="Which?")


def asking_branch(script: Script) -> Any:
    return branches(script, asks_user, HandoffTermination("user"))


@MODES
def test_a_branch_that_asks_a_person_is_no_early_answer_of_the_others(mode: Any) -> None:
    """A graph stops at a handoff to the user, with a branch at work and a join waiting."""
    must_be_as_bare(scenario(asking_branch), mode)


def stopped_graph(script: Script) -> Any:
    """Somebody stops it while Eve speaks, and Dan waits for her and has Bob's part."""
    stop = ExternalTermination()

    def stops(texts: list[str], number: int) -> Any:
        stop.set()
        return "Right"

    ann, bob, cyd, eve, dan = agents(
        script, ann=says("Split"), bob=says("Left"), cyd=says("To Eve"), eve=stops,
        dan=says("Both"),
    )  # fmt: skip
    fay = agents(script, fay=says("Last"))[0]
    built = DiGraphBuilder()
    for node in (ann, bob, cyd, eve, dan, fay):
        built.add_node(node)
    built.add_edge(ann, bob).add_edge(ann, cyd).add_edge(cyd, eve).add_edge(eve, fay)
    built.add_edge(bob, dan).add_edge(fay, dan)
    everyone = [ann, bob, cyd, eve, dan, fay]
    return GraphFlow(everyone, graph=built.build(), termination_condition=stop)


async def go_on(team: Any) -> Any:
    return [await ask(team), await ask(team, None)]


@MODES
def test_a_graph_that_a_person_has_stopped_is_no_early_answer(mode: Any) -> None:
    """A graph is stopped from outside while a join has one of its two parts, and goes on."""
    must_be_as_bare(scenario(stopped_graph, go_on), mode)


def dropped_and_asking(script: Script) -> Any:
    """Ann hands over to two at once, and the one who is heard asks the user."""
    two = assistant(script, "ann", lambda texts, n: To("bob", "cyd"), handoffs=["bob", "cyd"])
    return Swarm(
        [two, *agents(script, bob=asks_user, cyd=says(DONE))],
        termination_condition=HandoffTermination("user") | until(),
    )


@MODES
def test_a_handoff_to_the_user_is_no_early_answer_where_another_was_dropped(mode: Any) -> None:
    """The user is asked, whatever else is open."""
    must_be_as_bare(scenario(dropped_and_asking), mode)


def with_person(script: Script) -> Any:
    async def types(prompt: str, token: Any) -> str:
        async with script.turn("person", prompt):
            await asyncio.sleep(100)
            return f"Approved. {DONE}"

    person = UserProxyAgent("person", input_func=types)
    (ann,) = agents(script, ann=says("May I?"))
    return RoundRobinGroupChat([ann, person], termination_condition=until())


@MODES
def test_a_person_in_the_chat_is_waited_for_and_the_trace_says_so(mode: Any) -> None:
    """A person may take minutes, and nothing is found."""
    watched = Watched(mode)
    bare, mine = play(scenario(with_person)), play(watched.ticking(scenario(with_person)), watched)
    assert mine == bare
    told = [row for row in watched.records if isinstance(row, IncidentRow) and row.what == "waits"]
    assert len(told) == 1 and set(told[0].detail) == {"activation"}
    assert watched.patterns == [] and watched.healed() == []
    watched.must_be_sound()


def test_what_a_person_has_said_is_never_sent_back_to_him() -> None:
    """An early answer that a person gave becomes a note, and he is asked once."""

    def build(script: Script) -> Any:
        async def types(prompt: str, token: Any) -> str:
            async with script.turn("person", prompt):
                return f"Enough. {DONE}"

        two = assistant(
            script, "ann", lambda texts, n: To("person", "cyd"), handoffs=["person", "cyd"]
        )
        person = UserProxyAgent("person", input_func=types)
        return Swarm([two, person, *agents(script, cyd=says(DONE))], termination_condition=until())

    watched = Watched("heal")
    bare, mine = play(scenario(build)), play(scenario(build), watched)
    assert mine.per_agent() == bare.per_agent() and mine.returned == bare.returned
    assert watched.patterns == ["ET"] and watched.healed() == ["inject"]
    watched.must_be_sound()


MANY = 40


def many(script: Script) -> Any:
    """Forty persons are asked at once, in branches of a graph."""

    def person(number: int) -> Any:
        async def types(prompt: str, token: Any) -> str:
            async with script.turn(f"person{number}", prompt):
                await asyncio.sleep(800 + number / 8)
                return "Approved."

        return UserProxyAgent(f"person{number}", input_func=types)

    ann, end = agents(script, ann=says("May I?"), end=says("Thanks"))
    persons = [person(number) for number in range(MANY)]
    built = DiGraphBuilder().add_node(ann).add_node(end)
    for one in persons:
        built.add_node(one).add_edge(ann, one).add_edge(one, end)
    return GraphFlow([ann, end, *persons], graph=built.build())


@MODES
def test_forty_persons_at_once_are_waited_for_and_none_is_passed_over(mode: Any) -> None:
    """All of them take longer than the activation limit, and nothing is found."""
    watched = Watched(mode)
    bare, mine = play(scenario(many)), play(watched.ticking(scenario(many)), watched)
    assert mine == bare
    assert watched.incidents().count("waits") == MANY
    assert watched.patterns == [] and watched.healed() == []
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


def test_a_hang_after_a_person_has_answered_is_seen() -> None:
    """The activation after the answer does not wait: a selector that hangs is overdue."""

    async def types(prompt: str, token: Any) -> str:
        await asyncio.sleep(40)
        return "Approved."

    async def chooses(thread: Any) -> str:
        if thread[-1].source != "person":
            return "person"
        await asyncio.sleep(100)
        return "ann"

    def build(script: Script) -> Any:
        (ann,) = agents(script, ann=says(DONE))
        person = UserProxyAgent("person", input_func=types)
        return SelectorGroupChat(
            [ann, person], Model(script, "chooser", says("ann")), selector_func=chooses,
            termination_condition=until(),
        )  # fmt: skip

    limits = Limits(mc_window_s=5, activation_limit_s=20)
    watched = Watched(limits=limits)
    assert play(watched.ticking(scenario(build)), watched) == play(scenario(build))
    assert watched.patterns == ["MC"] and watched.session.findings[0].ts >= 60
    watched.must_be_sound()
