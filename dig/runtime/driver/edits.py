"""Edits of a fork: another decision, event, note or list of recipients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from dig._util.json_values import plain
from dig._util.text import first_wrong
from dig.detectors.interventions import STEPS, Act
from dig.errors import ReplayError
from dig.graph.records import SYSTEM, Emit, End, HealRow, Leave, Record, Redirect
from dig.monitor.messages import Output
from dig.monitor.sanitize import are_names
from dig.runtime.agents import Decision

Outputs = tuple[Output, ...]

KEYS: dict[type[Record], frozenset[str]] = {
    End: frozenset({"fates", "outputs", "error"}),
    Emit: frozenset({"payload", "to", "type"}),
    HealRow: frozenset({"note", "to"}),
    Redirect: frozenset({"to"}),
}
"""The keys that can be changed in a record, by kind."""


class RecordEdit:
    """New values for a record, put in when a replay makes the record again.

    Attributes:
        record: The recorded version.
        is_done: Whether the edited record was made already.
    """

    def __init__(self, record: Record, values: Mapping[str, Any]) -> None:
        """Check an edit.

        Args:
            record: The recorded version.
            values: The new values, as plain JSON: for an `end` the `fates` and
                `outputs` of a decision (or an `error`), for an `emit` its `payload`, `to` or
                `type`, for a `heal` its `note` or `to`, for a `redirect` its `to`.

        Raises:
            ReplayError: A key cannot be changed in such a record.
        """
        self.record = record
        self.is_done = False
        self._values = _check_values(record, values)

    @property
    def begins_request(self) -> bool:
        """Whether the record may begin a request."""
        return isinstance(self.record, End | Redirect | HealRow) or (
            isinstance(self.record, Emit) and self.record.by is None
        )

    def decision(self, end: End, outputs: Outputs) -> tuple[End, Outputs]:
        """The decision of an activation, with the new values for the edited end."""
        if not self._is_about(end.t):
            return end, outputs
        end = replace(end, because=None, cancelled=False)  # which was about the old error
        if "error" in self._values:
            return replace(end, fates=(), outputs=(), error=self._values["error"]), ()
        decided = {k: v for k, v in self._values.items() if k in ("fates", "outputs")}
        fates, new = Decision.model_validate(decided).parts()
        return (
            replace(end, fates=fates if "fates" in self._values else end.fates, error=None),
            new if "outputs" in self._values else outputs,
        )

    def event(self, emit: Emit, output: Output) -> Output:
        """An event, with the new content or recipients for the edited emit."""
        return replace(output, **self._values) if self._is_about(emit.t) else output

    def recipients(self, redirect: Redirect) -> tuple[str, ...]:
        """The recipients of a redirect by a host; for the edited record, the new recipients."""
        to: tuple[str, ...] = self._values["to"] if self._is_about(redirect.t) else redirect.to
        return to

    def intervention(self, t: int, wish: Act, mask: Callable[[Any], Any]) -> Act:
        """An intervention, with the new note or recipients for the edited record.

        Args:
            t: The number of the `heal` record that the intervention will have.
            wish: The intervention of the healer.
            mask: Masks secrets in a note.
        """
        if not (isinstance(self.record, HealRow) and self._is_about(t)):
            return wish
        # The note does not come from the monitor's own healing, which masks what healers say.
        masked = {key: mask(note) for key, note in self._values.items() if key == "note"}
        return replace(wish, **(self._values | masked))

    def _is_about(self, t: int) -> bool:
        is_it = t == self.record.t
        self.is_done |= is_it
        return is_it


def changeable(record: Record) -> tuple[str, ...]:
    """The changeable keys of a record, sorted."""
    is_made = isinstance(record, Emit) and record.by == SYSTEM
    is_refusal = isinstance(record, HealRow) and record.action in ("refused", "replace")
    return () if is_made or is_refusal else tuple(sorted(KEYS.get(type(record), ())))


def is_healed(record: Record, before: Record | None) -> bool:
    """Whether a redirect or leave follows from the healing in the record before."""
    if not isinstance(before, HealRow):
        return False
    if isinstance(record, Leave):
        return before.action == "replace"
    return isinstance(record, Redirect) and before.event == record.event and before.action in STEPS


def _check_values(record: Record, values: Mapping[str, Any]) -> dict[str, Any]:
    place = f"record {record.t} is of kind `{record.kind}`"
    keys = KEYS.get(type(record))
    if keys is None:
        kinds = ", ".join(f"`{kind.kind}`" for kind in KEYS)
        raise ReplayError(f"{place}, in which nothing can be changed; that can be done in {kinds}")
    if isinstance(record, Emit) and record.by == SYSTEM:
        raise ReplayError(f"{place} and made by healing; change the `heal` record before it")
    if isinstance(record, HealRow) and record.action in ("refused", "replace"):
        deed = "was refused" if record.action == "refused" else "takes an agent out"
        raise ReplayError(f"{place} and says that healing {deed}")
    unknown = values.keys() - keys
    if unknown or not values:
        wrong = ", ".join(f"`{key}`" for key in sorted(unknown)) or "nothing"
        names = ", ".join(f"`{key}`" for key in sorted(keys))
        raise ReplayError(f"{place}, in which {names} can be changed, not {wrong}")
    checked = {key: plain(value, key) for key, value in values.items()}
    if isinstance(record, End):
        _check_decision(place, checked)
        return checked
    for key in ("type", "note"):
        if key in checked and not (isinstance(checked[key], str) and checked[key]):
            raise ReplayError(f"{place}: `{key}` must be a text")
    if "to" in checked:
        if not are_names(checked["to"]):
            raise ReplayError(f"{place}: `to` must be a list of agents' names")
        checked["to"] = tuple(checked["to"])
    return checked


def _check_decision(prefix: str, values: dict[str, Any]) -> None:
    if "error" in values:
        if len(values) > 1 or not isinstance(values["error"], str):
            raise ReplayError(f"{prefix}: `error` is a text, and stands alone")
        return
    try:
        Decision.model_validate(values)
    except ValidationError as error:
        place, reason = first_wrong(error)
        raise ReplayError(
            f"{prefix}; what is to stand there is wrong at {place}: {reason}"
        ) from None
