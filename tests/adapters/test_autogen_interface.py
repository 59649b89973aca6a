"""AutoGen, wrapped: used as before; what it holds, whose an error is, and what has no answer."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from typing import Any

import pytest
from autogen_agentchat import conditions
from autogen_agentchat.teams import (
    BaseGroupChat,
    DiGraphBuilder,
    GraphFlow,
    RoundRobinGroupChat,
    Swarm,
)
from autogen_core import SingleThreadedAgentRuntime

import dig
from dig.detectors import standard, standard_healers
from dig.graph.records import Emit, End, Start
from dig.runtime.setup import Setup

from .autogen_runtimes import Act, Net, Node, OneByOne, concludes, hands_on, scenario
from .autogen_runtimes import raises as raising
from .autogen_teams import (
    DONE,
    To,
    Watched,
    agents,
    ask,
    ask_twice,
    cancelled,
    choosing_wrong,
    failing,
    failing_beside,
    flow,
    raises,
    round_robin,
    says,
    swarm,
    until,
)
from .autogen_teams import scenario as chat
from .conformance import Failing
from .framework_gates import behind, to, usher
from .harness import Scenario, Script, play

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")


def parts(team: Any) -> list[Any]:
    """All that a wrapper may have touched."""
    runtime = team._runtime if isinstance(team, BaseGroupChat) else team
    return [runtime, *runtime._instantiated_agents.values()]


def test_unwrapping_gives_a_team_back_as_it_was() -> None:
    async def drive() -> None:
        team = round_robin(Script())
        bare = round_robin(Script())
        assert dig.wrap(team) is team
        assert dig.wrap(team) is team
        first = await ask(team)
        assert dig.unwrap(team) is team
        assert first == await ask(bare)
        for mine, other in zip(parts(team), parts(bare), strict=True):
            assert vars(mine).keys() == vars(other).keys()
            assert "autogen/taps" not in repr([vars(one) for one in parts(team)])
        assert await ask(team, "And then?") == await ask(bare, "And then?")

    asyncio.run(drive())


def test_two_teams_of_one_runtime_may_be_unwrapped_in_any_order() -> None:
    async def drive() -> None:
        runtime = SingleThreadedAgentRuntime()
        one, two = (
            type(team)(team._participants, max_turns=2, runtime=runtime, name=f"team-{number}")
            for number, team in enumerate((round_robin(Script()), round_robin(Script())))
        )
        runtime.start()
        dig.wrap(one)
        dig.wrap(two)
        sessions = [dig.session_of(team) for team in (one, two)]
        await asyncio.gather(ask(one), ask(two))
        dig.unwrap(one)
        await asyncio.gather(ask(one), ask(two))
        dig.unwrap(two)
        await ask(one)
        await runtime.stop_when_idle()
        assert [session.statistics().requests for session in sessions] == [1, 2]

    asyncio.run(drive())


def slowed(agent: str) -> Setup:
    """What goes to somebody is kept for five seconds."""
    gate = usher("It is late.", keeps=to(agent), after_s=5.0)
    return Setup(detectors=standard, healers=standard_healers, gates=[gate])


def test_what_is_published_for_somebody_waits_behind_what_is_held_for_it() -> None:
    seen: list[tuple[str, str, bool]] = []

    def listens(name: str) -> Act:
        async def act(node: Any, message: Any) -> None:
            late = asyncio.get_running_loop().time() - began[0] >= 5
            seen.append((name, message.text, late))

        return act

    async def ann(node: Any, message: Any) -> None:
        for text in ("One", "Two"):
            await node.tell("bob", text)
        await node.tell("cyd", "Three")

    async def tell(net: Net) -> Any:
        began.append(asyncio.get_running_loop().time())
        return await net.tell("ann")

    began: list[float] = []
    acts: dict[str, Act] = {"ann": ann, "bob": listens("bob"), "cyd": listens("cyd")}
    watched = Watched("heal", slowed("bob"), outside={"collector"})
    play(scenario("held", acts, tell), watched)
    assert seen == [("cyd", "Three", False), ("bob", "One", True), ("bob", "Two", True)]
    watched.must_be_sound()


def test_a_run_that_is_cancelled_does_not_wait_for_a_gate() -> None:
    asked = chat(round_robin, cancelled)
    watched = Watched("heal", slowed("bob"))
    assert play(asked, watched).elapsed < 3
    watched.must_be_sound()


def test_an_answer_is_in_the_lineage_of_whom_its_agent_was_told_by() -> None:
    async def tell(net: Net) -> Any:
        return await net.tell("ann")

    watched = Watched(outside={"collector"})
    play(scenario("telling", {"ann": hands_on, "bob": concludes}, tell), watched)
    (final,) = (row for row in watched.rows(Emit) if row.final)
    (last,) = (row for row in watched.rows(Start) if row.activation == final.by)
    (before,) = (row for row in watched.rows(End) if {*row.outputs} & {*last.inputs})
    starts = {row.activation: row.agent for row in watched.rows(Start)}
    assert (last.agent, starts[before.activation]) == ("bob", "ann")


def test_people_may_be_named_agents_of_a_team() -> None:
    def build(script: Script) -> Any:
        return type(round_robin(script))(agents(script, user=says("I am here")), max_turns=1)

    watched = Watched()
    watched.must_change_nothing(chat(build))
    watched.must_be_sound()


@pytest.mark.parametrize("wanted", [True, False])
def test_calls_of_tools_are_events_where_that_is_wanted(wanted: bool) -> None:
    """A tool is an agent `tool:NAME`; a handoff is none."""
    watched = Watched("heal", tools=wanted)
    watched.must_change_nothing(chat(swarm))
    sent = [row for row in watched.rows(Emit) if row.type[:4] == "tool"]
    told = [(row.type, row.to, row.payload) for row in sent]
    called = [
        ("tool_call", ("tool:look_up",), {"what": "it"}),
        ("tool_result", ("bob",), "it: 42"),
    ]
    assert told == (called if wanted else [])
    assert watched.patterns == []
    watched.must_be_over()


@pytest.mark.parametrize("kind", ["tool_call", "tool_result"])
def test_a_gate_may_keep_what_a_tool_is_called_with_and_what_it_returns(kind: str) -> None:
    """The tool begins, and the agent goes on, when the gate has decided."""
    gate = usher(keeps=lambda graph, event: event.type == kind, after_s=10.0)
    watched = Watched("heal", behind(gate)(), tools=True)
    kept = play(chat(swarm), watched)
    assert kept.elapsed == play(chat(swarm)).elapsed + 10
    assert watched.incidents() == ["waits"]
    watched.must_be_over()


# --- whose an error is, and what ends without an answer ---


MANAGER = "SelectorGroupChatManager"


def nobody(script: Script) -> Any:
    """The manager raises before anybody has spoken."""
    team = choosing_wrong(script)
    team._selector_func = lambda thread: "nobody"
    return team


def waiting_join(script: Script) -> Any:
    """Bob's part is at the join already when Cyd raises, so that Dan never runs."""
    people = agents(
        script, ann=says("Split"), bob=says("Left"), cyd=says("To Eve"), eve=raises,
        dan=says("Both"),
    )  # fmt: skip
    return flow(people, "ann bob", "ann cyd", "cyd eve", "bob dan", "eve dan")


