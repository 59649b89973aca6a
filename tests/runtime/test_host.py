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


def test_a_served_run_copies_no_view_and_follows_nothing_for_a_result() -> None:
    """Its agents are in other processes, and nobody asks for a result."""
    monitor = Monitor(["ann"], clock=lambda: 0.0)
    monitor_of_bus = Monitor(["ann"], clock=lambda: 0.0)
    served, host = Host(Setup(), monitor, is_served=True), Host(Setup(), monitor_of_bus)
    for each in (served, host):
        each.monitor.inject(Output({"a": [1]}, ("ann",), "problem"))
    shown = next(e for e in monitor.start("ann") if isinstance(e, Started))
    copied = next(e for e in monitor_of_bus.start("ann") if isinstance(e, Started))
    assert served.view(shown).events == host.view(copied).events
    assert served.view(shown).events[0].payload is shown.events[0].payload
    assert host.view(copied).events[0].payload is not copied.events[0].payload
    assert served._tally.so_far.run is None
    assert host._tally.so_far.run is not None
