"""The document of a diagnosis: `digmon-diagnosis`, version 1; only `graph` may be missing.

found = Diagnosis.from_json(path.read_text())
print(found.answer.agent if found.answer else found.goal.why)
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dig._util.text import first_wrong, name
from dig._version import __version__
from dig.errors import SettingsError
from dig.traces.journal.journal import SIDE
from dig.traces.journal.reader import trace_path
from dig.traces.replay.kinds import in_words

from .cause import KnownCause, SuspectedPlace, TriedChange

Confidence = Literal["high", "medium", "low"]
StageStatus = Literal["done", "failed", "skipped"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class EvidenceRow(_Part):
    """What a record or a step shows."""

    step: int | None
    t: int | None
    says: str = Field(max_length=400)


class SourceRow(_Part):
    """What is explained."""

    name: str
    kind: Literal["run", "trace", "conversation"]
    sha256: str
    records: int | None
    steps: int


class GoalRow(_Part):
    """Whether it is good, and by which test."""

    test: str
    good: bool
    progress: float | None
    why: str


class FailureRow(_Part):
    """Something by which it is not good."""

    kind: FailureKind
    about: str
    evidence: tuple[EvidenceRow, ...]


class AttemptRow(_Part):
    """A part of the run that tries to solve the problem by one plan."""

    id: str
    plan: str | None
    activations: tuple[str, ...]
    accepted: str | None
    ended: str


class AnswerRow(_Part):
    """The first candidate, in short."""

    agent: str
    step: int | None
    t: int | None
    activation: str | None
    mechanism: str | None
    confidence: Confidence
    reason: str


class CandidateRow(_Part):
    """A place that may be at fault."""

    rank: int
    id: str
    agent: str
    step: int | None
    t: int | None
    until: int | None
    activation: str | None
    event: str | None
    share: float
    status: Status
    mechanism: str | None
    subtask: str | None
    by: tuple[str, ...]
    evidence: tuple[EvidenceRow, ...] = Field(min_length=1)

    @classmethod
    def of(cls, rank: int, one: Any) -> Self:
        """The row of a candidate.

        Args:
            rank: Its place in the order, from 1 on.
            one: The candidate.
        """
        evidence = tuple(EvidenceRow(**asdict(shown)) for shown in one.evidence)
        row = {**asdict(one), "evidence": evidence}
        del row["is_certain"]  # the confidence of the answer tells
        return cls(rank=rank, **row)


class ChangedArm(_Part):
    """The replays with a change."""

    n: int
    good: int
    fulfilled: int
    progress: tuple[float | None, ...]
    forks: tuple[str, ...]


class UnchangedArm(_Part):
    """The replays without it, from the same record."""

    n: int
    good: int
    progress: tuple[float | None, ...]
    forks: tuple[str, ...]


class ArmRows(_Part):
    """Both arms of a hypothesis."""

    changed: ChangedArm
    unchanged: UnchangedArm


class HypothesisRow(_Part):
    """What was tried, and what came of it."""

    id: str
    candidate: str
    attempt: str | None
    interventions: tuple[dict[str, Any], ...]
    expects: dict[str, Any] | None
    verdict: Verdict
    reason: Reason | None
    arms: ArmRows
    p: float | None
    onset: int | None
    no_return: int | None


class StageRow(_Part):
    """Something that was done for the diagnosis."""

    name: str
    by: Literal["structural", "model", "replay"]
    status: StageStatus
    why: str | None


class CostRow(_Part):
    """What this call alone has cost; the replays until a hypothesis was validated, too.

    `replays` were made; `found` were there already, as this user had made them before.
    """

    replays: int = 0
    found: int = 0
    until_validated: int | None = None
    seconds: float = 0.0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None


class Diagnosis(_Part):
    """Why a run failed, and how that is known."""

    format: Literal["digmon-diagnosis"] = "digmon-diagnosis"
    version: Literal[1] = 1
    dig: str = __version__
    source: SourceRow
    goal: GoalRow
    failures: tuple[FailureRow, ...]
    attempts: tuple[AttemptRow, ...]
    method: str
    model: str | None
    answer: AnswerRow | None
    candidates: tuple[CandidateRow, ...]
    chain: tuple[int, ...]
    hypotheses: tuple[HypothesisRow, ...]
    fix: str | None
    confidence: Literal["verified", "suspected", "unknown"]
    stages: tuple[StageRow, ...]
    cost: CostRow
    notes: tuple[str, ...]
    graph: dict[str, Any] | None = None

    def to_json(self) -> str:
        """The document, on one line; it has a key `graph` only if there is one."""
        return self.model_dump_json(exclude={"graph"} if self.graph is None else None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The diagnosis that a document describes.

        Raises:
            SettingsError: The text is no diagnosis; the message names the place.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            place, why = first_wrong(error)
            raise SettingsError(f"this is no diagnosis: {place or 'the text'}: {why}") from None

    def hypothesis(self, name: str | None) -> HypothesisRow | None:
        """The hypothesis with this id."""
        return next((one for one in self.hypotheses if one.id == name), None)


FailureKind = Literal["no-answer", "bad-answer", "finding", "timeout", "complaint"]


Status = Literal["origin", "propagated", "recovered", "open"]


Verdict = Literal["validated", "partial", "refuted", "inconclusive"]


Reason = Literal[
    "flaky", "not carried out", "mixed", "cannot be replayed", "budget", "interrupted"
]  # fmt: skip
"""Why a verdict is `inconclusive`."""


def forks_beside(run: Path) -> Path:
    """The directory of the forks of a run, unless a user says otherwise."""
    trace = trace_path(run)
    if (trace.parent / SIDE).exists():
        return trace.parent / "why"
    return trace.with_name(f"{trace.name}.why")


def _best(found: Diagnosis) -> HypothesisRow | None:
    """The hypothesis to be told: the fix, or the one that came furthest."""
    fixed = found.hypothesis(found.fix)
    if fixed is not None:
        return fixed
    partial = [one for one in found.hypotheses if one.verdict == "partial"]
    if partial:
        return max(partial, key=lambda one: sum(p or 0 for p in one.arms.changed.progress))
    return next(iter(found.hypotheses), None) if len(found.hypotheses) == 1 else None


def cause(found: Diagnosis) -> KnownCause | None:
    """The answer of a diagnosis for pages and figures of its run."""
    if found.answer is None:
        return None
    places = tuple(
        SuspectedPlace(one.activation or one.event, one.t, _suspicion(one))
        for one in found.candidates
    )
    shown = places[0].says if places else name(found.answer.agent)
    return KnownCause(
        found.answer.t,
        f"{shown} ({_how(found, _best(found))})",
        places,
        found.chain,
        tuple(map(_tried_change, found.hypotheses)),
    )


def _suspicion(one: CandidateRow) -> str:
    """The agent of a candidate, and the first thing that speaks against it."""
    agent, says = name(one.agent), one.evidence[0].says
    return says if says.startswith(f"{agent} ") else f"{agent}: {says}"


def _tried_change(one: HypothesisRow) -> TriedChange:
    changed, unchanged = one.arms.changed, one.arms.unchanged
    says = " and ".join(map(in_words, one.interventions))
    return TriedChange(says, one.verdict, changed.good, changed.n, unchanged.good, unchanged.n)


def best_fork(found: Diagnosis, forks: Path) -> Path | None:
    """The first fork with the change that helps most, if it is there.

    Args:
        found: The diagnosis.
        forks: The directory of its forks.
    """
    best = _best(found)
    return None if best is None else _fork(best, forks)


def _how(found: Diagnosis, best: HypothesisRow | None) -> str:
    """The confidence of a diagnosis that has an answer, in words."""
    assert found.answer is not None
    if found.confidence == "verified":
        return "confirmed by experiment"
    if best is not None and best.verdict == "partial":
        return "confirmed in part by experiment"
    return f"suspected, confidence {found.answer.confidence}"


def _fork(best: HypothesisRow, forks: Path) -> Path | None:
    """The first fork with the changes, if it is there."""
    made = best.arms.changed.forks
    return forks / made[0] if made and (forks / made[0] / SIDE).exists() else None
