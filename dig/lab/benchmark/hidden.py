"""Candidates, played and verified: the end of the run decides whether a candidate is a failure.

A run with a right and complete answer is no failure, whatever was raised. Of several faults each
is left out in turn: if what the run comes to changes, it is a root cause, else a bystander.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from dig.diagnosis.causes import CausalGraph
from dig.faults.inject.fault import Fault
from dig.graph.records import Record
from dig.lab.run_pair import Played, play
from dig.lab.truth import verification
from dig.lab.truth.baseline import Baseline
from dig.lab.truth.matching import first_difference
from dig.lab.truth.verification import Dropped, Ending, is_all_good, verdicts

from .candidates import InstanceDraft
from .instances import Label, RunEnding, TrueCause
from .set_reading import step_at

DRAWS = 16
"""The number of times that faults are drawn until all take effect: many fit few agents only."""
SHARE_UNHARMED = 0.08
"""The largest share of instances without harm."""
NOBODY = "nobody to inject it into"
OVERDETERMINED = "fails without it too"
NOT_INNOCENT = "no decoy without harm"


@dataclass(frozen=True)
class Made:
    """A candidate, played and verified to be an instance.

    Attributes:
        label: Its label, which has no instance's name yet.
        graph: The verified consequences.
        twin: The trace without the faults.
        ending: The ending of the run; ``None``: it was made elsewhere.
    """

    candidate: InstanceDraft
    label: Label
    graph: CausalGraph
    trace: tuple[Record, ...]
    twin: tuple[Record, ...]
    ending: Ending | None = None

    @property
    def kind(self) -> str:
        """The kinds of the faults."""
        return self.label.kind


@dataclass(frozen=True)
class _Plan:
    """A run with decoys and faults.

    Attributes:
        decoys: The innocent oddities, which are in the twin as well.
        twin: The run with its decoys alone.
        faulted: The run with all of them.
    """

    decoys: tuple[Fault, ...]
    faults: tuple[Fault, ...]
    twin: Played
    faulted: Played

    @property
    def faults_alone(self) -> Played:
        """The run, with the acts of the faults alone."""
        # Decoys stand first in the list of what was injected, so numbers are shifted by them.
        first = len(self.decoys)
        acts = (
            replace(injection, fault=injection.fault - first)
            for injection in self.faulted.injections
            if injection.fault >= first
        )
        return replace(self.faulted, faults=self.faults, injections=tuple(acts))

    def play_without(self, number: int) -> Played:
        """Play the run without a fault of several."""
        faults = list(self.faults)
        # At rest, not removed: the others keep their places, and so their random numbers.
        faults[number] = verification.at_rest(faults[number])
        return play(self.faulted.run, (*self.decoys, *faults))


def attempt(draft_and_baseline: tuple[InstanceDraft, Baseline]) -> Made | Dropped:
    """Play a candidate and the twin, and verify the consequences against the baseline."""
    draft, baseline = draft_and_baseline
    plan = _plan_instance(draft, baseline)
    if isinstance(plan, Dropped):
        return plan
    came_to = verdicts(plan.faulted, baseline, plan.twin)
    ending = Ending(is_all_good(came_to), tuple(sorted(plan.faulted.raised)))
    played = plan.faults_alone
    # A run that ended well has no bad outcome; what the fault led to are findings at most.
    alarms = frozenset({"finding"}) if ending.is_good else frozenset({"outcome"})
    graph = verification.verify_all(
        played, replace(plan.twin, faults=(), injections=()), baseline, alarms
    )
    if isinstance(graph, Dropped):
        return replace(graph, ending=ending)
    causes, bystanders = _causes(plan, played, graph)
    if not ending.is_good:
        wrong = _contradiction(plan, baseline, came_to, {cause.number for cause in causes})
        if wrong:
            return Dropped(wrong, ending)
    return _make(draft, plan, graph, causes, bystanders, ending)


def _plan_instance(draft: InstanceDraft, baseline: Baseline) -> _Plan | Dropped:
    """Draw decoys and then faults, until all act and the decoys are innocent."""
    run, decoys = draft.run, tuple[Fault, ...]()
    twin = play(run)
    if draft.has_decoys:
        usual = twin.records
        for again in range(DRAWS):
            decoys = draft.decoys(usual, again)
            twin = play(run, decoys)
            did = _all_acted(twin, len(decoys)) and twin.records != usual
            # Decoys are innocent: with them alone, the run still ends well.
            if did and is_all_good(verdicts(twin, baseline)):
                break
        else:
            return Dropped(NOT_INNOCENT)
    for again in range(DRAWS):
        faults = draft.faults(twin.records, again)
        if not faults:
            return Dropped(NOBODY)
        # A decoy at the culprit would be no false track.
        if not {fault.target for fault in faults} & {fault.target for fault in decoys}:
            faulted = play(run, (*decoys, *faults))
            if _all_acted(faulted, len(decoys) + len(faults)):
                return _Plan(decoys, faults, twin, faulted)
    return Dropped(verification.SILENT)


def _all_acted(run: Played, number: int) -> bool:
    return {injection.fault for injection in run.injections} == set(range(number))


def _causes(
    plan: _Plan, played: Played, graph: CausalGraph
) -> tuple[list[TrueCause], list[TrueCause]]:
    """Sort the faults into root causes of the graph and bystanders."""
    targets = {cause.component for cause in graph.root_causes}
    causes: list[TrueCause] = []
    bystanders: list[TrueCause] = []
    for number, fault in enumerate(played.faults):
        # The twin is the run without the only fault: one play less.
        without = plan.twin if len(played.faults) == 1 else plan.play_without(number)
        first = min(injection.t for injection in played.injections if injection.fault == number)
        cause = TrueCause(
            number=number,
            component=fault.target,
            kind=fault.row.name,
            step=step_at(played.records, first),
            first_act=first,
            first_effect=first_difference(played.records, without.records),
        )
        (causes if fault.target in targets else bystanders).append(cause)
    return causes, bystanders


def _contradiction(
    plan: _Plan, baseline: Baseline, came_to: Sequence[str], causes: set[int]
) -> str:
    """Play without each fault and without decoys; return the first contradiction."""
    if len(plan.faults) > 1:
        for number in range(len(plan.faults)):
            is_same = verdicts(plan.play_without(number), baseline, plan.twin) == came_to
            if is_same and number in causes:
                return OVERDETERMINED
            if not is_same and number not in causes:
                return verification.NOT_VERIFIED
    if plan.decoys:
        # If the faults do no harm by themselves, the decoys are part of the cause.
        quiet = play(plan.faulted.run, (*map(verification.at_rest, plan.decoys), *plan.faults))
        if is_all_good(verdicts(quiet, baseline, plan.twin)):
            return NOT_INNOCENT
    return ""


def _make(
    draft: InstanceDraft, plan: _Plan, graph: CausalGraph, causes: Sequence[TrueCause],
    bystanders: Sequence[TrueCause], ending: Ending,
) -> Made:  # fmt: skip
    """Make the instance of a verified candidate.

    Args:
        draft: The candidate.
        plan: Its runs.
        graph: The verified consequences.
        causes: The faults that reach what the run came to.
        bystanders: The other faults.
        ending: The ending of the run.
    """
    played = plan.faults_alone
    label = Label(
        instance="",
        configuration=draft.stratum.configuration.name,
        run=played.run.about(),
        faults=tuple(fault.to_json() for fault in played.faults),
        injections=tuple(map(asdict, played.injections)),
        faulted=RunEnding.of(played),
        twin=RunEnding.of(plan.twin),
        stratum=draft.stratum.sort,
        harm=not ending.is_good,
        causes=tuple(causes),
        bystanders=tuple(bystanders),
        innocent=tuple(fault.to_json() for fault in plan.decoys),
    )
    return Made(draft, label, graph, played.records, plan.twin.records, ending)
