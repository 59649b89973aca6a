"""Thresholds: what "a reasonable time" and "a reasonable number" are, in one place.

The paper leaves them open. They come from the command line (`--set`), from the environment
(`DIG_MC_WINDOW_S=20`), from a TOML file (`--config`), or are the defaults, in this order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dig._util.text import did_you_mean, first_wrong, nearest
from dig.errors import SettingsError
from dig.graph.records import Limits

from .interventions import COOLDOWN_S, Budget
from .settings_file import read_table

PREFIX = "DIG_"
TABLE = "thresholds"

MOST_SECONDS = 1e9

OFF = "none"
"""The value that switches a pattern off whose threshold can be missing."""

CALLER_TURNS = 100
"""`livelock_turns` of coding agents: the main one calls a new subagent for each piece of work."""

_Seconds = Annotated[float, Field(ge=1e-6, le=MOST_SECONDS)]
_CAN_BE_OFF = BeforeValidator(lambda value: None if value == OFF else value)


class Thresholds(BaseModel):
    """All thresholds of detection and healing; times are in seconds on the run's clock."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    mc_window_s: _Seconds = 30.0
    """MC: how long all work has been done and nobody made progress. A submit is one more
    activation, so it should come within a model call or two; 30 s is several of them."""

    oe_window_s: _Seconds = 10.0
    """OE: how long an event has been lost. Nothing but a host's own policy or an agent that comes
    back can find it again, and these act within seconds, so there is little to wait for."""

    dl_window_s: _Seconds = 30.0
    """DL: how long work has waited and nobody made progress. The time counts only while no agent
    is at work, so slow agents do not shorten it; 30 s without anybody working is no pause for
    thought any more."""

    activation_limit_s: _Seconds = 300.0
    """How long an activation holds MC and DL back. Model calls with tools and retries take up to a
    few minutes; an agent that has been silent for five may hang, and must not hide a deadlock."""

    reroute_limit: int = Field(default=3, ge=1, le=10**9)
    """ER: how many reroutes are fine. One finds a better agent, one corrects a mistake, and one
    is to spare; more than that is passing work round."""

    coverage: bool = True
    """ET: whether lost parts of a split problem count too. Without it an answer passes as soon as
    nobody holds open work, also when part of the work was thrown away."""

    stall_factor: Annotated[float | None, _CAN_BE_OFF] = Field(default=5.0, gt=0, le=10**9)
    """STALL: how many times as long as nine of ten turns before it an activation may last; `none`
    switches STALL off. A limit learned from the team's turns suits teams that think long."""

    stall_min_s: _Seconds = 60.0
    """STALL: the least time that every activation may last. A retried model call takes a minute."""

    late_window_s: Annotated[_Seconds | None, _CAN_BE_OFF] = 10.0
    """LATE: how long work may be on its way to its recipients; `none` switches LATE off. Messages
    take milliseconds, and a delivery policy that keeps them says so."""

    loop_limit: Annotated[int | None, _CAN_BE_OFF] = Field(default=5, ge=2, le=10**9)
    """LOOP: how often an agent may say the same from the same inputs; `none` switches LOOP off.
    Retries are usually three."""

    livelock_turns: Annotated[int | None, _CAN_BE_OFF] = Field(default=25, ge=2, le=10**9)
    """LIVELOCK: how many turns a few agents may hand on to each other; `none` switches LIVELOCK
    off. A critic and a writer of ten rounds take twenty turns; four times as many are a warning."""

    livelock_agents: int = Field(default=3, ge=2, le=10**9)
    """LIVELOCK: how many agents count as few. A loop is of two or three; in a larger circle an
    agent hands on to others that have their own part to do."""

    heals_per_run: int = Field(default=100, ge=0)
    """How many findings are healed in a run. A team of twenty that stumbles often is helped all
    through a run of some hundred activations; beyond that more notes would not mend it."""

    heals_per_pattern: int = Field(default=30, ge=0)
    """How many of one pattern: a part of a run's, so that one pattern cannot use up all of it."""

    heals_per_subject: int = Field(default=3, ge=0)
    """How many of one pattern about one subject. What three notes about the same thing have not
    mended, a fourth will not."""

    heals_per_problem: int = Field(default=12, ge=0)
    """With ladders: how often work, or an agent's place, may be given to others. Three deadlocks or
    stalls, each with all of its steps, and some to spare."""

    cooldown_s: float = Field(default=COOLDOWN_S, ge=0, le=MOST_SECONDS)
    """Seconds before the same is said again to an agent that could go on at once. Longer than a
    loop of an agent that does not listen, shorter than a model call; each repeated bounce of an
    early answer waits twice as long as the one before."""

    designate: bool = False
    """RSP: whether work with several recipients gets a designated handler beforehand. Off, since
    it also speaks to teams that share work well by themselves."""

    @property
    def limits(self) -> Limits:
        """The thresholds of detection, as a trace carries them."""
        return Limits(**{field.name: getattr(self, field.name) for field in fields(Limits)})

    @property
    def budget(self) -> Budget:
        """The bounds on healing."""
        return Budget(**{key.name: getattr(self, f"heals_{key.name}") for key in fields(Budget)})

    @classmethod
    def load(
        cls,
        arguments: Iterable[str] = (),
        config: Path | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> Thresholds:
        """Load thresholds from all sources; the first source in the list of arguments wins.

        Args:
            arguments: `NAME=VALUE`, as on a command line.
            config: A TOML file with a table `[thresholds]`, or a `pyproject.toml` with
                `[tool.digmon.thresholds]`.
            environment: Variables; those that are called `DIG_` and a threshold count.

        Raises:
            SettingsError: A value is wrong, or a name is none; the message says where.
        """
        values: dict[str, Any] = {}
        heading, table = read_table(config, TABLE)
        in_file = [(heading, name, value) for name, value in table.items()]
        settings = (*in_file, *_from_environment(environment), *_from_arguments(arguments))
        for place, name, value in settings:
            values[name] = cls._check(place, name, value)
        return cls(**values)

    @classmethod
    def change_limits(cls, limits: Limits, arguments: Iterable[str]) -> Limits:
        """Change some limits of a trace, for a check with other limits.

        Raises:
            SettingsError: A value is wrong, or a name is none of a trace's limits.
        """
        names = [field.name for field in fields(Limits)]
        for place, name, value in _from_arguments(arguments):
            if name in cls.model_fields and name not in names:
                raise SettingsError(
                    f"{place}: a trace has no {name}; known are: {', '.join(names)}"
                )
            limits = replace(limits, **{name: cls._check(place, name, value)})
        return limits

    @classmethod
    def _check(cls, place: str, name: str, value: Any) -> Any:
        if name not in cls.model_fields:
            hint = did_you_mean(name, cls.model_fields)
            raise SettingsError(f"{place}: there is no threshold {name!r}; {hint}")
        # pydantic takes true for 1.0.
        if isinstance(value, bool) and cls.model_fields[name].annotation is not bool:
            raise SettingsError(f"{place}: {name} is {value!r}; it must be a number")
        try:
            return getattr(cls.model_validate({name: value}), name)
        except ValidationError as error:
            _, reason = first_wrong(error)
            raise SettingsError(
                f"{place}: {name} is {value!r}: {reason[0].lower()}{reason[1:]}"
            ) from None


Setting = tuple[str, str, Any]
"""The place where a threshold was set, its name, its value."""


def _from_arguments(arguments: Iterable[str]) -> Iterator[Setting]:
    for text in arguments:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(
                f"--set {text}: write it as NAME=VALUE, mc_window_s=20 for instance"
            )
        yield f"--set {text}", name.strip(), value.strip()


def _from_environment(environment: Mapping[str, str]) -> Iterator[Setting]:
    by_variable = {PREFIX + name.upper(): name for name in Thresholds.model_fields}
    for variable, name in by_variable.items():
        if variable in environment:
            yield f"environment variable {variable}", name, environment[variable]
    # Other programs may have variables that begin so; a close one is a slip of the pen.
    for variable in sorted(environment.keys() - by_variable.keys()):
        close = nearest(variable, by_variable, 0.8) if variable.startswith(PREFIX) else None
        if close:
            raise SettingsError(
                f"environment variable {variable} is no threshold; did you mean {close}?"
            )