# --- limits ---

SPEAKERS = {"ann": says("One"), "bob": says("Two")}


def ended_by(condition: Any, **more: Any) -> Any:
    def build(script: Script) -> Any:
        made = condition() if condition is not None else None
        return RoundRobinGroupChat(agents(script, **SPEAKERS), termination_condition=made, **more)

    return build


def mention() -> Any:
    return conditions.TextMentionTermination(DONE)


def tokens() -> Any:
    return conditions.TokenUsageTermination(max_total_token=1000)


GUARDED = [
    (ended_by(lambda: mention() | conditions.MaxMessageTermination(4)), "limit"),
    (ended_by(mention, max_turns=3), "limit"),
    (ended_by(lambda: mention() | tokens() | conditions.MaxMessageTermination(4)), "limit"),
    (ended_by(lambda: mention() | conditions.TimeoutTermination(0.0)), "timeout"),
]
"""Teams with a limit that guards another end, which says at which limit they were called off."""


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize(
    "build",
    [
        ended_by(None, max_turns=3),
        ended_by(lambda: conditions.MaxMessageTermination(4)),
        ended_by(lambda: conditions.MaxMessageTermination(4) | tokens()),
        ended_by(lambda: conditions.MaxMessageTermination(4) | conditions.ExternalTermination()),
        ended_by(
            lambda: conditions.MaxMessageTermination(4) & conditions.TextMentionTermination("Two")
        ),
    ],
)
def test_a_chat_that_is_to_end_at_a_count_is_answered_there(build: Any, mode: Any) -> None:
    """A count is the only way to end, or was met together with what was said."""
    watched = Watched(mode)
    watched.must_change_nothing(chat(build))
    assert watched.failed() == [] and len(watched.answers()) == 1
    assert watched.patterns == []


