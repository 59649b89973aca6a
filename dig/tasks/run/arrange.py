"""From the configuration of a run to a task, a team, and a bus or simulator.

A `TeamRun` only names these things; the functions here make them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dig.detectors import plugins, standard
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.graph.records import Limits, Record
from dig.monitor.messages import Output
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import Sink
from dig.runtime.bus import Bus
from dig.runtime.group_commit import Durable
from dig.runtime.setup import Setup
from dig.runtime.simulator import Happening, Simulation
from dig.tasks.catalogue import kind
from dig.tasks.frequency import FrequencyTask
from dig.tasks.task import Task

from .methods import Arrangement, use_method
from .team_run import OWN, SIMULATED, TeamRun
from .teams import Team, in_virtual_time, is_named_by_number, team

APART_S = 2.0
"""Seconds from one problem of a session to the next."""


class Disturbance:
    """The base of all interference with a run from outside, such as faults: it does nothing.

    Attributes:
        team: The agents of the run, by name, with the interference around them.
    """

    def __init__(self, arrangement: Arrangement) -> None:
        self.team = arrangement.team

    def about(self) -> Mapping[str, Any]:
        """Entries for the side file."""
        return {}

    def happenings(self, since_s: float = 0.0) -> Sequence[Happening]:
        """Changes from outside from a moment on, in virtual time, with times in seconds."""
        return ()

    async def run_on(self, bus: Bus, since_s: float = 0.0, now_s: float = 0.0) -> None:
        """Make the same changes on an open bus; the bus's clock shows `now_s`."""

    def follow(self, record: Record) -> None:
        """Take a record, after the journal."""

    def outcome(self) -> Mapping[str, Any]:
        """Entries for the result, at the end of the run."""
        return {}


def make_run(
    task: str, thresholds: Thresholds, *, size: int | None = None, data: str | None = None,
    agents_are: str | None = None, **more: Any,
) -> TeamRun:  # fmt: skip
    """Configure a run of a task, with the task's defaults.

    Args:
        task: The task's name.
        thresholds: The thresholds.
        size: The number of elements; ``None``: the task's default.
        data: The path of its data; ``None``: the task's default.
        agents_are: The way to make the team; ``None``: simulated agents, or the task's own.
        more: The other attributes of the `TeamRun`.

    Raises:
        SettingsError: There is no such task, or a setting is out of range.
    """
    task_kind = kind(task)
    run = TeamRun(
        task=task,
        size=task_kind.size if size is None else size,
        data=task_kind.data() if data is None else data,
        agents_are=agents_are or (SIMULATED if task_kind.agent else OWN),
        limits=thresholds.limits,
        budget=thresholds.budget,
        cooldown_s=thresholds.cooldown_s,
        designate=thresholds.designate,
        **more,
    )
    if is_named_by_number(run.agents_are):
        return run
    return replace(run, agents=len(members(run, make_task(run))))


def make_task(run: TeamRun) -> Task:
    """Make the task of a run: problem, tools and scorer.

    Raises:
        SettingsError: The task cannot be made; the message says why.
    """
    return kind(run.task).make(run.size, run.seed, run.data)


def members(run: TeamRun, task: Task) -> tuple[str, ...]:
    """The names of all agents of a run.

    Raises:
        SettingsError: There is no such team.
    """
    return run.names if is_named_by_number(run.agents_are) else tuple(team(run, task))


def make_problem(run: TeamRun, task: Task) -> Output:
    """Make the first event of a run."""
    names = members(run, task)
    return task.problem(*(names if run.to == "all" else names[run.first : run.first + 1]))


def make_problems(run: TeamRun, task: Task) -> list[tuple[float, Output]]:
    """Make the first event of a run or, of a session, all problems: each with its second.

    Raises:
        SettingsError: The task has no parts for several problems.
    """
    if run.problems == 1:
        return [(0.0, make_problem(run, task))]
    if not isinstance(task, FrequencyTask):
        raise SettingsError(f"{run.task!r} poses one problem, not {run.problems}")
    posed_to = [run.names[(run.first + number) % run.agents] for number in range(run.problems)]
    return [
        (APART_S * number, task.problem(name, part=part))
        for number, (name, part) in enumerate(zip(posed_to, run.problem_parts, strict=True))
    ]


