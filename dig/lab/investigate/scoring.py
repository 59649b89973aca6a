"""An answer against the truth of a snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from dig.errors import SettingsError

from .frontier import reached, successors
from .investigation import Investigation, most_common
from .snapshot import Snapshot, SnapshotTruth


@dataclass(frozen=True, slots=True)
class Agreement:
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, answered: Collection[object], true: Collection[object]) -> Agreement:
        """The common part of two sets; all is 1 if both are empty.

        Args:
            answered: The set that was answered.
            true: The true set.
        """
        if not answered and not true:
            return cls(1.0, 1.0, 1.0)
        right = len({*answered} & {*true})
        precision = right / len(answered) if answered else 0.0
        recall = right / len(true) if true else 0.0
        f1 = 2 * right / (len(answered) + len(true))
        return cls(precision, recall, f1)


@dataclass(frozen=True, slots=True)
class InvestigationScore:
    """The rightness of the answers about a snapshot.

    Attributes:
        answers: The number of answers.
        roots: The frontier, or the guess in its place, against the true causes; the mean.
        edges: The links that lead on from the frontier, against the true ones; the mean.
        proximity: 1 / (1 + links between a true cause and the nearest answer); the mean.
        pass_at_k: Whether the frontier of some run is exactly right.
        maj_at_k: Whether the answer of most runs is.
    """

    answers: int
    roots: Agreement
    edges: Agreement
    proximity: float
    pass_at_k: bool
    maj_at_k: bool

    def lines(self) -> list[str]:
        """The score as a table."""
        return [
            f"{'':<10} precision  recall      F1",
            *(
                f"{what:<10} {one.precision:>9.3f} {one.recall:>7.3f} {one.f1:>7.3f}"
                for what, one in (("roots", self.roots), ("edges", self.edges))
            ),
            f"proximity {self.proximity:.3f}",
            f"of {self.answers} runs: some right {_yes(self.pass_at_k)}, "
            f"most right {_yes(self.maj_at_k)}",
        ]


def score(
    snapshot: Snapshot, truth: SnapshotTruth, answers: Sequence[Investigation]
) -> InvestigationScore:
    """Score answers about one snapshot; several documents count as several runs.

    Args:
        snapshot: The snapshot; aliases count as the entity that they name.
        truth: Its truth.
        answers: The answers.

    Raises:
        SettingsError: There is none, or one is about another snapshot.
    """
    if not answers:
        raise SettingsError("there is no answer to score")
    for one in answers:
        if one.sha256 != snapshot.sha256:
            raise SettingsError(
                f"an answer is about another snapshot ({one.name}, or this one before a change)"
            )
    roots = {snapshot.canonical(one) for one in truth.roots}
    edges = {(snapshot.canonical(a), snapshot.canonical(b)) for a, b in truth.propagation}
    near = _distances(snapshot, edges, roots)
    frontiers = [
        f for one in answers for f in (one.votes.frontiers if one.votes else [one.frontier])
    ]
    most = most_common(frontiers)
    return InvestigationScore(
        answers=len(frontiers),
        roots=_mean([Agreement.of({*one.answer}, roots) for one in answers]),
        edges=_mean([Agreement.of(_leading_on(one), edges) for one in answers]),
        proximity=_average(_proximity(one.answer, near) for one in answers),
        pass_at_k=any({*one} == roots for one in frontiers),
        maj_at_k=most == roots,
    )


def _leading_on(found: Investigation) -> set[tuple[str, str]]:
    graph = successors(found.claims)
    ahead = {one for source in found.answer for one in reached(graph, source)}
    return {(one.source, one.target) for one in found.claims if one.source in ahead}


def _distances(
    snapshot: Snapshot, edges: Iterable[tuple[str, str]], roots: Iterable[str]
) -> list[dict[str, int]]:
    """For each true cause, the links to every entity, over topology and truth in any direction."""
    graph = {one: [row.entity for row in snapshot.neighbours(one)] for one in snapshot.entities()}
    for a, b in edges:
        graph.setdefault(a, []).append(b)
        graph.setdefault(b, []).append(a)
    found = []
    for root in sorted(roots):
        steps = {root: 0}
        for entity, before in reached(graph, root).items():
            if before is not None:
                steps[entity] = steps[before] + 1
        found.append(steps)
    return found


def _proximity(answer: Sequence[str], near: Sequence[dict[str, int]]) -> float:
    best = [
        max((1 / (1 + steps[one]) for one in answer if one in steps), default=0.0) for steps in near
    ]
    return _average(best)


def _mean(found: Sequence[Agreement]) -> Agreement:
    return Agreement(
        _average(one.precision for one in found),
        _average(one.recall for one in found),
        _average(one.f1 for one in found),
    )


def _average(values: Iterable[float]) -> float:
    known = [*values]
    return sum(known) / len(known) if known else 0.0


def _yes(value: bool) -> str:
    return "yes" if value else "no"
