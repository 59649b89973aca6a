"""The findings for which a check fails: the level, without ignored and known findings.

Findings of one pattern, one error and one verdict about the same agents are a *group*, so that a
report of 5,000 equal findings has a single entry with a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dig._util.text import counted, cut, did_you_mean, name, one_line
from dig.detectors.finding import SEVERITIES, Finding, FindingKind, Severity
from dig.detectors.patterns import BY_NAME
from dig.errors import SettingsError
from dig.graph.records import HealRow, base_name
from dig.traces.usage import tokens

from .checked import CheckedFinding, CheckedRun, error_of
from .known_findings import KnownFindings

Level = Literal["error", "warning", "notice", "unhealed"]
"""The findings that fail a check: unhealed errors, all errors, all alarms, or all findings."""

NOUNS = {
    "unhealed": "unhealed error", "error": "error", "warning": "alarm", "notice": "finding",
}  # fmt: skip
"""The name of findings that fail a check, by level."""

_MOST_REASON = 100


@dataclass(frozen=True)
class Ignored:
    """An ignored pattern; with an agent, only findings about the agent."""

    pattern: str
    agent: str | None = None

    @classmethod
    def of(cls, text: str, patterns: Collection[str]) -> Ignored:
        """Parse `--ignore PATTERN` or `--ignore PATTERN=AGENT`.

        Args:
            text: The option's value.
            patterns: The patterns that there are.

        Raises:
            SettingsError: There is no such pattern.
        """
        pattern, equals, agent = text.partition("=")
        if pattern not in patterns:
            hint = did_you_mean(pattern, patterns)
            raise SettingsError(f"--ignore {text}: there is no pattern {pattern!r}; {hint}")
        if equals and not agent:
            raise SettingsError(f"--ignore {text}: name an agent after the =, or leave it out")
        return cls(pattern, base_name(agent) if agent else None)

    def __str__(self) -> str:
        """The option on the command line."""
        return f"--ignore {self.pattern}" + (f"={self.agent}" if self.agent is not None else "")

    def covers(self, kind: FindingKind) -> bool:
        """Whether findings of a kind are ignored."""
        return kind.pattern == self.pattern and (self.agent is None or self.agent in kind.agents)


@dataclass(eq=False)
class Group:
    """Findings of a run with the same pattern, agents, error and verdict: an entry for a person.

    Notices that tell of no error are an entry for each pattern, since they may be hundreds.

    Attributes:
        kind: The kind of the first.
        first, last: The first and the last finding.
        text: The explanation of the first.
        severity: The severity of all.
        is_mended: Whether they were mended.
        set_aside: Why they do not count, if they do not: silenced, ignored or known.
        fails: Whether they fail the check.
        count: Their number.
        heals: The number of interventions about them, by action.
        first_heals: The interventions about the first.
        kinds: The kinds of all, which may differ in the types of events.
    """

    kind: FindingKind
    first: Finding
    text: str
    severity: Severity
    is_mended: bool
    set_aside: str | None
    fails: bool
    last: Finding
    count: int = 0
    heals: Counter[str] = field(default_factory=Counter)
    first_heals: tuple[HealRow, ...] = ()
    kinds: set[FindingKind] = field(default_factory=set)

    @property
    def is_alarm(self) -> bool:
        """The findings are worth a person's attention."""
        return self.set_aside is None and self.severity != "notice"

    @property
    def is_mended_error(self) -> bool:
        """A group of errors after which the run came right."""
        return self.severity == "error" and self.is_mended

    @property
    def title(self) -> str:
        """The pattern with the name, and the number of findings if there are several."""
        pattern = BY_NAME.get(self.kind.pattern)
        stage = f" {name(self.kind.stage)}" if self.kind.stage is not None else ""
        title = f" ({pattern.title})" if pattern else ""
        times = f", {counted(self.count, 'time')}" if self.count > 1 else ""
        return f"{name(self.kind.pattern)}{stage}{title}{times}"

    def add(self, checked: CheckedFinding) -> None:
        """Count a finding."""
        if not self.count:
            self.first_heals = checked.heals
        self.count += 1
        self.kinds.add(checked.kind)
        self.last = checked.finding
        self.heals.update(str(row.action) for row in checked.heals)


