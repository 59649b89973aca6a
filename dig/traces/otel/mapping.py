"""From records to spans, log records and measurements: the mapping of all exports.

A `Mapping` is pure and is fed record by record, so the export of a run in progress equals
the export of its trace afterwards. docs/internals/spans.md explains the items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from dig.detectors import describe
from dig.detectors.finding import PAST, texts_in
from dig.detectors.five_answers import five_answers
from dig.detectors.headline import Headline
from dig.detectors.patterns import severity_of
from dig.detectors.run_so_far import RunSoFar
from dig.graph import records, words
from dig.graph.graph import InteractionGraph
from dig.graph.records import Deliver, Emit, FindingRow, Finish, HealRow, IncidentRow, Record
from dig.graph.state import EventState
from dig.monitor.sinks import Eviction
from dig.runtime.agent_errors import MOST_STACK, STACK

from . import conventions
from .activation_spans import MOST_LISTED, Activations
from .content import Content, FewLabels, label
from .ids import Origin, segment
from .items import Attribute, Attributes, Count, Item, Level, LogItem, Mark, Sample, Span, SpanLink
from .lasting import Lasting
from .tree import MOST_DEPTH, SpanPlace, Tree

MOST_PATTERNS = 50
MOST_NAMED = 8
"""The number of patterns that names of spans tell apart, so that a run has few such names."""

_LEVELS = {"error": "ERROR", "warning": "WARN", "notice": "INFO", "silenced": "INFO"}
"""The level of a finding's log record, by what the finding is worth."""

MOST_STACKS = 100
"""The number of stack traces that are remembered."""


