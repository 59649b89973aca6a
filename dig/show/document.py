"""The document of a diagnosis: `digmon-diagnosis`, version 1; only `graph` may be missing.

    records -> Failure -> Candidate -> Hypothesis -> verdict

A failure says that a run failed, a candidate which agent may be at fault and where, a hypothesis
what would have helped, a verdict whether experiments confirm it. Each names the records or steps
that show what it claims.

    diagnosis = Diagnosis.from_json(path.read_text())
    print(diagnosis.answer.agent if diagnosis.answer else diagnosis.goal.why)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import SkipJsonSchema

from dig._util.text import first_wrong, name
from dig._version import __version__
from dig.errors import SettingsError
from dig.traces.journal.journal import SIDE
from dig.traces.journal.reader import trace_path
from dig.traces.replay.kinds import MOST_INTERVENTIONS, in_words

from .cause import CONCEPT, STRICT, KnownCause, SuspectedPlace, TriedChange
from .cause import Evidence as Evidence

Confidence = Literal["high", "medium", "low"]
StageStatus = Literal["done", "failed", "skipped"]
FailureKind = Literal["no-answer", "bad-answer", "finding", "timeout", "complaint"]
Status = Literal["origin", "propagated", "recovered", "open"]
Verdict = Literal["validated", "partial", "refuted", "inconclusive"]
Reason = Literal[
    "flaky", "not carried out", "mixed", "cannot be replayed", "budget", "interrupted"
]  # fmt: skip
"""Why a verdict is `inconclusive`."""

# --- the concepts, which suspects and experiments make: plain dataclasses, which pydantic reads ---


@dataclass(frozen=True, slots=True)
class Failure:
    """A reason why a run is not good.

    Attributes:
        kind: `no-answer`, `bad-answer`, `finding`, `timeout` or `complaint`.
        about: An agent, an event, a pattern, or `outcome`.
        evidence: The records that show it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CONCEPT

    kind: FailureKind
    about: str
    evidence: tuple[Evidence, ...]

    def __post_init__(self) -> None:
        """Check that there is evidence.

        Raises:
            SettingsError: There is none.
        """
        _check_evidence(f"the failure {self.kind!r} of {self.about!r}", self.evidence)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The activations of a run that try to solve a problem by one plan.

    Attributes:
        id: `p1`, `p2`, ..., or the name that a model gave it.
        plan: The activation that made the plan; ``None``, if no activation took the problem on.
        activations: Its activations, in the order of their start.
        accepted: The accepted final event that one of them generated, if there is one.
        ended: The end of the attempt: `accepted`, `bounced`, `no answer`, or `cut off` with the
            trace.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CONCEPT

    id: str
    plan: str | None
    activations: tuple[str, ...]
    accepted: str | None
    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A suspected place of a run.

    Attributes:
        rank: Its place in the order of a document, from 1 on; 0: it is in none yet.
        id: `c1`, `c2`, ...
        step: The step of the source; ``None``, if the place is no activation and no message.
        t: The first record of the place; ``None`` in a conversation.
        until: Its last record; ``None``: the end of the run.
        activation, event: The activation or the message that the place is, if it is one.
        share: Its weight by the sum of the weights of all candidates; no probability.
        status: `origin` (nothing before it explains it), `propagated` (another candidate explains
            it), `recovered` (it was put right later) or `open` (not decided).
        mechanism: The mechanism of the failure, in a word; ``None``: unknown.
        subtask: The subtask of a hierarchical graph that it belongs to.
        by: The suspects that named it, or `person`.
        evidence: The records or steps that speak for it.
        is_certain: Whether what speaks for it can hardly be the doing of another agent; the
            document tells it by the confidence of its answer alone.
    """

    __pydantic_config__: ClassVar[ConfigDict] = CONCEPT

    rank: int = 0
    id: str
    agent: str
    step: int | None = None
    t: int | None = None
    until: int | None = None
    activation: str | None = None
    event: str | None = None
    share: float
    status: Status = "open"
    mechanism: str | None = None
    subtask: str | None = None
    by: tuple[str, ...]
    evidence: Annotated[tuple[Evidence, ...], Field(min_length=1)]
    is_certain: Annotated[SkipJsonSchema[bool], Field(exclude=True)] = field(
        default=False, compare=False
    )

    def __post_init__(self) -> None:
        """Check that it has evidence, and that its share is one.

        Raises:
            SettingsError: The candidate has none, or the share is not from 0 to 1.
        """
        _check_evidence(f"the candidate {self.id!r}", self.evidence)
        if not 0 <= self.share <= 1:
            raise SettingsError(
                f"the share of the candidate {self.id!r} must be from 0 to 1, got {self.share!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A claim that can be tried: with a change at a place, the run would be good.

    Attributes:
        id: `h1`, `h2`, ...
        candidate: The candidate whose place it is about.
        interventions: The changes of the recorded run, three at most, each with `kind` and `at`.
        attempt: The attempt that it is about, if that is known.
        expects: The acts that must happen in the fork for the change to count as carried out.
    """

    id: str
    candidate: str
    interventions: tuple[Mapping[str, Any], ...]
    attempt: str | None = None
    expects: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check the number of interventions.

        Raises:
            SettingsError: There is none, or there are more than `MOST_INTERVENTIONS`.
        """
        if not 1 <= len(self.interventions) <= MOST_INTERVENTIONS:
            raise SettingsError(
                f"the hypothesis {self.id!r} must have 1 to {MOST_INTERVENTIONS} interventions, "
                f"got {len(self.interventions)}"
            )


def _check_evidence(claim: str, evidence: tuple[Evidence, ...]) -> None:
    if not evidence:
        raise SettingsError(f"{claim} needs evidence: a record or a step, with a sentence")


# --- the document around them ---


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, **STRICT)


class SourceRow(_Part):
    """The run or the conversation that is explained."""

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


class AnswerRow(_Part):
    """The first candidate, in short.

    `probability` says how often such an answer names the agent at fault, by runs with known causes;
    null: that was not measured for this sort of answer.
    """

    agent: str
    step: int | None
    t: int | None
    activation: str | None
    mechanism: str | None
    confidence: Confidence
    probability: float | None
    reason: str


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

    `replays` were made; `found` were there already, as this user had made them before. Of the
    `model_calls` the tokens of `uncounted_calls` are unknown.
    """

    replays: int = 0
    found: int = 0
    until_validated: int | None = None
    seconds: float = 0.0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    uncounted_calls: int = 0
    usd: float | None = None


