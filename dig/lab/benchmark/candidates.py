"""Candidates for instances: configurations, kinds of faults, and how a seed draws candidates.

A stratum is a configuration (task, size, team) with a kind of fault, or two for a hybrid, and a
sort of difficulty. In each the same number of candidates is tried, until it has enough instances.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Literal

from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS, Kind, kind_of
from dig.graph.records import Record, Start
from dig.lab.experiment.grid import NEWSGROUPS, WINDOWS
from dig.tasks.count_frequency import TASK as COUNT_FREQUENCY
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
CALMER = replace(
    CALM,
    submit_early=0.004,
    announce=0.0002,
    wait=0.0001,
    hand_over=0.0005,
    pass_on=0.004,
    misaddress=0.00002,
    discard=0.00001,
    fail=0.0001,
    count_twice=0.02,
    mix=0.02,
    error=0.05,
    confusion=0.1,
)
"""The habits of agents in runs that are not healed."""
CARELESS = replace(CALMER, count_twice=0.6, duplicate=0.001)
"""The habits in sessions: a part that was solved twice is often counted twice, but seldom is."""
REMEMBERING = replace(CALMER, hand_over=0.0, broadcast=0.0)
"""The habits of agents with a memory: only the agent that collects can read a solution."""

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
    """A sort of run: all settings but the seed and the faults.

    Attributes:
        size: The size of the problem, in the task's elements.
        agents: The number of agents.
        to: The recipients of the problem: one agent, or all.
        is_healed: Whether failures are healed. Agents have their usual habits then, so that there
            is something to heal; else failures are found, and nothing is done about them.
        problems: The number of problems at once, each about a part of it.
        remembers: Whether agents have a memory of their own, and messages do not say which parts
            they are about.
    """

    task: str
    size: int
    agents: int
    to: Recipients = "one"
    is_healed: bool = False
    problems: int = 1
    remembers: bool = False

    @property
    def name(self) -> str:
        """The name of the configuration's folder."""
        further = "-healed" if self.is_healed else ""
        further += f"-{self.problems}p" if self.problems > 1 else ""
        further += "-memory" if self.remembers else ""
        return f"{self.task}-{self.size}-{self.agents}x-{self.to}{further}"

    @property
    def kinds(self) -> Sequence[tuple[str, ...]]:
        """The kinds of faults, and pairs of kinds, for runs of a sort."""
        return HEALED if self.is_healed else [*((kind,) for kind in KINDS), *HYBRIDS]

    def run(self, seed: int) -> TeamRun:
        """Make a run of the sort."""
        return TeamRun(
            task=self.task,
            size=self.size,
            agents=self.agents,
            to=self.to,
            seed=seed,
            method="dig" if self.is_healed else "mas",
            # The windows of the experiments, so that a pattern means the same in both.
            limits=WINDOWS.limits,
            profile=Profile() if self.is_healed else CALM,
            problems=self.problems,
            remembers=self.remembers,
        )


CONFIGURATIONS = (
    Configuration(COUNT_FREQUENCY, 5000, 3),
    Configuration(COUNT_FREQUENCY, 10_000, 6),
    Configuration(COUNT_FREQUENCY, 10_000, 12),
    Configuration(NEWSGROUPS, 150, 6),
    Configuration(NEWSGROUPS, 150, 12),
    Configuration(COUNT_FREQUENCY, 5000, 6, is_healed=True),
    Configuration(COUNT_FREQUENCY, 10_000, 6, problems=2),
    Configuration(NEWSGROUPS, 150, 6, problems=3),
    Configuration(COUNT_FREQUENCY, 5000, 3, remembers=True),
    Configuration(COUNT_FREQUENCY, 5000, 6, remembers=True),
    Configuration(COUNT_FREQUENCY, 10_000, 12, remembers=True),
    Configuration(NEWSGROUPS, 150, 6, is_healed=True),
)
"""The sorts of runs of a set."""

HYBRIDS = (
    ("crash", "corrupt"),
    ("drop", "duplicate"),
    ("silent", "stall"),
    ("leave", "corrupt"),
    ("hoard", "slow"),
    ("discard_needed", "address_nobody"),
)
"""Pairs of kinds: a prominent one, and a subtle one."""

