"""What bus and simulator do alike."""

from __future__ import annotations

import pytest

from dig.errors import RequestError, SettingsError
from dig.monitor.messages import Output, Started
from dig.monitor.monitor import Monitor
from dig.runtime import Bus, Decision, Setup, View
from dig.runtime.host import Host


def test_an_agent_that_fails_has_read_no_note() -> None:
    """A note from the system stays in front of it, like everything else."""
    monitor = Monitor(["ann"], clock=lambda: 0.0)
    host = Host(Setup(), monitor)
    monitor._holds.emit_notice("do it", ("ann",))
    monitor.inject(Output("problem", ("ann",), "problem"))
    started = next(e for e in monitor.start("ann") if isinstance(e, Started))
    host.fail_activation(started, ValueError("it broke"))
    assert list(monitor.graph.agents["ann"].buffer) == [event.id for event in started.events]
    assert {event.sender for event in started.events} == {"system", None}


async def _never(view: View) -> Decision:
    raise AssertionError("it is not asked")


@pytest.mark.anyio
async def test_a_name_alone_is_no_list_of_recipients() -> None:
    with pytest.raises(SettingsError, match=r"such as \['polly'\]"):
        await Bus({"polly": _never}).run("hello", "polly")


def test_who_joins_and_whom_an_event_goes_to_must_be_names() -> None:
    """Otherwise the trace would hold what no reader reads."""
    monitor = Monitor(["ann"], clock=lambda: 0.0)
    monitor.inject(Output("problem", ("ann",)))
    with pytest.raises(RequestError, match="is no list"):
        monitor.redirect("e1", "ab")
    with pytest.raises(RequestError, match="must be strings other than"):
        monitor.join(7)  # type: ignore[arg-type]  # that is the point
