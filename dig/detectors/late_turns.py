"""Turns in progress after the end of their request, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from dig._util.text import MOST_LISTED, counted, name, value_text
from dig.graph.records import WORK_AFTER_ANSWER, End, IncidentRow, Record
from dig.graph.words import moment


class LateTurns:
    """Follows the records of a run, and describes turns after the end of a request."""

    def __init__(self) -> None:
        """Begin without a turn."""
        self._turns: dict[object, str] = {}  # activation -> sentence, without its end
        self._number = 0

    def look(self, record: Record) -> None:
        """Take a record into account."""
        if type(record) is End:
            if record.usage and record.activation in self._turns:
                self._turns[record.activation] += f"; {value_text(record.usage)}"
        elif type(record) is IncidentRow and record.what == WORK_AFTER_ANSWER:
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
