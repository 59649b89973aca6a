"""The kinds of interventions: changes of a recorded run (`dig.traces.replay.changes`).

read_interventions([{"kind": "seat", "at": 38, "agent": "agent-3", "by": "agent-1"}])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dig._util.text import counted, name, names, one_line
from dig.errors import ReplayError, SettingsError

from . import changes
from .changes import RunChange, read_change

MOST_INTERVENTIONS = 3


KINDS: tuple[str, ...] = ("edit", "resend", "sooner", "again", "tell", "omit", "wait", "seat")
"""All kinds, from the one that says most about what was wrong to the one that says only who."""


def read_interventions(rows: Sequence[Mapping[str, Any]]) -> tuple[RunChange, ...]:
    """The interventions of a hypothesis, from JSON.

    Raises:
        SettingsError: A row describes none, or there are none or too many.
    """
    if not 1 <= len(rows) <= MOST_INTERVENTIONS:
        raise SettingsError(
            f"a hypothesis has 1 to {MOST_INTERVENTIONS} interventions, not {len(rows)}"
        )
    try:
        return tuple(read_change(row) for row in rows)
    except ReplayError as error:
        raise SettingsError(str(error)) from None


def size(interventions: Iterable[Mapping[str, Any]]) -> tuple[int, int, int]:
    """The size of a change: largest kind, number of changes, and distance to the end."""
    rows = [*interventions]
    largest = max(KINDS.index(row["kind"]) for row in rows)
    records = sum(len(row.get("events", (1,))) for row in rows)
    return largest, records, -min(row["at"] for row in rows)


def in_words(row: Mapping[str, Any]) -> str:
    """An intervention as the end of a sentence that begins with `if`."""
    match read_interventions([row])[0]:
        case changes.EditRecord(at=at, edit=edit):
            return _edit_in_words(at, edit)
        case changes.Resend(at=at, events=events, to=to):
            again = f" to {names(to)}" if to else ""
            verb = "are" if len(events) > 1 else "is"
            return f"{names(events)} {verb} sent once more{again} at record {at}"
        case changes.ReleaseSooner(at=at, event=event):
            return f"{name(event)} is delivered at record {at}"
        case changes.AskAgain(at=at, activation=activation, note=note):
            ending = f" with the note {one_line(note, 100)!r}" if note else ""
            return f"activation {name(activation)} is decided once more at record {at}{ending}"
        case changes.TellAgent(at=at, agent=agent, note=note):
            return f"{name(agent)} is told at record {at}: {one_line(note, 100)!r}"
        case changes.OmitRecord(at=at, t=t):
            return f"record {t} does not happen"
        case changes.WaitLonger(seconds=seconds):
            return f"the run may take {seconds:g} s longer"
        case changes.Reseat(at=at, agent=agent, by=by):
            return f"{name(by)} decides in place of {name(agent)} from record {at} on"


def _edit_in_words(at: int, edit: Mapping[str, Any]) -> str:
    """An edit in words: another decision, or another content of a record."""
    if "to" in edit and len(edit) == 1:
        return f"the event of record {at} goes to {names(edit['to'])}"
    if not edit.keys() <= {"fates", "outputs"}:
        return f"record {at} is otherwise ({names(sorted(edit))})"
    fates = [f"{fate['fate']} {fate['event']}" for fate in edit.get("fates", ())]
    outputs = len(edit.get("outputs", ()))
    if not fates and not outputs:
        return f"the decision at record {at} is to wait"
    phrases = [names(fates, 3)] if fates else []
    phrases += [f"generate {counted(outputs, 'event')}"] if outputs else []
    return f"the decision at record {at} is: {', '.join(phrases)}"
