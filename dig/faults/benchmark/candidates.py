"""Candidates for instances: configurations, kinds of faults, and how one is drawn from a seed.

A stratum is a configuration (task, size, team) with a kind of fault, or two for a hybrid. In each
the same number of candidates is tried, until it has enough instances.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from dig.faults.inject.catalogue import KINDS, Kind
from dig.faults.inject.fault import Fault
from dig.graph.records import Record, Start
from dig.tasks.count_frequency import TASK as COUNT_FREQUENCY
from dig.tasks.experiment.grid import NEWSGROUPS, WINDOWS
from dig.tasks.run.team_run import Recipients, TeamRun
from dig.tasks.simulated.profile import Profile

CALM = Profile(
    submit_early=0.02,
    announce=0.0004,
    chat=0.0,
    unwanted=0.0001,
    discard=0.00004,
    misaddress=0.0001,
    fail=0.0002,
    hand_over=0.001,
    wait=0.001,
    pass_on=0.006,
    merge=0.03,
    broadcast=0.015,
    duplicate=0.01,
)
"""The habits of the agents. With the usual ones most runs end early by themselves, which would
hide the effect of a fault; with these a few of a hundred do."""

LATEST = 0.7
"""The part of a run in which faults begin: while work is going on."""
LEAD_S = 1.0
"""The most seconds that a fault begins before an activation of its target."""
LASTS = (0.1, 0.6)
"""The least and the largest part of a run that a fault lasts, if it ends."""
SUBTLE = {"probability": 0.5, "at_most": 2}
"""The parameters that make the second fault of a hybrid a subtle one."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A sort of run: all of it but its seed and its faults.

    Attributes:
        task: The task's name.
        size: How large the problem is, in the task's elements.
        agents: How many there are.
        to: The recipients of the problem: one agent, or all.
        is_healed: Whether failures are healed. Agents have their usual habits then, so that there
            is something to heal; else failures are found, and nothing is done about them.
    """

    task: str
    size: int
    agents: int
    to: Recipients = "one"
    is_healed: bool = False

    @property
    def name(self) -> str:
        """The name of its folder."""
        healed = "-healed" if self.is_healed else ""
        return f"{self.task}-{self.size}-{self.agents}x-{self.to}{healed}"

    @property
    def kinds(self) -> Sequence[tuple[str, ...]]:
        """The kinds of faults, and pairs of them, that are put into runs of this sort."""
        return HEALED if self.is_healed else [*((kind,) for kind in KINDS), *HYBRIDS]

    def run(self, seed: int) -> TeamRun:
        """A run of this sort."""
        return TeamRun(
            task=self.task,
            size=self.size,
            agents=self.agents,
            to=self.to,
            seed=seed,
            method="dig" if self.is_healed else "mas",
            limits=WINDOWS.limits,
            profile=Profile() if self.is_healed else CALM,
        )


CONFIGURATIONS = (
    Configuration(COUNT_FREQUENCY, 5000, 3),
    Configuration(COUNT_FREQUENCY, 5000, 6),
    Configuration(COUNT_FREQUENCY, 5000, 12),
    Configuration(COUNT_FREQUENCY, 10_000, 6),
    Configuration(COUNT_FREQUENCY, 5000, 3, "all"),
    Configuration(NEWSGROUPS, 60, 3),
    Configuration(NEWSGROUPS, 150, 6),
    Configuration(NEWSGROUPS, 150, 12),
    Configuration(NEWSGROUPS, 60, 6, "all"),
    Configuration(COUNT_FREQUENCY, 5000, 6, is_healed=True),
    Configuration(NEWSGROUPS, 150, 6, is_healed=True),
)
"""The sorts of runs of a set. With `all`, each agent begins a lineage of its own."""

HYBRIDS = (
    ("crash", "corrupt"),
    ("drop", "duplicate"),
    ("silent", "stall"),
    ("leave", "corrupt"),
    ("hoard", "slow"),
    ("discard_needed", "address_nobody"),
)
"""Pairs of kinds: a prominent one, and a subtle one."""

HEALED = (
    ("ignore_notes",),
    ("ignore_notes", "drop"),
    ("crash",),
    ("hoard",),
    ("leave",),
    ("never_submit",),
    ("slow",),
)
"""The kinds of faults in runs that are healed; only such runs have notes to ignore."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Where instances are drawn from: a sort of run, and the kinds of its faults."""

    configuration: Configuration
    kinds: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kinds of its faults: `drop`, or `drop + slow`."""
        return " + ".join(self.kinds)

    @property
    def name(self) -> str:
        """The label of its random numbers."""
        return f"{self.configuration.name}/{self.kind}"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings of a set.

    Attributes:
        seed: Of everything.
        count: How many instances are wanted.
        configurations: The sorts of runs.
        baseline_runs: Fault-free runs of each configuration: so many that one in a hundred is rare.
        most_of_a_stratum: How many instances may come from one stratum.
        tries: How many candidates of a stratum are tried, at most.
    """

    seed: int
    count: int = 500
    configurations: tuple[Configuration, ...] = CONFIGURATIONS
    baseline_runs: int = 99
    most_of_a_stratum: int = 4
    tries: int = 10

    @property
    def strata(self) -> list[Stratum]:
        """Each configuration with each kind and each hybrid."""
        return [Stratum(one, some) for one in self.configurations for some in one.kinds]

    def baseline(self, configuration: Configuration) -> list[TeamRun]:
        """Runs of a configuration without a fault; no candidate has one of their seeds."""
        chance = random.Random(f"{self.seed}/{configuration.name}/baseline")
        seeds = (chance.randrange(2**31, 2**32) for _ in range(self.baseline_runs))
        return [configuration.run(seed) for seed in seeds]


