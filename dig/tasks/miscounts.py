"""Miscounts: the agents behind a wrong answer, found by comparing each solution with the truth."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from dig._util.text import cut, join_clauses
from dig.traces.run import RecordedEvent

from .accounting import SOLUTION, TaskParts
from .number_ranges import Ranges, difference, length
from .task import Mistake, MistakeOrigin

Errors = list[float]
"""The error of each count."""

PLACE = "{}"
"""The parts in a step, before the steps of several parts are put together."""

GIVING = ("reroute", "redeliver", "reassign")
"""The interventions that give work to an agent."""

MOST_SUMS = 200
"""The number of sets of parts of one size that are tried as an error's double counts."""

MOST_COUNTS = 20
"""The number of results of an agent with a mistake whose counts are told."""


class Miscounts:
    """The errors of the solutions of a run, without inherited errors.

    Args:
        parts: The run, with the parts of its task.
        errors: The errors of a payload's counts about some parts; ``None``: it has no counts.
        unit: The name of the data's elements, in the plural.
        values: The values that are counted, in the order of the errors.
    """

    def __init__(
        self, parts: TaskParts, errors: Callable[[Any, Ranges], Errors | None], unit: str,
        values: Iterable[Hashable],
    ) -> None:  # fmt: skip
        """Compare each solution with earlier solutions of the agent."""
        self._parts, self._errors, self._unit = parts, errors, unit
        self._values = [*map(str, values)]
        self._total: dict[str, Errors] = {}  # by event
        self._own: dict[str, tuple[Errors, Ranges]] = {}  # without what is inherited
        self._inherited: dict[str, list[str]] = {}
        # The parts that may be in a sum twice, by event, with their counters.
        self._candidates: dict[str, dict[Ranges, list[str]]] = {}
        before: dict[str, list[str]] = defaultdict(list)  # by agent
        for event in parts.run.events.values():
            if event.type == SOLUTION and event.agent is not None and parts.about(event):
                # An agent remembers what it read, so all that it consumed until then counts.
                self._compare(event, before[event.agent])
                for reader in (*event.consumed_by, event.by):
                    if reader in parts.run.activations:
                        before[parts.run.activations[reader].agent].append(event.id)

    def _compare(self, event: RecordedEvent, before: list[str]) -> None:
        about = self._parts.about(event)
        errors = self._errors(event.payload, about)
        if errors is None:
            return
        self._total[event.id], own, by_parts = errors, about, defaultdict[Ranges, list[str]](list)
        for other in reversed(before):
            theirs = self._parts.about(self._parts.run.events[other])
            if other in self._total and not difference(theirs, about):
                by_parts[theirs].append(other)
        inherited, refused = list[str](), list[str]()
        # Small errors are hidden by large ones, so these are taken out of the sum first.
        for theirs, others in sorted(
            by_parts.items(), key=lambda item: -max(_size(self._total[o]) for o in item[1])
        ):
            own = difference(own, theirs)
            rests = {other: _subtract(errors, self._total[other]) for other in others}
            # Two solutions of the same parts are not both in a sum: the one that explains more is.
            # An agent remembers more, but what this very turn put together is in the sum.
            used = [o for o in others if event.by in self._parts.run.events[o].consumed_by]
            nearest = min(used or others, key=lambda other: _size(rests[other]))
            if _size(rests[nearest]) < _size(errors):
                errors = rests[nearest]
                inherited.append(nearest)
            else:
                refused.append(nearest)
        # Errors that cancel each other out shrink the sum only together.
        used = [o for o in refused if event.by in self._parts.run.events[o].consumed_by]
        for others in (used, *([other] for other in refused)):
            rest = errors
            for other in others if {*others}.isdisjoint(inherited) else ():
                rest = _subtract(rest, self._total[other])
            if _size(rest) < _size(errors):
                errors = rest
                inherited += others
        self._inherited[event.id] = inherited
        self._own[event.id] = errors, own
        counters = {
            theirs: [self._parts.run.events[other].agent or "" for other in reversed(solutions)]
            for theirs, solutions in by_parts.items()
        }
        self._candidates[event.id] = {own: [], **counters} if own else counters

    def _list_doubles(self, event: RecordedEvent) -> tuple[Ranges, ...]:
        """The parts whose counts explain most of an error as double counts; empty: none."""
        errors = self._own[event.id][0]
        best: tuple[Errors, tuple[Ranges, ...]] = errors, ()
        everything = self._errors(event.payload, ()) or errors
        # Elements that were counted twice stand once more in the answer than in the truth.
        added = {
            parts: _subtract(everything, self._errors(event.payload, parts) or errors)
            for parts in self._candidates[event.id]
        }
        numbered, before = [*added], math.inf
        sums = [(errors, tuple[Ranges, ...]())]
        # Parts of equal length shrink an error alike, so many sets of parts are kept.
        while sums and (size := _square(sums[0][0])) < before:
            before, best = size, sums[0]
            grown = [
                (_subtract(remainder, added[parts]), (*chosen, parts))
                for remainder, chosen in sums
                for parts in numbered[numbered.index(chosen[-1]) + 1 if chosen else 0 :]
            ]
            sums = sorted(grown, key=lambda row: _square(row[0]))[:MOST_SUMS]
        return tuple(sorted(best[1])) if _size(best[0]) < _size(errors) / 4 else ()

    def behind(self, answer: RecordedEvent) -> tuple[Mistake, ...]:
        """The mistakes behind an answer: one an agent, the largest first."""
        by_agent: dict[str, list[RecordedEvent]] = defaultdict(list)
        for event in self._walk(answer.id):
            if event.agent is not None and any(self._own[event.id][0]):
                by_agent[event.agent].append(event)
        flaw_of: dict[str, float] = {}
        for agent, events in by_agent.items():
            errors = zip(*(self._own[event.id][0] for event in events), strict=True)
            flaw_of[agent] = _flaw([*map(sum, errors)])
        mistakes = [self._mistake(agent, by_agent[agent]) for agent in by_agent]
        mistakes.sort(key=lambda row: (-round(flaw_of[row.agent]), -row.share))
        if mistakes and answer.id in self._total:
            flaw = sum(flaw_of.values())
            cancelled = round(flaw - _flaw(self._total[answer.id]))
            # Few of many are not worth a word.
            cancelled = cancelled if cancelled > flaw / 50 else 0
            mistakes[0] = replace(mistakes[0], cancelled=cancelled)
        return tuple(mistakes)

    def _walk(self, answer: str) -> Iterator[RecordedEvent]:
        """The solutions with errors in an answer, each once."""
        waiting, seen = [answer], {answer}
        while waiting:
            id = waiting.pop()
            if id in self._own:
                yield self._parts.run.events[id]
                # In order, so that equal runs are told alike in every process.
                new = [e for e in dict.fromkeys(self._inherited[id]) if e not in seen]
                seen.update(new)
                waiting += new

    def _mistake(self, agent: str, events: list[RecordedEvent]) -> Mistake:
        own = [self._own[event.id] for event in events]
        errors = [sum(numbers) for numbers in zip(*(errors for errors, _ in own), strict=True)]
        number = sum(length(parts) for _, parts in own)
        worst, (left, added, swapped) = max(events, key=self._flaw), flaws(errors)
        for double in events if added > max(left, swapped) else ():
            if not (doubles := self._list_doubles(double)):
                continue
            counters = self._candidates[double.id]
            agents = [*dict.fromkeys(a for parts in doubles for a in counters[parts])]
            by = f", by {join_clauses(agents)}" if len(agents) > 1 else ""
            size = f"{added:,.0f} {self._unit}{by}"
            says = f"added the counts of {_parts_text(*doubles)} twice ({size})"
            origins = _merge((p, self._origins(p, double)) for p in doubles)
            return Mistake(agent, double.by or "", double.t, double.us, says, origins=origins)
        says = self._flaw_text(errors, number)
        # An agent may have miscounted long before the first of the results in the answer.
        wrong = (id for id, (errors, parts) in self._own.items() if parts and any(errors))
        results = (self._parts.run.events[id] for id in wrong)
        first = next((event for event in results if event.agent == agent), min(events, key=_time))
        counts = {
            event.id: self._flaw_text(self._own[event.id][0], length(self._own[event.id][1]))
            for event in sorted(events, key=self._flaw, reverse=True)[:MOST_COUNTS]
            if self._own[event.id][1]
        }
        share = _flaw(errors) / number if number else 0.0
        values = {event: self._values_text(self._own[event][0]) for event in counts}
        return Mistake(agent, worst.by or "", first.t, first.us, says, share, counts, values)

    def _values_text(self, errors: Errors) -> str:
        """The values that are counted wrong, the largest error first."""
        rows = sorted(zip(errors, self._values, strict=True), key=lambda row: -abs(row[0]))
        sizes = [(f"{v} {abs(e):,.0f}", e) for e, v in rows if abs(e) >= 0.5]
        texts = [f"{size} too {'many' if e > 0 else 'few'}" for size, e in sizes]
        return cut(texts, most=MOST_COUNTS)

    def _flaw(self, event: RecordedEvent) -> float:
        return _flaw(self._own[event.id][0])

    def _flaw_text(self, errors: Errors, number: int) -> str:
        left, added, swapped = flaws(errors)
        acts = {"left out {}": left, "counted {} too many": added, "misread {}": swapped}
        texts = [act.format(f"{size:,.0f}") for act, size in acts.items() if size >= 0.5]
        preposition = "of" if left or swapped >= 0.5 else "for"
        place = f"{preposition} {number:,} {self._unit}"
        if not number:  # nothing but what others had counted
            place = f"{self._unit} when it put the counts of others together"
        return f"{join_clauses(texts) or 'was off by a fraction'} {place}"

    def _origins(self, parts: Ranges, double: RecordedEvent) -> Iterator[MistakeOrigin]:
        """The steps to a double count of some parts: handed out, lost, counted."""
        run, place = self._parts.run, PLACE
        steps = list[MistakeOrigin]()
        posed = [
            event for event in run.events.values()
            if event.t < double.t and event.agent is not None and self._parts.about(event) == parts
        ]  # fmt: skip
        problems = [event for event in posed if event.type == "problem"]
        for number, event in enumerate(problems):
            to = ["itself" if agent == event.agent else agent for agent in event.to]
            if len(to) > 1 or len(problems) > 1:
                again = " once more" if number else ""
                says = f"{event.agent} gave {place} to {join_clauses(to)}{again}"
                steps.append(MistakeOrigin(event.t, event.us, says))
        ids = {event.id for event in posed}
        for activation in run.activations.values():
            if activation.end is not None and not ids.isdisjoint(activation.with_fate("discard")):
                says = f"{activation.agent} threw {place} away"
                steps.append(MistakeOrigin(activation.end.t, activation.end.us, says))
        passed_on = {by for event in posed if event.type == SOLUTION for by in event.consumed_by}
        solutions = [e for e in posed if e.type == SOLUTION and e.by not in passed_on]
        for row in run.heals:
            # The monitor did it if one share at most was there, and a recipient made another.
            shares = [event.agent for event in (*solutions, double) if event.t > row.t]
            to = [agent for agent in row.to or () if agent in shares]
            if to and row.event in ids and row.action in GIVING and len(shares) >= len(solutions):
                says = f"the monitor gave {place} to {join_clauses(to)}"
                steps.append(MistakeOrigin(row.t, row.us, says, is_healing=True))
        if len(solutions) > 1:
            agents = [*dict.fromkeys(event.agent or "" for event in solutions)]
            often = "twice" if len(agents) == 1 else "each"
            says = f"{join_clauses(agents)} had counted {place} {often}"
            steps.append(MistakeOrigin(solutions[-1].t, solutions[-1].us, says))
        yield from sorted((step for step in steps if step.t < double.t), key=_time)


