"""The verdict on a run: at most six lines for a reader who does not know the project.

`RunSoFar` follows the records of a run, live or stored. Its `verdict` says first what failed, if a
request did, then what the run was to do, how it ended, what went wrong, what healing did and what
it cost. The terminal, the page, `result.json`, notebooks and exports all show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from dig._util.text import counted, cut, name, one_line
from dig.graph.graph import InteractionGraph
from dig.graph.records import (
    REQUEST_FAILED,
    Deliver,
    Emit,
    End,
    FindingRow,
    Finish,
    HealRow,
    IncidentRow,
    Limits,
    Record,
    Run,
    Start,
    base_name,
)
from dig.graph.words import MOST_NAMED, MOST_REASON, action_text, actions_text, healing_kind, moment

from .describe import SILENCED, worth
from .finding import SEVERITIES, Finding, is_rivals, texts_in
from .headline import Headline, Headlines, answered_by, worst
from .mended import CONSUMED
from .patterns import BY_NAME

MOST_GOAL = 90
MOST_AGENTS = 1_000
MOST_ANSWERS = 1_000

Line = tuple[str, str]
"""A label and a sentence or two."""


@dataclass(frozen=True)
class FiveLines:
    """The course of a run, in words.

    Attributes:
        headline: The failure of a request, or the agent whose work its answer lacks; empty: none.
        task: The task of the run.
        end: The end of the run.
        score: The quality of its answer.
        failure: The first failure, when it was found, and the failures after it.
        healing: The deeds of healing, and their result.
        cost: The cost of the run.
    """

    headline: str = ""
    task: str = ""
    end: str = ""
    score: str = ""
    failure: str = ""
    healing: str = ""
    cost: str = ""

    def lines(self) -> list[Line]:
        """The lines that say something, each with its label."""
        end = f"{self.end} {self.score}".strip()
        lines = asdict(replace(self, end=end, score=""))
        return [(label, text) for label, text in lines.items() if text]

    def scored(self, says: str, spent: str = "") -> FiveLines:
        """The same with what no record tells.

        Args:
            says: A sentence about the score of the answer, if there is one; empty: not known.
            spent: The tokens and the money that it took; empty: they are not known.
        """
        cost = f"{self.cost} {spent}." if spent else self.cost
        return replace(self, score=self.score and (says or self.score), cost=cost)


def title_of(pattern: object) -> str:
    """The name of a pattern in words, with its letters: `deadlock (DL)`."""
    known = BY_NAME.get(str(pattern))
    return f"{known.title} ({known.name})" if known else name(pattern)


def plain_text(finding: Finding | FindingRow, limits: Limits, agents: Mapping[str, Any]) -> str:
    """A finding for a reader who knows no graph, with the agents that it names.

    Args:
        finding: The finding.
        limits: The thresholds of its run.
        agents: The names of the run's agents.
    """
    known = BY_NAME.get(str(finding.pattern))
    if known is None:
        return "a detector of the user's own raised it"
    evidence = finding.evidence
    waiting = evidence.get("waiting") if isinstance(evidence, Mapping) else None
    named = list(waiting) if isinstance(waiting, Mapping) else []
    named += [one for one in texts_in((finding.subject, evidence)) if one in agents]
    who = cut([name(one) for one in dict.fromkeys(named)], most=MOST_NAMED)
    return known.plain.format_map(asdict(limits)) + (f" ({who})" if who else "")


class _Times:
    """The number of a pattern's findings, since when, and the meaning of the first."""

    __slots__ = ("number", "plain", "us")

    def __init__(self, us: int, plain: str) -> None:
        self.number, self.us, self.plain = 0, us, plain

    def text(self, pattern: str) -> str:
        """The pattern, when, how often, and what that means."""
        when = f" at {moment(self.us)}"
        if self.number > 1:
            when = f", {self.number:,} times from {moment(self.us)} on"
        return f"{title_of(pattern)}{when}: {self.plain}."


