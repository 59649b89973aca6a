"""Teams of plain callables in which an agent hangs, and another one is asked in its place."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from dig import Limits
from dig.detectors.policy import Policy, Rule
from dig.detectors.thresholds import Thresholds
from dig.monitor.messages import Proposed

from .watching import Clock, Watched, watched

pytestmark = pytest.mark.anyio

LIMITS = Thresholds().limits
RELIEVE = {"reassign", "restart"}
LADDER = {"ladder": True}


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


async def ask(it: Hanging, limits: Limits = LIMITS, **options: Any) -> tuple[list[int], Watched]:
    """Ask the desk for thirteen parts, for at most an hour of the session's time."""
    clock, answers = Clock(), list[int]()
    with watched(it.team, "heal", clock=clock, limits=limits, setup=LADDER, **options) as seen:
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
    moved = [row for row in it.rows("heal") if row["action"] != "inject"]
    assert [(row["action"], row["to"]) for row in moved] == [("reassign", ["cyd"])]
    it.must_be_sound()


async def test_an_agent_that_hangs_is_left_alone_unless_that_is_allowed() -> None:
    """With `allow` empty no agent is cancelled, and none is called that the team does not call."""
    hanging = Hanging()
    answers, it = await ask(hanging)
    assert answers == []
    assert hanging.asked == ["desk", *["bob"] * 13]
    downgraded = [row["detail"] for row in it.rows("incident") if row["what"] == "downgraded"]
    assert downgraded[0]["reason"] == "reassign is not declared"


async def test_a_problem_is_given_to_another_agent_from_the_beginning() -> None:
    """DL at its last step: the call from outside, with all in it, is cancelled, and begun anew."""
    hanging = Hanging()
    answers, it = await ask(hanging, Limits(), allow={"restart"})
    assert answers == [13] and hanging.asked[-1] == "cyd"
    assert [row["action"] for row in it.rows("heal")][-1] == "restart"
    it.must_be_sound()


async def test_where_no_other_agent_is_idle_none_is_called_again() -> None:
    """A restart goes to an agent that is idle; else all are told, and the trace says why."""
    hanging = Hanging()
    del hanging.team["cyd"]
    answers, it = await ask(hanging, Limits(), allow={"restart"})
    assert answers == [] and hanging.asked == ["desk", *["bob"] * 13]
    assert "restart" not in [row["action"] for row in it.rows("heal")]
    told = [row["detail"] for row in it.rows("incident") if row["what"] == "downgraded"]
    assert ("restart", "create") in {(one["action"], one["instead"]) for one in told}


async def test_a_person_is_asked_before_another_agent_is() -> None:
    """Where the policy says `ask`, no agent is cancelled or called until the person agrees."""
    hanging, clock, seen = Hanging(), Clock(), list[str]()

    def person(proposed: Proposed) -> bool:
        seen.extend(hanging.asked)
        return True

    policy = Policy((Rule(action="ask", pattern="STALL", deadline_s=9999.0),))
    setup = {**LADDER, "policy": policy, "approve": person}
    with watched(
        hanging.team, "heal", clock=clock, limits=LIMITS, setup=setup, allow=RELIEVE
    ) as it:
        async with anyio.create_task_group() as tasks:

            async def desk() -> None:
                assert await hanging.team["desk"](13) == sum(range(13))

            tasks.start_soon(desk)
            await hanging.hangs.wait()
            clock.now += 600
            it.session.tick()
    assert "cyd" not in seen and hanging.asked[-1] == "cyd"
