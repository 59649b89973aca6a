"""A whole investigation, and the answer as a document.

    found = investigate(world, ServiceRules())
    print(found.frontier, found.to_json())

An investigation can stop after any step and go on from an `InvestigationCheckpoint`. Several orders
or samples give several frontiers, and `majority` the answer of most of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from inspect import isawaitable
from itertools import combinations
from typing import Any, Literal

from dig._util.text import first_wrong
from dig.errors import SettingsError

from .beliefs import Alert, Claim, JudgingPolicy, Label, LocalJudgement, NoAnswer, Window, World
from .controller import Controller, Course, Ended, LedgerLine
from .frontier import explanation, frontier, rank_entities

FORMAT = "digmon-investigation"

OnStep = Callable[[Controller, LedgerLine], None]
"""Is called after each step, when nothing is under way."""


@dataclass(frozen=True, slots=True)
class RankedEntity:
    """A possible cause, with a weight."""

    entity: str
    weight: float


@dataclass(frozen=True, slots=True)
class JudgedEntity:
    """A judged entity, with the last belief about the entity."""

    name: str
    label: Label
    contributing_factor: bool
    why: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlertExplained:
    """An alarm, and the path from the frontier to the alarm; empty if there is none."""

    alert: Alert
    explained: bool
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Votes:
    """The frontiers of several runs: `orders` of the start, or `samples` of a model.

    Attributes:
        by: What was varied.
        frontiers: The frontier of each run.
        agreement: The mean Jaccard index of two frontiers.
    """

    by: Literal["orders", "samples"]
    frontiers: tuple[tuple[str, ...], ...]
    agreement: float


@dataclass(frozen=True, slots=True)
class InvestigationCost:
    """The resources used by all runs together."""

    steps: int
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigation:
    """The answer.

    Attributes:
        name, sha256: The name of the world, and its checksum.
        policy: The name of the policy.
        messages: Whether neighbours were told of beliefs.
        window: The seconds that evidence counted of; ``None`` is no limit.
        ended: `converged`, `budget` or `stopped` (calls failed).
        converged: Whether nothing was left to judge.
        steps: The number of judgements.
        confidence: `frontier`; `guess` if the frontier is empty.
        frontier: The origins that no other origin explains.
        ranked: All entities that are not healthy, the likeliest cause first.
        entities: All entities that were judged.
        propagations: The links from the frontier to the alarms.
        claims: All links.
        alerts_explained: The alarms of the window.
        unexplained: The names of those that the frontier does not explain, with their entity.
        ledger: The steps.
        votes: The frontiers of several runs; ``None`` for one.
    """

    format: Literal["digmon-investigation"] = "digmon-investigation"
    version: Literal[1] = 1
    name: str
    sha256: str
    policy: str
    messages: bool
    window: tuple[float | None, float | None]
    ended: Ended
    converged: bool
    steps: int
    confidence: Literal["frontier", "guess"]
    frontier: tuple[str, ...]
    ranked: tuple[RankedEntity, ...]
    entities: tuple[JudgedEntity, ...]
    propagations: tuple[Claim, ...]
    claims: tuple[Claim, ...]
    alerts_explained: tuple[AlertExplained, ...]
    unexplained: tuple[str, ...]
    ledger: tuple[LedgerLine, ...]
    votes: Votes | None = None
    cost: InvestigationCost = field(default_factory=lambda: InvestigationCost(0))

    @property
    def answer(self) -> tuple[str, ...]:
        """The frontier; if empty, the best guess."""
        return self.frontier or tuple(entity.entity for entity in self.ranked[:1])

    def to_json(self) -> str:
        """The document on a single line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Investigation:
        """Read a document.

        Raises:
            SettingsError: It is none.
        """
        answer: Investigation = _validate(cls, text, "is no answer of an investigation")
        return answer


