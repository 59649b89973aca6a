"""An independent account of a run: reads nothing but its records, and shares no code with dig.

Written from the definition of the graph alone. It is slow and plain on purpose: whoever doubts
the monitor can believe this page.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any

ASIDE = ("finding", "heal", "incident")
SENT = ("reroute", "redeliver", "reassign", "restart")
BEYOND_NOTES = ("reassign", "replace", "restart")


@dataclass
class Account:
    """Where everything is at the end of a run, by id, each list in order of generation."""

    undelivered: list[str]
    unconsumed: list[str]
    orphaned: dict[str, str]
    consumed: list[str]
    unfinished: dict[str, str]
    accepted: list[str]
    healed: int


@dataclass
class _Event:
    id: str
    system: bool
    final: bool
    work: bool
    ordered: bool
    copies: list[str] = field(default_factory=list)
    flight: dict[str, int | None] = field(default_factory=dict)  # when it was held, if that counts
    consumed: bool = False
    cause: str | None = None
    diverted: bool = False
    accepted: bool = False


@dataclass
class Allowed:
    """What a run may do. The budget is (run, pattern, subject, problem), as in `Budget`."""

    budget: tuple[int, int, int, int] = (60, 30, 3, 12)
    ladder_us: int | None = None  # the least time between two steps; None: no ladders
    interference: bool = False  # gates, policies, hosts redirect and speak without a finding
    unordered: Callable[[Any], bool] = lambda payload: False  # a policy delays such an event


def conservation(records: Iterable[Any], allowed: Allowed | None = None) -> Account:
    """Assert all that must be true of every finished run, and say where everything is."""
    rows = list(records)
    assert [row.t for row in rows] == list(range(len(rows))), "t counts the records"
    assert all(a.us <= b.us for a, b in pairwise(rows)), "time never falls"
    assert rows[0].kind == "run"
    assert [row.kind for row in rows].count("finish") == 1
    assert rows[-1].kind == "finish", "finish is last"
    books = _Books(allowed or Allowed())
    for row in rows:
        books.enter(row)
    return books.close()


class _Books:
    def __init__(self, allowed: Allowed) -> None:
        self.allowed = allowed
        self.events: dict[str, _Event] = {}
        self.buffers: dict[str, list[str]] = {}
        self.running: dict[str, str] = {}  # agent -> activation
        self.inputs: dict[str, list[str]] = {}
        self.edges: dict[str, set[str]] = {}  # node -> the nodes before it
        self.awaited: list[str] = []
        self.emitter = ""
        self.findings: dict[int, Any] = {}
        self.healed: dict[tuple[int, int], bool] = {}  # finding and moment -> more than notes?
        self.renewed: set[tuple[int, int]] = set()  # healed before the budget began anew
        self.promised: Any = None  # the heal row whose effect must come next
        self.held = 0
        self.is_session = self.is_over = False

    def enter(self, row: Any) -> None:
        if row.kind not in ASIDE:
            if self.awaited:
                assert row.kind == "emit" and row.event == self.awaited[0], "outputs come first"
            if self.is_over:
                assert row.kind == "finish", "nothing follows an accepted answer"
        if row.kind not in ("finding", "incident"):
            self._keep_promise(row)
        getattr(self, f"_{row.kind}", lambda row: None)(row)

    def close(self) -> Account:
        assert not self.awaited and self.promised is None
        TopologicalSorter(self.edges).prepare()  # raises if the graph has a cycle
        work = [e for e in self.events.values() if e.work]
        for event in work:
            places = [event.consumed, self._is_open(event), event.cause is not None]
            assert places.count(True) == 1, f"{event.id} is lost, or in two places"
        return Account(
            [e.id for e in self.events.values() if e.flight],
            [e.id for e in work if self._is_open(e)],
            {e.id: e.cause for e in work if e.cause is not None},
            [e.id for e in work if e.consumed],
            {activation: agent for agent, activation in self.running.items()},
            [e.id for e in self.events.values() if e.accepted],
            len(self.healed),
        )

    # --- one method a kind ---

    def _run(self, row: Any) -> None:
        self.buffers = {agent: [] for agent in row.agents}
        self.is_session = row.session

    def _emit(self, row: Any) -> None:
        assert row.event not in self.events and row.event not in self.inputs, "one id, one thing"
        if self.awaited:
            assert row.by == self.emitter
            self.awaited.pop(0)
            self.edges.setdefault(row.event, set()).add(row.by)
        else:
            assert row.by in (None, "system"), "an output is named by the end"
        system, ordered = row.by == "system", not self.allowed.unordered(row.payload)
        work = not (system or row.final or row.type == "notice")
        event = _Event(row.event, system, row.final, work, ordered)
        self.events[row.event] = event
        if not row.final:
            self._send(event, row.to, event.ordered)
        self._settle(event, "no_recipient")

    def _deliver(self, row: Any) -> None:
        event = self.events[row.event]
        if row.to is None:
            assert event.final and not event.diverted and not event.accepted
            event.accepted = True
            self.is_over = not self.is_session
            self.renewed = set(self.healed)
            return
        assert row.to in event.flight, f"{event.id} is not on its way to {row.to}"
        assert row.to not in event.copies, f"{event.id} lies in front of {row.to} already"
        number = event.flight.pop(row.to)
        if number is not None:
            waiting = [e.flight.get(row.to) for e in self.events.values() if e.flight]
            assert all(n is None or n > number for n in waiting), "one was held earlier"
        event.copies.append(row.to)
        self.buffers[row.to].append(event.id)

    def _start(self, row: Any) -> None:
        assert row.activation not in self.events and row.activation not in self.inputs
        assert row.agent not in self.running, "an agent does one thing at a time"
        assert list(row.inputs) == self.buffers[row.agent], "it sees its whole buffer"
        self.running[row.agent] = row.activation
        self.inputs[row.activation] = list(row.inputs)
        self.edges[row.activation] = set(row.inputs)

    def _end(self, row: Any) -> None:
        [agent] = [a for a, activation in self.running.items() if activation == row.activation]
        del self.running[agent]
        named = {fate.event: fate for fate in row.fates}
        assert len(named) == len(row.fates), "each input has one fate"
        inputs = self.inputs[row.activation]
        assert set(named) <= set(inputs), "only inputs have fates"
        for fate in row.fates:
            self._leave_buffer(agent, self.events[fate.event], fate.fate, fate)
        for name in inputs:
            if name not in named and self.events[name].system:
                self._leave_buffer(agent, self.events[name], "consume", None)
        assert not self.awaited
        self.emitter, self.awaited = row.activation, list(row.outputs)

    def _leave_buffer(self, agent: str, event: _Event, fate: str, named: Any) -> None:
        if fate == "delay":
            return
        self.buffers[agent].remove(event.id)
        event.copies.remove(agent)
        if fate == "consume":
            event.consumed, event.cause = True, None
        elif fate == "reroute":
            self._send(event, named.to, True)
        self._settle(event, "discarded" if fate == "discard" else "no_recipient")

    def _join(self, row: Any) -> None:
        assert row.agent not in self.buffers
        self.buffers[row.agent] = []

    def _leave(self, row: Any) -> None:
        del self.buffers[row.agent]
        self.running.pop(row.agent, None)
        for event in self.events.values():
            if row.agent in event.flight:
                del event.flight[row.agent]
                event.diverted = bool(event.flight)  # an answer that can never come back any more
            if row.agent in event.copies:
                event.copies.remove(row.agent)
            self._settle(event, "left")

    def _redirect(self, row: Any) -> None:
        event = self.events[row.event]
        event.diverted, event.flight = True, {}
        self._send(event, row.to, False)
        self._settle(event, "no_recipient")

    def _expire(self, row: Any) -> None:
        event = self.events[row.event]
        event.flight = {}
        self._settle(event, "expired")

    def _finding(self, row: Any) -> None:
        self.findings[row.t] = row

    def _heal(self, row: Any) -> None:
        assert row.finding in self.findings, "healing answers to an earlier finding"
        if row.action == "refused":
            assert row.reason and row.event is None
            return
        step = row.finding, row.us
        if step not in self.healed and self.allowed.ladder_us is not None:
            before = max((us for t, us in self.healed if t == row.finding), default=None)
            is_soon = before is not None and row.us < before + self.allowed.ladder_us
            assert not is_soon, "a step has had no time to help"
        is_more = row.action in BEYOND_NOTES
        self.healed[step] = self.healed.get(step, False) or is_more
        self._check_budget()
        if row.action == "create":
            assert row.event not in self.events
        if row.action in ("create", "replace", *SENT):
            self.promised = row

    # --- what follows from them ---

    def _keep_promise(self, row: Any) -> None:
        """A heal row comes right before its effect, and no such effect comes without one."""
        promised, self.promised = self.promised, None
        if promised is not None:
            if promised.action == "replace":
                assert (row.kind, (row.agent,)) == ("leave", promised.to)
                return
            kind = "emit" if promised.action == "create" else "redirect"
            assert (row.kind, row.event, row.to) == (kind, promised.event, promised.to)
        elif not self.allowed.interference:
            assert row.kind != "redirect"
            assert row.kind != "emit" or row.by != "system"

    def _check_budget(self) -> None:
        spent: Counter[str] = Counter()
        for step in self.healed.keys() - self.renewed:
            row = self.findings[step[0]]
            about = [row.subject, row.evidence.get("waiting")]  # other work, another deadlock
            subject = f"{row.pattern} {json.dumps(about, sort_keys=True)}"
            spent.update(["run", f"pattern {row.pattern}", f"subject {subject}"])
            spent["problem"] += self.healed[step]
        most = dict(zip(("run", "pattern", "subject", "problem"), self.allowed.budget, strict=True))
        for what, times in spent.items():
            assert times <= most[what.split()[0]], f"the budget for {what} is exceeded"

    def _send(self, event: _Event, to: Iterable[str], ordered: bool) -> None:
        self.held += 1
        for agent in to:
            if agent in self.buffers and agent not in event.copies and agent not in event.flight:
                event.flight[agent] = self.held if ordered else None

    def _settle(self, event: _Event, cause: str) -> None:
        if event.work and not event.consumed:
            if event.copies or event.flight:
                event.cause = None
            elif event.cause is None:
                event.cause = cause

    def _is_open(self, event: _Event) -> bool:
        return event.work and not event.consumed and bool(event.copies or event.flight)
