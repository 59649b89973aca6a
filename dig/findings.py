"""Findings, interventions, and what a detector, a healer and a gate are.

These protocols are all that the monitor knows of detection and healing; the seven patterns and
their healing are in `dig.detectors`, and a user's own fit beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from .explain import Explanation
    from .graph import InteractionGraph
    from .messages import Pending
    from .records import Record


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure pattern, seen once (paper, table 1).

    Attributes:
        pattern: Its short name, `ET` for instance.
        stage: Where in the life of an event it was seen, for patterns that have stages.
        t: Logical time: the record that raised it, or the last one before its moment.
        us: Its moment, in microseconds since the run began.
        subject: What it is about, by id.
        evidence: What proves it, by id.
        why: Explains it; ``None``: it is explained by the paths to what it names.
    """

    pattern: str
    t: int
    us: int
    subject: dict[str, Any]
    evidence: dict[str, Any]
    stage: str | None = None
    why: Callable[[InteractionGraph, Finding], Explanation] | None = field(
        default=None, compare=False, repr=False
    )

    def explain(self, graph: InteractionGraph) -> Explanation:
        """What it means in one or two sentences, with the paths through the graph that prove it.

        Args:
            graph: The graph that it was found in; it may have grown since.
        """
        from .explain import explain

        return (self.why or explain)(graph, self)

    def _repr_html_(self) -> str:
        from .notebook import finding_html

        return finding_html(self)

    @property
    def ts(self) -> float:
        """Its moment, in seconds since the run began."""
        return self.us / 1_000_000

    def row(self) -> dict[str, Any]:
        """The object that `digmon check --json` prints for it."""
        return {
            "pattern": self.pattern,
            "stage": self.stage,
            "t": self.t,
            "ts": self.ts,
            "subject": self.subject,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True)
class Inject:
    """Put a note beside the payload of an event; `to` restricts who is shown it."""

    event: str
    note: str
    to: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reroute:
    """Put a note beside the payload of a held event, and send it to others instead.

    It arrives after `in_s` seconds, or with the next event that does; until then it is on its way.
    What a gate sends arrives at once: it has kept the event for as long as it liked.
    """

    event: str
    note: str
    to: tuple[str, ...]
    in_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Create:
    """Make a system event with a note and deliver it to some agents."""

    note: str
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do nothing, and have it written down why."""

    reason: str


Act = Inject | Reroute | Create
Intervention = Act | Refuse

Fit = Callable[["InteractionGraph", Act], tuple[Intervention | None, str | None]]
"""Says what a host can do of an intervention: it, a lesser one or none; and why not all of it."""


def nothing(graph: InteractionGraph) -> None:
    """What a part does when history is let go of, if it says nothing about it."""


class Detector(Protocol):
    """Looks for one pattern after every record. It changes nothing and never waits.

    A detector that has an attribute `kinds`, a tuple of record types, is shown only those. One that
    remembers events or activations does so by their ids (numbers change, see `dig.retention`), and
    with a method `let_go(graph)` forgets those that the graph of a long session knows no more.
    """

    pattern: str

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """What the record that was just applied to the graph raises.

        Do work in proportion to what the record changed: `graph.touched` and
        `graph.problems.touched` say what that is.
        """
        ...


@runtime_checkable
class ClockDetector(Detector, Protocol):
    """A detector that also raises findings when nothing happens for a while.

    With a method `awaited()`, it names the events about which it will: a long session does not let
    go of them before.
    """

    def deadline(self, graph: InteractionGraph) -> int | None:
        """The moment, in microseconds, at which it will have something to say if nothing comes.

        It is asked after every record that the detector is shown, and must not change between.
        """
        ...

    def expire(self, graph: InteractionGraph, us: int) -> Iterable[Finding]:
        """What is raised at moment `us`, its deadline, which has come."""
        ...


class Healer(Protocol):
    """Turns a finding into interventions; none, if there is nothing sensible to do.

    A healer that has an attribute `cooldown_s` is not asked again about the same subject for so
    many seconds: what it has said has not had time to work. One with a method `about(finding)`
    says by it what counts as the same for the budget, where a subject does not say enough. One
    that has a method `prevent` is a `Preventer` too. It may have `let_go(graph)`, too.
    """

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterable[Intervention]:
        """What should be done about a finding, with the graph as it stands now."""
        ...


@runtime_checkable
class Preventer(Protocol):
    """Says something beforehand about an event that several agents are about to be given."""

    def prevent(self, graph: InteractionGraph, event: str) -> Iterable[Inject]:
        """The notes that should go with an event; there is no finding yet, and may never be."""
        ...


@dataclass(frozen=True, slots=True)
class Hold:
    """A gate's wish to keep an event held: for how long, and what happens when time is up.

    Attributes:
        seconds: How long the gate may take.
        otherwise: What is done to the event if it takes longer; nothing: it is just released.
    """

    seconds: float
    otherwise: tuple[Intervention, ...] = ()


class Gate(Protocol):
    """Keeps some events held for longer: a person's approval, a check that takes its time."""

    name: str

    def hold(self, graph: InteractionGraph, event: Pending) -> Hold | None:
        """Whether this gate wants to decide about an event that is about to be released."""
        ...

    async def decide(self, event: Pending) -> Iterable[Intervention]:
        """Decide; what it returns is done to the event before its release.

        `Reroute` to nobody withholds the event: it is orphaned, which detectors may tell.
        """
        ...


@dataclass(frozen=True, slots=True)
class Budget:
    """How many findings may be healed, so that healing always ends.

    A finding beyond it is still raised, and its healing recorded as refused. In a session the
    counts begin anew when a final event is accepted.

    Attributes:
        per_run: In the whole run. The default lets a team of twenty that stumbles often be
            helped all through a run of some hundred activations.
        per_pattern: For one pattern; a part of a run's, so that one cannot use up all of it.
        per_subject: For one pattern and one subject. What three notes about the same thing have
            not mended, a fourth will not.
    """

    per_run: int = 100
    per_pattern: int = 30
    per_subject: int = 3
