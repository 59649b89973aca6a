"""Finds verified instances: plays candidates until there are enough, counts dropped candidates.

The same seed gives the same bytes, with any number of processes: every candidate follows from the
seed, its stratum and its number alone, and results are taken in the order of candidates.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from dig.errors import SettingsError
from dig.lab.truth.baseline import Baseline
from dig.lab.truth.verification import Dropped
from dig.runtime.workers import Workers

from .candidates import WEIGHTS, Configuration, InstanceDraft, Recipe, Stratum
from .hidden import SHARE_UNHARMED, Made, attempt
from .instances import Split

FIRST = 2
"""The number of instances that every stratum may have before any has more."""
ENOUGH = "enough runs without harm"

Progress = Callable[[str, int, int], None]
"""Takes a word for what is made, how many there are, and how many are wanted."""


@dataclass(frozen=True)
class Harvest:
    """The results of all candidates.

    Attributes:
        instances: The instances, in the order in which they were found.
        dropped: The number of candidates that were dropped, by kind and reason.
        attempts: The number of candidates.
        raised: For each pattern, in how many candidates of a bad end (`bad`) and of a good end
            (`good`) it was raised, dropped ones included.
        raised_in_sessions: The same in candidates with several problems, which `raised` leaves out.
    """

    instances: tuple[Made, ...]
    dropped: dict[str, Counter[str]]
    attempts: int
    raised: dict[str, Counter[str]]
    raised_in_sessions: dict[str, Counter[str]]


def harvest(
    recipe: Recipe, baselines: Mapping[Configuration, Baseline], workers: Workers,
    progress: Progress,
) -> Harvest:  # fmt: skip
    """Play candidates, one for each stratum in turn, until there are enough instances.

    Args:
        recipe: The settings of the set.
        baselines: The baseline of each configuration.
        workers: The processes that play them.
        progress: Takes a word for what is made, how many there are, and how many are wanted.

    Raises:
        SettingsError: The strata give fewer instances than are wanted.
    """
    instances: list[Made] = []
    dropped: dict[str, Counter[str]] = {}
    counts: Counter[Stratum] = Counter()
    raised: tuple[dict[str, Counter[str]], dict[str, Counter[str]]] = {}, {}
    attempts = unharmed = 0
    progress("instances", 0, recipe.count)
    for strata in _rounds(recipe, counts):
        tries = ((draft, baselines[draft.stratum.configuration]) for draft in strata)
        # In the order of candidates: any number of processes finds the same instances.
        for candidate, result in zip(strata, workers.each(attempt, tries), strict=True):
            attempts += 1
            if isinstance(result, Made) and not result.label.harm:
                unharmed += 1
                # Runs without harm are easy to get, and would crowd out the failures.
                if unharmed > SHARE_UNHARMED * recipe.count:
                    result = Dropped(ENOUGH, result.ending)
            is_session = candidate.stratum.configuration.problems > 1
            if result.ending is not None:
                end = "good" if result.ending.is_good else "bad"
                for pattern in result.ending.raised:
                    raised[is_session].setdefault(pattern, Counter())[end] += 1
            if isinstance(result, Made):
                instances.append(result)
                counts[candidate.stratum] += 1
                progress("instances", len(instances), recipe.count)
            else:
                dropped.setdefault(candidate.stratum.kind, Counter())[result.reason] += 1
            if len(instances) == recipe.count:
                return Harvest(tuple(instances), dropped, attempts, *raised)
    raise SettingsError(
        f"{attempts} candidates gave {len(instances)} instances and not {recipe.count}; ask for "
        "fewer with --count"
    )


def _rounds(recipe: Recipe, counts: Counter[Stratum]) -> Iterator[list[InstanceDraft]]:
    """Draw rounds of candidates in random order: as many of an open stratum as the weight says.

    All strata get some instances, as far as they can be had, before any gets more.
    """
    attempts: Counter[Stratum] = Counter()
    number = 0
    # Level by level: no stratum gets more while another may still get its share.
    for most in range(min(FIRST, recipe.most_of_a_stratum), recipe.most_of_a_stratum + 1):
        while drafts := [
            InstanceDraft(stratum, attempts[stratum] + each, recipe.key)
            for stratum in recipe.strata
            if attempts[stratum] < recipe.tries * recipe.share_of(stratum)
            for each in range(_draws(stratum, most * recipe.share_of(stratum) - counts[stratum]))
        ]:
            # The last round is cut off; unshuffled, it would always lack the last strata.
            random.Random(f"{recipe.key}/round/{number}").shuffle(drafts)
            yield drafts
            # Only now: until the round is played, `attempts` has the numbers of its candidates.
            attempts.update(draft.stratum for draft in drafts)
            number += 1


def _draws(stratum: Stratum, missing: float) -> int:
    """Count the candidates of a stratum in a round."""
    return ceil(min(WEIGHTS.get(stratum.sort, 1.0), missing))


def splits(instances: Sequence[Made], key: str) -> list[tuple[Split, Made]]:
    """Sort the instances by id, half of each kind held out."""
    chance = random.Random(f"{key}/split")
    shuffled = list(instances)
    chance.shuffle(shuffled)
    counts: Counter[str] = Counter()
    parted: list[tuple[Split, Made]] = []
    for instance in shuffled:
        # In turn within each kind, so that both parts have all kinds.
        counts[instance.kind] += 1
        parted.append(("public" if counts[instance.kind] % 2 else "held-out", instance))
    return parted
