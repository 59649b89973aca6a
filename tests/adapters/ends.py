"""How the activations and requests of a trace have ended."""

from __future__ import annotations

from typing import Any

from dig.graph.records import Emit, End, IncidentRow, Start


def ends(records: Any) -> dict[str, str]:
    """By agent: `raised`, `passes on` or `called off`, of activations that ended with an error."""
    rows = list(records)
    agents = {row.activation: row.agent for row in rows if isinstance(row, Start)}
    found = {}
    for row in rows:
        if isinstance(row, End) and row.error is not None:
            how = "passes on" if row.because else "called off" if row.cancelled else "raised"
            found[agents[row.activation]] = how
    return found


def failed(records: Any) -> list[tuple[str, str | None]]:
    """How each request has failed, and the agent whose error ended it."""
    rows = list(records)
    agents = {row.activation: row.agent for row in rows if isinstance(row, Start)}
    details = [
        row.detail for row in rows
        if isinstance(row, IncidentRow) and row.what == "request_failed"
    ]  # fmt: skip
    return [(one["how"], agents.get(one.get("activation"))) for one in details]


def ran(records: Any) -> set[str]:
    """The agents that have had a turn."""
    return {row.agent for row in records if isinstance(row, Start)}


def answers(records: Any) -> list[Any]:
    """What was submitted."""
    return [row.payload for row in records if isinstance(row, Emit) and row.final]
