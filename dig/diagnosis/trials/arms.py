"""Experiments: the two arms of a hypothesis, its repeats, and the budget for all of them.

with Trials(lab, repeat=3) as trials:
    print(trials.verify(hypothesis).verdict)
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from dig.diagnosis.interventions.recorded import as_recorded
from dig.diagnosis.progress import progress as way
from dig.errors import SettingsError
from dig.graph.codec import dumps
from dig.runtime.workers import Workers
from dig.show.document import Hypothesis, Reason, Verdict
from dig.traces.replay.kinds import in_words
from dig.traces.run import RecordedRun

from .fulfilment import Compared, is_fulfilled
from .replays import Lab, MadeReplay, ReplayRequest, make_replay, read_fork, read_source
from .verdict import Row, fisher, verdict

if TYPE_CHECKING:
    from dig.diagnosis.interventions.asking import ModelHelp  # slow to import

_ORIGINS = {
    "made": "",
    "found": " (found, not made)",
    "made again": " (made again: the fork that was there is not as you made it)",
}
MORE = 3
"""A verdict that is mixed or flaky is asked for again with so many times the repeats."""


@dataclass(frozen=True)
class TrialBudget:
    """The bounds on the cost of experiments.

    Attributes:
        replays: The number of replays that may be made, controls included; ``None``: any number.
        seconds: The seconds that replays may take; ``None``: any time.
        usd: US dollars that they may cost; ``None``: any amount.
    """

    replays: int | None = 60
    seconds: float | None = 600.0
    usd: float | None = None


@dataclass
class TrialCosts:
    """The cost of experiments so far.

    Attributes:
        replays: The number of replays that were made.
        found: The number of replays that were there already.
        cpu_s: The processor time that they took.
        models: The cost of models in them, added up: calls, tokens, US dollars.
    """

    replays: int = 0
    found: int = 0
    cpu_s: float = 0.0
    models: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class TrialArm:
    """The repeats of one thing.

    Attributes:
        good: Of each repeat, whether it is good.
        fulfilled: Of each repeat, whether the change was carried out.
        progress: Of each repeat, how far it came.
        forks: Of each repeat, its directory; the recorded run stands for repeat 0 of a control.
    """

    good: tuple[bool, ...] = ()
    fulfilled: tuple[bool, ...] = ()
    progress: tuple[float | None, ...] = ()
    forks: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of repeats."""
        return len(self.good)

    @property
    def successes(self) -> int:
        """The number of good repeats."""
        return sum(self.good)


@dataclass(frozen=True)
class Tried:
    """The result of a hypothesis.

    Attributes:
        reason: Why it is `inconclusive`.
        why: More about that, in words.
        changed: The replays with the change.
        unchanged: The replays without it.
    """

    hypothesis: Hypothesis
    verdict: Verdict
    reason: Reason | None
    why: str = ""
    changed: TrialArm = TrialArm()
    unchanged: TrialArm = TrialArm()

    @property
    def p(self) -> float | None:
        """Fisher's exact one-sided p of the two arms."""
        one, other = self.changed, self.unchanged
        return fisher(one.successes, one.n, other.successes, other.n)

    @property
    def at(self) -> int:
        """The first record that may differ."""
        return first_of(self.hypothesis)


@dataclass(frozen=True)
class _Pair:
    """One repeat, with the change and without it."""

    changed: MadeReplay
    control: MadeReplay
    is_fulfilled: bool


class _NotMade(NamedTuple):
    """Why a replay could not be made."""

    reason: Reason
    why: str


