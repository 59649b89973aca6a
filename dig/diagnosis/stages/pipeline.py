"""Asks a language model about a conversation: six stages, budgets, a cache, and stand-ins.

    method = ModelMethod(ModelSettings("some-model"))
    found = method(conversation)

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
from .stages import STAGES, Known, Part, Stage

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
    """A way to ask a model about conversations.

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
        return anyio.run(self._asked, conversation, ranked or rank(conversation))

    async def _asked(self, conversation: Conversation, ranked: Attribution) -> Attribution:
        requests = Requests(conversation, self.most_characters)
        async with Model(self.settings, spending=self.spending) as model:
            if self.cache is not None:
                keep_exchanges(model, self.cache)
            asked = StageAnswers(model, requests, self.cache, self.is_strict)
            if self.method == "model":
                found = await _Pipeline(self, ranked, asked).run()
            else:
                found = await RIVALS[self.method](ranked, asked)
        notes = [*found.notes, *asked.notes]
        if requests.cut:
            notes.append(f"{counted(requests.cut, 'text')} cut in the middle to fit a request")
        return replace(
            found, method=self.method, model=self.settings.model, cost=asked.cost(),
            notes=tuple(notes),
        )  # fmt: skip

    @property
    def title(self) -> str:
        """The model and the method, with what is left out."""
        left_out = "".join(f" without {part}" for part in sorted(self.without))
        return f"{self.settings.model}: {self.method}{left_out}"

    def cost(self, cases: int) -> str:
        """A sentence about what a number of conversations have cost.

        Args:
            cases: The number of conversations.
        """
        spent = self.spending or Spending(self.settings)
        each = counted(round(spent.tokens / cases), "token")
        return f"{counted(spent.calls, 'request')}, {each} a case"


# --- the pipeline ---


class _Pipeline:
    """The stages about one conversation, one after the other."""

    def __init__(self, method: ModelMethod, ranked: Attribution, asked: StageAnswers) -> None:
        self.asked, self.without = asked, method.without
        self.conversation = asked.requests.conversation
        shown = nearest(method.exemplars, self.conversation.task)
        self.known = Known(self.conversation, ranked, shown)
        self.answered: set[str] = set()

    async def run(self) -> Attribution:
        """Ask all stages that are wanted, and decide."""
        for stage in STAGES:
            if stage.part in self.without:
                self.asked.skip(stage.name, f"left out: --without {stage.part}")
            elif stage.name == "screening" and not self.known.candidates:
                self.asked.skip(stage.name, "no step was said to deviate")
            else:
                await self._stage(stage)
            if stage.name == "backtrack" and stage.part in self.without:
                self.known.deviate([one.number for one in self.conversation.candidates])
        if self.without == {"backtrack", "screening"}:
            await self._verdict()
        return self._found()

    async def _stage(self, stage: Stage) -> None:
        known, full = self.known, set[int]()
        if stage.is_about_candidates:
            full = {near for one in known.candidates for near in (one - 1, one, one + 1)}
        answer = await self.asked(
            stage.name, stage.schema, stage.instructions, stage.needs(known), full=full,
            check=lambda said: stage.check(known, said), is_repairable=stage.is_repairable,
        )  # fmt: skip
        if answer is None:
            stage.stand_in(known)
        else:
            stage.take(known, answer)
            self.answered.add(stage.name)

    async def _verdict(self) -> None:
        """Ask for a verdict over the graph alone."""
        known = self.known
        said = await self.asked(
            "verdict", StepVerdict, VERDICT, {"graph": known.shown_graph()},
            check=lambda one: blame_complaint(self.conversation, one.step),
        )  # fmt: skip
        if said is not None:
            known.verdict = (said.agent, said.step)
            known.deviate([said.step])
            known.reasons[said.step] = [one_line(said.why)]
            self.answered.add("verdict")

    def _found(self) -> Attribution:
        known = self.known
        notes = [
            f"{counted(count, 'item')} of stage {name!r} dropped: unknown or against the rules"
            for name, count in known.dropped.items()
        ]
        if not self.answered & {"backtrack", "screening", "verdict"}:
            return self._ranked(notes)
        if known.screened and "screening" not in self.answered:
            notes.append("candidates were screened by the texts alone")
        decided = decide(
            self.conversation, known.graph,
            ModelTestimony(known.deviations, known.screened, known.verdict),
        )  # fmt: skip
        notes += decided.notes
        if decided.step is None:
            return self._ranked(notes)
        return _attribution(known, decided, self.asked.stages, [*notes, BY_STATUS])

    def _ranked(self, notes: Sequence[str]) -> Attribution:
        """The answer without a model, with the graph as far as the model drew it."""
        found = self.known.ranked
        graph = self.known.graph
        candidates = tuple(
            replace(one, subtask=graph.subtask_of(one.step or 0).id) for one in found.candidates
        )
        drawn = replace(found, candidates=candidates, graph=graph)
        return self.asked.without_model(drawn, notes)


def _attribution(
    known: Known, decided: Decided, stages: Sequence[StageRow], notes: Sequence[str]
) -> Attribution:
    """The decision as candidates.

    Args:
        known: The facts that are known.
        decided: The decision.
        stages: The stages that were carried out.
        notes: The remaining notes.
    """
    weights = {
        step: _WEIGHTS[status] * (2 if step == decided.step else 1)
        for step, status in decided.statuses.items()
    }
    whole = sum(weights.values())
    ordered = sorted(weights, key=lambda step: (step != decided.step, -weights[step], step))
    mechanisms = {one.step: one.mechanism for one in known.ranked.candidates}
    candidates = tuple(
        Candidate(
            id=f"c{number}", agent=known.conversation.steps[step].agent,
            share=weights[step] / whole, by=(NAME,), status=decided.statuses[step], step=step,
            mechanism=mechanisms.get(step), subtask=known.graph.subtask_of(step).id,
            evidence=tuple(
                Evidence(None, says, step=step) for says in _reasons(known, step, decided)[:3]
            ),
        )
        for number, step in enumerate(ordered, 1)
    )  # fmt: skip
    return Attribution(
        candidates,
        confidence_of(candidates),
        candidates[0].evidence[0].says,
        known.graph.chain(ordered[0]),
        known.graph,
        tuple(stages),
        notes=tuple(notes),
    )


def _reasons(known: Known, step: int, decided: Decided) -> list[str]:
    said = [one for one in known.reasons.get(step, ()) if one]
    return said or [f"it was judged to be {decided.statuses[step]}, without a reason"]