_Oddity = tuple[str, Mapping[str, Any]]
_TWICE: _Oddity = ("duplicate", {})
"""Faults that do no harm to a message whose copy arrives."""

DECOYS: Mapping[str, tuple[_Oddity, ...]] = MappingProxyType(
    {
        "drop": (_TWICE, ("drop", {})),
        "delay": (("delay", {"seconds": 6.0}),),
        "misaddress": (_TWICE, ("misaddress", {})),
        "address_nobody": (_TWICE, ("address_nobody", {})),
        "corrupt": (_TWICE, ("corrupt", {"how": "garbled"})),
        "stall": (("stall", {"seconds": 20.0}),),
        "crash": (("crash", {}),),
        "leave": (("leave", {}),),
        "slow": (("slow", {"factor": 6.0}),),
        "silent": (_TWICE, ("drop", {})),
        "hoard": (("hoard", {}),),
        "pass_on": (("pass_on", {}),),
        "submit_early": (("slow", {"factor": 4.0}),),
        "never_submit": (("crash", {}),),
        "discard_needed": (_TWICE, ("corrupt", {"how": "garbled"})),
        "replay_stale": (_TWICE,),
    }
)
"""For each kind of fault an oddity of the same sign that does no harm: the kinds that make it."""

GRADUAL = (
    "drop", "delay", "misaddress", "address_nobody", "corrupt", "stall", "crash", "slow", "silent",
    "hoard", "discard_needed", "pass_on",
)  # fmt: skip
"""The kinds of faults that may grow."""

SILENT_CONTENTS: tuple[tuple[str, ...], ...] = (
    ("corrupt",), ("corrupt", "slow"), ("corrupt", "delay"),
)  # fmt: skip
"""The kinds of faults in the stratum of wrong numbers of the right shape."""

Sort = Literal[
    "plain", "hybrid", "concurrent", "decoys", "gradual", "silent contents", "foreign", "brought"
]
"""The difficulty: the reason why the cause is hard to tell."""

WEIGHTS: Mapping[Sort, float] = MappingProxyType(
    {"plain": 0.5, "hybrid": 4.0, "silent contents": 6.0}
)
"""The number of instances that a sort may have, for each one of the other sorts.

Hybrids and silent contents are where attributors can still gain most.
"""
ONLY_TOGETHER = ("merge_across_lineages", "work_on_others_part")
"""The kinds of faults that hardly ever hurt where there is one problem at a time."""
SELDOM = 3.0
"""The weight of these in sessions."""

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
    """The source of instances: a sort of run, the kinds of faults, and the difficulty.

    Attributes:
        configuration: The sort of run.
        kinds: The kinds of its faults.
        sort: The difficulty: the reason why the cause is hard to tell.
    """

    configuration: Configuration
    kinds: tuple[str, ...]
    sort: Sort = "plain"

    @property
    def kind(self) -> str:
        """The kinds of the faults: `drop`, or `drop + slow`."""
        return " + ".join(kind_of(kind).name for kind in self.kinds)

    @property
    def name(self) -> str:
        """The label of the stratum's random numbers."""
        sort = "" if self.sort in ("plain", "hybrid", "concurrent") else f"/{self.sort}"
        return f"{self.configuration.name}/{' + '.join(self.kinds)}{sort}"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings of a set.

    Attributes:
        seed: Of everything.
        count: The number of instances wanted.
        configurations: The sorts of runs; by default `CONFIGURATIONS`.
        baseline_runs: Fault-free runs of each configuration: so many that one in a hundred is rare.
        most_of_a_stratum: The number of instances that may come from one stratum.
        tries: The number of candidates of a stratum that are tried, at most.
        salt: The secret of the set: without it nobody can play its runs again.
        foreign: Users' own kinds of faults, as `module:object`; the set has no others then.
    """

    seed: int
    count: int = 500
    configurations: tuple[Configuration, ...] = ()
    baseline_runs: int = 99
    most_of_a_stratum: int = 4
    tries: int = 10
    salt: str = ""
    foreign: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of all random numbers of the set."""
        return f"{self.seed}/{self.salt}"

    @property
    def sorts_of_runs(self) -> tuple[Configuration, ...]:
        """The configurations of the set."""
        return self.configurations or CONFIGURATIONS

    @property
    def strata(self) -> list[Stratum]:
        """Each configuration with each kind and each hybrid, and the difficulties."""
        return [stratum for place in self.sorts_of_runs for stratum in self._strata(place)]

    def _strata(self, place: Configuration) -> list[Stratum]:
        # Built-in kinds would only dilute what the user asks about.
        if self.foreign:
            return [Stratum(place, (kind,), "foreign") for kind in self.foreign]
        if place.problems > 1:
            return [Stratum(place, kind, "concurrent") for kind in place.kinds]
        if place.remembers:
            return [Stratum(place, content, "silent contents") for content in SILENT_CONTENTS]
        # Decoys and gradual faults are for runs in which nothing is healed.
        if place.is_healed:
            return [Stratum(place, kind, _sort_of(kind)) for kind in place.kinds]
        return [
            *(Stratum(place, kind, _sort_of(kind)) for kind in place.kinds),
            *(Stratum(place, (kind,), "decoys") for kind in DECOYS),
            *(Stratum(place, (kind,), "gradual") for kind in GRADUAL),
        ]

    def share_of(self, stratum: Stratum) -> float:
        """Return the share of a stratum in a set, in units of a usual stratum's."""
        if stratum.sort == "foreign":
            even = 2 * self.count // len(self.strata)
            return max(1.0, even / self.most_of_a_stratum)
        if stratum.sort == "concurrent" and stratum.kinds[0] in ONLY_TOGETHER:
            return SELDOM
        return WEIGHTS.get(stratum.sort, 1.0)

    def baseline(self, configuration: Configuration) -> list[TeamRun]:
        """Make runs of a configuration without a fault; no candidate has the same seeds."""
        chance = random.Random(f"{self.key}/{configuration.name}/baseline")
        # Candidates draw seeds below 2**31, so none of them can be a run of the baseline.
        seeds = [chance.randrange(2**31, 2**32) for _ in range(self.baseline_runs)]
        return [salt_run(configuration.run(seed), self.key, chance) for seed in seeds]


