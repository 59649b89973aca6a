"""The failure patterns: a file for each pattern, and the table of all.

A new pattern is a file here and a row in `PATTERNS`; everything else iterates the table. `idle` is
the clock of patterns about absence, `event_window` that of patterns about single events, `repeats`
what the patterns about repetition share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dig.detectors.finding import SEVERITIES, Explanation, Finding, Severity
from dig.detectors.interventions import COOLDOWN_S
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import FindingRow

from . import (
    cross_lineage,
    deadlock,
    early_termination,
    excessive_rerouting,
    failed_turn,
    late_delivery,
    livelock,
    missing_termination,
    no_answer,
    orphaned_event,
    repeated_message,
    repeated_solving,
    stalled_activation,
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A failure pattern: the seven of the paper (table 1), and six of ours.

    Attributes:
        title: Its name.
        severity: The worth of its findings, unless their evidence says more: of the pattern in
            general, for tables and for old traces.
        meaning: Its definition in a sentence, as a judge is told.
        plain: The meaning for a reader who knows no graph; thresholds go by their names.
        role: The part of the agent that acted, as a predicate; an agent that waits was hit.
        detector: Makes its detector.
        describe: The subject and evidence of a finding in a sentence.
        describe_in: The same with the graph of the run, where that says more.
        prove: The sentences beyond the description of a finding, and the paths that prove it.
        healer: Makes its healer.
    """

    title: str
    severity: Severity
    meaning: str
    plain: str
    role: str
    detector: type[Detector]
    describe: Callable[[Any, Any], str]
    prove: Callable[[PathFinder, Finding], Proof]
    healer: Callable[[], Healer]
    describe_in: Callable[[Any, Any, InteractionGraph], str] | None = None

    @property
    def name(self) -> str:
        """The short name, `ET` for instance."""
        return self.detector.pattern

    def text(self, finding: Finding | FindingRow, graph: InteractionGraph | None) -> str:
        """A finding in a sentence; without the graph of its run, by its evidence alone."""
        if graph is None or self.describe_in is None:
            return self.describe(finding.subject, finding.evidence)
        return self.describe_in(finding.subject, finding.evidence, graph)

    def explain(self, graph: InteractionGraph, finding: Finding) -> Explanation:
        """Explain a finding by the graph of its run, at any later time."""
        more, paths = self.prove(PathFinder(graph, finding), finding)
        text = self.text(finding, graph)
        text += "" if text.endswith(" ...") else "."
        return Explanation(f"{text} {more}" if more else text, paths)


