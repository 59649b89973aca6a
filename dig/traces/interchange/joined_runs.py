"""Journals of several processes as one run, joined at the calls between processes.

A caller's journal shows an agent of another process by what went there and came back; the agent's
own journal shows the request as one from outside. The event stands in both, with the same trace
context. Here the agent's own activations stand in place of the caller's view of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from dig.errors import TraceError
from dig.graph import records as kinds
from dig.graph.records import Deliver, Emit, End, Record, Start, base_name
from dig.traces.journal.journal import SIDE
from dig.traces.journal.reader import read_records

from .scribe import Guesses, Scribe

_BETWEEN = kinds.FindingRow | kinds.HealRow | kinds.IncidentRow
"""The records that may stand between an end and its outputs."""

KEPT = (kinds.WAITS, kinds.REQUEST_FAILED)
"""The incidents that say something about events and activations."""


class _Journal:
    """A journal, with the turns of the agents."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number, self.at = path, number, 0
        run, *self.records = read_records(path)
        if not isinstance(run, kinds.Run):
            raise TraceError(path, None, "is no trace")
        self.run = run
        self.began = _began(path)
        self.emits = {row.event: row for row in self.records if isinstance(row, Emit)}
        self.asked = {row.traceparent: row for row in self.emits.values() if row.traceparent}
        self.turns: dict[str, str] = {}  # activation -> the event that its turn began with
        self.ends: dict[str, End] = {}  # that event -> the last end of the turn
        self.onward: dict[str, str] = {}  # what a turn goes on with -> the activation it is from
        self.arrived: dict[str, str] = {}  # event -> the agent that it was delivered to first
        self.ids: dict[str, str] = {}
        self.names: dict[str, str] = {}
        agents: dict[str, str] = {}
        first = {row.event for row in self.asked.values()}
        for row in self.records:
            if isinstance(row, Deliver) and row.to is not None:
                self.arrived.setdefault(row.event, row.to)
                sent = self.emits[row.event]
                if sent.final and sent.by is not None:  # the answer came back: the turn goes on
                    self.onward[row.event] = sent.by
            elif isinstance(row, Start):
                agents[row.activation] = row.agent
                begun = [event for event in row.inputs if event in first]
                more = [self.turns.get(self.onward[e]) for e in row.inputs if e in self.onward]
                if event := next(filter(None, begun + more), None):
                    self.turns[row.activation] = event
            elif isinstance(row, End) and row.activation in self.turns:
                self.ends[self.turns[row.activation]] = row
            elif (
                isinstance(row, Emit)
                and row.by is not None
                and (row.type, row.to) == (kinds.NOTICE, (agents.get(row.by),))
            ):
                self.onward[row.event] = row.by

    def id(self, name: str) -> str:
        """An event or activation in the joined run."""
        return self.ids.get(name) or (f"{self.number}:{name}" if self.number > 1 else name)

    def name(self, agent: str) -> str:
        """An agent or instance in the joined run."""
        root = base_name(agent)
        return self.names.get(root, root) + agent[len(root) :]

    def answer(self, event: str) -> Emit | None:
        """The last word of the turn about an event; ``None``: none, or not over."""
        end = self.ends.get(event)
        outputs = [self.emits[name] for name in end.outputs] if end else []
        return next((row for row in reversed(outputs) if row.event not in self.onward), None)


@dataclass
class _Call:
    """A call recorded in two journals.

    Attributes:
        caller: The journal with the caller's view.
        event: The event there.
        answer: The answer there.
        callee: The journal of the agent.
        request: The event there.
    """

    caller: _Journal
    event: Emit
    answer: Emit
    callee: _Journal
    request: Emit

    @property
    def agent(self) -> str:
        """The agent in the joined run, without the number of an instance."""
        return base_name(self.callee.name(self.callee.arrived[self.request.event]))


def join_runs(*paths: Path) -> tuple[list[Record], Guesses]:
    """The records of journals as one run, and the guesses.

    Args:
        paths: The traces.

    Raises:
        TraceError: A file is no trace, or no event stands in two of them.
    """
    guesses = Guesses()
    guesses.note("the clocks of the processes agree, as far as no event says otherwise")
    journals = [_Journal(path, number) for number, path in enumerate(paths, 1)]
    calls = [
        call
        for caller in journals
        for callee in journals
        if caller is not callee
        for call in _calls(caller, callee)
    ]
    contexts = Counter(context for journal in journals for context in journal.asked)
    shared = [context for context, count in contexts.items() if count > 1]
    if not shared:
        raise TraceError(paths[0], None, "has no event that stands in another of these traces, too")
    if len(calls) < len(shared):
        guesses.note("a call without an end in the journal of its agent is told as its caller saw "
                     "it, and stands beside it as a request from outside")  # fmt: skip
    return _Joiner(journals, calls, guesses).write(), guesses


