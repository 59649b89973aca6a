"""Sinks: receive every record, and each eviction of a session.

A live export, or a picture, has a graph of its own, with the same records behind it as that of
the session. If it evicts after the same record, with the same arguments, it stays as short, and
takes whatever the session may still write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dig._util.frozen import frozen
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record

Sink = Callable[[Record], None]
"""Is given every record before its effect happens: the records of a request when it is done.

A sink with a method `write(records)` is given them by that, all at once, and before the sinks that
have none. A sink with a method `evicted(eviction)` is told of every `Eviction` between the records
before and after it; the trace has nothing about it. One with a method `reads(graph)` is given the
graph of the run beforehand, to look at: it has all records of a request when the first of them
comes.
"""


@frozen
class Eviction:
    """A session has evicted closed history.

    Attributes:
        t: After which record, by its logical time.
        keep: The number of the latest records that stayed as they are.
        pinned: The events about which everything stayed, and the activations whose agent did.
        given_up: The events from outside for whose answers the session does not wait any more. A
            graph cannot tell by itself: detectors have a say in it.
    """

    t: int
    keep: int
    pinned: frozenset[str]
    given_up: frozenset[str]

    def repeat(self, graph: InteractionGraph) -> None:
        """Have another graph at the same record evict the same history."""
        graph.evict(self.keep, self.pinned, self.given_up)


class FanOut:
    """Several sinks as one, called in order."""

    def __init__(self, *sinks: Sink) -> None:
        """Begin with some sinks."""
        self._sinks: list[Sink] = []
        self._batch: list[Callable[[Sequence[Record]], None]] = []  # of those that take many
        self._single: list[Sink] = []
        for sink in sinks:
            self.add(sink)

    @classmethod
    def of(cls, sinks: Sequence[Sink]) -> Sink | None:
        """Join sinks: ``None`` for none, and a single sink unchanged."""
        return cls(*sinks) if len(sinks) > 1 else next(iter(sinks), None)

    def add(self, sink: Sink) -> None:
        """Add a sink: every record comes after the other sinks had it."""
        self._sinks.append(sink)
        write = getattr(sink, "write", None)
        if write is None:
            self._single.append(sink)
        else:
            self._batch.append(write)

    def __call__(self, record: Record) -> None:
        """Give a record to every sink; if a sink raises, later sinks do not get the record."""
        self.write([record])

    def write(self, records: Sequence[Record]) -> None:
        """Give records to every sink, first to the sinks with a method `write`."""
        for write in self._batch:
            write(records)
        for record in records if self._single else ():
            for sink in self._single:
                sink(record)

    def reads(self, graph: InteractionGraph) -> None:
        """Give the graph of the run to the sinks with a method `reads`."""
        for sink in self._sinks:
            reads = getattr(sink, "reads", None)
            if reads is not None:
                reads(graph)

    def evicted(self, eviction: Eviction) -> None:
        """Tell the sinks with a method `evicted` of an eviction.

        Raises:
            ExceptionGroup: The errors that some of them raised, after all were told.
        """
        failures = []
        for sink in self._sinks:
            try:
                notify = getattr(sink, "evicted", None)
                if notify is not None:
                    notify(eviction)
            except Exception as error:
                failures.append(error)
        if failures:
            raise ExceptionGroup("sinks could not forget evicted history", failures)
