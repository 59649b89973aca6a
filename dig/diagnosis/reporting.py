"""The document of a diagnosis, made of what is known about a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from dig._util.text import counted
from dig.show.document import (
    AnswerRow,
    ArmRows,
    Candidate,
    ChangedArm,
    Confidence,
    CostRow,
    Diagnosis,
    Evidence,
    GoalRow,
    Hypothesis,
    HypothesisRow,
    SourceRow,
    StageRow,
    StageStatus,
    UnchangedArm,
)
from dig.traces.replay.kinds import in_words

from .attribution.spread import chain
from .case import RunSource
from .conversations.hierarchy import HierarchicalGraph, drafted
from .conversations.ranking import Attribution
from .experiments import Findings, Place
from .goal import Goal, Judgement
from .interventions.proposing import proposals
from .stages.traces import conversation_of
from .suspects import Asking
from .trials.arms import TrialCosts, Trials, Tried

if TYPE_CHECKING:
    from .interventions.asking import ModelHelp  # slow to import


class DiagnosisReport:
    """Makes a document of what is known about a run.

    Attributes:
        source: The run.
        goal: When it is good.
        judged: The judgement of the run.
        case: The case that suspects are given.
        candidates: The candidates, the likeliest first.
        findings: The results of experiments; ``None``: there were none.
        trials: The experiments, with their costs.
        asking: The suspects that were asked, and the number of candidates that are listed.
        is_asked: Whether a person named what is tried.
        helper: The model that helped, if one did.
        attributed: The answer of a model as the suspect `attribution`, if one was asked.
        has_graph: Whether the document has the hierarchical graph.
    """

    def __init__(self, source: RunSource, goal: Goal, asking: Asking | None = None) -> None:
        self.source, self.goal, self.asking = source, goal, asking or Asking()
        self.judged: Judgement = source.judged(goal)
        self.case = self.asking.case(source, goal)
        self.candidates: list[Candidate] = []
        self.findings: Findings | None = None
        self.trials: Trials | None = None
        self.is_asked = False
        self.helper: ModelHelp | None = None
        self.attributed: Attribution | None = None
        self.has_graph = False

    def document(self) -> Diagnosis:
        """The document."""
        candidates = self._after_trials()
        findings = self.findings or Findings()
        fix = findings.fix
        answer = self._answer(candidates, fix)
        return Diagnosis(
            source=self._source(),
            goal=GoalRow(test=self.goal.text, **self.judged._asdict()),
            failures=self.case.failures,
            attempts=self.case.attempts,
            method=self.attributed.method if self.attributed else "structural",
            model=self._model(),
            answer=answer,
            candidates=tuple(
                replace(one, rank=rank) for rank, one in enumerate(candidates[: self.asking.top], 1)
            ),
            chain=self._chain(answer),
            hypotheses=tuple(
                _hypothesis(one, findings.places.get(one.hypothesis.id, Place()))
                for one in findings.tried
            ),
            fix=fix.hypothesis.id if fix else None,
            confidence="verified" if fix else "suspected" if answer else "unknown",
            stages=self._stages(),
            cost=self._cost(),
            notes=tuple(self._notes(candidates)),
            graph=self._graph().to_json() if self.has_graph else None,
        )

    def _model(self) -> str | None:
        if self.attributed is not None:
            return self.attributed.model
        return self.helper.name if self.helper is not None else None

    def _graph(self) -> HierarchicalGraph:
        return self.attributed.graph if self.attributed else drafted(conversation_of(self.case))

    def _source(self) -> SourceRow:
        source = self.source
        return SourceRow(
            name=source.name, kind=source.kind, sha256=source.sha256,
            records=len(source.run.records), steps=len(source.run.activations),
        )  # fmt: skip

    def _after_trials(self) -> list[Candidate]:
        """The candidates: what helped first, what was refuted last."""
        if self.findings is None:
            return self.candidates
        helped = {one.hypothesis.candidate for one in self.findings.validated}
        for tried_ in self.findings.validated:
            helped.update(self.findings.others.get(tried_.hypothesis.id, ()))
            named = {row.get("agent") for row in tried_.hypothesis.interventions}
            helped.update(one.id for one in self.candidates if one.agent in named)
        by_candidate: dict[str, list[Tried]] = {}
        for one in self.findings.tried:
            by_candidate.setdefault(one.hypothesis.candidate, []).append(one)
        refuted = {
            name
            for name, tried in by_candidate.items()
            if all(one.verdict == "refuted" for one in tried)
        }
        furthest = {
            one.hypothesis.candidate for one in self.findings.tried if one.verdict == "partial"
        }
        fix = self.findings.fix
        first = fix.hypothesis.candidate if fix else None
        found = [_noted(one, by_candidate.get(one.id, ())) for one in self.candidates]
        found = [replace(one, status="origin") if one.id in helped else one for one in found]
        if fix is not None:
            found = [self._placed(one, fix) if one.id == first else one for one in found]
        return sorted(
            found,
            key=lambda one: (
                one.id != first, one.id not in helped, one.id not in furthest, one.id in refuted
            ),
        )  # fmt: skip

    def _placed(self, candidate: Candidate, fix: Tried) -> Candidate:
        """A candidate at the activation whose decision is changed by what helps, if one is."""
        row, run = fix.hypothesis.interventions[0], self.case.run
        record = run.records[row["at"]] if row["kind"] == "edit" else None
        name_ = row.get("activation") or getattr(record, "activation", None)
        if name_ is None:
            return candidate
        place = run.activations[name_]
        return replace(
            candidate, activation=name_, step=self.case.steps[name_], t=place.t,
            until=place.end.t if place.end else None,
        )  # fmt: skip

    def _answer(self, candidates: Sequence[Candidate], fix: Tried | None) -> AnswerRow | None:
        if not candidates or (fix is None and (self.is_asked or not self._is_suspected())):
            return None
        first = candidates[0]
        second = candidates[1].share if len(candidates) > 1 else 0.0
        confidence: Confidence = "low"
        if fix is not None or first.is_certain:
            confidence = "high"
        elif first.status == "origin" and first.mechanism and first.share >= 2 * second:
            confidence = "medium"
        reason = first.evidence[0].says
        if fix is not None:
            reason = f"The run succeeds if {_sentence(fix.hypothesis)}."
        return AnswerRow(
            agent=first.agent, step=first.step, t=first.t, activation=first.activation,
            mechanism=first.mechanism, confidence=confidence, reason=reason,
        )  # fmt: skip

    def _is_suspected(self) -> bool:
        """Whether anything speaks against an agent at all: not all agents are named alike."""
        shares = [one.share for one in self.candidates]
        return max(shares) > min(shares) or any(one.by != ("agents",) for one in self.candidates)

    def _chain(self, answer: AnswerRow | None) -> tuple[int, ...]:
        """A path of steps from the answer's to the last one that goes back to it."""
        if answer is None or answer.activation is None:
            return ()
        return tuple(self.case.steps[one] for one in chain(self.case.run, answer.activation))

    def _stages(self) -> tuple[StageRow, ...]:
        by = ("person",) if self.is_asked else self.asking.by
        rows: list[StageRow] = []
        for one in by:
            if one == "attribution" and self.attributed is not None:
                rows += self.attributed.stages
            else:
                rows.append(StageRow(name=one, by="structural", status="done", why=None))
        if self.helper is not None:
            failed = next(
                (note for note in self.helper.notes if note.startswith("the model")), None
            )
            status: StageStatus = "failed" if failed else "done"
            rows.append(StageRow(name="propose", by="model", status=status, why=failed))
        if self.findings is not None:
            rows.append(StageRow(name="try", by="replay", status="done", why=None))
        elif self.judged.good:
            rows.append(StageRow(name="try", by="replay", status="skipped", why="the run is good"))
        return tuple(rows)

    def _cost(self) -> CostRow:
        costs = self.trials.costs if self.trials else TrialCosts()
        asked = self.attributed.cost if self.attributed else CostRow()
        used = {**costs.models}
        for key, value in self.helper.usage.items() if self.helper else ():
            if key in _COSTS:
                used[key] = used.get(key, 0) + value
        usd = [one for one in (used.get("cost_usd"), asked.usd) if one is not None]
        return CostRow(
            replays=costs.replays, found=costs.found, seconds=round(costs.cpu_s, 3),
            until_validated=self.findings.until_validated if self.findings else None,
            model_calls=int(used.get("model_calls", 0)) + asked.model_calls,
            input_tokens=int(used.get("input_tokens", 0)) + asked.input_tokens,
            output_tokens=int(used.get("output_tokens", 0)) + asked.output_tokens,
            usd=float(sum(usd)) if usd else None,
        )  # fmt: skip

    def _to_try(self) -> Iterator[str]:
        """The first changes that rules propose at the answer, where experiments could be made."""
        if not self.judged.good and self.source.wrapped is None:
            said = [one.change for _, one in islice(proposals(self.case, self.candidates[:1]), 2)]
            if said:
                yield f"{TO_TRY}{'; '.join(map(in_words, said))}"

    def _notes(self, candidates: Sequence[Candidate]) -> list[str]:
        found = [*self.source.finished().notes]
        found += self.attributed.notes if self.attributed else ()
        if len(candidates) > self.asking.top:
            more = counted(len(candidates) - self.asking.top, "further candidate")
            found.append(f"{more} not listed")
        if self.findings is None or self.trials is None:
            return [*found, *self._to_try()]
        manner = self.trials.manner
        if manner.is_deterministic:
            found.append("the team is deterministic: a repeat would be the same, so there is one")
        if not manner.is_paired:
            found.append(
                "the team draws its own random numbers: 3 of 3 good replays against 0 of 3 are "
                "p = .05"
            )
        if self.findings.once:
            found.append(
                f"{counted(self.findings.once, 'change')} tried once only: no sign of success"
            )
        found += self.findings.notes
        found += self.helper.notes if self.helper else ()
        found += [f"{one.hypothesis.id}: {one.why}" for one in self.findings.tried if one.why]
        return found


