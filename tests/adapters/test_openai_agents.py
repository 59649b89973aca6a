"""OpenAI agents, wrapped: what is found in a team, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
import re
from random import Random
from typing import Any

import pytest
from agents import SQLiteSession
from agents.run import DEFAULT_MAX_TURNS

import dig
from dig.adapters import openai_agents as adapter
from dig.adapters.base.capabilities import MOST_BOUNCES
from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.graph.records import Limits
from dig.runtime.setup import Setup

from .conformance import REQUESTS, Shown
from .framework_faults import broken
from .framework_gates import Keeper, behind
from .framework_sites import Sites
from .framework_watch import Broken
from .harness import Scenario, Script, play
from .openai_agents_teams import (
    Reply,
    Watched,
    agent,
    as_tool,
    ask,
    at_once,
    calls,
    done,
    hands,
    in_the_background,
    raises,
    says,
    scenario,
    stream,
    together,
    told,
    tool,
    tool_and_handoff,
    unless_told,
)


def two_at_once(script: Script) -> Any:
    """Triage hands over to two; the SDK carries out the first handoff, and drops the other."""

    def bill(call: Any, number: int) -> Any:
        return says("billed, and shipped" if told(call) else "billed")(call, number)

    both = calls("transfer_to_billing", "transfer_to_shipping")
    handoffs = [agent(script, "billing", bill), agent(script, "shipping", says("shipped"))]
    return agent(script, "triage", both, handoffs=handoffs)


def test_et_an_answer_without_what_a_dropped_handoff_was_for_goes_back() -> None:
    watched = Watched("heal")
    outcome = play(scenario(two_at_once), watched)
    assert "'answer': 'billed, and shipped'" in str(outcome.returned)
    assert watched.patterns == ["ET", "ET"] and watched.healed() == ["reroute", "inject"]
    assert "monitor" not in str(outcome.returned)  # the note stays between monitor and model
    assert watched.leaves_nothing_open()


def test_et_a_streamed_answer_cannot_go_back_and_that_is_said() -> None:
    watched = Watched("heal")
    outcome = play(scenario(two_at_once, stream), watched)
    assert "'answer': 'billed'" in str(outcome.returned)
    assert watched.patterns == ["ET"] and watched.incidents() == ["downgraded"]
    assert watched.leaves_nothing_open()


def never_again(script: Script) -> Any:
    """The same, and the one who is asked again has no answer."""
    both = calls("transfer_to_billing", "transfer_to_shipping")
    billing = agent(script, "billing", says("billed"), raises)
    handoffs = [billing, agent(script, "shipping", says("shipped"))]
    return agent(script, "triage", both, handoffs=handoffs)


def test_if_asking_again_fails_the_first_answer_stands() -> None:
    watched = Watched("heal")
    outcome = play(scenario(never_again), watched)
    assert outcome.returned == play(scenario(never_again)).returned
    assert watched.healed() == ["reroute", "inject"]
    assert watched.incidents() == ["bounce failed"]
    assert watched.leaves_nothing_open()


async def talk_on(team: Any) -> Any:
    """Ask in a session, which an answer that goes back must not spoil."""
    session = SQLiteSession("one")
    try:
        asked = await ask(team, session=session)
        return [asked["answer"], [item.get("role") for item in await session.get_items()]]
    finally:
        session.close()


def test_et_in_a_session_the_history_has_both_answers_and_no_note() -> None:
    watched = Watched("heal")
    returned = str(play(scenario(two_at_once, talk_on), watched).returned)
    assert returned.startswith("['billed, and shipped', ['user', None, ")
    assert returned.endswith("'assistant', 'assistant']]")


async def at_a_server(team: Any) -> Any:
    return await ask(team, previous_response_id="resp-1")


def test_et_where_a_server_keeps_the_conversation_no_answer_goes_back() -> None:
    watched = Watched("heal")
    outcome = play(scenario(two_at_once, at_a_server), watched)
    assert "'answer': 'billed'" in str(outcome.returned)
    assert watched.patterns == ["ET"] and watched.incidents() == ["downgraded"]


def within(most: int | None) -> Any:
    """Ask, and allow so many turns."""

    async def drive(team: Any) -> Any:
        return await ask(team, max_turns=most)

    return drive


@pytest.mark.parametrize(("most", "goes_back"), [(2, False), (3, True), (None, True)])
def test_an_answer_goes_back_only_while_the_run_has_turns_left(
    most: int | None, goes_back: bool
) -> None:
    """What healing adds to a run counts against its `max_turns`."""
    watched = Watched("heal")
    outcome = play(scenario(two_at_once, within(most), "within"), watched)
    assert ("'answer': 'billed, and shipped'" in str(outcome.returned)) is goes_back
    assert ("downgraded" in watched.incidents()) is not goes_back
    assert watched.leaves_nothing_open()


def test_an_answer_goes_back_within_the_turns_of_a_run_whose_caller_named_none() -> None:
    """The SDK's own limit holds for a run with all that healing adds to it."""

    def busy(script: Script) -> Any:
        @tool()
        async def work() -> str:
            return "worked"

        several = [calls("work")] * (DEFAULT_MAX_TURNS - 2)
        both = calls("transfer_to_billing", "transfer_to_shipping")
        billing = agent(script, "billing", *several, says("billed"), tools=[work])
        handoffs = [billing, agent(script, "shipping", says("shipped"))]
        return agent(script, "triage", both, handoffs=handoffs)

    watched = Watched("heal")
    outcome = play(scenario(busy), watched)
    assert outcome.returned == play(scenario(busy)).returned
    assert watched.healed() == ["inject"] and watched.incidents() == ["downgraded"]


