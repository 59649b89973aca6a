"""The document of a diagnosis, made of a case, of suspects and of experiments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import islice
from math import exp, log
from typing import TYPE_CHECKING

from dig._util.text import counted
from dig.show import document as rows
from dig.show.document import Candidate, CostRow, Diagnosis, Evidence, Hypothesis, StageRow
from dig.traces.replay.kinds import in_words

from .attribution.lineage import chain
from .case import RunSource
from .conversations.hierarchy import HierarchicalGraph, draft_graph
from .conversations.ranking import Attribution
from .experiments import Findings, Place
from .goal import Goal, Judgement
from .interventions.proposing import proposals
from .suspects import USUAL_SUSPECTS, Asking
from .trials.arms import TrialCosts, Trials, Tried

if TYPE_CHECKING:
    from .interventions.model_proposals import ModelHelp  # slow to import


class DiagnosisReport:
    """The parts of a diagnosis, for a document.

    Attributes:
        case: The case that suspects are given.
        candidates: The candidates, the likeliest first.
        findings: The results of experiments; ``None``: there were none.
        trials: The experiments, with their costs.
        asking: The suspects that were asked, and the number of candidates that are listed.
        is_by_person: Whether a person named what is tried.
        helper: The model that helped, if one did.
        attribution: The answer of a model as the suspect `attribution`, if one was asked.
        has_graph: Whether the document has the hierarchical graph.
    """

    def __init__(self, source: RunSource, goal: Goal, asking: Asking | None = None) -> None:
        self.source, self.goal, self.asking = source, goal, asking or Asking()
        self.judgement: Judgement = source.judged(goal)
        self.case = self.asking.case(source, goal)
        self.candidates: list[Candidate] = []
        self.findings: Findings | None = None
        self.trials: Trials | None = None
        self.is_by_person = False
        self.helper: ModelHelp | None = None
        self.attribution: Attribution | None = None
        self.has_graph = False

    def document(self) -> Diagnosis:
        """Make the document."""
        source, findings = self.source, self.findings or Findings()
        candidates, fix = self._after_trials(), findings.fix
        answer = self._answer(candidates, fix)
        listed = enumerate(candidates[: self.asking.top], 1)
        return Diagnosis(
            source=rows.SourceRow(
                name=source.name, kind=source.kind, sha256=source.sha256,
                records=len(source.run.records), steps=len(source.run.activations),
            ),
            goal=rows.GoalRow(test=self.goal.text, **self.judgement._asdict()),
            failures=self.case.failures,
            attempts=self.case.attempts,
            method=self.attribution.method if self.attribution else "structural",
            model=self._model(),
            answer=answer,
            candidates=tuple(replace(candidate, rank=rank) for rank, candidate in listed),
            chain=self._chain(answer),
            hypotheses=tuple(
                _hypothesis_row(result, findings.places.get(result.hypothesis.id, Place()))
                for result in findings.tried
            ),
            fix=fix.hypothesis.id if fix else None,
            confidence="verified" if fix else "suspected" if answer else "unknown",
            stages=self._stages(),
            cost=self._cost(),
            notes=tuple(self._notes(candidates)),
            graph=self._graph().to_json() if self.has_graph else None,
        )  # fmt: skip

    def _model(self) -> str | None:
        if self.attribution is not None:
            return self.attribution.model
        return self.helper.name if self.helper is not None else None

    def _graph(self) -> HierarchicalGraph:
        from .stages.traces import conversation_of  # imports the clients of models

        return (
            self.attribution.graph if self.attribution else draft_graph(conversation_of(self.case))
        )

    def _after_trials(self) -> list[Candidate]:
        """The candidates: helpful places first, refuted places last."""
        if self.findings is None:
            return self.candidates
        fix, by_candidate = self.findings.fix, dict[str, list[Tried]]()
        helped = set[str]()
        for result in self.findings.tried:
            hypothesis = result.hypothesis
            by_candidate.setdefault(hypothesis.candidate, []).append(result)
            if result.verdict == "validated":
                # Of a change in several stages, each stage is about a cause of its own.
                helped |= {hypothesis.candidate, *self.findings.others.get(hypothesis.id, ())}
                agents = {row.get("agent") for row in hypothesis.interventions}
                helped.update(each.id for each in self.candidates if each.agent in agents)
        first = fix.hypothesis.candidate if fix else None
        candidates = []
        for candidate in self.candidates:
            evidence = tuple(
                Evidence(each.at, f"tried: {each.verdict}, if {_sentence(each.hypothesis)}")
                for each in by_candidate.get(candidate.id, ())
            )
            candidate = replace(candidate, evidence=(*candidate.evidence, *evidence))
            if candidate.id in helped:
                candidate = replace(candidate, status="origin")
            if fix is not None and candidate.id == first:
                candidate = self._move_to_fix(candidate, fix)
            candidates.append(candidate)

        def order(candidate: Candidate) -> tuple[bool, ...]:
            verdicts = {each.verdict for each in by_candidate.get(candidate.id, ())}
            is_partial, is_refuted = "partial" in verdicts, verdicts == {"refuted"}
            return candidate.id != first, candidate.id not in helped, not is_partial, is_refuted

        return sorted(candidates, key=order)

    def _move_to_fix(self, candidate: Candidate, fix: Tried) -> Candidate:
        """Move a candidate to the activation changed by the fix, if there is one."""
        row, run = fix.hypothesis.interventions[0], self.case.run
        record = run.records[row["at"]] if row["kind"] == "edit" else None
        name = row.get("activation") or getattr(record, "activation", None)
        if name is None:
            return candidate
        act = run.activations[name]
        until = act.end.t if act.end else None
        return replace(candidate, activation=name, step=self.case.steps[name], t=act.t, until=until)

    def _answer(self, candidates: Sequence[Candidate], fix: Tried | None) -> rows.AnswerRow | None:
        if not candidates or (fix is None and (self.is_by_person or not self._is_suspected())):
            return None
        first = candidates[0]
        second = candidates[1].share if len(candidates) > 1 else 0.0
        confidence: rows.Confidence = "low"
        if fix is not None or first.is_certain:
            confidence = "high"
        elif first.status == "origin" and first.mechanism and first.share >= 2 * second:
            confidence = "medium"
        reason = first.evidence[0].says
        if fix is not None:
            reason = f"The run succeeds if {_sentence(fix.hypothesis)}."
        return rows.AnswerRow(
            agent=first.agent, step=first.step, t=first.t, activation=first.activation,
            mechanism=first.mechanism, confidence=confidence, reason=reason,
            probability=calibrate(first.share) if first.by == USUAL_SUSPECTS and not fix else None,
        )  # fmt: skip

    def _is_suspected(self) -> bool:
        """Whether anything speaks against an agent: not all agents are named alike."""
        shares = [candidate.share for candidate in self.candidates]
        is_uneven = max(shares) > min(shares)
        return is_uneven or any(candidate.by != ("agents",) for candidate in self.candidates)

    def _chain(self, answer: rows.AnswerRow | None) -> tuple[int, ...]:
        """A path of steps by lineage, from the answer's to the last."""
        if answer is None or answer.activation is None:
            return ()
        return tuple(self.case.steps[name] for name in chain(self.case.run, answer.activation))

    def _stages(self) -> tuple[StageRow, ...]:
        stages: list[StageRow] = []
        for name in ("person",) if self.is_by_person else self.asking.by:
            if name == "attribution" and self.attribution is not None:
                stages += self.attribution.stages
            else:
                stages.append(StageRow(name=name, by="structural", status="done", why=None))
        if self.helper is not None:  # only notes of requests without an answer begin so
            reason = next((n for n in self.helper.notes if n.startswith("the model")), None)
            status: rows.StageStatus = "failed" if reason else "done"
            stages.append(StageRow(name="propose", by="model", status=status, why=reason))
        if self.findings is not None:
            stages.append(StageRow(name="try", by="replay", status="done", why=None))
        elif self.judgement.good:
            reason = "the run is good"
            stages.append(StageRow(name="try", by="replay", status="skipped", why=reason))
        return tuple(stages)

    def _cost(self) -> CostRow:
        costs = self.trials.costs if self.trials else TrialCosts()
        model_cost = self.attribution.cost if self.attribution else CostRow()
        used = {**costs.models}
        for key, value in self.helper.usage.items() if self.helper else ():
            if key in _COSTS:
                used[key] = used.get(key, 0) + value
        prices = [usd for usd in (used.get("cost_usd"), model_cost.usd) if usd is not None]
        return CostRow(
            replays=costs.replays, found=costs.found, seconds=round(costs.cpu_s, 3),
            until_validated=self.findings.until_validated if self.findings else None,
            model_calls=int(used.get("model_calls", 0)) + model_cost.model_calls,
            input_tokens=int(used.get("input_tokens", 0)) + model_cost.input_tokens,
            output_tokens=int(used.get("output_tokens", 0)) + model_cost.output_tokens,
            uncounted_calls=int(used.get("uncounted_calls", 0)) + model_cost.uncounted_calls,
            usd=float(sum(prices)) if prices else None,
        )  # fmt: skip

    def _to_try(self) -> Iterator[str]:
        """The first changes of rules at the answer, if experiments are possible."""
        if not self.judgement.good and self.source.wrapped is None:
            proposed = islice(proposals(self.case, self.candidates[:1]), 2)
            changes = [in_words(proposal.change) for _, proposal in proposed]
            if changes:
                yield f"{TO_TRY}{'; '.join(changes)}"

    def _notes(self, candidates: Sequence[Candidate]) -> list[str]:
        notes = [*self.source.finished().notes]
        notes += self.attribution.notes if self.attribution else ()
        if len(candidates) > self.asking.top:
            more = counted(len(candidates) - self.asking.top, "further candidate")
            notes.append(f"{more} not listed")
        if self.findings is None or self.trials is None:
            return [*notes, *self._to_try()]
        manner = self.trials.manner
        if manner.is_deterministic:
            notes.append("the team is deterministic: a repeat would be the same, so there is one")
        if not manner.is_paired:
            notes.append(
                "the team draws its own random numbers: 3 of 3 good replays against 0 of 3 are "
                "p = .05"
            )
        if self.findings.screened:
            changes = counted(self.findings.screened, "change")
            notes.append(f"{changes} tried once only: no sign of success")
        notes += self.findings.notes
        notes += self.helper.notes if self.helper else ()
        notes += [f"{each.hypothesis.id}: {each.why}" for each in self.findings.tried if each.why]
        return notes