@dataclass(frozen=True, slots=True)
class InstanceDraft:
    """One try in a stratum.

    Attributes:
        stratum: Where it is drawn.
        number: Which try it is, counted from 0.
        seed: The seed of the set.
    """

    stratum: Stratum
    number: int
    seed: int

    @property
    def run(self) -> TeamRun:
        """The run, before anything is injected."""
        return self.stratum.configuration.run(self._chance("run").randrange(2**31))

    def faults(self, twin: Sequence[Record], again: int = 0) -> tuple[Fault, ...]:
        """The faults to inject, drawn by the records of the run without them.

        A fault of an agent that does nothing any more has no effect, so each target is an agent
        that begins an activation before `LATEST`, and its fault begins just before one of these.

        Args:
            twin: The records of the run without faults.
            again: The number of earlier draws, which had no effect.

        Returns:
            The faults, the prominent one first; none, if there are fewer agents than faults.
        """
        chance = self._chance(f"faults {again}")
        end_s = twin[-1].ts
        starts: dict[str, list[float]] = {}
        for record in twin:
            if isinstance(record, Start) and record.ts <= LATEST * end_s:
                starts.setdefault(record.agent, []).append(record.ts)
        if len(starts) < len(self.stratum.kinds):
            return ()
        faults: list[Fault] = []
        targets = chance.sample(sorted(starts), len(self.stratum.kinds))
        for kind, target in zip(self.stratum.kinds, targets, strict=True):
            subtle = SUBTLE if faults else {}
            begins = max(0.0, chance.choice(starts[target]) - LEAD_S * chance.random())
            ends = begins + end_s * chance.uniform(*LASTS) if chance.random() < 0.5 else None
            faults.append(
                Fault(
                    kind=kind,
                    target=target,
                    start_s=round(begins, 3),
                    end_s=None if ends is None else round(ends, 3),
                    parameters={**_parameters(KINDS[kind], chance), **subtle},
                )
            )
        return tuple(faults)

    def _chance(self, purpose: str) -> random.Random:
        # What a string seeds is the same on all machines.
        return random.Random(f"{self.seed}/{self.stratum.name}/{self.number}/{purpose}")


def _parameters(kind: Kind, chance: random.Random) -> dict[str, str]:
    """A value for each parameter that has named ones; all others keep their defaults."""
    return {
        name: chance.choice(parameter.choices)
        for name, parameter in kind.parameters.items()
        if parameter.choices
    }
