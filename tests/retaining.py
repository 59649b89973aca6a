"""Sessions that let go of history as they go on, beside the same ones that keep all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from dig.errors import RequestError
from dig.graph.records import Record
from dig.monitor.sinks import Eviction
from dig.traces.otel.content import Content
from dig.traces.otel.ids import Origin
from dig.traces.otel.items import Item, LogItem, Span
from dig.traces.otel.mapping import Mapping

from .chaos import ChaosRun

KEPT = (0, 5, 40)


@dataclass
class LettingGo:
    """A run that lets go of history, and what it could not send on since that was gone."""

    chaos: ChaosRun
    refused: set[tuple[int, str]] = field(default_factory=set)

    @property
    def run(self) -> ChaosRun:
        """The run that lets go."""
        return self._with_script(self.chaos, _Noting)

    @property
    def keeping_all(self) -> ChaosRun:
        """The same one, which keeps all; what was gone there must not be sent on here either."""
        setup = replace(self.chaos.setup, keep=None)
        return self._with_script(replace(self.chaos, setup=setup), _Refusing)

    def _with_script(self, run: ChaosRun, kind: type[_Script]) -> ChaosRun:
        def asked(happening: Callable[[Any], Any]) -> Callable[[Any], Any]:
            return lambda monitor: happening(kind(monitor, self.refused))

        return replace(run, script=tuple((at, asked(happen)) for at, happen in run.script))


@contextmanager
def letting_go(run: ChaosRun) -> Iterator[LettingGo]:
    """A run that lets go of history as often as it can, while the block lasts."""
    with patch("dig.monitor.monitor.GROWTH", 1):
        yield LettingGo(run)


class Exported:
    """Follows a run, and keeps what a live export makes of it."""

    def __init__(self) -> None:
        self.mapping = Mapping(Origin("run-1", 1_000), Content(payloads=True))
        self.items: list[Item] = []
        self.has_let_go = False

    @classmethod
    def of(cls, records: Iterable[Record]) -> Exported:
        """The export of the records of a run that keeps all."""
        exported = cls()
        for record in records:
            exported(record)
        return exported

    def __call__(self, record: Record) -> None:
        self.items += self.mapping.feed(record)

    def evicted(self, eviction: Eviction) -> None:
        self.has_let_go = True
        self.mapping.evict(eviction)


_OLD = ("LOOP", "LIVELOCK")
"""The patterns of findings that name the earlier message, or the origin and ring of a round."""


def comparable(items: list[Item]) -> list[Item]:
    """Exported items without the links and texts of findings that may name what is gone."""
    return [
        _without_old(one)
        if isinstance(one, Span | LogItem) and one.attributes.get("dig.pattern") in _OLD
        else one
        for one in items
    ]


def _without_old(item: Span | LogItem) -> Item:
    texts = ("dig.finding.text", "output.value")
    attributes = {key: value for key, value in item.attributes.items() if key not in texts}
    if isinstance(item, LogItem):
        return replace(item, body="", attributes=attributes)
    error = "an error" if item.error else ""
    return replace(item, links=(), error=error, attributes=attributes)


class _Script:
    """What a script asks of a monitor."""

    def __init__(self, monitor: Any, refused: set[tuple[int, str]]) -> None:
        self._monitor, self._refused = monitor, refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._monitor, name)


class _Noting(_Script):
    def redirect(self, event: str, to: tuple[str, ...]) -> Any:
        graph, t = self._monitor.graph, self._monitor.graph.t
        try:
            return self._monitor.redirect(event, to)
        except RequestError:
            if not graph.knows(event):
                self._refused.add((t, event))
            raise


class _Refusing(_Script):
    def redirect(self, event: str, to: tuple[str, ...]) -> Any:
        if (self._monitor.graph.t, event) in self._refused:
            self._monitor.tick()
            raise RequestError("the other one has let go of it")
        return self._monitor.redirect(event, to)
