"""Teams: simulated agents, a task's own, a language model's, or a user's.

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

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from dig._util.text import names
from dig.errors import SettingsError
from dig.runtime.agents import PlannedAgent, as_planned
from dig.runtime.agents import Team as Team
from dig.tasks.catalogue import kind
from dig.tasks.simulated.remembering import RememberingAgent
from dig.tasks.simulated.simulated_agent import OneProblemAtATime
from dig.tasks.task import Task
from dig.tasks.user_objects import call, load

from .team_run import MODEL, OWN, SIMULATED, TeamRun

if TYPE_CHECKING:
    from dig.runtime.llm import Model


def team(run: TeamRun, task: Task) -> Team:
    """The agents of a run, by name.

    Raises:
        SettingsError: There is no such team; the message says what to do.
    """
    kind_of_team, _, model = run.agents_are.partition(" ")
    if kind_of_team == SIMULATED:
        return _simulated_team(run)
    if kind_of_team == OWN:
        return _check_team(getattr(task, "team", None), run.task)
    if kind_of_team == MODEL:
        return _model_team(run, task, model)
    agents = load(run.agents_are, "team")
    if callable(agents) and not isinstance(agents, Mapping):
        arguments = {"names": run.names, "task": task, "seed": run.seed, **run.options}
        agents = call(agents, run.agents_are, **arguments)
    return _check_team(agents, run.agents_are)


def is_named_by_number(agents_are: str) -> bool:
    """Whether the names of a team follow from the number of agents."""
    return agents_are != OWN and ":" not in agents_are.partition(" ")[0]


def in_virtual_time(team: Team) -> Mapping[str, PlannedAgent]:
    """Wrap agents for virtual time; only the run shows whether an agent awaits something real.

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


def _simulated_team(run: TeamRun) -> Team:
    make_agent = kind(run.task).agent
    if make_agent is None:
        raise SettingsError(f"there are no simulated agents for {run.task!r}; say who works on it")
    agent: Any = make_agent(run.key, run.profile)
    if run.remembers:
        return {name: RememberingAgent(agent) for name in run.names}
    # Without a memory the agents are pure functions of their views, so one serves for all.
    return dict.fromkeys(run.names, OneProblemAtATime(agent) if run.problems > 1 else agent)


def _model_team(run: TeamRun, task: Task, model: str) -> Team:
    from dig.runtime.llm import Model, ModelAgent, ModelSettings  # slow to import
    from dig.tasks.general_agent import GeneralBrief

    options = dict(run.options)
    roles, instructions = options.pop("roles", {}), options.pop("instructions", "")
    try:
        settings = ModelSettings(model, **options)
    except TypeError as error:
        raise SettingsError(f"the options of a model are wrong: {error}") from None
    texts = [instructions, *roles.values()] if isinstance(roles, Mapping) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise SettingsError(
            "in the options of a model, `instructions` is a text, and `roles` a table of texts by "
            'agent: {agent-1 = "You read.", agent-2 = "You write."}'
        )
    if strangers := [name for name in roles if name not in run.names]:
        raise SettingsError(
            f"`roles` names {names(strangers)}; the agents are {names(run.names)} (a team with "
            "other names is a function of yours, module:object)"
        )
    brief = GeneralBrief(getattr(task, "goal", None), instructions, roles)
    return dict.fromkeys(run.names, ModelAgent(Model(settings), brief))


def models(team: Team) -> list[Model]:
    """The language models of a team's members, each once."""
    members = (getattr(agent, "model", None) for agent in team.values())
    # Not by class: the module of models is slow to import.
    unique = dict.fromkeys(model for model in members if hasattr(model, "spending"))
    return cast("list[Model]", list(unique))


def _check_team(agents: Any, name: str) -> Team:
    if not isinstance(agents, Mapping) or not agents:
        raise SettingsError(f"{name!r} has no team: no mapping from names to agents")
    for member, agent in agents.items():
        if not (callable(agent) or hasattr(agent, "act") or hasattr(agent, "plan")):
            raise SettingsError(
                f"{name!r}: {member!r} is {agent!r:.60}, which is no agent: no async function of a "
                "View, and no object with `act` or `plan`"
            )
    return agents
