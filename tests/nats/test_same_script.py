"""The same agents on the bus, in the simulator and on a server: the same records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from dig.adapters.nats.client import ask
from dig.graph.codec import encode
from dig.graph.records import Record
from dig.monitor.messages import Output
from dig.runtime import Bus, Decision, EventFate, NewEvent, View
from dig.runtime.simulator import Simulation

from . import harness
from .account import account_of
from .harness import NAME, rows, session

pytestmark = pytest.mark.anyio
PROBLEMS = [{"topic": "rivers"}, {"topic": "lakes", "early": True}, {"topic": "seas"}]


SETUP = replace(harness.SETUP, limits=replace(harness.SETUP.limits, oe_window_s=1_000.0))
"""No window ends while the script runs: only what agents do counts, one at a time."""


async def editor(view: View) -> Decision:
    """Split each problem in two, and submit what comes back."""
    problems = [event for event in view.events if event.sender is None]
    if problems:
        problem = problems[0].payload
        outputs = [NewEvent(payload={**problem, "part": n}, to=["writer"]) for n in (1, 2)]
        return Decision.respond(view, *outputs)
    notes = [note for event in view.events for note in event.notes]
    return Decision.submit(view, {"texts": view.events[0].payload, "notes": len(notes)})


async def writer(view: View) -> Decision:
    """Write all parts; discard the second one of an early problem."""
    first, second = view.events
    is_early = first.payload.get("early", False)
    fates = [
        EventFate(event=first.id, fate="consume"),
        EventFate(event=second.id, fate="discard" if is_early else "consume"),
    ]
    texts = [e.payload["part"] for e in view.events[: 1 if is_early else 2]]
    return Decision(fates=fates, outputs=[NewEvent(payload=texts, to=["editor"])])


TEAM = {"editor": editor, "writer": writer}


def comparable(texts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records without what differs by nature: moments, checksums, trace contexts, owners."""
    kept: list[dict[str, Any]] = []
    for row in texts:
        if row["kind"] == "incident" and row["what"] in ("owner", "disconnected", "skew"):
            continue
        if row["kind"] == "finish":
            continue
        row = {k: v for k, v in row.items() if k not in ("ts", "chain", "traceparent", "journal")}
        kept.append({**row, "t": len(kept), "finding": None})
    return kept


def of_records(records: Iterable[Record]) -> list[dict[str, Any]]:
    return comparable(json.loads(encode(record)) for record in records)


async def on_the_bus() -> tuple[list[dict[str, Any]], list[Any]]:
    records: list[Record] = []
    bus = Bus(TEAM, SETUP, sink=records.append)
    async with bus.open():
        answers = [await bus.ask(problem, ["editor"]) for problem in PROBLEMS]
    return of_records(records), answers


def in_the_simulator() -> list[dict[str, Any]]:
    records: list[Record] = []
    simulation = Simulation(TEAM, SETUP, records.append, latency_s=0.0)
    for number, problem in enumerate(PROBLEMS):
        output = Output(problem, ("editor",), "problem")
        simulation.plan(float(number), lambda m, o=output: m.inject(o))  # type: ignore[misc]
    simulation.plan(100.0, lambda monitor: (simulation.stop(), [])[1])  # type: ignore[func-returns-value]
    simulation.run()
    return of_records(records)


async def test_same_records_findings_healing_and_answers(url: str) -> None:
    """On all three the records are equal, and so are findings, healing and answers."""
    on_bus, answers = await on_the_bus()
    async with session(url, TEAM, setup=SETUP) as (client, _):
        served = [await ask(client, NAME, problem, ["editor"]) for problem in PROBLEMS]
        on_server = comparable(await rows(client))
        account = await account_of(client, NAME)
    assert served == answers
    assert any(row["kind"] == "finding" for row in on_bus)
    assert on_server == on_bus
    simulated = in_the_simulator()
    assert simulated[: len(on_bus)] == on_bus
    assert not account.faults
    await anyio.lowlevel.checkpoint()
