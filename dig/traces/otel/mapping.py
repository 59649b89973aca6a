"""From records to spans, log records and measurements: the one mapping behind every export.

A `Mapping` is pure and is fed record by record, so the export of a run in progress equals
the export of its trace afterwards. docs/jaeger.md explains the items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from dig.detectors import describe
from dig.detectors.patterns import severity_of
from dig.detectors.verdict import RunSoFar
from dig.graph.graph import InteractionGraph
from dig.graph.records import (
    Deliver,
    Emit,
    End,
    FindingRow,
    Finish,
    HealRow,
    IncidentRow,
    Leave,
    Record,
    Start,
)
from dig.graph.state import EventState
from dig.monitor.sinks import Eviction

from .activations import MOST_LISTED, Activations
from .content import Content, FewLabels, label
from .ids import Origin, segment
from .items import Attribute, Count, Item, LogItem, Sample, Span, SpanLink
from .tree import MOST_DEPTH, SpanPlace, Tree

MOST_PATTERNS = 50

_LEVELS = {"error": "ERROR", "warning": "WARN", "notice": "INFO", "silenced": "INFO"}
"""The level of a finding's log record, by what the finding is worth."""


class Mapping:
    """Turns the records of one run into exported items."""

    def __init__(
        self, origin: Origin, content: Content | None = None, most_depth: int = MOST_DEPTH
    ) -> None:
        """Begin before the first record.

        Args:
            origin: The execution and its beginning.
            content: The limits on exported text; by default names, ids and errors, no payloads.
            most_depth: The most levels of spans below a root; 1: spans are not nested.
        """
        self._origin = origin
        self._content = content or Content()
        self._graph, self._so_far = InteractionGraph(), RunSoFar()
        self._tree = Tree(origin, self._graph, most_depth)
        self._work = Activations(origin, self._graph, self._tree, self._content)
        self._segment = -1
        self._few = FewLabels(MOST_PATTERNS)
        self._totals: Counter[str] = Counter()

    @property
    def needs_payloads(self) -> bool:
        """Whether payloads and answers leave; if not, the records may come without them."""
        return self._content.payloads

    def feed(self, record: Record) -> list[Item]:
        """The items that the next record adds.

        Raises:
            RuleError: The record contradicts those before it.
        """
        self._graph.apply(record)
        self._so_far(record)
        items = list(self._rooted(record, self._look(record)))
        for event in self._graph.touched:
            if not (event.copies or event.flight) and self._is_used_up(event):
                self._work.forget(event.id)
                self._tree.forget(event.id)
        return items

    def evicted(self, eviction: Eviction) -> None:
        """Repeat an eviction of the session; the exported items stay the same.

        A later finding that names evicted history (`last` of LOOP, `origin` of LIVELOCK) has no
        link to it.
        """
        history = self._graph.history
        before = history.activation_ids
        eviction.repeat(self._graph)
        self._tree.evicted([history.activation(name) is not None for name in before])
        self._work.evicted()

    def close(self) -> list[Item]:
        """The open spans, if the records stop before the end of the run."""
        return list(self._work.all_cut_off(self._graph.now, "still going"))

    @property
    def now(self) -> int:
        """Wall time of the latest record, in microseconds since the run began."""
        return self._graph.now

    def levels(self) -> dict[str, int]:
        """The current value of each gauge, by metric."""
        begun = self._graph.t >= 0
        return {
            "dig.open_events": len(self._graph.open_events()) if begun else 0,
            "dig.open_activations": len(self._graph.activations),
        }

    def _is_used_up(self, event: EventState) -> bool:
        """Whether an event cannot come back: orphaned work can, and an answer without verdict."""
        if event.final and not event.consumed:
            return self._graph.is_accepted(event.id) or self._graph.is_bounced(event.id)
        return event.consumed or not event.work

    def _rooted(self, record: Record, items: Iterable[Item]) -> Iterator[Item]:
        """The items of a record, after the root of the segment that begins with it."""
        now = segment(record.t, record.us)
        if now > self._segment:
            before, self._segment = self._segment, now
            yield self._root(now, before, record.us)
        yield from items

    def _look(self, record: Record) -> Iterable[Item]:
        work = self._work
        match record:
            case Emit():
                return work.emitted(record)
            case Deliver():
                return work.delivered(record)
            case Start():
                work.started(record)
            case End():
                return work.ended(record)
            case Leave():
                return work.left(record.agent, record.us)
            case FindingRow():
                return self._finding(record)
            case HealRow():
                return self._heal(record)
            case IncidentRow():
                return self._incident(record)
            case Finish():
                return self._finish(record)
        return ()

    # --- the run ---

    def _root(self, number: int, before: int, us: int) -> Span:
        run, content = self._graph.run, self._content
        attributes = self._common() | {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": label(run.run),
            "dig.run": label(run.run),
            "dig.segment": number,
            "dig.session": run.session,
            "dig.agents": [label(agent) for agent in run.agents[:MOST_LISTED]],
        }
        for key, value in {"dig.task": run.task, "dig.seed": run.seed}.items():
            if value is not None:
                attributes[key] = content.detail(value)
        links = []
        if before >= 0:
            place = self._tree.root(before)
            links.append(SpanLink(place.trace_id, place.span_id, {"dig.edge": "continues"}))
        name = f"invoke_workflow {label(run.run)}"
        return self._moment(name, self._tree.root(number), us, attributes, links)

    def _finish(self, record: Finish) -> Iterator[Item]:
        yield from self._work.all_cut_off(record.us, "the run ended")
        verdict = self._so_far.verdict(private=not self._content.payloads)
        attributes = self._common() | {
            "dig.outcome": record.outcome,
            "dig.records": record.t + 1,
            "dig.events.total": self._graph.event_count,
            "dig.activations.total": self._graph.activation_count,
            "dig.findings.total": self._totals["findings"],
            "dig.heals.total": self._totals["heals"],
            "dig.duration_s": record.ts,
            "dig.verdict": [
                self._content.detail(f"{head}: {text}") for head, text in verdict.lines()
            ],
        }
        if self._content.payloads and record.answer is not None:
            attributes["dig.answer"] = self._content.text(record.answer)
        place = self._tree.record(record.t, record.us)
        error = "the run ended with an error" if record.outcome == "error" else ""
        yield self._moment("run end", place, record.us, attributes, error=error)
        yield Sample("gen_ai.workflow.duration", record.ts, (("dig.outcome", record.outcome),))
        body = f"the run is over: {record.outcome}"
        yield self._log("dig.run.end", record, "ERROR" if error else "INFO", body, {}, place)

    # --- findings, healing, incidents ---

    def _finding(self, record: FindingRow) -> Iterator[Item]:
        place = self._tree.finding(record.t, record.us)
        self._totals["findings"] += 1
        pattern, worth = label(str(record.pattern)), describe.worth(record)
        told = self._content.detail(describe.finding_text(record))
        attributes = self._common() | {
            "dig.pattern": pattern,
            "dig.severity": severity_of(record),
            "dig.finding.t": record.t,
            "dig.finding.text": told,
            "dig.subject": self._content.detail(record.subject),
            "dig.evidence": self._content.detail(record.evidence),
        }
        if record.stage is not None:
            attributes["dig.stage"] = label(str(record.stage))
        if record.silenced is not None:
            attributes["dig.silenced"] = self._content.detail(str(record.silenced))
        yield self._moment(
            f"dig.finding {pattern}", place, record.us, attributes,
            links=list(self._implicated(record)), error=told if worth == "error" else "",
        )  # fmt: skip
        level = _LEVELS[worth]
        yield self._log("dig.finding", record, level, f"{pattern}: {told}", attributes, place)
        about = (("dig.pattern", self._few(pattern)), ("dig.severity", worth))
        yield Count("dig.findings", about)

    def _heal(self, record: HealRow) -> Iterator[Item]:
        action, refused = label(str(record.action)), record.action == "refused"
        made = record.event if record.action == "create" else None
        place, cause = self._tree.heal(record.t, record.finding, made)
        outcome = "refused" if refused else "applied"
        self._totals["heals"] += not refused
        attributes = self._common() | {
            "dig.heal.action": action,
            "dig.heal.outcome": outcome,
            "dig.finding.t": record.finding,
        }
        if isinstance(record.event, str):
            attributes["dig.event.id"] = label(record.event)
        if isinstance(record.to, tuple):
            attributes["dig.heal.target"] = [label(str(a)) for a in record.to[:MOST_LISTED]]
        if refused:
            attributes["dig.reason"] = self._content.detail(record.reason)
        elif self._content.payloads:
            attributes["dig.note"] = self._content.text(record.note)
        links = [SpanLink(cause.trace_id, cause.span_id, {"dig.edge": "heals"})]
        yield self._moment(f"dig.heal {action}", place, record.us, attributes, links)
        told = self._content.detail(describe.healing_text(record))
        yield self._log("dig.heal", record, "WARN" if refused else "INFO", told, attributes, place)
        about = (("dig.heal.action", self._few(action)), ("dig.heal.outcome", outcome))
        yield Count("dig.heals", about)

    def _incident(self, record: IncidentRow) -> Iterator[Item]:
        told = self._content.detail(describe.incident_text(record))
        place = self._tree.root(self._segment)
        yield self._log("dig.incident", record, "WARN", told, self._common(), place)

    def _implicated(self, record: FindingRow) -> Iterator[SpanLink]:
        """The activations that a finding names, and those behind the events that it names."""
        history = self._graph.history
        found: dict[int, str] = {}
        for name in _names((record.subject, record.evidence)):
            v, n = history.activation(name), history.event(name)
            if n is not None and history.generator[n] >= 0:
                v = history.generator[n]
            if v is not None and len(found) < MOST_LISTED:
                found.setdefault(v, name)
        for v, name in found.items():
            place = self._tree.activation(v)
            yield SpanLink(
                place.trace_id, place.span_id, {"dig.edge": "about", "dig.id": label(name)}
            )

    # --- pieces ---

    def _common(self) -> dict[str, Attribute]:
        execution = label(self._origin.execution)
        return {"gen_ai.conversation.id": execution, "session.id": execution}

    def _moment(
        self, name: str, place: SpanPlace, us: int, attributes: dict[str, Attribute],
        links: list[SpanLink] | None = None, error: str = "",
    ) -> Span:  # fmt: skip
        ns = self._origin.moment(us)
        return Span(
            name, place.trace_id, place.span_id, place.parent_id, ns, ns, None, attributes,
            links=links or (), error=error,
        )  # fmt: skip

    def _log(
        self, name: str, record: Record, severity: Any, body: str,
        attributes: dict[str, Attribute], place: SpanPlace,
    ) -> LogItem:  # fmt: skip
        ns = self._origin.moment(record.us)
        return LogItem(name, ns, severity, body, attributes, place.trace_id, place.span_id)


_NO_IDS = ("agent", "path", "cause")  # keys whose values are no ids, though they may look like some


def _names(value: Any, depth: int = 0) -> Iterator[str]:
    """Everything in a subject or evidence that may be an id."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth < 6:
        for key, part in value.items():
            if key not in _NO_IDS:
                yield from _names(part, depth + 1)
    elif isinstance(value, list | tuple) and depth < 6:
        for part in value:
            yield from _names(part, depth + 1)
