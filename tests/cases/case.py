"""A case: a short trace, and all that must be found in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.histories import row
from tests.oracle import Row


@dataclass(frozen=True)
class Case:
    """A trace, the findings in it as the command line prints them, and which were mended."""

    name: str
    rows: list[Row]
    expected: list[Row]
    mended: list[bool]


def case(name: str, rows: list[Row], *found: tuple[Row, bool]) -> Case:
    """A case with its findings, made by `found`."""
    return Case(name, rows, [one for one, _ in found], [mended for _, mended in found])


def found(
    pattern: str,
    severity: str,
    t: int,
    ts: float,
    subject: Row,
    /,
    *,
    stage: str | None = None,
    mended: bool = False,
    **evidence: Any,
) -> tuple[Row, bool]:
    """A finding, and whether it was mended later."""
    about: Row = {"pattern": pattern, "severity": severity, "stage": stage, "t": t, "ts": ts}
    return about | {"subject": subject, "evidence": evidence}, mended


def event(name: str) -> Row:
    return {"event": name}


def activation(name: str) -> Row:
    return {"activation": name}


def look(ts: float) -> Row:
    """A record that changes nothing."""
    return row(ts, "incident", what="x", detail="y")


def waits(ts: float, **detail: Any) -> Row:
    return row(ts, "incident", what="waits", detail=detail)


def failed_request(ts: float, **detail: Any) -> Row:
    return row(ts, "incident", what="request_failed", detail=detail)
