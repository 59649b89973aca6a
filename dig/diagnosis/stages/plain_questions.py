"""Plain ways to ask a model about a conversation: baselines of the pipeline.

All at once: the log, and a verdict. Step by step: the log up to each step, is that step at fault?
Binary search: is the fault in the first half of a part of the log, or in the second?
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from dig._util.text import one_line
from dig.diagnosis.conversations.ranking import NAME, Attribution
from dig.show.document import Candidate, Evidence

from .asking import StageAnswers
from .deciding import blame_complaint, speaker_notes
from .shapes import JudgedHalf, JudgedLast, StepVerdict

ALL_AT_ONCE = """\
Name the agent and the step at fault: the earliest step such that, had it been right, the team would
not have failed in this way. Give the reason in one sentence."""

STEP_BY_STEP = """\
The log ends at the step that is to be judged; what came later is not shown. Is that last step at
fault: is there a mistake in it that can make the team fail, and that no earlier step explains?"""

BINARY_SEARCH = """\
The document has a part of the log. The step at fault, by which the team failed, lies in it: in the
first half (the steps up to and including `half`) or in the second. Say in which."""


async def _all_at_once(ranked: Attribution, answers: StageAnswers) -> Attribution:
    """Ask for a verdict about the whole log in a single request."""
    conversation = answers.requests.conversation
    verdict = await answers.ask(
        "all-at-once", StepVerdict, ALL_AT_ONCE,
        check=lambda reply: blame_complaint(conversation, reply.step),
    )  # fmt: skip
    if verdict is None:
        return answers.without_model(ranked)
    answers.notes += speaker_notes(conversation, verdict.agent, verdict.step)
    return _attribution(ranked, verdict.step, verdict.why, answers)


async def _step_by_step(ranked: Attribution, answers: StageAnswers) -> Attribution:
    """Ask about each step that can be at fault, until the model blames a step."""
    for step in answers.requests.conversation.candidates:
        shown = range(step.number + 1)
        judgement = await answers.ask(
            f"step {step.number}", JudgedLast, STEP_BY_STEP, only=shown, full=[step.number]
        )
        if judgement is not None and judgement.at_fault:
            return _attribution(ranked, step.number, judgement.why, answers)
        if answers.has_ended:
            break
    answers.notes.append("no step was said to be at fault")
    return answers.without_model(ranked)


async def _binary_search(ranked: Attribution, answers: StageAnswers) -> Attribution:
    """Ask about halves of the log, until a single step remains."""
    numbers = [step.number for step in answers.requests.conversation.candidates]
    reason = "it is the only step"
    while len(numbers) > 1:
        half = numbers[(len(numbers) - 1) // 2]
        shown = range(numbers[0], numbers[-1] + 1)
        judgement = await answers.ask(
            f"steps {numbers[0]} to {numbers[-1]}",
            JudgedHalf,
            BINARY_SEARCH,
            {"half": half},
            only=shown,
        )
        if judgement is None:
            return answers.without_model(ranked)
        numbers = [number for number in numbers if (number <= half) == (judgement.half == "first")]
        reason = judgement.why
    return _attribution(ranked, numbers[0], reason, answers)


Rival = Callable[[Attribution, StageAnswers], Awaitable[Attribution]]
RIVALS: Mapping[str, Rival] = {
    "all-at-once": _all_at_once,
    "step-by-step": _step_by_step,
    "binary-search": _binary_search,
}


def _attribution(ranked: Attribution, step: int, reason: str, answers: StageAnswers) -> Attribution:
    """Make the step named by the model the only candidate."""
    graph, conversation = ranked.graph, answers.requests.conversation
    says = one_line(reason) or "the model named it"
    only = Candidate(
        id="c1", agent=conversation.steps[step].agent, share=1.0, by=(NAME,), step=step,
        evidence=(Evidence(None, says, step=step),), subtask=graph.subtask_of(step).id,
    )  # fmt: skip
    return Attribution((only,), "low", says, graph.chain(step), graph, tuple(answers.stages))
