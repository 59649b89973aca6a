"""A fault: a kind, a target and a window."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dig._util.text import names, one_line
from dig.detectors.thresholds import MOST_SECONDS
from dig.errors import SettingsError

from .fault_catalogue import Kind, is_foreign, kind_of
from .injector import Parameter


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A kind of fault on an agent, for a window of time.

    Attributes:
        kind: The kind's name in `dig.faults.inject.fault_catalogue.KINDS`.
        target: The agent.
        start_s: The start of the window, in seconds since the run began. The fault acts on each
            activation that starts in the window, with all that the activation sends.
        end_s: The end of the window; ``None``: never.
        parameters: Values of the kind's parameters; missing ones get their defaults.
    """

    kind: str
    target: str
    start_s: float = 0.0
    end_s: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check all values, and add the default parameters.

        Raises:
            SettingsError: A value is wrong; the message names it and the allowed ones.
        """
        allowed = kind_of(self.kind).parameters
        for name in self.parameters:
            if name not in allowed:
                raise SettingsError(
                    f"{self.kind} has no parameter {_quote(name)}; it has: {', '.join(allowed)}"
                )
        if not self.target or not isinstance(self.target, str):
            raise SettingsError(
                f"a fault needs a target, the name of an agent, not {_quote(self.target)}"
            )
        end_s = MOST_SECONDS if self.end_s is None else self.end_s
        if not 0 <= self.start_s < end_s <= MOST_SECONDS:
            raise SettingsError(
                f"{self.kind}: start must be at least 0 s and before end, which is at most "
                f"{MOST_SECONDS:g} s, got {self.start_s:g} and {end_s:g}"
            )
        values = {
            name: _read_value(self.kind, name, p, self.parameters.get(name, p.default))
            for name, p in allowed.items()
        }
        object.__setattr__(self, "parameters", values)

    def check_target(self, team: Collection[str]) -> None:
        """Refuse a team without the target.

        Raises:
            SettingsError: The target is not in the team.
        """
        if self.target not in team:
            target = one_line(repr(self.target), 60)
            raise SettingsError(
                f"{self.kind} has the target {target}, who is not in the team: {names([*team])}"
            )

    def is_on(self, time_s: float) -> bool:
        """Whether the fault acts at a time, in seconds since the run began."""
        return self.start_s <= time_s and (self.end_s is None or time_s < self.end_s)

    @property
    def row(self) -> Kind:
        """The kind's row in the catalogue."""
        return kind_of(self.kind)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, with all parameters."""
        return asdict(self)

    @classmethod
    def read(cls, row: Mapping[str, Any], foreign: Collection[str] = ()) -> Fault:
        """Read a fault from the JSON of `to_json`; imports no module named by a file.

        Args:
            row: The description.
            foreign: The kinds, as `module:object`, that the caller allows.

        Raises:
            SettingsError: The data describe no fault, or one of a kind that has to be named here.
        """
        kind = row.get("kind") if isinstance(row, Mapping) else None
        if is_foreign(kind) and kind not in foreign:
            raise SettingsError(f"the fault is of a kind to be named here too: {_quote(kind)}")
        try:
            return cls(**row)
        except (TypeError, AttributeError, OverflowError) as error:
            raise SettingsError(f"{_quote(row)} is no fault: {one_line(error)}") from None

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Parse a fault from the text of the option `--fault`.

        >>> Fault.parse("stall target=agent-3 start=10 end=30 seconds=5").parameters["seconds"]
        5.0

        Raises:
            SettingsError: The text describes no fault; the message says how one is written.
        """
        try:
            kind, *pairs = shlex.split(text) or [""]
        except ValueError as error:
            raise SettingsError(f"{_quote(text)} is not written as a fault is: {error}") from None
        values: dict[str, str] = {}
        for pair in pairs:
            name, equals, value = pair.partition("=")
            if not equals:
                raise SettingsError(
                    f"{one_line(kind, 40)}: {_quote(pair)} says nothing; write NAME=VALUE"
                )
            if name in values:
                raise SettingsError(
                    f"{one_line(kind, 40)}: {_quote(name)} is said twice; each fault is written by "
                    "itself"
                )
            values[name] = value
        if "target" not in values:
            raise SettingsError(
                f"{_quote(text)} has no target; write e.g. 'crash target=agent-3 start=10 end=30'"
            )
        target = values.pop("target")
        start, end = values.pop("start", "0"), values.pop("end", None)
        return cls(
            kind=kind,
            target=target,
            start_s=_number("start", start),
            end_s=None if end is None else _number("end", end),
            parameters=values,
        )


def _quote(value: object) -> str:
    """A value of a user or of a file, for an error."""
    return one_line(repr(value), 80)


def _number(name: str, text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError, OverflowError):
        raise SettingsError(f"{name} is {_quote(text)}; it must be a number") from None


def _read_value(kind: str, name: str, parameter: Parameter, value: Any) -> Any:
    """Check a parameter's value, and convert text to the parameter's type."""
    if value is None and parameter.default is None:
        return None
    of = int if parameter.default is None else type(parameter.default)
    if of is str:
        if value not in parameter.choices:
            choices = ", ".join(parameter.choices)
            raise SettingsError(f"{kind}: {name} is {_quote(value)}; it must be one of: {choices}")
        return value
    number = _number(f"{kind}: {name}", value)
    if not parameter.least <= number <= parameter.most or (of is int and number % 1):
        suffix = ", in whole numbers" if of is int else ""
        raise SettingsError(
            f"{kind}: {name} is {_quote(value)}; it goes from {parameter.least:g} "
            f"to {parameter.most:g}{suffix}"
        )
    return of(number)
