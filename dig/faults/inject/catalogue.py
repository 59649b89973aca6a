"""The table of all kinds of faults: one row a kind, and one file in `kinds/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from dig._util.text import one_line
from dig.errors import SettingsError

from .injector import COMMON, Injector, Parameter
from .kinds.address_nobody import AddressNobody
from .kinds.corrupt import Corrupt
from .kinds.crash import Crash
from .kinds.delay import Delay
from .kinds.discard_needed import DiscardNeeded
from .kinds.drop import Drop
from .kinds.duplicate import Duplicate
from .kinds.hoard import Hoard
from .kinds.ignore_notes import IgnoreNotes
from .kinds.leave import Leave
from .kinds.merge_across_lineages import MergeAcrossLineages
from .kinds.misaddress import Misaddress
from .kinds.never_submit import NeverSubmit
from .kinds.pass_on import PassOn
from .kinds.replay_stale import ReplayStale
from .kinds.silent import Silent
from .kinds.slow import Slow
from .kinds.split_twice import SplitTwice
from .kinds.stall import Stall
from .kinds.submit_early import SubmitEarly
from .kinds.work_on_others_part import WorkOnOthersPart

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
        name="delay",
        family="messages",
        meaning="What it sends arrives late.",
        injector=Delay,
        may_raise=("ET", "DL"),
    ),
    Kind(
        name="duplicate",
        family="messages",
        meaning="What it sends arrives more than once.",
        injector=Duplicate,
        may_raise=("ET", "RSP"),
    ),
    Kind(
        name="misaddress",
        family="messages",
        meaning="What it sends goes to the wrong agents.",
        injector=Misaddress,
        may_raise=("ET", "DL", "ER"),
    ),
    Kind(
        name="address_nobody",
        family="messages",
        meaning="What it sends is addressed to nobody who exists.",
        injector=AddressNobody,
        raises=("OE",),
        may_raise=("ET", "DL", "MC"),
    ),
    Kind(
        name="corrupt",
        family="messages",
        meaning="What it sends carries something else than was meant.",
        injector=Corrupt,
        may_raise=("OE", "ET", "DL", "MC", "RSP"),
    ),
    Kind(
        name="replay_stale",
        family="messages",
        meaning="It sends an old message again instead of a new one.",
        injector=ReplayStale,
        may_raise=("ET", "DL", "OE"),
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
    Kind(
        name="slow",
        family="agents",
        meaning="It takes several times as long to decide.",
        injector=Slow,
        may_raise=("ET", "DL"),
    ),
    Kind(
        name="silent",
        family="agents",
        meaning="It takes everything in and generates nothing.",
        injector=Silent,
        may_raise=("ET", "DL", "MC"),
    ),
    Kind(
        name="hoard",
        family="agents",
        meaning="It keeps everything in front of it and waits.",
        injector=Hoard,
        raises=("DL",),
        may_raise=("ET",),
    ),
    Kind(
        name="pass_on",
        family="agents",
        meaning="It passes all work on to others and does none.",
        injector=PassOn,
        raises=("ER",),
        may_raise=("ET", "DL"),
    ),
    Kind(
        name="submit_early",
        family="agents",
        meaning="It submits what it has, although it is not everything.",
        injector=SubmitEarly,
        raises=("ET",),
        not_around="a callable returns once, so it has nothing to submit before",
    ),
    Kind(
        name="never_submit",
        family="agents",
        meaning="It has the answer and keeps it to itself.",
        injector=NeverSubmit,
        raises=("MC",),
        may_raise=("DL",),
    ),
    Kind(
        name="discard_needed",
        family="agents",
        meaning="It throws work away that is needed.",
        injector=DiscardNeeded,
        raises=("OE",),
        may_raise=("ET", "DL", "MC"),
    ),
    Kind(
        name="ignore_notes",
        family="agents",
        meaning="It does not read what the system says.",
        injector=IgnoreNotes,
        may_raise=("ET", "DL", "MC"),
        not_around="notes are asked for by the agent itself",
    ),
    Kind(
        name="split_twice",
        family="coordination",
        meaning="It hands the parts of a problem out twice.",
        injector=SplitTwice,
        may_raise=("ET", "DL"),
        not_around="calls do not tell which of them are parts of one problem",
    ),
    Kind(
        name="work_on_others_part",
        family="coordination",
        meaning="It does work itself that it has given to others.",
        injector=WorkOnOthersPart,
        raises=("RSP",),
        may_raise=("ET",),
        not_around="calls do not tell which of them are parts of one problem",
    ),
    Kind(
        name="merge_across_lineages",
        family="coordination",
        meaning="It puts solutions together that belong to different problems.",
        injector=MergeAcrossLineages,
        raises=("CLA",),
        may_raise=("ET", "DL"),
        not_around="calls do not tell what is a solution",
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
        raise SettingsError(
            f"there is no fault {one_line(repr(name), 60)}; known are: {', '.join(KINDS)}"
        )
    return KINDS[name]
