"""Healing works on the bus too, on asyncio and trio; time is virtual and goes faster."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from dig import Output
from dig.runtime import Bus, RunResult
from dig.runtime.agents import Thinking
from tests.helpers import Recorder, backends, rows

from . import scenarios as the
from .test_healing_works import HELPED, Helped, healed, setup

BACKENDS = ["asyncio", "trio"]
SPEED = 20.0


def play(
    backend: str, scene: the.Scene, *, heal: bool, session: bool = False
) -> tuple[RunResult, Recorder]:
    """A scene on the bus."""
    sink = Recorder()
    faster = replace(setup(scene, 1, heal, session=session), speed=SPEED)
    bus = Bus({name: Thinking(p, SPEED) for name, p in scene.team.items()}, faster, sink=sink)

    async def run() -> RunResult:
        began = anyio.current_time()
        async with bus.open():
            bus.inject(scene.problem)
            for at_s, what in scene.script:
                await anyio.sleep_until(began + at_s / SPEED)
                bus.inject(what) if isinstance(what, Output) else bus.leave(what)
            await bus.wait()
        return bus.result

    name, options = backends()[backend]()
    return anyio.run(run, backend=name, backend_options=options), sink


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", HELPED.values(), ids=HELPED)
def test_what_fails_without_healing_ends_well_with_it(case: Helped, backend: str) -> None:
    """As in the simulator, for each pattern."""
    for seed in range(3):
        scene = case.scene(seed)
        result, _ = play(backend, scene, heal=False)
        assert result.outcome == case.ends
        assert result.answer != scene.right
        assert case.pattern in result.raised() and result.heals == {}

        scene = case.scene(seed)
        result, sink = play(backend, scene, heal=True)
        assert (result.outcome, result.answer) == ("submitted", scene.right)
        assert healed(sink)[case.pattern, case.stage, case.action] == 1


@pytest.mark.parametrize("session", [False, True], ids=["run", "session"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_deadlock_that_nobody_ends_ends_with_the_run(backend: str, session: bool) -> None:
    """Three notes, a refusal, and then nothing; a session waits for more until its time is up."""
    result, sink = play(backend, the.deadlock(1, heeds=False), heal=True, session=session)
    assert (result.outcome, result.answer) == ("timeout" if session else "stopped", None)
    assert result.heals == {"create": 3, "refused": 1}
    assert rows(sink, "heal")[-1].reason == "the budget of 3 for this subject is used up"
    assert result.left.unconsumed == ("e2", "e3")


@pytest.mark.parametrize("session", [False, True], ids=["run", "session"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_early_answer_that_nobody_completes_is_accepted(backend: str, session: bool) -> None:
    """It comes back until nothing can move any more; what it lacks is left, and said."""
    scene = the.early_termination(1, heeds=False, cyd=the.idle)
    result, sink = play(backend, scene, heal=True, session=session)
    assert result.outcome == ("timeout" if session else "submitted")
    assert result.answer not in (None, scene.right)
    assert rows(sink, "heal")[-1].note.endswith("It is accepted as it is.")
    assert result.left.unconsumed == ("e3",)
