"""What a gate keeps, and who waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from dig import Inject, Limits, Pending, Reroute
from dig.adapters import Session, notes
from dig.detectors.interventions import Intervention
from dig.errors import SettingsError

from .framework_gates import Keeper
from .watching import setup_of, watched

pytestmark = pytest.mark.anyio


def team_of(log: list[Any]) -> dict[str, Any]:
    team: dict[str, Any] = {}

    async def boss(parts: list[str]) -> str:
        async with anyio.create_task_group() as tasks:
            for name, part in zip(("ann", "bob"), parts, strict=True):
                tasks.start_soon(team[name], part)
        return "done"

    async def worker(part: str) -> str:
        log.append((round(anyio.current_time() - began, 3), part, notes()))
        return part * 2

    async def other(part: str) -> str:
        return await worker(part)

    began = anyio.current_time()
    team.update(boss=boss, ann=worker, bob=other)
    return team


async def test_who_is_sent_what_a_gate_keeps_begins_later_and_nobody_else() -> None:
    """A message is held before its callee runs; a call that is not concerned goes on."""
    log: list[Any] = []
    team, gate = team_of(log), Keeper("x")
    with watched(team, "heal", gates=[gate], clock=anyio.current_time) as it:
        assert await team["boss"](["x", "y"]) == "done"
        it.must_be_sound()
    assert log == [(0, "y", ()), (1, "x", ())]
    assert gate.seen == ["x"]


async def test_what_a_gate_keeps_waits_on_purpose_with_all_that_is_behind_it() -> None:
    """No LATE: incidents `waits` name the event that is kept, and the one that waits for it."""
    team, gate = team_of([]), Keeper("xx", after_s=2.0)

    async def boss(parts: list[str]) -> str:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(team["ann"], parts[0])
            await anyio.sleep(0.1)
            tasks.start_soon(team["bob"], parts[1])
        return "done"

    team["boss"] = boss
    limits = Limits(late_window_s=0.5)
    with watched(team, "heal", gates=[gate], limits=limits, clock=anyio.current_time) as it:
        assert await team["boss"](["x", "y"]) == "done"
        it.must_be_sound()
        assert it.patterns == []
        said = {row["event"]: row.get("payload") for row in it.rows("emit")}
        kept, behind = (row["detail"] for row in it.rows("incident") if row["what"] == "waits")
    assert (said[kept["event"]], kept["gates"]) == ("xx", ["keeper"])
    assert (said[behind["event"]], behind["behind"]) == ("yy", kept["event"])


async def test_a_gate_may_put_a_note_beside_what_it_kept() -> None:
    """What it decides is done before the callee runs."""
    log: list[Any] = []
    team = team_of(log)
    gate = Keeper("x", wishes=[lambda event: Inject(event, "with care")])
    with watched(team, "heal", gates=[gate], clock=anyio.current_time) as it:
        await team["boss"](["x", "y"])
        it.must_be_sound()
    assert log[-1] == (1, "x", ("with care",))


async def test_a_gate_that_keeps_continuations_delays_nobody() -> None:
    """Who sent it waits for an answer, and not for what he left to himself."""
    team, gate = team_of([]), Keeper(None)
    with watched(team, "heal", gates=[gate], clock=anyio.current_time) as it:
        began = anyio.current_time()
        assert await team["boss"](["x", "y"]) == "done"
        assert anyio.current_time() == began
        it.must_be_sound()
    assert gate.seen == []


async def test_a_call_cannot_be_withheld() -> None:
    """A gate that wishes that nobody gets it is told no: the caller waits for an answer."""
    log: list[Any] = []
    team = team_of(log)
    gate = Keeper("x", wishes=[lambda event: Reroute(event, "never", ())])
    with watched(team, "heal", gates=[gate], clock=anyio.current_time) as it:
        await team["boss"](["x", "y"])
        it.must_be_sound()
        waits, downgraded = it.rows("incident")
        assert waits["what"] == "waits" and downgraded["detail"]["action"] == "reroute"
    assert log[-1] == (1, "x", ("never",))


async def test_an_answer_may_be_kept_too() -> None:
    """What goes back to the caller is there when the gate has decided."""
    log: list[Any] = []
    team, gate = team_of(log), Keeper("done", "xx")
    began = anyio.current_time()
    with watched(team, "heal", gates=[gate], clock=anyio.current_time) as it:
        await team["boss"](["x", "y"])
        it.must_be_sound()
    assert gate.seen == ["xx", "done"]
    assert anyio.current_time() - began == pytest.approx(2)


@pytest.mark.parametrize("kept", ["x", "xx", "done"])
@pytest.mark.parametrize("at", [0.5, 1.0])
async def test_who_waits_for_a_gate_may_be_cancelled(kept: str, at: float) -> None:
    """The cancellation is the caller's own, and nothing is left that anybody waits for."""
    team = team_of([])
    gate = Keeper(kept, after_s=3)
    with watched(team, "heal", gates=[gate], clock=anyio.current_time) as it:
        with anyio.move_on_after(at) as scope:
            await team["boss"](["x", "y"])
        assert scope.cancelled_caught
        await anyio.sleep(100)
        it.session.tick()
        it.must_be_sound()
        assert not {"MC", "DL", "OE"} & set(it.patterns)
        assert await team["ann"]("z") == "zz" if it.session.stopped is None else True


class Stubborn(Keeper):
    """Cannot be cancelled, as one that waits in a thread cannot."""

    async def decide(self, event: Pending) -> Sequence[Intervention]:
        wishes: Sequence[Intervention] = ()
        with anyio.CancelScope(shield=True):
            wishes = await super().decide(event)
        return wishes