def test_an_agent_that_never_learns_is_asked_again_twice_and_no_more() -> None:
    """The limit of the base: other work is lost with each answer, and the third one stands."""

    def build(script: Script) -> Any:
        both = calls("transfer_to_billing", "transfer_to_shipping")
        triage = agent(script, "triage", *[both, says("done")] * 9)
        billing = agent(script, "billing", hands("triage"), handoffs=[triage])
        triage.handoffs = [billing, agent(script, "shipping", says("shipped"))]
        return triage

    watched = Watched("heal")
    play(scenario(build, within(None), "never"), watched)
    assert watched.healed().count("reroute") == MOST_BOUNCES
    assert "downgraded" in watched.incidents()


def in_background(script: Script) -> Any:
    """A tool that has an agent work in the background; the answer does not wait for it."""
    begin_and_wait = in_the_background(script)

    def reply(call: Any, number: int) -> Any:
        if told(call):
            return (calls("wait") if number == 3 else says("with b"))(call, number)
        return (calls("begin", text="x") if number == 1 else says("without b"))(call, number)

    return agent(script, "a", reply, tools=begin_and_wait)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_et_an_answer_before_work_in_the_background_is_done_goes_back(seed: int) -> None:
    watched = Watched("heal")
    outcome = play(scenario(in_background), watched, seed=seed)
    assert "'answer': 'with b'" in str(outcome.returned)
    assert watched.patterns[0] == "ET" and watched.healed()[0] == "reroute"
    assert watched.leaves_nothing_open()


def ping_pong(script: Script) -> Any:
    """Two that think the other one is in charge, until they are told."""

    def hand_to(other: str) -> Reply:
        return unless_told(hands(other), says("solved"))

    a, b = agent(script, "a", hand_to("b")), agent(script, "b", hand_to("a"))
    a.handoffs, b.handoffs = [b], [a]
    return a


def test_er_two_agents_of_one_name_are_told_apart() -> None:
    """The note is for the one that hands over, and it is that one's model that reads it."""

    def build(script: Script) -> Any:
        solve = unless_told(hands("desk"), says("solved"))
        first, second = (agent(script, "desk", solve) for _ in range(2))
        first.handoffs, second.handoffs = [second], [first]
        return first

    watched = Watched("heal")
    assert "'answer': 'solved'" in str(play(scenario(build, name="twins"), watched).returned)
    assert watched.patterns == ["ER"]
    assert watched.session.findings[0].evidence["path"] == ["desk", "desk (2)"] * 2
    watched.must_be_sound()


