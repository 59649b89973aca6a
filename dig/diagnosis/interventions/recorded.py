"""Decisions of a run as edits: to be put elsewhere, or as a change of nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig.graph.records import End
from dig.runtime.driver.edits import changeable
from dig.traces.run import RecordedActivation, RecordedRun


def decision_of(run: RecordedRun, activation: RecordedActivation) -> dict[str, Any]:
    """Return the decision of an activation, as an edit of another end."""
    assert activation.end is not None
    return {
        "fates": [
            {"event": fate.event, "fate": fate.fate, "to": [*fate.to]}
            for fate in activation.end.fates
        ],
        "outputs": [
            {
                "payload": event.payload, "to": [*event.to], "type": event.type,
                "final": event.final,
            }
            for event in run.outputs(activation)
        ],
    }  # fmt: skip


def as_recorded(run: RecordedRun, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the edit of the same record without a change: the control of an edit.

    Args:
        run: The run.
        row: An edit, as plain JSON.
    """
    record = run.records[row["at"]]
    if isinstance(record, End):
        error = record.error
        fates = decision_of(run, run.activations[record.activation])["fates"]
        same = {"error": error} if error else {"fates": fates}  # outputs keep their policies
    else:
        values = {key: getattr(record, key) for key in changeable(record)}
        same = {
            key: [*value] if isinstance(value, tuple) else value
            for key, value in values.items()
            if value is not None and key in row["edit"]
        }
    return {**row, "edit": same}
