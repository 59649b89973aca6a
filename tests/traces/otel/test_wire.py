"""A long run over the real wire: a receiver gets every span, and each is what the trace says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any

import pytest

from dig.detectors.finding import PAST
from dig.graph import records as kinds
from dig.traces.otel import ids
from dig.traces.otel.follow import Follower
from dig.traces.otel.ids import Origin
from dig.traces.otel.lasting import MENDABLE
from dig.traces.otel.otlp import ExportReport, Otlp

from .expected import BEGAN_NS, Acted, Told
from .receiver import Received, attributes, grpc_receiver, http_receiver, points

ORIGIN = Origin("20260101-000000-abcdef", BEGAN_NS)
INTERNAL, ERROR = 1, 2
MOST_DEPTH = 12
SEGMENT_RECORDS = 4_000
KIND = "openinference.span.kind"
RAISED = "dig.finding.raised"

Receivers = Callable[[], AbstractContextManager[Received]]


def live(told: Told, endpoint: str) -> tuple[Follower, ExportReport]:
    """Export records as they are while a run goes on."""
    otlp = Otlp(endpoint)
    follower = Follower(otlp.writer, ORIGIN)
    for record in told.records:
        follower(record)
    follower.close()
    return follower, otlp.close()


@pytest.fixture(scope="module", params=[http_receiver, grpc_receiver], ids=["http", "grpc"])
def sent(told: Told, request: pytest.FixtureRequest) -> Iterator[tuple[Received, ExportReport]]:
    """What each kind of receiver got, and what the sender says about it."""
    receiver: Receivers = request.param
    with receiver() as received, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "SEGMENT_RECORDS", SEGMENT_RECORDS)
        follower, report = live(told, received.endpoint)
        assert (follower.missed, follower.fault) == (0, "")
        yield received, report


class Tree:
    """Received spans by id, by activation and by record."""

    def __init__(self, spans: list[Any]) -> None:
        self.spans = spans
        self.about = {span.span_id: attributes(span) for span in spans}
        self.by_id = {span.span_id: span for span in spans}
        self.activations = self._by("dig.activation.id", "AGENT")
        self.findings = self._by("dig.finding.t", "EVALUATOR")
        self.roots = {s.trace_id: s for s in spans if s.name.startswith("invoke_workflow")}

    def _by(self, key: str, kind: str) -> dict[Any, Any]:
        """The spans of a kind of OpenInference, by an attribute."""
        spans = [s for s in self.spans if self.about[s.span_id][KIND] == kind]
        return {self.about[s.span_id][key]: s for s in spans}

    def depth(self, span: Any) -> int:
        depth = 0
        while span.parent_span_id:
            above = self.by_id[span.parent_span_id]
            assert above.trace_id == span.trace_id
            depth, span = depth + 1, above
        return depth


@pytest.fixture(scope="module")
def tree(sent: tuple[Received, ExportReport]) -> Tree:
    return Tree(sent[0].spans())


def ns(us: int) -> int:
    return BEGAN_NS + 1000 * us


def test_nothing_is_lost(told: Told, sent: tuple[Received, ExportReport], tree: Tree) -> None:
    """With the defaults everything arrives once, and the sender's count is the receiver's."""
    received, report = sent
    kinds_ = Counter(about[KIND] for about in tree.about.values())
    segments = 1 + told.records[-1].t // SEGMENT_RECORDS
    assert kinds_ == {
        "CHAIN": segments,
        "AGENT": len(told.acted),
        "EVALUATOR": len(told.of("finding")),
        "GUARDRAIL": len(told.of("heal")),
    }
    assert segments > 1
    assert len(tree.by_id) == len(tree.spans)
    assert (report.spans, report.logs) == (len(tree.spans), len(received.logs()))
    assert (report.lost_spans, report.lost_logs, report.metrics) == (0, 0, True)


def test_activations_are_what_the_trace_says(told: Told, tree: Tree) -> None:
    """Name, agent, times, kind, inputs, outputs, errors, and what was not consumed."""
    assert tree.activations.keys() == told.acted.keys()
    for acted in told.acted.values():
        span = tree.activations[acted.id]
        about = tree.about[span.span_id]
        assert (span.name, span.kind) == (f"invoke_agent {acted.agent}", INTERNAL)
        assert about["dig.action"] == action_of(acted, told)
        assert span.start_time_unix_nano == ns(acted.start.us)
        assert acted.stop is not None
        assert span.end_time_unix_nano == ns(acted.stop.us)
        assert about["gen_ai.agent.name"] == about["dig.agent.name"] == acted.agent
        assert about["gen_ai.conversation.id"] == about["session.id"] == ORIGIN.execution
        assert about.get("dig.out.event_ids", []) == [emit.event for emit in acted.outputs]
        assert about.get("dig.out.types", []) == [emit.type for emit in acted.outputs]
        failed = acted.end is not None and acted.end.error is not None
        assert span.status.code == (ERROR if failed else 0)
        assert ("dig.unfinished" in about) == (acted.end is None)
        assert marks(span) == expected_marks(acted, told)


def action_of(acted: Acted, told: Told) -> str:
    """The action of an activation, told from its fates and outputs."""
    fates = [fate.fate for fate in acted.fates(told.made).values()]
    if acted.end is None:
        return "in progress"
    if acted.end.error is not None:
        return "fails"
    if acted.outputs or "consume" in fates:
        return "submits" if any(emit.final for emit in acted.outputs) else "responds"
    if "reroute" in fates:
        return "reroutes"
    if "discard" in fates:
        return "discards"
    return "waits" if fates else "does nothing"


def marks(span: Any) -> list[tuple[str, str]]:
    return [(event.name, attributes(event)["dig.event.id"]) for event in span.events]


def expected_marks(acted: Acted, told: Told) -> list[tuple[str, str]]:
    names = {"delay": "delayed", "reroute": "rerouted", "discard": "discarded"}
    fates = acted.fates(told.made).values()
    return [(f"dig.event.{names[f.fate]}", f.event) for f in fates if f.fate != "consume"]


def test_links_lead_to_where_each_consumed_event_comes_from(told: Told, tree: Tree) -> None:
    """A link for each, with its event; arrays that viewers keep are aligned with them."""
    healings = told.healings()
    for acted in told.acted.values():
        span = tree.activations[acted.id]
        about = tree.about[span.span_id]
        consumed = [e for e, fate in acted.fates(told.made).items() if fate.fate == "consume"]
        assert [attributes(link)["dig.event.id"] for link in span.links] == consumed
        assert about["dig.in.event_ids"] == consumed
        assert about["dig.in.edges"] == [attributes(link)["dig.edge"] for link in span.links]
        for link, event, name in zip(span.links, consumed, about["dig.in.producers"], strict=True):
            by = told.made[event].by
            assert name == (by or "outside")
            assert link.span_id == maker(event, told, healings, tree, span.trace_id)
            assert link.trace_id == tree.by_id[link.span_id].trace_id


def maker(event: str, told: Told, healings: dict[str, int], tree: Tree, trace_id: bytes) -> bytes:
    """The id of the span that made an event."""
    by = told.made[event].by
    if by is None:
        span_id: bytes = tree.roots[trace_id].span_id
    elif by == "system":
        span_id = ORIGIN.record(healings[event]).to_bytes(8)
    else:
        span_id = tree.activations[by].span_id
    return span_id


def test_parents_follow_the_trigger_up_to_a_depth(told: Told, tree: Tree) -> None:
    """The parent made the first event that was new, or is the root where that is too far."""
    depths, healings = [], told.healings()
    for acted in told.acted.values():
        span = tree.activations[acted.id]
        depths.append(tree.depth(span))
        fresh = [e for e in acted.start.inputs if e not in acted.before] or acted.start.inputs
        made_by = maker(fresh[0], told, healings, tree, span.trace_id)
        above = tree.by_id[made_by]
        if above.trace_id == span.trace_id and tree.depth(above) < MOST_DEPTH:
            assert span.parent_span_id == made_by
        else:
            assert span.parent_span_id == tree.roots[span.trace_id].span_id
    assert max(depths) == MOST_DEPTH


def test_findings_and_healing_have_spans_of_their_own(told: Told, tree: Tree) -> None:
    """Healing refers to its finding, a finding to those that it is about; errors are errors."""
    for row in told.of("finding"):
        span, about = tree.findings[row.t], tree.about[tree.findings[row.t].span_id]
        assert span.name == f"dig.finding {row.pattern}"
        assert span.start_time_unix_nano == ns(min([row.us, *evidence_times(row, told)]))
        (raised,) = span.events
        assert (raised.name, raised.time_unix_nano) == (RAISED, ns(row.us))
        lasts = {row.pattern, f"{row.pattern} {row.stage}"} & MENDABLE
        assert ("dig.mended" in about) == bool(lasts)
        assert span.end_time_unix_nano >= ns(row.us)
        assert lasts or span.end_time_unix_nano == ns(row.us)
        assert span.status.code == (ERROR if row.severity == "error" else 0)
        assert about["dig.severity"] == row.severity
        named = {attributes(link)["dig.id"] for link in span.links}
        assert "activation" not in row.subject or row.subject["activation"] in named
    heals = [span for span in tree.spans if span.name == "dig.heal"]
    for row, span in zip(told.of("heal"), heals, strict=True):
        about = tree.about[span.span_id]
        finding = tree.findings[row.finding]
        assert about["dig.heal.action"] == row.action
        refused = row.action == "refused"
        assert about["dig.heal.outcome"] == ("refused" if refused else "applied")
        assert [link.span_id for link in span.links] == [finding.span_id]
        assert span.parent_span_id == finding.span_id


def evidence_times(row: kinds.FindingRow, told: Told) -> list[int]:
    """The times of the events and activations that a finding names, but for the agents."""
    found = []
    parts = [row.subject, {k: v for k, v in row.evidence.items() if (row.pattern, k) not in PAST}]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            parts += [value for key, value in part.items() if key not in ("agent", "path", "cause")]
        elif isinstance(part, list):
            parts += part
        elif part in told.made:
            found.append(told.made[part].us)
        elif part in told.acted:
            found.append(told.acted[part].start.us)
    return found


def test_segments_follow_each_other(told: Told, tree: Tree) -> None:
    """A long run is several traces; each root refers to the one before, all tell the same run."""
    roots = sorted(tree.roots.values(), key=lambda root: tree.about[root.span_id]["dig.segment"])
    assert [len(root.links) for root in roots] == [0] + [1] * (len(roots) - 1)
    for before, root in pairwise(roots):
        assert root.links[0].span_id == before.span_id
        assert root.links[0].trace_id == before.trace_id != root.trace_id
        assert root.start_time_unix_nano == before.end_time_unix_nano
    ids = {tree.about[root.span_id]["gen_ai.conversation.id"] for root in roots}
    assert ids == {ORIGIN.execution}
    assert roots[0].start_time_unix_nano == ns(0)
    assert roots[-1].end_time_unix_nano == ns(told.records[-1].us)


def test_log_records_tell_what_was_found_and_done(
    told: Told, sent: tuple[Received, ExportReport], tree: Tree
) -> None:
    """A log record for each finding, healing, incident and the end, at the span it is about."""
    logs = sent[0].logs()
    assert Counter(log.event_name for log in logs) == {
        "dig.finding": len(told.of("finding")),
        "dig.heal": len(told.of("heal")),
        "dig.incident": len(told.of("incident")),
        "dig.run.end": 1,
    }
    for log in logs:
        span = tree.by_id[log.span_id]
        raised = [event.time_unix_nano for event in span.events if event.name == RAISED]
        assert log.time_unix_nano == (raised or [span.end_time_unix_nano])[0]
        assert log.trace_id == tree.by_id[log.span_id].trace_id
        assert log.body.string_value


def test_metrics_count_what_the_trace_has(told: Told, sent: tuple[Received, ExportReport]) -> None:
    """Edges, findings, healing and times add up to those of the trace."""
    metrics = sent[0].metrics()
    edges = {
        (dict(key)["dig.edge"], dict(key)["gen_ai.agent.name"]): point.as_int
        for key, point in points(metrics["dig.events"]).items()
    }
    assert edges == told.edges()
    assert counts(metrics["dig.findings"], "dig.pattern") == Counter(
        row.pattern for row in told.of("finding")
    )
    assert counts(metrics["dig.heals"], "dig.heal.action") == Counter(
        row.action for row in told.of("heal")
    )
    acted = [a.stop.us - a.start.us for a in told.acted.values() if a.stop]
    acted.append(told.records[-1].us)  # the run itself
    assert times(metrics["gen_ai.invoke_agent.duration"]) == approx(acted)
    held = [us - told.made[event].us for event, us in told.first_delivery.items()]
    assert times(metrics["dig.event.hold"]) == approx(held)
    waited = list(waits(told))
    assert times(metrics["dig.event.wait"]) == approx(waited)
    assert {"dig.open_events", "dig.open_activations", "dig.buffered_events"} <= metrics.keys()


def counts(metric: Any, key: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for about, point in points(metric).items():
        found[dict(about)[key]] += point.as_int
    return found


def approx(micros: list[int]) -> list[Any]:
    return [len(micros), pytest.approx(sum(micros) / 1e6)]


def times(metric: Any) -> list[Any]:
    """How many times were measured, and their sum."""
    data = points(metric).values()
    return [sum(point.count for point in data), sum(point.sum for point in data)]


def waits(told: Told) -> Iterator[int]:
    """How long each consumed event lay in its buffer before its consumer began."""
    arrived: dict[tuple[str, str], int] = {}
    for record in told.records:
        match record:
            case kinds.Deliver() if record.to is not None:
                arrived[record.to, record.event] = record.us
            case kinds.End():
                acted = told.acted[record.activation]
                for event, fate in acted.fates(told.made).items():
                    if fate.fate == "consume":
                        yield acted.start.us - arrived[acted.agent, event]


def test_the_end_is_told(told: Told, tree: Tree) -> None:
    """The last root says how the run ended, and how much there was."""
    (about,) = (one for one in tree.about.values() if "dig.outcome" in one)
    assert about["dig.segment"] == len(tree.roots) - 1
    (finish,) = told.of("finish")
    assert about["dig.outcome"] == finish.outcome
    assert about["dig.records"] == len(told.records)
    assert about["dig.activations.total"] == len(told.acted)
    assert about["dig.findings.total"] == len(told.of("finding"))