def crowded(shown: Shown) -> Scenario:
    """`lead` asks until it is told, for some requests; for some, a tool of `builder` hangs."""

    def build(script: Script) -> Any:
        def number_of(call: Any) -> int:
            number = int(re.findall(r"request (\d+)", str(call.input))[0])
            shown.append((number, dig.notes_about()))
            return number

        @tool()
        async def work(secs: int) -> str:
            await asyncio.sleep(secs)
            return "worked"

        def lead(call: Any, n: int) -> Any:
            number, asked = number_of(call), str(call.input).count("'type': 'function_call'")
            if told(call) or asked >= (12 if number % 10 == 0 else 1):
                return says(f"request {number} is done")(call, n)
            return calls("builder", input=f"request {number}")(call, n)

        def builder(call: Any, n: int) -> Any:
            number = number_of(call)
            if "worked" in str(call.input):
                return says("built")(call, n)
            return calls("work", secs=30 if number % 10 == 5 else number % 7)(call, n)

        b = agent(script, "builder", builder, tools=[work])
        return agent(script, "lead", lead, tools=[as_tool(b)])

    async def drive(team: Any) -> Any:
        return await asyncio.gather(*(ask(team, f"request {n}") for n in range(REQUESTS)))

    return scenario(build, drive, "crowd")


def twice(script: Script) -> Any:
    """The same part is given to two agents, and then to one of them twice."""
    b, c = done(script, *"bc")

    def reply(call: Any, number: int) -> Any:
        if number == 1:
            return calls("b", "c", input="rome")(call, number)
        return says("done twice" if told(call) else "done")(call, number)

    return agent(script, "a", reply, tools=[as_tool(b), as_tool(c)])


def test_asking_again_after_an_answer_is_no_repetition() -> None:
    def build(script: Script) -> Any:
        b = agent(script, "b", says("b done"))
        again = calls("b", input="x")
        return agent(script, "a", again, again, says("done"), tools=[as_tool(b)])

    watched = Watched(same_work=True)
    play(scenario(build, name="again"), watched)
    assert watched.patterns == []


def test_a_tool_can_ask_what_its_agent_was_told() -> None:
    seen: list[tuple[str, ...]] = []

    def build(script: Script) -> Any:
        @tool()
        async def look() -> str:
            seen.append(dig.notes())
            return "looked"

        def hand_to(other: str) -> Reply:
            asks = unless_told(hands(other), calls("look"))
            return lambda call, n: (says("ok") if seen else asks)(call, n)

        a = agent(script, "a", hand_to("b"), tools=[look])
        b = agent(script, "b", hand_to("a"), tools=[look])
        a.handoffs, b.handoffs = [b], [a]
        return a

    watched = Watched("heal")
    play(scenario(build, name="look"), watched)
    [notes] = seen
    assert len(notes) == 1 and "passed on 4 times" in notes[0]


def waiting_pair(script: Script) -> Any:
    """Two agents whose tools wait for each other's word; the tools give up after a while."""
    words = {"b": asyncio.Event(), "c": asyncio.Event()}

    def one(name: str, other: str) -> Any:
        @tool(timeout=30.0)
        async def wait() -> str:
            await words[other].wait()
            return "heard"

        def reply(call: Any, number: int) -> Any:
            if not told(call) and number < 4:
                return calls("wait")(call, number)
            words[name].set()
            return says(f"{name} goes first")(call, number)

        return as_tool(agent(script, name, reply, tools=[wait]))

    pair = [one("b", "c"), one("c", "b")]
    asks = together(calls("b", input="x"), calls("c", input="y"))
    return agent(script, "a", asks, says("done"), tools=pair)


def test_dl_two_that_wait_for_each_other_are_told_when_their_tools_give_up() -> None:
    limits = Limits(dl_window_s=5, activation_limit_s=5)
    setup = Setup(detectors=standard, healers=standard_healers, limits=limits, policy=HEAL_ALL)
    watched = Watched("heal", setup)
    outcome = play(watched.ticking(scenario(waiting_pair)), watched)
    assert "'answer': 'done'" in str(outcome.returned)
    assert watched.patterns == ["DL"] and watched.healed() == ["create"]
    assert 30 < outcome.elapsed < 40
    assert watched.leaves_nothing_open()


