"""A fault at every place where a wrapper calls the monitor, or what a user has handed in.

The places are read from the code; each is made to fail when it is passed for the
first time, and for the last.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import anyio
import pytest

from dig import Budget, Finding, Limits
from dig.adapters import Session
from dig.adapters.base import calls, guard, session, turn
from dig.adapters.base import held_events as holds
from dig.adapters.plain import adapter as plain
from dig.graph.records import Fate, HealRow
from dig.monitor import recorder
from dig.monitor.messages import About, Healed, Proposed
from tests.helpers import Recorder, backends

from .test_faults import Boom, Flags, Healing, Keeper, note
from .watching import setup_of

MODULES = (calls, guard, holds, plain, session, turn)
CALLED = ("run", "ask", "call")
ELSEWHERE = ("HookedCall", "ToolCalls")
"""Classes that no plain team has: the suites of frameworks come through their sites."""
Site = tuple[str, int, int]  # file, first and last line


def sites() -> Iterator[Site]:
    """Every call of `run`, `ask` and `call` of a guard in the parts of a wrapper of plain teams."""
    for module in MODULES:
        guards = re.compile(
            r"(^|\.)guard\.$|^$|^self\.$" if module is guard else r"(^|[._])guard\.$|^$"
        )
        tree = ast.parse(inspect.getsource(module))
        tree.body = [part for part in tree.body if getattr(part, "name", "") not in ELSEWHERE]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) in CALLED:
                if not guards.search(ast.unparse(node.func).removesuffix(_name(node.func))):
                    continue
                yield str(module.__file__), node.lineno, node.end_lineno or node.lineno


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


class Failing:
    """Makes the call number `at` of `run`, `ask`, `call` or the ledger's `write` fail.

    Attributes:
        passed: Where the calls came from, in order.
    """

    def __init__(self, at: int, *, after: bool) -> None:
        self.at = at
        self.after = after
        self.passed: list[tuple[str, int]] = []

    def some(self) -> set[int]:
        """The numbers of the first and the last call from each place."""
        numbers = {place: number for number, place in enumerate(self.passed, 1)}
        return {*numbers.values(), *(self.passed.index(place) + 1 for place in numbers)}

    def around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(itself: Any, do: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            self.passed.append((frame.f_code.co_filename, frame.f_lineno))
            if len(self.passed) != self.at:
                return real(itself, do, *args, **kwargs)
            if name == "write":
                real(itself, do)
                raise Boom

            def fail(*given: Any, **named: Any) -> Any:
                if self.after:
                    do(*given, **named)
                raise Boom

            return real(itself, fail, *args, **kwargs)

        return call

    @contextmanager
    def in_place(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in CALLED:
                patch.setattr(guard.Guard, name, self.around(name, getattr(guard.Guard, name)))
            patch.setattr(recorder.Recorder, "write", self.around("write", recorder.Recorder.write))
            yield


def make_team() -> dict[str, Any]:
    """Calls at once, to further agents, passed on, cancelled, of oneself; and exceptions."""
    team: dict[str, Any] = {}

    async def ann(question: str) -> Any:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(team["bob"], "1")
            tasks.start_soon(team["bob"], "2")
        answers = [await team[name]("3") for name in ("bob", "cyd", "dan")]
        with anyio.move_on_after(0.05):
            await team["bob"]("4")
        with pytest.raises(KeyError):
            await team["bob"]("fail")
        return answers

    async def bob(task: str) -> str:
        await anyio.sleep(0.1)
        if task == "fail":
            raise KeyError(task)
        return task

    async def cyd(task: str) -> str:
        answer: str = await team["dan"](task)
        return answer

    async def dan(task: str) -> str:
        return task if task.endswith("!") else str(await team["dan"](f"{task}!"))

    team.update(ann=ann, bob=bob, cyd=cyd, dan=dan)
    return team


ANSWERS = ["3", "3!", "3!"]


async def decide() -> Any:
    await anyio.sleep(0.01)
    return ()


async def use(failing: Failing, options: dict[str, Any]) -> None:
    """A team that is used in all ways, with a fault somewhere, does as without a monitor."""
    team = make_team()
    gates = [Keeper(decide)] if options["mode"] == "heal" else []
    setup = setup_of(
        detectors=lambda: [Flags()], healers=lambda: {"RSP": Healing(note)}, gates=gates,
        budget=Budget(99, 99, 99), limits=Limits(dl_window_s=5.0), approve=lambda proposed: True,
    ).ruled(None, {"turns": 9_999})  # fmt: skip
    plan = plain.plan(team, annotate=lambda args, kwargs, notes: (args, kwargs))
    watching = Session(
        plan.agents, setup, capabilities=plan.capabilities, sink=Recorder(), keeps_time=False,
        clock=anyio.current_time, on_finding=lambda found: None, veto=plan.veto,
        on_note=lambda agent, said: None, same_work=True, **options,
    )  # fmt: skip
    attached = plan.attach(watching)
    with failing.in_place(), anyio.fail_after(100):
        assert await team["ann"]("?") == ANSWERS
        with pytest.raises(KeyError, match="fail"):
            await team["bob"]("fail")
        with anyio.move_on_after(0.05) as scope:
            await team["ann"]("?")
        assert scope.cancelled_caught
        await by_hand(watching)
        attached.restore()
        watching.close()
    assert await team["ann"]("?") == ANSWERS


PROPOSED = Proposed(1, Finding("RSP", 1, 0, {}, {}), (), "it is costly", 5.0, "leave", About("RSP"))
CREATED = HealRow(1, 0, 1, "create", to=("ann",), note="said by healing")


async def by_hand(watching: Session) -> None:
    """What a wrapper of one's own says: it never hears of a fault."""
    first, second = (watching.request("!", "ann", "problem") for _ in range(2))
    async with watching.activation("ann", [first]) as one:
        one.decide(Fate(second, "delay"))
        one.listen()
        one.send("go", watching.reserve_instance("bob"))
        one.receive()
        one.wait_for(0)
        one.waits()
        one.emit("notice", "cyd")
        one.submit({"answer": object()} if one.instance else None)
    third = watching.request("!", "ann")
    with pytest.raises(ValueError, match="no"):
        async with watching.activation("ann", [third], retried=True):
            raise ValueError("no")
    watching.begin("cyd").send("nonsense", [3])  # type: ignore[list-item]
    watching.release_instance(watching.reserve_instance("dan"))
    handing = watching.begin("ann", at_once=True)
    handing.call("go", watching.reserve_instance("bob"))
    handing.call("go", watching.reserve_instance("cyd"))
    fourth = watching.request("!", "dan")
    watching.begin("dan", [fourth]).hand_over("ann", "go", silent=lambda: True)
    watching.begin("dan").forward("ann")
    watching.begin("ann").abandon(Boom(), "dan")
    watching.redirect(third, "cyd", "again")
    never = watching.reserve_instance("cyd")
    watching.withdraw(never, [watching.request("?", never)], "dan")
    watching.recipients_of(third)
    watching.refuses(third)
    watching.is_held(third)
    watching.guard.incident("said", "something")
    watching.tick()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching.holds, "wait_until_released", broken)
        await watching.wait_until_released(third)
    watching.guard.call(lambda: None, default=None)
    calls.draw_session(watching, None)
    watching._follow_up([Healed(CREATED)], [])
    now = anyio.current_time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching.guard, "_clock", lambda: now)  # there is no loop on that thread
        asking = Thread(target=watching._ask_person, args=(PROPOSED,))
        asking.start()
        asking.join()


async def broken(event: str) -> None:
    raise Boom


def run(failing: Failing, mode: str) -> None:
    name, options = backends()["asyncio"]()
    anyio.run(use, failing, {"mode": mode}, backend=name, backend_options=options)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_wherever_a_call_fails_the_team_does_the_same(mode: str, after: bool) -> None:
    """Results, exceptions and cancellation are those of the team alone, and nothing hangs."""
    whole = Failing(0, after=after)
    run(whole, mode)
    for at in sorted(whole.some()):
        run(Failing(at, after=after), mode)


def test_no_call_site_is_left_out() -> None:
    """Every place that the code has is passed by these runs, and so is made to fail there."""
    passed: set[tuple[str, int]] = set()
    for mode, at in (("observe", 0), ("heal", 0), ("heal", 4)):  # 4: the first request fails
        failing = Failing(at, after=False)
        run(failing, mode)
        passed |= {*failing.passed}
    left_out = [
        f"{file}:{first}"
        for file, first, last in sites()
        if not any(where == file and first <= line <= last for where, line in passed)
    ]
    assert left_out == []
