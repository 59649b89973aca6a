"""The names of dig's own detectors and healers in the first line of a trace.

Runs that were recorded with a name are replayed and forked by it, so an entry is never changed
and never removed. Most names are the place where a class once was; the class itself may move.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .healing import (
    DesignateHandler,
    HealCrossLineage,
    HealDeadlock,
    HealEarlyTermination,
    HealExcessiveRerouting,
    HealMissingTermination,
    HealOrphanedEvent,
    HealRepeatedSolving,
)
from .judged import HealAsJudged, Judged
from .patterns.cross_lineage import CrossLineageAggregation
from .patterns.deadlock import Deadlock
from .patterns.early_termination import EarlyTermination
from .patterns.excessive_rerouting import ExcessiveRerouting
from .patterns.missing_termination import MissingTermination
from .patterns.orphaned_event import OrphanedEvent
from .patterns.repeated_solving import RepeatedSolving

_PREFIX = "dig.detectors."  # apart from the rest, so that no search and replace takes a name along

RECORDED: Mapping[str, type[Any]] = MappingProxyType({
    _PREFIX + "cross_lineage.CrossLineageAggregation": CrossLineageAggregation,
    _PREFIX + "deadlock.Deadlock": Deadlock,
    _PREFIX + "early_termination.EarlyTermination": EarlyTermination,
    _PREFIX + "excessive_rerouting.ExcessiveRerouting": ExcessiveRerouting,
    _PREFIX + "healing.DesignateHandler": DesignateHandler,
    _PREFIX + "healing.HealCrossLineage": HealCrossLineage,
    _PREFIX + "healing.HealDeadlock": HealDeadlock,
    _PREFIX + "healing.HealEarlyTermination": HealEarlyTermination,
    _PREFIX + "healing.HealExcessiveRerouting": HealExcessiveRerouting,
    _PREFIX + "healing.HealMissingTermination": HealMissingTermination,
    _PREFIX + "healing.HealOrphanedEvent": HealOrphanedEvent,
    _PREFIX + "healing.HealRepeatedSolving": HealRepeatedSolving,
    _PREFIX + "judged.HealAsJudged": HealAsJudged,
    _PREFIX + "judged.Judged": Judged,
    _PREFIX + "missing_termination.MissingTermination": MissingTermination,
    _PREFIX + "orphaned_event.OrphanedEvent": OrphanedEvent,
    _PREFIX + "repeated_solving.RepeatedSolving": RepeatedSolving,
})  # fmt: skip
"""By recorded name: the class that a run with this name is replayed with."""

_NAMES = {kind: name for name, kind in RECORDED.items()}


def recorded_name(part: object) -> str:
    """The name of a detector, healer or gate in a trace; a user's is named by its class's place."""
    kind = type(part)
    return _NAMES.get(kind) or f"{kind.__module__}.{kind.__qualname__}"
