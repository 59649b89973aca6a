"""Experiments: the two arms of a hypothesis, repeats, and the budget for all.

with Trials(trying.replayer(run, goal)) as trials:
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

from dig._util.json_values import dumps
from dig.diagnosis.interventions.recorded import as_recorded
from dig.diagnosis.progress import share_reached
from dig.errors import SettingsError
from dig.runtime.workers import Workers
from dig.show.document import Hypothesis, Reason, Verdict
from dig.traces.replay.kinds import in_words
from dig.traces.run import RecordedRun

from .fulfilment import ForkComparison, is_fulfilled
from .replays import Replay, Replayer, ReplayRequest, make_replay, read_fork
from .significance import Row, fisher, verdict

if TYPE_CHECKING:
    from dig.diagnosis.interventions.model_proposals import ModelHelp  # slow to import

_ORIGINS = {
    "made": "",
    "found": " (found, not made)",
    "made again": " (made again: the fork that was there is not as you made it)",
}
MORE = 3
"""A verdict that is mixed or flaky is asked for again with so many times the repeats."""


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
    """The repeats with a change, or without; a value for each repeat.

    Attributes:
        good: Whether the repeat is good.
        fulfilled: Whether the change was carried out.
        progress: The progress of the repeat.
        forks: Its directory; the recorded run stands for repeat 0 of a control.
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
        """Fisher's exact p of the two arms, against no effect."""
        changed, unchanged = self.changed, self.unchanged
        return fisher(changed.successes, changed.n, unchanged.successes, unchanged.n)

    @property
    def at(self) -> int:
        """The first record with possible differences."""
        return first_record(self.hypothesis)


@dataclass(frozen=True)
class _Pair:
    """A repeat, with the change and without."""

    changed: Replay
    control: Replay
    is_fulfilled: bool


class _NotMade(NamedTuple):
    """Why a replay could not be made."""

    reason: Reason
    why: str


