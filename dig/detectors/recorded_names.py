"""The names of detectors and healers in the first line of a trace.

Runs that were recorded with a name are replayed and forked by it, so a name is never changed and
never removed: most are the place where a class of dig once was (`Component.recorded_as`). A class
without one is named by its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig._util.registry import Registry

from .patterns import standard, standard_healers


def recorded_name(part: object) -> str:
    """Name a detector, healer or gate in a trace; a user's by the place of the class."""
    kind = type(part)
    return vars(kind).get("recorded_as") or f"{kind.__module__}.{kind.__qualname__}"


_PARTS = (
    *standard(), *standard_healers().values(), *standard_healers(designate=True).values(),
)  # fmt: skip

RECORDED: Mapping[str, type[Any]] = Registry(
    "recorded", {recorded_name(part): type(part) for part in _PARTS}
)
"""By recorded name: the class that a run with this name is replayed with."""
