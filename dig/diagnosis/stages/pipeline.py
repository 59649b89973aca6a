"""Asks a language model about a conversation: six stages, budgets, a cache, and stand-ins.

    method = ModelMethod(ModelSettings("some-model"))
    attribution = method(conversation)

A server never takes the answer away: where a stage fails its draft stands in, and where the model
said nothing that an answer needs, the ranking answers. What is sent, and how it is decided, is in
`requests`, `stages` and `deciding`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import anyio

from dig._util.text import counted, one_line
from dig.diagnosis.conversations.ranking import NAME, Attribution, confidence_of, rank
from dig.diagnosis.conversations.reading import Conversation
from dig.runtime.llm.model import Model, Spending
from dig.runtime.llm.settings import ModelSettings
from dig.show.document import Candidate, Evidence, StageRow, Status

from .asking import StageAnswers, keep_exchanges
from .deciding import Decided, ModelTestimony, blame_complaint, decide
from .plain_questions import RIVALS
from .requests import MOST_CHARACTERS, Exemplar, Requests, nearest
from .shapes import StepVerdict
from .stages import STAGES, Part, PipelineState, Stage

Method = Literal["model", "all-at-once", "step-by-step", "binary-search"]
METHODS: tuple[Method, ...] = ("model", "all-at-once", "step-by-step", "binary-search")
PARTS: tuple[Part, ...] = ("backtrack", "screening")

_WEIGHTS: Mapping[Status, float] = {"origin": 4, "open": 2, "propagated": 1, "recovered": 1}
"""The weights of candidates by their status; the answer's counts twice."""

BY_STATUS = "shares are by the status of candidates, no probabilities"

VERDICT = """\
`graph` has the subtasks of the log, what each agent did in them, and what goes on to what. Name the
agent and the step at fault: the earliest step such that, had it been right, the team would not have
failed in this way. Only steps of planners and workers count, not the output of tools."""


@dataclass(frozen=True)
class ModelMethod:
    """Settings of asking a model about conversations.

    Attributes:
        settings: The model, and its budget.
        method: The pipeline (`model`), or one of its plain rivals.
        without: The parts of the pipeline that are left out.
        exemplars: Tasks with their steps, to be shown where they are near.
        most_characters: The number of characters that a request may have.
        cache: The folder in which answers are kept, with the exchanges; ``None``: nowhere.
        is_strict: Whether a stage that fails is an error.
        spending: The amount spent of the budget, if several conversations share it.
    """

    settings: ModelSettings
    method: Method = "model"
    without: frozenset[Part] = frozenset()
    exemplars: Sequence[Exemplar] = ()
    most_characters: int = MOST_CHARACTERS
    cache: Path | None = None
    is_strict: bool = False
    spending: Spending | None = None

    def __call__(
        self, conversation: Conversation, ranked: Attribution | None = None
    ) -> Attribution:
        """Ask the model about a conversation.

        Args:
            conversation: The conversation.
            ranked: The answer without a model; ``None``: that of the ranking.

        Raises:
            SettingsError: A stage failed, and that is an error; or there is no key, or no cache.
        """
        return anyio.run(self._ask, conversation, ranked or rank(conversation))

    async def _ask(self, conversation: Conversation, ranked: Attribution) -> Attribution:
        requests = Requests(conversation, self.most_characters)
        async with Model(self.settings, spending=self.spending) as model:
            if self.cache is not None:
                keep_exchanges(model, self.cache)
            answers = StageAnswers(model, requests, self.cache, self.is_strict)
            if self.method == "model":
                attribution = await _Pipeline(self, ranked, answers).run()
            else:
                attribution = await RIVALS[self.method](ranked, answers)
        notes = [*attribution.notes, *answers.notes]
        if requests.cut:
            notes.append(f"{counted(requests.cut, 'text')} cut in the middle to fit a request")
        return replace(
            attribution, method=self.method, model=self.settings.model, cost=answers.cost(),
            notes=tuple(notes),
        )  # fmt: skip

    @property
    def title(self) -> str:
        """The model, the method and the parts left out."""
        left_out = "".join(f" without {part}" for part in sorted(self.without))
        return f"{self.settings.model}: {self.method}{left_out}"

    def cost(self, cases: int) -> str:
        """Describe the cost of a number of conversations in a sentence.

        Args:
            cases: The number of conversations.
        """
        spent = self.spending or Spending(self.settings)
        each = counted(round(spent.tokens / cases), "token")
        return f"{counted(spent.calls, 'request')}, {each} a case"


# --- the pipeline ---


