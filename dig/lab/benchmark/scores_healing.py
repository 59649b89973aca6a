"""Scores of healing against known faults: the same run with the same faults, healed or not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from dig.lab.experiment.markdown_table import Table, Value
from dig.lab.experiment.statistics import as_json, mean, share, sign_flip
from dig.lab.run_pair import play
from dig.lab.truth.baseline import Baseline
from dig.lab.truth.measurements import DIGITS
from dig.lab.truth.verification import is_all_good, verdicts
from dig.runtime.workers import Workers
from dig.tasks.run.team_run import METHOD_NAMES

from .instances import FaultSet, Label, RunEnding, by_kind

UNHEALED, RETRIED, ONCE, HEALED = "mas", "retry", "dig", "dig+"
NONE = "none"
RIVALS = tuple(name for name in METHOD_NAMES if name not in (UNHEALED, HEALED))
ROWS = (NONE, *(name for name in METHOD_NAMES if name != UNHEALED))
"""The methods against failures, in the order of the table."""

Progress = Callable[[str, int, int], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Pair:
    """A run, unhealed and healed.

    Attributes:
        kind: The kinds of its faults.
        plain: Its end without healing.
        healed: Its end with healing.
        unharmed: Its end with healing and without faults.
        rivals: Its end by other methods, by name.
        calls: The number of activations that the run took, by method, where it was played now.
        good: The methods by which it came to a good end, as the set calls one.
    """

    kind: str
    plain: RunEnding
    healed: RunEnding
    unharmed: RunEnding
    rivals: Mapping[str, RunEnding] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    good: frozenset[str] = frozenset()

    def by(self, method: str) -> RunEnding | None:
        """The end of the run by a method."""
        return {NONE: self.plain, HEALED: self.healed, **self.rivals}.get(method)


@dataclass(frozen=True)
class HealingScores:
    """Pairs of runs."""

    pairs: tuple[Pair, ...]

    @property
    def methods(self) -> list[str]:
        """The methods by which the runs were played, in order."""
        return [name for name in ROWS if any(pair.by(name) for pair in self.pairs)]

    def tables(self) -> list[Table]:
        """Tables of all methods side by side: on all runs, and by kind of fault."""
        return [self._methods(), self.table(), self._good_by_kind()]

    def _methods(self) -> Table:
        """A row a method, on the same runs."""
        return Table(
            "methods",
            "The same failures with the same faults, by method",
            ["method", "runs", *_COLUMNS],
            [
                [name, len(_ends(self.pairs, name)), *self._of_method(name).values()]
                for name in self.methods
            ],
            [
                "Good: the answer is right and complete, as the set means it; in a session, all of "
                "them. Complete: it is valid and, if it says so, about all. `redraw`: "
                "nothing is done, but agents draw other random numbers, since instances are "
                "chosen because they fail unhealed. `watchdog` tells all to continue after a "
                "silence, `retry` poses the problem again; neither knows a graph. `dig` heals as "
                "in the paper, `dig+` step by step. Calls: activations of agents. s: seconds of "
                f"valid answers. {self._between(RETRIED)} {self._between(ONCE)}"
            ],
        )

    def _between(self, rival: str) -> str:
        """Count the pairs where only a rival gives a valid answer, and where only `dig+` does."""
        endings = [(pair.by(rival), pair.healed) for pair in self.pairs]
        ways = [healed.valid - other.valid for other, healed in endings if other]
        return (
            f"Valid with `{rival}` and not with `{HEALED}`: {ways.count(-1)}; the other way "
            f"round: {ways.count(1)} (exact p {sign_flip(ways):.2g})."
        )

    def _of_method(self, name: str) -> dict[str, Value]:
        """Compute the cells of a method."""
        endings = _ends(self.pairs, name)
        cells = (
            share([name in pair.good for pair in self.pairs]),
            share([ending.valid for ending in endings]),
            share([ending.valid and ending.complete is not False for ending in endings]),
            mean([ending.rmse for ending in endings if ending.rmse is not None]),
            mean([ending.seconds for ending in endings if ending.valid]),
            mean([pair.calls[name] for pair in self.pairs if name in pair.calls]),
        )
        return dict(zip(_COLUMNS, map(Value, cells), strict=True))

    def table(self) -> Table:
        """A row a kind of fault, with each method."""
        return Table(
            "healing",
            "The same failures by kind of fault: valid answers",
            ["fault", "runs", *self._cells(self.pairs)],
            [[kind, len(pairs), *self._cells(pairs).values()] for kind, pairs in self._by_kind()],
            [
                f"`{NONE}` to `{HEALED}`: valid answers by method. Of `{HEALED}` beside `{NONE}`: "
                "saved, only the healed one is valid; made worse, only the other is, or the "
                "healed one's RMSE is larger; RMSE where both are valid (negative is better), "
                "seconds where both answer. Lost for good and left: healed with the fault less "
                "healed without it. An interval without a width: all pairs came to the same."
            ],
        )

    def _good_by_kind(self) -> Table:
        """A row a kind of fault, with the good ends by each method."""
        return Table(
            "healing-good",
            "The same failures by kind of fault: right and complete answers",
            ["fault", "runs", *self.methods],
            [
                [
                    kind, len(pairs),
                    *(Value(share([name in pair.good for pair in pairs])) for name in self.methods),
                ]
                for kind, pairs in self._by_kind()
            ],
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The tables as plain JSON."""
        rows = {kind: self._cells(pairs) for kind, pairs in self._by_kind()}
        return {
            "methods": {name: _plain(self._of_method(name)) for name in self.methods},
            **{kind: _plain(cells) for kind, cells in rows.items()},
        }

    def _by_kind(self) -> list[tuple[str, Sequence[Pair]]]:
        return [*by_kind(self.pairs, lambda pair: pair.kind).items(), ("all", self.pairs)]

    def _cells(self, pairs: Sequence[Pair]) -> dict[str, Value | int]:
        """Compute the cells of a kind of fault."""
        # Seconds of a run without an answer measure its time limit, not its speed.
        answered = [
            pair for pair in pairs
            if pair.plain.outcome == "submitted" and pair.healed.outcome == "submitted"
        ]  # fmt: skip
        by_method = {
            name: Value(share([ending.valid for ending in _ends(pairs, name)]))
            for name in self.methods
        }
        shortfalls = [pair.unharmed.valid - pair.healed.valid for pair in pairs]
        more_s = [pair.healed.seconds - pair.plain.seconds for pair in answered]
        left = [(pair.healed, pair.unharmed) for pair in pairs]
        return {
            **by_method,
            "saved": sum(pair.healed.valid and not pair.plain.valid for pair in pairs),
            "made worse": sum(_is_worse(pair) for pair in pairs),
            "RMSE, gained": Value(mean(_differences([(p.healed, p.plain) for p in pairs]))),
            "s, more": Value(mean(more_s)),
            "lost for good": Value(mean(shortfalls, -1, 1)),
            "RMSE, left": Value(mean(_differences(left))),
        }