class Trials:
    """Experiments on a run; equal replays are made once.

    Attributes:
        replayer: Makes the replays.
        costs: The cost so far.
    """

    def __init__(
        self, replayer: Replayer, *, tell: Callable[[str], None] = lambda line: None,
        helper: ModelHelp | None = None,
    ) -> None:  # fmt: skip
        """Begin; nothing is made yet.

        Args:
            replayer: Makes the replays, and has the settings.
            tell: Takes a line for each replay.
            helper: The model that judges whether notes were followed, and milestones.

        Raises:
            SettingsError: A number is out of range, or the team that goes on cannot be made.
        """
        trying = replayer.trying
        if trying.repeat < 1:
            raise SettingsError(f"repeat must be at least 1, got {trying.repeat}")
        self.manner = replayer.manner
        self.n = 1 if self.manner.is_deterministic else trying.repeat
        self.costs = TrialCosts()
        self._budget, self._has_controls = trying.budget, trying.has_controls
        self._tell, self._helper = tell, helper
        self._began = time.monotonic()
        self._workers = Workers(trying.jobs, "the experiments", "try it with fewer --jobs")
        self._start(replayer)

    def _start(self, replayer: Replayer) -> None:
        self.replayer, self.source = replayer, replayer.source
        self._replays: dict[str, Replay] = {}
        recorded = self.source.judged(replayer.goal)
        self._recorded_progress = self._progress(self.source.run, recorded.good, recorded.progress)
        self._milestones = self.source.milestones(replayer.goal)

    def _progress(self, run: RecordedRun, is_good: bool, progress: float | None) -> float | None:
        """The progress of a run: by the model, if the model judges milestones."""
        if self._helper is None or not self._helper.has_milestones:
            return progress
        milestones = self._helper.milestones(run, is_good)
        return share_reached(milestones, is_good) if milestones else progress

    def within(self, fork: Path) -> Trials:
        """Return experiments on a fork, with the same budget and costs.

        Args:
            fork: The directory of the fork.
        """
        inner = copy.copy(self)  # costs, budget and workers are the same objects
        inner._start(replace(self.replayer, path=fork))
        return inner

    def __enter__(self) -> Self:
        self._workers.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)

    # --- hypotheses ---

    def verify(self, hypothesis: Hypothesis, n: int | None = None) -> Tried:
        """Repeat a hypothesis until there is a verdict.

        Args:
            hypothesis: The hypothesis.
            n: The number of repeats that are to count; ``None``: as for all.
        """
        n, is_paired = n or self.n, self.manner.is_paired
        pairs: list[_Pair] = []
        # The first repeat is made alone: if the change cannot be made, the others cost nothing.
        if isinstance(self._pair(hypothesis, 0), _Pair):
            self._fetch([each for k in range(1, n) for each in self._requests(hypothesis, k)])
        for k in range(3 * n if is_paired else n):
            pair = self._pair(hypothesis, k)
            if isinstance(pair, _NotMade):
                return self._trial(hypothesis, pairs, "inconclusive", *pair)
            pairs.append(pair)
            # A pair whose control is good by itself says nothing about the change.
            counting = [k == 0 or not is_paired or not pair.control.good
                        for k, pair in enumerate(pairs)]  # fmt: skip
            if sum(counting) >= n:
                break
        result, reason = verdict(*_rows(pairs), self._milestones, is_paired, n)
        detail = ""
        if reason == "flaky":
            well = sum(pair.control.good for pair in pairs)
            detail = f"it gets well by itself: {well} of {len(pairs)}"
        elif result == "partial":
            detail = f"what it still lacks: {pairs[0].changed.why}"
        return self._trial(hypothesis, pairs, result, reason, detail)

    def verify_again(self, trial: Tried) -> Tried:
        """Repeat a mixed or flaky verdict more often, if the budget allows."""
        if trial.reason not in ("mixed", "flaky") or self.manner.is_deterministic:
            return trial
        again = self.verify(trial.hypothesis, MORE * self.n)
        return trial if again.reason == "budget" else again

    def verify_once(self, hypothesis: Hypothesis) -> Tried:
        """Make a single repeat of a hypothesis, not enough for a verdict.

        Returns:
            What came of it: `inconclusive` with a reason, or the verdict of this one repeat.
        """
        pair = self._pair(hypothesis, 0)
        if isinstance(pair, _NotMade):
            return self._trial(hypothesis, [], "inconclusive", *pair)
        return self._trial(hypothesis, [pair], *verdict(*_rows([pair]), self._milestones, True, 1))

    def fork_path(self, hypothesis: Hypothesis) -> Path | None:
        """Return the directory of the first replay with a change, after trying."""
        return self._replays[_key(_changed_request(hypothesis, 0))].fork

    def fork_of(self, hypothesis: Hypothesis) -> RecordedRun | None:
        """Return the records of the first replay with a change, after trying."""
        fork = self.fork_path(hypothesis)
        return read_fork(fork) if fork else None

    def repeat_of(self, at: int, k: int) -> RecordedRun | None:
        """Return the records of an unchanged replay with the random numbers of a repeat.

        Args:
            at: The first record that may differ.
            k: The repeat.

        Returns:
            The records; ``None``, if the replay could not be made.
        """
        request = ReplayRequest(at, (), k, is_control=True)
        if self._fetch([request]):
            return None
        replay = self._replays[_key(request)]
        return read_fork(replay.fork) if replay.fork else None

    # --- one repeat ---

    def _requests(self, hypothesis: Hypothesis, k: int) -> list[ReplayRequest]:
        """The replays to make for a repeat: the control first, unless it is recorded."""
        changed = _changed_request(hypothesis, k)
        is_own_control = k == 0 and self.manner.is_paired and self.source.is_whole
        if is_own_control or not self._has_controls:
            return [changed]
        # An edited record comes about before anything else does; so must that of its control.
        run = self.source.run
        edits = [row for row in hypothesis.interventions if row["kind"] == "edit"]
        same = tuple(as_recorded(run, row) for row in edits if row["at"] < len(run.records))
        return [ReplayRequest(changed.at, same, k, is_control=True), changed]

    def _pair(self, hypothesis: Hypothesis, k: int) -> _Pair | _NotMade:
        """A repeat, or the reason why a replay is missing."""
        requests = self._requests(hypothesis, k)
        spent = self._fetch(requests)
        if spent:
            return _NotMade("budget", spent)
        replays = [self._replays[_key(request)] for request in requests]
        for replay in replays:
            if replay.fork is None:
                return _NotMade("cannot be replayed", replay.why)
        changed, goal = replays[-1], self.replayer.goal
        if len(replays) > 1:
            control = replays[0]
        else:  # the recorded run; what was found before the change does not count for it either
            recorded = self.source.judged(goal, requests[-1].at)
            control = Replay(None, recorded.good, self._recorded_progress, recorded.why)
        return _Pair(changed, control, self._is_fulfilled(hypothesis, changed, control))

    def _is_fulfilled(self, hypothesis: Hypothesis, changed: Replay, control: Replay) -> bool:
        assert changed.fork is not None
        parent, rows = self.source.run, hypothesis.interventions
        other = parent if control.fork is None else read_fork(control.fork)
        comparison = ForkComparison(parent, read_fork(changed.fork), other)
        if not is_fulfilled(rows, comparison, hypothesis.expects):
            return False
        return self._helper is None or self._helper.is_followed(rows, comparison.fork)

    # --- replays ---

    def _fetch(self, requests: Iterable[ReplayRequest]) -> str:
        """Make the missing replays, in order.

        Returns:
            Why the budget was spent before all of them were made; empty: it was not.
        """
        missing = {_key(request): request for request in requests}
        missing = {key: each for key, each in missing.items() if key not in self._replays}
        ordered: list[tuple[ReplayRequest, bool]] = []  # each with whether it is new
        spent: list[str] = []

        # Workers take requests ahead of the results, so those under way are counted as made.
        def affordable() -> Iterator[ReplayRequest]:
            before = self.costs.replays
            for request in missing.values():
                is_new = not self.replayer.has_fork(request)
                if is_new and (reason := self._spent(before + sum(new for _, new in ordered))):
                    spent.append(reason)
                    return
                ordered.append((request, is_new))
                yield request

        make = partial(make_replay, self.replayer)
        for number, replay in enumerate(self._workers.each(make, affordable())):
            request, is_new = ordered[number]
            if replay.fork is not None:
                progress = self._progress(read_fork(replay.fork), replay.good, replay.progress)
                replay = replace(replay, progress=progress)
            self._replays[_key(request)] = replay
            self._account(request, replay, is_new)
        return spent[0] if spent else ""

    def _spent(self, replays: int) -> str:
        """The reason against further replays after so many; empty: there is none."""
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

    def _account(self, request: ReplayRequest, replay: Replay, is_new: bool) -> None:
        if is_new:
            self.costs.replays += 1
            self.costs.cpu_s += replay.cpu_s
            self.costs.models.update(replay.costs)
        self.costs.found += replay.origin == "found"
        change = " and ".join(map(in_words, request.changes))
        if request.is_control:
            change = f"unchanged from {request.at} on"
        end = "cannot be replayed" if replay.fork is None else "good" if replay.good else "not good"
        self._tell(f"{change}, repeat {request.repeat}: {end}{_ORIGINS[replay.origin]}")

    # --- results ---

    def _trial(
        self, hypothesis: Hypothesis, pairs: Sequence[_Pair], result: Verdict,
        reason: Reason | None, detail: str = "",
    ) -> Tried:  # fmt: skip
        changed = _arm(
            [pair.changed for pair in pairs], tuple(pair.is_fulfilled for pair in pairs), ""
        )
        unchanged = TrialArm()
        if self._has_controls:
            unchanged = _arm([pair.control for pair in pairs], (), self.source.name)
        return Tried(hypothesis, result, reason, detail, changed, unchanged)


