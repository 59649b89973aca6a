"""A run as far as it was followed, and the verdict on the run.

`RunSoFar` follows the records of a run, live or stored. The verdict has at most six lines: first
the failed request if there is one, then the task, the end, the failures, the healing and the cost.
The terminal, the page, `result.json`, notebooks and exports all show the verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from dig._util.text import counted, cut, first_sentence, join_clauses, name, one_line
from dig.graph import records
from dig.graph.graph import InteractionGraph
from dig.graph.words import MOST_NAMED, MOST_REASON, action_text, actions_text, healing_kind, moment

from .budget import limit_text
from .describe import SILENCED, Worth, pattern_title, plain_text, worth
from .finding import SEVERITIES, Finding, is_rivals, texts_in
from .headline import Headline, Headlines, answered_by, worst
from .late_turns import LateTurns
from .mended import CONSUMED

MOST_GOAL = 90
MOST_AGENTS = 1_000
MOST_ANSWERS = 1_000

Line = tuple[str, str]
"""A label and one or two sentences."""


@dataclass(frozen=True)
class FiveLines:
    """The verdict on a run: sentences about its course, in at most six lines.

    Attributes:
        headline: The failure of a request, or the agent whose work an answer lacks; empty: none.
        score: The quality of the answer.
        failure: The first failure, the moment of its finding, and the failures after it.
        healing: The interventions, and their result.
    """

    headline: str = ""
    task: str = ""
    end: str = ""
    score: str = ""
    failure: str = ""
    healing: str = ""
    cost: str = ""

    def lines(self) -> list[Line]:
        """The lines with a text, each with a label; the score ends the line of the end."""
        end = f"{self.end} {self.score}".strip()
        lines = asdict(replace(self, end=end, score=""))
        return [(label, text) for label, text in lines.items() if text]

    def with_score(self, says: str, spent: str = "") -> FiveLines:
        """Add the score and the expenses, unknown to records.

        Args:
            says: A sentence about the score of the answer; empty: the score is not known.
            spent: The tokens and the money that the run took; empty: they are not known.
        """
        cost = f"{self.cost} {spent}." if spent else self.cost
        return replace(self, score=self.score and (says or self.score), cost=cost)


class _Tally:
    """The number of a pattern's findings, the moment and the plain meaning of the first."""

    __slots__ = ("number", "plain", "us")

    def __init__(self, us: int, plain: str) -> None:
        self.number, self.us, self.plain = 0, us, plain

    def text(self, pattern: str) -> str:
        times = f" at {moment(self.us)}"
        if self.number > 1:
            times = f", {self.number:,} times from {moment(self.us)} on"
        return f"{pattern_title(pattern)}{times}: {self.plain}."


_Tallies = dict[Worth, dict[str, _Tally]]
"""The tallies of a run's findings, by severity and pattern."""


