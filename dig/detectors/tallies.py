"""Sums of a run so far: findings by pattern, failed turns by agent, late turns, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from dig._util.text import MOST_LISTED, counted, name, value_text
from dig.graph import records
from dig.graph.graph import InteractionGraph
from dig.graph.words import moment

from .describe import LostWork, Worth, recorded_finding
from .finding import Finding
from .holders import Holder
from .mended import Mending

EARLY, CANCELLED = "answered too early", "cancelled by the caller"
NO_REAL = "answered by what is no answer"
UNANSWERED, AGAIN = "left without an answer", "asked again after a failure"
MOST_ERRORS = 1_000  # whose mending is followed


class PatternTally:
    """The findings of a pattern: the number, the agents; the first in words, its event or turn.

    Of the first standstill it has the agents with work in front of them, as they were then; of the
    first lost work the loss, and its moment and that of the latest; of the first early answer the
    number of messages that were open in front of each agent, of those in front of the agent that
    answered by sender (`unread`), the lost ones, and the beginning of the turns in progress; of the
    first missing answer the agent that consumed the last of the work (`keeper`).
    """

    __slots__ = (
        "agents", "at_work", "event", "holders", "keeper", "loss", "losses", "number", "open_work",
        "plain", "t", "turn", "unread", "us", "us_latest",
    )  # fmt: skip

    def __init__(self, finding: Finding | records.FindingRow, plain: str) -> None:
        """Begin with the first finding, without counting."""
        self.t, self.us, self.plain = finding.t, finding.us, plain
        self.us_latest, self.open_work, self.unread = 0, Counter[str](), Counter[str]()
        self.losses: list[LostWork] = []
        self.at_work: dict[str, int] = {}
        subject = finding.subject if isinstance(finding.subject, Mapping) else {}
        self.event, self.turn = (str(subject.get(key) or "") for key in ("event", "activation"))
        self.number, self.agents = 0, Counter[str]()
        self.holders: list[Holder] = []
        self.keeper: Holder | None = None
        self.loss = ""


class FailedTurns:
    """The failed turns of an agent: the number, the first, and the latest.

    Of the first it has the message that it was given last, and the agent that it waited for, if the
    turn of that was called off before.
    """

    __slots__ = (
        "activation", "awaited", "error", "input", "number", "t", "us", "us_latest", "us_worked",
    )  # fmt: skip

    def __init__(self, end: records.End, error: str, start: records.Start | None) -> None:
        """Begin with the first turn, without counting; ``None``: the start is not known."""
        self.us_worked = None if start is None else end.us - start.us
        self.t, self.us, self.activation, self.error = end.t, end.us, end.activation, error
        self.number, self.us_latest = 0, end.us
        self.input: records.Emit | None = None
        self.awaited = ""


class LateTurns:
    """Follows the records of a run, and describes turns after the end of a request."""

    def __init__(self) -> None:
        """Begin without a turn."""
        self._turns: dict[object, str] = {}  # activation -> sentence, without its end
        self._number = 0

    def look(self, record: records.Record) -> None:
        """Take a record into account."""
        if type(record) is records.End:
            if record.usage and record.activation in self._turns:
                self._turns[record.activation] += f"; {value_text(record.usage)}"
        elif type(record) is records.IncidentRow and record.what == records.WORK_AFTER_ANSWER:
            detail = record.detail if isinstance(record.detail, Mapping) else {}
            self._number += 1
            if len(self._turns) < MOST_LISTED:
                agent, turn = detail.get("agent"), name(detail.get("activation"))
                when = f"still worked at {moment(record.us)}, after its request was over"
                self._turns[turn] = f"`{name(agent)}` {when} ({turn}"

    def texts(self) -> list[str]:
        """Describe the first turns in a sentence each, and count the others."""
        more = self._number - len(self._turns)
        remainder = [f"{counted(more, 'more turn')} did so."] if more else []
        return [f"{sentence})." for sentence in self._turns.values()] + remainder


Tallies = dict[Worth, dict[str, PatternTally]]
"""The tallies of a run's findings, by severity and pattern."""


class Errors:
    """Counts the errors of a run, silenced ones left out, and the mended errors.

    Attributes:
        number: The number of errors.
        mending: Follows the records after the first of them.
    """

    def __init__(self) -> None:
        """Begin without an error."""
        self.number = 0
        self.mending = Mending()

    def add(self, graph: InteractionGraph, finding: Finding | records.FindingRow) -> None:
        """Take a new error into account."""
        self.number += 1
        if len(self.mending.mended) < MOST_ERRORS:
            with suppress(AttributeError, TypeError):  # of a user's detector of the same name
                self.mending.add(graph, recorded_finding(finding))

    @property
    def unmended(self) -> int | None:
        """The number of unmended errors; ``None``: there are more than are followed."""
        mended = self.mending.mended.count(True)
        return None if self.number > MOST_ERRORS else self.number - mended


def count_by_end(counts: Counter[str]) -> dict[str, int]:
    """The number of a session's requests by end, from the counts of a run so far."""
    early, partial, again = counts["early"], counts["partial"], counts["again"]
    ended = counts["answered"] + counts["failed"] + counts["cancelled"] + again
    states = {
        "answered": counts["answered"] - early - partial - counts["void"],
        EARLY: early,
        NO_REAL: counts["void"],
        "answered in part": partial,
        AGAIN: again,
        "ended by an error": counts["failed"],
        CANCELLED: counts["cancelled"],
        UNANSWERED: max(0, counts["requests"] - ended),
    }
    return {state: number for state, number in states.items() if number}
