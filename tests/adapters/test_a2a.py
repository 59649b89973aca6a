"""A2A, wrapped: what is found between agents, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
import re
import runpy
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from a2a.types import Part
from typer.testing import CliRunner

import dig
from dig import Watch
from dig.cli import app
from dig.detectors import standard
from dig.errors import SettingsError, TraceError
from dig.graph.records import Emit, FindingRow, Start
from dig.traces.journal.reader import read_records
from dig.traces.verify import verify

from .a2a_teams import (
    Agent,
    Team,
    Watched,
    ask_first,
    ask_patiently,
    asks,
    first,
    pays,
    raises,
    says,
    scenario,
    team,
    words,
    works,
)
from .conformance import ROOT, Failing
from .framework_gates import Keeper, answers, behind
from .harness import Script, play

FAILING = [
    Failing(scenario("raising", watch=watch, a=raises), {"a": error}, ("error", "a"))
    for watch, error in (("server", "ValueError: no model today"), ("both", "ValueError"))
] + [
    Failing(
        scenario("failing", watch="server", a=works(ends="failed", says="no luck")),
        {"a": "A2AClientError: the task was failed: no luck"}, ("error", "a"),
    ),
]  # fmt: skip


def impatient(peer: str) -> Any:
    """Ask a peer in the background; the first answer does not wait for it."""

    def reply(agent: Any, context: Any, updater: Any) -> Any:
        async def act() -> str:
            if "[monitor]" in context.get_user_input():
                return f"with {await agent.background}"
            agent.background = asyncio.create_task(words(agent.peers[peer], "work"))
            await asyncio.sleep(0)
            return f"without {peer}"

        return act()

    return reply


early, early_peer = impatient("b"), impatient("c")


def slow(agent: Agent, context: Any, updater: Any) -> Any:
    async def act() -> str:
        await asyncio.sleep(5)
        return "worked"

    return act()


async def ask_and_wait(team: Team) -> Any:
    """Ask, and let work in the background come to its end."""
    said = await ask_first(team)
    await asyncio.sleep(10)
    return said


@pytest.mark.parametrize("streaming", [False, True])
def test_et_an_early_answer_goes_back_and_the_caller_gets_the_second_one(streaming: bool) -> None:
    """The executor runs again, with the note behind the message."""
    asked = scenario("early", ask_and_wait, streaming=streaming, a=early, b=slow)
    assert "without b" in str(play(asked).returned)
    watched = Watched("heal")
    outcome = play(asked, watched)
    assert outcome.returned == "[['message', 'with worked']]"
    assert "[monitor] Work is missing" in str(outcome.per_agent()["a"])
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    watched.must_be_over()


def early_task(agent: Agent, context: Any, updater: Any) -> Any:
    """The same as a task: the status that ends it comes back."""

    async def work(updater: Any) -> None:
        text = await early(agent, context, updater)
        await updater.complete(updater.new_agent_message([Part(text=text)]))

    return work


@pytest.mark.parametrize("streaming", [False, True])
def test_et_the_end_of_a_task_goes_back_while_it_has_no_result(streaming: bool) -> None:
    watched = Watched("heal")
    asked = scenario("early", ask_and_wait, streaming=streaming, a=early_task, b=slow)
    outcome = play(asked, watched)
    items = eval(str(outcome.returned))
    assert items[-1][1:3] == ["TASK_STATE_COMPLETED", "with worked"]
    assert [item[0] for item in items] == (["task", "status_update"] if streaming else ["task"])
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    watched.must_be_over()


def early_with_result(agent: Agent, context: Any, updater: Any) -> Any:
    async def work(updater: Any) -> None:
        await updater.add_artifact([Part(text="a result")])
        await early_task(agent, context, updater)(updater)

    return work


def test_et_a_task_whose_result_is_out_does_not_go_back() -> None:
    watched = Watched("heal")
    outcome = play(scenario("early", ask_and_wait, a=early_with_result, b=slow), watched)
    assert "without b" in str(outcome.returned)
    assert watched.patterns == ["ET"] and "downgraded" in watched.incidents()


async def ask_again_and_again(team: Team) -> Any:
    return await words(first(team), "go")


def going_on(agent: Agent, context: Any, updater: Any) -> Any:
    """Ask b the same until b has read a note."""

    async def act() -> str:
        for _ in range(30):
            if (said := await words(agent.peers["b"], "x")) != "b done":
                return said
        return "enough"

    return act()


def hearing(agent: Agent, context: Any, updater: Any) -> Any:
    return "told" if "[monitor]" in context.get_user_input() or dig.notes() else "b done"


@pytest.mark.parametrize("watch", ["client", "both"])
def test_loop_a_note_stands_behind_the_next_message(watch: str) -> None:
    """A remote agent reads it whether it is watched or not."""
    watched = Watched("heal")
    outcome = play(
        scenario("loop", ask_again_and_again, watch=watch, a=going_on, b=hearing), watched
    )
    assert "LOOP" in watched.patterns and outcome.returned in ("'told'", "told")


def test_calls_of_an_agent_of_another_wrapped_team_are_told_to_that_team() -> None:
    """A client that is wrapped by itself: its session hears of calls from outside only."""
    made = team(Script(), "client", b=says("b done"))
    mine: list[Any] = []
    theirs: list[Any] = []

    async def editor(text: str) -> str:
        return await words(made.clients["b"], text)

    async def main() -> str:
        clients = dig.wrap(made, sink=theirs.append)
        functions = dig.wrap({"editor": editor}, sink=mine.append)
        try:
            return str(await functions["editor"]("write"))
        finally:
            dig.unwrap(functions)
            dig.unwrap(clients)

    assert asyncio.run(main()) == "b done"
    sent = [row for row in mine if isinstance(row, Emit) and row.type != "notice"]
    assert [(row.payload, row.to) for row in sent] == [
        ("write", ("editor",)), ("write", ("b",)), ("b done", ("editor",)), ("b done", ()),
    ]  # fmt: skip
    assert not [row for row in theirs if isinstance(row, Emit)]


@pytest.mark.parametrize("every_ms", [0, 7])
def test_who_is_cancelled_while_an_answer_is_held_leaves_nothing(every_ms: int) -> None:
    """At each step; the SDK itself swallows some cancellations, so the result is not looked at."""
    asked = scenario("alone", ask_patiently, watch="client", streaming=True, a=says("done"))
    for step in range(1, 60, 3):
        watched = Watched("heal", behind(Keeper(keeps=answers, after_s=5.0))())
        play(asked, watched, cancel_at=step + every_ms)
        watched.detach()
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"


# --- two journals, one run ---


def spread(journal: Path, drive: Any, *, mode: Any = "observe", **acts: Any) -> list[Path]:
    """Ask an editor of a plain team for a text; each agent has a session and a journal of its own.

    Returns:
        The journals: the editor's, then those of the agents.
    """
    script = Script()
    made = team(script, "client", **acts)

    async def editor(text: str) -> Any:
        return await drive(made, text)

    async def main() -> list[Path]:
        servers = [
            dig.wrap({name: handler}, mode=mode, journal=journal)
            for name, handler in made.handlers.items()
        ]
        clients = dig.wrap(made)
        functions = dig.wrap({"editor": editor}, journal=journal)
        with suppress(Exception):
            await functions["editor"]("write")
        sessions = [Path(str(dig.session_of(it).directory)) for it in (functions, *servers)]
        for it in (functions, *servers, clients):
            dig.unwrap(it)
        return sessions

    return asyncio.run(main())


async def ask_b(made: Team, text: str) -> Any:
    return await words(made.clients["b"], text)


async def ask_b_eight_times(made: Team, text: str) -> Any:
    return [await words(made.clients["b"], text) for _ in range(8)]


async def ask_b_at_once(made: Team, text: str) -> Any:
    return await asyncio.gather(*(words(made.clients["b"], f"{text} {n}") for n in range(3)))


JOINED: dict[str, tuple[Any, Any]] = {
    "one": (ask_b, {"b": says("b done")}),
    "chain": (ask_b, {"b": asks("c"), "c": says("c done")}),
    "at once": (ask_b_at_once, {"b": asks("c"), "c": says("c done")}),
    "loop": (ask_b_eight_times, {"b": says("b done")}),
    "raises": (ask_b, {"b": raises}),
    "task": (ask_b, {"b": works("one", says="two")}),
}


@pytest.mark.parametrize("name", JOINED)
def test_journals_of_several_processes_are_joined_into_one_run(name: str, tmp_path: Path) -> None:
    """Each event once, the agents' own activations, and what is found in the editor's journal."""
    drive, acts = JOINED[name]
    runs = spread(tmp_path / "runs", drive, **acts)
    joined = str(tmp_path / "joined")
    done = CliRunner().invoke(app, ["import", *map(str, runs), "--out", joined])
    assert done.exit_code == 0, done.output
    assert not verify(Path(joined) / "trace.dig.jsonl").problems
    records = [[*read_records(Path(run))] for run in (joined, runs[0])]
    kinds = [[row.payload for row in side if isinstance(row, Emit) and row.by is None]
             for side in records]  # fmt: skip
    assert kinds[0] == kinds[1] == ["write"]
    ran = {row.agent.partition("#")[0] for row in records[0] if isinstance(row, Start)}
    assert ran == {"editor", *acts}
    watch = Watch(standard())
    found = [finding.pattern for row in records[0] for finding in watch.feed(row)]
    live = [row.pattern for row in records[1] if isinstance(row, FindingRow)]
    assert found == live


def test_an_answer_that_went_back_stands_in_the_joined_run(tmp_path: Path) -> None:
    """What healing has done in the agent's process is part of its turn; the caller saw the end."""
    runs = spread(tmp_path / "runs", ask_b, mode="heal", b=early_peer, c=says("worked"))
    joined = tmp_path / "joined"
    done = CliRunner().invoke(app, ["import", *map(str, runs), "--out", str(joined)])
    assert done.exit_code == 0, done.output
    assert not verify(joined / "trace.dig.jsonl").problems
    said = [row.payload for row in read_records(joined) if isinstance(row, Emit)]
    assert said.index("without c") < said.index("with worked")