# In the order in which simultaneous findings are listed: what a record raises, then what a window
# raises.
PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "early termination", "error",
        "an answer is submitted while some work is open, or was lost.",
        "an answer was submitted before all of its work was done",
        "submitted too early",
        early_termination.EarlyTermination,
        early_termination.describe,
        early_termination.prove,
        early_termination.HealEarlyTermination,
    ),
    Pattern(
        "excessive rerouting", "warning",
        "an event was rerouted more than reroute_limit times and not consumed.",
        "the same work was handed on more than {reroute_limit} times, and no agent did it",
        "handed work on",
        excessive_rerouting.ExcessiveRerouting,
        excessive_rerouting.describe,
        excessive_rerouting.prove,
        excessive_rerouting.HealExcessiveRerouting,
    ),
    Pattern(
        "cross-lineage aggregation", "warning",
        "an agent has in front of it, or consumes together, events that go back to different "
        "activations and have no origin in common.",
        "results that do not belong together were put together",
        "mixed what does not belong together",
        cross_lineage.CrossLineageAggregation,
        cross_lineage.describe,
        cross_lineage.prove,
        cross_lineage.HealCrossLineage,
    ),
    Pattern(
        "repeated subproblem solving", "notice",
        "two activations that generate no more events than they consume consumed the same event.",
        "the same piece of work was done twice",
        "did work that was done",
        repeated_solving.RepeatedSolving,
        repeated_solving.describe,
        repeated_solving.prove,
        repeated_solving.HealRepeatedSolving,
    ),
    Pattern(
        "the same said again", "warning",
        "an agent generates the same message from the same inputs loop_limit times.",
        "an agent said the same {loop_limit} times",
        "said the same again",
        repeated_message.RepeatedMessage,
        repeated_message.describe,
        repeated_message.prove,
        repeated_message.HealRepeatedMessage,
    ),
    Pattern(
        "going round", "notice",
        "at most livelock_agents agents hand on to each other livelock_turns times in a row.",
        "a few agents handed work to each other {livelock_turns} times in a row",
        "went round",
        livelock.Livelock,
        livelock.describe,
        livelock.prove,
        livelock.HealLivelock,
        describe_in=livelock.describe,
    ),
    Pattern(
        "no answer", "error",
        "the submitted answer is empty, the question itself, or a call written down.",
        "what was submitted as the answer is none",
        "submitted what is no answer",
        no_answer.VoidAnswer,
        no_answer.describe,
        no_answer.prove,
        no_answer.HealVoidAnswer,
    ),
    Pattern(
        "failed turn", "warning",
        "an agent fails; or an answer does without an agent that failed; or a request ends without "
        "an answer.",
        "an agent failed, and what it had to do may be missing",
        "did without an agent that failed",
        failed_turn.FailedTurn,
        failed_turn.describe,
        failed_turn.prove,
        failed_turn.HealFailedTurn,
    ),
    Pattern(
        "stalled activation", "error",
        "an activation lasts stall_factor times as long as nine of ten turns before it, and no "
        "less than stall_min_s.",
        "an agent took far longer than usual",
        "took far too long",
        stalled_activation.StalledActivation,
        stalled_activation.describe,
        stalled_activation.prove,
        stalled_activation.HealStalledActivation,
    ),
    Pattern(
        "missing termination", "error",
        "no work is open any more, and for mc_window_s nobody submits.",
        "all work was done, but for {mc_window_s:g} s no agent submitted an answer",
        "was the last to work",
        missing_termination.MissingTermination,
        missing_termination.describe,
        missing_termination.prove,
        missing_termination.HealMissingTermination,
    ),
    Pattern(
        "orphaned event", "error",
        "work that nobody consumed is with nobody and on its way to nobody, because it was "
        "discarded or sent to nobody who is there, for oe_window_s.",
        "some work was lost: no agent had it for {oe_window_s:g} s",
        "lost work",
        orphaned_event.OrphanedEvent,
        orphaned_event.describe,
        orphaned_event.prove,
        orphaned_event.HealOrphanedEvent,
    ),
    Pattern(
        "deadlock", "error",
        "work lies in buffers, none is on its way, and for dl_window_s nobody makes progress.",
        "work was waiting, but nothing had moved on for {dl_window_s:g} s",
        "waits",
        deadlock.Deadlock,
        deadlock.describe,
        deadlock.prove,
        deadlock.HealDeadlock,
    ),
    Pattern(
        "late delivery", "error",
        "work is on its way to its recipients for late_window_s, and no policy keeps it.",
        "a message was on its way for {late_window_s} s",
        "waits for a message",
        late_delivery.LateDelivery,
        late_delivery.describe,
        late_delivery.prove,
        late_delivery.HealLateDelivery,
    ),
)  # fmt: skip

# The table is the only list of patterns: thresholds, pages, policies and benchmarks iterate it.
BY_NAME: Mapping[str, Pattern] = MappingProxyType({row.name: row for row in PATTERNS})
NAMES = tuple(BY_NAME)


def severity(pattern: object) -> Severity:
    """The severity of a pattern in general; a user's pattern is a warning."""
    row = BY_NAME.get(str(pattern))
    return row.severity if row else "warning"


def severity_of(finding: Finding | FindingRow) -> Severity:
    """The severity of a finding or, in an old trace, of the pattern."""
    is_said = finding.severity in SEVERITIES
    return finding.severity if is_said else severity(finding.pattern)


def standard() -> list[Detector]:
    """Make a detector for each pattern; a detector belongs to a single run."""
    return [pattern.detector() for pattern in PATTERNS]


def standard_healers(
    *, cooldown_s: float = COOLDOWN_S, designate: bool = False
) -> dict[str, Healer]:
    """Make a healer for each pattern, by the pattern's name.

    Args:
        cooldown_s: Seconds before the same is said again where it could be said at once.
        designate: Name a handler for work that several agents are given, to prevent RSP.
    """
    healers = {pattern.name: pattern.healer() for pattern in PATTERNS}
    healers["ET"] = early_termination.HealEarlyTermination(cooldown_s)
    healers["ER"] = excessive_rerouting.HealExcessiveRerouting(cooldown_s)
    if designate:
        healers["RSP"] = repeated_solving.DesignateHandler()
    return healers
