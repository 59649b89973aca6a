"""The table of all kinds of faults: one row a kind, and one file in `kinds/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from dig.errors import SettingsError

from .injector import AT_MOST, PROBABILITY, Injector, Parameter
from .kinds.crash import Crash
from .kinds.drop import Drop
from .kinds.leave import Leave
from .kinds.stall import Stall

Family = Literal["messages", "agents", "coordination"]
"""What a kind acts on: what is sent, an agent by itself, or how agents share the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of fault.

    Attributes:
        name: Its name.
        family: What it acts on.
        meaning: What goes wrong, in a sentence.
        injector: What it is made of.
        raises: The patterns that it should raise, where it matters.
        may_raise: Those that it leads to sometimes.
    """

    name: str
    family: Family
    meaning: str
    injector: type[Injector]
    raises: tuple[str, ...] = ()
    may_raise: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, Parameter]:
        """What it can be told, by name."""
        return {
            **self.injector.parameters, "probability": PROBABILITY, "at_most": AT_MOST
        }  # fmt: skip

    @property
    def nulls(self) -> dict[str, Any]:
        """The parameters each of which can take all effect away, with the value that does."""
        return {name: p.null for name, p in self.parameters.items() if p.null is not None}


_ROWS = (
    Kind(
        name="drop",
        family="messages",
        meaning="What it sends is lost on its way.",
        injector=Drop,
        raises=("OE",),
        may_raise=("ET", "DL", "MC"),
    ),
    Kind(
        name="stall",
        family="agents",
        meaning="It hangs: each of its activations takes much longer, or is cut off.",
        injector=Stall,
        may_raise=("ET", "DL", "MC"),
    ),
    Kind(
        name="crash",
        family="agents",
        meaning="Its activations end with an error.",
        injector=Crash,
        raises=("DL",),
        may_raise=("ET",),
    ),
    Kind(
        name="leave",
        family="agents",
        meaning="It leaves the team, with all that lies in front of it or is on its way to it.",
        injector=Leave,
        raises=("OE",),
        may_raise=("ET", "DL", "MC"),
    ),
)

KINDS: Mapping[str, Kind] = MappingProxyType({row.name: row for row in _ROWS})
"""All kinds, by name."""


def kind_of(name: str) -> Kind:
    """The kind with a name.

    Raises:
        SettingsError: There is none; the message names those that there are.
    """
    if name not in KINDS:
        raise SettingsError(f"there is no fault {name!r}; known are: {', '.join(KINDS)}")
    return KINDS[name]