def salt_run(run: TeamRun, key: str, chance: random.Random) -> TeamRun:
    """Prepare a run for the set: with a secret salt, and a random agent to get the problem.

    Args:
        run: The run by its configuration.
        key: The key that the random numbers of the set are drawn by.
        chance: Draws the agent that is given the problem.
    """
    # A hash: the salt of a run does not give away that of the set.
    secret = blake2b(f"{key}/{run.name}".encode(), digest_size=16).hexdigest()
    first, profile = chance.randrange(run.agents), run.profile
    # Healed runs keep the usual habits, so that there is something to heal.
    if run.method != "dig":
        profile = REMEMBERING if run.remembers else CARELESS if run.problems > 1 else CALMER
    return replace(run, salt=secret, first=first, profile=profile)


def _sort_of(kinds: Sequence[str]) -> Sort:
    return "plain" if len(kinds) == 1 else "hybrid"


@dataclass(frozen=True, slots=True)
class InstanceDraft:
    """A try in a stratum.

    Attributes:
        stratum: The stratum of the instance.
        number: The number of the try, counted from 0.
        key: The key that the random numbers of the set are drawn by.
    """

    stratum: Stratum
    number: int
    key: str

    @property
    def run(self) -> TeamRun:
        """The run, before anything is injected."""
        chance = self._chance("run")
        run = self.stratum.configuration.run(chance.randrange(2**31))
        return salt_run(run, f"{self.key}/{self.number}", chance)

    @property
    def has_decoys(self) -> bool:
        """Whether there are innocent oddities beside the fault."""
        return self.stratum.sort in ("decoys", "gradual")

    def faults(self, twin: Sequence[Record], again: int = 0) -> tuple[Fault, ...]:
        """Draw the faults to inject, from the records of the run without faults.

        A fault of an agent that does nothing any more has no effect, so each target is an agent
        that begins an activation before `LATEST`, and its fault begins just before one of these.

        Args:
            twin: The records of the run without faults.
            again: The number of earlier draws, which had no effect.

        Returns:
            The faults, the prominent one first; none, if there are fewer agents than faults.
        """
        # A stream for each purpose and try: drawing again moves no other random number.
        chance = self._chance(f"faults {again}")
        starts = _starts(twin)
        if len(starts) < len(self.stratum.kinds):
            return ()
        faults: list[Fault] = []
        targets = chance.sample(sorted(starts), len(self.stratum.kinds))
        for kind, target in zip(self.stratum.kinds, targets, strict=True):
            # The first fault is the prominent one; the second hides behind it.
            chosen = _parameters(kind_of(kind), chance) | (SUBTLE if faults else {})
            fault = _draw(kind, target, starts[target], twin[-1].ts, chance, chosen)
            faults.append(self._made_hard(fault, starts[target], twin[-1].ts, chance))
        return tuple(faults)

    def decoys(self, run: Sequence[Record], again: int = 0) -> tuple[Fault, ...]:
        """Innocent oddities of the sign of the fault, drawn by the records of the run without any.

        Args:
            run: The records of the run without faults and without decoys.
            again: The number of earlier draws, which were not innocent or had no effect.
        """
        if not self.has_decoys:
            return ()
        chance, starts = self._chance(f"decoys {again}"), _starts(run)
        faults: list[Fault] = []
        for _ in range(chance.randint(1, 3)):
            target = chance.choice(sorted(starts))
            begins = _begin(starts[target], chance)
            for kind, parameters in DECOYS[self.stratum.kinds[0]]:
                chosen = {"at_most": 1, **parameters}
                # An agent that leaves for good would do harm.
                ends = round(begins + 0.5, 3) if kind == "leave" else None
                faults.append(
                    Fault(kind=kind, target=target, start_s=begins, end_s=ends, parameters=chosen)
                )
        return tuple(faults)

    def _made_hard(
        self, fault: Fault, starts: Sequence[float], end_s: float, chance: random.Random
    ) -> Fault:
        """Make a fault as hard to find as the sort of the stratum says."""
        if self.stratum.sort == "gradual":
            rise_s = round(end_s * chance.uniform(0.4, 1.0), 3)
            begins = round(max(0.0, min(starts) - LEAD_S * chance.random()), 3)
            parameters = {**fault.parameters, "rise_s": rise_s}
            # A fault that grows must not use up its acts while it is still rare.
            if "at_most" in fault.row.injector.parameters:
                parameters["at_most"] = 100
            return replace(fault, start_s=begins, end_s=None, parameters=parameters)
        if self.stratum.sort == "silent contents" and fault.kind == "corrupt":
            begins = round(max(0.0, min(starts) - LEAD_S * chance.random()), 3)
            parameters = {**fault.parameters, "how": "moved"}
            return replace(fault, start_s=begins, end_s=None, parameters=parameters)
        return fault

    def _chance(self, purpose: str) -> random.Random:
        # What a string seeds is the same on all machines.
        return random.Random(f"{self.key}/{self.stratum.name}/{self.number}/{purpose}")


