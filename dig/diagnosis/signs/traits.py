"""Traits: the deeds of agents, as answers to questions about any agent.

A trait names no way of going wrong. How often peers give the same answer to the same question says
whether it is unusual: what did it do with a problem, what did it make of raw data, how long did it
take? Numbers are compared with the largest and smallest ones.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from dig.graph.records import End
from dig.tasks.accounting import TaskParts
from dig.tasks.number_ranges import Ranges, difference, length, merge
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

from .payload_facts import PayloadFacts

Question = tuple[str, ...]


class Trait(NamedTuple):
    """A deed of an agent in a respect.

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


class Traits:
    """The deeds of agents in a run, in columns: a long run has a dozen for each event."""

    def __init__(self, traits: Iterable[Trait]) -> None:
        """Take some traits, in their order."""
        # Answers in words, questions and agents come again and again: each has a number.
        self._answers, self._is_word, self._t = array("d"), bytearray(), array("i")
        self._question_of, self._agent_of = array("i"), array("i")
        self._activations, self._events = list[str](), list[str | None]()
        words = defaultdict[str, int](count().__next__)
        questions = defaultdict[Question, int](count().__next__)
        agents = defaultdict[str, int](count().__next__)
        for question, answer, agent, t, activation, event in traits:
            self._question_of.append(questions[question])
            self._is_word.append(isinstance(answer, str))
            self._answers.append(words[answer] if isinstance(answer, str) else answer)
            self._agent_of.append(agents[agent])
            self._t.append(t)
            self._activations.append(activation)
            self._events.append(event)
        self._words, self._questions, self._agents = [*words], [*questions], [*agents]

    def __iter__(self) -> Iterator[Trait]:
        return self.about(lambda respect: True)

    def about(self, is_wanted: Callable[[str], bool]) -> Iterator[Trait]:
        """Yield the traits of some respects, in their order."""
        is_chosen = [is_wanted(question[0]) for question in self._questions]
        for i, number in enumerate(self._question_of):
            if is_chosen[number]:
                answer = self._answers[i]
                yield Trait(
                    self._questions[number],
                    self._words[int(answer)] if self._is_word[i] else answer,
                    self._agents[self._agent_of[i]], self._t[i], self._activations[i],
                    self._events[i],
                )  # fmt: skip


@dataclass
class TeamHabits:
    """The frequency of each answer of agents to each question.

    Attributes:
        words: The answers that are words, counted by question.
        numbers: The answers that are numbers, in order, by question.
        own: The same for each agent alone.
    """

    words: dict[Question, Counter[str]] = field(default_factory=dict)
    numbers: dict[Question, array[float]] = field(default_factory=dict)
    own: dict[str, TeamHabits] = field(default_factory=dict)

    @classmethod
    def of(cls, traits: Iterable[Trait]) -> TeamHabits:
        """Count the answers of some traits."""
        team = cls()
        words = Counter[tuple[Question, str, str]]()
        for question, answer, agent, *_ in traits:
            own = team.own.setdefault(agent, cls())
            if isinstance(answer, str):
                # Words come again and again: each different one is entered once.
                words[question, answer, agent] += 1
                continue
            for habits in (team, own):
                habits.numbers.setdefault(question, array("d")).append(answer)
        for (question, word, agent), times in words.items():
            for habits in (team, team.own[agent]):
                habits.words.setdefault(question, Counter())[word] += times
        for habits in (team, *team.own.values()):
            for question, values in habits.numbers.items():
                habits.numbers[question] = array("d", sorted(values))  # ranks are read off by place
        return team


_NO_WORDS = Counter[str]()


