"""Errors as a trace tells them: who raised what, and which requests that leaves unanswered."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from dig.detectors import standard, standard_healers
from dig.errors import ModelError, SettingsError, StopRunError
from dig.graph.records import IncidentRow
from dig.monitor.messages import Output
from dig.runtime import Bus, Decision, NewEvent, Setup, View, simulate
from dig.runtime.agent_errors import MOST_STACK, describe, stack_of
from tests.helpers import Recorder, Scripted, rows, story, submit

pytestmark = pytest.mark.anyio

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
ONCE = Setup(retries=0, limit_s=60.0)


async def fails(view: View) -> Decision:
    token = SECRET  # a value of a variable, which no stack trace shows
    raise ValueError(f"no luck with {len(token)} characters")


async def idle(view: View) -> Decision:
    return Decision.wait()


async def waits_long(view: View) -> Decision:
    await anyio.sleep(1000)
    return Decision.wait()


def incidents(sink: Recorder, what: str) -> list[Any]:
    return [row.detail for row in sink if isinstance(row, IncidentRow) and row.what == what]


def requests(sink: Recorder) -> list[tuple[Any, ...]]:
    told = incidents(sink, "request_failed")
    return [tuple(one.get(key) for key in ("how", "event", "activation")) for one in told]


async def run(team: dict[str, Any], setup: Setup = ONCE) -> tuple[Any, Recorder]:
    sink = Recorder()
    return await Bus(team, setup, sink=sink).run("?"), sink


# --- the text, and the stack trace beside it ---


async def test_an_activation_that_raised_says_type_and_text_with_the_stack_trace_beside() -> None:
    """On the bus as in virtual time; the trace shows lines of the agent, and no values."""
    _, sink = await run({"a": fails})
    virtual = Recorder()
    simulate({"a": fails}, "?", setup=ONCE, sink=virtual)
    for records in (sink, virtual):
        (end,) = rows(records, "end")
        assert end.error == "ValueError: no luck with 44 characters"
        assert end.because is None and end.cancelled is False
        (detail,) = incidents(records, "stack trace")
        assert detail["activation"] == "a1"
        assert "in fails" in detail["text"] and SECRET not in detail["text"]
        assert detail["text"].endswith("ValueError: no luck with 44 characters\n")


async def test_an_activation_that_took_too_long_has_failed_by_itself() -> None:
    """It was not called off by anybody, and no line of code raised."""
    _, sink = await run({"a": waits_long}, Setup(activation_timeout_s=5.0, retries=0))
    (end,) = rows(sink, "end")
    assert (end.error, end.cancelled) == ("TimeoutError: took longer than 5 s", False)
    assert not incidents(sink, "stack trace")


async def test_what_the_end_cuts_off_has_no_end_and_so_no_error() -> None:
    """An activation in progress at the time limit did not fail."""
    result, sink = await run({"a": waits_long}, Setup(limit_s=5.0))
    assert result.left.unfinished == {"a1": "a"} and not rows(sink, "end")


async def test_an_agent_that_is_taken_out_has_no_end_and_so_no_error() -> None:
    """Nothing is told about it but that it left."""
    sink = Recorder()
    async with Bus({"a": waits_long, "b": idle}, ONCE, sink=sink).open() as bus:
        bus.inject("?")
        await anyio.sleep(1)
        bus.leave("a")
    assert "leave a" in story(sink) and not rows(sink, "end")
    assert not incidents(sink, "stack trace")


def test_what_awaits_something_that_others_cancelled_has_failed_by_itself() -> None:
    """Nobody has called the activation off. (In trio, no task can do that to another.)"""

    async def cancelled(view: View) -> Decision:
        raise anyio.get_cancelled_exc_class()()

    _, sink = anyio.run(run, {"a": cancelled}, backend="asyncio")
    (end,) = rows(sink, "end")
    assert end.error == "CancelledError" and not end.cancelled


async def test_an_agent_that_returns_nonsense_is_told_the_type_of_its_error() -> None:
    async def odd(view: View) -> Any:
        return 5

    _, sink = await run({"a": odd})
    (end,) = rows(sink, "end")
    assert end.error == "DecisionError: the agent returned int, which is no Decision"
    assert not incidents(sink, "stack trace")


def test_an_error_is_masked_before_it_is_cut() -> None:
    """Half a secret is one, too, and nothing would know it for one."""

    def raised(text: str) -> Exception:
        try:
            raise ValueError(text)
        except ValueError as error:
            return error

    error = raised(f"{'x' * 270} {SECRET}")
    assert SECRET[:15] not in describe(error)
    shift = len(stack_of(raised("")))
    for cut in range(shift, shift + 60):
        text = stack_of(raised(f"{SECRET} {'x' * (MOST_STACK - cut)}"))
        assert SECRET[-15:] not in text and len(text) <= MOST_STACK


# --- requests that end without an answer ---


async def test_the_time_limit_fails_the_request() -> None:
    """The incident stands before the last record, and names the problem."""
    result, sink = await run({"a": waits_long}, Setup(limit_s=5.0))
    assert result.outcome == "timeout" and requests(sink) == [("timeout", "e1", None)]
    assert [line for line in story(sink) if not line.startswith("finding")][-2:] == [
        "incident request_failed",
        "finish timeout",
    ]


async def test_an_agent_that_failed_for_good_fails_the_request() -> None:
    """It holds the work, and nothing else can happen: its last error has ended the run."""
    setup = Setup(retries=1, backoff_s=1.0)
    result, sink = await run({"a": fails}, setup)
    assert result.outcome == "error" and requests(sink) == [("error", "e1", "a2")]
    assert result.reason == (
        "nothing could happen any more: a failed 2 times in a row, at last: "
        "ValueError: no luck with 44 characters"
    )
    virtual = Recorder()
    simulated = simulate({"a": fails}, "?", setup=setup, sink=virtual)
    assert (simulated.outcome, simulated.reason) == (result.outcome, result.reason)
    assert requests(virtual) == requests(sink)


async def test_a_team_that_only_waits_fails_no_request() -> None:
    """That is a deadlock, which its own finding tells."""
    result, sink = await run({"a": idle})
    assert result.outcome == "stopped" and not requests(sink)


async def test_an_agent_that_failed_and_holds_no_work_fails_no_request() -> None:
    """Another has taken its part: the team stands still by itself."""

    async def bob(view: View) -> Decision:
        if view.turn == 1:
            return Decision.respond(view, NewEvent(payload="half", to=["b"], type="raw_data"))
        return Decision.wait()

    sink = Recorder()
    async with Bus({"a": fails, "b": bob}, ONCE, sink=sink).open() as bus:
        bus.inject("?", ["a", "b"])
        await bus.wait()
    assert bus.result.outcome == "stopped" and not requests(sink)


@pytest.mark.parametrize("is_limit", [False, True])
async def test_who_finds_out_that_nobody_can_go_on_fails_the_request(is_limit: bool) -> None:
    """By an error; or at a limit that was set, such as a budget, and then the run is stopped."""

    async def ada(view: View) -> Decision:
        raise StopRunError("no more", is_limit=is_limit)

    expected = ("stopped", "limit") if is_limit else ("error", "error")
    virtual, setup = Recorder(), Setup(limit_s=60.0)
    result, sink = await run({"a": ada}, setup)
    simulated = simulate({"a": ada}, "?", setup=setup, sink=virtual)
    for one, records in ((result, sink), (simulated, virtual)):
        assert (one.outcome, one.reason) == (expected[0], "no more")
        assert requests(records) == [(expected[1], "e1", "a1")]
        assert rows(records, "end")[0].error == "StopRunError: no more"


async def test_a_run_that_is_answered_or_stopped_fails_no_request() -> None:
    """Nor does one that its caller cancels."""
    answered = (await run({"a": Scripted(submit())}))[1]
    stopped, cancelled = Recorder(), Recorder()
    async with Bus({"a": waits_long}, sink=stopped).open() as bus:
        bus.inject("?")
        bus.stop()
    with anyio.move_on_after(3):
        await Bus({"a": waits_long}, sink=cancelled).run("?")
    assert [requests(sink) for sink in (answered, stopped, cancelled)] == [[], [], []]


# --- sessions ---

SESSION = Setup(session=True, retries=0, limit_s=60.0)


async def test_each_problem_of_a_session_without_an_answer_has_failed_at_its_end() -> None:
    """Those that were answered, notices, and those whose caller has gone have not."""

    async def ada(view: View) -> Decision:
        if view.events[-1].payload == "easy":
            return Decision.submit(view, 1)
        return Decision.wait()

    sink = Recorder()
    async with Bus({"a": ada, "b": waits_long}, SESSION, sink=sink).open() as bus:
        assert await bus.ask("easy") == 1
        with anyio.move_on_after(1):
            await bus.ask("the caller goes", ["b"])
        bus.inject("hard")
        bus.inject(Output("by the way", ("a",), "notice"))
        bus.inject("harder", ["b"])
        await bus.wait()
    assert bus.result.outcome == "timeout"
    hard = [row.event for row in rows(sink, "emit") if str(row.payload).startswith("hard")]
    assert requests(sink) == [("timeout", event, None) for event in hard]


async def test_a_question_that_nobody_can_answer_any_more_fails_and_the_session_goes_on() -> None:
    """The error names the agent that failed for good; another question may well be answered."""

    async def ada(view: View) -> Decision:
        if view.events[-1].payload == "easy":
            return Decision.submit(view, "done")
        raise ModelError("no answer")

    sink = Recorder()
    async with Bus({"a": ada}, SESSION, sink=sink).open() as bus:
        with pytest.raises(SettingsError, match="a failed 1 time in a row, at last: ModelError"):
            await bus.ask("hard")
        assert await bus.ask("easy") == "done"
    assert bus.result.outcome == "stopped" and requests(sink) == [("error", "e1", "a1")]


async def test_a_question_waits_as_long_as_others_can_go_on() -> None:
    """That one agent failed for good fails no request that another may still answer."""

    async def bob(view: View) -> Decision:
        await anyio.sleep(10)
        return Decision.submit(view, "late")

    async with Bus({"a": fails, "b": bob}, SESSION).open() as bus:
        assert await bus.ask("?", ["a", "b"]) == "late"


# --- an agent that fails once ---


def slow_once() -> Any:
    return Scripted(ModelError("the model did not answer within 30 s"), submit(), think_s=31.0)


async def test_one_request_to_a_model_that_times_out_is_no_deadlock() -> None:
    """The agent is started again: no pattern but the failed turn itself, and nobody is woken."""
    setup = Setup(detectors=standard, healers=standard_healers)
    result, sink = await run({"a": slow_once(), "b": idle}, setup)
    virtual = Recorder()
    simulated = simulate({"a": slow_once(), "b": idle}, "?", setup=setup, sink=virtual)
    for one, records in ((result, sink), (simulated, virtual)):
        assert one.outcome == "submitted" and one.heals == {}
        assert {finding.pattern for finding in one.findings} <= {"FAIL"}
        assert [row.agent for row in rows(records, "start")] == ["a", "a"]


async def test_an_answer_that_consumed_nothing_is_an_early_one() -> None:
    """It is told as an error: what it says is about nothing that was asked."""

    async def ada(view: View) -> Decision:
        if view.events[0].type == "problem":
            work = NewEvent(payload="the work", to=["a", "b"], type="raw_data")
            return Decision.respond(view, work)
        return Decision(outputs=[NewEvent(payload="invented", final=True)])

    result, _ = await run({"a": ada, "b": idle}, Setup(detectors=standard, limit_s=5.0))
    (early,) = [finding for finding in result.findings if finding.pattern == "ET"]
    assert early.severity == "error" and early.evidence["unresolved"] == ["e2"]