def _calls(caller: _Journal, callee: _Journal) -> Iterator[_Call]:
    for context, request in callee.asked.items():
        event = caller.asked.get(context)
        if event is None or request.by is not None or request.event not in callee.arrived:
            continue
        if event.by is None and (caller.began, caller.number) > (callee.began, callee.number):
            continue  # both are from outside: who began first has called
        answer, theirs = caller.answer(event.event), callee.ends.get(request.event)
        mine = caller.ends.get(event.event)
        if answer and mine and theirs and (mine.error is None) == (theirs.error is None):
            yield _Call(caller, event, answer, callee, request)


class _Joiner:
    """Writes journals in order of time, causes first."""

    def __init__(self, journals: list[_Journal], calls: list[_Call], guesses: Guesses) -> None:
        self._journals = journals
        self._events = {(call.caller, call.event.event): call for call in calls}
        self._answers = {(call.caller, call.answer.event): call for call in calls}
        self._requests = {(call.callee, call.request.event): call for call in calls}
        self._ends = {(call.callee, call.callee.ends[call.request.event].activation): call
                      for call in calls}  # fmt: skip
        for call in calls:
            ends = call.caller.ends[call.event.event], call.callee.ends[call.request.event]
            call.callee.ids[call.request.event] = call.caller.id(call.event.event)
            call.caller.ids[ends[0].activation] = call.callee.id(ends[1].activation)
        self._name_agents(calls)
        agents = dict.fromkeys(
            journal.name(agent)
            for journal in journals
            for agent in journal.run.agents
            if agent not in self._views[journal]
        )
        run = replace(journals[0].run, agents=tuple(agents), session=True)
        run = replace(run, memory=any(journal.run.memory for journal in journals))
        self._scribe = Scribe(run, guesses)

    def _name_agents(self, calls: list[_Call]) -> None:
        """Give agents of one name numbers, and leave out the views of served agents."""
        taken = set[str]()
        for journal in self._journals:
            joins = [row.agent for row in journal.records if isinstance(row, kinds.Join)]
            own = {base_name(agent) for agent in (*journal.run.agents, *joins)}
            for agent in own & taken:
                journal.names[agent] = f"{agent} ({journal.number})"
            taken |= own
        self._views: dict[_Journal, set[str]] = {journal: set() for journal in self._journals}
        for call in calls:
            view = base_name(call.caller.arrived.get(call.event.event, ""))
            self._views[call.caller].add(view)
        for journal in self._journals:
            views = self._views[journal]
            for event, agent in journal.arrived.items():
                root = base_name(agent)
                is_call = (journal, event) in self._events or event in journal.onward
                if root in views and not is_call and journal.emits[event].by != kinds.SYSTEM:
                    views.discard(root)  # some calls of it stand in no other journal
                    journal.names[root] = f"{root} (unwatched)"
            for call in calls:  # the agent's own name is free in its own journal
                callee = base_name(call.callee.arrived[call.request.event])
                if call.caller is journal and callee in views:
                    call.callee.names.pop(callee, None)

    def write(self) -> list[Record]:
        """Write all records."""
        began = min(journal.began for journal in self._journals)
        while open_ones := [j for j in self._journals if j.at < len(j.records)]:
            ready = [journal for journal in open_ones if not self._is_blocked(journal)]
            if not ready:
                raise TraceError(open_ones[0].path, None, "contradicts the other traces")
            journal = min(ready, key=lambda it: it.began + it.records[it.at].us)
            row = journal.records[journal.at]
            self._scribe.at(journal.began + row.us - began)
            self._copy(journal, row)
            journal.at += 1
            while isinstance(row, End) and journal.at < len(journal.records):
                following = journal.records[journal.at]
                is_output = isinstance(following, Emit) and following.by == row.activation
                if not (is_output or isinstance(following, _BETWEEN)):
                    break  # outputs follow their end at once
                self._copy(journal, following)
                journal.at += 1
        is_over = all(isinstance(j.records[-1], kinds.Finish) for j in self._journals)
        source = ", ".join(str(journal.path) for journal in self._journals)
        return self._scribe.finish("stopped" if is_over else None, source)

    def _is_blocked(self, journal: _Journal) -> bool:
        row, knows = journal.records[journal.at], self._scribe.graph.knows
        if isinstance(row, Emit) and (call := self._requests.get((journal, row.event))):
            return not knows(call.caller.id(call.event.event))
        return (
            isinstance(row, Deliver)
            and (journal, row.event) in self._answers
            and not knows(journal.id(row.event))
        )

    def _copy(self, journal: _Journal, row: Record) -> None:
        """Write a record, except for views of served agents."""
        name, id = journal.name, journal.id
        match row:
            case Emit():
                self._emit(journal, row)
            case Deliver(event=event, to=to):
                call = self._requests.get((journal, event))
                is_view = (journal, event) in self._events or self._is_view(
                    journal, journal.onward.get(event)
                )
                answer = self._ended(journal, event)
                is_final = answer is not None and answer.final
                if call is not None:
                    to = journal.name(to or "")
                    if to not in self._scribe.graph.event(id(event)).flight:
                        self._scribe.redirect(id(event), [to])
                    self._scribe.deliver(id(event), to)
                elif not (is_view or is_final):
                    self._scribe.deliver(id(event), None if to is None else name(to))
            case Start(activation=activation, agent=agent):
                if not self._is_view(journal, activation):
                    self._scribe.start(id(activation), name(agent))
            case End():
                self._end(journal, row)
            case kinds.Join(agent=agent) | kinds.Leave(agent=agent):
                if base_name(agent) not in self._views[journal]:
                    self._scribe.copy(replace(row, agent=name(agent)))
            case kinds.Redirect(event=event, to=agents):
                if (journal, event) not in self._events:
                    self._scribe.redirect(id(event), [*map(name, agents)])
            case kinds.Expire(event=event):
                self._scribe.copy(replace(row, event=id(event)))
            case kinds.IncidentRow(what=what, detail=dict(detail)) if what in KEPT:
                self._note(journal, what, detail)

    def _is_view(self, journal: _Journal, activation: str | None) -> bool:
        return (journal, journal.turns.get(activation or "")) in self._events

    def _ended(self, journal: _Journal, event: str) -> Emit | None:
        """The answer of an agent to a call of another process, in the agent's own journal."""
        by = journal.emits[event].by
        return journal.emits[event] if (journal, by) in self._ends else None

    def _emit(self, journal: _Journal, row: Emit) -> None:
        if (journal, row.event) in self._requests or self._is_view(journal, row.by):
            return
        if row.final and self._ended(journal, row.event):
            return
        call = self._events.get((journal, row.event))
        to = (call.agent,) if call else tuple(map(journal.name, row.to))
        by = row.by if row.by in (None, kinds.SYSTEM) else journal.id(row.by)
        self._scribe.copy(replace(row, event=journal.id(row.event), by=by, to=to))

    def _end(self, journal: _Journal, row: End) -> None:
        if self._is_view(journal, row.activation):
            return
        call = self._ends.get((journal, row.activation))
        outputs = [journal.id(name) for name in row.outputs]
        if call is not None:
            outputs = [journal.id(name) for name in row.outputs if not journal.emits[name].final]
            outputs = [call.caller.id(call.answer.event), *outputs]
        fates = tuple(
            replace(fate, event=journal.id(fate.event), to=tuple(map(journal.name, fate.to)))
            for fate in row.fates
        )
        because = row.because and journal.id(row.because)
        self._scribe.copy(replace(
            row, activation=journal.id(row.activation), fates=fates, outputs=tuple(outputs),
            because=because,
        ))  # fmt: skip
        if call is not None:
            to = tuple(map(call.caller.name, call.answer.to))
            by = journal.id(row.activation)
            self._scribe.copy(replace(call.answer, event=outputs[0], by=by, to=to))

    def _note(self, journal: _Journal, what: str, detail: dict[str, Any]) -> None:
        event, activation = detail.get("event"), detail.get("activation")
        is_view = what == kinds.WAITS and self._is_view(journal, activation)
        if (journal, event) in self._requests or is_view:
            return  # no request from outside any more, or told by the agent's own journal
        named = {key: journal.id(str(detail[key])) for key in ("event", "activation")
                 if detail.get(key)}  # fmt: skip
        self._scribe.incident(what, {**detail, **named})


def _began(path: Path) -> int:
    """The moment of a journal's first record, in microseconds; 0: unknown."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        folder = path if path.is_dir() else path.parent
        began = json.loads((folder / SIDE).read_text())["began"]
        return round(datetime.fromisoformat(began).timestamp() * 1_000_000)
    return 0