def limited_graph(script: Script) -> Any:
    """A graph ends by itself, so that a number of turns always guards that."""
    team = waiting_join(script)
    team._max_turns = 2
    return team


# --- joins ---


def cut_branch(script: Script) -> Any:
    """A condition cuts the branch of Cyd, for whom the join waits; Bob speaks last."""
    people = agents(script, ann=says("no"), bob=says("Left"), cyd=says("R"), dan=says("Both"))
    return flow(people, "ann bob", "ann cyd", "bob dan", "cyd dan", bob=has("no"), cyd=has("yes"))


def has(word: str) -> Any:
    return lambda said: word in said.to_model_text()


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_et_a_join_that_waits_for_the_last_speaker_and_another_one_is_found(mode: Any) -> None:
    """The last word is the answer, and lies in front of the join that never ran."""
    watched = Watched(mode)
    watched.must_change_nothing(chat(cut_branch))
    (found,) = watched.session.findings
    graph = watched.session.monitor.graph
    assert found.pattern == "ET" and found.severity == "error"
    assert [graph.event(event).sent_to for event in found.evidence["unresolved"]] == [("dan",)]
    assert watched.answers() == ["Left"] and "dan" not in watched.ran()


def test_a_graph_without_a_join_that_waits_is_answered_as_before() -> None:
    """A branch that no condition chose is no part of the answer."""

    def build(script: Script) -> Any:
        people = agents(script, ann=says("no"), bob=says("Left"), cyd=says("Right"))
        return flow(people, "ann bob", "ann cyd", bob="no", cyd="yes")

    watched = Watched()
    watched.must_change_nothing(chat(build))
    assert watched.patterns == [] and watched.answers() == ["Left"]


# --- runtimes ---


async def ask_bob(node: Any, message: Any) -> str:
    return str(await node.ask("bob", "secret"))


async def ask_ann(net: Net) -> Any:
    try:
        return await net.ask("ann")
    except Exception as error:
        return repr(error).splitlines()[0]


ERROR = "ValueError: no model today"
FAILING = [
    Failing(chat(failing), {"bob": ERROR}, ("error", "bob")),
    Failing(chat(failing_beside), {"bob": ERROR, "cyd": "called off"}, ("error", "bob")),
    # What the participant has said that spoke last is in front of the manager, or the task.
    Failing(chat(choosing_wrong), {MANAGER: "ValueError"}, ("error", MANAGER)),
    Failing(chat(nobody), {MANAGER: "ValueError"}, ("error", MANAGER), ("ann", "bob")),
    Failing(
        chat(waiting_join), {"eve": ERROR, "GraphManager": "called off"}, ("error", "eve"), ["dan"]
    ),
    Failing(chat(limited_graph), {"GraphManager": "called off"}, ("limit", None), ["dan"]),
    *(
        Failing(chat(build), {"RoundRobinGroupChatManager": "called off"}, (how, None))
        for build, how in GUARDED
    ),
    Failing(
        scenario("passing", {"ann": ask_bob, "bob": raising}, ask_ann),
        {"bob": ERROR, "ann": "by bob"}, ("error", "bob"),
    ),
    # An intervention handler drops Ann's question: Bob never ran, and Ann fails by it.
    Failing(
        scenario("dropping", {"ann": ask_bob, "bob": ask_bob, "drops": ask_bob}, ask_ann),
        {"ann": "MessageDroppedException"}, ("error", "ann"), ["bob"],
    ),
]  # fmt: skip


