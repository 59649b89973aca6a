"""What the runs of an experiment may cost together, when a language model decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dig.errors import SettingsError
from dig.tasks.run.team_run import TeamRun
from dig.traces.usage import tokens

GO_ON = "give more, and the same command goes on from here"


@dataclass
class Allowance:
    """A budget for many runs, one after the other.

    Attributes:
        max_tokens: Tokens that they may take; ``None``: any number.
        max_usd: US dollars that they may cost; ``None``: any sum.
        tokens: What they have taken.
        usd: What they have cost.
    """

    max_tokens: int | None = None
    max_usd: float | None = None
    tokens: float = 0
    usd: float = 0.0

    @property
    def is_limited(self) -> bool:
        """Whether there is a budget."""
        return self.max_tokens is not None or self.max_usd is not None

    @property
    def used_up(self) -> str:
        """That nothing is left, in a sentence; empty, if something is."""
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            spent = f"{self.tokens:,.0f} of {self.max_tokens:,} tokens"
        elif self.max_usd is not None and self.usd >= self.max_usd:
            spent = f"${self.usd:.4f} of ${self.max_usd:g}"
        else:
            return ""
        return f"the budget of the experiment is used up, {spent}: {GO_ON}"

    def spend(self, usage: Mapping[str, float]) -> None:
        """Take what a run has used off."""
        self.tokens += tokens(usage) or 0
        self.usd += usage.get("cost_usd", 0.0)

    def limited(self, run: TeamRun) -> TeamRun:
        """A run that may spend what is left.

        Raises:
            SettingsError: Nothing is left.
        """
        if self.used_up:
            raise SettingsError(self.used_up)
        left: dict[str, Any] = {}
        if self.max_tokens is not None:
            left["max_tokens"] = int(self.max_tokens - self.tokens)
        if self.max_usd is not None:
            left["max_usd"] = self.max_usd - self.usd
        return replace(run, options={**run.options, **left}) if left else run
