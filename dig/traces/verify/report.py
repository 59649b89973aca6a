"""What the checker tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

MOST_PROBLEMS = 100


@dataclass(frozen=True)
class Problem:
    """Something that must not be: where (a line counted from 1, or none), and what."""

    line: int | None
    what: str

    def __str__(self) -> str:
        """In a line of text."""
        return self.what if self.line is None else f"line {self.line}: {self.what}"


@dataclass
class Report:
    """What the checker found.

    Attributes:
        records: How many records it could read.
        is_journal: Whether the file has a hash chain, and promises more than a plain trace.
        outcome: How the run ended; ``None`` if it goes on, or was cut off.
        torn_bytes: How many bytes at the end are no whole line of a journal.
        events: How many events there are. activations: how many activations.
        work: How many pieces of work are `open`, `consumed` and `orphaned` at the end.
        problems: What must not be; none in a sound trace.
    """

    records: int = 0
    is_journal: bool = False
    outcome: str | None = None
    torn_bytes: int = 0
    events: int = 0
    activations: int = 0
    work: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, line: int | None, what: str) -> None:
        """One more problem, unless there are too many to read."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(line, what))


class Broken(Exception):
    """A rule is broken: nothing after it can be judged."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.line = line


def refuse(what: str) -> NoReturn:
    """Say which rule is broken."""
    raise Broken(what if len(what) <= 300 else f"{what[:299]}…")
