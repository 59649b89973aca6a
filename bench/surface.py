"""How far a learned reader of the surface gets: `python -m bench.surface SET [--fit FILE]`.

A conditional logit over the agents of a failed run, from the signs of the page of rules and from
what each agent did beside the others: it learns how much each is worth. It follows no cause. It is
asked in two ways: fitted to nine tenths of the runs, as who has labelled failures of the same
kinds, and without any run that has a fault of the same kind. `--fit` stores the weights of all
runs, which are the floor `learned` of every table. It needs numpy.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from dig.lab.benchmark.attributing import case_about
from dig.lab.benchmark.instances import LABELS, SECRET, FaultSet, Instance
from dig.lab.benchmark.rules import rules
from dig.lab.benchmark.surface import surface

from .measure import Table
from .whowhen.fitting import newton, numeric

if TYPE_CHECKING:
    from .whowhen.fitting import Floats

L2, FOLDS = 1.0, 10


class _Question:
    """A labelled failure: the features of its agents, and those at fault."""

    def __init__(self, instance: Instance) -> None:
        case = case_about(instance)
        label = instance.label()
        self.kinds = frozenset(str(fault["kind"]) for fault in label.faults)
        self.stratum = label.stratum
        rows = surface(case.run)
        self.agents, self.block = [*rows], numeric().array([*rows.values()])
        self.guilty = {cause.component for cause in label.causes}
        named = rules(case.run.records)
        self.by_rules = named is not None and named[0] in self.guilty

    @property
    def pairs(self) -> list[tuple[Floats, int]]:
        """The block with each place at fault."""
        return [(self.block, n) for n, agent in enumerate(self.agents) if agent in self.guilty]

    def is_named(self, weights: Floats) -> bool:
        return self.agents[int((self.block @ weights).argmax())] in self.guilty


def fit(questions: Iterable[_Question]) -> Floats:
    """Fit the weights to some failures."""
    return newton([pair for each in questions for pair in each.pairs], L2)


def known_kinds(questions: Sequence[_Question]) -> list[bool]:
    """Whether each failure is explained by what the other folds taught."""
    folds = [*range(len(questions))]
    random.Random(0).shuffle(folds)
    named = [False] * len(questions)
    for fold in range(FOLDS):
        asked = {*folds[fold::FOLDS]}
        weights = fit(each for n, each in enumerate(questions) if n not in asked)
        for n in asked:
            named[n] = questions[n].is_named(weights)
    return named


def kinds_left_out(questions: Sequence[_Question]) -> list[bool]:
    """Whether each failure is explained by what the other kinds of faults taught."""
    weights = {
        kinds: fit(each for each in questions if each.kinds.isdisjoint(kinds))
        for kinds in dict.fromkeys(each.kinds for each in questions)
    }
    return [each.is_named(weights[each.kinds]) for each in questions]


def ranked(questions: Sequence[_Question], name: str) -> Table:
    """Any cause named, by stratum: the ranker in both ways, the page of rules, and chance."""
    marks = defaultdict[str, list[tuple[bool, bool, bool, float]]](list)
    answers = zip(questions, known_kinds(questions), kinds_left_out(questions), strict=True)
    for each, known, left_out in answers:
        chance = len(each.guilty & {*each.agents}) / len(each.agents)
        for stratum in (each.stratum, "all"):
            marks[stratum].append((known, left_out, each.by_rules, chance))
    rows = [
        (name, str(len(group)), *(f"{fmean(column):.2f}" for column in zip(*group, strict=True)))
        for name, group in sorted(marks.items())
    ]
    columns = ("stratum", "failures", "kinds known", "kinds left out", "rules", "chance")
    return Table(f"Any agent at fault named, in {name}", columns, rows)


def write_command(path: Path) -> str:
    """Write the command that makes a set again."""
    secret = json.loads((path / LABELS / SECRET).read_text())
    count = len(FaultSet.open(path).index.instances)
    options = ("--seed", secret["seed"], "--salt", secret["salt"], "--count", count)
    return shlex.join(["digmon", "bench", "make", *map(str, options)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    parser.add_argument("--fit", type=Path, metavar="FILE")
    options = parser.parse_args()
    questions = []
    for path in options.sets:
        labelled = FaultSet.open(path).labelled()
        asked = [_Question(each) for each in labelled if each.label().harm]
        print(ranked(asked, path.name), end="\n\n", flush=True)
        questions += asked
    if options.fit:
        weights = [round(float(weight), 3) for weight in fit(questions)]
        about = {
            # The same sets give the same weights, so they can be fitted again.
            "sets": [write_command(path) for path in options.sets],
            "failures": len(questions), "l2": L2, "weights": weights,
        }  # fmt: skip
        options.fit.write_text(f"{json.dumps(about)}\n")


if __name__ == "__main__":
    main()
