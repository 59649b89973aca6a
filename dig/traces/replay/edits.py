"""The changes of a fork: one recorded decision, event, note or list of recipients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from dig._util.json_values import plain
from dig._util.text import first_wrong
from dig.detectors.finding import Finding
from dig.detectors.interventions import Inject, Intervention
from dig.detectors.ladder import LadderStep, Progress
from dig.detectors.protocols import Healer
from dig.errors import ReplayError
from dig.graph.graph import InteractionGraph
from dig.graph.records import SYSTEM, Emit, End, FindingRow, HealRow, Record, Redirect
from dig.monitor.messages import Output
from dig.monitor.sanitize import are_names
from dig.runtime.agents import Decision
from dig.runtime.host import Setup

from .drive import Edit, Outputs

KEYS: dict[type[Record], frozenset[str]] = {
    End: frozenset({"fates", "outputs", "error"}),
    Emit: frozenset({"payload", "to", "type"}),
    HealRow: frozenset({"note", "to"}),
    Redirect: frozenset({"to"}),
}
"""The keys that can be changed in a record, by its kind."""


class Change(Edit):
    """Changes one record, as it is made again.

    Attributes:
        record: The recorded one.
        is_done: Whether the changed record was made already.
    """

    def __init__(self, record: Record, keys: Mapping[str, Any]) -> None:
        """Prepare a change.

        Args:
            record: The recorded one.
            keys: The new values, as plain JSON: for an `end` the `fates` and
                `outputs` of a decision (or an `error`), for an `emit` its `payload`, `to` or
                `type`, for a `heal` its `note` or `to`, for a `redirect` its `to`.

        Raises:
            ReplayError: A key cannot be changed in such a record.
        """
        self.record = record
        self.is_done = False
        self._keys = _checked(record, keys)

    @property
    def begins_a_request(self) -> bool:
        """Whether the record may be the first one of its request."""
        return isinstance(self.record, End | Redirect | HealRow) or (
            isinstance(self.record, Emit) and self.record.by is None
        )

    def decision(self, end: End, outputs: Outputs) -> tuple[End, Outputs]:
        """Replace the decision, if the change is about this end."""
        if end.t != self.record.t:
            return end, outputs
        self.is_done = True
        end = replace(end, because=None, cancelled=False)  # which was about the old error
        if "error" in self._keys:
            return replace(end, fates=(), outputs=(), error=self._keys["error"]), ()
        decided = {k: v for k, v in self._keys.items() if k in ("fates", "outputs")}
        fates, new = Decision.model_validate(decided).parts()
        return (
            replace(end, fates=fates if "fates" in self._keys else end.fates, error=None),
            new if "outputs" in self._keys else outputs,
        )

    def event(self, emit: Emit, output: Output) -> Output:
        """Replace the content or recipients of the event, if the change is about it."""
        if emit.t != self.record.t:
            return output
        self.is_done = True
        return replace(output, **self._keys)

    def recipients(self, redirect: Redirect) -> tuple[str, ...]:
        """Replace the recipients, if the change is about this redirect."""
        if redirect.t != self.record.t:
            return redirect.to
        self.is_done = True
        to: tuple[str, ...] = self._keys["to"]
        return to

    def healing(self, setup: Setup, finding: FindingRow, place: tuple[int, int]) -> Setup:
        """A setup whose healer returns the changed intervention for a finding.

        Args:
            setup: The setup of the recorded run.
            finding: The finding.
            place: The step about it, and the number of the changed intervention in this step, both
                counted from 0.
        """
        make = setup.healers
        if make is None:
            raise ReplayError(f"record {self.record.t} heals, but the run has no healers")

        def healers() -> dict[str, Healer]:
            made = dict(make())
            made[finding.pattern] = _Reworded(made[finding.pattern], self, finding, place)
            return made

        return replace(setup, healers=healers)

    @property
    def has_note(self) -> bool:
        """Whether the change gives a new note."""
        return "note" in self._keys

    def reworded(self, intervention: Intervention) -> Intervention:
        """The changed version of an intervention."""
        self.is_done = True
        return replace(intervention, **self._keys)


class _Reworded(Healer):
    """A healer that returns one changed intervention about one finding."""

    def __init__(
        self, inner: Healer, change: Change, finding: FindingRow, place: tuple[int, int]
    ) -> None:
        self._inner = inner
        self._change = change
        self._finding = finding
        self._step, self._number = place
        self._has_new_note = False  # what was returned last
        self.cooldown_s = inner.cooldown_s

    def about(self, finding: Finding) -> object:
        """The same as the healer's."""
        return self._inner.about(finding)

    def missing_work(self, finding: Finding) -> Sequence[str]:
        """The same as the healer's; nothing beside a changed note, which stays as it was given."""
        return () if self._has_new_note else self._inner.missing_work(finding)

    def prevent(self, graph: InteractionGraph, event: str) -> Iterable[Inject]:
        """The same as the healer's."""
        return self._inner.prevent(graph, event)

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterable[Intervention]:
        """The interventions of the healer, one of them changed if the finding is the right one."""
        return self._reworded(graph, finding, list(self._inner.heal(graph, finding)))

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterable[Intervention]:
        """The same for a step of a ladder."""
        return self._reworded(graph, finding, list(self._inner.escalate(graph, finding, step)))

    def progress(self, graph: InteractionGraph, finding: Finding, step: LadderStep) -> Progress:
        """The same as the healer's."""
        return self._inner.progress(graph, finding, step)

    def _reworded(
        self, graph: InteractionGraph, finding: Finding, said: list[Intervention]
    ) -> list[Intervention]:
        """The words of the step, changed if this is the right step about the right finding."""
        self._has_new_note = False
        row = self._finding
        same = (finding.pattern, finding.stage, finding.subject, finding.evidence) == (
            row.pattern, row.stage, row.subject, row.evidence,
        )  # fmt: skip
        is_right = same and not self._change.is_done and row.t <= graph.t < self._change.record.t
        self._step -= is_right
        if is_right and self._step < 0:
            said[self._number] = self._change.reworded(said[self._number])
            self._has_new_note = self._change.has_note
        return said


