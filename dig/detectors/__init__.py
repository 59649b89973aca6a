"""The failure patterns, one file each, and their healing.

`standard()` makes a fresh set of all detectors, in the order of the table in the paper;
`standard_healers()` the healer of each.
"""

from __future__ import annotations

from dig.findings import Detector, Healer

from .deadlock import Deadlock
from .early_termination import EarlyTermination
from .healing import HealDeadlock, HealEarlyTermination

__all__ = ["Deadlock", "EarlyTermination", "HealDeadlock", "HealEarlyTermination", "standard",
           "standard_healers"]  # fmt: skip


def standard() -> list[Detector]:
    """A fresh detector for each pattern; a detector belongs to one run."""
    return [EarlyTermination(), Deadlock()]


def standard_healers() -> dict[str, Healer]:
    """A fresh healer for each pattern, by its name."""
    return {"ET": HealEarlyTermination(), "DL": HealDeadlock()}
