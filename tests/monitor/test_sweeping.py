"""Sweeping: when a session lets go of its history, and that everybody forgets what is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from dig import Detector, Healer, Hold, InteractionGraph, Pending, Record
from dig.detectors import standard
from dig.detectors.finding import Finding
from dig.detectors.patterns.early_termination import HealEarlyTermination
from dig.detectors.patterns.orphaned_event import HealOrphanedEvent, OrphanedEvent
from dig.errors import RequestError, SettingsError
from dig.graph.records import Limits
from dig.monitor.messages import Raised
from dig.monitor.monitor import KEEP
from dig.runtime import Setup
from dig.runtime.setup import MOST_FINDINGS, Tally
from tests.helpers import Keeper, Stage, answer, out, rows, serve

LIMITS = Limits(mc_window_s=2.0, oe_window_s=1.0, dl_window_s=2.0)


@pytest.mark.parametrize("keep", [-1, 2.5, True, "all"])
def test_what_is_no_number_of_records_is_refused(keep: Any) -> None:
    """With what it should be."""
    with pytest.raises(SettingsError, match="keep must be a non-negative number of records"):
        Stage(session=True, keep=keep)


def test_a_session_stays_short() -> None:
    """However many requests were answered, a few rows are left, and ids go on."""
    stage = Stage(session=True, keep=10)
    serve(stage, 200)
    assert stage.graph.history.rows < 100
    assert stage.graph.event_count == 400 and rows(stage.sink, "emit")[-1].event == "e400"


@pytest.mark.parametrize("more", [{"session": True}, {"keep": 10}])
def test_all_is_kept_if_nothing_is_said_and_in_other_runs(more: dict[str, Any]) -> None:
    """Only a session lets go of anything, and only if it is told what to keep."""
    stage = Stage(**more)
    for _ in range(100):
        stage.give()
        stage.turn("a", out("b"))
        stage.turn("b")
    assert len(stage.graph.history.event_ids) == 200


def test_what_was_used_up_can_be_sent_again_while_it_is_known() -> None:
    """Within the records that are kept; later it is refused, and the run goes on."""
    stage = Stage(session=True, keep=10)
    serve(stage, 1)
    stage.monitor.redirect("e1", ("b",), again="?")
    assert list(stage.graph.event("e1").copies) == ["b"]
    stage.turn("b")
    serve(stage, 100)
    with pytest.raises(RequestError, match="evicted"):
        stage.monitor.redirect("e1", ("b",), again="?")
    serve(stage, 1)


def test_a_redirect_that_was_refused_leaves_nothing_behind() -> None:
    """What it was to carry is forgotten, so that a later one is refused like any other."""
    stage = Stage(session=True, keep=10)
    serve(stage, 1)
    with pytest.raises(RequestError, match="no list of agents' names"):
        stage.monitor.redirect("e1", "b", again="?")
    with pytest.raises(RequestError, match="used up"):
        stage.monitor.redirect("e1", ("b",))


def test_what_arrived_at_its_time_is_put_off_no_more() -> None:
    """Else a session would remember every event that healing has put off, for good."""
    stage = Stage(detectors=standard(), healers={"ET": HealEarlyTermination()})
    postponed = stage.monitor._schedule.postponed
    stage.give("a")
    stage.give("b")
    stage.start("b")
    stage.turn("a", answer())
    stage.turn("a", answer())
    assert postponed == {"a": ["e4"]}
    stage.wait(1.0)
    assert list(stage.graph.event("e4").copies) == ["a"] and postponed == {}


class Stumbling(OrphanedEvent):
    """OE, which fails at its first look."""

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        if graph.t == 1:
            raise LookupError("its first look")
        return super().detect(graph, record)


def test_what_a_detector_will_speak_of_is_not_gone_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that begins late, since it failed once, raises what it has to, and is listened to."""
    monkeypatch.setattr("dig.monitor.monitor.GROWTH", 1)
    healers = {"OE": HealOrphanedEvent()}
    stage = Stage(session=True, keep=0, limits=LIMITS, detectors=[Stumbling()], healers=healers)
    stage.give("")
    stage.wait(2)
    stage.monitor.redirect("e1", ("nobody",))
    stage.wait(2)
    assert [row.detail["who"] for row in rows(stage.sink, "incident")] == ["detector OE"]
    assert [row.subject for row in rows(stage.sink, "finding")] == [{"event": "e1"}]
    stage.give()
    assert stage.graph.knows("e1")  # a note about it is still to be read
    for agent in stage.graph.agents:
        stage.turn(agent)
    stage.give()
    assert not stage.graph.knows("e1")


class Curious:
    """A gate that is asked about everything."""

    name = "curious"

    def hold(self, graph: InteractionGraph, event: Pending) -> Hold | None:
        return None

    async def decide(self, event: Pending) -> tuple[()]:
        return ()


