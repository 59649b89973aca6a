"""The description of a run in the first line of its journal, validated before use.

The checksums of a journal guard against accidents alone, so that line may say anything. Parts are
made from it only if they are of dig's own classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dig._util.text import first_wrong, safe_text
from dig.detectors.interventions import MEANS, Budget, Means
from dig.detectors.policy_settings import read_policy
from dig.detectors.recorded_names import RECORDED
from dig.errors import DigError, ReplayError, SettingsError
from dig.monitor.monitor import KEEP
from dig.runtime.setup import DESCRIBED, Setup

MOST_SHOWN = 200

_LATER = ("means", "redacts", "can_hold", "keep", "key", "look_again_s", "ladder")
"""Further settings of a run, which older headers lack."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class Part(_Strict):
    """A detector, healer or gate: recorded name and arguments."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(alias="class")

    @property
    def is_ours(self) -> bool:
        """Whether the part belongs to dig."""
        return self.name in RECORDED

    def make(self, method: str) -> Any:
        """A fresh part of the same class, with the same arguments.

        Args:
            method: The method that it must have: `detect` or `heal`.

        Raises:
            ReplayError: Such a part cannot be made.
        """
        # A header may name a healer where a detector must stand.
        if not hasattr(RECORDED[self.name], method):
            raise ReplayError(f"a part like {self.name} cannot {method}")
        try:
            # Only classes in a table are made, so a header cannot run foreign code.
            return RECORDED[self.name](**(self.model_extra or {}))
        except (TypeError, ValueError, DigError) as error:
            message = safe_text(str(error), MOST_SHOWN)
            raise ReplayError(f"a part like {self.name} cannot be made: {message}") from None


class _Budget(_Strict):
    model_config = ConfigDict(extra="forbid")

    per_run: int
    per_pattern: int
    per_subject: int
    per_problem: int = Budget().per_problem


class Header(_Strict):
    """The parts and settings of a run, as written by `Setup.header`."""

    model_config = ConfigDict(extra="forbid")

    version: int = 1
    detectors: tuple[Part, ...] = Field(strict=False)
    healers: dict[str, Part]
    gates: tuple[Part, ...] = Field(strict=False)
    budget: _Budget
    fail_closed: bool
    limit_s: float
    activation_timeout_s: float
    retries: int
    backoff_s: float
    means: tuple[Means, ...] = Field(MEANS, strict=False)
    redacts: bool = True
    key: str | None = None
    look_again_s: float = 0.0
    policy: dict[str, Any] = {"heal": "all"}  # of runs from before there were policies
    can_hold: bool = True
    keep: int | None = KEEP
    ladder: bool = False
    unnamed_policies: bool = False

    @property
    def foreign(self) -> list[str]:
        """The classes of detectors, healers and gates outside of dig."""
        parts = (*self.detectors, *self.healers.values())
        return [part.name for part in parts if not part.is_ours] + [g.name for g in self.gates]

    def setup(self) -> Setup:
        """A setup that makes fresh parts for each run.

        Raises:
            ReplayError: Some part cannot be made, or the policy is none.
        """
        self._detectors()
        self._healers()
        try:
            policy = read_policy(self.policy)
        except SettingsError as error:
            raise ReplayError(f"the policy of the run cannot be read: {error}") from None
        return Setup(
            detectors=self._detectors,
            healers=self._healers if self.healers else None,
            budget=Budget(**self.budget.model_dump()),
            **self.model_dump(include={*DESCRIBED, *_LATER}),
            policy=policy,
        )

    def _detectors(self) -> list[Any]:
        return [part.make("detect") for part in self.detectors]

    def _healers(self) -> dict[str, Any]:
        return {pattern: part.make("heal") for pattern, part in self.healers.items()}


def header_of(name: object, row: Mapping[str, Any]) -> Header:
    """The header in a journal's first line.

    Args:
        name: The journal, for errors.
        row: The JSON under the line's key `journal`.

    Raises:
        ReplayError: The header is missing or invalid; the message names the place.
    """
    if "detectors" not in row:
        raise ReplayError(
            f"{name}: its first line does not say what the run was made with; hand that in as a "
            "`Setup`, from Python"
        )
    try:
        return Header.model_validate(row)
    except ValidationError as error:
        place, reason = (safe_text(text, MOST_SHOWN) for text in first_wrong(error))
        raise ReplayError(
            f"{name}: what its first line says about how the run was made is wrong at {place}: "
            f"{reason}"
        ) from None
