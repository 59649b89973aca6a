"""The order of experiments on a failed run: from all of its agents to the smallest change.

1. Each agent's seat is given to another member, once.
2. The seats that helped are tried in full; then the others, until one is validated.
3. Without one, the changes that rules propose are tried.
4. With one: since when it differs, until when it helps, and which smaller change helps, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .case import Case
from .concepts import Candidate, Hypothesis
from .interventions.kinds import size
from .trials.arms import Trials, Tried, interrupted
from .trials.seats import (
    better_decisions,
    first_difference,
    last_help,
    redrawn_decision,
    seat,
)

MOST_SMALLER = 4
"""How many smaller changes are tried at the place of a seat that helps."""

DECIDED = ("discarded", "early", "waiting")
"""Mechanisms that lie in a decision: the agent might have decided otherwise."""


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
    """What experiments found; it is there even if they were interrupted.

    Attributes:
        tried: The hypotheses with their verdicts, in the order in which they were tried.
        places: More about seats that help, by the id of their hypothesis.
        once: How many hypotheses were tried once only, without success.
        notes: What was left undone.
    """

    tried: list[Tried] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    once: int = 0
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
        findings: What was found so far.
    """

    def __init__(
        self, case: Case, trials: Trials, candidates: Sequence[Candidate],
        team: Mapping[str, object], *, tries: int = 5, per_attempt: int = 2,
    ) -> None:  # fmt: skip
        """Begin; nothing is tried yet.

        Args:
            case: The run.
            trials: Makes the replays.
            candidates: The candidates, the likeliest first.
            team: The agents that go on, by name.
            tries: How many changes that rules propose are tried; seats do not count.
            per_attempt: How many of them are about one attempt.
        """
        self.findings = Findings()
        self._case, self._trials, self._candidates = case, trials, candidates
        self._places: dict[str, str] = {}  # the activations of proposed changes
        self._team, self._tries, self._per_attempt = team, tries, per_attempt

    def run(self) -> None:
        """Try everything in order.

        Raises:
            KeyboardInterrupt: It was interrupted; `findings` has what is finished.
        """
        seats = [one for c in self._candidates if (one := seat(self._case, self._team, c))]
        self._try_seats(seats)
        found = next(iter(self.findings.validated), None)
        if found is not None:
            self._look_closer(found)
        else:
            self._try_rules()
        if not self.findings.validated:
            self._try_again()

    def try_these(self, hypotheses: Iterable[Hypothesis]) -> None:
        """Try some hypotheses in full, and once more those that remain undecided."""
        for hypothesis in hypotheses:
            tried = self._verify(hypothesis)
            again = self._trials.verify_again(tried)
            self.findings.tried[-1] = again

    # --- steps ---

    def _try_seats(self, seats: Sequence[Hypothesis]) -> None:
        """Seats in the order of what one replay of each says, until one is validated."""
        if not seats:
            self.findings.notes.append("no agent can take the seat of another one")
            return
        screened = sorted(self._trials.once(seats), key=_promise)
        for number, one in enumerate(screened):
            promise = _promise(one)
            if promise == _WASTED or (promise != _GOOD and self.findings.validated):
                self.findings.once += len(screened) - number
                break
            self._verify(one.hypothesis)

    def _try_rules(self) -> None:
        """What rules propose about all agents, the likeliest first."""
        counts: dict[str | None, int] = {}
        chosen: list[Hypothesis] = []
        for one in self._proposed(None):
            if counts.get(one.attempt, 0) < max(self._per_attempt, self._alone()):
                counts[one.attempt] = counts.get(one.attempt, 0) + 1
                chosen.append(one)
        for one in chosen[: self._tries]:
            if any(self._helps(change) for change in self._changes(one)):
                break

    def _changes(self, proposed: Hypothesis) -> Iterator[Hypothesis]:
        """Another decision at the place of a proposed change, if one looks better; then that."""
        activation = self._places.get(str(proposed.interventions))
        if activation is not None:
            other = redrawn_decision(self._case, self._trials, proposed.candidate, activation)
            if other is not None:
                (once,) = self._trials.once([other])
                if once.verdict in ("validated", "partial"):
                    yield other
                else:
                    self.findings.once += 1
        yield proposed

    def _helps(self, hypothesis: Hypothesis) -> bool:
        return self._verify(hypothesis).verdict == "validated"

    def _alone(self) -> int:
        """How many changes a single attempt may have: all."""
        return self._tries if len(self._case.attempts) == 1 else 0

    def _look_closer(self, found: Tried) -> None:
        """Where a seat that helps begins and ceases to, and a smaller change at its place."""
        fork = self._trials.fork_of(found.hypothesis)
        paired = self._trials.manner.is_paired
        onset = first_difference(fork, self._case.run) if fork and paired else None
        self.findings.places[found.hypothesis.id] = Place(onset)
        last = last_help(self._case, self._trials, found.hypothesis)
        self.findings.places[found.hypothesis.id] = Place(onset, last)
        smaller = [*better_decisions(self._case, self._trials, found)]
        smaller += self._proposed(found.hypothesis.candidate)
        smaller = sorted(_each_once(smaller), key=lambda one: size(one.interventions))
        for one in self._trials.once(smaller[:MOST_SMALLER]):
            if one.verdict != "validated":
                self.findings.once += 1
            elif self._verify(one.hypothesis).verdict == "validated":
                break

    def _try_again(self) -> None:
        """What is mixed or flaky, with more repeats."""
        for number, one in enumerate(self.findings.tried):
            self.findings.tried[number] = self._trials.verify_again(one)

    def _proposed(self, candidate: str | None) -> Iterator[Hypothesis]:
        """What rules propose about a candidate; ``None``: about all."""
        by_agent = {one.agent: one.id for one in self._candidates}
        for odd in self._trials.lab.oddities(self._case.run):
            name = by_agent.get(odd.agent)
            if name is not None and candidate in (None, name):
                if odd.activation is not None and odd.mechanism in DECIDED:
                    self._places[str((odd.change,))] = odd.activation
                yield Hypothesis(
                    id="h0", candidate=name, interventions=(odd.change,),
                    attempt=self._case.attempt_of(odd.activation),
                )  # fmt: skip

    def _verify(self, hypothesis: Hypothesis) -> Tried:
        hypothesis = replace(hypothesis, id=f"h{len(self.findings.tried) + 1}")
        self.findings.tried.append(interrupted(hypothesis))
        tried = self._trials.verify(hypothesis)
        self.findings.tried[-1] = tried
        return tried


_GOOD, _WASTED = 0, 3


def _promise(one: Tried) -> int:
    """How much one replay promises: good, further than before, at least carried out, or nothing."""
    if one.verdict == "validated":
        return _GOOD
    if one.verdict == "partial":
        return 1
    return 2 if any(one.changed.fulfilled) else _WASTED


def _each_once(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    return list({str(one.interventions): one for one in hypotheses}.values())
