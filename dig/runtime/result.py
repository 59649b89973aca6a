"""How a run ended: its outcome, its answer, what was raised, and what was left."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from dig._util.html import table
from dig._util.text import counted, one_line, value_text
from dig.detectors.describe import counts_text
from dig.detectors.finding import Finding, findings_html
from dig.detectors.verdict import FiveLines
from dig.graph.graph import InteractionGraph

STALLED = "nothing could happen any more"
"""Why a run is stopped in which no agent is at work, and nothing is due."""

GAVE_UP = "gave up"
"""The incident when an agent finds out that no agent of the team can go on."""


@dataclass(frozen=True)
class Left:
    """The work that was left at the end, by id, each list in order of generation.

    Attributes:
        undelivered: Events that were on their way to an agent.
        unconsumed: Work that was open: an agent could still have done it.
        orphaned: Work that no agent could reach any more, with the cause.
        unfinished: Activations that the end cut off, with their agents.
    """

    undelivered: tuple[str, ...]
    unconsumed: tuple[str, ...]
    orphaned: dict[str, str]
    unfinished: dict[str, str]


@dataclass(frozen=True)
class ComponentFailure:
    """A part that was handed in and failed: a detector, healer, gate or follower, for instance.

    Attributes:
        component: Its name.
        times: How often it failed.
        what: The latest failure; if the part was disabled, that is said here.
    """

    component: str
    times: int
    what: str

    def __str__(self) -> str:
        times = "" if self.times == 1 else f" {self.times:,} times, the last time"
        return f"{self.component} failed{times}: {self.what}"


@dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Attributes:
        outcome: `submitted`, `timeout`, `stopped` or `error`.
        reason: In words, why it ended.
        answer: The accepted answer (the last one, in a session).
        seconds: How long it took, on the run's clock.
        records: How many records the trace has.
        events: How many events there were.
        activations: How many activations there were.
        failures: How many of them failed, by agent.
        findings: What was raised, in order; of a session that evicts history, the latest.
        heals: How many interventions there were, by action.
        left: What was left at the end.
        errors: The latest error of each agent that failed.
        notes: What the system wrote beside the accepted answer.
        earlier: How many findings there were before `findings`, by pattern.
        component_failures: The parts that were handed in and failed: detectors, healers, gates,
            followers and the like.
        worth: How many findings of the detectors there were of each severity; those that a policy
            silences are counted as `silenced` only.
        verdict: All of it in five lines.
    """

    outcome: str
    reason: str
    answer: Any
    seconds: float
    records: int
    events: int
    activations: int
    failures: dict[str, int]
    findings: tuple[Finding, ...]
    heals: dict[str, int]
    left: Left
    errors: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    earlier: dict[str, int] = field(default_factory=dict)
    component_failures: tuple[ComponentFailure, ...] = ()
    worth: dict[str, int] = field(default_factory=dict)
    verdict: FiveLines = field(default_factory=FiveLines)

    def raised(self) -> dict[str, int]:
        """How many findings there were, by pattern."""
        return dict(Counter(self.earlier) + Counter(one.pattern for one in self.findings))

    def findings_text(self) -> str:
        """How many findings there were, by worth and by pattern, in words."""
        worth, raised = counts_text(self.worth), value_text(self.raised())
        return (f"{worth}: {raised}" if worth else raised) if self.raised() else "none"

    def _repr_html_(self) -> str:
        left = {what: one_line(value_text(value)) for what, value in asdict(self.left).items()}
        activity = f"{counted(self.activations, 'activation')}, {counted(self.events, 'event')}"
        rows = [
            *self.verdict.lines(),
            ("answer", one_line(self.answer)),
            ("time", f"{self.seconds:.1f} s"),
            ("activity", activity),
            ("findings", self.findings_text()),
            ("healing", value_text(self.heals) or "none"),
            *(("failed part", one_line(failure)) for failure in self.component_failures),
            *((what, text) for what, text in left.items() if text not in ("", "nothing")),
        ]
        summary = table(f"{self.outcome}: {one_line(self.reason)}", rows)
        return f"<div>{summary}{findings_html(self.findings) if self.findings else ''}</div>"

    def to_json(self) -> dict[str, Any]:
        """The result as `result.json` has it."""
        body = {k: v for k, v in self.__dict__.items() if k not in ("findings", "left", "earlier")}
        return {
            **body,
            "raised": self.raised(),
            "findings": [finding.row() for finding in self.findings],
            "left": asdict(self.left),
            "component_failures": [asdict(failure) for failure in self.component_failures],
            "verdict": asdict(self.verdict),
        }


def left(graph: InteractionGraph) -> Left:
    """The work that is left in a graph."""
    return Left(
        tuple(event.id for event in graph.flying()),
        tuple(event.id for event in graph.open_events()),
        graph.orphans(),
        {activation.id: activation.agent for activation in graph.activations.values()},
    )
