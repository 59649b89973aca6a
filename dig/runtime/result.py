"""The result of a run: outcome, answer, findings, and remaining work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from dig._util.html import Card, strip, table
from dig._util.text import counted, one_line, value_text
from dig.detectors.answers import ANSWERS, FiveAnswers
from dig.detectors.describe import counts_text
from dig.detectors.finding import Finding, findings_html
from dig.detectors.run_so_far import RunSoFar
from dig.errors import BudgetExceeded
from dig.graph.graph import InteractionGraph

STALLED = "nothing could happen any more"
"""Why a run is stopped in which no agent is at work, and nothing is due."""

MOST_EXPLAINED = 3
"""The most findings that a notebook explains, each with its paths."""

_RED, _MAUVE, _GREEN, _GREY = "#b3261e", "#a2447f", "#00785a", "#5b6472"

GAVE_UP = "gave up"
"""The incident when an agent finds out that no agent of the team can go on."""


@dataclass(frozen=True)
class Left:
    """The remaining work at the end, by id, in order of generation.

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
    """A failed plug-in: a detector, healer, gate or follower, for instance.

    Attributes:
        component: Its name.
        times: The number of times that the component failed.
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
    """The result of a run.

    Attributes:
        outcome: `submitted`, `timeout`, `stopped` or `error`.
        reason: In words, why it ended.
        answer: The accepted answer (the last one, in a session).
        seconds: The duration of the run, on its clock.
        records: The number of records of the trace.
        events: The number of events.
        activations: The number of activations.
        failures: The number of activations that failed, by agent.
        findings: The findings, in order; of a session that evicts history, the latest.
        heals: The number of interventions, by action.
        left: The work that was left at the end.
        errors: The latest error of each agent that failed.
        notes: The notes of the system beside the accepted answer.
        earlier: The number of findings before `findings`, by pattern.
        component_failures: The parts that were handed in and failed: detectors, healers, gates,
            followers and the like.
        worth: The number of findings of the detectors of each severity; those that a policy
            silences are counted as `silenced` only.
        verdict: The five answers about it, without a score.
        partial: Whether the accepted answer was handed back at a limit of the budget.
        exceeded: The exception of the latest request that used up its budget without an answer.
        graph: The graph of the run, which explains the findings (`dig.explain`).
        so_far: What the five answers are made of.
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
    verdict: FiveAnswers = field(default_factory=FiveAnswers)
    partial: bool = False
    exceeded: BudgetExceeded | None = field(default=None, compare=False, repr=False)
    graph: InteractionGraph | None = field(default=None, compare=False, repr=False)
    so_far: RunSoFar | None = field(default=None, compare=False, repr=False)

    def raised(self) -> dict[str, int]:
        """The number of findings, by pattern."""
        return dict(Counter(self.earlier) + Counter(finding.pattern for finding in self.findings))

    def findings_text(self) -> str:
        """The number of findings, by worth and by pattern, in words."""
        worth, raised = counts_text(self.worth), value_text(self.raised())
        return (f"{worth}: {raised}" if worth else raised) if self.raised() else "none"

    def _repr_html_(self) -> str:
        remaining = {kind: one_line(value_text(value)) for kind, value in asdict(self.left).items()}
        activity = f"{counted(self.activations, 'activation')}, {counted(self.events, 'event')}"
        rows = [
            *self.verdict.lines(),
            ("answer", one_line(self.answer)),
            ("time", f"{self.seconds:.1f} s"),
            ("activity", activity),
            ("findings", self.findings_text()),
            ("healing", value_text(self.heals) or "none"),
            *(("failed part", one_line(failure)) for failure in self.component_failures),
            *((kind, text) for kind, text in remaining.items() if text not in ("", "nothing")),
        ]
        summary = table(f"{self.outcome}: {one_line(self.reason)}", rows)
        worst = sorted(self.findings, key=lambda finding: (not finding.is_alarm, finding.t))
        paths = "".join(finding._repr_html_() for finding in worst[:MOST_EXPLAINED])
        findings = findings_html(self.findings) if self.findings else ""
        return f"<div>{strip(self._cards())}{summary}{paths}{findings}</div>"

    def _cards(self) -> Iterator[Card]:
        """The five answers, a card each, with the labels of the page."""
        lines, colours = dict(self.verdict.lines()), {"good": _GREEN, "bad": _RED}
        lines["ended"] = f"{self.verdict.headline} {self.verdict.ended}"
        colour = {"ended": colours.get(self.verdict.grade, _GREY), "monitor": _MAUVE}
        if self.verdict.wrong:
            colour |= {"wrong": _RED, "who": _RED}
        for key, label in ANSWERS.items():
            if key in lines:
                yield Card(label, lines[key], colour.get(key, _GREY))

    def to_json(self) -> dict[str, Any]:
        """The content of `result.json`."""
        apart = ("findings", "left", "earlier", "graph", "so_far", "exceeded")
        body = {k: v for k, v in self.__dict__.items() if k not in apart}
        return {
            **body,
            "raised": self.raised(),
            "findings": [finding.row() for finding in self.findings],
            "left": asdict(self.left),
            "component_failures": [asdict(failure) for failure in self.component_failures],
            "verdict": asdict(self.verdict),
        }


def remaining_work(graph: InteractionGraph) -> Left:
    """The remaining work of a graph."""
    return Left(
        tuple(event.id for event in graph.flying()),
        tuple(event.id for event in graph.open_events()),
        graph.orphans(),
        {activation.id: activation.agent for activation in graph.activations.values()},
    )
