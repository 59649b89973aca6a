"""OpenAI agents, wrapped: a run that waits for an approval stays open, and is not judged."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Runner, RunState

import dig
from dig import Limits, Watch
from dig.adapters.openai_agents import messages
from dig.detectors import standard
from dig.graph.records import Emit, End, IncidentRow, Start
from tests.helpers import found_again

from .harness import Script, play
from .openai_agents_teams import (
    Watched,
    agent,
    approve,
    approve_streamed,
    approved_state,
    as_tool,
    ask,
    calls,
    done,
    in_the_background,
    raises,
    says,
    scenario,
    shown,
    stream,
    together,
    tool,
)

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])
DRIVES = pytest.mark.parametrize("drive", [ask, stream, approve, approve_streamed])


def paying(script: Script) -> Any:
    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        script.log.append(("pay", str(amount), ""))
        return f"paid {amount}"

    return pay


def payer(script: Script, name: str) -> Any:
    return agent(script, name, calls("pay", amount=3), says("billed"), tools=[paying(script)])


def requests(watched: Watched) -> list[Any]:
    return [row.payload for row in watched.rows(Emit) if row.by is None]


def open_turns(watched: Watched) -> list[str]:
    """The agents whose turns have not ended, each of which must wait on purpose."""
    running = watched.session.monitor.graph.activations
    details = [row.detail for row in watched.rows(IncidentRow) if row.what == "waits"]
    assert {*running} <= {detail["activation"] for detail in details}
    return sorted(activation.agent for activation in running.values())


def must_be_as_bare(build: Any, drive: Any, mode: Any, **options: Any) -> Watched:
    """Nothing is raised, bounced or run that is not without a monitor, however long it takes."""
    watched = Watched(mode, **options)
    watched.must_change_nothing(scenario(build, drive))
    watched.now += 100_000
    watched.session.tick()
    assert found_again(watched.records, Watch(standard())) == []
    assert watched.patterns == [] and watched.healed() == []
    assert "downgraded" not in watched.incidents()
    return watched


def beside(script: Script) -> Any:
    """Two agents are asked at once, and one of them needs an approval."""
    tools = [as_tool(one) for one in (payer(script, "b"), *done(script, "c"))]
    asks = together(calls("b", input="x"), calls("c", input="y"))
    return agent(script, "a", asks, says("done"), tools=tools)


@MODES
@DRIVES
def test_an_agent_that_waits_for_an_approval_beside_others_stays_open(
    drive: Any, mode: Any
) -> None:
    """The run stops with an answer of one agent that nobody has looked at, and is resumed."""
    watched = must_be_as_bare(beside, drive, mode)
    if drive in (ask, stream):
        assert open_turns(watched) == ["a", "b"] and watched.answers() == []
    else:
        assert watched.answers() == ["done"] and len(requests(watched)) == 1
        watched.must_be_sound()
        assert watched.leaves_nothing_open()


@pytest.mark.parametrize("drive", [approve, approve_streamed])
def test_answers_from_before_and_after_an_approval_have_one_origin(drive: Any) -> None:
    """A resumed run goes on in its turn, so that nothing in it begins from outside."""
    watched = must_be_as_bare(beside, drive, "observe")
    graph = watched.session.monitor.graph
    made = [row.event for row in watched.records if isinstance(row, Emit) and row.by is not None]
    assert len({graph.roots(event) for event in made}) == 1 and len(made) > 6


@pytest.mark.parametrize("drive", [approve, approve_streamed])
def test_a_resumed_turn_ends_and_the_next_activation_goes_on_with_it(drive: Any) -> None:
    """So a hang after the approval can be seen: the new activation says nothing of waiting."""
    watched = must_be_as_bare(lambda script: payer(script, "a"), drive, "observe")
    first, second = watched.rows(Start)
    (detail,) = [row.detail for row in watched.rows(IncidentRow)]
    assert detail["activation"] == first.activation
    assert detail["asks"] == 'May this be called: pay({"amount":3})?'
    assert "approve()" in detail["answer"]
    [end, _] = watched.rows(End)
    assert end.activation == first.activation and list(end.outputs) == list(second.inputs)


def dropped(script: Script) -> Any:
    """Triage hands over to two, the SDK carries out one, and that needs an approval."""
    both = calls("transfer_to_billing", "transfer_to_shipping")
    handoffs = [payer(script, "billing"), agent(script, "shipping", says("shipped"))]
    return agent(script, "triage", both, handoffs=handoffs)


@MODES
@pytest.mark.parametrize("drive", [ask, stream])
def test_where_a_handoff_was_dropped_nobody_is_judged_while_a_person_is_waited_for(
    drive: Any, mode: Any
) -> None:
    """No answer is given, so that none is early."""
    watched = Watched(mode)
    watched.must_change_nothing(scenario(dropped, drive))
    assert watched.patterns == [] and open_turns(watched) == ["billing"]


def test_an_answer_after_an_approval_is_judged_as_any_other() -> None:
    watched = Watched()
    play(scenario(dropped, approve), watched)
    assert watched.patterns == ["ET"] and watched.leaves_nothing_open()


def in_background(script: Script) -> Any:
    """A tool has an agent work in the background, while another tool needs an approval."""
    begin, _ = in_the_background(script)
    tools = [begin, paying(script)]
    return agent(
        script, "a", calls("begin", text="x"), calls("pay", amount=3), says("done"), tools=tools
    )


@MODES
def test_an_approval_beside_work_in_the_background_runs_nothing(mode: Any) -> None:
    """The tool waits for its approval, whatever is open, and nobody is asked again."""
    watched = Watched(mode)
    asked = scenario(in_background, ask)
    bare, mine = play(asked), play(asked, watched)
    assert mine.returned == bare.returned and mine.per_agent()["a"] == bare.per_agent()["a"]
    assert "pay" not in mine.per_agent() and "reroute" not in watched.healed()


def is_paid(call: Any) -> bool:
    return any(item.get("type") == "function_call_output" for item in call.input)


def pay_both(script: Script) -> Any:
    """Two calls of one agent, each of which needs an approval."""

    def reply(call: Any, number: int) -> Any:
        return (says("inner done") if is_paid(call) else calls("pay", amount=3))(call, number)

    inner = agent(script, "inner", reply, tools=[paying(script)])
    asks = [*calls("inner", input="alice")(None, 1), *calls("inner", input="bob")(None, 2)]
    return agent(script, "outer", lambda call, n: asks, says("done"), tools=[as_tool(inner)])


def decide(rounds: int, approved: bool, *, stored: bool = False) -> Any:
    """Decide about one call at a time, or about all; the state may be stored meanwhile."""

    async def drive(team: Any) -> Any:
        result, results = await Runner.run(team, "Pay both."), []
        while result.interruptions:
            results.append(shown(result))
            state = result.to_state()
            if stored:
                state = await RunState.from_json(team, state.to_json())
            for question in state.get_interruptions()[: 2 // rounds]:
                (state.approve if approved else state.reject)(question)
            await asyncio.sleep(50_000)
            result = await Runner.run(team, state)
        return [*results, shown(result)]

    return drive


@MODES
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("rounds", [1, 2])
def test_several_approvals_of_one_run(rounds: int, approved: bool, stored: bool, mode: Any) -> None:
    """Both calls are questions of their own, and go on where they have stopped."""
    drive = decide(rounds, approved, stored=stored)
    watched = must_be_as_bare(pay_both, drive, mode, same_work=False)
    sent = watched.rows(Emit)
    asked = [row.payload for row in sent if row.type == "message" and "inner" in row.to[0]]
    assert asked == ["alice", "bob"]
    assert watched.answers() == ["done"] and len(requests(watched)) == 1
    watched.must_be_over()


async def forty_at_once(team: Any) -> Any:
    """All ask, all wait, and they are resumed in another order."""
    first = await asyncio.gather(*(Runner.run(team, f"Pay {n}.") for n in range(40)))
    await asyncio.sleep(50_000)

    async def go_on(n: int) -> Any:
        state = first[n].to_state()
        for question in first[n].interruptions:
            (state.approve if n % 3 else state.reject)(question)
        return shown(await Runner.run(team, state))

    return await asyncio.gather(*(go_on(n) for n in reversed(range(40))))


def pay_alone(script: Script) -> Any:
    def reply(call: Any, number: int) -> Any:
        answer = says(f"{call.input[0]['content']} done")
        return (answer if is_paid(call) else calls("pay", amount=3))(call, 0)

    return agent(script, "a", reply, tools=[paying(script)])


@MODES
def test_forty_runs_that_wait_at_once_each_go_on_in_their_own_turn(mode: Any) -> None:
    """Their calls have equal ids, as those of some servers; none is passed over."""
    watched = must_be_as_bare(pay_alone, forty_at_once, mode)
    assert len(requests(watched)) == 40 and watched.leaves_nothing_open()
    graph = watched.session.monitor.graph
    answers = [row for row in watched.rows(Emit) if row.final]
    for row in answers:
        [source] = graph.source_ids(graph.event(row.event).sources)
        [asked] = [e.payload for e in watched.rows(Emit) if e.event == source]
        assert row.payload == f"{asked} done"
    assert len(answers) == 40
    watched.must_be_sound()


async def resume_twice(team: Any) -> Any:
    first = await Runner.run(team, "Pay.")
    return [await ask(team, approved_state(first)), await ask(team, approved_state(first))]


def test_a_state_that_nobody_waits_with_begins_from_outside() -> None:
    """As one does that was stored by another process."""
    watched = must_be_as_bare(pay_alone, resume_twice, "heal")
    assert requests(watched) == ["Pay.", {"$resumed": "a"}]
    assert len(watched.answers()) == 2 and watched.leaves_nothing_open()


async def never_resume(team: Any) -> Any:
    first = [await Runner.run(team, f"Pay {n}.") for n in range(5)]
    return [shown(result) for result in first] + [await ask(team, approved_state(first[4]))]


def test_of_too_many_runs_that_wait_the_oldest_are_called_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Memory is bounded for runs that are never resumed."""
    monkeypatch.setattr(messages, "MOST_WAITING", 2)
    watched = must_be_as_bare(pay_alone, never_resume, "heal")
    cancelled = [row for row in watched.rows(End) if row.cancelled]
    assert len(cancelled) == 3 and "request_failed" not in watched.incidents()
    assert watched.answers()[-1] == "Pay 4. done"
    assert len(open_turns(watched)) == 1


