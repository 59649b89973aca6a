"""The names of detectors and healers in the first line of a trace.

Runs that were recorded with a name are replayed and forked by it, so a name is never changed and
never removed: most are the place where a class of dig once was (`Component.recorded_as`). A class
without one is named by its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .judged import HealAsJudged, Judged
from .patterns import standard, standard_healers
from .rivals import HealByProblem, HealByWord, Silence

_PARTS = (
    *standard(), *standard_healers().values(), *standard_healers(designate=True).values(),
    Judged(), HealAsJudged(), Silence(), HealByWord(), HealByProblem(),
)  # fmt: skip

_NAMES: dict[type, str] = {
    kind: vars(kind).get("recorded_as") or f"{kind.__module__}.{kind.__qualname__}"
    for kind in map(type, _PARTS)
}

RECORDED: Mapping[str, type[Any]] = MappingProxyType({name: kind for kind, name in _NAMES.items()})
"""By recorded name: the class that a run with this name is replayed with."""


def recorded_name(part: object) -> str:
    """The name of a detector, healer or gate in a trace; a user's is named by its class's place."""
    kind = type(part)
    return _NAMES.get(kind) or f"{kind.__module__}.{kind.__qualname__}"
