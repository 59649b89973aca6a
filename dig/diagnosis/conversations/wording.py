"""Features of the steps of a conversation: numbers, computed from the texts.

    rows = features(conversation)          # a mapping of features for each candidate

A feature belongs to a group; the group that counts most is the mechanism of a candidate.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import log1p

from .flow import bag, code_of, cosine, facts, marks, outcome, prose_of, vocabulary
from .reading import END_MARK, Conversation, ConversationStep, fold_name

COVERED = 0.6
"""Share of the words of the question from which on a step has the question."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a step.

    Attributes:
        group: `order`, `lost-task`, `execution`, `invention` or `data-flow`.
        says: The sentence about a step that has it; `{}` stands for its number, if it has one.
    """

    group: str
    says: str


FEATURES: Mapping[str, Feature] = {
    "task missing": Feature("lost-task", "the question is not in the first step"),
    "is first": Feature("lost-task", "it is the first step, which has the task and the plan"),
    "first has code": Feature("lost-task", "the first step has code already"),
    "earlier results": Feature("lost-task", "the first step tells of an earlier attempt"),
    "log rank": Feature("order", "its place among the steps that can be at fault"),
    "last but one": Feature("order", "it is the last step but one that can be at fault"),
    "turns of agent": Feature("order", "its agent speaks often"),
    "first code": Feature("execution", "it has the first code of the conversation"),
    "first failing code": Feature("execution", "it has the first code that failed"),
    "has code": Feature("execution", "it has code"),
    "code done": Feature("execution", "its code ran without an error"),
    "code for nothing": Feature("execution", "its code brought nothing"),
    "failures before": Feature("execution", "outputs failed before it"),
    "cut off failing": Feature("execution", "its code failed, and the conversation was cut off"),
    "invention words": Feature("invention", "it speaks of assumed or made up data"),
    "unfounded facts": Feature("data-flow", "it states facts without code and without any output"),
    "new facts": Feature("data-flow", "it states facts that stand nowhere before"),
    "facts reused": Feature("data-flow", "later steps use facts that it states first"),
    "facts in the end": Feature("data-flow", "the last step uses facts that it states first"),
    "about question": Feature("data-flow", "it is close to the words of the question"),
    "echo": Feature("data-flow", "it repeats words of the step before it"),
    "hands over": Feature("data-flow", "it names other agents"),
}
"""Features by name."""


def features(conversation: Conversation) -> list[dict[str, float]]:
    """Compute the features of each candidate of a conversation, in order."""
    log = _Log(conversation)
    return [log.row(rank, step) for rank, step in enumerate(conversation.candidates)]


class _Log:
    """Shared inputs of all features of a conversation, computed once."""

    def __init__(self, conversation: Conversation) -> None:
        self.candidates = conversation.candidates
        self.question = bag(conversation.task or "")
        self.steps = conversation.speaking_steps or conversation.steps
        self.place = {step.number: place for place, step in enumerate(self.steps)}
        self.turns = Counter(fold_name(step.agent) for step in self.candidates)
        self.names: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
        for name in dict.fromkeys(fold_name(step.agent) for step in self.steps):
            pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
            for first in list(bag(name))[:1]:
                self.names.setdefault(first, []).append((name, pattern))
        self.is_cut_off = END_MARK not in self.steps[-1].text
        self.bags = [bag(step.text) for step in self.steps]
        self.facts = [facts(step.text) for step in self.steps]
        # The very last step is often the end mark alone.
        self.last_facts = next((held for held in reversed(self.facts) if held), {})
        earlier_facts: set[str] = {*facts(conversation.task or "")}
        self.new: list[frozenset[str]] = []
        for held in self.facts:
            self.new.append(frozenset(held) - earlier_facts)
            earlier_facts.update(held)
        self.uses = Counter(fact for held in self.facts for fact in held)
        self.codes = [bool(code_of(step.text).strip()) for step in self.steps]
        self.outputs = [outcome(step.text) if step.role == "tool" else None for step in self.steps]
        self.failures = [0, *accumulate(output == "failed" for output in self.outputs)]
        self.first_code = next((i for i, has in enumerate(self.codes) if has), None)
        failing = (i for i in range(len(self.steps)) if self._output(i) == "failed")
        self.first_failing = next(failing, None)
        places = (i for i, output in enumerate(self.outputs) if output == "done")
        self.first_output = next(places, len(self.steps))

    def _output(self, place: int) -> str | None:
        """Return the outcome of the code in a step, by the output of the tool right after."""
        has_output = self.codes[place] and place + 1 < len(self.steps)
        return self.outputs[place + 1] if has_output else None

    def row(self, rank: int, step: ConversationStep) -> dict[str, float]:
        """Compute the features of a candidate."""
        place = self.place[step.number]
        has_code, output = self.codes[place], self._output(place)
        common = {
            "log rank": log1p(rank),
            "last but one": float(rank == len(self.candidates) - 2),
            "turns of agent": log1p(self.turns[fold_name(step.agent)]),
            "first code": float(place == self.first_code),
            "first failing code": float(place == self.first_failing),
            "has code": float(has_code),
            "failures before": log1p(self.failures[place]),
            "cut off failing": float(self.is_cut_off and output == "failed"),
            "about question": cosine(bag(prose_of(step.text)), self.question),
        }
        if place == 0:  # the first step has the task and the plan: other mistakes count there
            special = {
                "task missing": float(self._misses_question(step.text)),
                "is first": 1.0,
                "first has code": float(has_code),
                "earlier results": float(marks(step.text, vocabulary().earlier) > 0),
            }
        else:
            special = self._later(place, step, output)
        return {**dict.fromkeys(FEATURES, 0.0), **common, **special}

    def _later(self, place: int, step: ConversationStep, output: str | None) -> dict[str, float]:
        """Compute the features of a later step."""
        new = self.new[place]
        # Before any output of a tool facts come from the question or from nowhere.
        is_unfounded = not self.codes[place] and place < self.first_output
        return {
            "code done": float(output == "done"),
            "code for nothing": float(output == "nothing"),
            "invention words": log1p(marks(step.text, vocabulary().invention)),
            "unfounded facts": log1p(len(new)) if is_unfounded else 0.0,
            "new facts": log1p(len(new)),
            "facts reused": log1p(sum(self.uses[fact] > 1 for fact in new)),
            "facts in the end": float(not new.isdisjoint(self.last_facts)),
            "echo": cosine(self.bags[place], self.bags[place - 1]),
            "hands over": float(self._names_others(place, step)),
        }

    def _names_others(self, place: int, step: ConversationStep) -> bool:
        """Report whether a step names another agent."""
        low, own = step.text.casefold(), fold_name(step.agent)
        # Only patterns whose first word is in the step are tried: a log may have many agents.
        near = [
            pair
            for word in self.names.keys() & self.bags[place].keys()
            for pair in self.names[word]
        ]
        return any(name != own and pattern.search(low) for name, pattern in near)

    def _misses_question(self, text: str) -> bool:
        """Report whether a text lacks the question."""
        if not self.question:
            return False
        held = bag(text)
        return sum(word in held for word in self.question) < COVERED * len(self.question)