class Mapping:
    """Turns the records of a run into exported items."""

    def __init__(
        self, origin: Origin, content: Content | None = None, most_depth: int = MOST_DEPTH
    ) -> None:
        """Begin before the first record.

        Args:
            origin: The execution and its beginning.
            content: The limits on exported text; by default names, ids and errors, no payloads.
            most_depth: The most levels of spans below a root; 1: spans are not nested.
        """
        self._origin = origin = replace(origin, outages=[])
        self._content = content or Content()
        self._graph = InteractionGraph()
        self._so_far = RunSoFar(self._graph)
        self._tree = Tree(origin, self._graph, most_depth)
        self._work = Activations(origin, self._graph, self._tree, self._content)
        self._lasting = Lasting(self._graph)
        self._aged: dict[str, float] = {}  # agent -> seconds of its longest turn at the latest tick
        self._is_listed = False  # whether the trace of the segment has a sign
        self._segment = -1
        self._root: Span | None = None  # of the segment, while it is open
        self._texts: Attributes = {}  # the input and the output of the segment, if they may leave
        self._stacks: dict[str, str] = {}  # the latest stack traces, by activation
        self._open_events = 0
        self._few, self._named = FewLabels(MOST_PATTERNS), FewLabels(MOST_NAMED)
        self._totals: Counter[str] = Counter()

    def feed(self, record: Record) -> list[Item]:
        """The items of the next record.

        Raises:
            RuleError: The record contradicts those before it.
        """
        self._graph.apply(record)
        self._so_far(record)
        if isinstance(record, IncidentRow) and (down_s := words.outage_s(record)):
            self._origin.stand_still(record.us, down_s)
        new = self._items(record)  # whose spans are made only after the root of their segment
        ended = self._lasting.look(record, self._origin.moment(record.us))
        items = [*ended, *self._begin_segment(record), *new]
        if self._open_events != len(self._graph.open):
            self._open_events = len(self._graph.open)
            items.append(Level("dig.open_events", self._open_events))
        for event in self._graph.touched:
            if not (event.copies or event.flight) and self._is_used_up(event):
                self._work.forget(event.id)
                self._tree.forget(event.id)
        return items

    def evict(self, eviction: Eviction) -> None:
        """Repeat an eviction of the session; the exported items stay the same.

        A later finding that names evicted history (`last` of LOOP, `origin` of LIVELOCK) has no
        link to it, and no ring.
        """
        history = self._graph.history
        activations, events = history.activation_ids, history.event_ids
        eviction.repeat(self._graph)
        self._tree.forget_evicted(activations, events)
        self._work.forget_evicted()

    def close(self, reason: str = "still going") -> list[Item]:
        """End the open spans, if the records stop before the end of the run for some reason."""
        now = self._graph.now
        cut_off = list(self._cut_off(now, reason))
        verdict = self._verdict() | {"dig.unfinished": reason} if self._root else {}
        return [*cut_off, *self._end_root(now, verdict)]

    def tick(self, ns: int, least_s: float) -> list[Item]:
        """Signs of long open spans: a span below each open span, and the ages of turns.

        Spans are exported when they have ended, so without signs nobody sees an agent that hangs.
        Viewers list traces by a span without parent, so the first sign of a trace has none.

        Args:
            ns: The moment, in nanoseconds since 1970.
            least_s: The seconds from which on a span has been open for long.
        """
        items, ages = list[Item](), dict.fromkeys(self._aged, 0.0)
        for span in [*self._work.open_spans(), *self._lasting.spans]:
            age_s = (ns - span.start_ns) / 1e9
            if age_s < least_s:
                continue
            about = span.attributes | {"output.value": f"{span.name}: open for {age_s:.0f} s"}
            # Importers must not take the sign for the activation itself.
            if (activation := about.pop(conventions.ACTIVATION, None)) is not None:
                about["dig.open.activation"] = activation
                agent = self._work.few(records.base_name(span.agent or ""))
                ages[agent] = max(age_s, ages.get(agent, 0.0))
            items.append(replace(
                span, name="dig.open", span_id=self._origin.sign(span.span_id, ns),
                parent_id=span.span_id if self._is_listed else None, start_ns=ns, end_ns=ns,
                attributes=about | {"dig.open.age_s": age_s}, links=(), marks=(), error="",
            ))  # fmt: skip
            self._is_listed = True
        for agent, age_s in ages.items():
            items.append(Level("dig.open.age", age_s, ((conventions.AGENT_NAME, agent),)))
        self._aged = {agent: age_s for agent, age_s in ages.items() if age_s}
        return items

    @property
    def now_ns(self) -> int:
        """The moment of the latest record, in nanoseconds since 1970."""
        return self._origin.moment(self._graph.now)

    def _is_used_up(self, event: EventState) -> bool:
        # Orphaned work can come back, and so can an answer without a verdict.
        if event.final and not event.consumed:
            return self._graph.is_accepted(event.id) or self._graph.is_bounced(event.id)
        return event.consumed or not event.work

    def _items(self, record: Record) -> Iterable[Item]:
        work, payloads = self._work, self._content.payloads
        match record:
            case Emit():
                self._tree.emit(record.us)
                if record.by is None and payloads:
                    self._texts.setdefault("input.value", self._content.text(record.payload))
                return work.emit(record)
            case Deliver():
                if record.to is None and payloads:
                    self._texts["output.value"] = work.text_of(record.event)
                return work.deliver(record)
            case records.Start():
                return work.start(record)
            case records.End():
                return work.end(record)
            case records.Leave():
                return work.leave(record.agent, record.us)
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

    def _begin_segment(self, record: Record) -> Iterator[Item]:
        """End the root of the segment before, and begin the next, if the record is the first of a
        segment."""
        now = segment(record.t, record.us)
        if now <= self._segment:
            return
        yield from self._lasting.end_findings(self._origin.moment(record.us))
        yield from self._end_root(record.us)
        before, self._segment, self._is_listed = self._segment, now, False
        run, content = self._graph.run, self._content
        attributes = self._common("CHAIN") | {
            conventions.OPERATION: "invoke_workflow",
            conventions.AGENT_NAME: (team := _team(run)),
            "dig.run": label(run.run),
            "dig.segment": now,
            "dig.session": run.session,
            "dig.agents": [label(agent) for agent in run.agents[:MOST_LISTED]],
        }
        for key, value in {"dig.task": run.task, "dig.seed": run.seed}.items():
            if value is not None:
                attributes[key] = content.detail(value)
        if "dig.task" in attributes:
            attributes["input.value"] = attributes["dig.task"]
        if self._origin.report_url:
            attributes["dig.report.url"] = self._origin.report_url
        links = []
        if before >= 0:
            place = self._tree.root(before)
            links.append(SpanLink(place.trace_id, place.span_id, {"dig.edge": "continues"}))
        name, us = f"invoke_workflow {team}", record.us
        root = self._span(name, self._tree.root(now), us, us, attributes, links)
        self._root = replace(root, is_open=True)
        yield self._root

    def _end_root(
        self, us: int, extra: Attributes | None = None, error: str = ""
    ) -> Iterator[Span]:
        """The root of the segment at the end, with the input and output of the segment."""
        if self._root is not None:
            attributes = {**self._root.attributes, **(extra or {}), **self._texts}
            headline, marks = self._so_far.headline, list[Mark]()
            is_request = headline is not None and headline.stage == "request"
            if headline and is_request and self._origin.moment(headline.us) >= self._root.start_ns:
                error, marks = self._content.detail(headline.says), [self._exception(headline)]
                attributes[conventions.ERROR_TYPE] = marks[0].attributes["exception.type"]
            yield replace(
                self._root, end_ns=self._origin.moment(us), attributes=attributes, error=error,
                is_open=False, marks=marks,
            )  # fmt: skip
        self._root, self._texts = None, {}

    def _exception(self, headline: Headline) -> Mark:
        """The span event for an exception behind a failed request, in OpenTelemetry's names."""
        kind, message = headline.exception
        texts = {"exception.type": kind or "_OTHER", "exception.message": message or headline.says}
        about: Attributes = {key: self._content.detail(text) for key, text in texts.items()}
        if headline.activation in self._stacks:
            stack = self._stacks[headline.activation]
            about["exception.stacktrace"] = self._content.text(stack, MOST_STACK)
        return Mark("exception", self._origin.moment(headline.us), about)

    def _verdict(self) -> Attributes:
        verdict = five_answers(self._so_far, private=not self._content.payloads)
        lines = [self._content.text(f"{head}: {text}") for head, text in verdict.lines()]
        return {"dig.verdict": lines, "output.value": self._content.text(verdict.ended)}

    def _finish(self, record: Finish) -> Iterator[Item]:
        yield from self._cut_off(record.us, "the run ended")
        attributes = self._verdict() | {
            "dig.outcome": record.outcome,
            "dig.records": record.t + 1,
            "dig.events.total": self._graph.event_count,
            "dig.activations.total": self._graph.activation_count,
            "dig.findings.total": self._totals["findings"],
            "dig.heals.total": self._totals["heals"],
            "dig.duration_s": record.ts,
        }
        # A session that is stopped has served its requests: that is no error.
        is_served = record.outcome == "stopped" and self._graph.run.session
        is_fine = record.outcome == "submitted" or is_served
        error = "" if is_fine else str(attributes["output.value"])
        attributes |= {conventions.ERROR_TYPE: record.outcome} if error else {}
        yield from self._end_root(record.us, attributes, error)
        about = (
            (conventions.AGENT_NAME, _team(self._graph.run)),
            (conventions.OPERATION, "invoke_workflow"), ("dig.outcome", record.outcome),
        )  # fmt: skip
        yield Sample("gen_ai.invoke_agent.duration", record.ts, about)
        body = f"the run is over: {record.outcome}"
        place = self._tree.root(self._segment)
        yield self._log("dig.run.end", record, "ERROR" if error else "INFO", body, {}, place)

    def _cut_off(self, us: int, reason: str) -> Iterator[Item]:
        """End all open spans but the root."""
        yield from self._work.cut_off_all(us, reason)
        yield from self._lasting.end_all(self._origin.moment(us), reason)

    # --- findings, healing, incidents ---

    def _finding(self, record: FindingRow) -> Iterator[Item]:
        place = self._tree.finding(record.t, record.us)
        self._totals["findings"] += 1
        pattern, worth = label(str(record.pattern)), describe.worth(record)
        text = self._content.detail(describe.finding_text(record, self._graph))
        attributes = self._common("EVALUATOR") | {
            "dig.pattern": pattern,
            "dig.severity": severity_of(record),
            "dig.finding.t": record.t,
            "dig.finding.text": text,
            "dig.subject": self._content.detail(record.subject),
            "dig.evidence": self._content.detail(record.evidence),
            "output.value": text,
        }
        if record.stage is not None:
            attributes["dig.stage"] = label(str(record.stage))
        if record.silenced is not None:
            attributes["dig.silenced"] = self._content.detail(str(record.silenced))
        if self._origin.report_url:
            url = f"{self._origin.report_url}#is=finding&id={record.t}"
            attributes["dig.report.url"] = url
        evidence = record.evidence
        if isinstance(evidence, dict):  # a session may have evicted what is past
            evidence = {k: v for k, v in evidence.items() if (record.pattern, k) not in PAST}
        times = map(self._tree.since, texts_in((record.subject, evidence)))
        since = min([record.us, *(us for us in times if us is not None)])
        links, error = list(self._links_to(record)), text if worth == "error" else ""
        name = f"dig.finding {self._named(pattern)}"
        span = self._span(name, place, since, record.us, attributes, links, error)
        raised = Mark("dig.finding.raised", span.end_ns, {})
        yield from self._lasting.add_finding(record, replace(span, marks=[raised]))
        level = _LEVELS[worth]
        yield self._log("dig.finding", record, level, f"{pattern}: {text}", attributes, place)
        about = (("dig.pattern", self._few(pattern)), ("dig.severity", worth))
        yield Count("dig.findings", about)

    def _heal(self, record: HealRow) -> Iterator[Item]:
        action, refused = label(str(record.action)), record.action == "refused"
        system_event = record.event if record.action == "create" else None
        place, cause = self._tree.heal(record.t, record.finding, system_event)
        outcome = "refused" if refused else "applied"
        self._totals["heals"] += not refused
        text = self._content.detail(words.healing_text(record))
        attributes = self._common("GUARDRAIL") | {
            "dig.heal.action": action,
            "dig.heal.outcome": outcome,
            "dig.finding.t": record.finding,
            "output.value": text,
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
        yield self._span("dig.heal", place, record.us, record.us, attributes, links)
        yield self._log("dig.heal", record, "WARN" if refused else "INFO", text, attributes, place)
        about = (("dig.heal.action", self._few(action)), ("dig.heal.outcome", outcome))
        yield Count("dig.heals", about)

    def _incident(self, record: IncidentRow) -> Iterator[Item]:
        about = record if self._content.payloads else words.without_contents(record)
        text = self._content.detail(words.incident_text(about))
        if record.what == STACK and isinstance(record.detail, dict):
            # Lines of code are contents, so they leave with payloads alone.
            activation = str(record.detail.get("activation"))
            text = self._content.detail(f"{STACK} of {activation}")
            if self._content.payloads:
                self._stacks[activation] = str(record.detail.get("text"))
                if len(self._stacks) > MOST_STACKS:
                    del self._stacks[next(iter(self._stacks))]
        if record.what == records.WAITS:
            self._wait(about)
        place = self._tree.root(self._segment)
        yield self._log("dig.incident", record, "WARN", text, self._common(""), place)

    def _wait(self, record: IncidentRow) -> None:
        """Begin the span of a wait on purpose, below the activation of the wait or event."""
        detail = record.detail if isinstance(record.detail, dict) else {}
        waiting = detail.get("activation") or detail.get("event")
        if isinstance(waiting, str) and waiting in self._graph.running:
            above = self._tree.activation(self._graph.running[waiting].n)
        elif isinstance(waiting, str) and self._graph.knows(waiting):
            above = self._tree.producer(waiting, self._segment)
        else:
            return
        attributes = self._common("CHAIN") | {
            "dig.wait.id": label(waiting), "dig.wait.detail": self._content.detail(detail)
        }  # fmt: skip
        if isinstance(limit_s := detail.get("limit_s"), int | float):
            attributes["dig.wait.limit_s"] = limit_s
        place = self._tree.below(above, self._origin.record(record.t))
        span = self._span("dig.wait", place, record.us, record.us, attributes, [])
        self._lasting.add_wait(waiting, span)

    def _links_to(self, record: FindingRow) -> Iterator[SpanLink]:
        """Links to the activations named by a finding, or behind named events."""
        history = self._graph.history
        ids: dict[int, str] = {}
        for name in texts_in((record.subject, record.evidence)):
            v, n = history.activation(name), history.event(name)
            if n is not None and history.generator[n] >= 0:
                v = history.generator[n]
            if v is not None and len(ids) < MOST_LISTED:
                ids.setdefault(v, name)
        for v, name in ids.items():
            place, about = self._tree.activation(v), {"dig.edge": "about", "dig.id": label(name)}
            yield SpanLink(place.trace_id, place.span_id, dict[str, Attribute](about))

    # --- pieces ---

    def _common(self, kind: str) -> Attributes:
        """The common attributes of the monitor's spans; `kind` is OpenInference's."""
        execution = label(self._origin.execution)
        common: Attributes = {conventions.CONVERSATION: execution, conventions.SESSION: execution}
        return common | {conventions.KIND: kind} if kind else common

    def _span(
        self, name: str, place: SpanPlace, since: int, until: int, attributes: Attributes,
        links: list[SpanLink], error: str = "",
    ) -> Span:  # fmt: skip
        start, end = self._origin.moment(since), self._origin.moment(until)
        return Span(
            name, place.trace_id, place.span_id, place.parent_id, start, end, None, attributes,
            links=links, error=error,
        )  # fmt: skip

    def _log(
        self, name: str, record: Record, severity: Any, body: str, attributes: Attributes,
        place: SpanPlace,
    ) -> LogItem:  # fmt: skip
        ns = self._origin.moment(record.us)
        return LogItem(name, ns, severity, body, attributes, place.trace_id, place.span_id)


def _team(run: records.Run) -> str:
    """The name of a run's team: the task of a run of our own, since the run's name has seeds."""
    is_task = isinstance(run.task, str) and run.run.startswith(f"{run.task}-")
    return label(str(run.task) if is_task else run.run)
