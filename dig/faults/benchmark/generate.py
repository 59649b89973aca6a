"""Finds verified instances: plays candidates until there are enough, and counts the dropped ones.

The same seed gives the same bytes, with any number of processes: every candidate follows from the
seed, its stratum and its number alone, and results are taken in the order of candidates.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from dig.diagnosis.causes import CausalGraph
from dig.errors import SettingsError
from dig.faults.inject.run_pair import lines, play
from dig.faults.truth.baseline import Baseline
from dig.faults.truth.verification import Dropped, verify
from dig.tasks.experiment.workers import Workers

from .candidates import Configuration, InstanceDraft, Recipe, Stratum
from .instances import Label, RunEnding, Split

DRAWS = 16
"""How many times faults are drawn until all of them take effect: many fit few agents only."""
FIRST = 2
"""How many instances every stratum may have before any has more."""
NOBODY = "nobody to inject it into"

Progress = Callable[[str, int, int], None]
"""Takes a word for what is made, how many there are, and how many are wanted."""


@dataclass(frozen=True)
class Made:
    """A candidate that is an instance.

    Attributes:
        candidate: The candidate.
        label: Its label, which has no instance's name yet.
        graph: The verified consequences.
        trace: The trace's bytes.
        twin: The trace's bytes without the faults.
        records: How many records the trace has.
    """

    candidate: InstanceDraft
    label: Label
    graph: CausalGraph
    trace: bytes
    twin: bytes
    records: int

    @property
    def kind(self) -> str:
        """The kinds of its faults."""
        return self.candidate.stratum.kind


@dataclass(frozen=True)
class Harvest:
    """The results of all candidates.

    Attributes:
        made: The instances, in the order in which they were found.
        dropped: How many candidates were dropped, by kind and reason.
        tried: How many candidates there were.
    """

    made: tuple[Made, ...]
    dropped: dict[str, Counter[str]]
    tried: int


def harvest(
    recipe: Recipe, baselines: Mapping[Configuration, Baseline], workers: Workers,
    progress: Progress,
) -> Harvest:  # fmt: skip
    """Play candidates, one of each stratum in turn, until there are enough instances.

    Args:
        recipe: The settings of the set.
        baselines: The baseline of each configuration.
        workers: The processes that play them.
        progress: Takes a word for what is made, how many there are, and how many are wanted.

    Raises:
        SettingsError: The strata give fewer instances than are wanted.
    """
    made: list[Made] = []
    dropped: dict[str, Counter[str]] = {}
    kept: Counter[Stratum] = Counter()
    tried = 0
    progress("instances", 0, recipe.count)
    for wanted in _rounds(recipe, kept):
        tries = ((one, baselines[one.stratum.configuration]) for one in wanted)
        for candidate, result in zip(wanted, workers.each(attempt, tries), strict=True):
            tried += 1
            if isinstance(result, Made):
                made.append(result)
                kept[candidate.stratum] += 1
                progress("instances", len(made), recipe.count)
            else:
                dropped.setdefault(candidate.stratum.kind, Counter())[result.reason] += 1
            if len(made) == recipe.count:
                return Harvest(tuple(made), dropped, tried)
    raise SettingsError(
        f"{tried} candidates gave {len(made)} instances and not {recipe.count}; ask for fewer "
        "with --count"
    )


def _rounds(recipe: Recipe, kept: Counter[Stratum]) -> Iterator[list[InstanceDraft]]:
    """A candidate of each stratum that wants one, in an order of the seed's, again and again.

    All strata get some instances, as far as they can be had, before any gets more.
    """
    tried: Counter[Stratum] = Counter()
    number = 0
    for most in range(min(FIRST, recipe.most_of_a_stratum), recipe.most_of_a_stratum + 1):
        while some := [
            stratum
            for stratum in recipe.strata
            if kept[stratum] < most and tried[stratum] < recipe.tries
        ]:
            random.Random(f"{recipe.seed}/round/{number}").shuffle(some)
            yield [InstanceDraft(stratum, tried[stratum], recipe.seed) for stratum in some]
            tried.update(some)
            number += 1


def attempt(tried: tuple[InstanceDraft, Baseline]) -> Made | Dropped:
    """Play a candidate and its twin, and verify the consequences against its baseline."""
    candidate, baseline = tried
    run = candidate.run
    twin = play(run)
    for again in range(DRAWS):
        faults = candidate.faults(twin.records, again)
        if not faults:
            return Dropped(NOBODY)
        faulted = play(run, faults)
        if len({injection.fault for injection in faulted.injections}) == len(faults):
            break
    graph = verify(faulted, twin, baseline)
    if isinstance(graph, Dropped):
        return graph
    label = Label(
        instance="",
        configuration=candidate.stratum.configuration.name,
        run=run.about(),
        faults=tuple(fault.to_json() for fault in faulted.faults),
        injections=tuple(map(asdict, faulted.injections)),
        faulted=RunEnding.of(faulted),
        twin=RunEnding.of(twin),
    )
    trace, without = lines(faulted.records), lines(twin.records)
    return Made(candidate, label, graph, trace, without, len(faulted.records))


def splits(made: Sequence[Made], seed: int) -> list[tuple[Split, Made]]:
    """The instances in the order of their ids, half of each kind held out."""
    chance = random.Random(f"{seed}/split")
    shuffled = list(made)
    chance.shuffle(shuffled)
    seen: Counter[str] = Counter()
    parted: list[tuple[Split, Made]] = []
    for one in shuffled:
        seen[one.kind] += 1
        parted.append(("public" if seen[one.kind] % 2 else "held-out", one))
    return parted
