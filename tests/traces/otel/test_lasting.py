"""What lasts: findings until they are mended, waits until they are over, and signs of open work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from dig import Output
from dig.detectors import standard
from dig.detectors.patterns import BY_NAME
from dig.errors import SettingsError
from dig.graph.codec import decode
from dig.graph.records import TOOL, Limits
from dig.monitor.messages import Hold, Pending
from dig.traces.otel import instrument
from dig.traces.otel.content import Content
from dig.traces.otel.environment import OPEN_VARIABLE, open_s_of_environment
from dig.traces.otel.follow import Follower
from dig.traces.otel.ids import Origin
from dig.traces.otel.items import Item, Level, Span
from dig.traces.otel.mapping import MOST_NAMED, Mapping
from tests.helpers import Stage, answer, out
from tests.histories import row, trace

from .expected import Told
from .test_follow import Kept, id_of
from .test_mapping import ORIGIN, every_span, mapped, spans

LONG_S = 60.0  # for what comes at once, unless something is broken


def ns(seconds: float) -> int:
    return ORIGIN.moment(round(seconds * 1_000_000))


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


# --- findings ---


def lost_work() -> Stage:
    """`a` sends `e2` to nobody at 1 s; the orphan is found at 11 s."""
    stage = Stage("ab", detectors=standard(), limits=Limits(300.0, 10.0, 300.0))
    stage.give("a")
    stage.clock.now = 1.0
    stage.turn("a", out(""))
    stage.clock.now = 11.0
    stage.monitor.tick()
    return stage


def test_a_finding_lasts_from_its_evidence_until_it_is_mended() -> None:
    """The orphan is sent again at 20 s and consumed at 25 s."""
    stage = lost_work()
    stage.clock.now = 20.0
    stage.monitor.redirect("e2", ("b",))
    stage.clock.now = 25.0
    stage.turn("b", out("a"))
    span = spans(stage.sink)["dig.finding OE"]
    assert (span.start_ns, span.end_ns) == (ns(1), ns(25))
    assert span.attributes["dig.mended"] is True
    assert [(mark.name, mark.ns) for mark in span.marks] == [("dig.finding.raised", ns(11))]


def test_a_finding_that_nothing_mends_lasts_until_the_end() -> None:
    stage = lost_work()
    stage.clock.now = 90.0
    stage.monitor.finish("stopped")
    span = spans(stage.sink)["dig.finding OE"]
    assert (span.end_ns, span.attributes["dig.mended"]) == (ns(90), False)


def test_a_finding_ends_with_its_segment() -> None:
    """Else what is remembered would grow for as long as a session lives."""
    stage = lost_work()
    stage.clock.now = 3 * 3600.0
    stage.give("b")
    (span,) = [span for span in every_span(mapped(stage.sink)) if span.name == "dig.finding OE"]
    assert (span.end_ns, span.attributes["dig.mended"]) == (ns(3 * 3600), False)


def test_what_no_run_can_mend_ends_when_it_is_raised() -> None:
    lines = trace(row(1, "finding", pattern="RSP", stage=None, subject={}, evidence={}))
    span = spans(map(decode, lines))["dig.finding RSP"]
    assert span.end_ns == ns(1) and "dig.mended" not in span.attributes


def test_a_finding_of_a_users_detector_with_our_name_is_no_trouble() -> None:
    lines = trace(row(1, "finding", pattern="OE", stage=None, subject=["?"], evidence=7))
    assert spans(map(decode, lines))["dig.finding OE"].end_ns == ns(1)


# --- waits ---


class Keeper:
    """Keeps each event for up to five seconds."""

    name = "keeper"

    def hold(self, graph: Any, event: Pending) -> Hold | None:
        return Hold(5.0)

    async def decide(self, event: Pending) -> Iterable[Any]:
        return ()


@pytest.mark.parametrize("decides", [True, False])
def test_an_event_that_a_gate_keeps_is_a_wait_with_its_limit_and_end(decides: bool) -> None:
    gate = Keeper()
    stage = Stage("ab", gates=[gate])
    stage.give("a")
    stage.turn("a", out("b"))
    stage.clock.now = 2.0 if decides else 5.0
    if decides:
        stage.monitor.resolve(gate, "e2", ())
    stage.monitor.tick()
    found = spans(stage.sink)
    span = found["dig.wait"]
    assert (span.start_ns, span.end_ns) == (ns(0), ns(stage.clock.now))
    assert (span.attributes["dig.wait.id"], span.attributes["dig.wait.limit_s"]) == ("e2", 5.0)
    assert span.parent_id == found["a1"].span_id


def test_a_turn_that_waits_for_a_person_is_a_wait_below_it() -> None:
    stage = Stage("ab")
    stage.give("a")
    started = stage.start("a")
    stage.clock.now = 1.0
    stage.monitor.waits(activation="a1")
    assert spans(stage.sink)["dig.wait"].attributes["dig.unfinished"] == "still going"
    stage.clock.now = 9.0
    stage.finish(started, answer())
    found = spans(stage.sink)
    assert (found["dig.wait"].start_ns, found["dig.wait"].end_ns) == (ns(1), ns(9))
    assert found["dig.wait"].parent_id == found["a1"].span_id
    assert "dig.unfinished" not in found["dig.wait"].attributes


@pytest.mark.parametrize("payloads", [False, True])
def test_the_question_of_a_wait_leaves_with_payloads_alone(payloads: bool) -> None:
    """Neither the span nor the log record has it, nor how to answer."""
    stage = Stage("ab")
    stage.give("a")
    stage.start("a")
    stage.monitor.waits(activation="a1", asks="May I pay Smith?", answer="resume with Jones")
    told = str(mapped(stage.sink, content=Content(payloads=payloads)))
    assert "dig.wait" in told
    assert ("Smith" in told, "Jones" in told) == (payloads, payloads)


def test_a_wait_of_nothing_known_is_passed_over() -> None:
    lines = trace(row(1, "incident", what="waits", detail={"activation": ["?"]}))
    assert "dig.wait" not in spans(map(decode, lines))


# --- signs of what is open ---


def hung(now_s: float) -> tuple[Mapping, list[Item]]:
    """`a` has been at work since 0 s, and nothing happens."""
    stage = Stage("ab")
    stage.give("a")
    stage.start("a")
    mapping = Mapping(ORIGIN)
    for record in stage.sink:
        mapping.feed(record)
    return mapping, mapping.tick(ns(now_s), 30.0)


def test_a_turn_that_hangs_has_a_sign_at_each_tick_and_an_age() -> None:
    """The first sign of a trace has no parent, since viewers list traces by such spans."""
    mapping, items = hung(45.0)
    sign, level = items
    assert isinstance(sign, Span) and isinstance(level, Level)
    assert (sign.name, sign.start_ns, sign.end_ns) == ("dig.open", ns(45), ns(45))
    assert (sign.parent_id, sign.trace_id) == (None, ORIGIN.trace_id(0))
    assert sign.attributes["output.value"] == "invoke_agent a: open for 45 s"
    assert (level.metric, level.value) == ("dig.open.age", 45.0)
    assert level.attributes == (("gen_ai.agent.name", "a"),)
    later, _ = mapping.tick(ns(75), 30.0)
    assert isinstance(later, Span)
    assert (later.parent_id, later.start_ns) == (ORIGIN.activation("a1"), ns(75))
    assert later.span_id != sign.span_id


def test_what_is_not_open_for_long_has_no_sign() -> None:
    assert hung(20.0)[1] == []


def test_the_age_of_an_agent_falls_to_nothing_when_it_is_done() -> None:
    stage = Stage("ab")
    stage.give("a")
    started = stage.start("a")
    mapping = Mapping(ORIGIN)
    for record in stage.sink:
        mapping.feed(record)
    mapping.tick(ns(40), 30.0)
    before = len(stage.sink)
    stage.finish(started, out("b"))
    for record in stage.sink[before:]:
        mapping.feed(record)
    ages = [mapping.tick(ns(at), 30.0) for at in (70, 100)]
    assert ages == [[Level("dig.open.age", 0.0, (("gen_ai.agent.name", "a"),))], []]


def test_a_standing_finding_and_a_wait_have_signs() -> None:
    stage = lost_work()
    stage.give("b")
    stage.start("b")
    stage.monitor.waits(activation="a2")
    mapping = Mapping(ORIGIN)
    for record in stage.sink:
        mapping.feed(record)
    signs = [item for item in mapping.tick(ns(60), 30.0) if isinstance(item, Span)]
    about = [str(sign.attributes["output.value"]).partition(":")[0] for sign in signs]
    assert about == ["invoke_agent b", "dig.wait", "dig.finding OE"]


def test_an_agent_that_hangs_is_seen_while_it_hangs() -> None:
    """Through the SDK: the run goes on, and the signs and the age are there already."""
    kept, stage = Kept(), Stage()
    follower = instrument(
        stage.monitor, tracer_provider=kept.tracer, meter_provider=kept.meter,
        logger_provider=kept.logger, origin=Origin("run-1", time.time_ns()), open_s=0.05,
    )  # fmt: skip
    stage.give("a")
    started = stage.start("a")
    until(lambda: len(kept.exporter.get_finished_spans()) >= 3)
    signs = kept.exporter.get_finished_spans()
    assert {span.name for span in signs} == {"dig.open"}
    assert "dig.open.age" in kept.metrics()
    stage.finish(started, answer())
    stage.monitor.finish("submitted")
    follower.close()
    ended = kept.spans()["a1"]
    parents = [span.parent.span_id for span in signs if span.parent]
    assert set(parents) == {id_of(ended)} and len(parents) == len(signs) - 1


@pytest.mark.parametrize("options", [{"open_s": 0.0}, {"open_s": 0.05, "may_wait": True}])
def test_without_a_clock_of_its_own_or_if_switched_off_nothing_has_a_sign(
    options: dict[str, Any],
) -> None:
    """In virtual time nothing hangs for any real time."""
    kept, stage = Kept(), Stage()
    follower = Follower(kept.writer, ORIGIN, **options)
    follower.attach(stage.monitor)
    stage.give("a")
    stage.start("a")
    time.sleep(0.5)
    follower.close()
    assert "dig.open" not in kept.spans()


def test_the_environment_may_say_how_often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_s_of_environment(30.0) == 30.0
    monkeypatch.setenv(OPEN_VARIABLE, "5")
    assert open_s_of_environment(30.0) == 5.0
    monkeypatch.setenv(OPEN_VARIABLE, "often")
    with pytest.raises(SettingsError, match="DIG_OTLP_OPEN_S='often'"):
        open_s_of_environment(30.0)


# --- names ---


def test_a_run_has_few_names_of_spans(told: Told) -> None:
    """Ids and deeds are attributes: backends keep figures for each name."""
    agents = {acted.agent for acted in told.acted.values()}
    names = {span.name for span in every_span(mapped(told.records))}
    assert len(names) <= 12 + len(agents)


def test_names_are_few_whatever_is_found_and_waits() -> None:
    """All patterns, and any number of a user's own."""
    patterns = [*BY_NAME, *(f"MINE{number}" for number in range(20))]
    lines = trace(
        row(0, "incident", what="waits", detail={"event": "p"}),
        *(row(1, "finding", pattern=p, stage=None, subject={}, evidence={}) for p in patterns),
    )
    names = {span.name for span in every_span(mapped(map(decode, lines)))}
    assert len([name for name in names if name.startswith("dig.finding")]) == MOST_NAMED + 1
    assert len({*names, "dig.heal", "dig.wait", "dig.open"}) <= 13


