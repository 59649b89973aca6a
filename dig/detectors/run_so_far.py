"""A run as far as it was followed: what the five answers about the run need of its records.

`RunSoFar` follows the records of a run, live or stored, and keeps little of each, so that a session
may go on for months. `dig.detectors.five_answers` puts the run into words.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dig._util.text import first_words, name, one_line
from dig.graph import records
from dig.graph.graph import InteractionGraph
from dig.graph.history import CONSUMED as TAKEN
from dig.graph.history import FINAL
from dig.graph.turns import TurnStarts
from dig.graph.words import MOST_REASON, REMARK, healing_kind, moment

from .describe import (
    SILENCED,
    count_open,
    count_unread,
    finding_text,
    list_lost,
    loss_text,
    missing_text,
    plain_text,
    sums_in,
    worth,
)
from .finding import Finding, is_rivals, responsible_agents
from .headline import (
    Headline,
    Headlines,
    answered_by,
    is_framework_node,
    is_unanswered,
    only_waited,
    worst,
)
from .holders import find_keeper, list_holders
from .mended import CONSUMED
from .message_words import goal_text
from .patterns.repeats import content_of
from .spending_limits import limit_text
from .tallies import Errors, FailedTurns, LateTurns, PatternTally, Tallies, count_by_end

MOST_AGENTS = 1_000
MOST_ANSWERS = 1_000
MOST_INPUTS = 10_000  # of turns that used nothing
MOST_MESSAGES = 200


class RunSoFar:
    """Follows the records of a run; a sink.

    Attributes:
        run: The first record; finish: the last one, if the run has ended.
        us: The moment of the latest record; ended_us: that of the latest end of a turn;
            us_answered: that of the latest accepted answer.
        headlines: The errors of the run, the agents that never ran, and the branches of joins.
        goal: The first words of the first request.
        agents: The names of the agents, the first thousand.
        starts_turn: Whether a turn starts with the latest start.
        turns: The number of turns, by agent; failed: those that ended with an error of its own.
        spent: The tokens and the dollars in the usage of an agent's turns, and its microseconds at
            work, by agent; longest: the length of its longest activation, that, and its beginning;
            dearest: the tokens of the activation with most, and that.
        handed_on: The number of handed on events, by agent; handed_by: the last giver, by taker.
        dropped: The target of the latest handoff that was not carried out, by agent.
        cancelled: The latest turn that was called off, by agent; called_off: their number;
            callers: the agents that waited for the latest, likewise.
        latest: The end of the latest turn, by agent; silent: of the latest turn that consumed and
            put nothing out; a thousand each. departures: The latest departure, by agent.
        messages: The latest messages and requests, with their payloads; senders: their agents, by
            event; answer: the latest answer that was accepted.
        running: The starts of the turns in progress, by activation; asks: the waits with questions;
            waited: of a wait that is over, its activation and its length, by agent.
        began: The beginning of the latest turn that was called off, by agent.
        unanswered: The first words of requests that ended without an answer, by request.
        counts: The numbers of requests by their end, of turns, and of messages.
        recorded, raised: The findings of the trace, and those of detectors of today.
        heals: The first and the latest intervention of each kind; healed: their numbers;
            recipients: the agents that these were for.
        refused: The reason of the first intervention that was refused; empty: none was.
        came_after: Whether an answer was accepted after the latest intervention.
        is_noted: Whether that intervention was a note beside the very answer.
        limit: The limit of the budget that stopped something, in words; else empty.
        limited: The first record of that; ``None``: there was no limit.
        is_imported, is_halted: Whether the trace was made from another file, after the run; whether
            a person or a program ended the run.
        skipped: The patterns that this cannot show.
        is_early: Whether work is missing from the answer that was accepted last; void: what it is
            instead of an answer; empty: it is an answer.
        partial: The limit of the budget at which that answer was handed back, in words; else empty.
    """

    def __init__(self, graph: InteractionGraph | None = None) -> None:
        """Begin before the first record.

        Args:
            graph: The graph of the run, to which each record was applied; ``None``: there is no
                headline.
        """
        self.graph = graph
        self.headlines, self._starts, self.starts_turn = Headlines(), TurnStarts(False), False
        self.late_turns = LateTurns()
        self._failing: dict[str, Headline] = {}  # by request
        self._lacking: dict[str, Headline] = {}  # by answer, until that is accepted
        self._lacks: Headline | None = None
        self._worse: set[str] = set()  # the patterns whose errors no answer has mended
        self._errors = defaultdict[str, Errors](Errors)  # none before the first error
        self.run: records.Run | None = None
        self.partial = self.limit = self.void = self.goal = self.refused = ""
        self.limited: records.IncidentRow | None = None
        self.is_imported = self.is_halted = self._is_behind = False
        self.skipped, self.agents = list[str](), dict[str, None]()
        self.us = self.ended_us = self.us_answered = 0
        self.latest, self.silent = dict[str, records.End](), dict[str, records.End]()
        self.messages = deque[records.Emit](maxlen=MOST_MESSAGES)
        self.senders, self.dropped = dict[str, str](), dict[str, str]()
        self.running, self.departures = dict[str, records.Start](), dict[str, records.Leave]()
        self.asks: dict[str, Mapping[str, Any]] = {}  # activation -> its wait, with the question
        self.counts, self.turns = Counter[str](), Counter[str]()  # the turns by agent
        self.handed_on, self.handed_by = Counter[str](), dict[str, tuple[str, records.End]]()
        self.spent: dict[str, Counter[str]] = defaultdict(Counter)  # by agent
        self.longest, self.dearest = dict[str, tuple[int, str, int]](), dict[str, tuple[int, str]]()
        self.answer: records.Emit | None = None
        self.waited = dict[str, tuple[str, int]]()  # by agent
        self.began, self.unanswered = dict[str, int](), dict[str, str]()
        self.failed, self.cancelled = dict[str, FailedTurns](), dict[str, records.End]()
        self.called_off, self.callers = Counter[str](), dict[str, dict[str, None]]()
        self._emitter = "", ""  # the activation that ended last, and its agent
        self._error: records.End | None = None  # its end, if it failed
        # By turn that used nothing the inputs that nobody has used since; and the other way round.
        self._unused, self._unused_by = dict[str, set[str]](), dict[str, list[str]]()
        self._erred: set[str] = set()  # requests that ended by an error
        self._again = set[str]()  # failed ones without an answer that were asked again
        self._remembered: set[str] = set()  # those behind the latest answer by memory alone
        self._early: set[str] = set()  # answers that lack work
        self._void: dict[str, str] = {}  # answers that are none, with the reason
        self._failed: dict[str, str] = {}  # answers that are errors: `failed` or `cancelled`
        self._noted = set[str | None]()  # the event of the latest intervention
        self._bounced: str | None = None  # the latest answer that was sent back
        self._total = self._number = 0  # requests: all that are answered, by the latest answer
        self.is_early = self.came_after = self.is_noted = False  # the latest answer
        self._has_acted = False  # otherwise than by notes beside answers
        self.recorded, self.raised = Tallies(), Tallies()
        self.heals: dict[str, list[records.HealRow]] = {}  # by kind: the first and the latest
        self.recipients, self.healed = dict[str, dict[str, None]](), Counter[str]()
        self.finish: records.Finish | None = None

    def __call__(self, record: records.Record, findings: Iterable[Finding] = ()) -> None:
        """Take a record into account.

        Args:
            record: The next record.
            findings: The findings that detectors raise at this record of a stored trace; they
                count if the trace itself has no findings.
        """
        self.write((record,))
        for finding in findings:
            self.add(finding)

    def add(self, finding: Finding) -> None:
        """Take a finding of a detector at the latest record into account."""
        self._find(finding, self.raised)

    def write(self, rows: Sequence[records.Record]) -> None:
        """Take the records of a request into account."""
        graph = self.graph
        if graph is not None and not self._is_behind:
            self._is_behind = graph.run.session and graph.t != rows[0].t
        for row in rows:
            _LOOKS[type(row)](self, row)
            if self._errors and graph is not None and not self._is_behind:
                for errors in self._errors.values():
                    errors.mending.look(graph, row)
        self.us = rows[-1].us

    # --- one function a kind of record ---

    def _begin(self, record: records.Run) -> None:
        self.run, self.agents = record, dict.fromkeys(record.agents)
        self._starts = TurnStarts(record.session)

    def _emit(self, record: records.Emit) -> None:
        by, is_notice, sender = record.by, record.type == records.NOTICE, ""
        self.counts["messages"] += 1
        if len(self.messages) == MOST_MESSAGES:
            self.senders.pop(self.messages[0].event, None)
        self.messages.append(record)
        if by == self._emitter[0] and self.graph is not None:
            sender = self.senders[record.event] = self._emitter[1]
        if record.final or is_notice:
            self._starts.emit(record)
        elif record.type == records.HANDOFF and not record.to and by is not None:
            self._note_dropped(record.event, record.payload)
        if by is None or self.limit:  # what the last turn at a limit asks for, too
            self.headlines.look(record)
        # A framework may pass a request on in words that the request itself does not have.
        if not (self.goal or is_notice) and (by is None or is_framework_node(sender)):
            self.goal = goal_text(record.payload)
        if by is None and not is_notice:
            self.counts["requests"] += 1
        elif record.final and self._error and by == self._error.activation:
            self._failed[record.event] = "cancelled" if self._error.cancelled else "failed"

    def _note_dropped(self, event: str, target: Any) -> None:
        """Note a handoff without a recipient: a framework dropped the handoff."""
        if isinstance(target, Mapping) and "handoff" in target and len(self.dropped) < MOST_AGENTS:
            self.dropped[self.senders.get(event, "")] = name(target["handoff"])

    def _deliver(self, record: records.Deliver) -> None:
        if record.to is None:
            self._starts.accept(record.event)
            if record.event not in self._failed:
                self.answer, self.us_answered = self.message(record.event), record.us
            self.is_early = record.event in self._early
            self.void = self._void.pop(record.event, "")
            # A note beside this very answer came too late for it.
            self.came_after = record.event not in self._noted or self._has_acted
            self.is_noted = not self.came_after
            self.partial = ""
            self._number = self._count_answered(record.event)
            self.counts[self._failed.pop(record.event, "answered")] += self._number
            self.counts["early"] += self.is_early * self._number
            self.counts["void"] += self._number * (self.void != "" and not self.is_early)
            self._accept(record.event)
            self._early.discard(record.event)
            for answers in (self._early, self._failed, self._void):
                if len(answers) > MOST_ANSWERS:  # those that were sent back never come here
                    answers.clear()

    def message(self, event: object) -> records.Emit | None:
        """A message with the payload; ``None``: too long ago."""
        return next((m for m in reversed(self.messages) if m.event == event), None)

    def _count_answered(self, answer: str) -> int:
        """The number of requests behind the latest accepted answer."""
        if self.graph is None or not (self.run and self.run.session):
            return 1
        before, self._total = self._total, self.graph.problems.number_answered
        return self._total - before - self._count_remembered(answer)

    def _count_remembered(self, answer: str) -> int:
        """The failed requests behind an answer by the memory of its agent alone: not answered."""
        graph, self._remembered = self.graph, set()
        if graph is None or not self._erred:
            return 0
        answered = self._erred & {*answered_by(graph, answer)}
        n = graph.history.event(answer)
        own = {*graph.source_ids(graph.sources_of(n))} if n is not None else set[str]()
        self._erred -= answered
        self._remembered = answered - own
        return len(self._remembered)

    def _accept(self, answer: str) -> None:
        """Forget the failures before an accepted answer; an answer may also lack work."""
        graph, lacks = self.graph, self._lacking.pop(answer, None)
        if graph is None or self.run is None:
            return
        is_session = self.run.session
        is_followed = is_session and (self._failing or self._again)
        answered = {*answered_by(graph, answer)} if is_followed else set[str]()
        late = {r for r in answered & self._again if not is_unanswered(graph, r)}
        self._again -= late
        self.counts["again"] -= len(late - self._remembered)  # they count as answered now
        if not self.is_early:
            self._worse &= {*CONSUMED, "STALL"}
        answered = {*self._failing} if not is_session else answered - self._remembered
        for request in answered:
            self._failing.pop(request, None)
        for request in answered:
            self._forgive(graph, request)
        if lacks is not None or not is_session:
            self._lacks = lacks

    def _forgive(self, graph: InteractionGraph, request: str) -> None:
        """Forget the failures of requests with the words of a request that was answered."""
        asked = self.message(request)
        # Words that are not recorded, or not as a whole, are never taken for equal.
        is_known = asked is not None and content_of(asked.payload) is not None
        for failing in [*self._failing] if is_known else ():
            failed = self.message(failing)
            if asked and failed and (failed.payload, failed.to) == (asked.payload, asked.to):
                del self._failing[failing]
                if is_unanswered(graph, failing) and len(self._again) < MOST_ANSWERS:
                    self._again.add(failing)
                self.counts["again"] += 1
                self.counts["failed"] -= failing in self._erred | self._remembered

    def _incident(self, record: records.IncidentRow) -> None:
        self.headlines.look(record)
        self.late_turns.look(record)
        detail = record.detail if isinstance(record.detail, Mapping) else {}
        if record.what == "import":
            self.is_imported = True
            skipped = detail.get("not_looked_at")
            self.skipped = skipped if isinstance(skipped, list) else self.skipped
        if record.what == records.REQUEST_FAILED and detail.get("event") is not None:
            request = self.message(detail["event"])
            if request is not None and len(self.unanswered) < MOST_ANSWERS:
                self.unanswered[request.event] = goal_text(request.payload)
            if detail.get("how") == "limit":
                self._leave_conductor_out(detail)
            elif detail.get("how") == "error":
                self.counts["failed"] += 1
                if len(self._erred) < MOST_ANSWERS:
                    self._erred.add(str(detail["event"]))
        elif record.what == records.WAITS:
            self.asks[str(detail.get("activation"))] = {**detail, "t": record.t, "us": record.us}
            if len(self.asks) > MOST_ANSWERS:
                del self.asks[next(iter(self.asks))]
        elif record.what == records.STOPPED_FROM_OUTSIDE:
            self.is_halted = True
        elif record.what == records.BUDGET and detail.get("stage") in ("stopped", "partial"):
            self._note_limit(record, detail)

    def _leave_conductor_out(self, detail: Mapping[str, Any]) -> None:
        """Take out of the team a manager whose turn only ended a chat at a limit."""
        team = self.run.agents if self.run else ()
        for agent, end in self.latest.items():
            if end is self._error and self.headlines.is_conductor(team, agent, end, detail):
                self.agents.pop(agent, None)
                self.counts["turns"] -= self.turns.pop(agent, 0)

    def _note_limit(self, record: records.IncidentRow, detail: Mapping[str, Any]) -> None:
        self.limited = self.limited or record
        self.limit = limit_text(detail)
        if detail.get("limit") == "seconds":  # a turn at work is not cut off, so it may be later
            stopped = f"stopped at {moment(self.limited.us)}, past its limit of"
            self.limit = self.limit.replace("stopped at", stopped, 1)
        if detail["stage"] == "partial":
            self.partial = self.limit
            self.counts["partial"] += self._number
            # It is partial for a reason that is known, so it does not count as early.
            self.counts["early"] -= self.is_early * self._number
            self.counts["void"] -= self._number * (self.void != "" and not self.is_early)
            self.is_early = False

    def _start(self, record: records.Start) -> None:
        starts = self.starts_turn = self._starts.start(record)
        self.counts["turns"] += starts
        self.running[record.activation] = record
        agent = records.base_name(record.agent)
        # Hosts may make an agent for every turn.
        if agent in self.agents or len(self.agents) < MOST_AGENTS:
            self.agents[agent] = None
            if starts:  # a part of a wrapper has no row
                self.turns[agent] += 1
        if len(self.running) > MOST_AGENTS:  # the turn of an agent that leaves never ends
            del self.running[next(iter(self.running))]

    def _leave(self, record: records.Leave) -> None:
        if records.base_name(record.agent) == record.agent and len(self.departures) < MOST_AGENTS:
            self.departures[record.agent] = record

    def _end(self, record: records.End) -> None:
        start, self.ended_us = self.running.pop(record.activation, None), record.us
        agent = "" if start is None else records.base_name(start.agent)
        self._emitter = record.activation, agent
        self._starts.end(record, "" if start is None else start.agent)
        wait = self.asks.get(record.activation) if self.asks else None
        if wait and len(self.waited) < MOST_AGENTS:
            self.waited[agent] = record.activation, record.us - wait["us"]
        if start is not None and agent in self.agents and not wait:
            turn = record.us - start.us, record.activation, start.us
            self.spent[agent]["us"] += turn[0]
            self.longest[agent] = max(turn, self.longest.get(agent, turn))
        if agent in self.latest or len(self.latest) < MOST_AGENTS:
            self.latest[agent] = record
            if not record.outputs and "consume" in {fate.fate for fate in record.fates}:
                self.silent[agent] = record
        self._error = None if record.error is None else record
        for fate in record.fates:
            if fate.fate == "reroute":
                if agent in self.agents:
                    self.handed_on[agent] += 1
                    for taker in {records.base_name(to) for to in fate.to[:1]} & self.agents.keys():
                        self.handed_by[taker] = agent, record
            elif fate.fate == "consume" and self._unused_by:
                for activation in self._unused_by.pop(fate.event, ()):
                    self._unused.get(activation, set()).discard(fate.event)
        if record.usage:
            self.late_turns.look(record)
            if agent in self.agents:
                sums = sums_in(record.usage)
                self.spent[agent].update(sums)
                dear = sums["tokens"], record.activation
                self.dearest[agent] = max(dear, self.dearest.get(agent, dear))
        if record.error is not None:
            self.headlines.look(record)
            if record.cancelled:
                if agent in self.agents and not only_waited(self.graph, record):
                    self._call_off(agent, record, start)
            elif record.because is None:
                self._fail(agent, record, start)

    def _call_off(self, agent: str, record: records.End, start: records.Start | None) -> None:
        """Keep a turn that was called off, the latest of its agent."""
        if earlier := self.cancelled.get(agent):
            self._unused.pop(earlier.activation, None)
        self.cancelled[agent] = record
        self.called_off[agent] += 1
        self.began.pop(agent, None)
        if start is not None:
            self.began[agent] = start.us
        callers = (self.senders.get(fate.event) for fate in record.fates)
        self.callers[agent] = dict.fromkeys(a for a in callers if a and a != agent)
        self._remember_inputs(record.activation)

    def _fail(self, agent: str, record: records.End, start: records.Start | None) -> None:
        """Count a failed turn; the first is kept."""
        self.counts["failed turns"] += 1
        if agent not in self.failed and len(self.failed) < MOST_AGENTS:
            failed = FailedTurns(record, first_words(record.error, MOST_REASON), start)
            self.failed[agent] = failed
            self._remember_inputs(record.activation)
            off = {end.activation: agent for agent, end in self.cancelled.items()}
            for message in filter(None, (self.message(fate.event) for fate in record.fates)):
                failed.input = failed.input if message.type == records.NOTICE else message
                failed.awaited = failed.awaited or off.get(message.by or "", "")
        if agent in self.failed:
            self.failed[agent].number += 1
            self.failed[agent].us_latest = record.us

    def _find(self, finding: Finding | records.FindingRow, tallies: Tallies | None = None) -> None:
        severity, pattern = worth(finding), str(finding.pattern)
        if self.run is None or is_rivals(pattern):
            return
        if severity == SILENCED:  # a detector of today may have raised the same just before
            self._keep_headline(finding)
            return
        if (pattern, finding.stage) == ("FAIL", "turn"):  # the verdict has their number
            return
        kind = "recorded" if tallies is None else "raised"
        if severity == "error" and self.graph is not None:
            self._errors[kind].add(self.graph, finding)
        tallies = self.recorded if tallies is None else tallies
        by_pattern = tallies.setdefault(severity, {})
        if pattern not in by_pattern:
            plain = plain_text(finding, self.run.limits, self.agents)
            by_pattern[pattern] = PatternTally(finding, plain)
            evidence = finding.evidence if isinstance(finding.evidence, Mapping) else {}
            if self.graph is not None:
                self._add_facts(self.graph, finding, evidence, by_pattern[pattern])
        elif pattern == "OE" and self.graph is not None and isinstance(finding.subject, Mapping):
            event = str(finding.subject.get("event"))
            if loss_text(self.graph, event):  # a trace may hold anything
                by_pattern[pattern].us_latest = self.graph.event(event).us_lost
        by_pattern[pattern].number += 1
        if self.graph is not None and len(by_pattern[pattern].agents) < MOST_AGENTS:
            agents = self._departed(finding) or responsible_agents(self.graph, finding)
            by_pattern[pattern].agents.update(a for a in agents if not is_framework_node(a))
        if not self._keep_headline(finding) and severity == "error":
            self._worse.add(pattern)
        if pattern == "ET" and severity == "error" and isinstance(finding.subject, Mapping):
            self._early.add(str(finding.subject.get("event")))
        if pattern == "VOID" and severity == "error" and isinstance(finding.subject, Mapping):
            _, _, flaw = finding_text(finding).partition(" is ")
            self._void[str(finding.subject.get("event"))] = flaw

    def _departed(self, finding: Finding | records.FindingRow) -> list[str]:
        """The agents that left with an orphaned event; empty: the loss has another reason."""
        subject = finding.subject if isinstance(finding.subject, Mapping) else {}
        event = str(subject.get("event"))
        if finding.pattern != "OE" or self.graph is None or not self.graph.knows(event):
            return []
        state = self.graph.event(event)
        agents = map(records.base_name, state.sent_to if state.cause == "left" else ())
        return [agent for agent in agents if agent in self.departures]

    def _add_facts(
        self, graph: InteractionGraph, finding: Finding | records.FindingRow,
        evidence: Mapping[str, Any], tally: PatternTally,
    ) -> None:  # fmt: skip
        """Add facts of the graph about the first finding of a pattern."""
        pattern, waiting = str(finding.pattern), evidence.get("waiting")
        subject = finding.subject if isinstance(finding.subject, Mapping) else {}
        event = str(subject.get("event"))
        if pattern == "ET":
            unresolved, uncovered = evidence.get("unresolved"), evidence.get("uncovered")
            tally.open_work = count_open(graph, unresolved)
            tally.losses = list_lost(graph, uncovered)
            turns = reversed([*graph.running.values()])
            tally.at_work = {records.base_name(a.agent): a.us_start for a in turns}
            submitter, tally.unread = count_unread(graph, event, unresolved)
            tally.plain += missing_text(graph, submitter, tally.open_work, tally.unread, uncovered)
        elif pattern == "MC" and self.run is not None and not self.run.session:
            # A session may have let go of the turns before.
            tally.keeper = find_keeper(graph, subject, self.silent)
        elif pattern == "OE" and (loss := loss_text(graph, event)):
            tally.loss, tally.us = loss, graph.event(event).us_lost
        elif (pattern, finding.stage) == ("FAIL", "request"):
            tally.plain = "a request ended without an answer"
        if isinstance(waiting, Mapping):
            tally.holders = list_holders(graph, self.latest, waiting)

    def _keep_headline(self, finding: Finding | records.FindingRow) -> bool:
        """Keep the headline of a finding, unless silenced; return whether there is any."""
        headline = None if self.graph is None else self.headlines.of(self.graph, finding)
        if headline is None:
            return False
        headlines = self._failing if headline.stage == "request" else self._lacking
        headlines.pop(headline.event, None)  # the latest comes last
        if finding.silenced is None:
            headlines[headline.event] = headline
        # A service may run for months: what is kept must not grow with the number of requests.
        if len(headlines) > MOST_ANSWERS:
            del headlines[next(iter(headlines))]
        return True

    def _remember_inputs(self, activation: str) -> None:
        """Remember the inputs of a turn without a used input, until other turns use them."""
        # Followed from here on, because a session lets go of what was used.
        h = self.graph.history if self.graph is not None else None
        v = None if h is None else h.activation(activation)
        if h is None or v is None or h.inputs(v) or len(self._unused_by) >= MOST_INPUTS:
            return
        inputs = h.edge_event[h.first_edge[v] : h.first_edge[v + 1]]
        events = {h.event_ids[n] for n in inputs if h.is_work(n) and not h.flags[n] & TAKEN}
        self._unused[activation] = events
        for event in events:
            self._unused_by.setdefault(event, []).append(activation)

    def goes_on(self, activation: str) -> bool:
        """Whether a failed or cancelled turn used nothing, and other turns used all inputs."""
        return activation in self._unused and not self._unused[activation]

    @property
    def at_work(self) -> dict[str, None]:
        """The agents of the turns in progress."""
        return dict.fromkeys(records.base_name(start.agent) for start in self.running.values())

    @property
    def errors(self) -> tuple[int, int | None]:
        """The numbers of errors and of unmended errors; ``None``: the latter is not known.

        They are those of the trace or, without any, those of detectors of today.
        """
        errors = self._errors.get("recorded" if self.recorded else "raised") or Errors()
        # The graph of a live session is ahead of the records that come here, so it cannot tell.
        return errors.number, None if self._is_behind and errors.number else errors.unmended

    @property
    def headline(self) -> Headline | None:
        """The failed request without an answer, or else the accepted answer without all work."""
        lacks = [] if self._lacks is None else [self._lacks]
        return worst([*lacks, *self._failing.values()], has_errors=bool(self._worse))

    def _heal(self, record: records.HealRow) -> None:
        if record.action == "refused":
            self.refused = self.refused or one_line(record.reason, MOST_REASON)
            return
        kind, event = healing_kind(record), None if record.event is None else str(record.event)
        is_answer = self._is_answer(event)
        self._bounced = event if kind == "answer" else self._bounced
        if kind == "inject" and is_answer and event != self._bounced:
            kind = REMARK
        to = record.to if isinstance(record.to, tuple) else ()
        recipients = self.recipients.setdefault(kind, {})
        if len(recipients) < MOST_AGENTS:
            recipients |= dict.fromkeys(map(str, to))
        # The text needs the first, and the moments of the first and the latest.
        self.heals[kind] = [*self.heals.get(kind, [record])[:1], record]
        self.healed[kind] += 1
        self.came_after = self.is_noted = False
        self._has_acted |= record.action != "inject" or not is_answer
        self._noted = {event}

    def _is_answer(self, event: str | None) -> bool:
        h = self.graph.history if self.graph is not None else None
        n = None if h is None or event is None else h.event(event)
        return h is None or (n is not None and h.flags[n] & FINAL > 0)

    @property
    def requests(self) -> dict[str, int]:
        """The number of a session's requests by end; empty for another run."""
        return count_by_end(self.counts) if self.run and self.run.session else {}


_LOOKS: Mapping[type, Any] = {
    records.Run: RunSoFar._begin,
    records.Emit: RunSoFar._emit,
    records.Deliver: RunSoFar._deliver,
    records.Start: RunSoFar._start,
    records.End: RunSoFar._end,
    records.Leave: RunSoFar._leave,
    records.FindingRow: RunSoFar._find,
    records.HealRow: RunSoFar._heal,
    records.IncidentRow: RunSoFar._incident,
    records.Finish: lambda run, record: setattr(run, "finish", record),
    **dict.fromkeys((records.Join, records.Redirect, records.Expire), lambda run, record: None),
}