class _Pipeline:
    """Runs the stages about a conversation, in order."""

    def __init__(self, method: ModelMethod, ranked: Attribution, answers: StageAnswers) -> None:
        self.answers, self.without = answers, method.without
        self.conversation = answers.requests.conversation
        shown = nearest(method.exemplars, self.conversation.task)
        self.state = PipelineState(self.conversation, ranked, shown)
        self.answered: set[str] = set()

    async def run(self) -> Attribution:
        """Ask the stages, and decide."""
        for stage in STAGES:
            if stage.part in self.without:
                self.answers.skip(stage.name, f"left out: --without {stage.part}")
            elif stage.name == "screening" and not self.state.candidates:
                self.answers.skip(stage.name, "no step was said to deviate")
            else:
                await self._stage(stage)
            # Without testimony about deviations, screening looks at every step.
            if stage.name == "backtrack" and stage.part in self.without:
                self.state.deviate([step.number for step in self.conversation.candidates])
        if self.without == {"backtrack", "screening"}:
            await self._verdict()
        return self._conclude()

    async def _stage(self, stage: Stage) -> None:
        state, full = self.state, set[int]()
        if stage.is_about_candidates:
            full = {near for step in state.candidates for near in (step - 1, step, step + 1)}
        answer = await self.answers.ask(
            stage.name, stage.schema, stage.instructions, stage.needs(state), full=full,
            check=lambda reply: stage.check(state, reply), is_repairable=stage.is_repairable,
        )  # fmt: skip
        if answer is None:
            stage.stand_in(state)
        else:
            stage.take(state, answer)
            self.answered.add(stage.name)

    async def _verdict(self) -> None:
        # Without testimony code has nothing to decide by: the model answers over the graph alone.
        state = self.state
        verdict = await self.answers.ask(
            "verdict", StepVerdict, VERDICT, {"graph": state.shown_graph()},
            check=lambda reply: blame_complaint(self.conversation, reply.step),
        )  # fmt: skip
        if verdict is not None:
            state.verdict = (verdict.agent, verdict.step)
            state.deviate([verdict.step])
            state.reasons[verdict.step] = [one_line(verdict.why)]
            self.answered.add("verdict")

    def _conclude(self) -> Attribution:
        state = self.state
        notes = [
            f"{counted(count, 'item')} of stage {name!r} dropped: unknown or against the rules"
            for name, count in state.dropped.items()
        ]
        if not self.answered & {"backtrack", "screening", "verdict"}:
            return self._without_model(notes)
        if state.screened and "screening" not in self.answered:
            notes.append("candidates were screened by the texts alone")
        decided = decide(
            self.conversation, state.graph,
            ModelTestimony(state.deviations, state.screened, state.verdict),
        )  # fmt: skip
        notes += decided.notes
        # Without an answer from testimony the ranking answers, over the graph of the model.
        if decided.step is None:
            return self._without_model(notes)
        return _attribution(state, decided, self.answers.stages, [*notes, BY_STATUS])

    def _without_model(self, notes: Sequence[str]) -> Attribution:
        """Answer without a model, with the graph as far as the model drew it."""
        ranked = self.state.ranked
        graph = self.state.graph
        candidates = tuple(
            replace(candidate, subtask=graph.subtask_of(candidate.step or 0).id)
            for candidate in ranked.candidates
        )
        drawn = replace(ranked, candidates=candidates, graph=graph)
        return self.answers.without_model(drawn, notes)


def _attribution(
    state: PipelineState, decided: Decided, stages: Sequence[StageRow], notes: Sequence[str]
) -> Attribution:
    """Turn the decision into candidates."""
    weights = {
        step: _WEIGHTS[status] * (2 if step == decided.step else 1)
        for step, status in decided.statuses.items()
    }
    total = sum(weights.values())
    ordered = sorted(weights, key=lambda step: (step != decided.step, -weights[step], step))
    mechanisms = {candidate.step: candidate.mechanism for candidate in state.ranked.candidates}
    candidates = tuple(
        Candidate(
            id=f"c{number}", agent=state.conversation.steps[step].agent,
            share=weights[step] / total, by=(NAME,), status=decided.statuses[step], step=step,
            mechanism=mechanisms.get(step), subtask=state.graph.subtask_of(step).id,
            evidence=tuple(
                Evidence(None, says, step=step) for says in _reasons(state, step, decided)[:3]
            ),
        )
        for number, step in enumerate(ordered, 1)
    )  # fmt: skip
    return Attribution(
        candidates,
        confidence_of(candidates),
        candidates[0].evidence[0].says,
        state.graph.chain(ordered[0]),
        state.graph,
        tuple(stages),
        notes=tuple(notes),
    )


def _reasons(state: PipelineState, step: int, decided: Decided) -> list[str]:
    reasons = [reason for reason in state.reasons.get(step, ()) if reason]
    return reasons or [f"it was judged to be {decided.statuses[step]}, without a reason"]
