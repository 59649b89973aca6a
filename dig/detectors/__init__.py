"""The failure patterns, one file each, and their healing.

`standard()` makes a fresh set of all detectors, in the order of the table in the paper;
`standard_healers()` the healer of each. `idle` is the clock of patterns about absence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dig.findings import Detector, Healer

from . import (
    cross_lineage,
    deadlock,
    early_termination,
    excessive_rerouting,
    missing_termination,
    orphaned_event,
    repeated_solving,
)
from .cross_lineage import CrossLineageAggregation
from .deadlock import Deadlock
from .early_termination import EarlyTermination
from .excessive_rerouting import ExcessiveRerouting
from .healing import (
    HealCrossLineage,
    HealDeadlock,
    HealEarlyTermination,
    HealExcessiveRerouting,
    HealMissingTermination,
    HealOrphanedEvent,
    HealRepeatedSolving,
)
from .missing_termination import MissingTermination
from .orphaned_event import OrphanedEvent
from .repeated_solving import RepeatedSolving

__all__ = [
    "TELLERS",
    "CrossLineageAggregation",
    "Deadlock",
    "EarlyTermination",
    "ExcessiveRerouting",
    "HealCrossLineage",
    "HealDeadlock",
    "HealEarlyTermination",
    "HealExcessiveRerouting",
    "HealMissingTermination",
    "HealOrphanedEvent",
    "HealRepeatedSolving",
    "MissingTermination",
    "OrphanedEvent",
    "RepeatedSolving",
    "standard",
    "standard_healers",
]

TELLERS: dict[str, Callable[[Any, Any], str]] = {
    "ET": early_termination.tell,
    "MC": missing_termination.tell,
    "OE": orphaned_event.tell,
    "DL": deadlock.tell,
    "ER": excessive_rerouting.tell,
    "CLA": cross_lineage.tell,
    "RSP": repeated_solving.tell,
}
"""By pattern: its subject and evidence in words, as they stand in a trace."""


def standard() -> list[Detector]:
    """A fresh detector for each pattern; a detector belongs to one run."""
    return [
        EarlyTermination(),
        MissingTermination(),
        OrphanedEvent(),
        Deadlock(),
        ExcessiveRerouting(),
        CrossLineageAggregation(),
        RepeatedSolving(),
    ]


def standard_healers() -> dict[str, Healer]:
    """A fresh healer for each pattern, by its name."""
    return {
        "ET": HealEarlyTermination(),
        "MC": HealMissingTermination(),
        "OE": HealOrphanedEvent(),
        "DL": HealDeadlock(),
        "ER": HealExcessiveRerouting(),
        "CLA": HealCrossLineage(),
        "RSP": HealRepeatedSolving(),
    }
