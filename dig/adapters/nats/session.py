"""A session's monitor without a network: raw messages go in, journal lines and releases come out.

The state is a function of the journal: what `note` remembers comes from records alone, whether they
are made now or were driven again at a take-over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dig._util.frozen import frozen
from dig._util.json_values import dumps
from dig._util.ranges import union
from dig._util.redaction import masking_logger
from dig.errors import DecisionError, PayloadError, RawError, RequestError
from dig.graph import records
from dig.graph.chain import checksum
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record, micros
from dig.monitor.messages import Answered, Effect, Output, Over, Started, TakenOut, Wake
from dig.monitor.sinks import Eviction
from dig.runtime.agents import as_decision
from dig.runtime.checkpoint import RunningActivation
from dig.runtime.resume import Resumption

from .calls import CALL, FAILURE, NOTICE
from .envelopes import (
    ROOM,
    DecideBody,
    DecisionBody,
    MemberBody,
    ProblemBody,
    Release,
    TellBody,
    activation_release,
    read_raw,
)
from .names import OUT, TRACEPARENT, token_of

logger = masking_logger("dig.nats")

OWNER, LOST, REFUSED, BUSY, SKEW = "owner", "lost agent", "raw refused", "busy", "skew"
RAW_LOST, DISCONNECTED = "raw lost", "disconnected"
"""The incidents of a session; `docs/machines.md` says what each means."""

MOST_ANSWERS = 1_000
"""The latest answers, for clients that missed theirs; more than an owner appends before it releases
them, so that none is lost with it."""

KEEP = 50
"""The closed records that the monitor of a session keeps: it is read in its journal alone."""

SKEW_S, SKEWED = 2.0, 3
"""How many seconds in how many messages, one after another, show that a clock is wrong."""


@dataclass(frozen=True)
class Terms:
    """The terms of a session, which stand in no record.

    Attributes:
        lost_s: Seconds of supervised time without a heartbeat after which an agent has left.
        max_open: The number of open problems from which on clients are told `busy`.
        most_bytes: The largest message.
    """

    lost_s: float = 30.0
    max_open: int = 200
    most_bytes: int = 4 * 1024 * 1024


def recorded_error(text: str) -> Exception:
    """Make the error of an agent in another process from the text."""
    kind, colon, message = text.partition(": ")
    if not (colon and kind.isidentifier() and kind.isascii()):
        kind, message = "AgentError", text
    error: Exception = type(kind, (Exception,), {})(message)
    return error


@frozen
class RequestLines:
    """The lines of one request to the monitor.

    Attributes:
        lines: The lines.
        t: The number of its last record.
        cursor: The raw sequence up to which input is dealt with then.
    """

    lines: bytes
    t: int
    cursor: int


class Notes:
    """The memory of a session, made from records alone, driven or new; a sink.

    Attributes:
        open: The open problems, each with the trace context by which its client knows it.
        contexts: The trace contexts of events that agents may be shown, by id.
        fresh: The releases of answers since a caller took them.
        answers: The latest ones, by the number of the record.
        by_context: The latest ones, by the trace context of the problem, which several may share.
        away: The agents that left, each with whether its heartbeat brings it back.
        takeovers: The number of owners so far.
    """

    def __init__(self) -> None:
        """Begin before the first record."""
        self.open: dict[str, str | None] = {}
        self.contexts: dict[str, str] = {}
        self.fresh: list[Release] = []
        self.answers: dict[int, Release] = {}
        self.by_context: dict[str, Release] = {}
        self.away: dict[str, bool] = {}
        self.takeovers = 0
        self._accepted: dict[str, int] = {}  # the record by which an answer was accepted
        self._silent = ""

    def reads(self, graph: InteractionGraph) -> None:
        """Take the graph that the records make."""
        self._graph = graph

    def evicted(self, eviction: Eviction) -> None:
        """Forget the contexts of events that no agent has any more."""
        self.contexts = {e: text for e, text in self.contexts.items() if e in self._graph.live}

    def __call__(self, record: Record) -> None:
        """Take a record into account."""
        if isinstance(record, records.Emit):
            if record.by is None and record.type != "notice":
                self.open[record.event] = record.traceparent
            if record.traceparent is not None:
                self.contexts[record.event] = record.traceparent
        elif isinstance(record, records.Deliver) and record.to is None:
            self._accepted[record.event] = record.t
        elif isinstance(record, records.Join):
            self.away.pop(record.agent, None)
        elif isinstance(record, records.Leave):
            self.away[record.agent] = record.agent == self._silent
        elif isinstance(record, records.IncidentRow):
            self._incident(record)

    def _incident(self, record: records.IncidentRow) -> None:
        detail = record.detail if isinstance(record.detail, Mapping) else {}
        if record.what == LOST:
            self._silent = str(detail.get("agent"))
        elif record.what == OWNER:
            self.takeovers += 1
        elif record.what in (BUSY, REFUSED) and detail.get("asked"):
            reason = "busy" if record.what == BUSY else detail["why"]
            self._keep(record.t, {"problems": [], "asked": [detail["asked"]], "error": reason})
        elif record.what == records.REQUEST_FAILED and detail.get("event") in self.open:
            context = self.open.pop(detail["event"])
            number = self._graph.history.activation(detail.get("activation", ""))
            reason = detail.get("error") or f"it ended by: {detail.get('how')}"
            if number is not None:
                reason = f"{self._graph.history.agent(number)}: {reason}"
            contexts = [context] if context else []
            body = {"problems": [detail["event"]], "asked": contexts, "error": reason}
            self._keep(record.t, body)

    def answer(self, answered: Answered) -> None:
        """Take an accepted answer into account."""
        contexts = [self.open.pop(event, None) for event in answered.problems]
        self._keep(
            self._accepted.pop(answered.event),
            {
                "event": answered.event, "answer": answered.payload, "notes": answered.notes,
                "problems": answered.problems, "asked": [text for text in contexts if text],
            },
        )  # fmt: skip

    def _keep(self, t: int, body: Mapping[str, Any]) -> None:
        release = Release(OUT, t, dumps(body).encode(), next(iter(body["asked"]), None))
        self.fresh.append(release)
        self.answers[t] = release
        self.by_context |= dict.fromkeys(body["asked"], release)
        for latest in (self.answers, self.by_context):
            while len(latest) > MOST_ANSWERS:
                del latest[next(iter(latest))]  # type: ignore[arg-type]


class HeldSession:
    """The monitor of one session, between raw messages and journal lines.

    Attributes:
        cursor: The raw sequence up to which input is dealt with.
        notes: What is remembered of the records.
        late: The number of decisions without effect that nobody has counted yet.
        joined: The agents that joined and need an inbox.
        is_over: Whether a part of the monitor has ended the run.
    """

    def __init__(
        self, resumption: Resumption, notes: Notes, clock: Callable[[], float], cursor: int,
        terms: Terms,
    ) -> None:  # fmt: skip
        """Go on after the last record.

        Args:
            resumption: The monitor after the last record of the journal.
            notes: What was noted of its records.
            clock: Seconds of supervised time; it begins at the last record.
            cursor: The raw sequence up to which the journal has dealt with input.
            terms: The terms of the session.
        """
        self.cursor, self.notes, self.late, self.is_over = cursor, notes, 0, False
        self._host, self._monitor = resumption.host, resumption.monitor
        self._clock, self._terms, self._bytes = clock, terms, 0
        self._timeout_s = resumption.setup.activation_timeout_s
        assert resumption.lines is not None
        self._lines = resumption.lines
        now_s = resumption.now_s
        again_us = micros(now_s)  # timers begin again
        self._running = {
            name: replace(item, since_us=again_us) for name, item in resumption.running.items()
        }
        self._again = dict(resumption.again)
        self._waiting = list(resumption.wakes)
        self._beats = dict.fromkeys(self._monitor.graph.agents, now_s)
        self._starts: dict[str, tuple[int, str]] = {}  # of the request in progress
        self._pending: list[bytes] = []
        self._groups: list[RequestLines] = []
        self._releases: list[Release] = []
        self._skewed: Counter[str] = Counter()  # messages with a wrong time, one after another
        self.joined = list(self._monitor.graph.agents)
        notes.fresh.clear()
        resumption.go_live(self._take, clock=clock)

    # --- what comes in ---

    def handle(
        self, sequence: int, token: str, headers: Mapping[str, str], data: bytes,
        stored_s: float | None = None,
    ) -> None:  # fmt: skip
        """Handle a raw message; none can stop the session.

        Args:
            sequence: Its sequence in the stream.
            token: The last token of its subject.
            headers: Its headers.
            data: Its body.
            stored_s: When the server stored it, in seconds since 1970, if that is known.
        """
        # The first request of the monitor consumes the message, so it has the new cursor already.
        self.cursor, self._bytes = sequence, len(data)
        context = headers.get(TRACEPARENT)
        try:
            kind, body = read_raw(token, headers, data)
            if isinstance(body, DecisionBody):
                self._decision(body, token, context)
            elif isinstance(body, ProblemBody):
                self._problem(body, context)
            else:
                self._from_person(kind, body)
            if stored_s is not None and body.sent is not None:
                self._compare_clocks(token, stored_s - body.sent)
        except (RawError, RequestError, DecisionError, PayloadError) as error:
            detail = {"sequence": sequence, "from": token, "why": str(error)[:300]}
            detail |= {"asked": context} if context else {}
            self._ask(lambda: self._monitor.incident(REFUSED, detail))
        self._fail_lost_requests()

    def _decision(self, body: DecisionBody, token: str, context: str | None) -> None:
        running = self._running.get(body.activation)
        if running is not None and token != token_of(running.started.agent):
            raise RawError(f"{body.activation} is not an activation of {token}")
        is_running = body.activation in self._monitor.graph.running
        if running is None or not is_running or body.mark != running.mark:
            self.late += 1
            return
        started, value = running.started, body.value
        if context and isinstance(value, dict):
            value = {**value, "traceparent": value.get("traceparent") or context}
        if body.usage and (usage := running.view.usage) is not None:
            usage.update(body.usage)
        error: Exception | None = None
        if body.error is not None and value is None:
            error = recorded_error(body.error)
        elif self._is_too_large(value):
            error = PayloadError("journal too large: as ASCII the decision is more than a message")
        if error is not None:
            self._end(started, lambda: self._host.fail_activation(started, error))
        else:
            self._answer_calls_to_nobody(started.agent, value)
            self._end(started, lambda: self._end_turn(started, value, body.error))

    def _answer_calls_to_nobody(self, agent: str, value: Any) -> None:
        """Make the call of an agent that never joined its own answer, so that the caller hears."""
        outputs = value.get("outputs") if isinstance(value, dict) else None
        if not outputs or [output.get("type") for output in outputs] != [CALL, NOTICE]:
            return
        names = ", ".join(map(str, to := outputs[0].get("to") or ()))
        if not any(name in self._monitor.graph.agents or name in self.notes.away for name in to):
            reason = f"no agent called {names} is here"
            outputs[0] = {"type": FAILURE, "to": [agent], "payload": reason}

    def _end_turn(
        self, started: Started, value: object, failure: str | None
    ) -> tuple[list[Effect], float | None]:
        """End an activation; with a failure, the requests that its inputs are about fail, too."""
        requests = self._host.requests
        inputs = self._monitor.graph.running[started.activation].inputs
        fates = as_decision(value).fates if failure else ()
        consumed = {row.event for row in fates if row.fate == "consume"}
        about = [event.sources for event in inputs if event.id in consumed]
        failed = requests.open(union(about)) if about else []
        effects, again_s = self._host.end_activation(started, value)
        return effects + requests.fail("error", failed, started.activation, failure or ""), again_s

    def _end(self, started: Started, end: Callable[[], tuple[list[Effect], float | None]]) -> None:
        again_s: float | None = None

        def request() -> list[Effect]:
            nonlocal again_s
            effects, again_s = end()
            return effects

        self._running.pop(started.activation, None)
        self._ask(request)
        if again_s is not None and started.agent not in self._busy():
            self._again[started.agent] = self._clock() + again_s

    def _problem(self, body: ProblemBody, context: str | None) -> None:
        agents = self._monitor.graph.agents
        to = tuple(body.to) or tuple(agents)[:1]
        if len(self.notes.open) >= self._terms.max_open:
            detail = {"open": len(self.notes.open), **({"asked": context} if context else {})}
            self._ask(lambda: self._monitor.incident(BUSY, detail))
            return
        if not any(name in agents for name in to):
            raise RawError(f"no agent called {', '.join(to) or 'anything'} is here")
        if self._is_too_large(body.payload):
            raise RawError("journal too large: as ASCII the payload is more than a message")
        output = Output(body.payload, to, body.type, traceparent=context)
        self._ask(lambda: self._monitor.inject(output))

    def _is_too_large(self, value: Any) -> bool:
        """Whether a value of the message in hand, written as ASCII, is too large for a message."""
        most = self._terms.most_bytes - ROOM
        return 3 * self._bytes > most and len(dumps(value)) > most  # a letter grows to at most 3

    def _join(self, agent: str) -> None:
        self._ask(lambda: self._monitor.join(agent))
        self._beats[agent] = self._clock()
        self.joined.append(agent)

    def _from_person(self, kind: str, body: MemberBody | TellBody | DecideBody) -> None:
        monitor = self._monitor
        if isinstance(body, TellBody):
            self._ask(lambda: monitor.tell(body.note, tuple(body.to)))
        elif isinstance(body, DecideBody):
            self._ask(lambda: monitor.decide(body.finding, body.heal))
        elif kind == "join":
            self._join(body.agent)
        else:
            self._ask(lambda: monitor.leave(body.agent))

    def _compare_clocks(self, token: str, behind_s: float) -> None:
        if abs(behind_s) <= SKEW_S:
            self._skewed[token] = min(0, self._skewed[token])
            return
        self._skewed[token] += 1
        if self._skewed[token] == SKEWED:  # one message may have waited for a lost connection
            self._skewed[token] = -(10**9)  # which no count reaches: a clock is reported once
            detail = {"from": token, "behind_s": round(behind_s, 3)}
            self._ask(lambda: self._monitor.incident(SKEW, detail))

    def beat(self, agent: str) -> None:
        """Note an agent's heartbeat; an absent agent joins, unless healing took the agent out."""
        if self._monitor.is_over:
            return
        if agent not in self._monitor.graph.agents:
            if not self.notes.away.get(agent, True):
                return
            try:
                self._join(agent)
            except RequestError as error:
                logger.warning("dig: %s", error)
        else:
            self._beats[agent] = self._clock()

    def incident(self, kind: str, detail: Mapping[str, Any]) -> None:
        """Write down an incident."""
        self._ask(lambda: self._monitor.incident(kind, dict(detail)))

    def skip_raw(self, first: int) -> None:
        """Go on after input lost by the server, or kept for too short a time."""
        detail = {"after": self.cursor, "first": first}
        self.cursor = first - 1
        self.incident(RAW_LOST, detail)

    # --- time ---

    def due_s(self) -> float | None:
        """The moment of the next `tick`; ``None``: nothing is due."""
        due = [self._monitor.next_deadline(exact=False), *self._again.values()]
        due += [self._ends_s(running) for running in self._running.values()]
        due += [beat_s + self._terms.lost_s for beat_s in self._beats.values()]
        return min((moment for moment in due if moment is not None), default=None)

    def tick(self) -> None:
        """Do everything due, and start waiting agents."""
        now_s = self._clock()
        due_s = self._monitor.next_deadline(exact=False)
        if due_s is not None and micros(due_s) <= micros(now_s):
            self._ask(self._monitor.tick)
        for running in list(self._running.values()):
            if running.started.activation not in self._monitor.graph.running:  # its agent has left
                self._running.pop(running.started.activation, None)
            elif self._ends_s(running) <= now_s:
                error = TimeoutError(f"took longer than {self._timeout_s:g} s")
                fail = partial(self._host.fail_activation, running.started, error)
                self._end(running.started, fail)
        for agent, beat_s in list(self._beats.items()):
            if agent not in self._monitor.graph.agents:
                del self._beats[agent]
            elif beat_s + self._terms.lost_s <= now_s:
                del self._beats[agent]
                self.incident(LOST, {"agent": agent, "silent_s": round(now_s - beat_s, 3)})
                self._ask(partial(self._monitor.leave, agent))
        waiting, self._waiting = self._waiting, []
        for agent in [*waiting, *(name for name, at in self._again.items() if at <= now_s)]:
            self._start(agent)
        self._fail_lost_requests()

    # --- what goes out ---

    def take(self) -> tuple[list[RequestLines], list[Release], list[str]]:
        """Take the lines to append, the releases to publish then, and agents without an inbox."""
        result = self._groups, self._releases, self.joined
        self._groups, self._releases, self.joined = [], [], []
        return result

    def missing_releases(self, heads: Mapping[str, tuple[int, int]]) -> list[Release]:
        """The releases of the journal missing in the inboxes, in order.

        Args:
            heads: The last sequence of each inbox, and the record that it came from.
        """
        answers = self.notes.answers.values()
        releases = [*map(self._activation, self._running.values()), *answers]
        # By number and not by equality: a later owner may be ahead already.
        missing = [r for r in releases if r.t > heads.get(r.token, (0, -1))[1]]
        return sorted(missing, key=lambda release: release.t)

    @property
    def waiting(self) -> int:
        """The number of requests whose lines nobody has taken."""
        return len(self._groups)

    # --- one request ---

    def _ask(self, request: Callable[[], list[Effect]]) -> None:
        """Make a request of the monitor, and keep the lines together."""
        effects = self._host.count_effects(request())
        if self._pending:
            lines, self._pending = b"".join(self._pending), []
            self._groups.append(RequestLines(lines, self._monitor.graph.t, self.cursor))
        self._carry_out(effects)
        fresh, self.notes.fresh = self.notes.fresh, []
        self._releases += sorted(fresh, key=lambda release: release.t)

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Wake):
                self._start(effect.agent)
            elif isinstance(effect, Started):
                view, (t, mark) = self._host.view(effect), self._starts.pop(effect.activation)
                since_us = micros(self._clock())
                running = RunningActivation(effect, view, since_us, t=t, mark=mark)
                self._running[effect.activation] = running
                self._releases.append(self._activation(running))
            elif isinstance(effect, Answered):
                self.notes.answer(effect)
            elif isinstance(effect, TakenOut):
                self._running.pop(effect.activation or "", None)
            elif isinstance(effect, Over):
                self.is_over = True

    def _activation(self, running: RunningActivation) -> Release:
        token = token_of(running.started.agent)
        return activation_release(
            token, running.t, running.mark, running.view, self.notes.contexts,
            self._terms.most_bytes,
        )  # fmt: skip

    def _ends_s(self, running: RunningActivation) -> float:
        return running.since_us / 1e6 + self._timeout_s

    def _busy(self) -> set[str]:
        return {running.started.agent for running in self._running.values()}

    def _start(self, agent: str) -> None:
        self._again.pop(agent, None)
        state = self._monitor.graph.agents.get(agent)
        if state is not None and state.activation is None and not self._monitor.is_over:
            self._ask(lambda: self._monitor.start(agent))

    def _fail_lost_requests(self) -> None:
        """Fail the requests with work at agents without further attempts."""
        requests = self._host.requests
        if not requests.lost or not self._host.is_stalled:
            return
        for events, activation, error in list(requests.lost_work()):
            if events:
                self._ask(partial(requests.fail, "error", events, activation, error))

    def _take(self, record: Record) -> None:
        line = self._lines.line(record, keeps_payload=True)
        self._pending.append(line)
        # The notes have the record already: they are a sink from the first record on.
        if isinstance(record, records.Start):
            self._starts[record.activation] = record.t, checksum(line)[:16]
