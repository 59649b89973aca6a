"""The report of the checker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

MOST_PROBLEMS = 100


@dataclass(frozen=True)
class Violation:
    """A broken rule.

    Attributes:
        line: The line of the trace, counted from 1; or nowhere.
        what: The words for the violation.
        file: In which file, if the trace has several.
    """

    line: int | None
    what: str
    file: str | None = None

    def __str__(self) -> str:
        """The violation as a line of text."""
        line = None if self.line is None else f"line {self.line}"
        return ": ".join([*filter(None, (self.file, line)), self.what])


@dataclass
class VerificationReport:
    """The result of a check.

    Attributes:
        records: The number of records that could be read.
        is_journal: Whether the file has a hash chain, and promises more than a plain trace.
        outcome: The outcome of the run; ``None`` if it goes on, or was cut off.
        torn_bytes: The number of bytes at the end that are no whole line of a journal.
        events: The number of events. activations: the number of activations.
        work: The numbers of pieces of work that are `open`, `consumed` and `orphaned` at the end.
        problems: The violations found; none in a sound trace.
        files: The files of the trace, in order, and with which of its lines each begins;
            ``None``: it was not read.
    """

    records: int = 0
    is_journal: bool = False
    outcome: str | None = None
    torn_bytes: int = 0
    events: int = 0
    activations: int = 0
    work: dict[str, int] = field(default_factory=dict)
    problems: list[Violation] = field(default_factory=list)
    files: dict[str, int | None] = field(default_factory=dict)

    def add(self, line: int | None, problem: str) -> None:
        """Add a problem, unless there are too many to read.

        Args:
            line: The line, counted from the beginning of the trace; or nowhere.
            problem: The words for the violation.
        """
        if len(self.problems) >= MOST_PROBLEMS:
            return
        file = None
        if line is not None and len(self.files) > 1:
            begun = {first: name for name, first in self.files.items() if first and first <= line}
            first = max(begun)
            file, line = begun[first], line - first + 1
        self.problems.append(Violation(line, problem, file))


class Broken(Exception):
    """A broken rule as an exception: nothing after can be judged."""

    def __init__(self, rule: str, line: int | None = None) -> None:
        super().__init__(rule)
        self.line = line


def refuse(rule: str) -> NoReturn:
    """Raise `Broken` with the broken rule."""
    raise Broken(rule if len(rule) <= 300 else f"{rule[:299]}…")
