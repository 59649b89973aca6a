"""Diagnose a conversation by the log.

    diagnosis = explain(Path("chat.json"))
    print(diagnosis.answer)

A conversation has no outcome of its own, so asking about one says that it failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dig._util.text import counted
from dig.show import document
from dig.show.document import Diagnosis, Evidence

from .ranking import Attribution, rank
from .reading import Conversation, Layout, read_conversation

WHY = "a conversation has no outcome of its own: it is taken as failed"

Attribute = Callable[[Conversation], Attribution]
"""Function that names the candidates of a conversation."""


def explain(
    path: Path,
    layout: Layout | None = None,
    *,
    task: str | None = None,
    expected: str | None = None,
    attribute: Attribute = rank,
    has_graph: bool = False,
    top: int = 10,
) -> Diagnosis:
    """Explain why a conversation failed: which agent, at which step.

    Args:
        path: The log of the conversation; it is only read.
        layout: Its layout; ``None``: the one that its content fits.
        task: The text of the task; ``None``: the one in the file, if there is one.
        expected: The right answer, or `from-file`; ``None``: it is not used.
        attribute: Names the candidates; by default the ranking, without a model.
        has_graph: Whether the document has the hierarchical graph.
        top: The number of candidates that are listed.

    Raises:
        TraceError: The file cannot be read, or holds no conversation.
        SettingsError: The right answer is to be read from a file that has none.
    """
    conversation = read_conversation(path, layout, task=task, expected=expected)
    attribution = attribute(conversation)
    notes = attribution.notes
    if (further := len(attribution.candidates) - top) > 0:
        notes = (*notes, f"{counted(further, 'further candidate')} not listed")
    candidates = [
        replace(candidate, share=round(candidate.share, 6), rank=number)
        for number, candidate in enumerate(attribution.candidates[:top], 1)
    ]
    first = next(iter(candidates), None)
    last = conversation.steps[-1].number
    return Diagnosis(
        source=document.SourceRow(
            name=conversation.name, kind="conversation", sha256=conversation.sha256, records=None,
            steps=len(conversation.steps),
        ),
        goal=document.GoalRow(test="none", good=False, progress=None, why=WHY),
        failures=(
            document.Failure(
                "complaint", "outcome", (Evidence(None, "the conversation ended here", step=last),)
            ),
        ),
        attempts=(), method=attribution.method, model=attribution.model,
        answer=None if first is None else document.AnswerRow(
            agent=first.agent, step=first.step, t=None, activation=None,
            mechanism=first.mechanism, confidence=attribution.confidence, probability=None,
            reason=attribution.reason,
        ),
        candidates=tuple(candidates),
        chain=attribution.chain, hypotheses=(), fix=None,
        confidence="unknown" if first is None else "suspected",
        stages=attribution.stages, cost=attribution.cost, notes=notes,
        graph=attribution.graph.to_json() if has_graph else None,
    )  # fmt: skip
