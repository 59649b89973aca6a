"""The cause of a failed run, taken from a diagnosis, for pages and figures.

`dig.diagnosis.telling.cause` makes it of a document of `digmon why`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SuspectedPlace:
    """A suspected place of a run.

    Attributes:
        node: The activation or the event; ``None``: it is none.
        t: The first record of the place.
        says: The agent, and why it is suspected.
    """

    node: str | None
    t: int | None
    says: str


@dataclass(frozen=True)
class TriedChange:
    """A change of an experiment, with its result.

    Attributes:
        says: The change in words.
        verdict: What came of it, `validated` for instance.
        good: How many runs with the change were good.
        of: How many there were.
        unchanged_good: How many runs without it were good.
        unchanged_of: How many there were.
    """

    says: str
    verdict: str
    good: int
    of: int
    unchanged_good: int
    unchanged_of: int


@dataclass(frozen=True)
class KnownCause:
    """The cause from a diagnosis.

    Attributes:
        t: The record of the answer; ``None``: it has none.
        says: The answer in words.
        candidates: The places that may be at fault, the likeliest first.
        chain: The activations by which the failure went on, each as its number in order of start.
        tried: The changes that were tried.
    """

    t: int | None
    says: str
    candidates: tuple[SuspectedPlace, ...] = ()
    chain: tuple[int, ...] = ()
    tried: tuple[TriedChange, ...] = ()
