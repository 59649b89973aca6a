"""Fits the weights of the ranking to conversations with a known step at fault.

A conditional logit: the log of the share of the true step, less half of L2 times the squares of the
weights, is made as large as it can be (Newton's method). It needs numpy, which the ranking does
not. The choice of L2, and of groups of features to leave out, is made inside each fold.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dig.diagnosis.conversations.ranking import FeatureWeight, Weights
from dig.diagnosis.conversations.reading import Conversation
from dig.diagnosis.conversations.wording import FEATURES, features
from dig.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

L2 = (1.0, 3.0, 10.0, 30.0)
INNER_FOLDS = 5
ROUNDS = 40
CLOSE = 1e-7
SMALL = 1e-6
DIGITS = 6


def numeric() -> Any:
    """The module numpy.

    Raises:
        SettingsError: The library is not installed.
    """
    try:
        import numpy
    except ImportError:
        raise SettingsError("fitting needs numpy: pip install numpy") from None
    return numpy


@dataclass(frozen=True)
class Training:
    """Conversations with a known step at fault.

    Attributes:
        cases: The conversations.
        steps: The step at fault in each.
        rows: The features of their candidates.
    """

    cases: Sequence[Conversation]
    steps: Sequence[int]
    rows: Sequence[Sequence[Mapping[str, float]]]

    @classmethod
    def of(cls, cases: Sequence[Conversation], steps: Sequence[int]) -> Training:
        """Compute the features of conversations."""
        return cls(cases, steps, [features(case) for case in cases])

    @cached_property
    def targets(self) -> list[int | None]:
        """The place of the step at fault among the candidates; ``None`` if absent."""
        return [
            {candidate.number: n for n, candidate in enumerate(case.candidates)}.get(step)
            for case, step in zip(self.cases, self.steps, strict=True)
        ]

    def only(self, places: Sequence[int]) -> Training:
        """Some of the conversations."""
        return Training(
            [self.cases[n] for n in places],
            [self.steps[n] for n in places],
            [self.rows[n] for n in places],
        )


@dataclass(frozen=True, slots=True)
class FitChoice:
    """The settings of a fit.

    Attributes:
        l2: The strength that holds weights near 0.
        without: The group of features that is left out, if one is.
    """

    l2: float
    without: str | None = None

    @property
    def names(self) -> list[str]:
        """The features in use."""
        return [name for name, feature in FEATURES.items() if feature.group != self.without]


def choices() -> Iterator[FitChoice]:
    """Every choice, the simplest first."""
    for without in (None, *dict.fromkeys(feature.group for feature in FEATURES.values())):
        yield from (FitChoice(l2, without) for l2 in L2)


def fit(training: Training, choice: FitChoice, data: str = "", command: str = "") -> Weights:
    """Fit weights to conversations.

    Args:
        training: The conversations.
        choice: The settings of the fit.
        data: The checksum of their labels.
        command: The command that asks for it.

    Raises:
        SettingsError: numpy is not installed, or no conversation has a candidate at fault.
    """
    np = numeric()
    names = choice.names
    blocks = [np.array([[row[name] for name in names] for row in rows]) for rows in training.rows]
    targets = zip(blocks, training.targets, strict=True)
    pairs = [(block, at) for block, at in targets if at is not None]
    if not pairs:
        raise SettingsError("there is no conversation to fit weights to")
    matrix = np.concatenate(blocks)
    mean, deviation = matrix.mean(axis=0), matrix.std(axis=0)
    deviation[deviation < SMALL] = 1.0  # a feature that no candidate lacks or has alone
    weights_found = newton([((block - mean) / deviation, at) for block, at in pairs], choice.l2)
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    columns = zip(names, weights_found, mean, deviation, low, high, strict=True)
    return Weights(
        command=command, data=data, cases=len(training.cases), l2=choice.l2,
        features={
            name: FeatureWeight(
                weight=_round(weight), mean=_round(middle), deviation=_round(spread),
                low=_round(least), high=_round(most),
            )
            for name, weight, middle, spread, least, most in columns
        },
    )  # fmt: skip


def _round(value: Any) -> float:
    # + 0.0 turns -0.0 into 0.0, so that the file of weights does not flip its signs.
    return round(float(value), DIGITS) + 0.0


def newton(pairs: Sequence[tuple[Floats, int]], l2: float) -> Floats:
    """Maximise the penalised likelihood.

    Args:
        pairs: For each case the scaled features of its candidates, and which one is at fault.
        l2: The strength that holds weights near 0.
    """
    np = numeric()
    count = pairs[0][0].shape[1]
    most = max(len(block) for block, _ in pairs)
    # Padded to one array: a loop over cases in Python would be many times slower.
    blocks = np.zeros((len(pairs), most, count))
    excluded = np.full((len(pairs), most), -np.inf)
    for n, (block, _) in enumerate(pairs):
        blocks[n, : len(block)], excluded[n, : len(block)] = block, 0.0
    true = np.stack([block[at] for block, at in pairs]).sum(axis=0)
    weights: Floats = np.zeros(count)
    for _ in range(ROUNDS):
        scores = blocks @ weights + excluded
        # Less the maximum, or `exp` overflows; padding is -inf and gets the share 0.
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares = powers / powers.sum(axis=1, keepdims=True)
        means = np.einsum("nc,ncf->nf", shares, blocks)
        slope = true - means.sum(axis=0) - l2 * weights
        weighted = (blocks * shares[:, :, None]).reshape(-1, count)
        curve = weighted.T @ blocks.reshape(-1, count) - means.T @ means + l2 * np.eye(count)
        step = np.linalg.solve(curve, slope)
        weights = weights + step
        if np.abs(step).max() < CLOSE:
            break
    return weights


def folds(count: int, parts: int, seed: str) -> list[list[int]]:
    """The places of `count` cases in so many parts, by chance.

    Args:
        count: The number of cases.
        parts: The number of parts.
        seed: Of the random numbers.
    """
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return [sorted(order[start::parts]) for start in range(min(parts, count))]


def choose(training: Training, seed: str) -> FitChoice:
    """Choose the settings by the likelihood on parts left out of the fit.

    Args:
        training: The conversations.
        seed: Of the random numbers that make the parts.
    """
    parts = folds(len(training.cases), INNER_FOLDS, seed)

    def loss(choice: FitChoice) -> float:
        return sum(_loss(training, choice, part) for part in parts)

    # `min` takes the first of equals, and the simplest choice comes first.
    return min(choices(), key=loss)


def _loss(training: Training, choice: FitChoice, part: Sequence[int]) -> float:
    """The loss on a part of the cases by weights of the others: minus the log of true shares."""
    from math import log

    outside = set(part)
    weights = fit(
        training.only([n for n in range(len(training.cases)) if n not in outside]), choice
    )
    loss = 0.0
    for n in part:
        target = training.targets[n]
        if target is not None:
            loss -= log(weights.shares(training.rows[n])[target])
    return loss


def cross_fitted(training: Training, parts: int, seed: str) -> Iterator[tuple[list[int], Weights]]:
    """Each part of the cases, with weights chosen and fitted on the other parts.

    Args:
        training: All cases.
        parts: The number of parts.
        seed: Of the random numbers.
    """
    for part in folds(len(training.cases), parts, seed):
        training_part = training.only([n for n in range(len(training.cases)) if n not in {*part}])
        yield part, fit(training_part, choose(training_part, seed))