class Diagnosis(_Part):
    """Why a run failed, and how that is known."""

    format: Literal["digmon-diagnosis"] = "digmon-diagnosis"
    version: Literal[1] = 1
    dig: str = __version__
    source: SourceRow
    goal: GoalRow
    failures: tuple[Failure, ...]
    attempts: tuple[Attempt, ...]
    method: str
    model: str | None
    answer: AnswerRow | None
    candidates: tuple[Candidate, ...]
    chain: tuple[int, ...]
    hypotheses: tuple[HypothesisRow, ...]
    fix: str | None
    confidence: Literal["verified", "suspected", "unknown"]
    stages: tuple[StageRow, ...]
    cost: CostRow
    notes: tuple[str, ...]
    graph: dict[str, Any] | None = None

    def to_json(self) -> str:
        """Return the document on a line; the key `graph` is left out without a graph."""
        return self.model_dump_json(exclude={"graph"} if self.graph is None else None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a diagnosis from a document.

        Raises:
            SettingsError: The text is no diagnosis; the message names the place.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            place, why = first_wrong(error)
            raise SettingsError(f"this is no diagnosis: {place or 'the text'}: {why}") from None

    def hypothesis(self, name: str | None) -> HypothesisRow | None:
        """Return the hypothesis with an id."""
        return next((each for each in self.hypotheses if each.id == name), None)


def forks_beside(run: Path) -> Path:
    """Return the directory of the forks of a run, by default."""
    trace = trace_path(run)
    if (trace.parent / SIDE).exists():
        return trace.parent / "why"
    return trace.with_name(f"{trace.name}.why")


def best_hypothesis(diagnosis: Diagnosis) -> HypothesisRow | None:
    """Return the hypothesis to be told: the fix, or the hypothesis with the most progress."""
    fix = diagnosis.hypothesis(diagnosis.fix)
    if fix is not None:
        return fix
    partial = [each for each in diagnosis.hypotheses if each.verdict == "partial"]
    if partial:
        return max(partial, key=lambda each: sum(p or 0 for p in each.arms.changed.progress))
    return diagnosis.hypotheses[0] if len(diagnosis.hypotheses) == 1 else None


def cause(diagnosis: Diagnosis) -> KnownCause | None:
    """Return the answer of a diagnosis for pages and figures of the run."""
    answer = diagnosis.answer
    if answer is None:
        return None
    places = []
    for candidate in diagnosis.candidates:
        agent, says = name(candidate.agent), candidate.evidence[0].says
        says = says if says.startswith(f"{agent} ") else f"{agent}: {says}"
        node = candidate.activation or candidate.event
        places.append(SuspectedPlace(node, candidate.t, says))
    changes = []
    for each in diagnosis.hypotheses:
        says = " and ".join(map(in_words, each.interventions))
        arms = (each.arms.changed, each.arms.unchanged)
        changes.append(TriedChange(says, each.verdict, *(n for a in arms for n in (a.good, a.n))))
    says = places[0].says if places else name(answer.agent)
    confidence = confidence_text(diagnosis, best_hypothesis(diagnosis))
    return KnownCause(
        answer.t, f"{says} ({confidence})", (*places,), diagnosis.chain, (*changes,),
        agent=name(answer.agent),
    )  # fmt: skip


def best_fork(diagnosis: Diagnosis, forks: Path) -> Path | None:
    """Return the first fork with the most helpful change, if it is there.

    Args:
        diagnosis: The diagnosis.
        forks: The directory of its forks.
    """
    best = best_hypothesis(diagnosis)
    return None if best is None else first_fork(best, forks)


def confidence_text(diagnosis: Diagnosis, best: HypothesisRow | None) -> str:
    """Return the confidence of a diagnosis with an answer, in words.

    Args:
        diagnosis: The diagnosis.
        best: The hypothesis to be told.
    """
    assert diagnosis.answer is not None
    if diagnosis.confidence == "verified":
        return "confirmed by experiment"
    if best is not None and best.verdict == "partial":
        return "confirmed in part by experiment"
    if {each.verdict for each in diagnosis.hypotheses} == {"refuted"}:
        return "suspected; no change that was tried confirms it"
    answer = diagnosis.answer
    if answer.probability is None:
        return f"suspected, confidence {answer.confidence}"
    # The word grades the lead over other candidates; beside a measured share it would contradict.
    return f"suspected; {100 * answer.probability:.0f} % of such answers are right"


def first_fork(hypothesis: HypothesisRow, forks: Path) -> Path | None:
    """Return the first fork with the changes, if it is there.

    Args:
        hypothesis: The hypothesis.
        forks: The directory of the forks.
    """
    names = hypothesis.arms.changed.forks
    return forks / names[0] if names and (forks / names[0] / SIDE).exists() else None
