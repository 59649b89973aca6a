"""The table of all kinds of faults: one row a kind, one file of `kinds/` a family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from dig._util.text import one_line
from dig.errors import SettingsError

from .injector import COMMON, Injector, Parameter
from .kinds.agents import (
    Crash,
    DiscardNeeded,
    Hoard,
    IgnoreNotes,
    LeaveTeam,
    NeverSubmit,
    PassOn,
    Silent,
    Slow,
    Stall,
    SubmitEarly,
)
from .kinds.coordination import MergeAcrossLineages, SplitTwice, WorkOnOthersPart
from .kinds.messages import (
    AddressNobody,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    Misaddress,
    ReplayStale,
)

Family = Literal["messages", "agents", "coordination"]
"""What a kind acts on: what is sent, an agent by itself, or how agents share the work."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault.

    Attributes:
        name: Its name.
        family: What it acts on.
        meaning: What goes wrong, in a sentence.
        injector: What it is made of.
        raises: The patterns that it should raise, where it matters.
        may_raise: Those that it leads to sometimes.
        not_around: Why it makes no sense around async callables; empty: it does.
    """

    name: str
    family: Family
    meaning: str
    injector: type[Injector]
    raises: tuple[str, ...] = ()
    may_raise: tuple[str, ...] = ()
    not_around: str = ""

    @property
    def parameters(self) -> dict[str, Parameter]:
        """What it can be told, by name."""
        own = self.injector.parameters
        return {**own, **{name: p for name, p in COMMON.items() if name not in own}}

    @property
    def nulls(self) -> dict[str, Any]:
        """The parameters each of which can take all effect away, with the value that does."""
        return {name: p.null for name, p in self.parameters.items() if p.null is not None}

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "name": self.name,
            "family": self.family,
            "meaning": self.meaning,
            "raises": list(self.raises),
            "may_raise": list(self.may_raise),
            "not_around": self.not_around or None,
            "parameters": {name: p.to_json() for name, p in self.parameters.items()},
        }


def _row(
    name: str, family: Family, injector: type[Injector], meaning: str,
    *, raises: str = "", may_raise: str = "", not_around: str = "",
) -> Kind:  # fmt: skip
    """A row of the table; patterns are written with spaces between them."""
    return Kind(
        name, family, meaning, injector, tuple(raises.split()), tuple(may_raise.split()), not_around
    )


_ROWS = (
    _row(
        "drop", "messages", Drop, "What it sends is lost on its way.",
        raises="OE", may_raise="ET DL MC",
    ),
    _row(
        "delay", "messages", Delay, "What it sends arrives late.",
        may_raise="ET DL",
    ),
    _row(
        "duplicate", "messages", Duplicate, "What it sends arrives more than once.",
        may_raise="ET RSP",
    ),
    _row(
        "misaddress", "messages", Misaddress, "What it sends goes to the wrong agents.",
        may_raise="ET DL ER",
    ),
    _row(
        "address_nobody", "messages", AddressNobody,
        "What it sends is addressed to nobody who exists.",
        raises="OE", may_raise="ET DL MC",
    ),
    _row(
        "corrupt", "messages", Corrupt, "What it sends carries something else than was meant.",
        may_raise="OE ET DL MC RSP",
    ),
    _row(
        "replay_stale", "messages", ReplayStale,
        "It sends an old message again instead of a new one.",
        may_raise="ET DL OE",
    ),
    _row(
        "stall", "agents", Stall,
        "It hangs: each of its activations takes much longer, or is cut off.",
        may_raise="ET DL MC",
    ),
    _row(
        "crash", "agents", Crash, "Its activations end with an error.",
        raises="DL", may_raise="ET",
    ),
    _row(
        "leave", "agents", LeaveTeam,
        "It leaves the team, with all that lies in front of it or is on its way to it.",
        raises="OE", may_raise="ET DL MC",
    ),
    _row(
        "slow", "agents", Slow, "It takes several times as long to decide.",
        may_raise="ET DL",
    ),
    _row(
        "silent", "agents", Silent, "It takes everything in and generates nothing.",
        may_raise="ET DL MC",
    ),
    _row(
        "hoard", "agents", Hoard, "It keeps everything in front of it and waits.",
        raises="DL", may_raise="ET",
    ),
    _row(
        "pass_on", "agents", PassOn, "It passes all work on to others and does none.",
        raises="ER", may_raise="ET DL",
    ),
    _row(
        "submit_early", "agents", SubmitEarly,
        "It submits what it has, although it is not everything.",
        raises="ET", not_around="a callable returns once, so it has nothing to submit before",
    ),
    _row(
        "never_submit", "agents", NeverSubmit, "It has the answer and keeps it to itself.",
        raises="MC", may_raise="DL",
    ),
    _row(
        "discard_needed", "agents", DiscardNeeded, "It throws work away that is needed.",
        raises="OE", may_raise="ET DL MC",
    ),
    _row(
        "ignore_notes", "agents", IgnoreNotes, "It does not read what the system says.",
        may_raise="ET DL MC", not_around="notes are asked for by the agent itself",
    ),
    _row(
        "split_twice", "coordination", SplitTwice, "It hands the parts of a problem out twice.",
        may_raise="ET DL", not_around="calls do not tell which of them are parts of one problem",
    ),
    _row(
        "work_on_others_part", "coordination", WorkOnOthersPart,
        "It does work itself that it has given to others.",
        raises="RSP", may_raise="ET",
        not_around="calls do not tell which of them are parts of one problem",
    ),
    _row(
        "merge_across_lineages", "coordination", MergeAcrossLineages,
        "It puts solutions together that belong to different problems.",
        raises="CLA", may_raise="ET DL", not_around="calls do not tell what is a solution",
    ),
)  # fmt: skip

KINDS: Mapping[str, Kind] = MappingProxyType({row.name: row for row in _ROWS})
"""All kinds, by name."""


def kind_of(name: str) -> Kind:
    """The kind with a name.

    Raises:
        SettingsError: There is none; the message names those that there are.
    """
    if name not in KINDS:
        raise SettingsError(
            f"there is no fault {one_line(repr(name), 60)}; known are: {', '.join(KINDS)}"
        )
    return KINDS[name]
