"""Parts of the monitor that fail are in the result, in the statistics and in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dig import Detector, Finding, Healer, InteractionGraph, Pending, Record
from dig.adapters import Session
from dig.graph.records import Emit
from dig.monitor.messages import Started
from dig.runtime import Bus, Decision, NewEvent, Plan, Setup, View, simulate
from dig.runtime.result import ComponentFailure
from dig.show.summary_text import summary

TOKEN = "sk-proj-0123456789abcdef"


class Broken(Detector):
    """A detector that cannot look at an event."""

    pattern = "BROKEN"
    kinds = (Emit,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        raise KeyError(TOKEN)


class Sees(Detector):
    """Finds something about every event."""

    pattern = "SEEN"
    kinds = (Emit,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        assert isinstance(record, Emit)
        yield Finding(self.pattern, record.t, record.us, {"event": record.event}, {})


class BrokenHealer(Healer):
    """A healer that cannot heal."""

    def heal(self, graph: InteractionGraph, finding: Finding) -> Any:
        raise KeyError("cure")


class BrokenGate:
    """A gate that cannot decide what to keep."""

    name = "door"

    def hold(self, graph: InteractionGraph, event: Pending) -> Any:
        raise KeyError("hold")

    async def decide(self, event: Pending) -> Any:
        raise AssertionError("it keeps nothing")


@contextmanager
def broken_context(started: Started) -> Iterator[None]:
    raise KeyError("context")
    yield


def setup() -> Setup:
    return Setup(
        detectors=lambda: [Broken(), Sees()],
        healers=lambda: {"SEEN": BrokenHealer()},
        gates=[BrokenGate()],
    )


async def sends(view: View) -> Decision:
    if view.turn < 4:
        return Decision.respond(view, NewEvent(payload=view.turn, to=["a"]))
    return Decision.submit(view, "!")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "dig"]


@pytest.mark.anyio
async def test_the_result_of_a_run_names_every_part_that_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A detector that was disabled, a healer, a gate and a follower, each with its number."""
    bus = Bus({"a": sends}, setup())
    bus.follow(lambda record: None, broken_context)
    with caplog.at_level(logging.WARNING, "dig"):
        result = await bus.run("?")
    assert result.outcome == "submitted"
    failed = {one.component: one for one in result.component_failures}
    assert {name: one.times for name, one in failed.items()} == {
        "detector BROKEN": 3, "healer of SEEN": 5, "gate door": 4, "around broken_context": 4
    }  # fmt: skip
    disabled = "raised KeyError('***'); it is disabled for the rest of the run"
    assert failed["detector BROKEN"].what == disabled
    assert result.to_json()["component_failures"][0] == {
        "component": "detector BROKEN", "times": 3, "what": disabled
    }  # fmt: skip
    shown = dict.fromkeys(text for label, text in summary(result) if label == "failed part")
    assert f"detector BROKEN failed 3 times, the last time: {disabled}" in shown
    assert len(shown) == 4
    assert f"dig: detector BROKEN failed 3 times, the last time: {disabled}" in warnings(caplog)
    assert TOKEN not in caplog.text


def test_a_part_that_goes_on_failing_does_not_flood_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log has its first three failures, and then each doubling; the result counts all."""

    class Busy:
        def plan(self, view: View) -> Plan:
            again = Decision.respond(view, NewEvent(payload=1, to=["a"]))
            return Plan(0.1, again if view.turn < 100 else Decision.submit(view, "!"))

    failing = Setup(detectors=lambda: [Sees()], healers=lambda: {"SEEN": BrokenHealer()})
    with caplog.at_level(logging.WARNING, "dig"):
        result = simulate({"a": Busy()}, "?", setup=failing)
    assert result.component_failures == (
        ComponentFailure("healer of SEEN", 30, "raised KeyError('cure')"),
    )
    assert len(warnings(caplog)) == 3 + 3  # 4, 8, 16; the budget of a pattern is 30


def test_a_wrapped_team_tells_of_failed_parts_in_its_statistics() -> None:
    """A detector, and a function that was handed in; the team goes on."""

    def broken(finding: Finding) -> None:
        raise KeyError("finding")

    session = Session(["ann"], setup(), mode="heal", on_finding=broken, keeps_time=False)
    session.request("?", "ann")
    failed = {one.component: one.times for one in session.statistics().component_failures}
    assert failed["detector BROKEN"] == 1
    assert [name for name in failed if name.endswith("broken")] != []
    assert session.result().component_failures == session.statistics().component_failures
    session.close()
