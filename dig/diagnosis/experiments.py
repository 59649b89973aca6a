"""The order of experiments on a failed run: from all of its agents to the smallest change.

1. Each agent's seat is given to another member, once: first the best candidates of each attempt.
2. The seats that helped are tried in full, until one is validated; one that helps by chance is
   tried again from the last activation from which it helps.
3. Without one, what a model and rules propose; if that helps in part, the rest in its fork.
4. With one: since when it differs, until when it helps, and which smaller change helps, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from dig.show.document import Candidate, Hypothesis
from dig.traces.replay.kinds import MOST_INTERVENTIONS, size

from .case import Case
from .interventions.proposing import DECIDED, Proposal, Proposes, proposals
from .trials.arms import Trials, Tried, interrupted, moved
from .trials.seats import (
    better_decisions,
    first_difference,
    last_help,
    redrawn_decision,
    seat,
)

MOST_SMALLER = 4
"""The number of smaller changes that are tried at the place of a seat that helps."""


@dataclass(frozen=True)
class Place:
    """More about a seat that helps.

    Attributes:
        onset: The first record that is otherwise with it.
        no_return: The start of the last activation from which it still helps.
    """

    onset: int | None = None
    no_return: int | None = None


@dataclass
class Findings:
    """The results of experiments; they are there even if these were interrupted.

    Attributes:
        tried: The hypotheses with their verdicts, in the order in which they were tried.
        places: More about seats that help, by the id of their hypothesis.
        others: The candidates that a hypothesis with changes in several stages is about, by its id.
        once: The number of hypotheses that were tried once only, without success.
        until_validated: The number of replays up to the first validated hypothesis; ``None``: none
            was.
        notes: The work that was left undone.
    """

    tried: list[Tried] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    others: dict[str, tuple[str, ...]] = field(default_factory=dict)
    once: int = 0
    until_validated: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def validated(self) -> list[Tried]:
        """The hypotheses that are validated."""
        return [one for one in self.tried if one.verdict == "validated"]

    @property
    def fix(self) -> Tried | None:
        """The smallest change that is validated."""
        return min(self.validated, key=lambda one: size(one.hypothesis.interventions), default=None)


class Experiments:
    """Tries what may explain a failed run.

    Attributes:
        findings: The results so far.
    """

    def __init__(
        self, case: Case, trials: Trials, candidates: Sequence[Candidate],
        team: Mapping[str, object], *, tries: int = 5, per_attempt: int = 2,
        proposes: Proposes | None = None, before: Hypothesis | None = None,
        causes: tuple[str, ...] = (), findings: Findings | None = None,
    ) -> None:  # fmt: skip
        """Begin; nothing is tried yet.

        Args:
            case: The run.
            trials: Makes the replays.
            candidates: The candidates, the likeliest first.
            team: The agents that go on, by name.
            tries: The number of changes proposed by rules that are tried; seats do not count.
            per_attempt: The number of candidates of one attempt that come before all others.
            proposes: Proposes changes of the best candidates of each attempt, before rules do.
            before: The changes made before, if the run is a fork that these experiments made.
            causes: The candidates that these changes are about.
            findings: The results so far; ``None``: none.
        """
        self.findings = findings or Findings()
        self._case, self._trials, self._candidates = case, trials, candidates
        self._team, self._tries, self._per_attempt = team, tries, per_attempt
        self._proposes, self._before, self._causes = proposes, before, causes

    def run(self) -> None:
        """Try everything in order.

        Raises:
            KeyboardInterrupt: The user interrupted the work; `findings` has the finished part.
        """
        first, others = self._seats()
        if not first and not others:
            self.findings.notes.append("no agent can take the seat of another one")
        screened, _ = self._search(first)
        if not self.findings.validated:
            screened += self._search(others)[0]
            self._try(screened, _FURTHER)
        if self.findings.validated:
            self._look_closer(self.findings.validated[0])
        else:
            self._try_rules()
        if not self.findings.validated:
            self._try(screened, _CARRIED_OUT)
            self._try_again()
        self.findings.once += len(screened)

    def try_these(self, hypotheses: Iterable[Hypothesis]) -> None:
        """Try some hypotheses in full, and once more those that remain undecided."""
        for hypothesis in hypotheses:
            self._keep(-1, self._trials.verify_again(self._verify(hypothesis)))

    def _search(self, hypotheses: Iterable[Hypothesis]) -> tuple[list[Tried], list[Tried]]:
        """Each hypothesis once, and in full if that is good; until one is validated.

        Returns:
            Those that were tried once only, and those that were tried in full.
        """
        once: list[Tried] = []
        full: list[Tried] = []
        for one in hypotheses:
            tried = self._trials.once(one)
            if tried.reason == "budget":
                if tried.why not in self.findings.notes:
                    self.findings.notes.append(tried.why)
                break
            if _promise(tried) > _GOOD:
                once.append(tried)
                continue
            full.append(self._tried_in_full(one))
            if full[-1].verdict == "validated":
                break
        return once, full

    def _try(self, screened: list[Tried], promise: int) -> None:
        """The full results of hypotheses of which one replay promises so much, until one helps.

        Args:
            screened: The hypotheses after one replay; those that are tried are taken out.
            promise: The least promise of that replay.
        """
        for one in [one for one in screened if _promise(one) == promise]:
            screened.remove(one)
            if self._verify(one.hypothesis).verdict == "validated":
                return

    def _tried_in_full(self, hypothesis: Hypothesis) -> Tried:
        """A hypothesis in full; a seat that helps by chance, from the last activation on."""
        tried = self._verify(hypothesis)
        if tried.reason == "flaky" and hypothesis.interventions[0]["kind"] == "seat":
            last = last_help(self._case, self._trials, hypothesis)
            tried = self._verify(moved(hypothesis, last, "h0") if last is not None else hypothesis)
        return tried

    # --- seats ---

    def _seats(self) -> tuple[list[Hypothesis], list[Hypothesis]]:
        """The seats of the best candidates of each attempt, and those of all others.

        Each is taken from the agent's first activation: what helps from later on helps from there.
        """
        first: dict[str, int] = {}
        for activation in self._case.run.activations.values():
            first.setdefault(activation.agent, activation.t)
        seats = {
            one.id: found
            for one in self._candidates
            if (found := seat(self._case, self._team, replace(one, t=first.get(one.agent, one.t))))
        }
        best = self._best_of_attempts([one for one in self._candidates if one.id in seats])
        soon = [seats[one.id] for one in best]
        return soon, [one for one in seats.values() if one not in soon]

    def _best_of_attempts(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The best candidates of each attempt, each once."""
        best: dict[str, Candidate] = {}
        for attempt in self._case.attempts:
            acting = {self._case.run.activations[name].agent for name in attempt.activations}
            mine = [one for one in candidates if one.agent in acting]
            best.update((one.id, one) for one in mine[: self._per_attempt])
        return [*best.values()]

    def _look_closer(self, found: Tried) -> None:
        """The range in which a seat helps, and a smaller change at its place."""
        fork = self._trials.fork_of(found.hypothesis)
        paired = self._trials.manner.is_paired
        onset = first_difference(fork, self._case.run) if fork and paired else None
        self.findings.places[found.hypothesis.id] = Place(onset)
        last = last_help(self._case, self._trials, found.hypothesis)
        self.findings.places[found.hypothesis.id] = Place(onset, last)
        smaller = [*better_decisions(self._case, self._trials, found)]
        mine = [one for one in self._candidates if one.id == found.hypothesis.candidate]
        smaller += self._asked(mine)
        smaller += (self._hypothesis(*pair) for pair in self._proposed(mine))
        smaller = sorted(_each_once(smaller), key=lambda one: size(one.interventions))
        known = len(self.findings.validated)
        for one in smaller[:MOST_SMALLER]:
            if len(self.findings.validated) == known:
                self.findings.once += len(self._search([one])[0])

    # --- changes that rules propose ---

    def _try_rules(self) -> None:
        """Changes that a model and rules propose about all agents, until one is validated.

        If none makes the run good, there is more than one cause: the change that came furthest is
        kept, and the rest is looked for in its fork.
        """
        screened, tried = self._search(self._chosen())
        if self.findings.validated:
            self.findings.once += len(screened)
            return
        hopeful = [one for one in screened if _promise(one) == _FURTHER][: self._tries]
        self.findings.once += len(screened) - len(hopeful)
        for one in hopeful:
            tried.append(self._verify(one.hypothesis))
            if tried[-1].verdict == "validated":
                return
        partial = [one for one in tried if one.verdict == "partial"]
        carried_out = [one for one in screened if _promise(one) == _CARRIED_OUT]
        for one in [*sorted(partial, key=_way, reverse=True), *carried_out]:
            inner = self._after(one)
            if inner is not None:
                inner._try_rules()
                return

    def _after(self, tried: Tried) -> Experiments | None:
        """Experiments on what still fails in the first fork with a change.

        Returns:
            The experiments; ``None``, if that fork is good, or neither came further than the run
            nor failed later, or a further change would be one too many. A served fork cannot be
            continued.
        """
        before = self._whole(tried.hypothesis)
        fork = self._trials.place_of(tried.hypothesis)
        is_full = len(before.interventions) >= MOST_INTERVENTIONS
        if fork is None or is_full or self._trials.lab.entry is not None:
            return None
        trials = self._trials.within(fork)
        case = trials.source.case(trials.lab.goal)
        is_better = tried.verdict == "partial" or _failed_us(case) > _failed_us(self._case)
        if not case.failures or not is_better:
            return None
        return Experiments(
            case, trials, self._candidates, self._team, tries=self._tries, before=before,
            causes=(*self._causes, tried.hypothesis.candidate), findings=self.findings,
        )  # fmt: skip

    def _chosen(self) -> Iterator[Hypothesis]:
        """Changes that a model and rules propose about all agents, each change once."""
        best = self._best_of_attempts(self._candidates)[: self._tries]
        room = MOST_INTERVENTIONS - (len(self._before.interventions) if self._before else 0)
        known: set[str] = set()
        for one in chain(self._asked(best), self._by_rules()):
            if len(one.interventions) <= room and str(one.interventions) not in known:
                known.add(str(one.interventions))
                yield one

    def _by_rules(self) -> Iterator[Hypothesis]:
        """Changes that rules propose: so many of each attempt, and other decisions beside them."""
        counts = Counter[str | None]()
        most = self._tries if len(self._case.attempts) == 1 else self._per_attempt
        for candidate, said in self._proposed(self._candidates):
            hypothesis = self._hypothesis(candidate, said)
            counts[hypothesis.attempt] += 1
            if counts[hypothesis.attempt] > most:
                continue
            if said.mechanism in DECIDED and said.activation is not None:
                other = redrawn_decision(self._case, self._trials, candidate.id, said.activation)
                yield from [other] if other else []
            yield hypothesis

    def _proposed(self, candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, Proposal]]:
        """Changes that rules propose about some candidates, as far as it can be made in replays."""
        lab, run = self._trials.lab, self._case.run
        for one, said in proposals(self._case, candidates):
            if all(lab.is_possible(run, row) for row in (said.change, *said.beside)):
                yield one, said
        for one in candidates:
            yield from ((one, Proposal(row)) for row in lab.asked_again(run, one.agent))

    def _asked(self, candidates: Iterable[Candidate]) -> Iterator[Hypothesis]:
        """The proposals besides those of rules."""
        if self._proposes is not None:
            for one in candidates:
                for said in self._proposes.interventions(self._case, one):
                    yield self._hypothesis(one, said)

    def _hypothesis(self, candidate: Candidate, said: Proposal) -> Hypothesis:
        return Hypothesis(
            id="h0", candidate=candidate.id, interventions=(said.change, *said.beside),
            attempt=self._case.attempt_of(said.activation or candidate.activation),
            expects=said.expects,
        )  # fmt: skip

    def _try_again(self) -> None:
        """Try the mixed and flaky changes again, with more repeats."""
        for number, one in enumerate(self.findings.tried):
            if one.hypothesis.id not in self.findings.others:  # that is about a fork
                self._keep(number, self._trials.verify_again(one))

    def _verify(self, hypothesis: Hypothesis) -> Tried:
        """Try a hypothesis in full, and keep it with all that was changed before."""
        hypothesis = replace(hypothesis, id=f"h{len(self.findings.tried) + 1}")
        whole = self._whole(hypothesis)
        if self._before is not None:
            self.findings.others[hypothesis.id] = (*self._causes, hypothesis.candidate)
        self.findings.tried.append(interrupted(whole))
        tried = self._trials.verify(hypothesis)
        self._keep(-1, replace(tried, hypothesis=whole))
        return tried

    def _keep(self, number: int, tried: Tried) -> None:
        """Take note of what came of the hypothesis with a number."""
        findings = self.findings
        findings.tried[number] = tried
        if tried.verdict == "validated" and findings.until_validated is None:
            findings.until_validated = self._trials.costs.replays

    def _whole(self, hypothesis: Hypothesis) -> Hypothesis:
        """A hypothesis with all that was changed before; it is about the first place."""
        before = self._before
        if before is None:
            return hypothesis
        together = (*before.interventions, *hypothesis.interventions)
        return replace(before, id=hypothesis.id, interventions=together)


_GOOD, _FURTHER, _CARRIED_OUT, _WASTED = range(4)


def _promise(one: Tried) -> int:
    """The promise of one replay: good, further than before, at least carried out, or nothing."""
    if one.verdict == "validated":
        return _GOOD
    if one.verdict == "partial":
        return _FURTHER
    return _CARRIED_OUT if any(one.changed.fulfilled) else _WASTED


def _way(one: Tried) -> float:
    """The progress of the replays of a change, added up."""
    return sum(way or 0 for way in one.changed.progress) / max(one.changed.n, 1)


def _failed_us(case: Case) -> int:
    """The moment of the first failure."""
    shown = (evidence.t for failure in case.failures for evidence in failure.evidence)
    return min((case.run.times[t] for t in shown if t is not None), default=0)


def _each_once(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    return list({str(one.interventions): one for one in hypotheses}.values())
