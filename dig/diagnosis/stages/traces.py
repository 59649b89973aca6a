"""A trace for a language model: each activation is a step, and lineage is the flow of data.

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
from dig.diagnosis.conversations.hierarchy import drafted
from dig.diagnosis.conversations.ranking import Attribution
from dig.diagnosis.conversations.reading import Conversation, DataEdge, step, with_roles
from dig.diagnosis.interventions.described import describe_activation, payload_text
from dig.show.document import Candidate, StageRow

if TYPE_CHECKING:
    from .pipeline import ModelMethod  # slow to import

MOST_TASK = 2000
"""The number of characters of the task that are shown."""


def conversation_of(case: Case, expected: str | None = None) -> Conversation:
    """A trace as a conversation, whose steps have the numbers of its activations.

    Args:
        case: The trace.
        expected: The right answer, if the user gave it.
    """
    run, numbers = case.run, case.steps
    steps = [
        step(n, one.agent, describe_activation(run, one))
        for n, one in enumerate(run.activations.values())
    ]
    lineage = [
        DataEdge(numbers[by], numbers[one.id], f"{event.type} {event.id}", "text")
        for one in run.activations.values()
        for event in run.inputs(one)
        if (by := event.by or "") in numbers
    ]
    posed = (payload_text(one.payload, MOST_TASK) for one in run.events.values() if one.by is None)
    return Conversation(
        case.name, "", with_roles(steps), one_line("; ".join(posed), MOST_TASK), expected,
        tuple(one.evidence[0].says for one in case.failures), tuple(lineage),
    )  # fmt: skip


@dataclass
class ModelSuspects:
    """The suspect `attribution` as a language model answers it.

    Attributes:
        method: The way in which the model is asked.
        structural: Names the candidates where the model does not.
        expected: The right answer, if the user gave it.
        found: The answer about the last case.
    """

    method: ModelMethod
    structural: Callable[[Case], Sequence[Candidate]]
    expected: str | None = None
    found: Attribution | None = field(default=None, init=False)

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """The candidates, the likeliest first.

        Raises:
            SettingsError: A stage failed, and that is an error; or there is no key, or no cache.
        """
        conversation = conversation_of(case, self.expected)
        if not conversation.steps:
            return self.structural(case)
        self.found = self.method(conversation, self._ranked(case, conversation))
        return [_placed(case, one) for one in self.found.candidates]

    def _ranked(self, case: Case, conversation: Conversation) -> Attribution:
        """The answer without a model."""
        known = tuple(self.structural(case))
        done = StageRow(name="signs", by="structural", status="done", why=None)
        return Attribution(known, "low", "", (), drafted(conversation), (done,))


def _placed(case: Case, one: Candidate) -> Candidate:
    """A candidate of a model with the records of its step."""
    if one.t is not None or one.step is None:
        return one
    place = [*case.run.activations.values()][one.step]
    return replace(
        one, t=place.t, until=place.end.t if place.end else None, activation=place.id,
        evidence=tuple(replace(shown, t=place.t) for shown in one.evidence),
    )  # fmt: skip
