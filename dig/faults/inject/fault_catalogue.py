"""The table of all kinds of faults: a row for each kind, a file of `kinds/` for each family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dig._util.text import one_line
from dig.errors import SettingsError
from dig.tasks.user_objects import load

from .injector import COMMON, Injector, Parameter
from .kinds import agents as agents
from .kinds import coordination
from .kinds import messages as messages


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: name, meaning, and the class to inject.

    Attributes:
        family: `messages`, `agents` or `coordination`; of ours, the file of its class.
        meaning: The fault in a sentence.
        injector: The class that carries the fault out.
        raises: The patterns that the fault should raise, where its act matters.
        may_raise: The patterns that the fault raises sometimes.
        not_around: Why the fault cannot be put around async callables; empty: it can.
    """

    name: str
    family: str
    meaning: str
    injector: type[Injector]
    raises: tuple[str, ...] = ()
    may_raise: tuple[str, ...] = ()
    not_around: str = ""

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters by name: own ones first, then the common parameters."""
        own = self.injector.parameters
        return {**own, **{name: p for name, p in COMMON.items() if name not in own}}

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
    name: str, injector: type[Injector], meaning: str, raises: str, may_raise: str,
    not_around: str = "",
) -> Kind:  # fmt: skip
    family = injector.__module__.rpartition(".")[2]
    patterns, possible = tuple(raises.split()), tuple(may_raise.split())
    return Kind(name, family, meaning, injector, patterns, possible, not_around)


_ROWS = (
    # name, class, what goes wrong, patterns that it raises, patterns that it may raise
    _row("drop", messages.Drop, "What it sends is lost on its way.", "OE", "ET DL MC"),
    _row("delay", messages.Delay, "What it sends arrives late.", "", "ET DL LATE"),
    _row("duplicate", messages.Duplicate, "What it sends arrives more than once.", "", "ET RSP"),
    _row("misaddress", messages.Misaddress,
         "What it sends goes to the wrong agents.", "", "ET DL ER"),
    _row("address_nobody", messages.AddressNobody,
         "What it sends is addressed to nobody who exists.", "OE", "ET DL MC"),
    _row("corrupt", messages.Corrupt,
         "What it sends carries something else than was meant.", "", "OE ET DL MC RSP"),
    _row("replay_stale", messages.ReplayStale,
         "It sends an old message again instead of a new one.", "", "ET DL OE"),
    _row("stall", agents.Stall,
         "It hangs: each of its activations takes much longer, or is cut off.", "",
         "ET DL MC STALL"),
    _row("crash", agents.Crash, "Its activations end with an error.", "DL", "ET"),
    _row("leave", agents.LeaveTeam,
         "It leaves the team, with all that lies in front of it or is on its way to it.",
         "OE", "ET DL MC"),
    _row("slow", agents.Slow, "It takes several times as long to decide.", "", "ET DL STALL"),
    _row("silent", agents.Silent, "It takes everything in and generates nothing.", "", "ET DL MC"),
    _row("hoard", agents.Hoard, "It keeps everything in front of it and waits.", "DL", "ET"),
    _row("pass_on", agents.PassOn, "It passes all work on to others and does none.", "ER", "ET DL"),
    _row("submit_early", agents.SubmitEarly,
         "It submits what it has, although it is not everything.",
         "ET", "", "a callable returns once, so it has nothing to submit before"),
    _row("never_submit", agents.NeverSubmit,
         "It has the answer and keeps it to itself.", "MC", "DL"),
    _row("discard_needed", agents.DiscardNeeded,
         "It throws work away that is needed.", "OE", "ET DL MC"),
    _row("ignore_notes", agents.IgnoreNotes, "It does not read what the system says.",
         "", "ET DL MC", "notes are asked for by the agent itself"),
    _row("split_twice", coordination.SplitTwice, "It hands the parts of a problem out twice.",
         "", "ET DL", "calls do not tell which of them are parts of one problem"),
    _row("work_on_others_part", coordination.WorkOnOthersPart,
         "It does work itself that it has given to others.",
         "RSP", "ET", "calls do not tell which of them are parts of one problem"),
    _row("merge_across_lineages", coordination.MergeAcrossLineages,
         "It puts solutions together that belong to different problems.",
         "CLA", "ET DL", "calls do not tell what is a solution"),
)  # fmt: skip

KINDS: Mapping[str, Kind] = MappingProxyType({row.name: row for row in _ROWS})
"""All kinds, by name."""


def kind_of(name: str) -> Kind:
    """The kind of faults with a name; a user's own is `module:object`, a `Kind` or an `Injector`.

    Raises:
        SettingsError: There is no such kind; the message names all kinds.
    """
    if name in KINDS:
        return KINDS[name]
    if not is_foreign(name):
        raise SettingsError(
            f"there is no fault {one_line(repr(name), 60)}; known are: {', '.join(KINDS)}"
        )
    kind = load(name, "kind of fault")
    if isinstance(kind, type) and issubclass(kind, Injector):
        meaning = one_line((kind.__doc__ or "").partition("\n")[0], 200)
        return Kind(name, "foreign", meaning, kind)
    if not isinstance(kind, Kind):
        raise SettingsError(
            f"{name} is no kind of fault: it must be a subclass of "
            "dig.faults.inject.injector.Injector, or a dig.faults.inject.fault_catalogue.Kind"
        )
    return kind


def is_foreign(name: object) -> bool:
    """Whether the name of a kind is `module:object`: a user's own injector."""
    return isinstance(name, str) and ":" in name
