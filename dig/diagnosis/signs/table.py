"""The table of signs: one row each, the general one first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dig.graph.records import Record
from dig.tasks.accounting import Accounting
from dig.traces.run import RecordedRun

from . import activations, contents, delivery, peers
from .seen import Seen, Shown, Sign, UsualTeam
from .traits import TeamHabits


@dataclass(frozen=True, slots=True)
class SignRow:
    """One sign.

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
    find: Callable[[Seen], Iterator[Shown]]
    may_follow: bool = True
    spoils: bool = False


ROWS: tuple[SignRow, ...] = (
    SignRow("unlike its peers", None, 0.6, peers.acts),
    SignRow("unlike results of peers", None, 0.6, peers.results, spoils=True),
    SignRow("lost on the way", "lost", 1.0, delivery.lost, may_follow=False),
    SignRow("to nobody", "misaddressed", 1.0, delivery.to_nobody, may_follow=False),
    SignRow("left", "left", 1.0, delivery.left, may_follow=False),
    SignRow("hung", "hung", 1.0, activations.hung, may_follow=False),
    SignRow("unreadable", "damaged", 1.0, contents.unreadable, may_follow=False),
    SignRow("failed", "failed", 0.97, activations.failed),
    SignRow("kept the answer", "withheld", 0.97, activations.withheld, may_follow=False),
    SignRow("silent", "silent", 0.95, activations.silent),
    SignRow("arrived late", "late", 0.95, delivery.late, may_follow=False),
    SignRow("wrong amounts", "damaged", 0.95, contents.amounts, spoils=True),
    SignRow("shared out otherwise", "damaged", 0.85, contents.profiles, spoils=True),
    SignRow("not conserved", "damaged", 0.9, contents.not_conserved, spoils=True),
    SignRow("grown", "damaged", 0.9, contents.grown, spoils=True),
    SignRow("astray", "astray", 0.9, delivery.astray, may_follow=False),
    SignRow("slow", "slow", 0.9, activations.slow, may_follow=False),
    SignRow("stale", "stale", 0.9, contents.stale, may_follow=False, spoils=True),
    SignRow("said twice", "doubled", 0.9, contents.doubled, may_follow=False, spoils=True),
    SignRow(
        "dealt out twice", "dealt-twice", 0.9, contents.dealt_twice, may_follow=False, spoils=True
    ),
    SignRow("passed on", "passed-on", 0.9, activations.passed_on),
    SignRow("counted twice", "mixed-up", 0.9, contents.counted_twice, spoils=True),
    SignRow("threw away", "discarded", 0.85, activations.discarded),
    SignRow("waits on work", "waiting", 0.8, activations.waiting),
    SignRow("holds work", "waiting", 0.4, activations.holding),
    SignRow("kept a copy", "kept", 0.7, contents.kept_a_copy, may_follow=False, spoils=True),
    SignRow("hasty", "early", 0.8, contents.hasty, spoils=True),
)
"""The signs, general ones first, then by falling weight."""


def signs(seen: Seen) -> list[Sign]:
    """The signs of a run, in the order of the table, each in the order of its records."""
    return [
        Sign(
            name=row.name, mechanism=row.mechanism, weight=row.weight * one.part,
            may_follow=row.may_follow, spoils=row.spoils, agent=one.agent, t=one.t, says=one.says,
            activation=one.activation, event=one.event,
        )
        for row in ROWS
        for one in sorted(row.find(seen), key=lambda one: one.t)
    ]  # fmt: skip


def learned(runs: Iterable[Iterable[Record]], accounting: Accounting | None = None) -> UsualTeam:
    """The habits of good runs of one sort, as the measure for others.

    Args:
        runs: Their records.
        accounting: Reads their payloads; ``None``: nothing does.
    """
    seen = [Seen(RecordedRun(run), accounting) for run in runs]
    habits = TeamHabits.of(trait for one in seen for trait in one.traits)
    found = Counter[str]()
    for one in seen:
        one.usual = UsualTeam(len(seen), habits)
        found.update({sign.name for sign in signs(one)})
    return UsualTeam(len(seen), habits, found)