def _arm(replays: Sequence[Replay], fulfilled: tuple[bool, ...], recorded: str) -> TrialArm:
    return TrialArm(
        tuple(replay.good for replay in replays), fulfilled,
        tuple(replay.progress for replay in replays),
        tuple(replay.fork.name if replay.fork else recorded for replay in replays),
    )  # fmt: skip


def first_record(hypothesis: Hypothesis) -> int:
    """Return the first record with possible differences in the forks of a hypothesis."""
    return min(int(row["at"]) for row in hypothesis.interventions)


def move(hypothesis: Hypothesis, at: int) -> Hypothesis:
    """Return the same hypothesis, from another record on.

    Args:
        hypothesis: The hypothesis.
        at: The record.
    """
    rows = tuple({**row, "at": at} for row in hypothesis.interventions)
    return replace(hypothesis, id="h0", interventions=rows)


def _changed_request(hypothesis: Hypothesis, k: int) -> ReplayRequest:
    return ReplayRequest(first_record(hypothesis), tuple(hypothesis.interventions), k)


def _key(request: ReplayRequest) -> str:
    # Requests of different hypotheses may be equal: controls are, and share a replay.
    return dumps([request.at, [*request.changes], request.repeat])


def _rows(pairs: Sequence[_Pair]) -> tuple[list[Row | None], list[Row | None]]:
    def row(replay: Replay, is_fulfilled: bool) -> Row:
        return {"good": replay.good, "fulfilled": is_fulfilled, "progress": replay.progress}

    changed = [row(pair.changed, pair.is_fulfilled) for pair in pairs]
    return [*changed], [row(pair.control, True) for pair in pairs]
