"""The order of experiments on a failed run: from all agents to the smallest change.

1. Each agent's seat is given to another member, once: first the best candidates of each attempt.
2. The seats that helped are tried in full, until one is validated; one that helps by chance is
   tried again from the last activation from which it helps.
3. Without one, what a model and rules propose; if that helps in part, the rest in its fork.
4. With a validated seat: the first record that it changes, the last activation from which it still
   helps, and smaller changes at the same place.
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
from .trials import seats
from .trials.arms import Trials, Tried, move

MOST_SMALLER = 4
"""The number of smaller changes to try at the place of a helpful seat."""


@dataclass(frozen=True)
class Place:
    """The range of records for a helpful seat.

    Attributes:
        onset: The first record that is otherwise with it.
        no_return: The start of the last activation from which it still helps.
    """

    onset: int | None = None
    no_return: int | None = None


@dataclass
class Findings:
    """The results of experiments, also of interrupted experiments.

    Attributes:
        tried: The hypotheses with their verdicts, in the order in which they were tried.
        places: More about seats that help, by the id of their hypothesis.
        others: The candidates that a hypothesis with changes in several stages is about, by its id.
        screened: The number of hypotheses that were tried once only, without success.
        until_validated: The number of replays up to the first validated hypothesis; ``None``: none
            was.
        notes: The work that was left undone.
    """

    tried: list[Tried] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    others: dict[str, tuple[str, ...]] = field(default_factory=dict)
    screened: int = 0
    until_validated: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def validated(self) -> list[Tried]:
        """The validated hypotheses."""
        return [result for result in self.tried if result.verdict == "validated"]

    @property
    def fix(self) -> Tried | None:
        """The smallest validated change."""
        return min(self.validated, key=_size_of, default=None)


class Experiments:
    """Experiments to explain a failed run.

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
        # Seats come first: a replay tells whether an agent matters, whatever it did wrong.
        first, further = self._seats()
        if not first and not further and (note := self._trials.replayer.without_seats):
            self.findings.notes.append(note)
        screened, _ = self._search(first)
        if not self.findings.validated:
            screened += self._search(further)[0]
            self._try_promising(screened, _FURTHER)
        if self.findings.validated:
            self._look_closer(self.findings.validated[0])
        else:
            self._try_rules()
        if not self.findings.validated:
            self._try_promising(screened, _CARRIED_OUT)
            # Mixed and flaky changes once more, with more repeats; those of a fork's fork are left.
            for number, result in enumerate(self.findings.tried):
                if result.hypothesis.id not in self.findings.others:
                    self._keep(number, self._trials.verify_again(result))
        self.findings.screened += len(screened)

    def try_these(self, hypotheses: Iterable[Hypothesis]) -> None:
        """Try hypotheses in full, and undecided hypotheses again."""
        for hypothesis in hypotheses:
            self._keep(-1, self._trials.verify_again(self._verify(hypothesis)))

    def _search(self, hypotheses: Iterable[Hypothesis]) -> tuple[list[Tried], list[Tried]]:
        """Try each hypothesis once, and in full after a good replay; until a validated verdict.

        Returns:
            The hypotheses that were tried once only, and those that were tried in full.
        """
        screened: list[Tried] = []
        full: list[Tried] = []
        for hypothesis in hypotheses:
            result = self._trials.verify_once(hypothesis)
            if result.reason in ("budget", "cannot be replayed"):
                if result.why not in self.findings.notes:
                    self.findings.notes.append(result.why)
                if result.reason == "budget":
                    break
                continue
            if _promise(result) > _GOOD:
                screened.append(result)
                continue
            full.append(self._verify(hypothesis))
            if full[-1].reason == "flaky" and hypothesis.interventions[0]["kind"] == "seat":
                # The earlier it is taken, the more else is drawn anew; later may decide it.
                last = seats.last_help(self._case, self._trials, hypothesis)
                full[-1] = self._verify(hypothesis if last is None else move(hypothesis, last))
            if full[-1].verdict == "validated":
                break
        return screened, full

    def _try_promising(self, screened: list[Tried], promise: int) -> None:
        """Try hypotheses in full by the promise of the first replay, until a validated verdict.

        Args:
            screened: The hypotheses after one replay; those that are tried are taken out.
            promise: The promise of that replay.
        """
        for result in [result for result in screened if _promise(result) == promise]:
            screened.remove(result)
            if self._verify(result.hypothesis).verdict == "validated":
                return

    # --- seats ---

    def _seats(self) -> tuple[list[Hypothesis], list[Hypothesis]]:
        """The seats of the best candidates of each attempt, and all other seats.

        Each is taken from the agent's first activation: what helps from later on helps from there.
        """
        proposed = {
            candidate.id: seat
            for candidate in self._candidates
            if (seat := seats.propose_seat(self._case, self._team, candidate))
        }
        best = self._best_of_attempts([each for each in self._candidates if each.id in proposed])
        first = [proposed[candidate.id] for candidate in best]
        return first, [seat for seat in proposed.values() if seat not in first]

    def _best_of_attempts(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The best candidates of each attempt, each once."""
        best: dict[str, Candidate] = {}
        for attempt in self._case.attempts:
            acting = {self._case.run.activations[name].agent for name in attempt.activations}
            active = [candidate for candidate in candidates if candidate.agent in acting]
            best.update((candidate.id, candidate) for candidate in active[: self._per_attempt])
        return [*best.values()]

    def _look_closer(self, seat: Tried) -> None:
        """Find the range of a helpful seat, and a smaller change at the same place."""
        name, places = seat.hypothesis.id, self.findings.places
        fork = self._trials.fork_of(seat.hypothesis)
        is_paired = self._trials.manner.is_paired
        onset = seats.first_difference(fork, self._case.run) if fork and is_paired else None
        places[name] = Place(onset)  # kept if the user interrupts the search for the end
        places[name] = Place(onset, seats.last_help(self._case, self._trials, seat.hypothesis))
        smaller = [*seats.better_decisions(self._case, self._trials, seat)]
        accused = [each for each in self._candidates if each.id == seat.hypothesis.candidate]
        smaller += self._from_helper(accused)
        smaller += (self._hypothesis(*pair) for pair in self._from_rules(accused))
        each_once = {str(each.interventions): each for each in smaller}.values()
        count = len(self.findings.validated)
        for hypothesis in sorted(each_once, key=lambda each: size(each.interventions))[
            :MOST_SMALLER
        ]:
            if len(self.findings.validated) == count:
                self.findings.screened += len(self._search([hypothesis])[0])

    # --- changes that rules propose ---

    def _try_rules(self) -> None:
        """Try the changes of a model and of rules, until a validated verdict.

        If none makes the run good, there is more than one cause: the change that came furthest is
        kept, and the rest is looked for in its fork.
        """
        screened, result = self._search(self._proposed())
        if self.findings.validated:
            self.findings.screened += len(screened)
            return
        hopeful = [each for each in screened if _promise(each) == _FURTHER][: self._tries]
        self.findings.screened += len(screened) - len(hopeful)
        for each in hopeful:
            result.append(self._verify(each.hypothesis))
            if result[-1].verdict == "validated":
                return
        partial = [each for each in result if each.verdict == "partial"]
        carried_out = [each for each in screened if _promise(each) == _CARRIED_OUT]
        for each in [*sorted(partial, key=_mean_progress, reverse=True), *carried_out]:
            inner = self._after(each)
            if inner is not None:
                inner._try_rules()
                return

    def _after(self, result: Tried) -> Experiments | None:
        """Return experiments on the rest of the failure, in the first fork with a change.

        Returns:
            The experiments; ``None``, if that fork is good, or neither came further than the run
            nor failed later, or a further change would be one too many. A served fork cannot be
            continued.
        """
        before = self._whole(result.hypothesis)
        fork = self._trials.fork_path(result.hypothesis)
        is_full = len(before.interventions) >= MOST_INTERVENTIONS
        if fork is None or is_full or self._trials.replayer.trying.entry is not None:
            return None
        trials = self._trials.within(fork)
        case = trials.source.case(trials.replayer.goal)
        is_better = result.verdict == "partial" or _failed_us(case) > _failed_us(self._case)
        if not case.failures or not is_better:
            return None
        return Experiments(
            case, trials, self._candidates, self._team, tries=self._tries, before=before,
            causes=(*self._causes, result.hypothesis.candidate), findings=self.findings,
        )  # fmt: skip

    def _proposed(self) -> Iterator[Hypothesis]:
        """The changes of a model and of rules about all agents, each change once."""
        best = self._best_of_attempts(self._candidates)[: self._tries]
        room = MOST_INTERVENTIONS - (len(self._before.interventions) if self._before else 0)
        earlier: set[str] = set()
        for hypothesis in chain(self._from_helper(best), self._by_attempt()):
            rows = hypothesis.interventions
            if len(rows) <= room and str(rows) not in earlier:
                earlier.add(str(rows))
                yield hypothesis

    def _by_attempt(self) -> Iterator[Hypothesis]:
        """The changes of rules: so many of each attempt, and redrawn decisions."""
        counts = Counter[str | None]()
        most = self._tries if len(self._case.attempts) == 1 else self._per_attempt
        for candidate, proposal in self._from_rules(self._candidates):
            hypothesis, act = self._hypothesis(candidate, proposal), proposal.activation
            counts[hypothesis.attempt] += 1
            if counts[hypothesis.attempt] > most:
                continue
            if proposal.mechanism in DECIDED and act is not None:
                other = seats.redrawn_decision(self._case, self._trials, candidate.id, act)
                yield from [other] if other else []
            yield hypothesis

    def _from_rules(self, candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, Proposal]]:
        """The changes of rules about some candidates, if replays can make the changes."""
        replayer, run = self._trials.replayer, self._case.run
        for candidate, proposal in proposals(self._case, candidates):
            rows = (proposal.change, *proposal.beside)
            if all(replayer.can_change(run, row) for row in rows):
                yield candidate, proposal
        for candidate in candidates:
            for row in replayer.retries(run, candidate.agent):
                yield candidate, Proposal(row)

    def _from_helper(self, candidates: Iterable[Candidate]) -> Iterator[Hypothesis]:
        """The proposals of the helper."""
        if self._proposes is not None:
            for candidate in candidates:
                for proposal in self._proposes.interventions(self._case, candidate):
                    yield self._hypothesis(candidate, proposal)

    def _hypothesis(self, candidate: Candidate, proposal: Proposal) -> Hypothesis:
        return Hypothesis(
            id="h0", candidate=candidate.id, interventions=(proposal.change, *proposal.beside),
            attempt=self._case.attempt_of.get(proposal.activation or candidate.activation),
            expects=proposal.expects,
        )  # fmt: skip

    def _verify(self, hypothesis: Hypothesis) -> Tried:
        """Try a hypothesis in full, and keep the result with all earlier changes."""
        hypothesis = replace(hypothesis, id=f"h{len(self.findings.tried) + 1}")
        combined = self._whole(hypothesis)
        if self._before is not None:
            self.findings.others[hypothesis.id] = (*self._causes, hypothesis.candidate)
        # If the user interrupts the replays, this stands in their document.
        self.findings.tried.append(Tried(combined, "inconclusive", "interrupted"))
        result = self._trials.verify(hypothesis)
        self._keep(-1, replace(result, hypothesis=combined))
        return result

    def _keep(self, number: int, result: Tried) -> None:
        """Record the result of the hypothesis with a number."""
        findings = self.findings
        findings.tried[number] = result
        if result.verdict == "validated" and findings.until_validated is None:
            findings.until_validated = self._trials.costs.replays

    def _whole(self, hypothesis: Hypothesis) -> Hypothesis:
        """A hypothesis with all earlier changes, about the first place."""
        before = self._before
        if before is None:
            return hypothesis
        together = (*before.interventions, *hypothesis.interventions)
        return replace(before, id=hypothesis.id, interventions=together)


# From the best to the worst, so that a larger number promises less.
_GOOD, _FURTHER, _CARRIED_OUT, _WASTED = range(4)


def _promise(result: Tried) -> int:
    """The promise of a replay: good, further than before, at least carried out, or nothing."""
    if result.verdict == "validated":
        return _GOOD
    if result.verdict == "partial":
        return _FURTHER
    return _CARRIED_OUT if any(result.changed.fulfilled) else _WASTED


def _mean_progress(result: Tried) -> float:
    return sum(progress or 0 for progress in result.changed.progress) / max(result.changed.n, 1)


def _size_of(result: Tried) -> tuple[int, int, int]:
    return size(result.hypothesis.interventions)


def _failed_us(case: Case) -> int:
    """The moment of the first failure."""
    numbers = (evidence.t for failure in case.failures for evidence in failure.evidence)
    return min((case.run.times[t] for t in numbers if t is not None), default=0)
