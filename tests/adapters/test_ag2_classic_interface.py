"""AG2 classic, wrapped: it is used as before; what it holds, refuses, and gives back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")

from autogen import ConversableAgent
from autogen.agentchat import a_initiate_group_chat, initiate_group_chat
from autogen.agentchat.group.patterns import DefaultPattern

import dig
from dig.adapters import ag2_classic as adapter
from dig.adapters.ag2_classic import agents as members
from dig.errors import SettingsError
from dig.graph.records import Emit, End, Start
from dig.traces.verify import verify

from .ag2_classic_asked import (
    all_at_once,
    chat,
    desks,
    group,
    interrupted,
    nested,
    several,
    thrice,
)
from .ag2_classic_teams import (
    Watched,
    Wrapping,
    agent,
    ask,
    ask_now,
    calls,
    ends,
    says,
    scenario,
    shown,
    team,
)
from .harness import Scenario, Script, play
from .hostile_payloads import HOSTILE, Sulking, ring
from .test_ag2_classic_healing import ping_pong


def test_only_teams_are_wrapped_and_the_message_says_what_to_wrap_instead() -> None:
    with pytest.raises(SettingsError, match=r"GroupChat is no team .* wrap a GroupChatManager"):
        dig.wrap(group(Script()).first.groupchat)


def test_two_agents_of_one_name_are_refused() -> None:
    twins = [agent(Script(), "ann"), agent(Script(), "ann")]
    with pytest.raises(SettingsError, match="two agents are called 'ann'"):
        dig.wrap(DefaultPattern(initial_agent=twins[0], agents=twins))


def test_what_such_a_team_cannot_do_is_refused_if_it_is_demanded() -> None:
    with pytest.raises(SettingsError, match="AG2 classic cannot reroute; it can: annotate, bounce"):
        dig.wrap(group(Script()).first, require={"reroute"})


def test_an_ag2_that_is_put_together_in_another_way_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(ConversableAgent, "_generate_oai_reply_from_client")
    with pytest.raises(SettingsError, match="no _generate_oai_reply_from_client"):
        adapter.plan(group(Script()).first)


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_unwrapping_gives_everything_back_as_it_was(mode: Any) -> None:
    built = group(Script())
    chats = members.group_chats(built.first)
    parts = [built.user, built.first, *chats, *built.first.groupchat.agents]
    play(Scenario("first", lambda script: built, ask_now))  # AG2 itself puts something down
    before = [vars(part).keys() for part in parts]
    assert dig.wrap(built.wrap, mode=mode) is built.wrap
    assert dig.wrap(built.wrap, mode=mode) is built.wrap
    play(Scenario("second", lambda script: built, ask_now))
    assert all("receive" in vars(part) for part in parts if part not in chats)
    assert all("select_speaker" in vars(part) for part in chats) is (mode == "heal")
    assert dig.unwrap(built.wrap) is built.wrap
    assert [vars(part).keys() for part in parts] == before


def test_a_pattern_is_given_back_with_the_agents_that_it_has_made() -> None:
    built = desks(Script())
    before = vars(built.wrap).keys()
    dig.wrap(built.wrap, mode="heal")
    result, _, last = initiate_group_chat(built.wrap, "I was charged twice.")
    assert result.summary == "Solved"
    dig.unwrap(built.wrap)
    assert vars(built.wrap).keys() == before
    assert "receive" not in {**vars(built.user), **vars(last), **vars(last._group_manager)}


def test_what_the_user_has_put_in_its_place_meanwhile_is_left_alone() -> None:
    built = chat(Script())
    dig.wrap(built.wrap)
    own = built.user.receive = lambda *given, **more: None
    dig.unwrap(built.wrap)
    assert built.user.receive is own


def test_other_agents_are_not_seen() -> None:
    watched = Watched()
    watched(chat(Script()).wrap)
    assert play(scenario(group)).returned is not None
    assert watched.session.statistics().requests == 0
    watched.detach()


def test_an_agent_may_be_in_several_wrapped_teams() -> None:
    first, second = Watched(), Watched("heal")

    def wrap(built: Any) -> Any:
        first(built.first)
        second(built.user)
        return built

    asked = scenario(group)
    assert play(asked, wrap) == play(asked)
    for watched in (second, first):
        watched.must_be_sound()
        assert watched.session.statistics().requests == 1
        assert watched.leaves_nothing_open()


@pytest.mark.parametrize(("build", "drive", "many"), [(chat, thrice, 3), (several, all_at_once, 2)])
def test_requests_that_overlap_are_problems_of_their_own(build: Any, drive: Any, many: int) -> None:
    watched = Watched()
    play(scenario(build, drive), Wrapping(watched))
    finals = [one for one in watched.records if isinstance(one, Emit) and one.final]
    assert watched.session.statistics().requests == len(finals) == many
    assert watched.patterns == []


def test_an_answer_is_in_the_lineage_of_whom_its_agent_has_asked() -> None:
    watched = Watched()
    play(scenario(nested), Wrapping(watched))
    (final,) = (one for one in watched.records if isinstance(one, Emit) and one.final)
    (last,) = (r for r in watched.records if isinstance(r, Start) and r.activation == final.by)
    ends = [r for r in watched.records if isinstance(r, End) and {*r.outputs} & {*last.inputs}]
    starts = {r.activation: r.agent for r in watched.records if isinstance(r, Start)}
    assert {starts[end.activation] for end in ends} == {"ann", "cyd"}
    watched.must_be_sound()


def test_a_chat_that_begins_when_its_turn_is_over_comes_from_outside() -> None:
    def build(script: Script) -> Any:
        tasks: list[Any] = []
        bob = agent(script, "bob", says("Late"))
        user = agent(script, "user", is_termination_msg=ends)
        ann = agent(script, "ann", says("One"), says("Two TERMINATE"))

        async def later() -> Any:
            await asyncio.sleep(1.05)  # in the midst of somebody else's turn
            return await ann.a_initiate_chat(bob, message="?", max_turns=1, silent=True)

        async def leaves(self: Any, *given: Any, **more: Any) -> Any:
            if not tasks:
                tasks.append(asyncio.ensure_future(later()))
            return False, None

        ann.register_reply([ConversableAgent, None], leaves, position=2)
        return SimpleNamespace(wrap=user, user=user, first=ann, tasks=tasks)

    async def drive(built: Any) -> Any:
        return [await ask(built), shown(await built.tasks[0])]

    watched = Watched()
    asked = scenario(build, drive, "later")
    assert play(asked, Wrapping(watched)) == play(asked)
    assert watched.session.statistics().requests == 2
    watched.must_be_sound()


def test_a_tool_that_is_only_called_like_a_handoff_is_none() -> None:
    def build(script: Script) -> Any:
        user = agent(script, "user", is_termination_msg=ends)
        user.register_function({"transfer_to_account": lambda amount: "done"})
        pays = calls("transfer_to_account", amount=9)
        return team(user, agent(script, "ann", says("Pay?"), pays, says("Paid TERMINATE")))

    watched = Watched()
    play(scenario(build, name="bank"), Wrapping(watched))
    fates = [fate.fate for one in watched.records if isinstance(one, End) for fate in one.fates]
    assert set(fates) == {"consume"} and len(fates) == 5


def test_who_goes_on_after_an_answer_asks_anew() -> None:
    """An agent that no person stands behind has its answer, and says something further."""

    def build(script: Script) -> Any:
        said = iter(["And now?", None])
        user = ConversableAgent(
            "user", human_input_mode="NEVER", is_termination_msg=ends, llm_config=False
        )
        user.register_reply([ConversableAgent, None], lambda *given, **more: (True, next(said)), 0)
        return team(user, agent(script, "ann", says("One TERMINATE"), says("Two TERMINATE")))

    watched = Watched()
    asked = scenario(build, ask_now, "goes_on")
    assert play(asked, Wrapping(watched)) == play(asked)
    assert watched.session.statistics().requests == 2
    said = [one.payload for one in watched.records if isinstance(one, Emit)]
    assert said == ["What now?", "One TERMINATE", "And now?", "Two TERMINATE"]
    watched.must_be_sound()


def test_notes_reach_a_model_that_is_asked_on_another_thread(tmp_path: Path) -> None:
    built = ping_pong(Script())
    dig.wrap(built.wrap, mode="heal", journal=tmp_path)

    async def drive() -> Any:
        return await a_initiate_group_chat(built.wrap, "I was charged twice.")

    result, _, _ = asyncio.run(drive())
    session = dig.session_of(built.wrap)
    dig.unwrap(built.wrap)
    assert result.summary == "Solved"
    assert [finding.pattern for finding in session.findings] == ["ER"]
    assert session.directory is not None
    assert not verify(session.directory / "trace.dig.jsonl").problems


def run_now(built: Any) -> Any:
    """A chat on a thread of its own."""
    response = built.user.run(built.first, message="What now?")
    response.process()
    return response.summary


def run(built: Any) -> Any:
    """A chat in a task of its own."""

    async def drive() -> Any:
        response = await built.user.a_run(built.first, message="What now?")
        await response.process()
        return await response.summary

    return asyncio.run(drive())


@pytest.mark.parametrize("drive", [run_now, run])
def test_a_chat_may_run_beside_who_has_asked_for_it(drive: Any) -> None:
    watched = Watched("heal")
    watched.clock = time.monotonic  # type: ignore[method-assign]
    built = chat(Script())
    watched(built.wrap)
    assert drive(built) == "Three "
    assert watched.session.statistics().requests == 1
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


def test_who_takes_over_when_a_turn_is_interrupted_is_told_of_it() -> None:
    watched = Watched()
    asked = scenario(interrupted, ask_now)
    assert play(asked, Wrapping(watched)) == play(asked)
    said = [one.payload for one in watched.records if isinstance(one, Emit)]
    assert said == ["What now?", {"error": "KeyboardInterrupt"}, "I take over TERMINATE"]
    watched.must_be_sound()


REPLIES: dict[str, Any] = {
    **HOSTILE,
    "calls are a number": {"content": "x", "tool_calls": 5},
    "calls raise": {"content": "x", "tool_calls": Sulking()},
    "calls of nothing": {"content": "x", "tool_calls": [None, {"function": {"name": ["x"]}}]},
    "a key raises": {"content": "x", Sulking(): 1},
    "content is odd": {"content": ["x", *HOSTILE.values()]},
    "more": {"content": "x", "more": ring(), "role": "system", "name": "\ud800"},
}


@pytest.mark.parametrize("name", REPLIES)
def test_whatever_a_reply_is_made_of_the_chat_is_as_it_was_and_is_followed(name: str) -> None:
    """What AG2 raises by itself is raised here too, and nothing else."""

    def talk(*, wrapped: bool) -> Any:
        ann, bob = agent(Script(), "ann"), agent(Script(), "bob")
        bob.register_reply([ConversableAgent, None], lambda *given, **more: (True, REPLIES[name]))
        if wrapped:
            dig.wrap(ann, mode="heal")
        try:
            return len(ann.initiate_chat(bob, message="?", max_turns=2, silent=True).chat_history)
        except Exception as error:
            return repr(error)
        finally:
            if wrapped:
                assert dig.session_of(ann).statistics().faults == 0
                dig.unwrap(ann)

    assert talk(wrapped=True) == talk(wrapped=False)
