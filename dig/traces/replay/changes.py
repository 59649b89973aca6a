"""The changes that a fork can make besides an edited record: plain data, with a JSON form.

Each has `at`, the record from which on the run is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from dig._util.text import first_wrong
from dig.errors import ReplayError
from dig.graph.codec import dumps

_STRICT = ConfigDict(extra="forbid", strict=True)


class _AsJson:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        row = asdict(self)  # type: ignore[call-overload]
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in row.items()
            if value is not None
        }


@dataclass(frozen=True)
class EditRecord(_AsJson):
    """Record `at` is otherwise: `edit` has its new values, see `dig.traces.replay.edits.Change`."""

    at: int
    edit: Mapping[str, Any]
    kind: Literal["edit"] = "edit"


@dataclass(frozen=True)
class AskAgain(_AsJson):
    """An activation is decided anew, by its agent, with a note beside its first input if given.

    `at` is its `start`, or a later record up to its `end`.
    """

    at: int
    activation: str
    note: str | None = None
    kind: Literal["again"] = "again"


@dataclass(frozen=True)
class TellAgent(_AsJson):
    """An agent is told something in a system event; unless `once`, in all later activations too."""

    at: int
    agent: str
    note: str
    once: bool = True
    kind: Literal["tell"] = "tell"


@dataclass(frozen=True)
class Resend(_AsJson):
    """Events come again from outside: same payload and type, to the same or to named agents."""

    at: int
    events: tuple[str, ...]
    to: tuple[str, ...] | None = None
    kind: Literal["resend"] = "resend"


@dataclass(frozen=True)
class Reseat(_AsJson):
    """The inputs of `agent` are decided on by the behaviour of the member `by`."""

    at: int
    agent: str
    by: str
    kind: Literal["seat"] = "seat"


@dataclass(frozen=True)
class OmitRecord(_AsJson):
    """A `leave`, `join`, `expire`, event from outside or `redirect` by a host does not happen."""

    at: int
    t: int
    kind: Literal["omit"] = "omit"


@dataclass(frozen=True)
class ReleaseSooner(_AsJson):
    """An event that a delivery policy keeps is delivered."""

    at: int
    event: str
    kind: Literal["sooner"] = "sooner"


@dataclass(frozen=True)
class WaitLonger(_AsJson):
    """The time limit of the run is longer by some seconds."""

    at: int
    seconds: Annotated[float, Field(gt=0, le=1e9)]
    kind: Literal["wait"] = "wait"


RunChange = (
    EditRecord | AskAgain | TellAgent | Resend | Reseat | OmitRecord | ReleaseSooner | WaitLonger
)

_ROWS: TypeAdapter[RunChange] = TypeAdapter(Annotated[RunChange, Field(discriminator="kind")])

AT_ONCE = (EditRecord, AskAgain, TellAgent, Resend, ReleaseSooner)
"""Changes that act at their moment alone; a fork of a fork does not make them again."""


def read_change(row: Mapping[str, Any]) -> RunChange:
    """The change that its JSON describes.

    Raises:
        ReplayError: The text describes no change; the message says what is wrong, and where.
    """
    try:
        return _ROWS.validate_json(dumps(row))
    except ValidationError as error:
        place, why = first_wrong(error)
        raise ReplayError(f"{str(row)[:200]} is no change of a run: {place}: {why}") from None


def first_record(changes: Iterable[RunChange]) -> int:
    """The record at which a fork with these changes begins: the first that may be different.

    Raises:
        ReplayError: There is no change.
    """
    found = [change.at for change in changes]
    if not found:
        raise ReplayError("there is no change, so no record from which on the run is free")
    return min(found)