class Trials:
    """Experiments on one run; equal replays are made once.

    Attributes:
        lab: The lab that makes the replays.
        costs: The cost so far.
    """

    def __init__(
        self, lab: Lab, *, repeat: int = 3, budget: TrialBudget | None = None, jobs: int = 1,
        tell: Callable[[str], None] = lambda line: None, has_controls: bool = True,
        helper: ModelHelp | None = None,
    ) -> None:  # fmt: skip
        """Begin; nothing is made yet.

        Args:
            lab: The lab that makes the replays.
            repeat: The number of repeats that are to count.
            budget: The bounds on the cost; ``None``: the default.
            jobs: The number of processes that work at once; the results do not depend on it.
            tell: Takes a line for each replay.
            has_controls: Whether replays without the change are made.
            helper: The model that judges whether notes were followed, and milestones.

        Raises:
            SettingsError: A number is out of range, or the team that goes on cannot be made.
        """
        if repeat < 1:
            raise SettingsError(f"repeat must be at least 1, got {repeat}")
        self.manner = lab.manner
        self.n = 1 if self.manner.is_deterministic else repeat
        self.costs = TrialCosts()
        self._budget = budget or TrialBudget()
        self._tell, self._has_controls, self._helper = tell, has_controls, helper
        self._began = time.monotonic()
        self._workers = Workers(jobs, "the experiments", "try it with fewer --jobs")
        self._begin(lab)

    def _begin(self, lab: Lab) -> None:
        self.lab = lab
        self.source = read_source(lab.source, lab.detectors)
        self._made: dict[str, MadeReplay] = {}
        judged = self.source.judged(lab.goal)
        self._recorded_way = self._way(self.source.run, judged.good, judged.progress)
        self._milestones = self.source.milestones(lab.goal)

    def _way(self, run: RecordedRun, is_good: bool, progress: float | None) -> float | None:
        """The progress of a run: as the model says, if it judges that."""
        if self._helper is None or not self._helper.has_milestones:
            return progress
        found = self._helper.milestones(run, is_good)
        return way(found, is_good) if found else progress

    def within(self, fork: Path) -> Trials:
        """Experiments on a fork that these have made; budget and costs are shared.

        Args:
            fork: The directory of the fork.
        """
        inner = copy.copy(self)
        inner._begin(replace(self.lab, source=fork))
        return inner

    def __enter__(self) -> Self:
        self._workers.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)

    # --- hypotheses ---

    def verify(self, hypothesis: Hypothesis, n: int | None = None) -> Tried:
        """The verdict about a hypothesis, after so many repeats as it takes.

        Args:
            hypothesis: The hypothesis.
            n: The number of repeats that are to count; ``None``: as for all.
        """
        n = n or self.n
        pairs: list[_Pair] = []
        if isinstance(self._pair(hypothesis, 0), _Pair):
            self._fetch([one for k in range(1, n) for one in self._requests(hypothesis, k)])
        for k in range(3 * n if self.manner.is_paired else n):
            pair = self._pair(hypothesis, k)
            if isinstance(pair, _NotMade):
                return self._tried(hypothesis, pairs, "inconclusive", *pair)
            pairs.append(pair)
            if self._counting(pairs) >= n:
                break
        found, reason = verdict(*_rows(pairs), self._milestones, self.manner.is_paired, n)
        why = ""
        if reason == "flaky":
            well = sum(pair.control.good for pair in pairs)
            why = f"it gets well by itself: {well} of {len(pairs)}"
        elif found == "partial":
            why = f"what it still lacks: {pairs[0].changed.why}"
        return self._tried(hypothesis, pairs, found, reason, why)

    def verify_again(self, tried: Tried) -> Tried:
        """A verdict that is mixed or flaky, once more with more repeats if the budget allows."""
        if tried.reason not in ("mixed", "flaky") or self.manner.is_deterministic:
            return tried
        again = self.verify(tried.hypothesis, MORE * self.n)
        return tried if again.reason == "budget" else again

    def once(self, hypothesis: Hypothesis) -> Tried:
        """A hypothesis after one repeat, which is no verdict yet.

        Returns:
            What came of it: `inconclusive` with a reason, or the verdict of this one repeat.
        """
        pair = self._pair(hypothesis, 0)
        if isinstance(pair, _NotMade):
            return self._tried(hypothesis, [], "inconclusive", *pair)
        found = verdict(*_rows([pair]), self._milestones, True, 1)
        return self._tried(hypothesis, [pair], *found)

    def place_of(self, hypothesis: Hypothesis) -> Path | None:
        """The directory of the first replay with a change that has been made before."""
        return self._made[_key(_changed(hypothesis, 0))].fork

    def fork_of(self, hypothesis: Hypothesis) -> RecordedRun | None:
        """The records of the first replay with a change that has been made before."""
        place = self.place_of(hypothesis)
        return read_fork(place) if place else None

    def repeated(self, at: int, k: int) -> RecordedRun | None:
        """The records of the run as it goes on with the random numbers of a repeat.

        Args:
            at: The first record that may differ.
            k: The repeat.

        Returns:
            The records; ``None``, if the replay could not be made.
        """
        request = ReplayRequest(at, (), k, is_control=True)
        if self._fetch([request]):
            return None
        made = self._made[_key(request)]
        return read_fork(made.fork) if made.fork else None

    # --- one repeat ---

    def _requests(self, hypothesis: Hypothesis, k: int) -> list[ReplayRequest]:
        """The replays of one repeat that are to be made: the control first, if it is made."""
        changed = _changed(hypothesis, k)
        control = ReplayRequest(changed.at, self._nothing(hypothesis), k, is_control=True)
        return [changed] if self._is_recorded(control) else [control, changed]

    def _nothing(self, hypothesis: Hypothesis) -> tuple[Row, ...]:
        """The changes of a control: none, but an edit is made as it was recorded.

        An edited record comes about before anything else does; so must that of its control.
        """
        edits = (row for row in hypothesis.interventions if row["kind"] == "edit")
        run = self.source.run
        return tuple(as_recorded(run, row) for row in edits if row["at"] < len(run.records))

    def _is_recorded(self, control: ReplayRequest) -> bool:
        """Whether the recorded run is its own control."""
        if not self._has_controls:
            return True
        return control.repeat == 0 and self.manner.is_paired and self.source.is_whole

    def _pair(self, hypothesis: Hypothesis, k: int) -> _Pair | _NotMade:
        """One repeat, or why it could not be made."""
        requests = self._requests(hypothesis, k)
        spent = self._fetch(requests)
        if spent:
            return _NotMade("budget", spent)
        made = [self._made[_key(one)] for one in requests]
        for one in made:
            if one.fork is None:
                return _NotMade("cannot be replayed", one.why)
        changed = made[-1]
        control = made[0] if len(made) > 1 else self._recorded(requests[-1].at)
        return _Pair(changed, control, self._fulfilled(hypothesis, changed, control))

    def _fulfilled(self, hypothesis: Hypothesis, changed: MadeReplay, control: MadeReplay) -> bool:
        assert changed.fork is not None
        parent = self.source.run
        other = parent if control.fork is None else read_fork(control.fork)
        compared = Compared(parent, read_fork(changed.fork), other)
        rows = hypothesis.interventions
        done = is_fulfilled(rows, compared, hypothesis.expects)
        return done and (self._helper is None or self._helper.followed(rows, compared.fork))

    def _recorded(self, at: int) -> MadeReplay:
        """The recorded run as a control: nothing has to be made."""
        judged = self.source.judged(self.lab.goal, at)
        return MadeReplay(None, judged.good, self._recorded_way, judged.why)

    def _counting(self, pairs: Iterable[_Pair]) -> int:
        if not self.manner.is_paired:
            return sum(1 for _ in pairs)
        return sum(k == 0 or not pair.control.good for k, pair in enumerate(pairs))

    # --- replays ---

    def _fetch(self, requests: Iterable[ReplayRequest]) -> str:
        """Make those of some replays that are not there, in their order.

        Returns:
            Why the budget was spent before all of them were made; empty: it was not.
        """
        missing = {_key(one): one for one in requests if _key(one) not in self._made}
        ordered: list[tuple[ReplayRequest, bool]] = []  # each with whether it is new
        spent: list[str] = []

        def affordable() -> Iterator[ReplayRequest]:
            before = self.costs.replays
            for request in missing.values():
                is_new = not self.lab.is_made(request)
                if is_new and (why := self._spent(before + sum(new for _, new in ordered))):
                    spent.append(why)
                    return
                ordered.append((request, is_new))
                yield request

        make = partial(make_replay, self.lab)
        for number, made in enumerate(self._workers.each(make, affordable())):
            request, is_new = ordered[number]
            if made.fork is not None:
                way_ = self._way(read_fork(made.fork), made.good, made.progress)
                made = replace(made, progress=way_)
            self._made[_key(request)] = made
            self._account(request, made, is_new)
        return spent[0] if spent else ""

    def _spent(self, replays: int) -> str:
        """Why no further replay may be made after so many; empty, if one may."""
        budget, usd = self._budget, self.costs.models.get("cost_usd")
        if self._helper is not None and "cost_usd" in self._helper.usage:
            usd = (usd or 0) + self._helper.usage["cost_usd"]
        if budget.replays is not None and replays >= budget.replays:
            return f"{budget.replays} replays were made, which is all that was allowed"
        if budget.seconds is not None and time.monotonic() - self._began >= budget.seconds:
            return f"{budget.seconds:g} seconds were spent, which is all that was allowed"
        if budget.usd is not None and usd is not None and usd >= budget.usd:
            return f"{budget.usd:g} US dollars were spent, which is all that was allowed"
        return ""

    def _account(self, request: ReplayRequest, made: MadeReplay, is_new: bool) -> None:
        if is_new:
            self.costs.replays += 1
            self.costs.cpu_s += made.cpu_s
            self.costs.models.update(made.costs)
        self.costs.found += made.origin == "found"
        what = " and ".join(map(in_words, request.changes))
        if request.is_control:
            what = f"unchanged from {request.at} on"
        how = "cannot be replayed" if made.fork is None else "good" if made.good else "not good"
        self._tell(f"{what}, repeat {request.repeat}: {how}{_ORIGINS[made.origin]}")

    # --- results ---

    def _tried(
        self, hypothesis: Hypothesis, pairs: Sequence[_Pair], found: Verdict,
        reason: Reason | None, why: str = "",
    ) -> Tried:  # fmt: skip
        changed = TrialArm(
            tuple(pair.changed.good for pair in pairs),
            tuple(pair.is_fulfilled for pair in pairs),
            tuple(pair.changed.progress for pair in pairs),
            tuple(_name(pair.changed) or "" for pair in pairs),
        )
        unchanged = TrialArm(
            tuple(pair.control.good for pair in pairs),
            (),
            tuple(pair.control.progress for pair in pairs),
            tuple(_name(pair.control) or self.source.name for pair in pairs),
        )
        if not self._has_controls:
            unchanged = TrialArm()
        return Tried(hypothesis, found, reason, why, changed, unchanged)


