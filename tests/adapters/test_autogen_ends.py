"""AutoGen, wrapped: whose an error is, and what ends without an answer."""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat import conditions
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, RoundRobinGroupChat

from . import autogen_teams as teams
from .autogen_runtimes import Act, Net
from .autogen_runtimes import scenario as net
from .ends import answers, ends, failed, ran
from .harness import Script, play


def watch(build: Any, mode: Any = "observe") -> teams.Watched:
    """A team is asked as without a monitor, and nothing is left open."""
    watched = teams.Watched(mode)
    assert play(teams.scenario(build), watched) == play(teams.scenario(build))
    watched.must_be_sound()
    assert watched.leaves_nothing_open()
    return watched


@pytest.mark.parametrize("build", [teams.failing, teams.failing_beside])
def test_a_participant_that_raises_has_the_error_and_the_request_no_answer(build: Any) -> None:
    """The other participants have none, those that work beside it included."""
    watched = watch(build)
    beside = {"cyd": "called off"} if build is teams.failing_beside else {}
    assert ends(watched.records) == {"bob": "raised", **beside}
    assert failed(watched.records) == [("error", "bob")] and answers(watched.records) == []
    assert watched.patterns == ["FAIL", "FAIL"] and "stack trace" in watched.incidents()


def test_a_manager_that_raises_has_the_error_itself() -> None:
    """The participant that spoke last has ended well: its words are in front of the manager."""
    watched = watch(teams.choosing_wrong)
    manager = "SelectorGroupChatManager"
    assert ends(watched.records) == {manager: "raised"}
    assert failed(watched.records) == [("error", manager)] and answers(watched.records) == []


def test_a_manager_that_raises_before_anybody_speaks_is_in_the_trace() -> None:
    """The task is in front of the manager, and no participant has had a turn."""

    def build(script: Script) -> Any:
        team = teams.choosing_wrong(script)
        team._selector_func = lambda thread: "nobody"
        return team

    watched = watch(build)
    assert ran(watched.records) == {"SelectorGroupChatManager"}
    assert failed(watched.records) == [("error", "SelectorGroupChatManager")]


def waiting_join(script: Script) -> Any:
    """Bob's part is at the join already when Cyd raises, so that Dan never runs."""
    ann, bob, cyd, eve, dan = teams.agents(
        script, ann=teams.says("Split"), bob=teams.says("Left"), cyd=teams.says("To Eve"),
        eve=teams.raises, dan=teams.says("Both"),
    )  # fmt: skip
    built = DiGraphBuilder()
    for node in (ann, bob, cyd, eve, dan):
        built.add_node(node)
    built.add_edge(ann, bob).add_edge(ann, cyd).add_edge(cyd, eve)
    built.add_edge(bob, dan).add_edge(eve, dan)
    return GraphFlow([ann, bob, cyd, eve, dan], graph=built.build())


def test_a_join_that_never_ran_is_no_activation() -> None:
    """What it had is taken back by the manager, which was called off."""
    watched = watch(waiting_join)
    assert ends(watched.records) == {"eve": "raised", "GraphManager": "called off"}
    assert "dan" not in ran(watched.records)
    assert failed(watched.records) == [("error", "eve")]


# --- limits ---

SPEAKERS = {"ann": teams.says("One"), "bob": teams.says("Two")}


def ended_by(condition: Any, **more: Any) -> Any:
    def build(script: Script) -> Any:
        made = condition() if condition is not None else None
        return RoundRobinGroupChat(
            teams.agents(script, **SPEAKERS), termination_condition=made, **more
        )

    return build


def mention() -> Any:
    return conditions.TextMentionTermination(teams.DONE)


def tokens() -> Any:
    return conditions.TokenUsageTermination(max_total_token=1000)


GUARDS: list[tuple[Any, str]] = [
    (ended_by(lambda: mention() | conditions.MaxMessageTermination(4)), "limit"),
    (ended_by(mention, max_turns=3), "limit"),
    (ended_by(lambda: mention() | tokens() | conditions.MaxMessageTermination(4)), "limit"),
    (ended_by(lambda: mention() | conditions.TimeoutTermination(0.0)), "timeout"),
]


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize(("build", "how"), GUARDS)
def test_a_limit_that_guards_another_end_is_no_answer(build: Any, how: str, mode: Any) -> None:
    """No participant has failed; the manager was called off, and says at which limit."""
    watched = watch(build, mode)
    assert ends(watched.records) == {"RoundRobinGroupChatManager": "called off"}
    assert failed(watched.records) == [(how, None)] and answers(watched.records) == []
    assert watched.patterns == ["FAIL"] and watched.healed() == []


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
    watched = watch(build, mode)
    assert failed(watched.records) == [] and len(answers(watched.records)) == 1
    assert watched.patterns == []


