"""Changes of a fork: plain data, with a JSON form.

Each has `at`, the record from which on the run is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from dig._util.json_values import dumps
from dig._util.text import first_wrong
from dig.errors import ReplayError

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
    """Record `at` is otherwise: `edit` has the new values, see `edits.RecordEdit`."""

    at: int
    edit: Mapping[str, Any]
    kind: Literal["edit"] = "edit"


@dataclass(frozen=True)
class AskAgain(_AsJson):
    """The agent of an activation decides anew, with a note beside the first input if given.

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
    """A delivery policy keeps an event no longer."""

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
    """Read a change from JSON.

    Raises:
        ReplayError: The text describes no change; the message says what is wrong, and where.
    """
    try:
        return _ROWS.validate_json(dumps(row))
    except ValidationError as error:
        place, reason = first_wrong(error)
        raise ReplayError(f"{str(row)[:200]} is no change of a run: {place}: {reason}") from None
