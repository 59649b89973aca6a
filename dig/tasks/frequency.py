"""The base of CountFrequency and Newsgroups: how often does each value occur?

No agent sees all the data. A problem names a *part* of them, `[start, stop]` with the first
element at 0 and `stop` not included, and tools turn a part into smaller parts or, if it is short
enough for one message, into its elements. Only `FrequencyTask.score` knows the true counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import hypot, sqrt
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from dig._util.text import join_clauses
from dig.errors import SettingsError
from dig.graph.records import Record
from dig.graph.words import MOST_NAMED
from dig.monitor.messages import Output
from dig.runtime.agents import Tool
from dig.traces.run import RecordedRun

from .accounting import PAYLOADS, Accounting, TaskParts
from .milestones import Milestone, part_milestones
from .miscounts import Miscounts, flaws
from .number_ranges import Range, Ranges, intersection, length, merge, missing
from .task import Mistake, Score

Part = Annotated[list[int], Field(description="[start, stop]", min_length=2, max_length=2)]
"""The parameter of tools; a grammar lets a model write nothing else."""

MOST_COUNT = 10**15
"""More than any data have; the error of a larger count could become too large for a float."""


class FrequencyTask:
    """Data, the problem of counting values, the tools, and the scorer.

    Attributes:
        name: The name of the task in the trace.
        goal: The problem in words, for agents.
        unit: The name of the elements, in the plural.
        values: The values that are counted.
        data: The description of the data, in words.
        size: The number of elements.
        most_per_message: The number of elements that one message may carry: at most half of them,
            so that no single message carries all.
        accounting: Says which elements an event is about.
    """

    name: str
    goal: str
    unit: str
    values: tuple[Hashable, ...]
    data: str
    accounting: Accounting = PAYLOADS

    def __init__(
        self, elements: Sequence[Any], truth: Sequence[Hashable], most_per_message: int
    ) -> None:
        """Store the data, apart from the truth.

        Args:
            elements: The elements that agents can read, part by part.
            truth: The value of each element; for the scorer alone.
            most_per_message: The number of elements that one message may carry, unless that is more
                than half of them.

        Raises:
            SettingsError: `most_per_message` is too small.
        """
        if most_per_message < 1:
            raise SettingsError(
                f"most_per_message must be at least 1 of the {self.unit}, got {most_per_message}"
            )
        self.size = len(elements)
        self.most_per_message = min(most_per_message, (self.size + 1) // 2)
        self._data = tuple(elements)
        # Apart from the data: tools hold the data alone, and must not lead to the truth.
        self._value_of = tuple(truth)
        self._truth: Counter[Any] = Counter(truth)

    def problem(self, *to: str, part: Range | None = None) -> Output:
        """Make the first event of a run: a description and a handle, never the data.

        Args:
            to: The agents that are given the problem.
            part: The part that it is about; ``None``: all of the data.
        """
        payload = {
            "task": self.name,
            "goal": self.goal,
            "values": list(self.values),
            "part": [*(part or (0, self.size))],
            "most_per_message": self.most_per_message,
        }
        return Output(payload, to, "problem")

    def tools(self) -> Mapping[str, Tool]:
        """The tools of the agents: `size`, `split` and `raw_data`.

        They hold the data and nothing else of this object, so that no path leads from what an
        agent is given to the scorer.
        """
        return _tools(self._data, self.most_per_message, self.unit)

    def score(self, answer: object, part: Range | None = None) -> Score:
        """Compare an answer with the true counts.

        Args:
            answer: ``{"counts": {value: count}}``, other keys are ignored. A value is itself or,
                as in JSON, its text; one that is missing counts as 0. An answer may say with
                ``"covers": [[start, stop], ...]`` which parts of the data were counted.
            part: The part that was asked about; ``None``: all of the data.
        """
        if answer is None:
            return Score(False, reason="there is no answer")
        try:
            counts = self._read_counts(answer)
        except ValueError as error:
            return Score(False, reason=str(error))
        target = part or (0, self.size)
        rmse = hypot(*self._errors(counts, (target,))) / sqrt(len(self.values))
        covers = _covers(answer, target)
        is_complete = None if covers is None else covers == (target,)
        says, wrong = self._judge(counts, target, covers)
        return Score(True, rmse, complete=is_complete, says=says, wrong=wrong)

    def _judge(
        self, counts: Mapping[str, float], target: Range, covers: Ranges | None
    ) -> tuple[str, float]:
        """A score in words, and the share of miscounted elements.

        Args:
            counts: The counts in the answer.
            target: The part that was to be counted.
            covers: The parts of it that the answer covers, if it says so.
        """
        size, claims_all = target[1] - target[0], covers == (target,)
        covers = (target,) if covers is None else covers
        covered, gaps = length(covers), [str([*gap]) for gap in missing(target, covers)]
        # A surplus would cancel against what the missing parts lack, so the covered ones are
        # judged alone, unless more was counted than they have.
        is_apart = bool(gaps) and sum(counts.values()) <= covered
        less, more, swapped = flaws(self._errors(counts, covers if is_apart else (target,)))
        wrong = (max(more, less) + swapped + is_apart * (size - covered)) / size
        parts = {"are missing from it": less, "are counted too much": more,
                 "stand at a wrong value": swapped}  # fmt: skip
        texts = [
            f"{number:{',.0f' if number >= 1 else '.2g'}} {flaw}"
            for flaw, number in parts.items() if number > 0
        ]  # fmt: skip
        absent = f"{join_clauses(gaps, MOST_NAMED)} {'is' if len(gaps) == 1 else 'are'} missing."
        reach = f"It covers only {covered:,} of {size:,} {self.unit}" if gaps else ""
        if is_apart:
            quality = join_clauses(texts).replace(" ", " of these ", 1) or "these right"
            return f"{reach}, and {quality}; {absent}", wrong
        if not texts:
            return f"It counts all {size:,} {self.unit} right.", 0.0
        claim = ", although it says that it covers all" if claims_all and less > more else ""
        says = f"Of {size:,} {self.unit} {join_clauses(texts)}{claim}."
        return f"{reach}; {absent} {says}" if reach else says, wrong

    def _errors(self, counts: Mapping[str, float], parts: Ranges) -> list[float]:
        """The error of each count about some parts."""
        truth = Counter(value for part in parts for value in self._value_of[slice(*part)])
        return [counts.get(str(value), 0.0) - truth[value] for value in self.values]

    def target(self) -> list[object]:
        """The true values behind the score; secret, also in prompts."""
        return [*self._truth.values()]

    def milestones(self, records: Iterable[Record]) -> tuple[Milestone, ...]:
        """The milestones of a run: parts read, half and all counted, put together, accepted.

        Args:
            records: Its records, with payloads.
        """
        parts = TaskParts(RecordedRun(records), self.accounting)
        return part_milestones(parts, self.score, self.unit)

    def mistakes(self, records: Iterable[Record]) -> tuple[Mistake, ...]:
        """The agents behind a wrong answer, by the errors of all solutions.

        Args:
            records: The records of the run, with payloads.
        """
        run = RecordedRun(records)

        def errors(payload: object, parts: Ranges) -> list[float] | None:
            try:
                return self._errors(self._read_counts(payload), parts)
            except ValueError:
                return None

        miscounts = Miscounts(TaskParts(run, self.accounting), errors, self.unit, self.values)
        return miscounts.behind(run.answer) if run.answer else ()

    def _read_counts(self, answer: object) -> dict[str, float]:
        """The counts in an answer, by the values' texts.

        Raises:
            ValueError: The answer is not in the documented shape; the message says where.
        """
        counts = answer.get("counts") if isinstance(answer, Mapping) else None
        if not isinstance(counts, Mapping):
            raise ValueError('an answer is an object with the key "counts", an object of counts')
        values = set(map(str, self.values))
        read: dict[str, float] = {}
        for key, count in counts.items():
            value = str(key) if type(key) in (int, str) else None
            if value not in values or value in read:
                raise ValueError(f"{key!r} is none of the values, or is there twice")
            if type(count) not in (int, float) or not 0 <= count <= MOST_COUNT:
                raise ValueError(f"the count of {key!r} is not a number from 0 to {MOST_COUNT}")
            read[value] = float(count)
        return read


def _tools(data: tuple[Any, ...], most: int, unit: str) -> Mapping[str, Tool]:
    def size(part: Part) -> int:
        """How many elements a part has."""
        start, stop = _bounds(part, len(data))
        return stop - start

    def split(part: Part, pieces: int) -> list[list[int]]:
        """Cut a part into pieces of equal length, or as nearly equal as can be, in order."""
        start, stop = _bounds(part, len(data))
        if type(pieces) is not int or not 1 <= pieces <= stop - start:
            raise ValueError(f"{part!r} can be cut into 1 to {stop - start} pieces, not {pieces!r}")
        cuts = [start + (stop - start) * i // pieces for i in range(pieces + 1)]
        return [list(piece) for piece in pairwise(cuts)]

    def raw_data(part: Part) -> list[Any]:
        """The elements of a part that is short enough for one message."""
        start, stop = _bounds(part, len(data))
        if stop - start > most:
            raise ValueError(
                f"{part!r} has {stop - start} {unit}, and a message carries {most} at most: "
                "split it first"
            )
        return list(data[start:stop])

    vars(raw_data)["reads_data"] = True
    return MappingProxyType({"size": size, "split": split, "raw_data": raw_data})


def _covers(answer: object, target: Range) -> Ranges | None:
    """The parts of an answer within a target; ``None``: the answer does not say."""
    covers = answer.get("covers") if isinstance(answer, Mapping) else None
    if not isinstance(covers, list):
        return None
    try:
        return intersection(merge(_bounds(part, target[1]) for part in covers), (target,))
    except ValueError:
        return None


def _bounds(part: Any, size: int) -> tuple[int, int]:
    if not isinstance(part, list | tuple) or [type(bound) for bound in part] != [int, int]:
        raise ValueError(f"a part is a list of two integers, [start, stop], not {part!r}")
    start, stop = part
    if not 0 <= start < stop <= size:
        raise ValueError(f"a part lies within [0, {size}] and is not empty, unlike {part!r}")
    return start, stop
