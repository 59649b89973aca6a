"""The failure patterns, one file each, and their healing.

`standard()` makes a fresh set of all detectors, in the order of the table in the paper;
`standard_healers()` the healer of each. `idle` is the clock of patterns about absence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .healing import (
    COOLDOWN_S,
    DesignateHandler,
    HealCrossLineage,
    HealDeadlock,
    HealEarlyTermination,
    HealExcessiveRerouting,
    HealMissingTermination,
    HealOrphanedEvent,
    HealRepeatedSolving,
)
from .judged import JUDGE, HealAsJudged, Judged, judged_healers
from .patterns import (
    cross_lineage,
    deadlock,
    early_termination,
    excessive_rerouting,
    missing_termination,
    orphaned_event,
    repeated_solving,
)
from .patterns.cross_lineage import CrossLineageAggregation
from .patterns.deadlock import Deadlock
from .patterns.early_termination import EarlyTermination
from .patterns.excessive_rerouting import ExcessiveRerouting
from .patterns.missing_termination import MissingTermination
from .patterns.orphaned_event import OrphanedEvent
from .patterns.repeated_solving import RepeatedSolving
from .protocols import Detector, Healer

__all__ = [
    "COOLDOWN_S",
    "JUDGE",
    "TELLERS",
    "CrossLineageAggregation",
    "Deadlock",
    "DesignateHandler",
    "EarlyTermination",
    "ExcessiveRerouting",
    "HealAsJudged",
    "HealCrossLineage",
    "HealDeadlock",
    "HealEarlyTermination",
    "HealExcessiveRerouting",
    "HealMissingTermination",
    "HealOrphanedEvent",
    "HealRepeatedSolving",
    "Judged",
    "MissingTermination",
    "OrphanedEvent",
    "RepeatedSolving",
    "judged_healers",
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


def standard_healers(
    *, cooldown_s: float = COOLDOWN_S, designate: bool = False
) -> dict[str, Healer]:
    """A fresh healer for each pattern, by its name.

    Args:
        cooldown_s: Seconds before the same is said again where it could be said at once.
        designate: Name a handler for work that several agents are given, to prevent RSP.
    """
    return {
        "ET": HealEarlyTermination(cooldown_s),
        "MC": HealMissingTermination(),
        "OE": HealOrphanedEvent(),
        "DL": HealDeadlock(),
        "ER": HealExcessiveRerouting(cooldown_s),
        "CLA": HealCrossLineage(),
        "RSP": DesignateHandler() if designate else HealRepeatedSolving(),
    }