@dataclass(frozen=True)
class RunVerdict:
    """A run with the failing findings.

    Attributes:
        groups: Its findings, the worst first; those of equal worth by the record of the first.
        fail_on: The level that fails the check.
        allow_cut: Whether a run may be cut off, or leave requests without an answer.
    """

    run: CheckedRun
    groups: tuple[Group, ...]
    fail_on: Level
    allow_cut: bool = False

    @property
    def end(self) -> str:
        """The fault of the run's end, in words; empty: none."""
        if self.run.state == "cut off":
            return "the run was cut off"
        requests = counted(self.run.unanswered, "request")
        return f"{requests} left without an answer" if self.run.unanswered else ""

    @property
    def fails_by_end(self) -> bool:
        """The end of the run fails the check."""
        return bool(self.end) and not self.allow_cut

    @property
    def failing(self) -> int:
        """The number of failing findings."""
        return sum(group.count for group in self.groups if group.fails)

    @property
    def hurt(self) -> tuple[int, ...]:
        """The weight for a person: failing findings and a wrong end, alarms, tokens."""
        alarms = sum(group.count for group in self.groups if group.is_alarm)
        return self.failing + bool(self.end), alarms, int(tokens(self.run.costs.sums) or 0)

    @property
    def off(self) -> str:
        """The detectors with a time off, in words; empty: none."""
        names = cut([one_line(part, 80) for part in self.run.off])
        return f"{names} {'was' if len(self.run.off) == 1 else 'were'} off" if names else ""

    @property
    def fails(self) -> bool:
        """The run fails the check."""
        return self.fails_by_end or self.failing > 0 or bool(self.run.off)

    @property
    def reasons(self) -> str:
        """The reasons of the failure, in words; empty: the run passes."""
        parts = [counted(self.failing, NOUNS[self.fail_on])] if self.failing else []
        parts += [self.end] * self.fails_by_end
        return " and ".join([*parts, self.off] if self.off else parts)


@dataclass(frozen=True)
class QualityGate:
    """Decides which findings fail a check.

    Attributes:
        fail_on: The level that fails the check.
        ignored: The findings that do not count.
        baseline: The kinds of findings that are known, and do not count.
        allow_cut: Whether a run passes that was cut off, or left requests without an answer.
    """

    fail_on: Level = "unhealed"
    ignored: Sequence[Ignored] = ()
    baseline: KnownFindings | None = None
    allow_cut: bool = False

    def judge(self, run: CheckedRun) -> RunVerdict:
        """The verdict on a run."""
        groups: dict[tuple[object, ...], Group] = {}
        # A run may have 100,000 findings of few kinds, and a baseline is searched for each kind.
        reasons: dict[tuple[FindingKind, str | None], str | None] = {}
        for checked in run.findings:
            finding, kind = checked.finding, checked.kind
            cause = (kind, finding.silenced)
            if cause not in reasons:
                reasons[cause] = self._set_aside(*cause)
            reason = reasons[cause]
            error = error_of(finding)
            shared = kind[: 2 if finding.severity == "notice" and not error else 3]
            key = (*shared, error, finding.severity, checked.is_mended, reason)
            group = groups.get(key)
            if group is None:
                fails = reason is None and self._fails(checked)
                group = groups[key] = Group(
                    kind, finding, checked.text, finding.severity, checked.is_mended, reason,
                    fails, finding,
                )  # fmt: skip
            group.add(checked)
        ranked = tuple(sorted(groups.values(), key=_rank))
        return RunVerdict(run, ranked, self.fail_on, self.allow_cut)

    def _set_aside(self, kind: FindingKind, silenced: str | None) -> str | None:
        """The reason to set findings aside; ``None``: the findings count."""
        if silenced is not None:
            return f"silenced: {one_line(silenced, _MOST_REASON) or 'no reason is given'}"
        for ignored in self.ignored:
            if ignored.covers(kind):
                return f"ignored: {ignored}"
        return "known: in the baseline" if self.baseline and self.baseline.has(kind) else None

    def _fails(self, checked: CheckedFinding) -> bool:
        if self.fail_on == "unhealed":
            return checked.is_unhealed
        return SEVERITIES.index(checked.finding.severity) <= SEVERITIES.index(self.fail_on)


def _rank(group: Group) -> tuple[bool, bool, int, bool]:
    severity = SEVERITIES.index(group.severity)
    return (group.set_aside is not None, not group.fails, severity, group.is_mended)
