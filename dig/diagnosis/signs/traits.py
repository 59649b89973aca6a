"""Traits: what agents did, as answers to questions that can be asked about any agent.

A trait names no way of going wrong. How often peers give the same answer to the same question says
whether it is unusual: what did it do with a problem, what did it make of raw data, to whom did it
send the result, how long did it take? Numbers are compared with the largest and smallest ones.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dig.graph.records import SYSTEM, Expire
from dig.tasks.accounting import TaskParts
from dig.tasks.ranges import Ranges, length, merged, without
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

Question = tuple[str, ...]


class Trait(NamedTuple):
    """A deed of an agent in one respect.

    Attributes:
        question: The respect, first its name; only answers to the same question are compared.
        answer: The answer: a word, or a number.
        t: The record that shows it.
        event: The event that it is about, if it is about one.
    """

    question: Question
    answer: str | float
    agent: str
    t: int
    activation: str
    event: str | None = None


@dataclass
class TeamHabits:
    """The frequency of each answer of agents to each question.

    Attributes:
        words: The answers that are words, counted by question.
        numbers: The answers that are numbers, in order, by question.
        own: The same for each agent alone.
    """

    words: dict[Question, Counter[str]] = field(default_factory=dict)
    numbers: dict[Question, list[float]] = field(default_factory=dict)
    own: dict[str, TeamHabits] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Iterable[Trait]) -> TeamHabits:
        """The habits that some traits show."""
        found = cls()
        for one in given:
            found._add(one)
            found.own.setdefault(one.agent, cls())._add(one)
        for some in (found, *found.own.values()):
            for values in some.numbers.values():
                values.sort()
        return found

    def _add(self, one: Trait) -> None:
        if isinstance(one.answer, str):
            self.words.setdefault(one.question, Counter())[one.answer] += 1
        else:
            self.numbers.setdefault(one.question, []).append(one.answer)

    def without(self, agent: str) -> TeamHabits:
        """The habits of all agents but one."""
        if agent not in self.own:
            return self
        mine = self.own[agent]
        words = {
            question: Counter(counts) - mine.words.get(question, Counter())
            for question, counts in self.words.items()
        }
        numbers = {
            question: sorted((Counter(values) - Counter(mine.numbers.get(question, ()))).elements())
            for question, values in self.numbers.items()
        }
        return TeamHabits(words, numbers)

    def known(self, question: Question) -> int:
        """The number of answers to a question."""
        return self.words[question].total() if question in self.words else len(
            self.numbers.get(question, ())
        )  # fmt: skip

    def alike(self, one: Trait) -> int:
        """The number of answers to its question like this one; of numbers, as far out at least."""
        if isinstance(one.answer, str):
            return self.words.get(one.question, Counter())[one.answer]
        values = self.numbers.get(one.question, [])
        above = len(values) - bisect_left(values, one.answer)
        return min(above, bisect_right(values, one.answer))

    def middle(self, question: Question) -> float:
        """The median of the numbers that answer a question; 0 without any."""
        values = self.numbers.get(question, ())
        return values[len(values) // 2] if values else 0.0

    def most(self, question: Question) -> float | None:
        """The largest number that answers a question."""
        values = self.numbers.get(question)
        return values[-1] if values else None


def traits(run: RecordedRun, parts: TaskParts | None = None) -> Iterator[Trait]:
    """Everything that the agents of a run did, by respect, in the order of its records.

    Args:
        run: The run.
        parts: The parts of its task; ``None``: nothing reads its payloads.
    """
    said: dict[tuple[str, str], str] = {}
    is_open = any(isinstance(e.payload, Mapping) for e in run.events.values() if e.agent)
    for activation in run.activations.values():
        used = [event for event in run.inputs(activation) if not event.final]
        of = _kinds(used)
        yield from _of_activation(run, activation, of)
        if activation.end is not None and not activation.has_failed:
            outputs = run.outputs(activation)
            yield from _of_outputs(activation, used, outputs, of)
            for event in outputs:
                yield from _of_output(run, activation, event, used)
                yield from _of_content(activation, event, said, is_open)
            if parts is not None:
                yield from _of_parts(parts, activation, used, outputs, of)
    yield from _of_ways(run)
    yield from _of_profiles(run)


def _kinds(events: Iterable[RecordedEvent]) -> str:
    return "+".join(sorted({event.type for event in events})) or "nothing"


def _of_activation(run: RecordedRun, activation: RecordedActivation, of: str) -> Iterator[Trait]:
    """The end of an activation, its length, and the fate of each event before it."""
    end, agent, name = activation.end, activation.agent, activation.id
    if activation.has_failed and not activation.has_raised:
        return
    t, until = (run.last.t, run.last.us) if end is None else (end.t, end.us)
    yield Trait(("lasted",), (until - activation.us) / 1_000_000, agent, t, name)
    if end is not None:
        yield Trait(("ended",), "with an error" if end.error else "well", agent, t, name)
    if end is None or activation.has_failed:
        return
    yield Trait(("seconds", of), (end.us - activation.us) / 1_000_000, agent, t, name)
    for event in map(run.events.__getitem__, activation.inputs):
        if event.is_work:
            fate = activation.fates.get(event.id, "delay")
            yield Trait(("fate", event.type), fate, agent, t, name, event.id)


def _of_outputs(
    activation: RecordedActivation, used: list[RecordedEvent], outputs: list[RecordedEvent], of: str
) -> Iterator[Trait]:
    """The outputs made of its inputs, and their number."""
    assert activation.end is not None
    agent, t, name = activation.agent, activation.end.t, activation.id
    yield Trait(("makes", of), _made(outputs), agent, t, name)
    yield Trait(("outputs", of), float(len(outputs)), agent, t, name)


def _made(outputs: Iterable[RecordedEvent]) -> str:
    return (
        "+".join(sorted({f"final {e.type}" if e.final else e.type for e in outputs})) or "nothing"
    )


def _of_output(
    run: RecordedRun, activation: RecordedActivation, event: RecordedEvent,
    used: list[RecordedEvent],
) -> Iterator[Trait]:  # fmt: skip
    """To whom an event goes.

    Args:
        run: The run.
        activation: The activation that generated it.
        event: The event.
        used: The inputs that the activation consumed.
    """
    agent, name = activation.agent, activation.id
    kind = f"final {event.type}" if event.final else event.type

    def trait(what: str, answer: str | float) -> Trait:
        return Trait((what, kind), answer, agent, event.t, name, event.id)

    if not event.final:
        givers = {one.agent for one in used} - {agent}
        to = {
            "itself" if one == agent else "the giver" if one in givers
            else "another" if one in run.agents else "nobody"
            for one in event.to
        }  # fmt: skip
        yield trait("to", "+".join(sorted(to)) or "nobody")
        yield trait("recipients", float(len(event.to)))


def _of_content(
    activation: RecordedActivation, event: RecordedEvent, said: dict[tuple[str, str], str],
    is_open: bool,
) -> Iterator[Trait]:  # fmt: skip
    """The shape of an event's payload, and whether it was said before.

    Args:
        activation: The activation that generated it.
        event: The event.
        said: The activations that said something first, by agent and content; it is added to.
        is_open: Whether the run has payloads that can be read.
    """
    content, agent, name = event.payload, activation.agent, activation.id
    if content is None:
        return
    kind = f"final {event.type}" if event.final else event.type

    def trait(what: str, answer: str | float) -> Trait:
        return Trait((what, kind), answer, agent, event.t, name, event.id)

    text = json.dumps(content, sort_keys=True, default=str)
    if is_open:
        yield trait("shape", ",".join(sorted(content)) if isinstance(content, Mapping) else "other")
        yield trait("length", float(len(text)))
    first = said.setdefault((agent, f"{event.type} {text}"), event.id)
    yield trait("said", "first now" if first == event.id else "before")


def _of_parts(
    parts: TaskParts, activation: RecordedActivation, used: list[RecordedEvent],
    outputs: list[RecordedEvent], of: str,
) -> Iterator[Trait]:  # fmt: skip
    """The relation between what it made and what it used, by what they are about.

    Args:
        parts: Reads the payloads.
        activation: The activation.
        used: The inputs that the activation consumed.
        outputs: The outputs that the activation generated.
        of: The types of what it consumed.
    """
    assert activation.end is not None
    before, after = _about(parts, used), _about(parts, outputs)
    if outputs:
        how = _relation(before, after)
        yield Trait(("about", of), how, activation.agent, activation.end.t, activation.id)
    for event in outputs:
        about, amounts = parts.about(event), amounts_of(event.payload)
        if about and amounts:
            share = sum(amounts.values()) / length(about)
            kind = f"final {event.type}" if event.final else event.type
            yield Trait(("amount", kind), share, activation.agent, event.t, activation.id, event.id)


def _about(parts: TaskParts, events: Iterable[RecordedEvent]) -> Ranges:
    return merged(part for event in events for part in parts.about(event))


def _relation(before: Ranges, after: Ranges) -> str:
    if not after:
        return "nothing"
    lost, new = without(before, after), without(after, before)
    if lost and new:
        return "something else"
    return "less" if lost else "more" if new else "the same"


def amounts_of(payload: Any) -> dict[str, float]:
    """The numbers of a payload that stand in mappings of numbers, by their place in it."""
    found: dict[str, float] = {}
    if isinstance(payload, Mapping):
        for key, value in payload.items():
            if isinstance(value, Mapping) and all(type(n) in (int, float) for n in value.values()):
                found.update({f"{key}.{name}": float(n) for name, n in value.items()})
    return found


def _of_ways(run: RecordedRun) -> Iterator[Trait]:
    """The time of events on their way, and their arrival."""
    for agent in run.agents:
        t = run.leaves.get(agent, run.last.t)
        yield Trait(("stays",), "no" if agent in run.leaves else "yes", agent, t, "")
    gone = {record.event for record in run.records if isinstance(record, Expire)}
    for event in run.events.values():
        if event.agent is None or event.final or event.by in (None, SYSTEM):
            continue
        assert event.by is not None
        took = (
            (run.times[event.arrivals[0][1]] if event.arrivals else run.last.us) - event.us
        ) / 1e6
        if event.to and all(to in run.leaves for to in event.to):
            continue  # the agents that left are to blame themselves
        lost = event.id in gone or not event.arrivals
        yield Trait(
            ("comes", event.type),
            "never" if lost else "yes",
            event.agent,
            event.t,
            event.by,
            event.id,
        )
        if event.arrivals:
            yield Trait(
                ("way", event.type), took, event.agent, event.arrivals[0][1], event.by, event.id
            )


def _of_profiles(run: RecordedRun) -> Iterator[Trait]:
    """The distances of an event's amounts, as shares, from those of the nearest other agent."""
    profiles: dict[str, dict[str, float]] = {}
    means: dict[tuple[str, str], Counter[str]] = {}
    for event in run.events.values():
        amounts = amounts_of(event.payload) if event.agent is not None else {}
        total = sum(amounts.values())
        if total > 0:
            profiles[event.id] = {key: value / total for key, value in amounts.items()}
            means.setdefault((event.type, str(event.agent)), Counter()).update(profiles[event.id])
    for mean in means.values():
        total = sum(mean.values())
        for key in mean:
            mean[key] /= total  # type: ignore[assignment]
    for name, profile in profiles.items():
        event = run.events[name]
        far = [
            sum(abs(profile.get(key, 0.0) - mean[key]) for key in {*profile, *mean})
            for (kind, agent), mean in means.items()
            if kind == event.type and agent != event.agent
        ]
        if far:
            kind = f"final {event.type}" if event.final else event.type
            question = ("profile", kind)
            yield Trait(question, min(far), str(event.agent), event.t, str(event.by), name)