@pytest.mark.parametrize("drive", [ask, stream])
def test_a_gate_keeps_a_handoff(drive: Any) -> None:
    gate = Keeper({"handoff": "c"}, after_s=5.0)
    watched, asked = Watched("heal", behind(gate)()), scenario(tool_and_handoff, drive)
    bare, mine = play(asked), play(asked, watched)
    assert gate.seen == [{"handoff": "c"}] and mine.per_agent() == bare.per_agent()
    assert mine.returned == bare.returned and mine.elapsed == bare.elapsed + 5
    assert watched.leaves_nothing_open()


# --- what fails ---


@pytest.mark.sampled(3)
@pytest.mark.parametrize("called", Sites(adapter, asker="turn").called)
@pytest.mark.parametrize("build", [two_at_once, ping_pong])
def test_what_fails_while_it_heals_leaves_the_host_a_result_or_its_own_exception(
    build: Any, called: str
) -> None:
    for at in (1, 2, 3, 5):
        watched = Watched("heal", strict=False)
        with broken(called, adapter, at):
            mine = play(scenario(build), watched)
        assert mine.returned or mine.raised[0][0] == "MaxTurnsExceeded"


@pytest.mark.parametrize("drive", [ask, stream])
def test_an_annotate_that_raises_changes_nothing_for_the_host(drive: Any) -> None:
    watched = Watched("heal", strict=False, annotate=Broken())
    watched.must_change_nothing(scenario(ping_pong, drive))
    assert watched.session.statistics().faults > 0


# --- random teams, which do whatever a team may do ---

NAMES = "abcd"


def team_of(number: int) -> Any:
    """A team that is drawn from a number: who knows whom, and what everybody does."""

    def build(script: Script) -> Any:
        draw = Random(number)
        agents = {name: agent(script, name, *replies(draw, name)) for name in NAMES}
        for name, one in agents.items():
            one.handoffs = [other for other in agents.values() if other is not one]
            one.tools = [as_tool(agents[other]) for other in NAMES if other > name]
        return agents["a"]

    return build


def replies(draw: Random, name: str) -> list[Reply]:
    others = [other for other in NAMES if other != name]
    below = [other for other in NAMES if other > name]
    found: list[Reply] = []
    for _ in range(draw.randrange(4)):
        match draw.randrange(6):
            case 0:
                found.append(hands(draw.choice(others)))
            case 1:
                found.append(calls(*(f"transfer_to_{to}" for to in draw.sample(others, 2))))
            case 2:
                found.append(raises)
            case _ if below:
                asked = draw.choices(below, k=draw.randint(1, 3))
                found.append(calls(*asked, input=draw.choice("xy")))
    return [*found, says(f"{name} done")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(8))
def test_random_teams_are_not_changed_and_their_traces_are_sound(part: int) -> None:
    for number in range(part, 96, 8):
        drive = (ask, stream, at_once)[number % 3]
        asked = scenario(team_of(number), drive, f"team {number}")
        watched = Watched()
        watched.must_change_nothing(asked, seed=number)
        watched.must_be_over()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", range(4))
def test_random_teams_that_are_healed_end_and_leave_nothing_open(part: int) -> None:
    for number in range(part, 48, 4):
        drive = (ask, stream, at_once)[number % 3]
        watched = Watched("heal")
        play(scenario(team_of(number), drive, f"team {number}"), watched, seed=number)
        watched.must_be_over()


def back_and_forth(script: Script) -> Any:
    """A router asks another agent for two parts by handoffs, and answers when it has both."""

    def part(call: Any) -> int:
        return str(call.input).count("'name': 'transfer_to_b'")

    def route(call: Any, number: int) -> Any:
        handing = together(says(f"I need part {part(call)}."), hands("b"))
        return (says("all done") if part(call) == 2 else handing)(call, number)

    def work(call: Any, number: int) -> Any:
        return together(says(f"Part {part(call)} is done."), hands("a"))(call, number)

    a, b = agent(script, "a", route), agent(script, "b", work)
    a.handoffs, b.handoffs = [b], [a]
    return a


@pytest.mark.parametrize("seed", range(3, 6))
def test_requests_that_overlap_do_not_mix_in_a_router_that_gets_the_floor_back(seed: int) -> None:
    """What an instance remembers belongs to one request, until that is answered."""
    watched = Watched()
    watched.must_change_nothing(scenario(back_and_forth, at_once), seed=seed)
    assert watched.patterns == [] and {"a", "a#2", "a#3"} <= {*watched.ran()}
    watched.must_be_over()