async def test_a_gate_that_cannot_be_cancelled_is_overruled_in_time_too() -> None:
    """The message goes on at the deadline, and what the gate says later changes nothing."""
    log: list[Any] = []
    team = team_of(log)
    gate = Stubborn("x", after_s=60, wishes=[lambda event: Inject(event, "too late")])
    with watched(team, "heal", gates=[gate], clock=anyio.current_time) as it:
        assert await team["boss"](["x", "y"]) == "done"
        assert log[-1] == (10, "x", ())
        await anyio.sleep(100)
        assert it.session.statistics().faults == 0
        it.must_be_sound()


async def test_who_waits_for_a_gate_that_cannot_be_cancelled_is_cancelled_at_once() -> None:
    team = team_of([])
    with watched(team, "heal", gates=[Stubborn("x", after_s=60)], clock=anyio.current_time) as it:
        began = anyio.current_time()
        with anyio.move_on_after(1):
            await team["boss"](["x", "y"])
        assert anyio.current_time() - began == pytest.approx(1)
        await anyio.sleep(100)
        assert it.session.statistics().faults == 0
        it.must_be_sound()


async def test_each_recipient_gets_messages_in_the_order_in_which_they_were_held() -> None:
    """For one seat, what comes later waits behind what a gate keeps; for others, it does not."""
    gate = Keeper("first")
    session = Session(
        ["ann", "bob"], setup_of(gates=[gate]), mode="heal", keeps_time=False,
        clock=anyio.current_time, strict=True,
    )  # fmt: skip
    boss = session.begin("bob", (session.request("?", ("bob",)),))
    for payload in ("first", "second"):
        boss.emit(payload, ("ann",))
    boss.end()
    first, second = boss.outputs
    assert session.is_held(first)
    assert session.is_held(second)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.wait_until_released, second)
        await session.wait_until_released(first)
    turn = session.begin("ann")
    assert [event.payload for event in turn.events] == ["first", "second"]
    turn.submit("!")
    session.close()


async def test_a_gate_is_asked_once_about_what_several_wait_for() -> None:
    """And goes on when the first of them is cancelled."""
    gate = Keeper("x")
    session = Session(
        ["ann", "bob", "boss"], setup_of(gates=[gate]), mode="heal", keeps_time=False,
        clock=anyio.current_time, strict=True,
    )  # fmt: skip
    boss = session.begin("boss", (session.request("?", ("boss",)),))
    boss.emit("x", ("ann", "bob"))
    boss.end()
    began = anyio.current_time()

    async def wait(seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await session.wait_until_released(boss.outputs[0])

    async with anyio.create_task_group() as tasks:
        for seconds in (0.5, 100, 100):
            tasks.start_soon(wait, seconds)
    assert anyio.current_time() - began == pytest.approx(1)
    assert gate.seen == ["x"]
    session.close()


async def test_a_wait_that_fails_keeps_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody runs the gate then, so what it kept must not stand before what comes after it."""

    async def broken(event: str) -> None:
        raise RuntimeError("planted")

    session = Session(
        ["ann", "boss"], setup_of(gates=[Keeper("x")]), mode="heal", keeps_time=False,
        clock=anyio.current_time,
    )  # fmt: skip
    boss = session.begin("boss", (session.request("?", ("boss",)),))
    first = boss.send("x", ("ann",))
    with monkeypatch.context() as patch:
        patch.setattr(session.holds, "wait_until_released", broken)
        await session.wait_until_released(first)
    assert not session.is_held(boss.send("y", ("ann",)))
    assert session.statistics().faults == 1
    session.close()


async def test_what_nobody_waits_for_can_be_let_go_of_and_the_rest_is_still_decided() -> None:
    """A wrapper that has lost track does so, since it may never wait for it."""
    gate = Keeper("x", "y")
    session = Session(
        ["ann", "bob", "boss"], setup_of(gates=[gate]), mode="heal", keeps_time=False,
        clock=anyio.current_time, strict=True,
    )  # fmt: skip
    boss = session.begin("boss", (session.request("?", ("boss",)),))
    lost, awaited = boss.send("x", ("ann",)), boss.send("y", ("bob",))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.wait_until_released, awaited)
        await anyio.sleep(0.5)
        session.guard.run(session.holds.release_unawaited, default=None)
        assert not session.is_held(lost) and session.is_held(awaited)
    assert gate.seen == ["y"] and not session.is_held(awaited)
    session.close()


@pytest.mark.parametrize("bounces", [True, False])
async def test_a_gate_sends_no_answer_back_that_cannot_be_taken_back(bounces: bool) -> None:
    """As healing does not when it is submitted: it is accepted, however long it was kept."""
    gate = Keeper("!", wishes=[lambda event: Reroute(event, "Again.", ("ann",))])
    session = Session(
        ["ann"], setup_of(gates=[gate]), mode="heal", keeps_time=False, clock=anyio.current_time,
        strict=True,
    )  # fmt: skip
    turn = session.begin("ann", (session.request("?", ("ann",)),))
    answer = turn.submit("!", bounces=bounces)
    await session.wait_until_released(answer)
    assert gate.seen == ["!"] and turn.was_bounced(answer) is bounces
    turn.end()
    session.close()


async def test_gates_do_not_observe() -> None:
    """Mode `observe` changes nothing, so no gate can keep anything in it."""
    with (
        pytest.raises(SettingsError, match="needs mode='heal'"),
        watched(team_of([]), gates=[Keeper()]),
    ):
        pass