# --- how often an answer is right: `python -m bench.calibration` fitted it to known causes ---

FURTHEST = 0.01
"""A share nearer to 0 or 1 says no more than this one."""


def log_odds(share: float) -> float:
    """Return the logarithm of the odds of a share."""
    within = min(max(share, FURTHEST), 1 - FURTHEST)
    return log(within / (1 - within))


def map_share(share: float, slope: float, intercept: float) -> float:
    """Map a share to how often such an answer is right."""
    return 1 / (1 + exp(-slope * log_odds(share) - intercept))


@cache
def _fitted() -> tuple[float, float]:
    text = files("dig.diagnosis.attribution").joinpath("calibration.json").read_text("utf-8")
    numbers = json.loads(text)
    return numbers["slope"], numbers["intercept"]


def calibrate(share: float) -> float:
    """Return how often an answer with a share was right, in two digits."""
    return round(map_share(share, *_fitted()), 2)


TO_TRY = "what could be tried: "
_COSTS = ("model_calls", "input_tokens", "output_tokens", "uncounted_calls", "cost_usd")


def _sentence(hypothesis: Hypothesis) -> str:
    return " and ".join(map(in_words, hypothesis.interventions))


def _hypothesis_row(result: Tried, place: Place) -> rows.HypothesisRow:
    hypothesis, changed, unchanged = result.hypothesis, result.changed, result.unchanged
    return rows.HypothesisRow(
        id=hypothesis.id, candidate=hypothesis.candidate, attempt=hypothesis.attempt,
        interventions=tuple(map(dict, hypothesis.interventions)),
        expects=dict(hypothesis.expects) if hypothesis.expects else None,
        verdict=result.verdict, reason=result.reason,
        arms=rows.ArmRows(
            changed=rows.ChangedArm(
                n=changed.n, good=changed.successes, fulfilled=sum(changed.fulfilled),
                progress=changed.progress, forks=changed.forks,
            ),
            unchanged=rows.UnchangedArm(
                n=unchanged.n, good=unchanged.successes, progress=unchanged.progress,
                forks=unchanged.forks,
            ),
        ),
        p=result.p, onset=place.onset, no_return=place.no_return,
    )  # fmt: skip
