"""Decides from the testimony of a model: the model testifies, pure code decides.

The candidates are the steps that deviate. Each is held against what the model says about it: a
cause upstream (`local`), a loop (`control`), a datum that was spoilt before it (`data`), a later
step that put it right (`reversal`). Testimony about steps that were not shown is ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dig._util.text import name
from dig.diagnosis.conversations.hierarchy import HierarchicalGraph
from dig.diagnosis.conversations.reading import Conversation, fold_name
from dig.show.document import Status

Responsible = Literal["none", "planner", "executor"]


@dataclass(frozen=True, slots=True)
class Deviations:
    """Deviating subtasks, agents and steps, by testimony.

    Attributes:
        subtasks: The ids of subtasks.
        agents: Subtasks with an agent that deviates in them.
    """

    subtasks: frozenset[str] = frozenset()
    agents: frozenset[tuple[str, str]] = frozenset()
    steps: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Screened:
    """Testimony about a candidate.

    Attributes:
        upstream: The earlier steps that explain it.
        loop: Whether the candidate is part of a loop.
        responsible: The agent that is responsible for the loop.
        spoilt_at: The step at which its data were first spoilt.
        recovered_at: The later step that put it right.
    """

    upstream: tuple[int, ...] = ()
    loop: bool = False
    responsible: Responsible = "none"
    spoilt_at: int | None = None
    recovered_at: int | None = None


@dataclass(frozen=True)
class ModelTestimony:
    """Everything a model says about a conversation.

    Attributes:
        deviations: The steps that deviate.
        screened: The words about each candidate.
        verdict: The agent and the step that the model would answer.
    """

    deviations: Deviations
    screened: Mapping[int, Screened] = field(default_factory=dict)
    verdict: tuple[str, int] | None = None


@dataclass(frozen=True)
class Decided:
    """The decision about a conversation.

    Attributes:
        step: The answer; ``None``: the testimony gives none.
        notes: The parts of the answer that were ignored.
    """

    step: int | None
    statuses: Mapping[int, Status]
    notes: Sequence[str] = ()


def can_be_blamed(conversation: Conversation, step: int | None) -> bool:
    """Report whether a step belongs to a planner or worker, or is a candidate for want of both."""
    if step is None or not 0 <= step < len(conversation.steps):
        return False
    message = conversation.steps[step]
    return message.role in ("planner", "worker") or message in conversation.candidates


def blame_complaint(conversation: Conversation, step: int) -> str | None:
    """Complain about an impossible answer; ``None``: there is no complaint.

    Args:
        conversation: The conversation.
        step: The number of the step.
    """
    if can_be_blamed(conversation, step):
        return None
    return f"step {step} is not there, or is not one of a planner or worker"


def speaker_notes(conversation: Conversation, agent: str, step: int) -> list[str]:
    """Note a step of another agent than the model says; the speaker is the answer.

    Args:
        conversation: The conversation.
        agent: The agent that the model names.
        step: The number of the step.
    """
    speaker = conversation.steps[step].agent
    if fold_name(agent) == fold_name(speaker):
        return []
    return [f"the model answered {name(agent)}, but step {step} is of {name(speaker)}"]


def deviating(
    conversation: Conversation, graph: HierarchicalGraph, deviations: Deviations
) -> tuple[int, ...]:
    """List the deviating steps of deviating agents in deviating subtasks.

    If there is none, the condition on agents is dropped, then the one on subtasks.

    Args:
        conversation: The conversation.
        graph: Its graph.
        deviations: The steps that deviate.
    """
    steps = [step for step in sorted(deviations.steps) if can_be_blamed(conversation, step)]
    agents = {(subtask, fold_name(agent)) for subtask, agent in deviations.agents}
    in_subtasks = [step for step in steps if graph.subtask_of(step).id in deviations.subtasks]
    in_agents = [
        step
        for step in in_subtasks
        if (graph.subtask_of(step).id, fold_name(conversation.steps[step].agent)) in agents
    ]
    return tuple(in_agents or in_subtasks or steps)


def decide(
    conversation: Conversation, graph: HierarchicalGraph, testimony: ModelTestimony
) -> Decided:
    """Decide about a conversation by testimony.

    Args:
        conversation: The conversation.
        graph: Its graph.
        testimony: The testimony.
    """
    candidates = deviating(conversation, graph, testimony.deviations)
    if not candidates:
        return Decided(None, {}, ("no step was said to deviate",))
    decision = _Deciding(conversation, graph, testimony, candidates)
    for step in candidates:
        decision.judge(step)
    decision.recover()
    answer = _answer(decision.statuses, testimony.verdict)
    if answer is not None and testimony.verdict is not None and testimony.verdict[1] == answer:
        decision.notes += speaker_notes(conversation, *testimony.verdict)
    return Decided(answer, dict(sorted(decision.statuses.items())), tuple(decision.notes))


class _Deciding:
    """Statuses of candidates, while testimony is applied."""

    def __init__(
        self, conversation: Conversation, graph: HierarchicalGraph, testimony: ModelTestimony,
        candidates: Collection[int],
    ) -> None:  # fmt: skip
        self.conversation, self.graph, self.testimony = conversation, graph, testimony
        self.candidates = frozenset(candidates)
        self.statuses: dict[int, Status] = dict.fromkeys(candidates, "open")
        self.notes: list[str] = []

    def judge(self, step: int) -> None:
        """Set the status of a candidate and of explaining steps upstream."""
        screened = self.testimony.screened.get(step)
        if screened is None:
            return
        # A cause lies earlier; what a model says of later or unknown steps is ignored.
        upstream = [n for n in screened.upstream if n < step and self._can_be_blamed(n)]
        self.statuses[step] = "propagated" if upstream else "origin"
        for source in upstream:
            self.statuses.setdefault(source, "open")
        if screened.loop:
            self._control(step, screened.responsible)
        if screened.spoilt_at is not None and screened.spoilt_at != step:
            self._data(step, screened.spoilt_at)

    def _can_be_blamed(self, step: int) -> bool:
        return can_be_blamed(self.conversation, step)

    def _control(self, step: int, responsible: Responsible) -> None:
        """Blame a loop on the planner's first repetition or on the worker's first failure."""
        loop = next((loop for loop in self.graph.loops if step in loop.steps), None)
        if loop is None:
            self.notes.append(f"step {step} was said to be in a loop, but the texts show none")
            return
        if responsible != "none":
            origin = loop.repetition if responsible == "planner" else loop.failure
            self._explain(step, origin)

    def _data(self, step: int, spoilt_at: int) -> None:
        """Blame the first step with a spoilt datum."""
        if spoilt_at > step or not self._can_be_blamed(spoilt_at):
            self.notes.append(f"data of step {step} cannot have been spoilt at step {spoilt_at}")
            return
        self._explain(step, spoilt_at)

    def _explain(self, step: int, origin: int) -> None:
        """Explain a candidate by an origin."""
        if origin == step:
            self.statuses[step] = "origin"
            return
        self.statuses[step] = "propagated"
        # A step with testimony of its own keeps the status that this gave it.
        if origin not in self.testimony.screened or origin not in self.candidates:
            self.statuses[origin] = "origin"

    def recover(self) -> None:
        """Set the status `recovered` where a later, undisputed step put a candidate right."""
        for step, screened in self.testimony.screened.items():
            later = screened.recovered_at
            if step not in self.statuses or later is None:
                continue
            is_step = step < later < len(self.conversation.steps)
            if not is_step or later in self.statuses:
                continue
            # In a subtask that fails all the same nothing was put right.
            if self.graph.subtask_of(later).id not in self.testimony.deviations.subtasks:
                self.statuses[step] = "recovered"


def _answer(statuses: Mapping[int, Status], verdict: tuple[str, int] | None) -> int | None:
    """Choose the verdict among origins, else the first origin, open or last recovered step."""
    by_status: dict[str, list[int]] = {}
    for step in sorted(statuses):
        by_status.setdefault(statuses[step], []).append(step)
    # The model does not overrule its own testimony: its verdict only chooses among origins.
    origins = by_status.get("origin", [])
    if verdict is not None and verdict[1] in origins:
        return verdict[1]
    first = [*origins, *by_status.get("open", [])]
    return next(iter([*first, *reversed(by_status.get("recovered", []))]), None)
