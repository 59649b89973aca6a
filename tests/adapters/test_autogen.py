"""AutoGen, wrapped: what is found in a team and healed, and who waits for a person."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from autogen_agentchat.agents import UserProxyAgent
from autogen_agentchat.conditions import (
    ExternalTermination,
    HandoffTermination,
    MaxMessageTermination,
    TextMentionTermination,
)
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat, Swarm

from dig.adapters.base.capabilities import MOST_BOUNCES
from dig.errors import SettingsError
from dig.graph.records import Limits

from .autogen_teams import (
    DONE,
    Act,
    Model,
    To,
    Watched,
    agents,
    ask,
    assistant,
    flow,
    graph,
    is_told,
    says,
    scenario,
    shown,
    two_handoffs,
    until,
)
from .conformance import Hanging
from .harness import Scenario, Script, play

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")


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

    people = [two_handoffs(script), *agents(script, bob=bob, cyd=cyd)]
    return Swarm(people, termination_condition=until())


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
    (finding,) = [row for row in watched.session.findings if row.pattern == "FAIL"]
    assert str(finding.evidence["error"]).startswith("Maximum")  # nobody raised an exception
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
        people = agents(script, ann=says("For both"), bob=says(f"Enough. {DONE}"), cyd=says("Sum"))
        return flow(people, "ann bob", "ann cyd", "bob cyd", end=until())

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
        people = agents(
            script, ann=says("Split"), bob=slow, cyd=slow,
            dan=lambda texts, number: " and ".join(texts),
        )  # fmt: skip
        return flow(people, "ann bob", "ann cyd", "bob dan", "cyd dan")

    told: list[str] = []
    limits = Limits(dl_window_s=5, activation_limit_s=20)
    watched = Watched("heal", limits=limits, deliver=lambda agent, note: told.append(agent))
    watched.must_change_nothing(scenario(build), ticks=True)
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


# --- persons ---


def asking_branch(script: Script) -> Any:
    """A graph stops at a handoff to the user, with a branch at work and a join waiting."""

    async def slow(texts: list[str], number: int) -> Any:
        await asyncio.sleep(5)
        return "Right"

    people = agents(script, ann=says("Split"), bob=asks_user, cyd=slow, dan=says("Both"))
    end = HandoffTermination("user")
    return flow(people, "ann bob", "ann cyd", "bob dan", "cyd dan", end=end)


def asks_user(texts: list[str], number: int) -> Any:
    return To("user", said="Which?")


def stopped_graph(script: Script) -> Any:
    """Somebody stops it while Eve speaks, and Dan waits for her and has Bob's part."""
    stop = ExternalTermination()

    def stops(texts: list[str], number: int) -> Any:
        stop.set()
        return "Right"

    people = agents(
        script, ann=says("Split"), bob=says("Left"), cyd=says("To Eve"), eve=stops,
        dan=says("Both"), fay=says("Last"),
    )  # fmt: skip
    edges = ("ann bob", "ann cyd", "cyd eve", "eve fay", "bob dan", "fay dan")
    return flow(people, *edges, end=stop)


async def go_on(team: Any) -> Any:
    return [await ask(team), await ask(team, None)]


def dropped_and_asking(script: Script) -> Any:
    """Ann hands over to two at once, and the one who is heard asks the user."""
    people = [two_handoffs(script), *agents(script, bob=asks_user, cyd=says(DONE))]
    return Swarm(people, termination_condition=HandoffTermination("user") | until())


def person(script: Script, name: str, seconds: float, says: str) -> UserProxyAgent:
    """Somebody who takes a while to type."""

    async def types(prompt: str, token: Any) -> str:
        async with script.turn(name, prompt):
            await asyncio.sleep(seconds)
            return says

    return UserProxyAgent(name, input_func=types)


def with_person(script: Script) -> Any:
    people = [*agents(script, ann=says("May I?")), person(script, "person", 100, DONE)]
    return RoundRobinGroupChat(people, termination_condition=until())


def test_what_a_person_has_said_is_never_sent_back_to_him() -> None:
    """An early answer that a person gave becomes a note, and he is asked once."""

    def build(script: Script) -> Any:
        two = assistant(
            script, "ann", lambda texts, n: To("person", "cyd"), handoffs=["person", "cyd"]
        )
        people = [two, person(script, "person", 0, DONE), *agents(script, cyd=says(DONE))]
        return Swarm(people, termination_condition=until())

    watched = Watched("heal")
    bare, mine = play(scenario(build)), play(scenario(build), watched)
    assert mine.per_agent() == bare.per_agent() and mine.returned == bare.returned
    assert watched.patterns == ["ET"] and watched.healed() == ["inject"]
    watched.must_be_sound()


MANY = 40


def many(script: Script) -> Any:
    """Forty persons are asked at once, in branches of a graph."""
    persons = [person(script, f"p{n}", 800 + n / 8, "Approved.") for n in range(MANY)]
    edges = [edge for one in persons for edge in (f"ann {one.name}", f"{one.name} end")]
    return flow([*agents(script, ann=says("May I?"), end=says("Thanks")), *persons], *edges)


def choosing_slowly(script: Script) -> Any:
    """A person answers, and then the selector hangs."""

    async def chooses(thread: Any) -> str:
        if thread[-1].source != "person":
            return "person"
        await asyncio.sleep(100)
        return "ann"

    people = [*agents(script, ann=says(DONE)), person(script, "person", 40, "Approved.")]
    return SelectorGroupChat(
        people, Model(script, "chooser", says("ann")), selector_func=chooses,
        termination_condition=until(),
    )  # fmt: skip


# --- a participant hangs, and another one speaks in its place ---


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


async def ask_five_times(team: Any) -> Any:
    """Five requests."""
    for _ in range(4):
        await team.run(task="What now?")
        await team.reset()
    return shown(await team.run(task="What now?"))


HANGING = Hanging(hanging, ask_five_times, "(?!.*bob).*TERMINATE.*", "bob's part")


def test_in_a_team_that_plans_who_speaks_no_other_can_be_asked() -> None:
    """A graph flow runs its nodes: another one in place of one of them is refused."""
    with pytest.raises(SettingsError, match="reassign"):
        Watched("heal", allow={"reassign"})(graph(Script()))