def _parts_text(*parts: Ranges) -> str:
    return join_clauses([f"[{start}, {stop}]" for ranges in parts for start, stop in ranges])


def _merge(origins: Iterable[tuple[Ranges, Iterable[MistakeOrigin]]]) -> tuple[MistakeOrigin, ...]:
    """The steps of several parts; equal deeds on some of them are one step, as the latest was."""
    latest, places = dict[str, MistakeOrigin](), defaultdict[str, list[Ranges]](list)
    for parts, steps in origins:
        for step in steps:
            latest[step.says] = max(latest.get(step.says, step), step, key=_time)
            places[step.says] += [parts] if parts not in places[step.says] else []
    texts = {says: says.replace(PLACE, _parts_text(*listed)) for says, listed in places.items()}
    merged = [replace(step, says=texts[says]) for says, step in latest.items()]
    return tuple(sorted(merged, key=_time))


def _time(step: RecordedEvent | MistakeOrigin) -> int:
    return step.t


def flaws(errors: Errors) -> tuple[float, float, float]:
    """The numbers of missing, of added and of misread elements."""
    more, less = sum(e for e in errors if e > 0), -sum(e for e in errors if e < 0)
    return max(0.0, less - more), max(0.0, more - less), min(more, less)


def _flaw(errors: Errors) -> float:
    missing, added, misread = flaws(errors)
    return max(missing, added) + misread


def _subtract(errors: Errors, others: Errors) -> Errors:
    return [error - other for error, other in zip(errors, others, strict=True)]


def _square(errors: Errors) -> float:
    return sum(error * error for error in errors)


def _size(errors: Errors) -> float:
    return sum(map(abs, errors))
