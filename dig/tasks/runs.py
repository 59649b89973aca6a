"""One run of CountFrequency, put together: team, task, method and thresholds under one name.

The name follows from the configuration alone, so that two executions of the same one can be told
to be the same, and in virtual time give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from typing import Any, Literal, get_args

from dig.detectors import COOLDOWN_S, plugins, standard, standard_healers
from dig.errors import SettingsError
from dig.findings import Budget, Healer
from dig.ledger import Sink
from dig.records import Limits
from dig.runtime.agents import Thinking
from dig.runtime.bus import Bus
from dig.runtime.commit import Durable
from dig.runtime.host import Setup
from dig.runtime.simulation import Simulation
from dig.settings import MOST_SECONDS, Thresholds

from .count_frequency import TASK, CountFrequency
from .profile import Profile
from .simulated import SimulatedAgent

Method = Literal["mas", "dig"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class CountFrequencyRun:
    """A team of simulated agents, and an array for it to count.

    Attributes:
        agents: How many there are.
        size: How many elements the array has.
        seed: Of everything that is random.
        method: `mas`: failures are found and nothing is done; `dig`: they are healed too.
        limits: The thresholds of the patterns.
        limit_s: Seconds after which the run is ended.
        budget: How much healing there may be.
        cooldown_s: Seconds before healing says the same again.
        designate: Whether work with several recipients gets a designated handler.
        detectors: Further ones beside the standard set, as `module:object`.
        profile: The habits of the agents.
    """

    agents: int = 6
    size: int = 10_000
    seed: int = 1
    method: Method = "dig"
    limits: Limits = field(default_factory=Limits)
    limit_s: float = 120.0
    budget: Budget = field(default_factory=Budget)
    cooldown_s: float = COOLDOWN_S
    designate: bool = False
    detectors: tuple[str, ...] = ()
    profile: Profile = field(default_factory=Profile)

    def __post_init__(self) -> None:
        """Refuse what makes no sense.

        Raises:
            SettingsError: The message says what, and what would.
        """
        if self.agents < 1:
            raise SettingsError(f"a team of {self.agents} agents cannot work; it needs at least 1")
        if self.method not in METHODS:
            raise SettingsError(f"there is no method {self.method!r}; try one of {METHODS}")
        if not 0 < self.limit_s <= MOST_SECONDS:
            raise SettingsError(f"a time limit of {self.limit_s:g} s makes no sense; try 120")

    @classmethod
    def of(
        cls, chosen: Thresholds, agents: int, size: int, seed: int, method: Method,
        limit_s: float, detectors: tuple[str, ...] = (),
    ) -> CountFrequencyRun:  # fmt: skip
        """The run with some thresholds; the arguments are the attributes."""
        return cls(
            agents,
            size,
            seed,
            method,
            chosen.limits,
            limit_s,
            chosen.budget,
            chosen.cooldown_s,
            chosen.designate,
            detectors,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The agents' names."""
        return tuple(f"agent-{i + 1}" for i in range(self.agents))

    @property
    def name(self) -> str:
        """The name of the configuration: the same for the same settings, and only then."""
        settings = json.dumps(asdict(self), sort_keys=True).encode()
        digest = blake2b(settings, digest_size=4).hexdigest()
        return f"{TASK}-{self.size}-{self.agents}x-{self.method}-s{self.seed}-{digest}"

    def about(self) -> dict[str, Any]:
        """The configuration, for the files beside the trace."""
        return {"run": self.name, "task": TASK, "agents_are": "simulated", **asdict(self)}

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> CountFrequencyRun:
        """The configuration that `about` tells of.

        Raises:
            SettingsError: It tells of none, or of one that has another name here.
        """
        try:
            given = {f.name: about[f.name] for f in fields(cls)}
            given["limits"] = Limits(**given["limits"])
            given["budget"] = Budget(**given["budget"])
            given["profile"] = Profile(**given["profile"])
            given["detectors"] = tuple(given["detectors"])
            run = cls(**given)
        except (KeyError, TypeError) as error:
            raise SettingsError(f"the side file describes no run of {TASK}: {error}") from None
        if run.name != about.get("run"):
            raise SettingsError(f"the run {about.get('run')!r} would be {run.name!r} here")
        return run

    def task(self) -> CountFrequency:
        """The array with its problem, its tools and its scorer.

        Raises:
            SettingsError: The array would be too small.
        """
        return CountFrequency(self.size, self.seed)

    def setup(self, task: CountFrequency, speed: float = 1.0) -> Setup:
        """Everything about the run but its agents."""
        return Setup(
            run=self.name,
            task=TASK,
            seed=self.seed,
            limits=self.limits,
            detectors=lambda: [*standard(), *plugins.detectors(self.detectors)],
            healers=self._healers if self.method == "dig" else None,
            budget=self.budget,
            tools=task.tools(),
            limit_s=self.limit_s,
            speed=speed,
        )

    def _healers(self) -> dict[str, Healer]:
        ours = standard_healers(cooldown_s=self.cooldown_s, designate=self.designate)
        return {**ours, **plugins.healers()}

    def team(self) -> dict[str, SimulatedAgent]:
        """The agents, by name."""
        return dict.fromkeys(self.names, SimulatedAgent(self.seed, self.profile))

    def bus(
        self,
        task: CountFrequency,
        sink: Sink,
        speed: float = 1.0,
        durable: Durable | None = None,
    ) -> Bus:
        """The run in real time, `speed` times as fast; give it `problem`."""
        team = {name: Thinking(agent, speed) for name, agent in self.team().items()}
        return Bus(team, self.setup(task, speed), sink=sink, durable=durable)

    def simulation(
        self, task: CountFrequency, sink: Sink, durable: Durable | None = None
    ) -> Simulation:
        """The run in virtual time, with its problem planned."""
        simulation = Simulation(self.team(), self.setup(task), sink, durable=durable)
        simulation.plan(0.0, lambda monitor: monitor.inject(task.problem(self.names[0])))
        return simulation
