"""Who follows a run on the bus, and what is entered around an activation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from dig.monitor.messages import Started
from dig.monitor.sinks import Eviction
from dig.runtime import Bus, Decision, Setup, View
from tests.helpers import Recorder, rows

pytestmark = pytest.mark.anyio

current: ContextVar[str] = ContextVar("current", default="nobody")


@contextmanager
def marking(started: Started) -> Iterator[None]:
    token = current.set(started.activation)
    try:
        yield
    finally:
        current.reset(token)


async def tells(view: View) -> Decision:
    await anyio.sleep(0.1)
    return Decision.submit(view, current.get())


async def answers(view: View) -> Decision:
    return Decision.submit(view, "!")


async def fails(view: View) -> Decision:
    raise RuntimeError(current.get())


async def test_a_follower_gets_the_records_after_the_sink() -> None:
    order: list[str] = []
    bus = Bus({"a": tells}, sink=lambda record: order.append(f"sink {record.t}"))
    bus.follow(lambda record: order.append(f"follower {record.t}"))
    await bus.run("?")
    assert order[:4] == ["sink 0", "follower 0", "sink 1", "follower 1"]
    assert bus.monitor is not None
    assert len(order) == 2 * (bus.monitor.graph.t + 1)


class Swept(Recorder):
    """A sink that is told what is let go of."""

    def __init__(self) -> None:
        super().__init__()
        self.evictions: list[Eviction] = []

    def evicted(self, eviction: Eviction) -> None:
        assert eviction.t == self[-1].t
        self.evictions.append(eviction)


async def test_sink_and_followers_are_told_what_a_session_lets_go_of() -> None:
    """Between the same two records."""
    sink, follower = Swept(), Swept()
    bus = Bus({"a": answers}, Setup(session=True, keep=0), sink=sink)
    bus.follow(follower)
    async with bus.open():
        for _ in range(20):
            await bus.ask("?")
    assert len(sink.evictions) > 3 and follower.evictions == sink.evictions


async def test_what_is_entered_around_an_activation_is_current_in_it() -> None:
    """For the agent, while it acts; two of them nest."""
    bus = Bus({"a": tells})
    bus.follow(Recorder(), marking)
    bus.follow(Recorder(), marking)
    assert (await bus.run("?")).answer == "a1"
    assert current.get() == "nobody"


async def test_it_is_left_again_when_the_agent_fails() -> None:
    sink = Recorder()
    bus = Bus({"a": fails}, Setup(limit_s=1.0, retries=0), sink=sink)
    bus.follow(Recorder(), marking)
    await bus.run("?")
    assert rows(sink, "end")[0].error == "RuntimeError: a1"
    assert current.get() == "nobody"


def raises_at_once(started: Started) -> AbstractContextManager[object]:
    raise OSError("no context")


@contextmanager
def raises_at_the_end(started: Started) -> Iterator[None]:
    yield
    raise OSError("no context")


@pytest.mark.parametrize("broken", [raises_at_once, raises_at_the_end])
async def test_one_that_fails_is_an_incident_and_the_agent_acts(
    broken: Callable[[Started], Any],
) -> None:
    """Who only looks on cannot stop a team, and not hide an agent's answer."""
    sink = Recorder()
    bus = Bus({"a": tells}, sink=sink)
    bus.follow(Recorder(), broken)
    assert (await bus.run("?")).answer == "nobody"
    (incident,) = rows(sink, "incident")
    assert incident.what == "failed"
    assert incident.detail["who"].startswith("around ")
    assert incident.detail["what"] == "raised OSError('no context')"
