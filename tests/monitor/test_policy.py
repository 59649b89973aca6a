"""A policy in the monitor: what is healed, silenced, and asked about; what is no work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dig import Create, Inject, Output, Reroute
from dig.detectors import standard, standard_healers
from dig.detectors.finding import Severity
from dig.detectors.interventions import Intervention
from dig.detectors.policy import Policy, Rule
from dig.graph.codec import encode
from dig.graph.records import CHANGING, FindingRow, Record
from dig.monitor.messages import Answered, Delivered, Proposed, Raised
from dig.runtime import Setup, simulate
from tests.chaos import chaos_run
from tests.helpers import Heals, Recorder, Sees, Stage, answer, flag, of, out, rows, two_detectors

MOVE = (Reroute("e2", "go there", ("c",)),)


def staged(
    policy: Policy, wishes: Sequence[Intervention] = MOVE, severity: Severity = "error",
    pattern: str = "SEEN", about: str | None = "e2", **more: Any,
) -> Stage:  # fmt: skip
    """A team in which something is found about e2, the event that a sends to b."""

    def look(graph: Any, record: Record) -> Any:
        if record.kind == "emit" and record.event == "e2":  # type: ignore[union-attr]
            subject = {} if about is None else {"event": about}
            finding = flag(record, pattern, **subject)
            return [type(finding)(**{**_fields(finding), "severity": severity})]
        return []

    stage = Stage(
        "abc", detectors=[Sees(look, pattern)], healers={pattern: Heals(lambda g, f: wishes)},
        policy=policy, **more,
    )  # fmt: skip
    stage.give("a")
    return stage


def _fields(finding: Any) -> dict[str, Any]:
    names = ("pattern", "t", "us", "subject", "evidence")
    return {name: getattr(finding, name) for name in names}


def done(stage: Stage) -> list[str]:
    return [row.action for row in rows(stage.sink, "heal")]


def asking(**more: Any) -> Policy:
    return Policy((Rule(action="ask", reason="costly", **more),))


def delivered(effects: Sequence[Any]) -> list[str]:
    return [f"{one.event} to {one.agent}" for one in of(Delivered, effects)]


@pytest.mark.parametrize(
    ("severity", "pattern", "actions"),
    [
        ("error", "SEEN", ["reroute"]), ("warning", "SEEN", ["inject"]), ("notice", "SEEN", []),
        ("notice", "RSP", ["inject"]),
    ],
)  # fmt: skip
def test_healing_goes_by_severity(severity: Severity, pattern: str, actions: list[str]) -> None:
    """Errors with all means, warnings and RSP by notes, notices not at all; no row says so."""
    stage = staged(Policy(), severity=severity, pattern=pattern)
    to = "c" if severity == "error" else "b"
    assert delivered(stage.turn("a", out("b"))) == [f"e2 to {to}"]
    assert done(stage) == actions
    assert stage.start(to).events[0].notes == (("go there",) if actions else ())


def test_where_notes_alone_are_allowed_they_stand_beside_events() -> None:
    """No system event is made, and nobody is woken, even if nothing else is left to do."""
    both = (Create("all of you", ("c",)), Inject("e2", "look"))
    for wishes, actions in ((both, ["inject"]), (both[:1], [])):
        stage = staged(Policy(), wishes, "warning")
        stage.turn("a", out("b"))
        assert done(stage) == actions


def test_what_is_off_is_recorded_and_silenced() -> None:
    """It is no alarm and is not healed; observed, it is an alarm, and is not healed either."""
    for action, silenced in (("off", "for fun"), ("observe", None)):
        rule = Rule(action=action, pattern="SEEN", reason="for fun")  # type: ignore[arg-type]
        stage = staged(Policy((rule,), heal="all"))
        effects = stage.turn("a", out("b"))
        assert [row.silenced for row in rows(stage.sink, "finding")] == [silenced]
        [raised] = of(Raised, effects)
        assert raised.finding.is_alarm is (silenced is None)
        assert delivered(effects) == ["e2 to b"]
        assert done(stage) == []


def test_a_rule_may_heal_what_severity_would_leave() -> None:
    """With all means."""
    stage = staged(Policy((Rule(action="heal", types=("message",)),)), severity="notice")
    assert delivered(stage.turn("a", out("b"))) == ["e2 to c"]


def graph_records(records: Sequence[Record]) -> list[str]:
    """What changes the graph, without the numbers of lines."""
    return [encode(record).partition(',"ts"')[2] for record in records if type(record) in CHANGING]


@pytest.mark.parametrize("seed", range(12))
def test_switching_off_and_observing_lead_to_the_same_graph(seed: int) -> None:
    """Only `silenced` tells them apart, whichever patterns the rules are about."""
    run = chaos_run(seed, heal=True)
    told: list[Recorder] = []
    for action in ("off", "observe"):
        rules = [Rule(action=action, pattern=p) for p in ("ET", "CLA", "RSP", "DL")]
        sink = Recorder()
        setup = Setup(
            seed=seed, limits=run.setup.limits, detectors=standard, healers=standard_healers,
            policy=Policy(tuple(rules)), limit_s=2.5,
        )  # fmt: skip
        simulate(run.team, run.problem, setup=setup, sink=sink)
        told.append(sink)
    assert graph_records(told[0]) == graph_records(told[1])
    silenced = [[row.silenced for row in rows(sink, "finding")] for sink in told]
    patterns = [row.pattern for row in told[0] if isinstance(row, FindingRow)]
    assert [s is not None for s in silenced[0]] == [
        p in ("ET", "CLA", "RSP", "DL") for p in patterns
    ]
    assert set(silenced[1]) <= {None}


# --- ask ---


def test_a_held_event_is_kept_while_a_person_decides_and_no_agent_waits() -> None:
    """With the consent it is healed and released; what concerns it not goes on meanwhile."""
    stage = staged(asking())
    effects = stage.turn("a", out("b"), out("c"))
    assert delivered(effects) == ["e3 to c"]
    [proposed] = of(Proposed, effects)
    assert (proposed.reason, proposed.seconds, proposed.interventions) == ("costly", 60.0, MOVE)
    assert rows(stage.sink, "incident")[0].detail["event"] == "e2"  # it waits on purpose
    assert delivered(stage.monitor.decide(proposed.row, True)) == ["e2 to c"]
    said = {"finding": proposed.row, "pattern": "SEEN", "heal": True, "by": "person"}
    assert [row.detail for row in rows(stage.sink, "incident")][1:] == [said]
    assert [(row.action, row.about) for row in rows(stage.sink, "heal")] == [
        ("reroute", proposed.about.row())
    ]
    assert stage.monitor.decide(proposed.row, True) == []  # twice


def test_without_consent_the_event_is_released_as_it_is() -> None:
    """And the trace says why it was not healed."""
    stage = staged(asking())
    [proposed] = of(Proposed, stage.turn("a", out("b")))
    assert delivered(stage.monitor.decide(proposed.row, False)) == ["e2 to b"]
    [row] = rows(stage.sink, "heal")
    assert (row.action, row.reason) == ("refused", "a person decided to leave it")


@pytest.mark.parametrize(("otherwise", "to"), [("heal", "c"), ("leave", "b")])
def test_the_deadline_decides_on_the_monitors_clock(otherwise: Any, to: str) -> None:
    """What is decided after it has no effect."""
    stage = staged(asking(deadline_s=5.0, otherwise=otherwise))
    [proposed] = of(Proposed, stage.turn("a", out("b")))
    assert stage.monitor.next_deadline() == 5.0
    assert delivered(stage.wait(4.9)) == []
    assert delivered(stage.wait(0.1)) == [f"e2 to {to}"]
    assert rows(stage.sink, "incident")[-1].detail["by"] == "deadline"
    before = len(stage.sink)
    assert stage.monitor.decide(proposed.row, otherwise == "leave") == []
    assert len(stage.sink) == before


def test_without_an_event_to_hold_the_healing_waits_and_not_the_team() -> None:
    """Its event, or a system event, is sent when the person agrees."""
    stage = staged(asking(), (Create("wake up", ("c",)),), about=None)
    effects = stage.turn("a", out("b"))
    assert delivered(effects) == ["e2 to b"]
    [proposed] = of(Proposed, effects)
    assert delivered(stage.monitor.decide(proposed.row, True)) == ["e3 to c"]


def test_a_host_that_cannot_hold_lets_the_event_go() -> None:
    """Then what has arrived cannot be sent elsewhere any more, and the trace says so."""
    stage = staged(asking(), can_hold=False)
    effects = stage.turn("a", out("b"))
    assert delivered(effects) == ["e2 to b"]
    stage.monitor.decide(of(Proposed, effects)[0].row, True)
    [row] = rows(stage.sink, "heal")
    assert row.reason == "event 'e2' had arrived before a decision was there"


def test_what_was_used_up_meanwhile_is_not_healed() -> None:
    """A note needs an event that an agent will still be shown."""
    stage = staged(asking(), (Inject("e2", "look"),), can_hold=False)
    [proposed] = of(Proposed, stage.turn("a", out("b")))
    stage.turn("b")
    stage.monitor.decide(proposed.row, True)
    assert "used up" in rows(stage.sink, "heal")[0].reason


def test_an_event_that_its_host_sends_on_is_kept_no_longer() -> None:
    """The question stays open."""
    stage = staged(asking(), (Inject("e2", "look"),))
    [proposed] = of(Proposed, stage.turn("a", out("b")))
    assert delivered(stage.monitor.redirect("e2", ["b"])) == ["e2 to b"]
    stage.monitor.decide(proposed.row, True)
    assert stage.start("b").events[0].notes == ("look",)


def test_a_notice_to_its_own_sender_is_never_kept() -> None:
    """Continuations carry a turn on; nothing waits for their release."""
    stage = staged(asking(), (Inject("e2", "look"),))
    assert delivered(stage.turn("a", out("a", type="notice"))) == ["e2 to a"]


def test_an_early_answer_waits_for_a_person_and_then_goes_back_in_its_own_time() -> None:
    """An answer that healing puts off is not released with the decision."""
    policy = Policy((Rule(action="ask", pattern="ET"),))
    stage = Stage("ab", detectors=two_detectors(), healers=standard_healers(), policy=policy)
    stage.give("a")
    stage.turn("a", out("b"), out("a"))
    stage.start("b")
    for back in (["e4 to a"], []):  # the second is put off for a second
        effects = stage.turn("a", answer())
        assert of(Answered, effects) == []
        [proposed] = of(Proposed, effects)
        assert delivered(stage.monitor.decide(proposed.row, True)) == back
    assert delivered(stage.wait(1.0)) == ["e5 to a"]


def test_a_person_who_cannot_be_asked_leaves_it_to_the_deadline() -> None:
    """What went wrong is written down."""
    stage = staged(asking(deadline_s=5.0, otherwise="heal"))
    [proposed] = of(Proposed, stage.turn("a", out("b")))
    assert delivered(stage.monitor.decide(proposed.row, False, "raised Oops()")) == []
    detail = {"who": "approve", "what": "raised Oops()"}
    assert rows(stage.sink, "incident")[-1].detail == detail
    assert delivered(stage.wait(5.0)) == ["e2 to c"]


# --- what is no work ---


def test_what_goes_to_certain_agents_alone_enters_as_a_notice() -> None:
    """Also to their instances, and from outside; not what others get too, nor an answer."""
    stage = Stage(["a", "log", "log#2"], policy=Policy(notices=("log",)))
    stage.give("a")
    started = stage.start("a")
    to: list[tuple[str, ...]] = [("log",), ("log", "log#2"), ("log", "a"), ()]
    stage.monitor.end(started.activation, (), [Output("!", names) for names in to])
    stage.monitor.inject(Output("?", ("log",), "problem"))
    types = [row.type for row in rows(stage.sink, "emit")]
    assert types == ["problem", "notice", "notice", "message", "message", "notice"]