def in_a_tool(script: Script) -> Any:
    """A tool runs an agent whose tool needs an approval, and goes on without it."""
    b = payer(script, "b")

    @tool()
    async def ask_b(text: str) -> str:
        result = await Runner.run(b, text)
        return f"it asks {len(result.interruptions)}"

    return agent(script, "a", calls("ask_b", text="x"), says("done"), tools=[ask_b])


@MODES
def test_an_agent_whose_caller_goes_on_without_an_approval_waits_no_more(mode: Any) -> None:
    """The caller was answered with the question, and has said what it wanted to say."""
    watched = must_be_as_bare(in_a_tool, ask, mode)
    assert watched.answers() == ["done"]
    watched.must_be_over()


def fails_beside(script: Script) -> Any:
    """A run that waits, in a tool of an agent whose model then raises."""

    team = in_a_tool(script)
    team.model = agent(script, "a", calls("ask_b", text="x"), raises).model
    return team


def test_a_run_that_waits_is_called_off_when_its_caller_fails() -> None:
    watched = Watched()
    watched.must_change_nothing(scenario(fails_beside))
    rows = [row for row in watched.rows(End) if row.error]
    assert [row.cancelled for row in rows] == [True, False]
    watched.must_be_over()


def building(*, waits: bool) -> Any:
    """An agent as a tool has a tool that works for ten minutes."""

    def build(script: Script) -> Any:
        @tool()
        async def build(branch: str) -> str:
            script.log.append(("build", branch, ""))
            with dig.waiting() if waits else nullcontext():
                await asyncio.sleep(600)
            return "green"

        b = agent(script, "b", calls("build", branch="main"), says("green"), tools=[build])
        return agent(script, "a", calls("b", input="build"), says("done"), tools=[as_tool(b)])

    return build


