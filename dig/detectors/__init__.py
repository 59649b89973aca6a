"""The failure patterns, one file each, and their healing.

`standard()` makes a fresh set of all detectors, in the order of the table in the paper;
`standard_healers()` the healer of each. `idle` is the clock of patterns about absence.
"""

from __future__ import annotations

from dig.findings import Detector, Healer

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