def _starts(run: Sequence[Record]) -> dict[str, list[float]]:
    """The starts of each agent's activations, as long as work is going on."""
    starts: dict[str, list[float]] = {}
    for record in run:
        # Later there is no work left that a fault could spoil.
        if isinstance(record, Start) and record.ts <= LATEST * run[-1].ts:
            starts.setdefault(record.agent, []).append(record.ts)
    return starts


def _begin(starts: Sequence[float], chance: random.Random) -> float:
    return round(max(0.0, chance.choice(starts) - LEAD_S * chance.random()), 3)


def _draw(
    kind: str, target: str, starts: Sequence[float], end_s: float, chance: random.Random,
    parameters: Mapping[str, Any],
) -> Fault:  # fmt: skip
    """Draw a fault with a start just before an activation; half of all faults end.

    Args:
        kind: Its kind.
        target: Its agent.
        starts: When the agent begins its activations.
        end_s: When the run without it ends.
        chance: Draws the window.
        parameters: Its parameters.
    """
    begins = _begin(starts, chance)
    ends = begins + end_s * chance.uniform(*LASTS) if chance.random() < 0.5 else None
    ends = None if ends is None else round(ends, 3)
    return Fault(kind=kind, target=target, start_s=begins, end_s=ends, parameters=parameters)


def _parameters(kind: Kind, chance: random.Random) -> dict[str, Any]:
    """Draw a value for each parameter with named choices; the others keep their defaults."""
    return {
        name: chance.choice(parameter.choices)
        for name, parameter in kind.parameters.items()
        if parameter.choices
    }
