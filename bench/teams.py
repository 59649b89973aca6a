"""What a message costs: bus and simulator, with and without the monitor.

The work: six agents pass messages round a ring, each activation consuming one and sending one,
until the last one submits. A message is four records of a trace: emit, deliver, start, end. The
alternatives without a monitor do the same work with nothing in between, so what they cost is
also put per four records.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import anyio

from dig.detectors import standard, standard_healers
from dig.monitor.messages import Output, Pending
from dig.monitor.sinks import Sink
from dig.runtime import Bus, Decision, NewEvent, Plan, Setup, View, simulate
from dig.traces.journal.journal import Journal

from .measure import Table, compared, per_unit

MESSAGES = 2000
RECORDS = 4 * MESSAGES
NAMES = tuple(f"agent-{i}" for i in range(6))
NEXT = dict(zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))
PROBLEM = Output(0, NAMES[:1], "message")


def decide(view: View) -> Decision:
    """Pass the message on, one higher."""
    count = view.events[0].payload + 1
    if count == MESSAGES:
        return Decision.submit(view, count)
    return Decision.respond(view, NewEvent(payload=count, to=[NEXT[view.agent]]))


async def act(view: View) -> Decision:
    return decide(view)


class Passing:
    def plan(self, view: View) -> Plan:
        return Plan(0.001, decide(view))


def _setup(detect: bool) -> Setup:
    if not detect:
        return Setup(limit_s=1e6)
    return Setup(limit_s=1e6, detectors=standard, healers=standard_healers)


# --- the same work with nothing in between ---


async def _bare_bus() -> None:
    """Mailboxes and tasks, as on the bus; what an agent sends is put into a mailbox."""
    mail: dict[str, deque[Pending]] = {name: deque() for name in NAMES}
    woken = {name: anyio.Event() for name in NAMES}
    over = anyio.Event()

    async def work(name: str) -> None:
        turn = 0
        while True:
            await woken[name].wait()
            woken[name] = anyio.Event()
            turn += 1
            view = View(name, NAMES, turn, 0.0, tuple(mail[name]))
            mail[name].clear()
            output = (await act(view)).outputs[0]
            if output.final:
                over.set()
                return
            mail[output.to[0]].append(Pending("e", output.type, name, output.payload))
            woken[output.to[0]].set()

    async with anyio.create_task_group() as tasks:
        for name in NAMES:
            tasks.start_soon(work, name)
        mail[NAMES[0]].append(Pending("e", "message", None, 0))
        woken[NAMES[0]].set()
        await over.wait()
        tasks.cancel_scope.cancel()


def _bare_simulator() -> None:
    """A heap of what is to happen, as in the simulator."""
    policy, agenda, order = Passing(), [(0.0, 0, NAMES[0], 0)], 0
    while agenda:
        now, _, name, payload = heappop(agenda)
        view = View(name, NAMES, 1, now, (Pending("e", "message", None, payload),))
        plan = policy.plan(view)
        assert isinstance(plan.decision, Decision)
        output = plan.decision.outputs[0]
        order += 1
        if not output.final:
            heappush(agenda, (now + plan.think_s, order, output.to[0], output.payload))


# --- candidates ---


def _bus(detect: bool, sink: Sink) -> None:
    bus = Bus(dict.fromkeys(NAMES, act), _setup(detect), sink=sink)
    result = anyio.run(bus.run, PROBLEM)
    assert result.answer == MESSAGES


def _simulator(detect: bool, sink: Sink) -> None:
    team = dict.fromkeys(NAMES, Passing())
    result = simulate(team, PROBLEM, setup=_setup(detect), sink=sink, latency_s=0.0)
    assert result.answer == MESSAGES


def _nowhere(record: Any) -> None:
    pass


def _counted(run: Callable[[], object]) -> Callable[[], int]:
    def once() -> int:
        run()
        return RECORDS

    return once


def _journalled(run: Callable[[bool, Sink], None]) -> Callable[[], int]:
    def once() -> int:
        with tempfile.TemporaryDirectory() as folder:
            journal = Journal(Path(folder) / "trace")
            run(True, journal)
            journal.close()
        return RECORDS

    return once


def bus() -> Table:
    """Microseconds a record on the bus."""
    times = per_unit(
        {
            "mailboxes and tasks alone": _counted(lambda: anyio.run(_bare_bus)),
            "bus, graph and hold": _counted(lambda: _bus(False, _nowhere)),
            "bus, hold, detectors and healing": _counted(lambda: _bus(True, _nowhere)),
            "the same, with a journal": _journalled(_bus),
        }
    )
    return compared("Bus (asyncio), 6 agents, 2,000 messages", "record", times)


def simulator() -> Table:
    """Microseconds a record in the simulator."""
    times = per_unit(
        {
            "a heap of events alone": _counted(_bare_simulator),
            "simulator, graph and hold": _counted(lambda: _simulator(False, _nowhere)),
            "simulator, hold, detectors and healing": _counted(lambda: _simulator(True, _nowhere)),
            "the same, with a journal": _journalled(_simulator),
        }
    )
    return compared("Simulator, 6 agents, 2,000 messages", "record", times)
