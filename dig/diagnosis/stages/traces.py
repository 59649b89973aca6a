"""Traces for a language model: each activation is a step, and lineage is the flow of data.

    suspects = ModelSuspects(ModelMethod(settings), SUSPECTS["attribution"].candidates)
    candidates = suspects.candidates(read_case(Path("runs/ID")))

The stages are those of conversations (`pipeline`). A step tells what became of the events before
the activation, and what it sent; payloads are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dig._util.text import one_line
from dig.diagnosis.case import Case
from dig.diagnosis.conversations.hierarchy import draft_graph
from dig.diagnosis.conversations.ranking import Attribution
from dig.diagnosis.conversations.reading import Conversation, DataEdge, build_step, with_roles
from dig.diagnosis.interventions.described import describe_activation, payload_text
from dig.show.document import Candidate, StageRow

if TYPE_CHECKING:
    from .pipeline import ModelMethod  # slow to import

MOST_TASK = 2000
"""The number of characters of the task that are shown."""


def conversation_of(case: Case, expected: str | None = None) -> Conversation:
    """Turn a trace into a conversation: step n is activation n.

    Args:
        case: The trace.
        expected: The right answer, if the user gave it.
    """
    run, numbers = case.run, case.steps
    steps = [
        build_step(n, activation.agent, describe_activation(run, activation))
        for n, activation in enumerate(run.activations.values())
    ]
    lineage = [
        DataEdge(numbers[by], numbers[activation.id], f"{event.type} {event.id}", "text")
        for activation in run.activations.values()
        for event in run.inputs(activation)
        if (by := event.by or "") in numbers
    ]
    posed = (
        payload_text(event.payload, MOST_TASK) for event in run.events.values() if event.by is None
    )
    return Conversation(
        case.name, "", with_roles(steps), one_line("; ".join(posed), MOST_TASK), expected,
        tuple(failure.evidence[0].says for failure in case.failures), tuple(lineage),
    )  # fmt: skip


@dataclass
class ModelSuspects:
    """Asks a language model for the candidates of the suspect `attribution`.

    Attributes:
        method: The way in which the model is asked.
        structural: Names the candidates where the model does not.
        expected: The right answer, if the user gave it.
        attribution: The answer about the last case.
    """

    method: ModelMethod
    structural: Callable[[Case], Sequence[Candidate]]
    expected: str | None = None
    attribution: Attribution | None = field(default=None, init=False)

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """List the candidates, the likeliest first.

        Raises:
            SettingsError: A stage failed, and that is an error; or there is no key, or no cache.
        """
        conversation = conversation_of(case, self.expected)
        # A model cannot name a step of a run in which nobody acted.
        if not conversation.steps:
            return self.structural(case)
        self.attribution = self.method(conversation, self._structural_answer(case, conversation))
        return [_place_candidate(case, candidate) for candidate in self.attribution.candidates]

    def _structural_answer(self, case: Case, conversation: Conversation) -> Attribution:
        candidates = tuple(self.structural(case))
        stage = StageRow(name="signs", by="structural", status="done", why=None)
        return Attribution(candidates, "low", "", (), draft_graph(conversation), (stage,))


def _place_candidate(case: Case, candidate: Candidate) -> Candidate:
    """Add times and ids of records to a candidate of a model."""
    if candidate.t is not None or candidate.step is None:
        return candidate
    place = [*case.run.activations.values()][candidate.step]
    return replace(
        candidate, t=place.t, until=place.end.t if place.end else None, activation=place.id,
        evidence=tuple(replace(shown, t=place.t) for shown in candidate.evidence),
    )  # fmt: skip