def test_gates_and_holds_forget_what_is_gone() -> None:
    """Whom was asked about an event, and which answers were sent elsewhere."""
    stage = Stage(session=True, keep=0, gates=[Curious()])
    for _ in range(50):
        stage.give()
        stage.turn("a", out("b"))
        stage.turn("b", answer())
    assert len(stage.monitor._gates._asked_events) < 10
    assert len(stage.monitor._holds.diverted) == 0


def test_lost_events_take_their_mail_with_them() -> None:
    """What an event carries that nobody can ever be shown is dropped with it."""
    stage = Stage("ab", session=True, keep=0, limits=LIMITS, detectors=standard())
    for _ in range(50):
        stage.give("", "a payload")
        stage.wait(5)
    assert len(stage.monitor._holds.payloads._carried) < 5 > len(stage.graph.orphans())
    assert len(rows(stage.sink, "finding")) >= 98


def test_detectors_and_healers_forget_what_is_gone() -> None:
    """What OE was raised about, what went back once, and which lists an answer came back with."""
    graph = InteractionGraph()
    detector, orphans, early = OrphanedEvent(), HealOrphanedEvent(), HealEarlyTermination()
    detector._raised, orphans._returned = {"e1": 0}, {"e1"}
    early._wait_s("a", {"unresolved": ["e1"], "uncovered": []})
    for one in (detector, orphans, early):
        one.forget(graph)
    assert not (detector._raised or orphans._returned or early._bounces)


class Stubborn(Detector, Healer):
    """A detector that does not want to forget."""

    pattern = "stubborn"

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        return iter(())

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Any]:
        return iter(())

    def forget(self, graph: InteractionGraph) -> None:
        raise RuntimeError("never")


def test_who_fails_to_forget_is_contained() -> None:
    """It is an incident, and what else is kept goes as well."""
    part = Stubborn()
    stage = Stage(session=True, keep=0, detectors=[part], healers={"stubborn": part})
    serve(stage, 50)
    failed = {row.detail["who"] for row in rows(stage.sink, "incident")}
    assert failed == {"detector stubborn", "healer of stubborn"}
    assert stage.graph.history.rows < 20


def test_a_setup_keeps_a_while_if_it_is_a_session() -> None:
    """By default; other runs keep all."""
    assert Setup().kept_records is None
    assert Setup(session=True).kept_records == KEEP
    assert Setup(session=True, keep=None).kept_records is None


def test_of_many_findings_the_latest_stay_and_all_are_counted() -> None:
    """In a session that lets go of history; in another one all stay."""
    found = [Raised(Finding("ET", n, n, {}, {})) for n in range(MOST_FINDINGS + 5)]
    stage = Stage()
    short, full = Setup(session=True).tally(stage.monitor), Tally()
    for tally in (short, full):
        tally.count(found)
    result = short.result(stage.graph, "")
    assert [f.t for f in result.findings] == list(range(5, MOST_FINDINGS + 5))
    assert result.raised() == full.result(stage.graph, "").raised() == {"ET": MOST_FINDINGS + 5}


def test_alarms_about_what_is_answered_are_forgotten() -> None:
    """Though one request that is not, with a long window, would come due before them."""
    calm = Limits(mc_window_s=1e6, oe_window_s=1e6, dl_window_s=1e6)
    stage = Stage(session=True, keep=0, limits=calm, detectors=standard())
    stage.give("b")
    for _ in range(300):
        stage.give("a")
        stage.wait(1.0)
        stage.turn("a", answer())
    parts = stage.monitor._recorder.watch._parts
    alarms = [one for part in parts for one in getattr(part.detector, "_alarms", ())]
    assert 0 < len(alarms) < 30 and stage.monitor.next_deadline() == 1e6


def test_orphans_that_are_none_any_more_are_forgotten() -> None:
    """Though one that still is would come due before them."""
    stage = Stage(
        session=True, keep=0, limits=Limits(oe_window_s=1e6), detectors=[watch := OrphanedEvent()]
    )
    stage.give("")
    for number in range(300):
        stage.give("")
        stage.monitor.redirect(f"e{2 * number + 2}", ("a",))
        stage.turn("a", answer())
    assert len(watch._queue) < 30


def test_deadlines_of_gates_that_have_decided_are_forgotten() -> None:
    """Though one that has not has an earlier one."""
    gate = Keeper([f"e{n}" for n in range(1000)], seconds=1e6)
    stage = Stage("abc", session=True, keep=0, gates=(gate,))
    stage.give("b")
    stage.turn("b", answer())
    for number in range(300):
        stage.give("a")
        stage.turn("a", answer())
        stage.monitor.resolve(gate, f"e{2 * number + 4}", ())
    gates = stage.monitor._gates
    assert len(gates._late) < 30 and list(gates.deciding) == ["e2"]
