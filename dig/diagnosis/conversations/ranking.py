"""Ranks the steps of a conversation by shipped weights, where the weights apply.

    attribution = rank(conversation)
    print(attribution.candidates[0].agent, attribution.candidates[0].step)

One linear score, as shares of all candidates (a conditional logit). The weights were fitted by
`python -m bench.whowhen DIR --fit FILE`; using them needs no further package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from math import exp
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dig._util.files import read_file
from dig._util.text import counted, first_wrong, name
from dig.errors import SettingsError
from dig.show.document import Candidate, Confidence, CostRow, Evidence, StageRow

from .hierarchy import HierarchicalGraph, draft_graph
from .reading import Conversation, ConversationStep, fold_name
from .wording import FEATURES, features

NAME = "attribution"
MOST_WITH_PLANNER = 15
"""With a planner and more candidates the weights do not apply."""

NO_PROBABILITIES = "shares are the weights of a ranking, no probabilities"


class FeatureWeight(BaseModel):
    """The weight of a feature, and the range of values in training.

    Attributes:
        weight: By how much a step's score grows with a deviation of the feature.
        mean: Its mean over the training candidates.
        deviation: Its standard deviation.
        low: The smallest value in training.
        high: The largest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: float
    mean: float
    deviation: float = Field(gt=0)
    low: float
    high: float


class Weights(BaseModel):
    """Fitted weights.

    Attributes:
        command: The command that fitted them.
        data: The checksum of the labels that they were fitted to.
        cases: On how many cases.
        l2: The strength that held weights near 0.
        features: The weights by feature.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str
    data: str
    cases: int
    l2: float
    features: dict[str, FeatureWeight]

    @classmethod
    def read(cls, path: Path | None = None) -> Weights:
        """Read the weights of a file; ``None``: the shipped weights.

        Raises:
            SettingsError: The file cannot be read, or is none.
        """
        if path is None:
            return _load_shipped()
        try:
            return cls._parse(read_file(path).decode("utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path} cannot be read: {error}") from None

    @classmethod
    def _parse(cls, text: str, source: str) -> Weights:
        try:
            weights = cls.model_validate_json(text)
        except ValidationError as error:
            place, complaint = first_wrong(error)
            raise SettingsError(
                f"{source} holds no weights: {place or 'the text'}: {complaint}"
            ) from None
        unknown = [feature for feature in weights.features if feature not in FEATURES]
        if unknown:
            raise SettingsError(f"{source}: there is no feature {unknown[0]!r}")
        return weights

    def contributions(self, row: Mapping[str, float]) -> dict[str, float]:
        """Split the score of a candidate by feature."""
        return {
            feature: fit.weight * (row[feature] - fit.mean) / fit.deviation
            for feature, fit in self.features.items()
        }

    def shares(self, rows: Sequence[Mapping[str, float]]) -> list[float]:
        """Compute the shares of candidates; the sum is 1."""
        scores = [sum(self.contributions(row).values()) for row in rows]
        highest = max(scores)  # a difference cannot overflow `exp`
        powers = [exp(score - highest) for score in scores]
        return [power / sum(powers) for power in powers]

    def unknown_range(self, rows: Sequence[Mapping[str, float]]) -> bool:
        """Report whether most numbers of a conversation lie outside the range of training cases."""
        # A feature from 0 to 1 is in range always, so only the others tell.
        numbers = [
            (name, weight)
            for name, weight in self.features.items()
            if (weight.low, weight.high) != (0, 1)
        ]
        outside = sum(
            not all(weight.low <= row[name] <= weight.high for row in rows)
            for name, weight in numbers
        )
        return outside > len(numbers) / 2


@cache
def _load_shipped() -> Weights:
    text = files(__package__).joinpath("weights.json").read_text(encoding="utf-8")
    return Weights._parse(text, "weights.json")


@dataclass(frozen=True)
class Attribution:
    """Candidates of a conversation, with the reasons.

    Attributes:
        candidates: The candidates; the first is the answer.
        confidence: The lead of the first candidate.
        reason: Why it is the first.
        chain: The steps by which the failure went on.
        stages: The stages that were carried out.
        method: The method of the attribution.
        model: The language model that was asked, if one was.
        cost: The cost of the attribution.
    """

    candidates: tuple[Candidate, ...]
    confidence: Confidence
    reason: str
    chain: tuple[int, ...]
    graph: HierarchicalGraph
    stages: tuple[StageRow, ...]
    method: str = "structural"
    model: str | None = None
    cost: CostRow = field(default_factory=CostRow)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Ranked:
    """A step with a share of the blame.

    Attributes:
        parts: The contribution of each feature to its score, against the mean candidate.
        present: The features that speak for it because it has more of them, not less.
    """

    step: ConversationStep
    share: float
    parts: Mapping[str, float]
    present: Sequence[str]

    @property
    def mechanism(self) -> str | None:
        """Group of features with the largest lead over the mean candidate."""
        groups: dict[str, float] = {}
        for feature, part in self.parts.items():
            group = FEATURES[feature].group
            groups[group] = groups.get(group, 0.0) + part
        best = max(groups, key=lambda group: groups[group], default=None)
        return best if best is not None and groups[best] > 0 else None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Sentences about the two strongest features of the step."""
        strongest = sorted(self.present, key=lambda feature: -self.parts[feature])[:2]
        says = [FEATURES[feature].says for feature in strongest]
        says = says or [f"{name(self.step.agent)} speaks here"]
        return tuple(Evidence(None, sentence, step=self.step.number) for sentence in says)

    def candidate(self, rank: int, graph: HierarchicalGraph) -> Candidate:
        return Candidate(
            id=f"c{rank}", agent=self.step.agent, share=self.share, evidence=self.evidence,
            by=(NAME,), mechanism=self.mechanism, step=self.step.number,
            subtask=graph.subtask_of(self.step.number).id,
        )  # fmt: skip


