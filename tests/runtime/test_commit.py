"""Levels of durability: what is on the disk before it takes effect, on the bus and simulated."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from dig import Output, Record
from dig.errors import JournalError
from dig.graph import records
from dig.runtime import Bus, Decision, NewEvent, Setup, View, simulate
from dig.runtime.group_commit import Durability
from dig.runtime.simulator import Simulation
from tests.conservation import Allowed, conservation
from tests.helpers import Keeper, Scripted, submit, tell

LEVELS: tuple[Durability, ...] = ("process", "effects", "power")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Here time is real, for a thread cannot be virtual; nobody waits for it."""
    backend: str = request.param
    return backend


class Disk:
    """A sink that knows what of it is synced; `fail_at`: its sync number so much fails."""

    def __init__(self, durability: Durability, fail_at: int | None = None) -> None:
        self.durability = durability
        self.written: list[Record] = []
        self.synced = 0
        self.syncs = 0
        self.unsynced_deliveries = 0
        self.threads: set[int] = set()
        self._fail_at = fail_at

    def __call__(self, record: Record) -> None:
        if isinstance(record, records.Start):
            late = self.written[self.synced :]
            mine = [r for r in late if isinstance(r, records.Deliver) and r.to == record.agent]
            self.unsynced_deliveries += any(r.event == record.inputs[0] for r in mine)
        self.written.append(record)

    def sync(self) -> None:
        count = len(self.written)
        self.syncs += 1
        self.threads.add(threading.get_ident())
        if self.syncs == self._fail_at:
            raise JournalError("cannot sync: the disk has failed")
        self.synced = count

    def knows_start(self, agent: str) -> bool:
        """Whether the latest start of an agent is on the disk."""
        starts = [r.t for r in self.written if isinstance(r, records.Start) and r.agent == agent]
        return starts[-1] < self.synced


class Ring:
    """Passes a number round until it is high enough; notes whether its call was on the disk."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.known: list[bool] = []

    async def act(self, view: View) -> Decision:
        self.known.append(self.disk.knows_start(view.agent))
        count = view.events[0].payload
        if count == 20:
            return Decision.submit(view, count)
        to = view.others[count % len(view.others)]
        return Decision.respond(view, NewEvent(payload=count + 1, to=[to]))


@pytest.mark.anyio
@pytest.mark.parametrize("level", LEVELS)
async def test_what_a_level_promises_is_on_the_disk_first(level: Durability) -> None:
    disk = Disk(level)
    ring = Ring(disk)
    result = await Bus(dict.fromkeys("abc", ring), sink=disk, durable=disk).run(0)
    assert result.answer == 20
    assert len(ring.known) == 21
    assert threading.get_ident() not in disk.threads, "the loop's thread never syncs"
    if level == "process":
        assert disk.syncs == 0
    else:
        assert all(ring.known)
        assert disk.synced == len(disk.written), "the end of the run is on the disk too"
    if level == "power":
        assert disk.unsynced_deliveries == 0
    else:
        assert disk.unsynced_deliveries > 0, "else the levels were all the same"
    conservation(disk.written)


@pytest.mark.anyio
async def test_an_answer_is_given_out_when_it_is_on_the_disk() -> None:
    disk = Disk("effects")
    bus = Bus({"a": Scripted(submit(1), submit(2), think_s=0)}, Setup(session=True), sink=disk,
              durable=disk)  # fmt: skip
    async with bus.open():
        for expected in (1, 2):
            assert await bus.ask("?") == expected
            accepted = [r.t for r in disk.written if isinstance(r, records.Deliver) and not r.to]
            assert accepted[-1] < disk.synced


@pytest.mark.anyio
async def test_a_gate_is_asked_when_the_event_is_on_the_disk() -> None:
    disk = Disk("effects")
    known: list[bool] = []

    class Looks(Keeper):
        async def decide(self, event: Any) -> Any:
            emitted = [r.t for r in disk.written if isinstance(r, records.Emit)]
            known.append(emitted[-1] < disk.synced)
            return ()

    team = {"a": Scripted(tell("b"), think_s=0), "b": Scripted(submit(), think_s=0)}
    setup = Setup(gates=[Looks(["e2"])])
    result = await Bus(team, setup, sink=disk, durable=disk).run("?")
    assert (result.answer, known) == (42, [True])


@pytest.mark.anyio
async def test_one_sync_serves_all_that_came_before_it() -> None:
    disk = Disk("power")
    team = {name: Scripted(tell("z"), think_s=0) for name in "abcdefgh"}
    bus = Bus({**team, "z": Scripted(think_s=0)}, Setup(limit_s=0.5), sink=disk, durable=disk)
    await bus.run(Output("?", tuple("abcdefgh"), "problem"))
    effects = sum(r.kind in ("deliver", "start") for r in disk.written)
    assert 0 < disk.syncs < effects / 2


@pytest.mark.anyio
@pytest.mark.parametrize("fail_at", [1, 2, 5, 8])
async def test_a_disk_that_fails_ends_the_run_with_no_effect_after_it(fail_at: int) -> None:
    disk = Disk("power", fail_at)
    ring = Ring(disk)
    bus = Bus(dict.fromkeys("abc", ring), sink=disk, durable=disk)
    with anyio.fail_after(30), pytest.raises(JournalError, match="cannot sync"):
        await bus.run(0)
    assert bus.result.outcome == "error"
    assert len(ring.known) <= fail_at // 2
    conservation(disk.written, Allowed())


@pytest.mark.anyio
async def test_a_run_may_be_cancelled_while_it_waits_for_the_disk() -> None:
    disk = Disk("power")
    bus = Bus(dict.fromkeys("abc", Ring(disk)), sink=disk, durable=disk)
    with anyio.CancelScope() as scope:
        async with bus.open():
            bus.inject(0)
            scope.cancel()
            await bus.wait()
    assert bus.result.outcome == "stopped"
    assert disk.synced == len(disk.written)


@pytest.mark.parametrize("level", LEVELS)
def test_in_virtual_time_the_same_is_synced_and_nothing_else_changes(level: Durability) -> None:
    disk, plain = Disk(level), Disk("process")
    ring = {"a": Scripted(tell("b")), "b": Scripted(submit())}
    simulate(ring, Output("?", ("a",), "problem"), sink=plain)
    ring = {"a": Scripted(tell("b")), "b": Scripted(submit())}
    simulation = Simulation(ring, Setup(), disk, durable=disk)
    simulation.plan(0.0, lambda monitor: monitor.inject(Output("?", ("a",), "problem")))
    simulation.run()
    assert disk.written == plain.written
    assert disk.syncs == {"process": 0, "effects": 3, "power": 5}[level]
