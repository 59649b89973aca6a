"""What a detector and a healer are: all that the monitor knows of detection and healing.

The seven patterns and their healing are in `dig.detectors`, and a user's own fit beside them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from dig.graph.graph import InteractionGraph
from dig.graph.records import Record

from .finding import Finding
from .interventions import Inject, Intervention


def nothing(graph: InteractionGraph) -> None:
    """Do nothing: the default `let_go` of a detector or healer."""


class Detector(Protocol):
    """Looks for one pattern after every record. It changes nothing and never waits.

    A detector that has an attribute `kinds`, a tuple of record types, is shown only those. One that
    remembers events or activations does so by their ids (numbers change, see `dig.graph.retention`), and
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