@MODES
@pytest.mark.parametrize("waits", [True, False])
def test_a_long_tool_is_no_deadlock_if_it_says_that_it_waits(waits: bool, mode: Any) -> None:
    """Else there is a warning; in no case is anybody told to do the work again."""
    limits = Limits(activation_limit_s=300)
    watched = Watched(mode, limits=limits)
    watched.must_change_nothing(scenario(building(waits=waits), name="long"), ticks=True)
    worth = [(finding.pattern, finding.severity) for finding in watched.session.findings]
    assert worth == ([] if waits else [("DL", "warning")]) and watched.healed() == []
    watched.must_be_over()


def test_a_run_outside_the_sample_may_begin_to_wait_while_another_is_looked_for() -> None:
    """Sampled and other runs are under locks of their own, and the waiting of both is one list."""
    waiting = messages.WaitingRuns()
    call = SimpleNamespace(raw_item={"id": "1", "call_id": "1"})

    class Quiet:
        caller = None

    class Waiting:
        @property
        def caller(self) -> None:
            waiting.add(Quiet(), [])  # as another thread does

    runs = [Waiting(), Waiting()]
    for run in runs:
        waiting.add(run, [call])
    state: Any = SimpleNamespace(_current_step=SimpleNamespace(interruptions=[call]))
    assert waiting.take(state, None) is runs[0]
    assert waiting.take_inner(runs[1]) == []