def arrange(run: TeamRun, task: Task, speed: float = 1.0) -> Arrangement:
    """Make the setup and the team of a run, and apply the method to both.

    Args:
        run: The configuration.
        task: Its task, from `make_task`.
        speed: The factor by which the clock of a bus goes faster than real time.

    Raises:
        SettingsError: There is no such team.
    """
    setup = Setup(
        run=run.name,
        task=task.name,
        seed=run.seed,
        key=run.key,
        look_again_s=run.profile.look_again_s,
        limits=run.limits,
        usual=run.usual,
        detectors=lambda: [*standard(), *plugins.detectors(run.detectors)],
        budget=run.budget,
        policy=run.policy,
        tools=task.tools(),
        limit_s=run.limit_s,
        speed=speed,
        session=run.problems > 1,
        memory=run.remembers,
    )
    agents = team(run, task)
    return use_method(run, Arrangement(_fit_limits(setup, agents), agents))


def _fit_limits(setup: Setup, team: Team) -> Setup:
    """Give language models the time that their requests may take."""
    # Requests take real time; the limits of a run are seconds on its clock.
    longest_s = setup.speed * max(getattr(agent, "longest_s", 0.0) for agent in team.values())
    if not longest_s:
        return setup
    limits = setup.limits
    # A turn that may still go on is no reason for a deadlock.
    if limits.activation_limit_s == Limits().activation_limit_s < longest_s:
        limits = replace(limits, activation_limit_s=longest_s)
    return replace(setup, activation_timeout_s=longest_s, limits=limits)


def make_bus(
    run: TeamRun, task: Task, sink: Sink, speed: float = 1.0, durable: Durable | None = None,
    arrangement: Arrangement | None = None,
) -> Bus:  # fmt: skip
    """Make the bus of a run; the caller injects the event of `make_problem`.

    Args:
        run: The configuration.
        task: Its task, from `make_task`.
        sink: Is given every record before its effect happens.
        speed: The factor by which the clock goes faster than real time.
        durable: The sink's data, if they are to be synced before their effect happens.
        arrangement: Setup and team of the run; ``None``: those of `arrange`.

    Raises:
        SettingsError: The run has several problems, which only virtual time has.
    """
    if run.problems > 1:
        raise SettingsError(f"{run.problems} problems at once are posed in virtual time alone")
    arrangement = arrangement or arrange(run, task, speed)
    return Bus(arrangement.team, arrangement.setup, sink=sink, durable=durable)


def make_simulation(
    run: TeamRun, task: Task, sink: Sink, durable: Durable | None = None,
    arrangement: Arrangement | None = None, disturbance: Disturbance | None = None,
) -> Simulation:  # fmt: skip
    """Make the simulation of a run, and plan the problem or, of a session, all problems.

    Args:
        run: The configuration.
        task: Its task, from `make_task`.
        sink: Is given every record before its effect happens.
        durable: The sink's data, if they are to be synced before their effect happens.
        arrangement: Setup and team of the run; ``None``: those of `arrange`.
        disturbance: Interferes with the run; ``None``: nothing does.

    Raises:
        SettingsError: An agent of the team cannot work in virtual time, or the task has no parts
            for several problems.
    """
    arrangement = arrangement or arrange(run, task)
    disturbance = disturbance or Disturbance(arrangement)
    team = in_virtual_time(disturbance.team)
    simulation = Simulation(team, arrangement.setup, sink, durable=durable)
    for at_s, problem in make_problems(run, task):
        simulation.plan(at_s, partial(Monitor.inject, output=problem))
    for at_s, happening in disturbance.happenings():
        simulation.plan(at_s, happening)
    return simulation
