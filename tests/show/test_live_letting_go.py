"""The live picture of a session that lets go of history: the same, and it does not grow."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from dig import Record
from dig.monitor.sinks import Eviction
from dig.runtime import simulate
from dig.show.terminal.frame import Frame
from dig.show.terminal.live import LiveView
from dig.show.terminal.terminal_state import TerminalState
from tests.helpers import Keeper, Stage, answer, rows, serve
from tests.retaining import KEPT, letting_go
from tests.schedules import Schedule


class Shown:
    """Pictures of a run after every record, with its evictions and without."""

    def __init__(self) -> None:
        self.scenes = TerminalState(), TerminalState()
        self.shots: list[tuple[Frame, Frame]] = []
        self.evictions = 0

    def __call__(self, record: Record) -> None:
        for scene in self.scenes:
            scene.follow(record)
        self._look()

    def evicted(self, eviction: Eviction) -> None:
        self.scenes[0].evicted(eviction)
        self.evictions += 1
        self._look()

    def _look(self) -> None:
        short, full = (scene.frame(0) for scene in self.scenes)
        self.shots.append((short, full))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("keep", KEPT)
def test_every_picture_is_the_same(keep: int) -> None:
    """After each record and each eviction of random sessions."""
    evictions = 0
    for number in range(0, 40, 2):
        schedule = Schedule(number, "simulator", frozenset(), keep=keep, limit_s=6.0)
        shown = Shown()
        with letting_go(schedule.run()) as lets:
            run = lets.run
            simulate(run.team, run.problem, setup=run.setup, script=run.script, sink=shown)
        assert all(short == full for short, full in shown.shots)
        evictions += shown.evictions
    assert evictions >= 10


def test_a_view_of_a_long_session_stays_small() -> None:
    """What was answered is gone, and the latest delivery is shown though its event is."""
    console = Console(file=io.StringIO(), width=80, _environ={})
    with LiveView(console) as view:
        stage = Stage(session=True, keep=0, sink=view)
        serve(stage, 100)
        stage.monitor.tick()
        scene = view._scene
        shot = scene.frame(0)
        assert scene._graph.history.rows < 20 and not scene._graph.knows("e200")
        assert "200 events, 0 open, 100 turns" in shot.counts and shot.moving == 0
        assert shot.released.startswith("e200 ")


def test_an_answer_that_nobody_can_get_any_more_is_not_on_its_way() -> None:
    """One that was sent to nobody waits for a verdict for good, or until it is let go of."""
    shown, gate = Shown(), Keeper(["e2"], seconds=1e6)
    stage = Stage(session=True, keep=20, gates=[gate])
    stage.monitor.follow(shown)
    stage.give("ab")
    stage.turn("a", answer())
    stage.monitor.redirect("e2", ())
    stage.monitor.resolve(gate, "e2", ())
    stage.turn("b", answer())
    assert [shot.moving for shot in shown.shots[-1]] == [1, 1]
    serve(stage, 50)
    assert [shot.moving for shot in shown.shots[-1]] == [0, 1]


def test_a_view_that_cannot_let_go_stops_itself_and_not_the_run() -> None:
    """It says so at the end, and the run has no incident of it."""
    file = io.StringIO()
    with LiveView(Console(file=file, width=80, _environ={})) as view:
        stage = Stage(session=True, keep=0)
        stage.monitor.follow(view)
        view.evicted(Eviction(0, 0, None, frozenset()))  # type: ignore[arg-type]
        serve(stage, 20)
    assert "the live view failed, the run did not: TypeError" in file.getvalue()
    assert not rows(stage.sink, "incident")
