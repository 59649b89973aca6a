"""Plain ways to ask a model about a conversation, beside which the pipeline must stand.

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


async def _all_at_once(ranked: Attribution, asked: StageAnswers) -> Attribution:
    """One request: the whole log, and a verdict."""
    conversation = asked.requests.conversation
    said = await asked(
        "all-at-once", StepVerdict, ALL_AT_ONCE,
        check=lambda one: blame_complaint(conversation, one.step),
    )  # fmt: skip
    if said is None:
        return asked.without_model(ranked)
    asked.notes += speaker_notes(conversation, said.agent, said.step)
    return _attribution(ranked, said.step, said.why, asked)


async def _step_by_step(ranked: Attribution, asked: StageAnswers) -> Attribution:
    """A request for each step that can be at fault, until one is."""
    for one in asked.requests.conversation.candidates:
        shown = range(one.number + 1)
        said = await asked(
            f"step {one.number}", JudgedLast, STEP_BY_STEP, only=shown, full=[one.number]
        )
        if said is not None and said.at_fault:
            return _attribution(ranked, one.number, said.why, asked)
        if asked.has_ended:
            break
    asked.notes.append("no step was said to be at fault")
    return asked.without_model(ranked)


async def _binary_search(ranked: Attribution, asked: StageAnswers) -> Attribution:
    """Requests about halves, until one step is left."""
    left = [one.number for one in asked.requests.conversation.candidates]
    why = "it is the only step"
    while len(left) > 1:
        half = left[(len(left) - 1) // 2]
        shown = range(left[0], left[-1] + 1)
        said = await asked(
            f"steps {left[0]} to {left[-1]}", JudgedHalf, BINARY_SEARCH, {"half": half}, only=shown
        )
        if said is None:
            return asked.without_model(ranked)
        left = [one for one in left if (one <= half) == (said.half == "first")]
        why = said.why
    return _attribution(ranked, left[0], why, asked)


Rival = Callable[[Attribution, StageAnswers], Awaitable[Attribution]]
RIVALS: Mapping[str, Rival] = {
    "all-at-once": _all_at_once,
    "step-by-step": _step_by_step,
    "binary-search": _binary_search,
}


def _attribution(ranked: Attribution, step: int, why: str, asked: StageAnswers) -> Attribution:
    """The one step that a model names, as a candidate."""
    graph, conversation = ranked.graph, asked.requests.conversation
    says = one_line(why) or "the model named it"
    only = Candidate(
        id="c1", agent=conversation.steps[step].agent, share=1.0, by=(NAME,), step=step,
        evidence=(Evidence(None, says, step=step),), subtask=graph.subtask_of(step).id,
    )  # fmt: skip
    return Attribution((only,), "low", says, graph.chain(step), graph, tuple(asked.stages))
