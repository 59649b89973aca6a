"""AutoGen's runtimes, wrapped: what is found, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken, FunctionCall, SingleThreadedAgentRuntime, TopicId
from autogen_core.models import FunctionExecutionResult, RequestUsage

import dig
from dig.adapters import autogen as adapter
from dig.adapters.autogen.messages import payload_of
from dig.graph.records import Emit, Limits

from .autogen_runtimes import RUNTIMES, Act, Net, OneByOne, Tell, says, scenario
from .autogen_teams import SCENARIOS, Watched, agents
from .conformance import REQUESTS, Shown
from .framework_sites import Site, Sites
from .framework_watch import Broken
from .harness import Scenario, Script, play

COLLECTED: dict[str, Any] = {"outside": {"collector"}}


async def ask_ann(net: Net) -> Any:
    return await net.ask("ann")


def passing_on(to: str) -> Act:
    """Somebody who passes on what it is told, until it is told not to."""

    async def act(node: Any, message: Any) -> None:
        await node.tell("results" if dig.notes() else to, message.text)

    return act


async def tell_ann(net: Net, seconds: float = 30) -> Any:
    await net.runtime.publish_message(Tell("Go"), TopicId("ann", "default"))
    await asyncio.sleep(seconds)
    return net.heard


async def tell_and_wait(net: Net) -> Any:
    return await tell_ann(net, 60)


def test_er_what_is_passed_round_and_round_is_worked_on_when_they_are_told() -> None:
    asked = scenario("ping_pong", {"ann": passing_on("bob"), "bob": passing_on("ann")}, tell_ann)
    assert play(asked).raised[0][0] == "TimeoutError"
    watched = Watched("heal", **COLLECTED)
    assert play(asked, watched).returned == "['Go']"
    assert watched.patterns == ["ER"] and watched.healed() == ["inject"]
    watched.must_be_sound()


def test_et_an_early_answer_goes_back_where_that_is_allowed() -> None:
    async def ann(node: Any, message: Any) -> str:
        if dig.notes():
            await asyncio.sleep(5)
            return "all of it"
        await node.tell("bob", "the second half")
        return "half of it"

    async def bob(node: Any, message: Any) -> None:
        await asyncio.sleep(3)

    asked = scenario("early", {"ann": ann, "bob": bob}, ask_ann)
    assert play(asked).returned == "'half of it'"
    watched = Watched("heal", allow={"bounce"})
    assert play(asked, watched).returned == "'all of it'"
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    watched.must_be_sound()
    watched = Watched("heal")
    assert play(asked, watched).returned == "'half of it'"
    assert watched.incidents() == ["downgraded", "work_after_answer"]


def test_dl_agents_that_work_in_turn_and_ask_each_other_are_found_at_once() -> None:
    async def ann(node: Any, message: Any) -> str:
        if message.text == "What now?":
            return f"Bob says: {await node.ask('bob', 'You?')}"
        return "I am busy"

    async def bob(node: Any, message: Any) -> str:
        try:
            async with asyncio.timeout(60):
                return str(await node.ask("ann", "And you?"))
        except TimeoutError:
            return "nothing, but I was told" if dig.notes() else "nothing"

    asked = scenario("waiting", {"ann": ann, "bob": bob}, ask_ann, OneByOne)
    assert play(asked).returned == "'Bob says: nothing'"
    watched = Watched("heal", limits=Limits(dl_window_s=5))
    assert play(watched.ticking(asked), watched).returned == "'Bob says: nothing, but I was told'"
    assert watched.patterns[0] == "DL" and watched.healed()[0] == "create"
    assert watched.session.findings[0].ts < 10
    watched.must_be_sound()


def test_mc_who_was_told_last_is_woken_when_nobody_answers() -> None:
    nets: list[Net] = []

    async def ann(node: Any, message: Any) -> None:
        if message.text == "Wake up":
            await node.tell("results", "Here it is")

    def deliver(agent: str, note: str) -> None:
        message = nets[0].runtime.publish_message(Tell("Wake up"), TopicId(agent, "default"))
        tasks.append(asyncio.ensure_future(message))

    async def tell(net: Net) -> Any:
        nets.append(net)
        return await tell_and_wait(net)

    tasks: list[Any] = []
    asked = scenario("silent", {"ann": ann}, tell)
    watched = Watched("heal", deliver=deliver, **COLLECTED)
    assert play(watched.ticking(asked), watched).returned == "['Here it is']"
    assert watched.patterns == ["MC"] and watched.healed() == ["create"]
    watched.must_be_sound()


def test_a_deliver_that_raises_is_counted_and_reaches_no_loop() -> None:
    async def ann(node: Any, message: Any) -> None: ...

    async def tell(net: Net) -> Any:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: seen.append(context))
        return await tell_and_wait(net)

    seen: list[Any] = []
    watched = Watched("heal", strict=False, deliver=Broken(), **COLLECTED)
    assert play(watched.ticking(scenario("silent", {"ann": ann}, tell)), watched).returned == "[]"
    assert watched.healed() == ["create"] and watched.session.statistics().faults == 1
    assert seen == []


async def asks_two(node: Any, message: Any) -> str:
    await node.ask("bob", "Count")
    await node.ask("cyd", "Count")
    return "once is enough" if dig.notes() else "twice three"


ASKS_TWO = {"ann": asks_two, "bob": says("3"), "cyd": says("3")}


def test_oe_what_is_published_where_nobody_listens_is_found() -> None:
    async def ann(node: Any, message: Any) -> str:
        await node.tell("nowhere", "A part")
        await asyncio.sleep(15)
        return "I have told them" if not dig.notes() else "nobody listens"

    watched = Watched()
    watched.must_change_nothing(scenario("unheard", {"ann": ann}, ask_ann), ticks=True)
    assert watched.patterns[0] == "OE"
    assert watched.session.findings[0].evidence == {"cause": "no_recipient"}
    watched.must_be_sound()


def test_what_is_asked_with_a_token_is_taken_back_when_that_is_cancelled() -> None:
    """The first one who asked ends first; what the others have begun to end is not left open."""
    tokens: list[CancellationToken] = []

    def asks(agent: str) -> Act:
        async def act(node: Any, message: Any) -> Any:
            await node.ask("eve", "What time is it?", cancellation_token=tokens[-1])
            return await node.ask(agent, "Well?", cancellation_token=tokens[-1])

        return act

    async def works_long(node: Any, message: Any) -> Any:
        work = asyncio.ensure_future(asyncio.sleep(30))
        tokens[-1].link_future(work)
        await work

    async def cancels(net: Net) -> Any:
        tokens.append(CancellationToken())
        asyncio.get_running_loop().call_later(10, tokens[-1].cancel)
        try:
            return await net.ask("ann", cancellation_token=tokens[-1])
        except asyncio.CancelledError:
            return await net.ask("eve")

    acts = {"ann": asks("bob"), "bob": asks("cyd"), "cyd": works_long, "eve": says("Noon")}
    watched = Watched()
    watched.must_change_nothing(scenario("taken_back", acts, cancels))
    assert watched.patterns == []
    watched.must_be_over()


def test_notes_can_be_put_into_messages() -> None:
    async def ann(node: Any, message: Any) -> None:
        await node.tell("results" if "pass it on" in message.text else "bob", message.text)

    def annotate(message: Tell, notes: tuple[str, ...]) -> Tell:
        return Tell(f"{message.text}: {notes[-1]}")

    asked = scenario("ping_pong", {"ann": ann, "bob": passing_on("ann")}, tell_ann)
    watched = Watched("heal", annotate=annotate, **COLLECTED)
    assert "Do not pass it on again" in str(play(asked, watched).returned)
    watched.must_be_sound()


def test_what_is_said_to_the_outside_beside_an_answer_is_told_and_is_no_answer() -> None:
    async def ann(node: Any, message: Any) -> str:
        await node.tell("results", "A word in between")
        return "the answer"

    watched = Watched(**COLLECTED)
    watched.must_change_nothing(scenario("beside", {"ann": ann}, ask_ann))
    said = [row.type for row in watched.rows(Emit) if row.by and not row.to]
    assert said == ["notice", "solution"]
    assert watched.patterns == []
    watched.must_be_sound()


@pytest.mark.parametrize("is_wrapped_late", [False, True])
def test_the_agents_of_a_group_chat_are_no_agents_of_the_runtime_that_it_runs_on(
    is_wrapped_late: bool,
) -> None:
    """Its manager and its participants are told of by the team, if that is wrapped."""

    async def chat() -> Any:
        runtime = SingleThreadedAgentRuntime()
        runtime.start()
        people = agents(Script(), ann=lambda texts, number: "Hi", bob=lambda texts, number: "Ho")
        team = RoundRobinGroupChat(people, max_turns=2, runtime=runtime)
        if is_wrapped_late:
            await team.run(task="And?")
        dig.wrap(runtime)
        try:
            await team.run(task="And?")
            await runtime.stop_when_idle()
            session = dig.session_of(runtime)
            return session.findings, session.statistics().requests
        finally:
            dig.unwrap(runtime)

    assert asyncio.run(chat()) == ((), 0)


def crowded(shown: Shown) -> Scenario:
    """`ann` asks the same of `store` until she is told, for some requests; for some she hangs."""

    def heard(message: Any) -> int:
        number = int(message.text.split()[-1])
        shown.append((number, dig.notes_about()))
        return number

    async def ann(node: Any, message: Any) -> str:
        number = int(message.text.split()[-1])
        await asyncio.sleep(30 if number % 10 == 5 else number % 7)
        for _ in range(12 if number % 10 == 0 else 1):
            await node.ask("store", f"how many for {number}")
            heard(message)
            if dig.notes():
                break
        return f"{number} is done"

    async def store(node: Any, message: Any) -> str:
        await asyncio.sleep(1)
        heard(message)
        return "four"

    async def drive(net: Net) -> Any:
        asking = (net.ask("ann", f"request {number}") for number in range(REQUESTS))
        return await asyncio.gather(*asking)

    return scenario("crowd", {"ann": ann, "store": store}, drive)


def test_what_is_new_for_each_message_is_no_word_of_it() -> None:
    """Messages of AutoGen's own have ids, times and costs: the same said again is a loop."""

    async def ann(node: Any, message: Any) -> str:
        for number in range(6):
            usage = RequestUsage(number, 1)
            said = TextMessage(content="How many?", source="ann", models_usage=usage)
            await node.publish_message(said, TopicId("bob", "default"))
            result = FunctionExecutionResult(
                content="4", name="stock", call_id=f"call-{number}", is_error=False
            )
            calls = [FunctionCall(f"call-{number}", "{}", "stock"), result]
            told.append(payload_of({"calls": calls}))
        return "Done"

    told: list[Any] = []
    limits = Limits(loop_limit=5)

    async def bob(node: Any, message: Any) -> None: ...

    watched = Watched("observe", limits=limits)
    play(scenario("again", {"ann": ann, "bob": bob}, ask_ann), watched)
    assert "LOOP" in watched.patterns
    assert all(one == told[0] for one in told) and "call-" not in str(told)


