"""Who follows a run: is given every record, and told when a session lets go of history.

A live export, or a picture, has a graph of its own, which has the same records behind it as that
of the session. If it lets go after the same record, with the same arguments, it stays as short,
and takes whatever the session may still write.
"""

from __future__ import annotations

from collections.abc import Callable

from dig._util.frozen import frozen
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record

Sink = Callable[[Record], None]
"""Is given every record before its effect happens; see `Followers` about `let_go`."""


@frozen
class Sweep:
    """A session has let go of closed history.

    Attributes:
        t: After which record, by its logical time.
        keep: What happened in so many latest records stayed.
        pinned: The events about which all stayed.
        given_up: The events from outside for whose answers it does not wait any more. A graph
            cannot tell by itself: detectors have a say in it.
    """

    t: int
    keep: int
    pinned: frozenset[str]
    given_up: frozenset[str]

    def repeat(self, graph: InteractionGraph) -> None:
        """Have another graph, which stands after the same record, let go of the same."""
        graph.evict(self.keep, self.pinned, self.given_up)


class Followers:
    """Several sinks as one, told in order.

    A sink that has a method `let_go(sweep)` is told of every `Sweep` between the records before
    and after it; the trace has nothing about it.
    """

    def __init__(self, *sinks: Sink) -> None:
        """Begin with some of them."""
        self._sinks = list(sinks)

    def add(self, sink: Sink) -> None:
        """Add one: it is given every record after those before it."""
        self._sinks.append(sink)

    def __call__(self, record: Record) -> None:
        """Give everybody a record; what one raises keeps it from those after it."""
        for sink in self._sinks:
            sink(record)

    def let_go(self, sweep: Sweep) -> None:
        """Tell everybody who wants to know that history was let go of.

        Raises:
            ExceptionGroup: What some of them raised, after all were told.
        """
        faults = []
        for sink in self._sinks:
            try:
                getattr(sink, "let_go", _nothing)(sweep)
            except Exception as error:
                faults.append(error)
        if faults:
            raise ExceptionGroup("who follows could not let go of history", faults)


def _nothing(sweep: Sweep) -> None:
    """What a sink does that keeps nothing."""
