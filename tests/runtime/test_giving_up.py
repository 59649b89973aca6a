"""What an activation costs is never lost, and an agent may find out that nobody can go on."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from dig.errors import StopRunError
from dig.graph.records import End, Finish, IncidentRow
from dig.runtime import Bus, Decision, Setup, View
from tests.helpers import Recorder

pytestmark = pytest.mark.anyio

QUICK = Setup(limit_s=0.2, retries=0)


async def run(agent: Any, setup: Setup = QUICK) -> tuple[Any, Recorder]:
    sink = Recorder()
    return await Bus({"ada": agent}, setup, sink=sink).run("hello"), sink


def ends(sink: Recorder) -> list[Any]:
    return [record.usage for record in sink if isinstance(record, End)]


async def test_what_an_agent_writes_down_is_in_the_trace() -> None:
    """With its decision, unless that says something of its own."""

    async def ada(view: View) -> Decision:
        view.usage["tokens"] = 7
        return Decision.submit(view, 1)

    async def bob(view: View) -> Decision:
        view.usage["tokens"] = 7
        return Decision.submit(view, 1).model_copy(update={"usage": {"tokens": 8}})

    assert ends((await run(ada))[1]) == [{"tokens": 7}]
    assert ends((await run(bob))[1]) == [{"tokens": 8}]


async def test_an_activation_that_fails_has_cost_something_too() -> None:
    """If it raises, takes too long, or decides what makes no sense."""

    async def raises(view: View) -> Decision:
        view.usage["tokens"] = 7
        raise ValueError("no")

    async def sleeps(view: View) -> Decision:
        view.usage["tokens"] = 7
        await anyio.sleep_forever()
        raise AssertionError

    async def errs(view: View) -> Any:
        view.usage["tokens"] = 7
        return "nonsense"

    quick = Setup(limit_s=0.2, retries=0, activation_timeout_s=0.05)
    for agent in (raises, sleeps, errs):
        assert ends((await run(agent, quick))[1]) == [{"tokens": 7}]


async def test_an_activation_that_the_end_cuts_off_has_cost_something_too() -> None:
    """It stands in the last record, by activation; another one that cost nothing does not."""

    async def sleeps(view: View) -> Decision:
        view.usage["tokens"] = 7
        await anyio.sleep_forever()
        raise AssertionError

    _, sink = await run(sleeps)
    finish = sink[-1]
    assert isinstance(finish, Finish) and finish.usage == {"a1": {"tokens": 7}}


async def test_what_is_no_json_costs_nothing_rather_than_the_run() -> None:
    """An agent that writes down nonsense loses what it wrote, not its decision."""

    async def ada(view: View) -> Decision:
        view.usage["tokens"] = object()
        return Decision.submit(view, 1)

    result, sink = await run(ada)
    assert result.outcome == "submitted" and ends(sink) == [None]


async def test_an_agent_that_finds_out_that_nobody_can_go_on_ends_the_run() -> None:
    """At once and by its error, with its sentence as the reason; its events stay."""

    async def ada(view: View) -> Decision:
        view.usage["tokens"] = 7
        raise StopRunError("the key is wrong")

    with anyio.fail_after(5):
        result, sink = await run(ada, Setup(limit_s=60))
    assert (result.outcome, result.reason) == ("error", "the key is wrong")
    assert result.left.unconsumed == ("e1",) and not result.left.unfinished
    told = [(row.what, row.detail) for row in sink if isinstance(row, IncidentRow)]
    assert told[1:] == [
        ("gave up", {"who": "ada", "what": "the key is wrong"}),
        (
            "request_failed",
            {"how": "error", "event": "e1", "activation": "a1", "error": "the key is wrong"},
        ),
    ]
    assert told[0][0] == "stack trace" and ends(sink) == [{"tokens": 7}]
