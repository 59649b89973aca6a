"""The scores of answers about a set: every metric, in all runs and in each stratum."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dig._util.text import counted, cut, name
from dig.diagnosis.components import concerned
from dig.errors import SettingsError
from dig.tasks.experiment.intervals import Mean
from dig.tasks.experiment.table import Table, Value

from .answers import Answer, Answers
from .instances import Entry, FaultSet, Instance
from .intervals import as_json, mark
from .scoring import METRICS, Truth, marks


@dataclass(frozen=True)
class Scored:
    """One run with what the answer about it is worth.

    Attributes:
        entry: Its line in the index.
        kind: The kinds of its faults.
        marks: The metrics, by name.
    """

    entry: Entry
    kind: str
    marks: dict[str, float]


_STRATA: Sequence[Callable[[Scored], str]] = (
    lambda one: one.entry.split,
    lambda one: one.entry.task,
    lambda one: f"{one.entry.agents:2} agents",
    lambda one: one.kind,
)


@dataclass(frozen=True)
class Scores:
    """The scores of somebody's answers.

    Attributes:
        by: Whose they are.
        scored: The runs, by id.
        missing: Which of them nothing was answered about.
        unlabelled: How many runs of the set could not be scored, since their labels are kept back.
    """

    by: str
    scored: tuple[Scored, ...]
    missing: tuple[str, ...]
    unlabelled: int

    def strata(self) -> Iterator[tuple[str, list[Scored]]]:
        """All runs, and those of each part, task, size of team and kind of fault."""
        yield "all", list(self.scored)
        for stratum_of in _STRATA:
            strata: dict[str, list[Scored]] = {}
            for one in self.scored:
                strata.setdefault(stratum_of(one), []).append(one)
            for stratum in sorted(strata, key=lambda text: (" + " in text, text)):
                yield stratum.strip(), strata[stratum]

    def table(self) -> Table:
        """A row a stratum, a column a metric."""
        return Table(
            "answers",
            f"Answers by {self.by or 'nobody'}",
            ["runs", "count", *METRICS],
            [
                [stratum, len(some), *(Value(_mean(some, metric)) for metric in METRICS)]
                for stratum, some in self.strata()
            ],
            self.notes(),
        )

    def notes(self) -> list[str]:
        """What has to be known to read the scores."""
        notes = ["Each metric is a mean over runs with its 95 % interval; 1 is best."]
        if self.missing:
            notes.append(
                f"{counted(len(self.missing), 'run')} without an answer, which counts as an empty "
                f"one: {cut(list(self.missing))}."
            )
        if self.unlabelled:
            notes.append(f"{counted(self.unlabelled, 'run')} not scored: no labels are there.")
        return notes

    def to_json(self) -> dict[str, Any]:
        """The scores as plain JSON, those of each run too."""
        return {
            "by": self.by,
            "missing": list(self.missing),
            "unlabelled": self.unlabelled,
            "strata": {
                stratum: {metric: as_json(_mean(some, metric)) for metric in METRICS}
                for stratum, some in self.strata()
            },
            "runs": {one.entry.id: one.marks for one in self.scored},
        }


def score(answers: Answers, known: FaultSet, shuffle: int | None = None) -> Scores:
    """The scores of answers about a set.

    Args:
        answers: The answers.
        known: The set.
        shuffle: A seed: labels are exchanged at random between runs of the same configuration, so
            that what is left is what these answers would get by chance.

    Raises:
        SettingsError: They are about runs that are not in it, or it has no labels.
    """
    ids = {entry.id for entry in known.index.instances}
    for given in answers.answers:
        if given not in ids:
            raise SettingsError(f"answers.{name(given)}: {known.path} has no such run")
    labelled = known.labelled()
    truths = labelled if shuffle is None else _shuffled(labelled, shuffle)
    return Scores(
        by=answers.by,
        scored=tuple(
            _scored(one, truth, answers.answers.get(one.entry.id, Answer()))
            for one, truth in zip(labelled, truths, strict=True)
        ),
        missing=tuple(one.entry.id for one in labelled if one.entry.id not in answers.answers),
        unlabelled=len(ids) - len(labelled),
    )


def _shuffled(labelled: Sequence[Instance], seed: int) -> list[Instance]:
    """The same instances, exchanged within each configuration."""
    chance = random.Random(f"shuffle/{seed}")
    of: dict[str, list[Instance]] = {}
    for one in labelled:
        of.setdefault(one.entry.configuration, []).append(one)
    for some in of.values():
        chance.shuffle(some)
    return [of[one.entry.configuration].pop() for one in labelled]


def _scored(instance: Instance, truth: Instance, answer: Answer) -> Scored:
    found = marks(answer, Truth.of(truth.graph()), concerned(instance.records()))
    return Scored(instance.entry, truth.label().kind, found)


def _mean(some: Sequence[Scored], metric: str) -> Mean | None:
    values = [one.marks[metric] for one in some]
    return mark(values, f"{metric} of {[one.entry.id for one in some]}")
