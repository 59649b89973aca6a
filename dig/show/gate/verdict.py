"""The findings that fail a check: the level that is asked for, what is ignored, and what is known.

Findings of one kind and one verdict are a *group*, so that a report of 5,000 equal findings has one
entry with a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Literal

from dig._util.text import counted, cut, name, one_line
from dig.detectors.finding import Finding, Severity
from dig.detectors.patterns import BY_NAME
from dig.errors import SettingsError
from dig.graph.records import HealRow, base_name

from .baseline import FindingKind, KnownFindings
from .checked import CheckedFinding, CheckedRun

Level = Literal["error", "warning", "notice", "unhealed"]
"""The findings that fail a check: unhealed errors, all errors, all alarms, or all findings."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "notice")
_MOST_REASON = 100


@dataclass(frozen=True)
class Ignored:
    """A pattern that does not count; with an agent, only findings that concern the agent.

    Attributes:
        pattern: The pattern's short name.
    """

    pattern: str
    agent: str | None = None

    @classmethod
    def of(cls, text: str, patterns: Iterable[str]) -> Ignored:
        """The findings that `--ignore PATTERN` or `--ignore PATTERN=AGENT` names.

        Args:
            text: The option's value.
            patterns: The patterns that there are.

        Raises:
            SettingsError: There is no such pattern.
        """
        pattern, equals, agent = text.partition("=")
        known = list(patterns)
        if pattern not in known:
            close = get_close_matches(pattern.upper(), known, 1, 0.5)
            hint = f"did you mean {close[0]}?" if close else f"known are: {', '.join(known)}"
            raise SettingsError(f"--ignore {text}: there is no pattern {pattern!r}; {hint}")
        if equals and not agent:
            raise SettingsError(f"--ignore {text}: name an agent after the =, or leave it out")
        return cls(pattern, base_name(agent) if agent else None)

    def __str__(self) -> str:
        """The option as it was given."""
        return f"--ignore {self.pattern}" + (f"={self.agent}" if self.agent is not None else "")

    def fits(self, kind: FindingKind) -> bool:
        """Findings of this kind are ignored."""
        return kind.pattern == self.pattern and (self.agent is None or self.agent in kind.agents)


@dataclass(eq=False)
class Group:
    """Findings of a run that have one kind and one verdict.

    Attributes:
        kind: Their kind.
        first, last: The first and the last of them.
        text: The explanation of the first.
        severity: What they are worth.
        is_mended: Whether they were mended.
        set_aside: Why they do not count, if they do not: silenced, ignored or known.
        fails: Whether they fail the check.
        count: How many they are.
        heals: How often healing did what about them, by action.
        first_heals: What healing did about the first of them.
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

    @property
    def is_alarm(self) -> bool:
        """The findings are worth a person's attention."""
        return self.set_aside is None and self.severity != "notice"

    @property
    def title(self) -> str:
        """The pattern with its name, and their number if there are several."""
        pattern = BY_NAME.get(self.kind.pattern)
        stage = f" {name(self.kind.stage)}" if self.kind.stage is not None else ""
        known = f" ({pattern.title})" if pattern else ""
        times = f", {counted(self.count, 'time')}" if self.count > 1 else ""
        return f"{name(self.kind.pattern)}{stage}{known}{times}"

    def with_more(self, other: Group) -> Group:
        """This group and another one of the same pattern as one, told by the earliest finding."""
        first, second = sorted((self, other), key=lambda one: one.first.t)
        return replace(
            first,
            last=max(first.last, second.last, key=lambda one: one.t),
            count=first.count + second.count,
            heals=first.heals + second.heals,
        )

    def add(self, one: CheckedFinding) -> None:
        """Count one more of them."""
        if not self.count:
            self.first_heals = one.heals
        self.count += 1
        self.last = one.finding
        self.heals.update(str(row.action) for row in one.heals)


@dataclass(frozen=True)
class RunVerdict:
    """A run with what of it fails the check.

    Attributes:
        groups: Its findings, the worst first; those of equal worth by the record of the first.
        fail_on: What fails the check.
    """

    run: CheckedRun
    groups: tuple[Group, ...]
    fail_on: Level

    @property
    def by_pattern(self) -> list[Group]:
        """The groups for a person, who needs one entry for a pattern, whatever agents there are."""
        merged: dict[tuple[object, ...], Group] = {}
        for group in self.groups:
            key = (group.kind[:2], group.severity, group.is_mended, group.set_aside)
            merged[key] = merged[key].with_more(group) if key in merged else group
        return list(merged.values())

    @property
    def is_cut_off(self) -> bool:
        """The trace has no end although no process writes it any more."""
        return self.run.state == "cut off"

    @property
    def failing(self) -> int:
        """The number of findings that fail the check."""
        return sum(group.count for group in self.groups if group.fails)

    @property
    def off(self) -> str:
        """The detectors that were off, in words; empty if none was."""
        names = cut([one_line(part, 80) for part in self.run.off])
        return f"{names} {'was' if len(self.run.off) == 1 else 'were'} off" if names else ""

    @property
    def fails(self) -> bool:
        """The run fails the check."""
        return self.is_cut_off or self.failing > 0 or bool(self.run.off)

    @property
    def reasons(self) -> str:
        """The reasons for which the run fails the check; empty if it does not."""
        parts = [counted(self.failing, NOUNS[self.fail_on])] if self.failing else []
        parts += ["the run was cut off"] * self.is_cut_off
        return " and ".join([*parts, self.off] if self.off else parts)


NOUNS = {
    "unhealed": "unhealed error", "error": "error", "warning": "alarm", "notice": "finding",
}  # fmt: skip
"""The name of findings that fail a check, by level."""


@dataclass(frozen=True)
class QualityGate:
    """Decides what fails a check.

    Attributes:
        ignored: What does not count.
        baseline: The kinds of findings that are known, and do not count.
    """

    fail_on: Level = "unhealed"
    ignored: Sequence[Ignored] = ()
    baseline: KnownFindings | None = None

    def judge(self, run: CheckedRun) -> RunVerdict:
        """The verdict on a run."""
        groups: dict[tuple[object, ...], Group] = {}
        reasons: dict[tuple[FindingKind, str | None], str | None] = {}
        for one in run.findings:
            finding, kind = one.finding, one.kind
            what = (kind, finding.silenced)
            if what not in reasons:
                reasons[what] = self._aside(*what)
            aside = reasons[what]
            key = (kind, finding.severity, one.is_mended, aside)
            group = groups.get(key)
            if group is None:
                fails = aside is None and self._counts(one)
                group = groups[key] = Group(
                    kind, finding, one.text, finding.severity, one.is_mended, aside, fails, finding
                )
            group.add(one)
        return RunVerdict(run, tuple(sorted(groups.values(), key=_worth)), self.fail_on)

    def _aside(self, kind: FindingKind, silenced: str | None) -> str | None:
        if silenced is not None:
            return f"silenced: {one_line(silenced, _MOST_REASON) or 'no reason is given'}"
        for one in self.ignored:
            if one.fits(kind):
                return f"ignored: {one}"
        return "known: in the baseline" if self.baseline and self.baseline.has(kind) else None

    def _counts(self, one: CheckedFinding) -> bool:
        if self.fail_on == "unhealed":
            return one.is_unhealed
        return SEVERITIES.index(one.finding.severity) <= SEVERITIES.index(self.fail_on)


def _worth(group: Group) -> tuple[bool, bool, int, bool]:
    severity = SEVERITIES.index(group.severity)
    return (group.set_aside is not None, not group.fails, severity, group.is_mended)
