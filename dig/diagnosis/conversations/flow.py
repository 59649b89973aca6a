"""Words, code, failures and facts in the texts of a conversation, and the flow of facts.

A fact is a number, a capitalised word inside a sentence, an address or a quoted string. It flows
from the latest earlier step that has it to the step that uses it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import sqrt
from typing import Literal

from .reading import Conversation, ConversationStep, DataEdge, DataType

Bag = Mapping[str, float]
"""Words with counts or weights."""

# A log may be hostile: none of these takes longer than in proportion to a text.
_WORD = re.compile(r"\w{2,}")
_CODE = re.compile(r"```[^\n`]{0,80}\n(.*?)(?:```|\Z)", re.DOTALL)
_EXIT = re.compile(r"\s*exitcode:\s*(-?\d+)")
_NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(\w*)")
_URL = re.compile(r"https?://[^\s<>()\"'`\]]+")
_NAME = re.compile(r"(?<=[a-z0-9,;] )[A-Z][a-z]{2,}(?:-[A-Z][a-z]+)*(?!\w)")
_QUOTED = re.compile(r"[\"“]([^\"“”\n]{3,80})[\"”]")


@dataclass(frozen=True)
class Vocabulary:
    """Word lists, in lower case: marks of actions in a text.

    Attributes:
        failure: The words in the output of a tool that failed.
        nothing: The words in the output of a tool that had nothing to do or found nothing.
        invention: The words in a step that makes data up.
        earlier: The words in a step that tells of an earlier attempt.
    """

    failure: tuple[str, ...]
    nothing: tuple[str, ...]
    invention: tuple[str, ...]
    earlier: tuple[str, ...]


@cache
def vocabulary() -> Vocabulary:
    """Load the shipped word lists."""
    text = files(__package__).joinpath("words.json").read_text(encoding="utf-8")
    return Vocabulary(**{key: tuple(row) for key, row in json.loads(text).items()})


def marks(text: str, words: Iterable[str]) -> int:
    """Count the words of a list in a text."""
    low = text.casefold()
    return sum(low.count(word) for word in words)


def bag(text: str) -> Bag:
    """Count each word of a text."""
    return Counter(_WORD.findall(text.casefold()))


def cosine(first: Bag, other: Bag) -> float:
    """Compute the likeness of two bags of words, from 0 to 1."""
    if not first or not other:
        return 0.0
    # The loop runs over the shorter bag: this is called for each pair of neighbours in a log.
    small, large = (first, other) if len(first) <= len(other) else (other, first)
    dot = sum(count * large[word] for word, count in small.items() if word in large)
    norm = sqrt(sum(n * n for n in first.values()) * sum(n * n for n in other.values()))
    return dot / norm


def code_of(text: str) -> str:
    """Extract the code in fences."""
    return "\n".join(_CODE.findall(text))


def prose_of(text: str) -> str:
    """Remove the code in fences."""
    return _CODE.sub("\n", text)


def outcome(text: str) -> Literal["failed", "nothing", "done"]:
    """Classify the output of a tool or worker."""
    # An exit code other than 0 is certain. 0 says little: scripts catch errors and print them.
    code = _EXIT.match(text)
    if code is not None and code[1].strip("-0"):
        return "failed"
    # Words for nothing go first: they may stand beside words for a failure.
    words = vocabulary()
    if marks(text, words.nothing):
        return "nothing"
    return "failed" if marks(text, words.failure) else "done"


# --- facts ---


def facts(text: str) -> dict[str, DataType]:
    """Extract facts with types, in order of appearance within each sort."""
    fact_types: dict[str, DataType] = {}
    for number, suffix in _NUMBER.findall(text):
        plain = number.replace(",", "")
        # One digit is in every list, and `3rd` or `10km` is no plain number.
        if not suffix and sum(char.isdigit() for char in plain) >= 2:
            fact_types[plain.rstrip("0").rstrip(".") if "." in plain else plain] = "number"
    for pattern in (_URL, _QUOTED, _NAME):
        for fact in pattern.findall(text):
            fact_types.setdefault(fact.rstrip(".,;:").casefold(), "text")
    return fact_types


def data_flow(conversation: Conversation) -> list[DataEdge]:
    """List the edges by which data flow: the recorded lineage, or facts in texts."""
    if conversation.lineage is not None:
        return [*conversation.lineage]
    latest: dict[str, int] = {}
    edges: list[DataEdge] = []
    for step in conversation.steps:
        held = facts(step.text)
        edges += [
            DataEdge(latest[fact], step.number, fact, kind)
            for fact, kind in held.items()
            if fact in latest
        ]
        # After the edges: a fact does not flow from a step to itself.
        latest.update(dict.fromkeys(held, step.number))
    return edges


def chain(edges: Iterable[tuple[int, int]], start: int, end: int) -> tuple[int, ...]:
    """Find the shortest way along edges between two steps; without a way only the first step.

    Args:
        edges: The sources and targets of edges.
        start: The step at which the way begins.
        end: The step at which it ends.
    """
    following: dict[int, dict[int, None]] = {}
    for source, target in edges:
        following.setdefault(source, {})[target] = None
    before: dict[int, int] = {}
    waiting = deque([start])
    while waiting and end not in before:
        step = waiting.popleft()
        for target in following.get(step, ()):
            if target not in before and target != start:
                before[target] = step
                waiting.append(target)
    path = [end] if end in before else [start]
    while path[-1] in before:
        path.append(before[path[-1]])
    return tuple(reversed(path))


# --- loops ---

ALIKE = 0.6
"""Closer texts say the same."""


@dataclass(frozen=True, slots=True)
class LoopGroup:
    """Successive rounds of a planner asking a worker, without any news.

    Attributes:
        planner_steps: The steps of the planner.
        executor_steps: The steps of the worker, and of tools.
        same_command: Whether the planner says the same each time.
        failed: Whether an answer failed.
        failing: The steps of the worker that failed.
        repeating: The planner's steps that repeat a command that has failed.
    """

    steps: tuple[int, ...]
    planner_steps: tuple[int, ...]
    executor_steps: tuple[int, ...]
    same_command: bool
    failed: bool
    failing: tuple[int, ...]
    repeating: tuple[int, ...]

    @property
    def repetition(self) -> int:
        """First step of the planner with a repeated failed command; else the first step."""
        return min(self.repeating, default=self.planner_steps[0])

    @property
    def failure(self) -> int:
        """First failing step of the worker; else the first step."""
        return min(self.failing, default=self.executor_steps[0])

    @property
    def responsible(self) -> int:
        """Step to blame for the loop."""
        return self.repetition if self.same_command else self.failure


@dataclass(frozen=True, slots=True)
class _Round:
    planner: Sequence[ConversationStep]
    answer: Sequence[ConversationStep]
    command: Bag
    result: Bag
    failing: tuple[int, ...]

    @property
    def speakers(self) -> tuple[str, str]:
        return self.planner[0].agent, self.answer[0].agent


def loops(conversation: Conversation) -> list[LoopGroup]:
    """Find the loop groups of a conversation."""
    groups: list[LoopGroup] = []
    current: list[_Round] = []
    for turn in _rounds(conversation):
        if current and not _goes_on(current, turn):
            groups += _group(current)
            current = []
        current.append(turn)
    return groups + list(_group(current))


def _rounds(conversation: Conversation) -> Iterator[_Round]:
    """Pair the steps of a planner with the next answers, round by round."""
    planner: list[ConversationStep] = []
    answer: list[ConversationStep] = []
    for step in (*conversation.speaking_steps, None):
        if step is None or step.role in ("planner", "outside"):
            if planner and answer:
                # An answer without a result leaves the planner where it was, as a failure does.
                failing = tuple(a.number for a in answer if outcome(a.text) != "done")
                yield _Round(
                    tuple(planner), tuple(answer), bag(planner[-1].text),
                    bag("\n".join(a.text for a in answer)), failing,
                )  # fmt: skip
                planner, answer = [], []
            if step is not None and step.role == "planner":
                planner = [*(planner if planner and planner[0].agent == step.agent else []), step]
        elif planner:
            answer.append(step)


def _goes_on(current: Sequence[_Round], turn: _Round) -> bool:
    """Report whether a round belongs to the loop of the rounds before."""
    last = current[-1]
    is_alike = cosine(last.result, turn.result) > ALIKE
    has_failed = bool(turn.failing) and (len(current) > 1 or bool(last.failing))
    return turn.speakers == last.speakers and (is_alike or has_failed)


def _group(rounds: Sequence[_Round]) -> Iterator[LoopGroup]:
    if len(rounds) < 2:
        return
    planner = tuple(step.number for turn in rounds for step in turn.planner)
    executor = tuple(step.number for turn in rounds for step in turn.answer)
    repeats = [(a, b, cosine(a.command, b.command) > ALIKE) for a, b in pairwise(rounds)]
    repeating = tuple(b.planner[-1].number for a, b, is_same in repeats if a.failing and is_same)
    failing = tuple(number for turn in rounds for number in turn.failing)
    yield LoopGroup(
        tuple(sorted((*planner, *executor))), planner, executor,
        all(is_same for *_, is_same in repeats), bool(failing), failing, repeating,
    )  # fmt: skip