def changeable(record: Record) -> tuple[str, ...]:
    """The keys that can be changed in a record, sorted; none: nothing can."""
    is_made = isinstance(record, Emit) and record.by == SYSTEM
    is_refusal = isinstance(record, HealRow) and record.action in ("refused", "replace")
    return () if is_made or is_refusal else tuple(sorted(KEYS.get(type(record), ())))


def _checked(record: Record, keys: Mapping[str, Any]) -> dict[str, Any]:
    where = f"record {record.t} is of kind `{record.kind}`"
    known = KEYS.get(type(record))
    if known is None:
        kinds = ", ".join(f"`{kind.kind}`" for kind in KEYS)
        raise ReplayError(f"{where}, in which nothing can be changed; that can be done in {kinds}")
    if isinstance(record, Emit) and record.by == SYSTEM:
        raise ReplayError(f"{where} and made by healing; change the `heal` record before it")
    if isinstance(record, HealRow) and record.action in ("refused", "replace"):
        what = "was refused" if record.action == "refused" else "takes an agent out"
        raise ReplayError(f"{where} and says that healing {what}")
    unknown = keys.keys() - known
    if unknown or not keys:
        what = ", ".join(f"`{key}`" for key in sorted(unknown)) or "nothing"
        names = ", ".join(f"`{key}`" for key in sorted(known))
        raise ReplayError(f"{where}, in which {names} can be changed, not {what}")
    changed = {key: plain(value, key) for key, value in keys.items()}
    return _decided(where, changed) if isinstance(record, End) else _said(where, changed)


def _decided(where: str, keys: dict[str, Any]) -> dict[str, Any]:
    if "error" in keys:
        if len(keys) > 1 or not isinstance(keys["error"], str):
            raise ReplayError(f"{where}: `error` is a text, and stands alone")
        return keys
    try:
        Decision.model_validate(keys)
    except ValidationError as error:
        place, why = first_wrong(error)
        raise ReplayError(f"{where}; what is to stand there is wrong at {place}: {why}") from None
    return keys


def _said(where: str, keys: dict[str, Any]) -> dict[str, Any]:
    for key in ("type", "note"):
        if key in keys and not (isinstance(keys[key], str) and keys[key]):
            raise ReplayError(f"{where}: `{key}` must be a text")
    if "to" in keys:
        if not are_names(keys["to"]):
            raise ReplayError(f"{where}: `to` must be a list of agents' names")
        keys["to"] = tuple(keys["to"])
    return keys
