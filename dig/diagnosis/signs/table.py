"""The table of signs: a row each, general signs first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dig.graph.records import Record
from dig.tasks.accounting import Accounting
from dig.traces.run import RecordedRun

from . import activations, contents, delivery, peers
from .analysis import Occurrence, RunAnalysis, Sign, UsualTeam
from .traits import TeamHabits


@dataclass(frozen=True, slots=True)
class SignRow:
    """A kind of sign.

    Attributes:
        mechanism: The mechanism of the failure, in a word; ``None``: it only differs from what
            peers do.
        weight: The weight of the sign, from 0 to 1.
        find: Finds the places of a run that show it.
        may_follow: Whether the sign may be the doing of another agent.
        spoils: Whether harm is done by what was made, once it is used; else by what is missing.
    """

    name: str
    mechanism: str | None
    weight: float
    find: Callable[[RunAnalysis], Iterator[Occurrence]]
    may_follow: bool = True
    spoils: bool = False


def _odd(*mechanisms: str) -> Callable[[RunAnalysis], Iterator[Occurrence]]:
    return lambda analysis: peers.find_odd_siblings(analysis, *mechanisms)


UNUSABLE = UNLIKE, REFUSED = "unlike its siblings", "thrown away by several"
"""The signs of work that its recipients cannot use: they are not at fault if they throw it away."""

ROWS: tuple[SignRow, ...] = (
    SignRow("unlike results of peers", None, 0.6, peers.find_rare_results, spoils=True),
    SignRow(UNLIKE, "damaged", 0.9, _odd("unlike"), may_follow=False, spoils=True),
    SignRow("unread", "damaged", 0.9, _odd("unread"), may_follow=False, spoils=True),
    SignRow("nothing for its giver", "silent", 0.9, _odd("nothing")),
    SignRow("swallowed returns", "withheld", 0.95, _odd("swallowed"), may_follow=False),
    SignRow("lost on the way", "lost", 1.0, delivery.find_expired, may_follow=False),
    SignRow("to nobody", "misaddressed", 1.0, delivery.find_unaddressed, may_follow=False),
    SignRow("left", "left", 1.0, delivery.find_leaving, may_follow=False),
    SignRow("hung", "hung", 1.0, activations.find_hung, may_follow=False),
    SignRow("unreadable", "damaged", 1.0, contents.find_unreadable, may_follow=False),
    SignRow(REFUSED, "damaged", 0.95, contents.find_refused, may_follow=False),
    SignRow("failed", "failed", 0.97, activations.find_failed),
    SignRow("kept the answer", "withheld", 0.97, activations.find_withheld, may_follow=False),
    SignRow("silent", "silent", 0.95, activations.find_silent),
    SignRow("arrived late", "late", 0.95, delivery.find_late, may_follow=False),
    SignRow("wrong amounts", "damaged", 0.95, contents.find_wrong_amounts, spoils=True),
    SignRow("shared out otherwise", "damaged", 0.85, contents.find_odd_profiles, spoils=True),
    SignRow("grown", "damaged", 0.9, contents.find_grown, spoils=True),
    SignRow("astray", "astray", 0.9, delivery.find_misreported, may_follow=False),
    SignRow("slow", "slow", 0.9, activations.find_slow, may_follow=False),
    SignRow("stale", "stale", 0.9, contents.find_stale, may_follow=False, spoils=True),
    SignRow(
        "dealt out twice", "dealt-twice", 0.9, contents.find_dealt_twice, may_follow=False,
        spoils=True,
    ),
    SignRow("passed on", "passed-on", 0.9, activations.find_passed_on),
    SignRow("threw away", "discarded", 0.85, activations.find_discarded),
    SignRow("waits on work", "waiting", 0.8, activations.find_waiting),
    SignRow("holds work", "waiting", 0.4, activations.find_holding),
    SignRow("kept a copy", "kept", 0.7, contents.find_copies, may_follow=False, spoils=True),
    SignRow("hasty", "early", 0.8, contents.find_hasty, spoils=True),
)  # fmt: skip
"""The signs, general ones first, then by falling weight."""


def find_signs(analysis: RunAnalysis) -> list[Sign]:
    """Find the signs of a run, in the order of the table, then of records."""
    return [
        Sign(
            name=row.name, mechanism=row.mechanism, weight=row.weight * place.part,
            may_follow=row.may_follow, spoils=row.spoils, agent=place.agent, t=place.t,
            says=place.says, activation=place.activation, event=place.event,
        )
        for row in ROWS
        for place in sorted(row.find(analysis), key=lambda place: place.t)
    ]  # fmt: skip


def learn_habits(
    runs: Iterable[Iterable[Record]], accounting: Accounting | None = None
) -> UsualTeam:
    """Learn the habits of good runs of the same sort, as the norm for others.

    Args:
        runs: Their records.
        accounting: Reads their payloads; ``None``: nothing does.
    """
    analyses = [RunAnalysis(RecordedRun(run), accounting) for run in runs]
    habits = TeamHabits.of(trait for analysis in analyses for trait in analysis.traits)
    counts = Counter[str]()
    for analysis in analyses:
        # Signs of good runs are counted by the norm of all of them, which is known only now.
        analysis.usual = UsualTeam(len(analyses), habits)
        counts.update({sign.name for sign in find_signs(analysis)})
    return UsualTeam(len(analyses), habits, counts)