def test_journals_without_a_common_event_are_refused(tmp_path: Path) -> None:
    runs = [spread(tmp_path / "runs", ask_b, b=says("b done"))[0] for _ in range(2)]
    done = CliRunner().invoke(app, ["import", *map(str, runs), "--out", str(tmp_path / "joined")])
    assert isinstance(done.exception, TraceError)
    assert "no event that stands in another" in str(done.exception)


def test_a_call_that_is_not_over_stands_in_a_joined_run_as_both_sides_saw_it(
    tmp_path: Path,
) -> None:
    """An agent that asks a person has answered its caller, and waits."""
    runs = spread(tmp_path / "runs", ask_b, b=pays)
    done = CliRunner().invoke(app, ["import", *map(str, runs), "--out", str(tmp_path / "joined")])
    assert done.exit_code == 0 and "told as its caller saw it" in done.output
    records = [*read_records(tmp_path / "joined")]
    assert [row.payload for row in records if isinstance(row, Emit) and row.by is None] == [
        "write", "write",
    ]  # fmt: skip
    assert not verify(tmp_path / "joined" / "trace.dig.jsonl").problems


def test_the_example_has_two_processes_and_their_journals_one_story(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Observed, the writer is asked eight times for the same; healed, a note crosses HTTP."""
    example = runpy.run_path(str(ROOT / "examples" / "wrap_a2a.py"))
    answers = asyncio.run(example["main"](str(tmp_path)))
    assert answers == ["Given up: A draft.", "Printed: A shorter draft."]
    joins = re.findall(r"as one run: digmon (import .*)", capsys.readouterr().out)
    for join, printed in zip(joins, (False, True), strict=True):
        assert CliRunner().invoke(app, shlex.split(join)).exit_code == 0
        trace = Path(join.rpartition(" ")[2]) / "trace.dig.jsonl"
        assert not verify(trace).problems
        records = [*read_records(trace)]
        watch = Watch(standard())
        assert {f.pattern for row in records for f in watch.feed(row)} == {"LOOP"}
        drafts = [row.payload for row in records if isinstance(row, Emit) and row.by]
        assert ("A shorter draft." in drafts) is printed


# --- errors and limits that cross the SDK, which makes new errors of them ---


def wrapped(watch: str, mode: Any = "observe", budget: Any = None, **acts: Any) -> tuple[Any, Any]:
    """Ask the first agent, and return what came of it and the session."""

    async def main() -> tuple[Any, Any]:
        made = team(Script(), watch, **acts)
        dig.wrap(made, mode=mode, budget=budget)
        try:
            return await words(first(made), "go"), dig.session_of(made)
        except Exception as error:
            return error, dig.session_of(made)
        finally:
            dig.unwrap(made)

    return asyncio.run(main())


def relays(name: str, seen: list[str]) -> Any:
    """Ask another agent, and note what that has ended with."""

    async def act(agent: Agent, context: Any, updater: Any) -> str:
        if "The budget" in context.get_user_input():
            return "what there is"
        try:
            return await words(agent.peers[name], "your part")
        except BaseException as error:
            seen.append(f"{agent.name}: {type(error).__name__}")
            raise

    return act


def test_an_error_of_a_called_executor_is_told_as_the_cause() -> None:
    raised, session = wrapped("both", a=asks("b"), b=asks("c"), c=raises)
    assert "no model today" in str(raised)
    found = [(f.stage, f.evidence.get("agent")) for f in session.findings if f.pattern == "FAIL"]
    assert found == [("turn", "c"), ("request", None)]
    assert session.findings[-1].evidence["activation"] == session.findings[0].subject["activation"]


@pytest.mark.parametrize("watch", ["both", "server"])
def test_a_stop_at_a_limit_is_no_failure_of_an_agent(watch: str) -> None:
    acts = {name: relays(peer, []) for name, peer in ("ab", "bc", "ca")}
    said, session = wrapped(watch, budget={"turns": 6}, **acts)
    assert said == "what there is" and session.statistics().partial == 1
    assert not [f for f in session.findings if f.pattern == "FAIL"]


def test_many_requests_have_a_budget_each(crowd: int) -> None:
    async def main() -> tuple[list[str], int]:
        acts = {name: relays(peer, []) for name, peer in ("ab", "ba")}
        made = team(Script(), "both", **acts)
        dig.wrap(made, budget={"turns": 3})
        said = await asyncio.gather(*(words(first(made), f"go {n}") for n in range(crowd)))
        session = dig.session_of(made)
        dig.unwrap(made)
        return said, session.statistics().partial

    said, partial = asyncio.run(main())
    assert {*said} == {"what there is"} and partial == crowd


def test_at_a_limit_the_clients_alone_raise_what_a_server_tells() -> None:
    """No executor between them is wrapped, so that none knows `BudgetStop`."""
    seen: list[str] = []
    acts = {name: relays(peer, seen) for name, peer in ("ab", "bc", "ca")}
    raised, session = wrapped("client", budget={"turns": 3}, **acts)
    assert seen == [f"{name}: A2AClientError" for name in "cba"]
    assert isinstance(raised, dig.BudgetExceeded) and "no agent handed back" in str(raised)
    assert [(f.stage, f.evidence.get("how")) for f in session.findings if f.pattern == "FAIL"] == [
        ("request", "limit")
    ]


def test_a_note_stands_once_if_both_sides_are_wrapped() -> None:
    texts: list[str] = []

    def hears(agent: Agent, context: Any, updater: Any) -> str:
        texts.append(context.get_user_input())
        return "told" if "[monitor]" in texts[-1] else "b done"

    assert wrapped("both", "heal", a=going_on, b=hears)[0] == "told"
    assert texts[-1].count("[monitor]") == 1


def test_the_app_that_serves_an_agent_is_refused() -> None:
    from starlette.applications import Starlette

    with pytest.raises(SettingsError, match="a team of starlette"):
        dig.wrap(Starlette())