def test_a_graph_that_comes_to_a_limit_before_its_end_has_no_answer() -> None:
    """A graph ends by itself, so that a number of turns always guards that."""

    def build(script: Script) -> Any:
        team = waiting_join(script)
        team._max_turns = 2
        return team

    watched = watch(build)
    assert failed(watched.records) == [("limit", None)] and answers(watched.records) == []
    assert "dan" not in ran(watched.records)


# --- joins ---


def cut_branch(script: Script) -> Any:
    """A condition cuts the branch of Cyd, for whom the join waits; Bob speaks last."""
    ann, bob, cyd, dan = teams.agents(
        script,
        ann=teams.says("no"),
        bob=teams.says("Left"),
        cyd=teams.says("Right"),
        dan=teams.says("Both"),
    )
    built = DiGraphBuilder().add_node(ann).add_node(bob).add_node(cyd).add_node(dan)
    built.add_edge(ann, bob, condition=lambda said: "no" in said.to_model_text())
    built.add_edge(ann, cyd, condition=lambda said: "yes" in said.to_model_text())
    built.add_edge(bob, dan).add_edge(cyd, dan)
    return GraphFlow([ann, bob, cyd, dan], graph=built.build())


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_et_a_join_that_waits_for_the_last_speaker_and_another_one_is_found(mode: Any) -> None:
    """The last word is the answer, and lies in front of the join that never ran."""
    watched = teams.Watched(mode)
    assert play(teams.scenario(cut_branch), watched) == play(teams.scenario(cut_branch))
    (found,) = watched.session.findings
    graph = watched.session.monitor.graph
    assert found.pattern == "ET" and found.severity == "error"
    assert [graph.event(event).sent_to for event in found.evidence["unresolved"]] == [("dan",)]
    assert answers(watched.records) == ["Left"] and "dan" not in ran(watched.records)


def test_a_graph_without_a_join_that_waits_is_answered_as_before() -> None:
    """A branch that no condition chose is no part of the answer."""

    def build(script: Script) -> Any:
        ann, bob, cyd = teams.agents(
            script, ann=teams.says("no"), bob=teams.says("Left"), cyd=teams.says("Right")
        )
        built = DiGraphBuilder().add_node(ann).add_node(bob).add_node(cyd)
        built.add_edge(ann, bob, condition="no").add_edge(ann, cyd, condition="yes")
        return GraphFlow([ann, bob, cyd], graph=built.build())

    watched = watch(build)
    assert watched.patterns == [] and answers(watched.records) == ["Left"]


# --- runtimes ---


def test_a_handler_that_raises_has_the_error_and_its_sender_passes_it_on() -> None:
    """Bob raises, Ann does not catch it, and the request has no answer because of Bob."""

    async def ann(node: Any, message: Any) -> str:
        return str(await node.ask("bob", "?"))

    async def bob(node: Any, message: Any) -> str:
        raise ValueError("no model")

    async def drive(it: Net) -> Any:
        try:
            return await it.ask("ann")
        except ValueError as error:
            return repr(error)

    watched, asked = teams.Watched(), net("passing", {"ann": ann, "bob": bob}, drive)
    assert play(asked, watched) == play(asked)
    watched.must_be_sound()
    assert ends(watched.records) == {"bob": "raised", "ann": "passes on"}
    assert failed(watched.records) == [("error", "bob")] and answers(watched.records) == []


def test_what_a_runtime_drops_before_an_agent_has_it_is_no_activation() -> None:
    """An intervention handler drops Ann's question: Bob never ran, and Ann fails by it."""

    async def ann(node: Any, message: Any) -> str:
        return str(await node.ask("bob", "secret"))

    async def drive(it: Net) -> Any:
        try:
            return await it.ask("ann")
        except Exception as error:
            return type(error).__name__

    acts: dict[str, Act] = {"ann": ann, "bob": ann, "drops": ann}
    watched, asked = teams.Watched(), net("dropping", acts, drive)
    assert play(asked, watched) == play(asked)
    watched.must_be_sound()
    assert "bob" not in ran(watched.records) and ends(watched.records) == {"ann": "raised"}
    assert failed(watched.records) == [("error", "ann")] and answers(watched.records) == []
    assert watched.leaves_nothing_open()