class RunSoFar:
    """Follows the records of a run; a sink.

    Attributes:
        run: The first record.
        is_early: Whether work is missing from the answer that was accepted last.
        partial: The limit of the budget at which that answer was handed back, in words; else empty.
    """

    def __init__(self, graph: InteractionGraph | None = None) -> None:
        """Begin before the first record.

        Args:
            graph: The graph of the run, to which each record was applied; ``None``: there is no
                headline.
        """
        self._graph = graph
        self._headlines = Headlines()
        self._late_turns = LateTurns()
        self._failing: dict[str, Headline] = {}  # by request
        self._lacking: dict[str, Headline] = {}  # by answer, until that is accepted
        self._lacks: Headline | None = None  # the accepted answer
        self._worse: set[str] = set()  # the patterns whose errors no answer has mended
        self.run: records.Run | None = None
        self.partial = self._limit = ""
        self.agents: dict[str, None] = {}
        self._us = self._running = 0
        self._counts: Counter[str] = Counter()
        self._goal = self._refused = self._error = ""
        self._error_of: str | None = None  # the activation that ended last, if it failed
        self._early: set[str] = set()  # answers that lack work
        self._failed: set[str] = set()  # answers that are errors
        self.is_early = self._came_after = False  # the latest answer; after the latest healing
        self._recorded: _Tallies = {}
        self._raised: _Tallies = {}
        self._heals: dict[str, list[records.HealRow]] = {}  # by kind: the first and the latest
        self._healed: Counter[str] = Counter()
        self._finish: records.Finish | None = None

    def __call__(self, record: records.Record, findings: Iterable[Finding] = ()) -> None:
        """Take a record into account.

        Args:
            record: The next record.
            findings: The findings that detectors raise at this record of a stored trace; they
                count if the trace itself has no findings.
        """
        self._us = record.us
        look = _LOOKS.get(type(record))
        if look is not None:
            look(self, record)
        for finding in findings:
            self._find(finding, self._raised)

    # --- one function a kind of record ---

    def _begin(self, record: records.Run) -> None:
        self.run, self.agents = record, dict.fromkeys(record.agents)

    def _emit(self, record: records.Emit) -> None:
        self._counts["messages"] += 1
        if record.by is None:
            self._headlines.look(record)
            self._counts["requests"] += 1
            self._goal = self._goal or goal_text(record.payload)
        elif record.final and record.by == self._error_of:
            self._failed.add(record.event)

    def _deliver(self, record: records.Deliver) -> None:
        if record.to is None:
            self.is_early, self._came_after = record.event in self._early, True
            self.partial = ""
            self._counts["failed" if record.event in self._failed else "answered"] += 1
            self._counts["early"] += self.is_early
            self._accept(record.event)
            for answers in (self._early, self._failed):
                answers.discard(record.event)
                if len(answers) > MOST_ANSWERS:  # those that were sent back never come here
                    answers.clear()

    def _accept(self, answer: str) -> None:
        """Forget the failures before an accepted answer; an answer may also lack work."""
        graph, lacks = self._graph, self._lacking.pop(answer, None)
        if graph is None or self.run is None:
            return
        is_session = self.run.session
        answered = answered_by(graph, answer) if is_session and self._failing else []
        if not self.is_early:
            self._worse &= {*CONSUMED, "STALL"}
        for request in [*self._failing] if not is_session else answered:
            self._failing.pop(request, None)
        if lacks is not None or not is_session:
            self._lacks = lacks

    def _incident(self, record: records.IncidentRow) -> None:
        self._headlines.look(record)
        self._late_turns.look(record)
        detail = record.detail if isinstance(record.detail, Mapping) else {}
        if record.what == records.REQUEST_FAILED and detail.get("event") is not None:
            self._counts["failed"] += detail.get("how") == "error"
        elif record.what == records.BUDGET and detail.get("stage") in ("stopped", "partial"):
            self._note_limit(detail)

    def _note_limit(self, detail: Mapping[str, Any]) -> None:
        self._limit = limit_text(detail)
        if detail["stage"] == "partial":
            self.partial = self._limit
            self._counts["partial"] += 1
            self._counts["early"] -= self.is_early  # it is partial for a reason that is known
            self.is_early = False

    def _start(self, record: records.Start) -> None:
        self._counts["turns"] += 1
        self._running += 1
        if len(self.agents) < MOST_AGENTS:  # hosts may make an agent for every turn
            self.agents.setdefault(records.base_name(record.agent))

    def _end(self, record: records.End) -> None:
        self._running -= 1
        self._error_of = None if record.error is None else record.activation
        if record.usage:
            self._late_turns.look(record)
        if record.error is not None:
            self._headlines.look(record)
        if record.error is not None and not record.error.startswith("BudgetStop"):
            self._counts["failed turns"] += 1
            self._error = self._error or first_sentence(record.error, MOST_REASON)

    def _find(self, finding: Finding | records.FindingRow, tallies: _Tallies | None = None) -> None:
        severity, pattern = worth(finding), str(finding.pattern)
        if self.run is None or is_rivals(pattern):
            return
        if severity == SILENCED:  # a detector of today may have raised the same just before
            self._keep_headline(finding)
            return
        if (pattern, finding.stage) == ("FAIL", "turn"):  # the verdict has the number of these
            return
        tallies = self._recorded if tallies is None else tallies
        by_pattern = tallies.setdefault(severity, {})
        if pattern not in by_pattern:
            plain = plain_text(finding, self.run.limits, self.agents)
            by_pattern[pattern] = _Tally(finding.us, plain)
        by_pattern[pattern].number += 1
        if not self._keep_headline(finding) and severity == "error":
            self._worse.add(pattern)
        if pattern == "ET" and severity == "error" and isinstance(finding.subject, Mapping):
            self._early.add(str(finding.subject.get("event")))

    def _keep_headline(self, finding: Finding | records.FindingRow) -> bool:
        """Keep the headline of a finding that is not silenced; return whether there is one."""
        headline = None if self._graph is None else self._headlines.of(self._graph, finding)
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

    @property
    def headline(self) -> Headline | None:
        """The failed request without an answer, or else the accepted answer that lacks work."""
        lacks = [] if self._lacks is None else [self._lacks]
        return worst([*lacks, *self._failing.values()], has_errors=bool(self._worse))

    def _heal(self, record: records.HealRow) -> None:
        if record.action == "refused":
            self._refused = self._refused or one_line(record.reason, MOST_REASON)
            return
        kind = healing_kind(record)
        # The text needs the first, and the moments of the first and the latest.
        self._heals[kind] = [*self._heals.get(kind, [record])[:1], record]
        self._healed[kind] += 1
        self._came_after = False

    def _close(self, record: records.Finish) -> None:
        self._finish = record

    # --- in words ---

    def verdict(self, *, state: str = "", private: bool = False) -> FiveLines:
        """Give the verdict on the run as far as it was followed.

        Args:
            state: The state of a run without an end, `cut off` for instance; empty: not known.
            private: Leave out the words of the task and of errors.
        """
        headline = self.headline
        says = "" if headline is None else headline.private if private else headline.says
        return FiveLines(
            says,
            self._task_text(private),
            " ".join([self._end_text(state), *self._late_turns.texts()]),
            "The answer was not scored." if self._counts["answered"] else "",
            self._failure_text(private),
            self._healing_text(),
            self._cost_text(),
        )

    def _task_text(self, private: bool) -> str:
        task = self.run.task if self.run else None
        goal = ("" if private else self._goal) or ("" if task is None else name(task))
        team = counted(len(self.agents), "agent")
        if self.run and self.run.session:
            requests = counted(self._counts["requests"], "request")
            first = ": " if self._counts["requests"] == 1 else "; the first: "
            return f"{requests} to a team of {team}" + (f"{first}{goal}" if goal else "")
        return f"{goal} ({team})" if goal else f"a run of {team}"

    def _end_text(self, state: str) -> str:
        length, has_answer = moment(self._us), self._counts["answered"] > 0
        state_text = f" ({state})" if state and self._finish is None else ""
        if self.run and self.run.session:
            return f"{self._requests_text()} The session lasted {length}{state_text}."
        if self._finish is None:
            none = "" if has_answer else " There is no answer so far."
            return f"The trace ends after {length}, and the run has no end{state_text}.{none}"
        if self._finish.outcome == "submitted" and self.partial:
            return f"A partial answer was accepted after {length}: {self.partial}."
        if self._finish.outcome == "submitted":
            return f"An answer was accepted after {length}{_LACKING if self.is_early else ''}."
        end = _ENDS[self._finish.outcome]
        if self._finish.outcome == "stopped" and self._limit:
            end = f"The run was {self._limit},"
        elif self._finish.outcome == "stopped" and not self._running:
            end = "The run stopped because nothing could go on any more,"
        return f"{end} after {length}." + ("" if has_answer else " There is no answer.")

    @property
    def requests(self) -> dict[str, int]:
        """The number of a session's requests by their end; empty for another run."""
        if not (self.run and self.run.session):
            return {}
        counts = self._counts
        early, failed, partial = counts["early"], counts["failed"], counts["partial"]
        states = {
            "answered": counts["answered"] - early - partial,
            _EARLY: early,
            "answered in part": partial,
            "ended by an error": failed,
            "left without an answer": max(0, counts["requests"] - counts["answered"] - failed),
        }
        return {state: number for state, number in states.items() if number}

    def _requests_text(self) -> str:
        requests, states = self._counts["requests"], self.requests
        parts: list[str] = []
        for state, number in states.items():
            end = f"answered{_LACKING}" if state == _EARLY else state
            if requests == 1:
                return f"The request was {end}{f': {self.partial}' if self.partial else ''}."
            parts.append(f"{number:,} {'was' if number == 1 else 'were'} {end}")
        if not parts:
            return "There was no request."
        return f"Of {counted(requests, 'request')} {join_clauses(parts)}."

    def _failure_text(self, private: bool) -> str:
        number, has_headline = self._counts["failed turns"], self.headline is not None
        text = self._findings_text(number > 0, {"FAIL"} if has_headline else set())
        if has_headline:
            return text
        if number:
            error = "." if private else f": {self._error}"
            text += f" {counted(number, 'turn')} ended with an error{error}"
        return text.lstrip() or "None was found."

    def _findings_text(self, has_errors: bool, without: set[str]) -> str:
        """The worst findings in the order of their first: the first three patterns in full.

        Args:
            has_errors: Whether turns ended with an error, which the verdict says after this.
            without: The patterns that the headline covers.
        """
        # A trace's own findings; only of one without findings those of today's detectors.
        by_severity = self._recorded or self._raised
        for severity in SEVERITIES:
            tallies = by_severity.get(severity, {})
            patterns = [pattern for pattern in tallies if pattern not in without]
            if not patterns:
                continue
            text, *later = (tallies[pattern].text(pattern) for pattern in patterns[:MOST_NAMED])
            if severity == "error":
                text = f"{text[0].upper()}{text[1:]}"
            else:
                text = f"{'' if has_errors else 'No error. '}A {severity}: {text}"
            text += "".join(f" Later {sentence}" for sentence in later)
            more = [pattern_title(pattern) for pattern in patterns[MOST_NAMED:]]
            return text + (f" Later also {cut(more)}." if more else "")
        return ""

    def _healing_text(self) -> str:
        if not self._heals:
            if not (self._recorded or self._raised):
                return "Nothing had to be done." if self._finish else "Nothing was done so far."
            return f"Nothing was done{f': {self._refused}' if self._refused else ''}."
        deeds = [
            action_text(self._heals[kind][0], len(self.agents))
            if number == 1
            else actions_text(kind, number)
            for kind, number in self._healed.items()
        ]
        times = [row.us for rows in self._heals.values() for row in rows]
        first, last = moment(min(times)), moment(max(times))
        moments = f"At {first}" if first == last else f"From {first} to {last}"
        after = "After that an answer was accepted."
        if not self._came_after:
            after = "No answer came after that."
        return f"{moments} the monitor {join_clauses(deeds)}. {after}"

    def _cost_text(self) -> str:
        parts = {
            "turn": self._counts["turns"],
            "message": self._counts["messages"],
            "intervention": self._healed.total(),
        }
        numbers = [counted(number, noun) for noun, number in parts.items() if number]
        return f"{cut(numbers)} in {moment(self._us)}."


_EARLY = "answered too early"
_LACKING = ", although some of its work was missing by the account of the monitor"
_ENDS = {
    "timeout": "The time limit ended the run",
    "stopped": "The run was stopped",
    "error": "The run ended with an error",
}
_LOOKS: Mapping[type, Any] = {
    records.Run: RunSoFar._begin,
    records.Emit: RunSoFar._emit,
    records.Deliver: RunSoFar._deliver,
    records.Start: RunSoFar._start,
    records.End: RunSoFar._end,
    records.FindingRow: RunSoFar._find,
    records.HealRow: RunSoFar._heal,
    records.IncidentRow: RunSoFar._incident,
    records.Finish: RunSoFar._close,
}


def goal_text(payload: Any) -> str:
    """The first sentence of a request: of the payload's goal, or else of the longest text."""
    goal = payload.get("goal") if isinstance(payload, Mapping) else None
    text = goal or max(islice(texts_in(payload), 50), key=len, default="")
    first = one_line(text, 400).partition(". ")[0].rstrip(".")
    return one_line(first, MOST_GOAL)