TO_TRY = "what could be tried: "
_COSTS = ("model_calls", "input_tokens", "output_tokens", "cost_usd")


def _sentence(hypothesis: Hypothesis) -> str:
    return " and ".join(map(in_words, hypothesis.interventions))


def _noted(candidate: Candidate, tried: Sequence[Tried]) -> Candidate:
    """A candidate with what experiments say about it as further evidence."""
    shown = tuple(
        Evidence(one.at, f"tried: {one.verdict}, if {_sentence(one.hypothesis)}") for one in tried
    )
    return replace(candidate, evidence=(*candidate.evidence, *shown))


def _hypothesis(one: Tried, place: Place) -> HypothesisRow:
    hypothesis, changed, unchanged = one.hypothesis, one.changed, one.unchanged
    return HypothesisRow(
        id=hypothesis.id, candidate=hypothesis.candidate, attempt=hypothesis.attempt,
        interventions=tuple(map(dict, hypothesis.interventions)),
        expects=dict(hypothesis.expects) if hypothesis.expects else None,
        verdict=one.verdict, reason=one.reason,
        arms=ArmRows(
            changed=ChangedArm(
                n=changed.n, good=changed.successes, fulfilled=sum(changed.fulfilled),
                progress=changed.progress, forks=changed.forks,
            ),
            unchanged=UnchangedArm(
                n=unchanged.n, good=unchanged.successes, progress=unchanged.progress,
                forks=unchanged.forks,
            ),
        ),
        p=one.p, onset=place.onset, no_return=place.no_return,
    )  # fmt: skip