def document(controller: Controller, policy: str) -> Investigation:
    """The present answer of a controller.

    Args:
        controller: The controller.
        policy: The name of the policy.
    """
    beliefs, claims, world = controller.beliefs, controller.claims, controller.world
    origins = [name for name, belief in beliefs.items() if belief.label == "origin"]
    answer = frontier(claims, origins)
    facts = {name: world.evidence(name, controller.window) for name in beliefs}
    order = rank_entities(beliefs, claims, controller.alerts, facts)
    order.sort(key=lambda name: name not in answer)  # the rest stays in its order
    answer = [name for name in order if name in answer]
    # After the ranking: among paths of one length the likelier source wins.
    links, paths = explanation(claims, answer, controller.alerts)
    return Investigation(
        name=world.name, sha256=world.sha256, policy=policy,
        messages=controller.course.has_messages, window=_finite(controller.window),
        ended=controller.ended or "stopped", converged=controller.ended == "converged",
        steps=len(controller.ledger), confidence="frontier" if answer else "guess",
        frontier=tuple(answer),
        ranked=tuple(RankedEntity(name, beliefs[name].weight) for name in order),
        entities=tuple(
            JudgedEntity(name, belief.label, name in answer, belief.why, belief.evidence)
            for name, belief in sorted(beliefs.items())
        ),
        propagations=tuple(links), claims=tuple(claims),
        alerts_explained=tuple(
            AlertExplained(alert, alert in paths, tuple(paths.get(alert, ())))
            for alert in controller.alerts
        ),
        unexplained=tuple(
            f"{alert.entity}: {alert.name}" for alert in controller.alerts if alert not in paths
        ),
        ledger=tuple(controller.ledger),
        cost=InvestigationCost(len(controller.ledger)),
    )  # fmt: skip


def _finite(window: Window) -> tuple[float | None, float | None]:
    # JSON has no infinity.
    low, high = (None if abs(bound) == float("inf") else bound for bound in window)
    return low, high


def investigate(world: World, policy: JudgingPolicy, course: Course | None = None) -> Investigation:
    """Investigate a world with a policy that answers at once, rules for instance.

    Args:
        world: The world that is investigated.
        policy: Judges the entities.
        course: The course of the investigation; ``None``: the defaults.
    """
    controller = Controller(world, course)
    while (packet := controller.next()) is not None:
        controller.take(policy.judge(packet))
    return document(controller, policy.name)


async def judge_all(
    controller: Controller, policy: JudgingPolicy, on_step: OnStep = lambda *_: None
) -> None:
    """Judge until the end, by any policy.

    Args:
        controller: The controller.
        policy: Judges the entities; what it returns may be awaited.
        on_step: Is called after each step.
    """
    while (packet := controller.next()) is not None:
        answer = policy.judge(packet)
        line = controller.take(await answer if isawaitable(answer) else answer)
        if line is not None:
            on_step(controller, line)


# --- stopping and going on ---


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationCheckpoint:
    """The content of a checkpoint: the answers so far, and the investigation asked about."""

    format: Literal["digmon-investigation-checkpoint"] = "digmon-investigation-checkpoint"
    version: Literal[1] = 1
    world: str
    policy: str
    course: Course
    answers: tuple[LocalJudgement | NoAnswer, ...]


def checkpoint_bytes(controller: Controller, policy: str) -> bytes:
    """A checkpoint of a controller after a step."""
    state = InvestigationCheckpoint(
        world=controller.world.sha256, policy=policy, course=controller.course,
        answers=tuple(controller.answers),
    )  # fmt: skip
    return json.dumps(asdict(state)).encode()


def resume(world: World, policy: str, course: Course, checkpoint: bytes) -> Controller:
    """Restore a controller from a checkpoint.

    Args:
        world: The world that is investigated.
        policy: The name of the policy.
        course: The course; its budget may differ from that of the checkpoint.
        checkpoint: The return value of `checkpoint_bytes`.

    Raises:
        SettingsError: It was made of another world, policy or course, or is no checkpoint.
    """
    state = _validate(InvestigationCheckpoint, checkpoint, "is no checkpoint of an investigation")
    for setting, stored_value, own in (
        ("world", state.world, world.sha256),
        ("policy", state.policy, policy),
        # The budget may grow: it only decides when to stop.
        ("course", replace(state.course, budget=None), replace(course, budget=None)),
    ):
        if stored_value != own:
            raise SettingsError(
                f"the checkpoint was made with another {setting}: go on with the same one, or "
                "begin anew with another file"
            )
    controller = Controller(world, course)
    for answer in state.answers:
        # A smaller budget than that of the checkpoint ends the replay early.
        if controller.next() is None:
            break
        controller.take(answer)
    return controller