# --- what fails ---


def test_once_the_wrapper_has_failed_nobody_is_told_anything() -> None:
    """What it knows may be wrong: it has missed the answer, and nobody is to be woken for one."""

    async def ann(node: Any, message: Any) -> None:
        await node.tell("results", "Here it is")

    told: list[str] = []
    sites = Sites(adapter, caller="turn", sender="turn", waiting="turn")
    [publish] = [one for one in sites.all if one.called == "step" and "_post, " in line_of(one)]
    watched = Watched("heal", strict=False, deliver=lambda *what: told.extend(what), **COLLECTED)
    with sites.passing(publish, 2) as passes:
        watched.must_change_nothing(scenario("answering", {"ann": ann}, tell_and_wait), ticks=True)
    assert passes.planted and watched.healed() == ["create"] and told == []


def line_of(site: Site) -> str:
    return Path(site.path).read_text().splitlines()[site.first - 1]


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore:Multiple handoffs detected")
@pytest.mark.parametrize("asked", [*SCENARIOS, *RUNTIMES], ids=str)
def test_a_fault_of_what_a_user_hands_in_changes_nothing_for_the_host(asked: Scenario) -> None:
    more: dict[str, Any] = {"handoff" if asked in SCENARIOS else "annotate": Broken()}
    watched = Watched("heal", strict=False, deliver=Broken(), **more)
    watched.must_change_nothing(asked)
    watched.detach()
