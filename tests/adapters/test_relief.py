"""Teams of plain callables in which an agent hangs, and another one is asked in its place."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from dig.detectors.thresholds import Thresholds

from .watching import Clock, Watched, watched

pytestmark = pytest.mark.anyio

LIMITS = Thresholds().limits
RELIEVE = {"reassign", "restart"}


class Hanging:
    """A desk asks bob for one part after the other; he does not come back from the last.

    Attributes:
        team: The agents.
        asked: Those that were called, in order.
    """

    def __init__(self, *, stubborn: bool = False) -> None:
        self.asked: list[str] = []
        self.hangs = anyio.Event()
        self.stubborn = stubborn
        self.team: dict[str, Any] = {"desk": self.desk, "bob": self.bob, "cyd": self.cyd}

    async def desk(self, parts: int) -> int:
        self.asked.append("desk")
        return sum([await self.team["bob"](part) for part in range(parts)])

    async def bob(self, part: int) -> int:
        self.asked.append("bob")
        if part == 12:
            self.hangs.set()
            try:
                await anyio.sleep_forever()
            except BaseException as cancelled:
                if not self.stubborn:
                    raise
                raise ValueError("bob makes an error of his own of it") from cancelled
        return part

    async def cyd(self, part: int) -> int:
        self.asked.append("cyd")
        return part


async def ask(it: Hanging, **options: Any) -> tuple[list[int], Watched]:
    """Ask the desk for thirteen parts, for at most an hour of the session's time."""
    clock, answers = Clock(), list[int]()
    with watched(it.team, "heal", clock=clock, limits=LIMITS, ladder=True, **options) as seen:
        async with anyio.create_task_group() as tasks:

            async def desk() -> None:
                answers.append(await it.team["desk"](13))

            tasks.start_soon(desk)
            await it.hangs.wait()
            for _ in range(60):
                clock.now += 60
                seen.session.tick()
                await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    return answers, seen


@pytest.mark.parametrize("stubborn", [False, True])
async def test_another_agent_is_asked_in_place_of_one_that_hangs(stubborn: bool) -> None:
    """STALL healed: the one that hangs is cancelled, another has its arguments, the team answers.

    What the one that hangs makes of its cancellation is nothing that its caller hears of.
    """
    hanging = Hanging(stubborn=stubborn)
    answers, it = await ask(hanging, allow=RELIEVE)
    assert answers == [sum(range(13))]
    assert hanging.asked[-1] == "cyd" and hanging.asked.count("cyd") == 1
    assert "STALL" in it.patterns
    assert [(row["action"], row["to"]) for row in it.rows("heal")] == [("reassign", ["cyd"])]
    it.must_be_sound()


async def test_an_agent_that_hangs_is_left_alone_unless_that_is_allowed() -> None:
    """With `allow` empty no agent is cancelled, and none is called that the team does not call."""
    hanging = Hanging()
    answers, it = await ask(hanging)
    assert answers == []
    assert hanging.asked == ["desk", *["bob"] * 13]
    downgraded = [row["detail"] for row in it.rows("incident") if row["what"] == "downgraded"]
    assert downgraded[0]["reason"] == "reassign is not declared"