class Norm:
    """The habits of a team as the measure for an agent, without the agent's own habits."""

    def __init__(self, team: TeamHabits, own: TeamHabits | None = None) -> None:
        # Nothing is copied: with as many agents as events that would take quadratic memory.
        self._team, self._own = team, own or TeamHabits()
        self._ranked: dict[tuple[Question, int], float] = {}
        self._counts: dict[Question, int] = {}

    def questions(self, respect: str) -> list[Question]:
        """List the questions of a respect with numbers as answers."""
        return [question for question in self._team.numbers if question[0] == respect]

    def answer_count(self, question: Question) -> int:
        """Return the number of answers to a question."""
        if question not in self._counts:
            team, own = (
                habits.words.get(question, _NO_WORDS).total()
                + len(habits.numbers.get(question, ()))
                for habits in (self._team, self._own)
            )
            self._counts[question] = team - own
        return self._counts[question]

    def count(self, question: Question, answer: str) -> int:
        """Count an answer in words."""
        team, own = self._team.words, self._own.words
        return team.get(question, _NO_WORDS)[answer] - own.get(question, _NO_WORDS)[answer]

    def count_like(self, trait: Trait) -> int:
        """Count the answers equal to a trait's; of numbers, all at least as far out."""
        question, answer = trait.question, trait.answer
        if isinstance(answer, str):
            return self.count(question, answer)
        values, own = self._team.numbers.get(question, ()), self._own.numbers.get(question, ())
        above = len(values) - bisect_left(values, answer) - len(own) + bisect_left(own, answer)
        return min(above, bisect_right(values, answer) - bisect_right(own, answer))

    def median(self, question: Question) -> float:
        """Return the median of the numbers given for a question; 0 without any."""
        return self._ranked_at(question, self.answer_count(question) // 2)

    def maximum(self, question: Question) -> float:
        """Return the largest number given for a question; 0 without any."""
        return self._ranked_at(question, self.answer_count(question) - 1)

    def minimum(self, question: Question) -> float:
        """Return the smallest number given for a question; 0 without any."""
        return self._ranked_at(question, 0)

    def _ranked_at(self, question: Question, rank: int) -> float:
        """The number of a rank, counted from 0; 0 if there is none."""
        key = question, rank
        if key not in self._ranked:
            values, own = self._team.numbers.get(question, ()), self._own.numbers.get(question, ())
            place = bisect_left(
                values, rank + 1,
                key=lambda value: bisect_right(values, value) - bisect_right(own, value),
            )  # fmt: skip
            self._ranked[key] = values[place] if rank >= 0 and place < len(values) else 0.0
        return self._ranked[key]


def list_traits(
    run: RecordedRun, parts: TaskParts | None, payloads: PayloadFacts
) -> Iterator[Trait]:
    """List all deeds of the agents of a run, by respect, in the order of the records.

    Args:
        run: The run.
        parts: The parts of its task; ``None``: nothing reads its payloads.
        payloads: The facts about its payloads.
    """
    first_sent: dict[tuple[str, int], str] = {}
    is_open = any(isinstance(e.payload, Mapping) for e in run.events.values() if e.agent)
    for activation in run.activations.values():
        if activation.end is None or activation.has_failed:
            continue
        used = [event for event in run.inputs(activation) if not event.final]
        types, outputs = join_types(event.type for event in used), run.outputs(activation)
        yield from _activation_traits(run, activation, activation.end, types, outputs)
        for event in outputs:
            yield from _payload_traits(payloads, activation, event, first_sent, is_open)
        if parts is not None:
            yield from _content_traits(parts, payloads, activation, used, outputs, types)
    yield from _delivery_traits(run)
    yield from _profile_traits(run, payloads)


def join_types(types: Iterable[str]) -> str:
    """Join the different types of some events into a word."""
    return "+".join(sorted({*types})) or "nothing"


def _label(event: RecordedEvent) -> str:
    return f"final {event.type}" if event.final else event.type


def _activation_traits(
    run: RecordedRun, activation: RecordedActivation, end: End, types: str,
    outputs: list[RecordedEvent],
) -> Iterator[Trait]:  # fmt: skip
    """The length of an activation, the fate of each input, and the sort and number of outputs.

    Args:
        run: The run.
        activation: The activation.
        end: The end of the activation.
        types: The types of what it consumed.
        outputs: The outputs that it generated.
    """
    agent, name, seconds = activation.agent, activation.id, (end.us - activation.us) / 1e6
    yield Trait(("seconds", types), seconds, agent, end.t, name)
    for event in map(run.events.__getitem__, activation.inputs):
        if event.is_work:
            fate = activation.fates.get(event.id, "delay")
            yield Trait(("fate", event.type), fate, agent, end.t, name, event.id)
    yield Trait(("makes", types), join_types(map(_label, outputs)), agent, end.t, name)
    yield Trait(("outputs", types), float(len(outputs)), agent, end.t, name)


def _about(
    respect: str, answer: str | float, activation: RecordedActivation, event: RecordedEvent
) -> Trait:
    question, agent = (respect, _label(event)), activation.agent
    return Trait(question, answer, agent, event.t, activation.id, event.id)


def _payload_traits(
    payloads: PayloadFacts, activation: RecordedActivation, event: RecordedEvent,
    first_sent: dict[tuple[str, int], str], is_open: bool,
) -> Iterator[Trait]:  # fmt: skip
    """The shape of the payload of an event, and repetition.

    Args:
        payloads: The facts about payloads.
        activation: The activation that generated it.
        event: The event.
        first_sent: The first event with a content, by agent and content; it is added to.
        is_open: Whether the run has payloads that can be read.
    """
    payload = payloads.read(event)
    content = payloads.content(event)
    if content is None:
        return
    if is_open:
        keys = ",".join(sorted(payload)) if isinstance(payload, Mapping) else "other"
        yield _about("shape", keys, activation, event)
    first = first_sent.setdefault((activation.agent, content), event.id)
    yield _about("said", "first now" if first == event.id else "before", activation, event)


def _content_traits(
    parts: TaskParts, payloads: PayloadFacts, activation: RecordedActivation,
    used: list[RecordedEvent], outputs: list[RecordedEvent], types: str,
) -> Iterator[Trait]:  # fmt: skip
    """Relate the parts of the task before an activation to the parts after.

    Args:
        parts: Reads the payloads.
        payloads: The facts about them.
        activation: The activation.
        used: The inputs that the activation consumed.
        outputs: The outputs that the activation generated.
        types: The types of what it consumed.
    """
    assert activation.end is not None
    agent, name = activation.agent, activation.id
    if outputs:
        before, after = (
            merge(part for event in events for part in parts.about(event))
            for events in (used, outputs)
        )
        yield Trait(("about", types), _relation(before, after), agent, activation.end.t, name)
    for event in outputs:
        about, amounts = parts.about(event), payloads.amounts(event)
        if about and amounts:
            share = sum(amounts.values()) / length(about)
            yield Trait(("amount", _label(event)), share, agent, event.t, name, event.id)


def _relation(before: Ranges, after: Ranges) -> str:
    if not after:
        return "nothing"
    missing, new = difference(before, after), difference(after, before)
    if missing and new:
        return "something else"
    return "less" if missing else "more" if new else "the same"


def _delivery_traits(run: RecordedRun) -> Iterator[Trait]:
    """The time of each event under way."""
    for event in run.events.values():
        sender, by = event.agent, event.by
        if sender is not None and by is not None and not event.final and event.arrivals:
            t = event.arrivals[0][1]
            seconds = (run.times[t] - event.us) / 1e6
            yield Trait(("way", event.type), seconds, sender, t, by, event.id)


def _profile_traits(run: RecordedRun, payloads: PayloadFacts) -> Iterator[Trait]:
    """Measure distances of amounts, as shares, from the amounts of the nearest other agent."""
    profiles: dict[str, dict[str, float]] = {}
    means: dict[tuple[str, str], Counter[str]] = {}
    for event in run.events.values():
        amounts = payloads.amounts(event) if event.agent is not None else {}
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
        # An agent is not compared with itself: an odd habit of its own would look usual.
        distances = [
            sum(abs(profile.get(key, 0.0) - mean[key]) for key in {*profile, *mean})
            for (kind, agent), mean in means.items()
            if kind == event.type and agent != event.agent
        ]
        if distances:
            sender, by = str(event.agent), str(event.by)
            yield Trait(("profile", _label(event)), min(distances), sender, event.t, by, name)
