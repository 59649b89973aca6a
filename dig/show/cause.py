"""The cause of a failed run, taken from a diagnosis, for pages and figures; and evidence.

`dig.show.document.cause` makes it of a document of `digmon why`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

STRICT = ConfigDict(extra="forbid", strict=True)
# A document has every key of these, also those that code may leave out.
CONCEPT = ConfigDict(**STRICT, json_schema_serialization_defaults_required=True)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The content of a record of a trace, or of a step of a conversation.

    Attributes:
        step: The number of the step; ``None`` if the record belongs to none.
        t: The number of the record; ``None`` in a conversation.
        says: A sentence about it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CONCEPT

    # Fields stand in the order of their keys in the document; `step` is given by its name.
    step: int | None = field(default=None, kw_only=True)
    t: int | None
    says: Annotated[str, Field(max_length=400)]


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
        agent: The agent that it names; empty: none.
    """

    t: int | None
    says: str
    candidates: tuple[SuspectedPlace, ...] = ()
    chain: tuple[int, ...] = ()
    tried: tuple[TriedChange, ...] = ()
    agent: str = ""

    @property
    def is_refuted(self) -> bool:
        """Whether changes were tried, and none helps."""
        return {change.verdict for change in self.tried} == {"refuted"}
