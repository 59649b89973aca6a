"""The configuration of one run: team, task, method and thresholds under one name.

The name follows from the configuration alone: executions with the same name have the same
configuration, and in virtual time the same bytes. `dig.tasks.run.arrange` makes the run itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache, cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from dig._util.text import first_wrong, one_line, safe_text
from dig.detectors import COOLDOWN_S
from dig.detectors.interventions import MEANS, Budget, Means
from dig.detectors.policy import HEAL_ALL, Policy
from dig.detectors.policy_settings import read_policy
from dig.detectors.thresholds import MOST_SECONDS
from dig.errors import SettingsError
from dig.graph.records import Limits, Usual
from dig.tasks.catalogue import TASKS
from dig.tasks.count_frequency import TASK as COUNT_FREQUENCY
from dig.tasks.number_ranges import Range
from dig.tasks.simulated.profile import Profile

from .judging import Judging

Recipients = Literal["one", "all"]

SIMULATED, OWN, MODEL = "simulated", "own", "model"
"""Kinds of teams in `agents_are`; see `dig.tasks.run.teams`."""

LADDER = "dig+"
METHOD_NAMES = ("mas", "redraw", "watchdog", "retry", "judge", "dig", LADDER)
"""The methods against failures; `dig.tasks.run.methods` has the functions."""


@dataclass(frozen=True, kw_only=True)
class TeamRun:
    """A team, and a task for the team.

    Attributes:
        task: The task's name: one of ours, an entry point's, or `module:object`.
        agents: The number of agents.
        size: The size of the problem: the elements of the array, the number of documents.
        seed: Of everything that is random.
        method: The method against failures, a name in `dig.tasks.run.methods.METHODS`, or
            `module:object`.
        limits: The thresholds of the patterns.
        limit_s: Seconds after which the run is ended.
        budget: The bounds on healing.
        cooldown_s: Seconds before healing says the same again.
        designate: Whether work with several recipients gets a designated handler.
        detectors: Further ones beside the standard set, as `module:object`.
        profile: The habits of simulated agents.
        data: The place of the task's data, if it reads some.
        agents_are: The source of the team; see `dig.tasks.run.teams`.
        options: Further arguments of that way, as plain JSON.
        to: The recipients of the problem: one agent alone, or all.
        first: The place of that one agent in the team, counted from 0.
        salt: A secret that random numbers are drawn by besides the seed: without it, nobody can
            play the run again.
        judging: Settings of the method `judge`.
        means: The actions that healing may take, with the method `dig`.
        usual: The usual findings in good runs of the team, by pattern, if they were learned.
        policy: The policy about findings; by default all are healed, as in the paper.
        problems: The number of problems at once, each about a part of the data and posed to
            another agent. With several the run is a session, in which an agent deals with one
            problem in each activation; only simulated agents in virtual time can do so.
        remembers: Whether simulated agents have a memory of their own, so that messages need not
            say which parts they are about.
    """

    task: str = COUNT_FREQUENCY
    agents: int = 6
    size: int = 10_000
    seed: int = 1
    method: str = "dig"
    limits: Limits = field(default_factory=Limits)
    limit_s: float = 120.0
    budget: Budget = field(default_factory=Budget)
    cooldown_s: float = COOLDOWN_S
    designate: bool = False
    detectors: tuple[str, ...] = ()
    profile: Profile = field(default_factory=Profile)
    data: str | None = None
    agents_are: str = SIMULATED
    options: Mapping[str, Any] = field(default_factory=dict)
    to: Recipients = "one"
    first: int = 0
    salt: str = ""
    judging: Judging = field(default_factory=Judging)
    means: tuple[Means, ...] = MEANS
    usual: Usual | None = None
    policy: Policy = HEAL_ALL
    problems: int = 1
    remembers: bool = False

    def __post_init__(self) -> None:
        """Check the ranges of all values.

        Raises:
            SettingsError: A value is out of its range; the message names it.
        """
        if self.agents < 1:
            raise SettingsError(f"agents must be at least 1, got {self.agents}")
        if self.agents > MOST_AGENTS or self.size > MOST_SIZE:
            raise SettingsError(
                f"agents must be at most {MOST_AGENTS:,} and size at most {MOST_SIZE:,}, "
                f"got {self.agents:,} and {self.size:,}"
            )
        if not 0 <= self.first < self.agents:
            raise SettingsError(
                f"first must be an agent's place, from 0 to {self.agents - 1}, got {self.first}"
            )
        most = max(1, self.size // 2)
        if not 1 <= self.problems <= most:
            raise SettingsError(
                f"problems must be from 1 to {most}, half of the size, got {self.problems}"
            )
        if self.method not in METHOD_NAMES and ":" not in self.method:
            methods = ", ".join(METHOD_NAMES)
            raise SettingsError(
                f"there is no method {self.method!r}; known are: {methods}; a method of your own "
                "is named module:object"
            )
        if not 0 < self.limit_s <= MOST_SECONDS:
            raise SettingsError(
                f"limit_s must be greater than 0 and at most {MOST_SECONDS:g} seconds, "
                f"got {self.limit_s:g}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The agents' names, except those of a user's team."""
        return tuple(f"agent-{i + 1}" for i in range(self.agents))

    @property
    def problem_parts(self) -> tuple[Range | None, ...]:
        """The part of the data for each problem; ``None``: all of the data."""
        if self.problems == 1:
            return (None,)
        cuts = [self.size * i // self.problems for i in range(self.problems + 1)]
        return tuple(pairwise(cuts))

    @property
    def key(self) -> str:
        """The key of the random numbers of agents and schedules.

        Not the seed alone: runs of another task, size or team with the same seed are independent.
        Methods, profiles and faults are no part of it, so that runs which differ in these draw
        the same numbers wherever they do the same.
        """
        key = f"{self.task} {self.size} {self.agents} {self.seed}"
        return f"{key} {self.salt}" if self.salt else key

    @cached_property
    def name(self) -> str:
        """The name of the configuration: the same for the same settings, and only then."""
        settings = json.dumps(self._settings(), sort_keys=True).encode()
        digest = blake2b(settings, digest_size=4).hexdigest()
        task, method = (re.sub(r"[^\w.+-]+", "-", name) for name in (self.task, self.method))
        return f"{task}-{self.size}-{self.agents}x-{method}-s{self.seed}-{digest}"

    def _settings(self) -> dict[str, Any]:
        """The settings for the name; without money, which changes no run."""
        settings, defaults = asdict(self), asdict(TeamRun())
        settings["options"] = {k: v for k, v in self.options.items() if k not in MONEY}
        # Attributes that were added later count only with another value than the default, so that
        # older configurations keep their names.
        for values, default_values, names in (
            (settings, defaults, _ADDED),
            (settings["limits"], defaults["limits"], _ADDED_LIMITS),
            (settings["budget"], defaults["budget"], _ADDED_BUDGET),
            (settings.get("policy", {}), defaults["policy"], _ADDED_POLICY),
        ):
            for name in names:
                if name in values and values[name] == default_values[name]:
                    del values[name]
        return settings

    def about(self) -> dict[str, Any]:
        """The configuration, for the files beside the trace."""
        return {"run": self.name, **asdict(self), "policy": self.policy.to_json()}

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> TeamRun:
        """Read the configuration from the content of a side file.

        Raises:
            SettingsError: The data describe no run, or one that has another name in this version.
        """
        try:
            # Older files lack the attributes that were added later.
            names = [f.name for f in fields(cls) if f.name not in _ADDED or f.name in about]
            values = {name: about[name] for name in names}
            for part, kind in (("limits", Limits), ("budget", Budget), ("profile", Profile)):
                if unknown := {*values[part]} - {f.name for f in fields(kind)}:
                    raise _no_run(f"{part} has {', '.join(sorted(unknown))}, which is unknown here")
            if "policy" in values:
                values["policy"] = read_policy(values["policy"])
            run = _adapter().validate_python(values)
        except SettingsError:
            raise
        except ValidationError as error:
            raise _no_run(": ".join(first_wrong(error))) from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _no_run(error) from None
        if run.name != about.get("run"):
            raise SettingsError(f"the run {about.get('run')!r} would be {run.name!r} here")
        return run

    @classmethod
    def read_simulated(cls, about: Mapping[str, Any], named: Collection[str] = ()) -> TeamRun:
        """Read the configuration of a run of simulated agents; imports no module named by a file.

        Args:
            about: The content of the side file.
            named: The detectors, as `module:object`, that the caller allows.

        Raises:
            SettingsError: The data describe no run of simulated agents on a task of this package,
                or one that had other detectors.
        """
        if about.get("task") not in [*TASKS] or about.get("agents_are") != SIMULATED:
            raise SettingsError("the run is not one of simulated agents")
        return cls.read(about).with_named(named)

    def with_named(self, named: Collection[str], model: str | None = None) -> TeamRun:
        """Return the same run, if the caller allows its detectors, its method and the judge.

        Args:
            named: The detectors, and maybe a method of the user's, as `module:object`.
            model: The language model that may be asked, besides the model of a team that the
                caller names; ``None``: none may.

        Raises:
            SettingsError: The run had other detectors, another method, or a model as its judge; the
                message names them.
        """
        theirs = (*self.detectors, *([self.method] if ":" in self.method else ()))
        if unnamed := [name for name in theirs if name not in named]:
            names = safe_text(", ".join(unnamed), 200)
            raise SettingsError(f"the run had parts of the user's, to be named here too: {names}")
        if self.method == "judge" and self.judging.model not in (None, model):
            raise SettingsError(
                f"the run's judge was the model {one_line(self.judging.by, 80)!r}, and no model is "
                "asked because a file names it: make a new run that names it on the command line "
                "(digmon run ... --method judge --judge by=MODEL)"
            )
        return self


MOST_AGENTS, MOST_SIZE = 100_000, 10_000_000
"""The bounds on the size of a run; a number in a file is quickly written."""

_ADDED = (
    "task", "data", "agents_are", "options", "to", "first", "salt", "judging", "means", "usual",
    "policy", "problems", "remembers",
)  # fmt: skip
MONEY = ("max_tokens", "max_usd", "price_in", "price_out")
"""Options of a model that say what it may cost."""
_ADDED_LIMITS = (
    "stall_factor", "stall_min_s", "late_window_s", "loop_limit", "livelock_turns",
    "livelock_agents",
)  # fmt: skip
_ADDED_BUDGET = ("per_problem",)
_ADDED_POLICY = ("budget",)


@cache
def _adapter() -> TypeAdapter[TeamRun]:
    return TypeAdapter(TeamRun)


def _no_run(reason: object) -> SettingsError:
    return SettingsError(f"the side file describes no run of a task: {one_line(reason)}")