# --- random teams ---

NAMES = ("ann", "bob", "cyd", "dan")
SEEDS = range(15)


def chance(*seed: Any) -> Random:
    return Random(" ".join(map(str, seed)))


def speaks(seed: int, name: str) -> Any:
    """Somebody who hands over, says something, ends the chat, or raises."""

    def act(texts: list[str], number: int) -> Any:
        draw = chance(seed, name, number)
        return draw.choice([
            To(draw.choice(NAMES)), To(draw.choice(NAMES), said="Yours"), f"{name} {number}",
            f"{name} {number}", DONE, *([ValueError("no model today")] if seed % 3 == 0 else []),
        ])  # fmt: skip

    return act


def random_swarm(seed: int, script: Script) -> Any:
    acts = {name: speaks(seed, name) for name in NAMES}
    return Swarm(agents(script, **acts), termination_condition=until(9))


def random_graph(seed: int, script: Script) -> Any:
    """A graph without rounds, whose joins wait for all or for one."""
    draw, built = chance(seed), DiGraphBuilder()
    acts: dict[str, Any] = {
        name: lambda texts, number, name=name: f"{name} after {len(texts)}" for name in NAMES
    }
    team = agents(script, **acts)
    for agent in team:
        built.add_node(agent, activation=draw.choice(["all", "any"]))
    for place, agent in enumerate(team):
        for further in team[place + 1 :]:
            if draw.random() < 0.6:
                built.add_edge(agent, further)
    return GraphFlow(team, graph=built.build(), termination_condition=until(9))


def working(seed: int, name: str) -> Act:
    """Somebody who asks, tells, and fails; less and less of it, the deeper it goes."""

    async def act(node: Any, message: Any) -> str:
        depth = message.text.count(">")
        draw, said = chance(seed, name, message.text), [name]
        for _ in range(draw.randint(0, 2 if depth < 3 else 0)):
            to, text = draw.choice(NAMES), f"{message.text}>{draw.randint(0, 3)}"
            match draw.choice(["ask", "ask", "both", "tell", "fail"]):
                case "ask":
                    said.append(await heard(node, to, text))
                case "both":
                    pair = (heard(node, one, text) for one in draw.sample(NAMES, 2))
                    said += await asyncio.gather(*pair)
                case "tell":
                    await node.tell(draw.choice([to, "all", "nobody"]), text)
                case _:
                    raise ValueError(f"{name} fails")
        return " ".join(said)

    return act


async def heard(node: Any, to: str, text: str) -> str:
    """An answer, or why there is none; agents that work in turn may wait for each other."""
    try:
        async with asyncio.timeout(7):
            return str(await node.ask(to, text))
    except (ValueError, TimeoutError) as error:
        return type(error).__name__


async def ask_all(net: Net) -> Any:
    answers = (net.ask(name, name) for name in NAMES[:2])
    return await asyncio.gather(*answers, return_exceptions=True)


def scenarios(seed: int) -> list[Scenario]:
    acts = {name: working(seed, name) for name in NAMES}
    return [
        Scenario("swarm", partial(random_swarm, seed), ask_twice),
        Scenario("graph", partial(random_graph, seed), ask_twice),
        scenario("runtime", acts, ask_all, OneByOne if seed % 2 else Node),
    ]


@pytest.mark.parametrize("place", range(3), ids=["swarm", "graph", "runtime"])
def test_random_teams_are_the_same_with_a_wrapper_that_observes(place: int) -> None:
    for seed in SEEDS:
        asked = scenarios(seed)[place]
        watched = Watched()
        watched.must_change_nothing(asked, seed=seed)
        watched.must_be_sound()
