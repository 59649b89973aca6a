"""What became of every event of a session that lasts: an account that forgets what is settled.

It reads the records alone, shares no code with dig, and its memory follows what is open.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Event:
    work: bool
    final: bool
    copies: set[str] = field(default_factory=set)
    flight: set[str] = field(default_factory=set)
    consumed: bool = False
    is_over: bool = False  # accepted
    lost_us: int | None = None
    is_found: bool = False


class Account:
    """Where all events of a run are, or where they have ended.

    Attributes:
        emitted: How many there were.
        ended: How many have ended, by how.
        live: Those that have not, by id.
        forgotten: Lost work that nobody told of in time; there must be none.
    """

    def __init__(self) -> None:
        self.emitted = 0
        self.ended: Counter[str] = Counter()
        self.live: dict[str, _Event] = {}
        self.forgotten: list[str] = []
        self._present: set[str] = set()
        self._inputs: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._systems: set[str] = set()
        self._lost: dict[str, None] = {}  # in the order in which they were lost
        self._window_us = 0

    def __call__(self, row: Any) -> None:
        """Take a record into account."""
        self._look_for_forgotten(row.us)
        enter = getattr(self, f"_{row.kind}", None)
        if enter is not None:
            enter(row)

    @property
    def open_work(self) -> set[str]:
        """Work that somebody can still do."""
        return {
            name
            for name, event in self.live.items()
            if event.work and not event.consumed and (event.copies or event.flight)
        }

    @property
    def is_complete(self) -> bool:
        """Whether every event is somewhere, or has ended in a way that was told."""
        return not self.forgotten and self.emitted == len(self.live) + self.ended.total()

    # --- one method a kind of record ---

    def _run(self, row: Any) -> None:
        self._present = set(row.agents)
        self._window_us = round(row.limits.oe_window_s * 1_000_000)

    def _emit(self, row: Any) -> None:
        self.emitted += 1
        is_system = row.by == "system"
        event = _Event(not is_system and not row.final and row.type != "notice", row.final)
        if is_system:
            self._systems.add(row.event)
        self.live[row.event] = event
        if not row.final:
            event.flight = self._present.intersection(row.to)
        self._settle(row.event, row.us)

    def _deliver(self, row: Any) -> None:
        event = self.live[row.event]
        if row.to is None:
            event.is_over, event.flight = True, set()
        else:
            event.flight.remove(row.to)
            event.copies.add(row.to)
        self._settle(row.event, row.us)

    def _start(self, row: Any) -> None:
        self._inputs[row.activation] = (row.agent, row.inputs)

    def _end(self, row: Any) -> None:
        agent, inputs = self._inputs.pop(row.activation)
        named = {fate.event: fate for fate in row.fates}
        for name in inputs:
            fate = named.get(name)
            kind = fate.fate if fate else "consume" if name in self._systems else "delay"
            if kind == "delay":
                continue
            event = self.live[name]
            event.copies.remove(agent)
            event.consumed |= kind == "consume"
            if fate is not None and kind == "reroute":
                event.flight |= self._present.intersection(fate.to) - event.copies
            self._settle(name, row.us)

    def _join(self, row: Any) -> None:
        self._present.add(row.agent)

    def _leave(self, row: Any) -> None:
        self._present.remove(row.agent)
        self._inputs = {v: one for v, one in self._inputs.items() if one[0] != row.agent}
        for name, event in [*self.live.items()]:
            event.copies.discard(row.agent)
            event.flight.discard(row.agent)
            self._settle(name, row.us)

    def _redirect(self, row: Any) -> None:
        event = self.live[row.event]
        event.flight = self._present.intersection(row.to) - event.copies
        self._settle(row.event, row.us)

    def _expire(self, row: Any) -> None:
        self.live[row.event].flight = set()
        self._settle(row.event, row.us)

    def _finding(self, row: Any) -> None:
        if row.pattern == "OE":
            self.live[row.subject["event"]].is_found = True

    # --- what follows ---

    def _settle(self, name: str, us: int) -> None:
        event = self.live[name]
        if event.copies or event.flight:
            if event.lost_us is not None:
                event.lost_us, event.is_found = None, False
                del self._lost[name]
        elif event.is_over:
            self._ends(name, "accepted")
        elif event.consumed:
            self._ends(name, "consumed")
        elif event.work:
            if event.lost_us is None:
                event.lost_us = us
                self._lost[name] = None
        elif not event.final:
            self._ends(name, "a note or notice that nobody read")

    def _ends(self, name: str, how: str) -> None:
        del self.live[name]
        self._lost.pop(name, None)
        self._systems.discard(name)
        self.ended[how] += 1

    def _look_for_forgotten(self, us: int) -> None:
        """Lost work is told of when its window has passed; healing may send it on right then."""
        while self._lost:
            name = next(iter(self._lost))
            event = self.live[name]
            assert event.lost_us is not None
            if us <= event.lost_us + self._window_us + 2:
                return
            if event.is_found:
                self._ends(name, "lost, and found to be")
            else:
                self.forgotten.append(name)
                del self._lost[name]
