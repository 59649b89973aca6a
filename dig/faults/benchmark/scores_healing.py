"""Scores of healing against known faults: the same run with the same faults, healed or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dig.faults.inject.run_pair import play
from dig.tasks.experiment.statistics import as_json, mean, share
from dig.tasks.experiment.table import Table, Value
from dig.tasks.experiment.workers import Workers

from .instances import FaultSet, Label, RunEnding, by_kind


@dataclass(frozen=True)
class Pair:
    """One run, unhealed and healed.

    Attributes:
        kind: The kinds of its faults.
        plain: Its end without healing.
        healed: Its end with healing.
        unharmed: Its end with healing and without faults.
    """

    kind: str
    plain: RunEnding
    healed: RunEnding
    unharmed: RunEnding


@dataclass(frozen=True)
class HealingScores:
    """Pairs of runs."""

    pairs: tuple[Pair, ...]

    def table(self) -> Table:
        """A row a kind of fault."""
        return Table(
            "healing",
            "The same runs with the same faults, unhealed and healed",
            ["fault", "runs", *_cells(self.pairs)],
            [[kind, len(some), *_cells(some).values()] for kind, some in self._by_kind()],
            [
                "Gained: healed less unhealed, pair by pair, with its 95 % interval; RMSE where "
                "both answers are valid (negative is better). Saved: only the healed one is valid. "
                "Made worse: only the unhealed one is, or the healed one's RMSE is larger. More "
                "seconds: where both answer. Lost for good and left: healed with the fault less "
                "healed without it. An interval without a width: all pairs came to the same.",
            ],
        )

    def to_json(self) -> dict[str, Any]:
        """The table as plain JSON."""
        return {
            kind: {
                column: as_json(cell.ours) if isinstance(cell, Value) else cell
                for column, cell in _cells(some).items()
            }
            for kind, some in self._by_kind()
        }

    def _by_kind(self) -> list[tuple[str, Sequence[Pair]]]:
        return [*by_kind(self.pairs, lambda one: one.kind).items(), ("all", self.pairs)]


def score_healing(
    known: FaultSet, *, jobs: int = 1,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> HealingScores:  # fmt: skip
    """Play the runs of a set again, with healing.

    Args:
        known: The set; runs without labels are left out, and those that were healed already.
        jobs: The number of processes.
        progress: Takes a word for what is counted, how many are done, and how many there are.

    Raises:
        SettingsError: The set has no labels.
    """
    labels = [label for one in known.labelled() if not (label := one.label()).is_healed]
    pairs: list[Pair] = []
    with Workers(jobs, "the healing", "try it with fewer --jobs") as workers:
        for pair in workers.each(heal, labels):
            pairs.append(pair)
            progress("runs", len(pairs), len(labels))
    return HealingScores(tuple(pairs))


def heal(label: Label) -> Pair:
    """Play one run with healing, with its faults and without."""
    run = replace(label.team_run, method="dig")
    return Pair(
        label.kind, label.faulted, RunEnding.of(play(run, label.injected)), RunEnding.of(play(run))
    )


def _cells(some: Sequence[Pair]) -> dict[str, Value | int]:
    answered = [
        one for one in some
        if one.plain.outcome == "submitted" and one.healed.outcome == "submitted"
    ]  # fmt: skip
    gained = [one.healed.valid - one.plain.valid for one in some]
    lost = [one.unharmed.valid - one.healed.valid for one in some]
    more_s = [one.healed.seconds - one.plain.seconds for one in answered]
    return {
        "valid, unhealed": Value(share([one.plain.valid for one in some])),
        "valid, healed": Value(share([one.healed.valid for one in some])),
        "valid, gained": Value(mean(gained, -1, 1)),
        "saved": sum(one.healed.valid and not one.plain.valid for one in some),
        "made worse": sum(_is_worse(one) for one in some),
        "RMSE, gained": Value(mean(_differences([(one.healed, one.plain) for one in some]))),
        "s, more": Value(mean(more_s)),
        "valid, lost for good": Value(mean(lost, -1, 1)),
        "RMSE, left": Value(mean(_differences([(one.healed, one.unharmed) for one in some]))),
    }


def _differences(pairs: Sequence[tuple[RunEnding, RunEnding]]) -> list[float]:
    """The first RMSE minus the second, of the pairs in which both answers have one."""
    return [a.rmse - b.rmse for a, b in pairs if a.rmse is not None and b.rmse is not None]


def _is_worse(pair: Pair) -> bool:
    if pair.plain.valid != pair.healed.valid:
        return pair.plain.valid
    return any(difference > 0 for difference in _differences([(pair.healed, pair.plain)]))
