"""An answer against the truth of a snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from dig.errors import SettingsError

from .frontier import distances, search_from, successors
from .investigation import Investigation, most_common
from .snapshot import Snapshot, SnapshotTruth


@dataclass(frozen=True, slots=True)
class Agreement:
    """Precision, recall and F1."""

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
                f"{name:<10} {row.precision:>9.3f} {row.recall:>7.3f} {row.f1:>7.3f}"
                for name, row in (("roots", self.roots), ("edges", self.edges))
            ),
            f"proximity {self.proximity:.3f}",
            f"of {self.answers} runs: some right {_yes(self.pass_at_k)}, "
            f"most right {_yes(self.maj_at_k)}",
        ]


def score(
    snapshot: Snapshot, truth: SnapshotTruth, answers: Sequence[Investigation]
) -> InvestigationScore:
    """Score answers about a snapshot; several documents count as several runs.

    Args:
        snapshot: The snapshot; aliases count as the entity that they name.
        truth: Its truth.
        answers: The answers.

    Raises:
        SettingsError: There is none, or one is about another snapshot.
    """
    if not answers:
        raise SettingsError("there is no answer to score")
    for answer in answers:
        # Names of directories repeat; only the checksum tells that the answer is about this one.
        if answer.sha256 != snapshot.sha256:
            raise SettingsError(
                f"an answer is about another snapshot ({answer.name}, or this one before a change)"
            )
    roots = {snapshot.canonical(root) for root in truth.roots}
    edges = {(snapshot.canonical(a), snapshot.canonical(b)) for a, b in truth.propagation}
    near = _distances(snapshot, edges, roots)
    frontiers: list[tuple[str, ...]] = []
    for answer in answers:
        frontiers += answer.votes.frontiers if answer.votes else [answer.frontier]
    return InvestigationScore(
        answers=len(frontiers),
        roots=_mean([Agreement.of({*answer.answer}, roots) for answer in answers]),
        edges=_mean([Agreement.of(_leading_on(answer), edges) for answer in answers]),
        proximity=_average(_proximity(answer.answer, near) for answer in answers),
        pass_at_k=any({*frontier} == roots for frontier in frontiers),
        maj_at_k=most_common(frontiers) == roots,
    )


def _leading_on(investigation: Investigation) -> set[tuple[str, str]]:
    graph = successors(investigation.claims)
    ahead = {entity for source in investigation.answer for entity in search_from(graph, source)}
    return {(claim.source, claim.target) for claim in investigation.claims if claim.source in ahead}


def _distances(
    snapshot: Snapshot, edges: Iterable[tuple[str, str]], roots: Iterable[str]
) -> list[dict[str, int]]:
    """For each true cause, the links to every entity, over topology and truth in any direction."""
    names = snapshot.entities()
    graph = {name: [row.entity for row in snapshot.neighbours(name)] for name in names}
    for a, b in edges:
        # The truth may name links that the topology lacks; otherwise they would be infinitely far.
        graph.setdefault(a, []).append(b)
        graph.setdefault(b, []).append(a)
    return [distances(graph, root) for root in sorted(roots)]


def _proximity(answer: Sequence[str], near: Sequence[dict[str, int]]) -> float:
    reached = ([steps[name] for name in answer if name in steps] for steps in near)
    return _average(1 / (1 + min(links)) if links else 0.0 for links in reached)


def _mean(agreements: Sequence[Agreement]) -> Agreement:
    return Agreement(
        _average(agreement.precision for agreement in agreements),
        _average(agreement.recall for agreement in agreements),
        _average(agreement.f1 for agreement in agreements),
    )


def _average(values: Iterable[float]) -> float:
    numbers = [*values]
    return sum(numbers) / len(numbers) if numbers else 0.0


def _yes(value: bool) -> str:
    return "yes" if value else "no"