def _ends(pairs: Iterable[Pair], method: str) -> list[RunEnding]:
    """List the ends of runs by a method."""
    return [ending for pair in pairs if (ending := pair.by(method))]


def _plain(cells: Mapping[str, Value | int]) -> dict[str, Any]:
    return {
        column: as_json(cell.ours) if isinstance(cell, Value) else cell
        for column, cell in cells.items()
    }


def score_healing(
    fault_set: FaultSet, *, jobs: int = 1, kinds: Collection[str] = (),
    progress: Progress = lambda stage, finished, total: None,
) -> HealingScores:  # fmt: skip
    """Play the runs of a set again, with healing.

    Args:
        fault_set: The set; runs without labels are left out, and those that were healed already or
            did no harm.
        jobs: The number of processes.
        kinds: The kinds of faults that are wanted; all, if none is named. Kinds that are in no
            catalogue have to be named, as `module:object`.
        progress: Takes a word for what is counted, how many are done, and how many there are.

    Raises:
        SettingsError: The set has no labels, or faults of a kind that has to be named.
    """
    return HealingScores(tuple(play_all(heal, fault_set, jobs, kinds, progress)))


def play_all(
    do: Callable[..., Result], fault_set: FaultSet, jobs: int, kinds: Collection[str],
    progress: Progress = lambda stage, finished, total: None,
) -> list[Result]:  # fmt: skip
    """Do something with each label of a set, and the fault-free runs of its sort, as `heal` does.

    For the other arguments and errors see `score_healing`.
    """
    labels = [
        label
        for label in (instance.label() for instance in fault_set.labelled())
        if label.harm and not label.is_healed and label.is_of(kinds)
    ]
    usual = dict(_errors(fault_set))
    # A set from elsewhere has no baseline; then no error is large enough to be wrong.
    tasks = [(label, usual.get(label.configuration, NO_ERRORS)) for label in labels]
    with Workers(jobs, "the healing", "try it with fewer --jobs") as workers:
        play_one = partial(do, foreign=tuple(kinds))
        return workers.all(play_one, tasks, lambda n: progress("runs", n, len(labels)))


NO_ERRORS = Baseline(0, {})


def _errors(fault_set: FaultSet) -> Iterator[tuple[str, Baseline]]:
    """For each configuration the errors of runs without a fault: the measure for wrong answers."""
    for name, endings in fault_set.baseline_endings():
        each = [problem for ending in endings for problem in ending.problems or (ending,)]
        # Rounded like all measurements: the baseline is searched for equal numbers.
        errors = sorted(round(problem.rmse, DIGITS) for problem in each if problem.rmse is not None)
        yield name, Baseline(len(each), {"outcome wrong": tuple(errors)})


def heal(task: tuple[Label, Baseline], foreign: Collection[str] = ()) -> Pair:
    """Play a run with faults by each method, and with healing but without faults.

    Args:
        task: The label of the run, and fault-free runs of its sort.
        foreign: Kinds that are in no catalogue, as `module:object`, that its faults may be of.
    """
    label, baseline = task
    plain, faults = label.team_run, (*label.decoys, *label.read_faults(foreign))
    runs = {method: replace(plain, method=method) for method in (*RIVALS, HEALED)}
    played = {name: play(run, faults) for name, run in runs.items()}
    twin = play(plain, label.decoys)
    ends = {name: RunEnding.of(run) for name, run in played.items()}
    return Pair(
        label.kind,
        label.faulted,
        ends.pop(HEALED),
        RunEnding.of(play(runs[HEALED], label.decoys)),
        ends,
        {name: run.result.activations for name, run in played.items()},
        frozenset(
            name for name, run in played.items() if is_all_good(verdicts(run, baseline, twin))
        ),
    )


_COLUMNS = ("good", "valid", "complete", "RMSE", "s", "calls")


def _differences(pairs: Sequence[tuple[RunEnding, RunEnding]]) -> list[float]:
    """The differences of RMSE between pairs of answers."""
    return [a.rmse - b.rmse for a, b in pairs if a.rmse is not None and b.rmse is not None]


def _is_worse(pair: Pair) -> bool:
    if pair.plain.valid != pair.healed.valid:
        return pair.plain.valid
    return any(difference > 0 for difference in _differences([(pair.healed, pair.plain)]))