def interrupted(hypothesis: Hypothesis) -> Tried:
    """A hypothesis whose experiments were interrupted."""
    return Tried(hypothesis, "inconclusive", "interrupted")


def first_of(hypothesis: Hypothesis) -> int:
    """The first record that may differ in the forks of a hypothesis."""
    return min(int(row["at"]) for row in hypothesis.interventions)


def moved(hypothesis: Hypothesis, at: int, name: str) -> Hypothesis:
    """The same hypothesis, from another record on.

    Args:
        hypothesis: The hypothesis.
        at: The record.
        name: Its new name.
    """
    rows = tuple({**row, "at": at} for row in hypothesis.interventions)
    return replace(hypothesis, id=name, interventions=rows)


def _changed(hypothesis: Hypothesis, k: int) -> ReplayRequest:
    return ReplayRequest(first_of(hypothesis), tuple(hypothesis.interventions), k)


def _key(request: ReplayRequest) -> str:
    return dumps([request.at, [*request.changes], request.repeat])


def _name(made: MadeReplay) -> str | None:
    return made.fork.name if made.fork else None


def _rows(pairs: Sequence[_Pair]) -> tuple[list[Row | None], list[Row | None]]:
    changed: list[Row | None] = [
        {
            "good": pair.changed.good, "fulfilled": pair.is_fulfilled,
            "progress": pair.changed.progress,
        }
        for pair in pairs
    ]  # fmt: skip
    unchanged: list[Row | None] = [
        {"good": pair.control.good, "fulfilled": True, "progress": pair.control.progress}
        for pair in pairs
    ]
    return changed, unchanged
