"""AutoGen, wrapped: what is found in a team, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, RoundRobinGroupChat, Swarm

from dig.adapters.base.capabilities import MOST_BOUNCES
from dig.detectors import standard, standard_healers
from dig.graph.records import Limits
from dig.runtime.host import Setup

from .autogen_teams import DONE, Act, To, Watched, agents, ask, assistant, is_told, scenario, until
from .conformance import GoingRound
from .harness import Scenario, Script, play

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")


def limited(**limits: Any) -> Setup:
    return Setup(detectors=standard, healers=standard_healers, limits=Limits(**limits))


def hand_on(to: str) -> Act:
    """Somebody who thinks that another one is in charge, until it is told."""
    return lambda texts, number: "I do it. " + DONE if is_told(texts) else To(to)


def ping_pong(script: Script) -> Any:
    return Swarm(
        [
            assistant(script, "ann", hand_on("bob"), handoffs=["bob"]),
            assistant(script, "bob", hand_on("ann"), handoffs=["ann"]),
        ],
        termination_condition=until(40),
    )


def test_et_an_answer_without_what_a_dropped_handoff_was_for_goes_back() -> None:
    asked = scenario(early)
    assert "Half of it." in str(play(asked).returned).splitlines()[-1]
    watched = Watched("heal")
    outcome = play(asked, watched)
    assert "All of it." in str(outcome.returned) and "With Cyd" in str(outcome.returned)
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    watched.must_be_sound()


def early(script: Script) -> Any:
    """Ann hands over to two at once, of which AutoGen takes the first."""

    def bob(texts: list[str], number: int) -> Any:
        return To("cyd", said="See to your part") if is_told(texts) else f"Half of it. {DONE}"

    def cyd(texts: list[str], number: int) -> Any:
        return f"With Cyd. All of it. {DONE}"

    ann = assistant(script, "ann", lambda texts, n: To("bob", "cyd"), handoffs=["bob", "cyd"])
    return Swarm([ann, *agents(script, bob=bob, cyd=cyd)], termination_condition=until())


def test_an_answer_that_comes_back_does_not_lift_the_limits_of_the_team() -> None:
    def build(script: Script) -> Any:
        team = early(script)
        team._termination_condition = TextMentionTermination(DONE) | MaxMessageTermination(4)
        return team

    watched = Watched("heal")
    outcome = play(scenario(build), watched)
    assert watched.healed() == ["reroute"]  # it came back once, and not at the limit
    assert watched.patterns == ["ET", "FAIL"]
    assert "Maximum number of messages 4 reached" in str(outcome.returned)
    watched.must_be_sound()


def test_an_answer_in_the_last_turn_of_a_chat_does_not_go_back() -> None:
    """A bounce counts against `max_turns`, and leaves nothing behind for the next run."""

    def build(script: Script) -> Any:
        team = early(script)
        team._max_turns = 2
        return team

    watched = Watched("heal")
    bare = play(Scenario("twice", build, ask_two))
    assert str(play(Scenario("twice", build, ask_two), watched).returned).count("All of it") == 0
    assert str(bare.returned).count("Half of it") == 2
    assert watched.healed() == ["inject"]
    watched.must_be_sound()


def test_who_never_learns_is_asked_again_twice_and_no_more() -> None:
    """The limit of the base: other work is lost with each answer, and the third one stands."""

    def build(script: Script) -> Any:
        def act(texts: list[str], number: int) -> Any:
            return To("bob", "cyd") if number % 2 else f"Enough. {DONE}"

        ann = assistant(script, "ann", act, handoffs=["bob", "cyd"])
        others = agents(script, bob=lambda *given: To("ann"), cyd=lambda *given: DONE)
        return Swarm([ann, *others], termination_condition=until(40))

    watched = Watched("heal")
    play(scenario(build), watched)
    assert watched.healed().count("reroute") == MOST_BOUNCES
    assert watched.incidents() == ["downgraded"]
    watched.must_be_sound()


def test_et_a_graph_that_ends_while_a_join_waits_is_found() -> None:
    def build(script: Script) -> Any:
        ann, bob, cyd = agents(
            script, ann=lambda *given: "For both", bob=lambda *given: f"Enough. {DONE}",
            cyd=lambda *given: "Sum",
        )  # fmt: skip
        built = DiGraphBuilder().add_node(ann).add_node(bob).add_node(cyd)
        built.add_edge(ann, bob).add_edge(ann, cyd).add_edge(bob, cyd)
        return GraphFlow([ann, bob, cyd], graph=built.build(), termination_condition=until())

    asked, watched = scenario(build, ask_two), Watched("heal")
    assert play(asked, watched).returned == play(asked).returned
    first = watched.session.findings[0]
    assert first.pattern == "ET" and len(first.evidence["unresolved"]) == 1
    assert watched.incidents()[0] == "downgraded"  # a graph cannot be asked again


def test_what_ends_at_a_limit_is_not_sent_back() -> None:
    def build(script: Script) -> Any:
        team = early(script)
        team._termination_condition, team._max_turns = None, 2
        return team

    watched = Watched("heal")
    bare = play(scenario(build))
    assert play(scenario(build), watched).returned == bare.returned
    assert watched.patterns == ["ET"] and watched.healed() == ["inject"]
    assert watched.incidents() == ["downgraded"]
    watched.must_be_sound()


def test_oe_a_dropped_handoff_is_found_while_the_chat_goes_on() -> None:
    async def slow(texts: list[str], number: int) -> Any:
        await asyncio.sleep(15)
        return To("ann")

    def build(script: Script) -> Any:
        def does(texts: list[str], number: int) -> Any:
            return f"Sorry, Cyd. {DONE}" if is_told(texts) else To("bob", "cyd")

        ann = assistant(script, "ann", does, handoffs=["bob", "cyd"])
        return Swarm([ann, *agents(script, bob=slow, cyd=slow)], termination_condition=until())

    watched = Watched("heal")
    outcome = play(watched.ticking(scenario(build)), watched)
    assert "Sorry, Cyd." in str(outcome.returned)
    assert watched.patterns[0] == "OE" and watched.healed()[0] == "create"
    watched.must_be_sound()


def test_dl_branches_that_take_long_are_told_of_and_nobody_is_woken() -> None:
    """They have only lasted longer than others: a warning, since they may be at work."""

    async def slow(texts: list[str], number: int) -> Any:
        await asyncio.sleep(40)
        return "At last"

    def build(script: Script) -> Any:
        ann, bob, cyd, dan = agents(
            script, ann=lambda *given: "Split", bob=slow, cyd=slow,
            dan=lambda texts, number: " and ".join(texts),
        )  # fmt: skip
        built = DiGraphBuilder().add_node(ann).add_node(bob).add_node(cyd).add_node(dan)
        built.add_edge(ann, bob).add_edge(ann, cyd).add_edge(bob, dan).add_edge(cyd, dan)
        return GraphFlow([ann, bob, cyd, dan], graph=built.build())

    told: list[str] = []
    setup = limited(dl_window_s=5, activation_limit_s=20)
    watched = Watched("heal", setup, deliver=lambda agent, note: told.append(agent))
    assert play(watched.ticking(scenario(build)), watched) == play(scenario(build))
    (found,) = watched.session.findings
    assert (found.pattern, found.severity) == ("DL", "warning") and 20 <= found.ts < 30
    assert watched.healed() == [] and told == []
    watched.must_be_sound()


def test_a_team_is_asked_again_and_knows_nothing_of_the_answer_before() -> None:
    asked = Scenario("twice", early_once, ask_two)
    watched = Watched("heal")
    outcome = play(asked, watched)
    assert watched.patterns == [] and watched.session.statistics().requests == 2
    assert str(outcome.returned).count(DONE) == 4
    watched.must_be_sound()


def early_once(script: Script) -> Any:
    return RoundRobinGroupChat(
        agents(script, ann=lambda *given: DONE), termination_condition=until()
    )


async def ask_two(team: Any) -> Any:
    return [await ask(team), await ask(team, "And then?")]


class TestGoingRound(GoingRound):
    watched, going_round = Watched, [scenario(ping_pong)]
    unsolved, solved = "Maximum number of messages 40", "I do it."