class _Raised:
    """The findings of a run that count, by severity and pattern."""

    def __init__(self) -> None:
        self.by_value: dict[str, dict[str, _Times]] = {}

    def text(self, has_errors: bool, has_headline: bool) -> str:
        """The worst findings in the order of their first: the first three patterns in full.

        Args:
            has_errors: Whether turns ended with an error, which is told after this.
            has_headline: Whether failed turns are told before this.
        """
        told_before = {"FAIL"} if has_headline else set[str]()
        values = (one for one in SEVERITIES if self.by_value.get(one, {}).keys() - told_before)
        value = next(values, None)
        if value is None:
            return ""
        times = {p: one for p, one in self.by_value[value].items() if p not in told_before}
        first, *later = (times[one].text(one) for one in [*times][:MOST_NAMED])
        told = first
        if value == "error":
            told = f"{first[0].upper()}{first[1:]}"
        elif has_errors:
            told = f"A {value}: {first}"
        else:
            told = f"No error. A {value}: {first}"
        told += "".join(f" Later {one}" for one in later)
        more = [title_of(one) for one in [*times][MOST_NAMED:]]
        return told + (f" Later also {cut(more)}." if more else "")


class RunSoFar:
    """Follows the records of a run; a sink.

    Attributes:
        run: The first record.
        agents: The names of its agents.
        is_early: Whether work is missing from the answer that was accepted last.
    """

    def __init__(self, graph: InteractionGraph | None = None) -> None:
        """Begin before the first record.

        Args:
            graph: The graph of the run, which has each record that comes; ``None``: there is no
                headline.
        """
        self._graph = graph
        self._headlines = Headlines()
        self._failing: dict[str, Headline] = {}  # by request
        self._lacking: dict[str, Headline] = {}  # by answer, until that is accepted
        self._lacks: Headline | None = None  # the accepted answer
        self._worse: set[str] = set()  # the patterns whose errors no answer has mended yet
        self.run: Run | None = None
        self.agents: dict[str, None] = {}
        self._us = self._running = 0
        self._counts: Counter[str] = Counter()
        self._goal = self._refused = self._error = ""
        self._error_of: str | None = None  # the activation that ended last, if it failed
        self._early: set[str] = set()  # answers that lack work
        self._failed: set[str] = set()  # answers that are errors
        self.is_early = self._came_after = False  # the latest answer; after the latest healing
        self._recorded, self._found = _Raised(), _Raised()
        self._heals: dict[str, list[HealRow]] = {}  # by kind: the first and the latest
        self._healed: Counter[str] = Counter()
        self._finish: Finish | None = None

    def __call__(self, record: Record, found: Iterable[Finding] = ()) -> None:
        """Take a record into account.

        Args:
            record: The next record.
            found: The findings of detectors in a stored trace at this record: they count if the
                trace itself has no findings.
        """
        self._us = record.us
        self._headlines.look(record)
        look = _LOOKS.get(type(record))
        if look is not None:
            look(self, record)
        for finding in found:
            self._find(finding, self._found)

    # --- one function a kind of record ---

    def _begin(self, record: Run) -> None:
        self.run, self.agents = record, dict.fromkeys(record.agents)

    def _emit(self, record: Emit) -> None:
        self._counts["messages"] += 1
        if record.by is None:
            self._counts["requests"] += 1
            self._goal = self._goal or goal_text(record.payload)
        elif record.final and record.by == self._error_of:
            self._failed.add(record.event)

    def _deliver(self, record: Deliver) -> None:
        if record.to is None:
            self.is_early, self._came_after = record.event in self._early, True
            self._counts["failed" if record.event in self._failed else "answered"] += 1
            self._counts["early"] += self.is_early
            self._accept(record.event)
            for answers in (self._early, self._failed):
                answers.discard(record.event)
                if len(answers) > MOST_ANSWERS:  # those that were sent back never come here
                    answers.clear()

    def _accept(self, answer: str) -> None:
        """Forget what an accepted answer has mended; what it lacks itself may be the headline."""
        graph, lacks = self._graph, self._lacking.pop(answer, None)
        if graph is None or self.run is None:
            return
        is_session = self.run.session
        answered = answered_by(graph, answer) if is_session and self._failing else []
        if not self.is_early:
            self._worse &= {*CONSUMED, "STALL"}
        for event in [one for one in self._failing if not is_session or one in answered]:
            del self._failing[event]
        if lacks is not None or not is_session:
            self._lacks = lacks

    def _incident(self, record: IncidentRow) -> None:
        detail = record.detail if isinstance(record.detail, Mapping) else {}
        if record.what == REQUEST_FAILED and detail.get("event") is not None:
            self._counts["failed"] += detail.get("how") == "error"

    def _start(self, record: Start) -> None:
        self._counts["turns"] += 1
        self._running += 1
        if len(self.agents) < MOST_AGENTS:  # hosts may make an agent for every turn
            self.agents.setdefault(base_name(record.agent))

    def _end(self, record: End) -> None:
        self._running -= 1
        self._error_of = None if record.error is None else record.activation
        if record.error is not None:
            self._counts["failed turns"] += 1
            self._error = self._error or one_line(record.error, MOST_REASON)

    def _find(self, finding: Finding | FindingRow, into: _Raised | None = None) -> None:
        value, pattern = worth(finding), str(finding.pattern)
        if self.run is None or is_rivals(pattern):
            return
        if value == SILENCED:  # a detector of today may have raised the same just before
            self._keep_headline(finding)
            return
        if (pattern, finding.stage) == ("FAIL", "turn"):  # the number of failed turns is told
            return
        times = (into or self._recorded).by_value.setdefault(value, {})
        if pattern not in times:
            plain = plain_text(finding, self.run.limits, self.agents)
            times[pattern] = _Times(finding.us, plain)
        times[pattern].number += 1
        if not self._keep_headline(finding) and value == "error":
            self._worse.add(pattern)
        if pattern == "ET" and value == "error" and isinstance(finding.subject, Mapping):
            self._early.add(str(finding.subject.get("event")))

    def _keep_headline(self, finding: Finding | FindingRow) -> bool:
        """Keep the headline that a finding is, unless it is silenced; whether it is one."""
        headline = None if self._graph is None else self._headlines.of(self._graph, finding)
        if headline is None:
            return False
        kept = self._failing if headline.stage == "request" else self._lacking
        kept.pop(headline.event, None)  # the latest comes last
        if finding.silenced is None:
            kept[headline.event] = headline
        if len(kept) > MOST_ANSWERS:
            del kept[next(iter(kept))]
        return True

    @property
    def headline(self) -> Headline | None:
        """The failed request that stands, or else the accepted answer that lacks work."""
        lacks = [] if self._lacks is None else [self._lacks]
        return worst([*lacks, *self._failing.values()], has_errors=bool(self._worse))

    def _heal(self, record: HealRow) -> None:
        if record.action == "refused":
            self._refused = self._refused or one_line(record.reason, MOST_REASON)
            return
        kind = healing_kind(record)
        self._heals[kind] = [*self._heals.get(kind, [record])[:1], record]
        self._healed[kind] += 1
        self._came_after = False

    def _close(self, record: Finish) -> None:
        self._finish = record

    # --- in words ---

    def verdict(self, *, state: str = "", private: bool = False) -> FiveLines:
        """The verdict on the run as far as it was followed.

        Args:
            state: The state of a run without an end, `cut off` for instance; empty: not known.
            private: Leave out the words of the task and of errors.
        """
        headline = self.headline
        says = "" if headline is None else headline.private if private else headline.says
        return FiveLines(
            says,
            self._task_text(private),
            self._end_text(state),
            "The answer was not scored." if self._counts["answered"] else "",
            self._failure_text(private),
            self._healing_text(),
            self._cost_text(),
        )

    def _task_text(self, private: bool) -> str:
        task = self.run.task if self.run else None
        what = ("" if private else self._goal) or ("" if task is None else name(task))
        team = counted(len(self.agents), "agent")
        if self.run and self.run.session:
            requests = counted(self._counts["requests"], "request")
            first = ": " if self._counts["requests"] == 1 else "; the first: "
            return f"{requests} to a team of {team}" + (f"{first}{what}" if what else "")
        return f"{what} ({team})" if what else f"a run of {team}"

    def _end_text(self, state: str) -> str:
        when, has_answer = moment(self._us), self._counts["answered"] > 0
        if self.run and self.run.session:
            told = f"{self._requests_text()} The session lasted {when}"
            return told + (f" ({state})." if state and self._finish is None else ".")
        if self._finish is None:
            how = f" ({state})" if state else ""
            none = "" if has_answer else " There is no answer so far."
            return f"The trace ends after {when}, and the run has no end{how}.{none}"
        if self._finish.outcome == "submitted":
            return f"An answer was accepted after {when}{_LACKING if self.is_early else ''}."
        why = _ENDS[self._finish.outcome]
        if self._finish.outcome == "stopped" and not self._running:
            why = "The run stopped because nothing could go on any more,"
        return f"{why} after {when}." + ("" if has_answer else " There is no answer.")

    @property
    def requests(self) -> dict[str, int]:
        """The ends of a session's requests, each with its number; of another run, none."""
        if not (self.run and self.run.session):
            return {}
        counts = self._counts
        early, failed = counts["early"], counts["failed"]
        states = {
            "answered": counts["answered"] - early,
            _EARLY: early,
            "ended by an error": failed,
            "left without an answer": max(0, counts["requests"] - counts["answered"] - failed),
        }
        return {state: number for state, number in states.items() if number}

    def _requests_text(self) -> str:
        requests, states = self._counts["requests"], self.requests
        told = [
            (number, f"answered{_LACKING}" if state == _EARLY else state)
            for state, number in states.items()
        ]
        if not told:
            return "There was no request."
        if requests == 1:
            return f"The request was {told[0][1]}."
        listed = _listed(
            [f"{number:,} {'was' if number == 1 else 'were'} {s}" for number, s in told]
        )
        return f"Of {counted(requests, 'request')} {listed}."

    @property
    def _raised(self) -> _Raised:
        """The findings that the trace has or, if it has none, those that were found in it."""
        return self._recorded if self._recorded.by_value else self._found

    def _failure_text(self, private: bool) -> str:
        failed, has_headline = self._counts["failed turns"], self.headline is not None
        told = self._raised.text(failed > 0, has_headline)
        if has_headline:
            return told
        if failed:
            first = "" if private else f": {self._error.partition('. ')[0].rstrip('.')}"
            told += f" {counted(failed, 'turn')} ended with an error{first}."
        return told.lstrip() or "None was found."

    def _healing_text(self) -> str:
        if not self._heals:
            if not self._raised.by_value:
                return "Nothing had to be done." if self._finish else "Nothing was done so far."
            return f"Nothing was done{f': {self._refused}' if self._refused else ''}."
        did = [self._did(kind, number) for kind, number in self._healed.items()]
        times = [row.us for rows in self._heals.values() for row in rows]
        first, last = moment(min(times)), moment(max(times))
        when = f"At {first}" if first == last else f"From {first} to {last}"
        return f"{when} the monitor {_listed(did)}. {self._after_text()}"

    def _did(self, kind: str, number: int) -> str:
        """The interventions of one kind, in words."""
        if number == 1:
            return action_text(self._heals[kind][0], len(self.agents))
        return actions_text(kind, number)

    def _after_text(self) -> str:
        """A sentence about the time after the healing."""
        if not self._came_after:
            return "No answer came after that."
        return "After that an answer was accepted."

    def _cost_text(self) -> str:
        parts = {
            "turn": self._counts["turns"],
            "message": self._counts["messages"],
            "intervention": self._healed.total(),
        }
        told = [counted(number, noun) for noun, number in parts.items() if number]
        return f"{cut(told)} in {moment(self._us)}."


def _listed(parts: list[str]) -> str:
    """Some clauses as one: `a, b and c`."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


_EARLY = "answered too early"
_LACKING = ", although some of its work was missing by the account of the monitor"
_ENDS = {
    "timeout": "The time limit ended the run",
    "stopped": "The run was stopped",
    "error": "The run ended with an error",
}
_LOOKS: Mapping[type, Any] = {
    Run: RunSoFar._begin,
    Emit: RunSoFar._emit,
    Deliver: RunSoFar._deliver,
    Start: RunSoFar._start,
    End: RunSoFar._end,
    FindingRow: RunSoFar._find,
    HealRow: RunSoFar._heal,
    IncidentRow: RunSoFar._incident,
    Finish: RunSoFar._close,
}


def goal_text(payload: Any) -> str:
    """The first sentence of what a request asks for: its goal, or else its longest text."""
    asked = payload.get("goal") if isinstance(payload, Mapping) else None
    text = asked or max(islice(texts_in(payload), 50), key=len, default="")
    first = one_line(text, 400).partition(". ")[0].rstrip(".")
    return one_line(first, MOST_GOAL)
