"""Tasks by name: ours, those of installed packages, and a user's own.

A package registers a task by an entry point of the group `dig.tasks`; any other is named
`module:object`. Either is a `TaskKind`, or a function or class that makes a `Task`, from those of
`size`, `seed` and `data` that it takes as keywords; or, for short, a pair of a team (a mapping
from names to agents) and the problem's payload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from dig.detectors.plugins import list_entries
from dig.errors import SettingsError
from dig.monitor.messages import Output
from dig.runtime.agents import PlannedAgent, Tool

from .count_frequency import TASK as COUNT_FREQUENCY
from .count_frequency import CountFrequency
from .newsgroups import TASK as NEWSGROUPS
from .newsgroups import Newsgroups, data_from_environment
from .simulated.classifying import Posts
from .simulated.profile import Profile
from .simulated.simulated_agent import SimulatedAgent
from .task import Score, Task
from .user_objects import call, load

TASKS_GROUP = "dig.tasks"


@dataclass(frozen=True)
class TaskKind:
    """A maker of tasks, with the defaults.

    Attributes:
        make: Makes one from `(size, seed, data)`; `data` is a path, or ``None``.
        agent: Makes a simulated agent for it from `(key, profile)`; ``None``: there is none.
        size: The size that it has unless told.
        data: The data that it reads unless told.
    """

    make: Callable[[int, int, str | None], Task]
    agent: Callable[[int | str, Profile], PlannedAgent] | None = None
    size: int = 1
    data: Callable[[], str | None] = lambda: None


@dataclass(frozen=True)
class TeamTask:
    """A user's team with a problem; answers are not scored.

    Attributes:
        name: The task's name as the user gave it.
        team: The agents, by name.
        payload: The problem.
    """

    name: str
    team: Mapping[str, Any]
    payload: Any
    size: int = 1
    data: str = "a problem of the user's own"

    def problem(self, *to: str) -> Output:
        """Make the first event of a run."""
        return Output(self.payload, to, "problem")

    def tools(self) -> Mapping[str, Tool]:
        """None: such a team brings tools of its own."""
        return {}

    def score(self, answer: object) -> Score | None:
        """None: such an answer is not scored."""
        return None


def kind(name: str) -> TaskKind:
    """The kind of tasks with a name.

    Args:
        name: One of `TASKS`, of an entry point, or `module:object`.

    Raises:
        SettingsError: There is no such task; the message names those that there are.
    """
    if name in TASKS:
        return TASKS[name]
    # Only for other names: to read all entry points takes 30 ms.
    installed = {entry.name: entry.value for entry in list_entries(TASKS_GROUP)}
    if ":" not in name and name not in installed:
        names = ", ".join((*TASKS, *sorted(installed)))
        raise SettingsError(
            f"there is no task {name!r}; known are: {names}; a task of your own is named "
            "module:object"
        )
    task = load(installed.get(name, name), "task")
    return task if isinstance(task, TaskKind) else TaskKind(partial(_users_task, name, task))


def _users_task(name: str, task: Any, size: int, seed: int, data: str | None) -> Task:
    """The task behind a user's object, or made by the object."""
    if callable(task):
        task = call(task, name, size=size, seed=seed, data=data)
    if isinstance(task, tuple) and len(task) == 2 and isinstance(task[0], Mapping):
        return TeamTask(name, *task)
    attributes = ("name", "size", "data", "problem", "tools", "score")
    if lacks := [attribute for attribute in attributes if not hasattr(task, attribute)]:
        raise SettingsError(
            f"{name!r} is no task: it lacks {', '.join(lacks)}; name a pair of a team "
            "and a problem, or something that makes a task"
        )
    return cast("Task", task)


def _count_frequency(size: int, seed: int, data: str | None) -> Task:
    if data is not None:
        raise SettingsError(f"{COUNT_FREQUENCY} makes its own numbers; leave --data out")
    return CountFrequency(size, seed)


_sorter = partial(SimulatedAgent, reading=Posts())

TASKS: Mapping[str, TaskKind] = MappingProxyType(
    {
        COUNT_FREQUENCY: TaskKind(_count_frequency, SimulatedAgent, size=10_000),
        NEWSGROUPS: TaskKind(Newsgroups, _sorter, size=60, data=data_from_environment),
    }
)
"""The tasks of this package, by name."""
