"""Budgets of teams: limits on turns, tokens, dollars and seconds, with prices of models.

They are part of a policy; `dig.runtime.spending` counts, and hosts stop a team at a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeAlias

from dig._util.text import did_you_mean, one_line
from dig.errors import SettingsError

MILLION = 1_000_000
ANY_MODEL = "*"
"""The model in a table of prices that stands for all models without a row."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price of a model, in dollars per million tokens.

    Attributes:
        input: The price of tokens that the model is sent.
        output: The price of tokens that the model writes.
        cached: The price of sent tokens that the server has cached; ``None``: as `input`.
    """

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        """Check the prices."""
        cached = self.input if self.cached is None else self.cached
        _check_numbers({**asdict(self), "cached": cached}, least=0)

    def dollars(self, sent: float, received: float, cached: float) -> float:
        """The price of some tokens; `cached` is a part of `sent`."""
        saved = 0 if self.cached is None else cached * (self.input - self.cached)
        return (sent * self.input + received * self.output - saved) / MILLION


@dataclass(frozen=True, kw_only=True)
class SpendingLimits:
    """Limits of spending; ``None``: no limit.

    Attributes:
        turns: Turns of agents.
        tokens: Tokens, sent and received.
        dollars: Dollars.
        seconds: Seconds, from the first turn.
    """

    turns: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            SettingsError: A limit is not above 0; the message names it.
        """
        _check_numbers(self.limits(), least=1e-9)

    def limits(self) -> dict[str, float]:
        """The limits by name, without absent limits."""
        most = {name: getattr(self, name) for name in UNITS}
        return {name: value for name, value in most.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class TeamBudget(SpendingLimits):
    """The budget of each request to a team, and of all requests together.

    Attributes:
        team: The limits of all requests together.
        prices: The prices of models, by name; needed for a limit in dollars.
    """

    team: SpendingLimits = field(default_factory=SpendingLimits)
    prices: Mapping[str, Price] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check all values; tables of a file become objects.

        Raises:
            SettingsError: A value is wrong; the message names it.
        """
        super().__post_init__()
        prices = _table("prices", self.prices)
        prices = {name: _make(Price, f"prices, {name}", price) for name, price in prices.items()}
        object.__setattr__(self, "team", _make(SpendingLimits, "team", self.team))
        object.__setattr__(self, "prices", prices)
        if not self.named_limits:
            raise SettingsError(f"a budget needs a limit: one of {', '.join(UNITS)}")

    @classmethod
    def of(cls, value: AsBudget) -> TeamBudget:
        """Read a budget.

        Raises:
            SettingsError: The value is no budget; the message names the mistake.
        """
        budget: TeamBudget = _make(cls, "budget", value)
        return budget

    @property
    def named_limits(self) -> frozenset[str]:
        """The names of all limits, of requests and of the team."""
        return frozenset((*self.limits(), *self.team.limits()))

    def to_json(self) -> dict[str, Any]:
        """The budget as plain JSON, for `TeamBudget.of`."""
        prices = {model: asdict(price) for model, price in self.prices.items()}
        return {**self.limits(), "team": self.team.limits(), "prices": prices}


AsBudget: TypeAlias = TeamBudget | Mapping[str, Any]
"""A budget, or a table of its limits: `{"turns": 20}`."""

UNITS = {"turns": "{:,} turns", "tokens": "{:,} tokens", "dollars": "${:,.2f}", "seconds": "{:g} s"}
METERED = frozenset(("tokens", "dollars"))
"""The limits that need the usage of models."""


def limit_text(detail: Mapping[str, Any]) -> str:
    """The incident `budget` in words: `stopped at 20 turns`, or `80% of 20 turns are used`."""
    try:
        text = UNITS[detail["limit"]].format(detail["most"])
        share = detail["spent"] / detail["most"]
    except (KeyError, TypeError, ValueError, ArithmeticError):  # a trace may hold anything
        return "stopped at a limit of the budget"
    text = text[:-1] if text in ("1 turns", "1 tokens") else text
    text += " of the whole team" if detail.get("scope") == "team" else ""
    if detail.get("unpriced") is not None:
        text += f", since there is no price for {one_line(detail['unpriced'], 80)}"
    is_warning = detail.get("stage") == "warning"
    return f"{share:.0%} of {text} are used" if is_warning else f"stopped at {text}"


def _table(place: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SettingsError(f"{place} is {value!r:.60}; it must be a table")
    return value


def _make(kind: Any, place: str, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    names = [entry.name for entry in fields(kind)]
    for key in _table(place, value):
        if key not in names:
            raise SettingsError(f"{place}: there is no key {key!r:.60}; {did_you_mean(key, names)}")
    try:
        return kind(**value)
    except TypeError:
        raise SettingsError(f"{place} lacks a value: it needs {', '.join(names[:2])}") from None
    except SettingsError as error:
        raise error if kind is TeamBudget else SettingsError(f"{place}: {error}") from None


def _check_numbers(values: Mapping[str, Any], least: float) -> None:
    for name, value in values.items():
        if not (type(value) in (int, float) and least <= value <= 1e15):
            range = f"number {'above 0' if least else 'from 0'} to {10**15:.0e}"
            raise SettingsError(f"{name} is {value!r:.60}; it must be a {range}")
