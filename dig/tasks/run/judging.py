"""Settings of the judge, a method of `dig.lab.judge`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dig.errors import SettingsError
from dig.tasks.user_objects import numbers

SIMULATED, LIKE_TEAM = "simulated", "team"


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Settings of the judge.

    Attributes:
        by: The judge: `simulated`; the name of a model; or `team`: the model that decides for
            the agents if there is one, else a simulated judge.
        every: The number of activations from one reading to the next.
        recall: Simulated: how likely it sees a failure that has come about since its last reading.
        precision: Simulated: which share of what it reports is true, in the long run.
        latency_s: Simulated: median seconds that a reading takes.
        spread: Simulated: standard deviation of the logarithm of `latency_s`.
    """

    by: str = LIKE_TEAM
    every: int = 10
    recall: float = 0.6
    precision: float = 0.7
    latency_s: float = 4.0
    spread: float = 0.25

    @classmethod
    def of(cls, texts: Iterable[str]) -> Judging:
        """Read settings from `NAME=VALUE`s, as on a command line.

        Raises:
            SettingsError: There is no such name, or a value is wrong; the message names it.
        """
        return cls(**numbers(cls, texts, "--judge"))

    def __post_init__(self) -> None:
        """Check the ranges of all values.

        Raises:
            SettingsError: A value is out of its range; the message names it.
        """
        if self.every < 1:
            raise SettingsError(
                f"the judge's `every` must be at least 1 activation, got {self.every}"
            )
        if not 0 <= self.recall <= 1:
            raise SettingsError(f"the judge's recall must be from 0 to 1, got {self.recall!r}")
        if not 0 < self.precision <= 1:
            raise SettingsError(
                f"the judge's precision must be above 0 and at most 1, got {self.precision!r}"
            )
        if not (0 <= self.latency_s < 1e6 and 0 <= self.spread < 10):
            raise SettingsError(
                f"the judge's latency_s must be from 0 to 1e6 seconds and its spread from 0 to 10, "
                f"got {self.latency_s!r} and {self.spread!r}"
            )

    @property
    def model(self) -> str | None:
        """The name of the judging model; ``None``: no name is given."""
        return None if self.by in (SIMULATED, LIKE_TEAM) else self.by