def stored_answers(answers: Mapping[str, LocalJudgement]) -> bytes:
    """The answers of a model as a file, to be asked for once only."""
    return json.dumps({key: asdict(judgement) for key, judgement in answers.items()}).encode()


def read_answers(data: bytes) -> dict[str, LocalJudgement]:
    """Read the answers from a file of `stored_answers`.

    Raises:
        SettingsError: It is no such file.
    """
    answers: dict[str, LocalJudgement] = _validate(
        dict[str, LocalJudgement], data, "has no answers of a model"
    )
    return answers


def _validate(shape: Any, text: str | bytes, otherwise: str) -> Any:
    from pydantic import TypeAdapter, ValidationError  # slow to import

    try:
        return TypeAdapter(shape).validate_json(text)
    except ValidationError as error:
        place, reason = first_wrong(error)
        raise SettingsError(f"it {otherwise}: {place or 'the whole'}: {reason}") from None


def schema() -> dict[str, Any]:
    """The JSON schemas of an answer, and of the files of a snapshot."""
    from pydantic import TypeAdapter

    from .snapshot import ALERTS, EVIDENCE, TOPOLOGY, TRUTH, EvidenceLine, SnapshotTruth, Topology

    shapes: Mapping[str, Any] = {
        FORMAT: Investigation, TOPOLOGY: Topology, ALERTS: list[Alert],
        f"a line of {EVIDENCE}": EvidenceLine, TRUTH: SnapshotTruth,
    }  # fmt: skip
    return {title: TypeAdapter(shape).json_schema() for title, shape in shapes.items()}


# --- several runs ---


def majority(runs: Sequence[Investigation], by: Literal["orders", "samples"]) -> Investigation:
    """The answer of most of several runs.

    An entity is answered if more than half of the frontiers have it. The rest of the document is
    that of the run whose frontier is nearest to this answer.

    Args:
        runs: The runs, at least one.
        by: What differs between them.
    """
    frontiers = [set(run.frontier) for run in runs]
    answer = most_common(frontiers)
    # Ledgers of several runs cannot be merged; one real run documents the answer.
    nearest = max(runs, key=lambda run: jaccard(set(run.frontier), answer))
    pairs = [jaccard(a, b) for a, b in combinations(frontiers, 2)]
    agreement = sum(pairs) / len(pairs) if pairs else 1.0
    return replace(
        nearest,
        frontier=tuple(sorted(answer)),
        confidence="frontier" if answer else "guess",
        entities=tuple(
            replace(entity, contributing_factor=entity.name in answer)
            for entity in nearest.entities
        ),
        votes=Votes(by, tuple(run.frontier for run in runs), agreement),
        cost=_total([run.cost for run in runs]),
    )


def most_common(frontiers: Sequence[Collection[str]]) -> set[str]:
    """The entities that are in more than half of the frontiers."""
    votes = Counter(name for frontier in frontiers for name in {*frontier})
    # Strictly more than half: with two runs, both must agree.
    return {name for name, count in votes.items() if count > len(frontiers) / 2}


def jaccard(a: set[str], b: set[str]) -> float:
    """The Jaccard index of two sets; 1 for two empty sets."""
    return len(a & b) / len(a | b) if a | b else 1.0


def _total(costs: Sequence[InvestigationCost]) -> InvestigationCost:
    usd = [cost.usd for cost in costs if cost.usd is not None]
    return InvestigationCost(
        sum(cost.steps for cost in costs),
        sum(cost.model_calls for cost in costs),
        sum(cost.input_tokens for cost in costs),
        sum(cost.output_tokens for cost in costs),
        sum(usd) if usd else None,
    )