def rank(conversation: Conversation, weights: Weights | None = None) -> Attribution:
    """Rank the candidates of a conversation by weights.

    Args:
        conversation: The conversation.
        weights: The weights; ``None``: the shipped ones.
    """
    weights = weights or Weights.read()
    rows, steps = features(conversation), conversation.candidates
    graph = draft_graph(conversation)
    skip_reason = _inapplicable(conversation, weights, rows)
    entries = _in_loops(_rank_steps(steps, rows, weights), graph)
    answer = _answer(entries) if skip_reason is None else _floor(entries)
    ordered = [answer, *sorted((entry for entry in entries if entry is not answer), key=_order)]
    candidates = tuple(entry.candidate(n, graph) for n, entry in enumerate(ordered, 1))
    stages, notes = [_stage("features"), _stage("ranking", skip_reason)], [NO_PROBABILITIES]
    if skip_reason is None:
        confidence = confidence_of(candidates)
        says = " and ".join(evidence.says for evidence in answer.evidence)
        reason = f"Of {counted(len(entries), 'step')} this one ranks first: {says}."
    else:
        # The best rules of thumb for agent and step may disagree about who spoke the last step.
        is_led = answer.step.role == "planner"
        step = conversation.steps[-1].number if is_led else answer.step.number
        rule = "the agent that leads, and the last step" if is_led else "the last worker to speak"
        says = f"by a rule of thumb: {rule}"
        first = replace(
            candidates[0], step=step, subtask=graph.subtask_of(step).id, mechanism=None,
            evidence=(Evidence(None, says, step=step),),
        )  # fmt: skip
        candidates = (first, *candidates[1:])
        confidence, reason = "low", f"The ranking is no better here than a floor: {skip_reason}. "
        reason += f"So this is the floor's answer, {says}."
        stages.append(_stage("floor"))
        notes.append(f"no better answer is known than that of the floor, {says}")
    return Attribution(
        candidates, confidence, reason, graph.chain(answer.step.number), graph, tuple(stages),
        notes=tuple(notes),
    )  # fmt: skip


def _stage(name_: str, skip_reason: str | None = None) -> StageRow:
    is_done = skip_reason is None
    return StageRow(
        name=name_, by="structural", status="done" if is_done else "skipped", why=skip_reason
    )


def confidence_of(candidates: Sequence[Candidate]) -> Confidence:
    """Grade `medium` if the first share is at least twice the second; no sign is certain here."""
    second = candidates[1].share if len(candidates) > 1 else 0.0
    return "medium" if candidates[0].share >= 2 * second else "low"


def _rank_steps(
    steps: Sequence[ConversationStep], rows: Sequence[Mapping[str, float]], weights: Weights
) -> list[_Ranked]:
    parts = [weights.contributions(row) for row in rows]
    means = {
        feature: sum(row[feature] for row in parts) / len(parts) for feature in weights.features
    }
    entries = []
    for step, share, row in zip(steps, weights.shares(rows), parts, strict=True):
        above = {feature: row[feature] - means[feature] for feature in row}
        present = [f for f, part in above.items() if part > 0 and weights.features[f].weight > 0]
        entries.append(_Ranked(step, share, above, present))
    return entries


def _order(entry: _Ranked) -> tuple[float, int]:
    return -entry.share, entry.step.number


def _answer(entries: Iterable[_Ranked]) -> _Ranked:
    """Choose the likeliest step of the agent with the largest sum of shares."""
    # Agents first: the blame of a busy agent is spread over many steps.
    by_agent: dict[str, list[_Ranked]] = {}
    for entry in entries:
        by_agent.setdefault(fold_name(entry.step.agent), []).append(entry)
    best = max(by_agent.values(), key=lambda group: sum(entry.share for entry in group))
    return min(best, key=_order)


def _floor(entries: Sequence[_Ranked]) -> _Ranked:
    """Choose the last step of the agent that leads, or else the last step of a worker."""
    by_role = {entry.step.role: entry for entry in entries}
    return by_role.get("planner") or by_role.get("worker") or entries[-1]


def _in_loops(entries: Sequence[_Ranked], graph: HierarchicalGraph) -> list[_Ranked]:
    """Swap shares to give the responsible step of a loop the largest share in the loop."""
    shares = {entry.step.number: entry.share for entry in entries}
    for loop in graph.loops:
        inside = [number for number in loop.steps if number in shares]
        if loop.failed and loop.responsible in inside:
            largest = max(inside, key=lambda number: (shares[number], -number))
            # A swap, not a raise: the sum of shares stays 1.
            first, second = shares[loop.responsible], shares[largest]
            shares[loop.responsible], shares[largest] = second, first
    return [replace(entry, share=shares[entry.step.number]) for entry in entries]


def _inapplicable(
    conversation: Conversation, weights: Weights, rows: Sequence[Mapping[str, float]]
) -> str | None:
    """Explain why the weights, from short group chats, do not apply; ``None``: they do."""
    candidates, count = conversation.candidates, len(conversation.candidates)
    if count > MOST_WITH_PLANNER and any(step.role == "planner" for step in candidates):
        return f"a planner leads {counted(count, 'step')}; the weights come from short group chats"
    if weights.unknown_range(rows):
        return "most features lie outside the range of the cases that the weights come from"
    return None