def test_instances_of_an_agent_have_its_name() -> None:
    stage = Stage(["ada", "ada#2"])
    for agent in ("ada", "ada#2"):
        stage.monitor.inject(_to(agent))
        stage.turn(agent)
    found = spans(stage.sink)
    names = ("gen_ai.agent.name", "dig.agent.name")
    assert {found[id].name for id in ("a1", "a2")} == {"invoke_agent ada"}
    assert [found["a2"].attributes[name] for name in names] == ["ada", "ada#2"]


def test_a_tool_is_executed() -> None:
    """A tool that is shown as an agent has the names of the conventions for tools."""
    tool = f"{TOOL}weather"
    stage = Stage([tool])
    stage.monitor.inject(_to(tool))
    stage.turn(tool)
    items = mapped(stage.sink)
    (span,) = [s for s in every_span(items) if "dig.activation.id" in s.attributes]
    assert span.name == "execute_tool weather"
    keys = ("openinference.span.kind", "gen_ai.operation.name", "gen_ai.tool.name")
    assert [span.attributes[key] for key in keys] == ["TOOL", "execute_tool", "weather"]
    assert "gen_ai.execute_tool.duration" in {getattr(item, "metric", "") for item in items}


def _to(agent: str) -> Any:
    return Output("?", (agent,), "problem")


# --- rings ---


def test_a_livelock_names_its_ring() -> None:
    """In the order in which the agents hand on, with the number of rounds."""
    limits = Limits(livelock_turns=6, livelock_agents=3)
    stage = Stage("cab", detectors=standard(), limits=limits)
    stage.give("c")
    for turn in range(6):
        stage.turn("cab"[turn % 3], out("cab"[(turn + 1) % 3], payload=turn))
    text = spans(stage.sink)["dig.finding LIVELOCK"].attributes["dig.finding.text"]
    assert str(text).startswith("c, a and b have gone round 2 times")
