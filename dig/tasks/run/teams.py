"""Teams: simulated agents, the task's own, a language model's, or those of a user's factory.

`agents_are` names a way to make a team, in the files beside a trace too:

- `simulated`: simulated agents, with a profile;
- `own`: those that the task itself brings;
- `model NAME`: general agents that a language model decides for; the options are those of
  `dig.runtime.llm.ModelSettings`, and `instructions` and `roles` of `GeneralBrief`;
- `module:object`: the user's: a mapping from names to agents, which are async functions of a
  `View` or objects with `act` or `plan`; or a function that makes such a mapping from those of
  `names`, `task`, `seed` and the options that it takes. It may be called more than once a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from dig._util.text import names
from dig.errors import SettingsError
from dig.runtime.agents import Agent, AgentFunction, PlannedAgent, Thinking, as_planned
from dig.tasks.catalogue import kind
from dig.tasks.simulated.agent import OneProblemAtATime
from dig.tasks.simulated.remembering import RememberingAgent
from dig.tasks.task import Task
from dig.tasks.user_objects import call, load

from .team_run import MODEL, OWN, SIMULATED, TeamRun

if TYPE_CHECKING:
    from dig.runtime.llm import Model

Team = Mapping[str, Agent | AgentFunction | PlannedAgent]
"""Agents by name; in virtual time work those that have a `plan` or await nothing real."""


def team(run: TeamRun, task: Task) -> Team:
    """The agents of a run, by name.

    Raises:
        SettingsError: There is no such team; the message says what to do.
    """
    way, _, rest = run.agents_are.partition(" ")
    if way in WAYS:
        return WAYS[way](run, task, rest)
    made = load(run.agents_are, "team")
    if callable(made) and not isinstance(made, Mapping):
        given = {"names": run.names, "task": task, "seed": run.seed, **run.options}
        made = call(made, run.agents_are, **given)
    return _checked(made, run.agents_are)


def is_named_by_number(agents_are: str) -> bool:
    """Whether the names of a team follow from how many there are."""
    return agents_are != OWN and ":" not in agents_are.partition(" ")[0]


def in_virtual_time(team: Team) -> Mapping[str, PlannedAgent]:
    """The same agents for virtual time; whether one awaits something real, only the run shows.

    Raises:
        SettingsError: An agent asks a language model, or is none; the message names it.
    """
    slow = [name for name, agent in team.items() if models({name: agent})]
    if slow:
        raise SettingsError(
            f"real time is needed by {names(slow)}, since a language model decides: leave "
            "--virtual out (in an experiment's file give `speed`)"
        )
    return {name: as_planned(agent) for name, agent in team.items()}


def in_real_time(
    agent: Agent | AgentFunction | PlannedAgent, speed: float
) -> Agent | AgentFunction:
    """An agent that really takes the time that it thinks, on a clock that goes `speed` times."""
    if hasattr(agent, "plan"):
        return Thinking(cast("PlannedAgent", agent), speed)
    return agent


def _simulated(run: TeamRun, task: Task, rest: str) -> Team:
    agent = kind(run.task).agent
    if agent is None:
        raise SettingsError(f"there are no simulated agents for {run.task!r}; say who works on it")
    made: Any = agent(run.key, run.profile)
    if run.remembers:
        return {name: RememberingAgent(made) for name in run.names}
    if run.problems > 1:
        return dict.fromkeys(run.names, OneProblemAtATime(made))
    return dict.fromkeys(run.names, made)


def _own(run: TeamRun, task: Task, rest: str) -> Team:
    return _checked(getattr(task, "team", None), run.task)


def _model(run: TeamRun, task: Task, rest: str) -> Team:
    from dig.runtime.llm import Model, ModelAgent, ModelSettings  # slow to import
    from dig.tasks.general_agent import GeneralBrief

    options = dict(run.options)
    roles, words = options.pop("roles", {}), options.pop("instructions", "")
    try:
        settings = ModelSettings(rest, **options)
    except TypeError as error:
        raise SettingsError(f"the options of a model are wrong: {error}") from None
    _check_brief(roles, words, run.names)
    brief = GeneralBrief(getattr(task, "goal", None), words, roles)
    return dict.fromkeys(run.names, ModelAgent(Model(settings), brief))


def _check_brief(roles: Any, words: Any, members: Sequence[str]) -> None:
    """Refuse roles and instructions from a file that a prompt cannot have.

    Raises:
        SettingsError: The message says what they must be.
    """
    texts = [words, *roles.values()] if isinstance(roles, Mapping) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise SettingsError(
            "in the options of a model, `instructions` is a text, and `roles` a table of texts by "
            'agent: {agent-1 = "You read.", agent-2 = "You write."}'
        )
    if strangers := [name for name in roles if name not in members]:
        raise SettingsError(
            f"`roles` names {names(strangers)}; the agents are {names(members)} (a team with other "
            "names is a function of yours, module:object)"
        )


def models(team: Team) -> list[Model]:
    """The language models that members of a team ask, each once."""
    asked = (getattr(agent, "model", None) for agent in team.values())
    found = dict.fromkeys(model for model in asked if hasattr(model, "spending"))
    return cast("list[Model]", list(found))


def _checked(made: Any, name: str) -> Team:
    if not isinstance(made, Mapping) or not made:
        raise SettingsError(f"{name!r} has no team: no mapping from names to agents")
    for agent, does in made.items():
        if not (callable(does) or hasattr(does, "act") or hasattr(does, "plan")):
            raise SettingsError(
                f"{name!r}: {agent!r} is {does!r:.60}, which is no agent: no async function of a "
                "View, and no object with `act` or `plan`"
            )
    return made


WAYS: Mapping[str, Callable[[TeamRun, Task, str], Team]] = MappingProxyType(
    {SIMULATED: _simulated, OWN: _own, MODEL: _model}
)
"""The makers of teams, by the first word of `agents_are`; the third argument is the rest of it."""
