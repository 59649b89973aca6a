"""Rehearsal: a step of healing is tried with several agents before it is carried out.

In virtual time a run that is played again, with the same choices, is the same run up to the step.
So a try is the run itself, in memory, from its beginning to its end, with one more choice. What is
tried is the agent that the step turns to; later steps turn to the agents that they would turn to
anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, astuple, dataclass
from typing import Any

from dig.detectors.interventions import Choose
from dig.errors import SettingsError
from dig.graph.records import Emit, Record
from dig.monitor.sinks import Sink
from dig.runtime.checkpoint import Restorable, keeps_state
from dig.runtime.result import RunResult
from dig.runtime.simulator import Simulation

from .teams import Team, models

UNLIKE = "played again, the team did not do the same; nothing is tried from here on"


@dataclass(frozen=True)
class TriedEnd:
    """The end of a try.

    Attributes:
        answers: The number of answers that were accepted.
        gaps: The number of accepted answers that lack work which they need.
        seconds: When it ended.
        calls: The number of activations up to the end.
    """

    answers: int
    gaps: int
    seconds: float
    calls: int

    @classmethod
    def of(cls, result: RunResult, records: Sequence[Record], simulation: Simulation) -> TriedEnd:
        """The end of a run, without a look at the truth about its answer."""
        graph = simulation.host.monitor.graph
        final = [one.event for one in records if isinstance(one, Emit) and one.final]
        accepted = {event for event in final if graph.is_accepted(event)}
        early = {
            one.subject["event"] for one in result.findings
            if one.pattern == "ET" and one.severity == "error"
        }  # fmt: skip
        gaps = len(early & accepted)
        return cls(len(accepted), gaps, result.seconds, result.activations)

    @property
    def rank(self) -> tuple[float, ...]:
        """A sort key: the best end has the greatest."""
        answers, *costs = astuple(self)
        return (answers, *(-cost for cost in costs))


class Rehearsal:
    """Tries steps of healing in one run; a `Choose`.

    Attributes:
        records: The records of the run so far; its maker lets the run add them.
        simulation: The run; its maker sets it.
    """

    simulation: Simulation

    def __init__(self, again: Callable[[Choose, Sink], Simulation], most: int) -> None:
        """Begin before the first step.

        Args:
            again: Makes the same run again, in memory, with other choices.
            most: The number of agents that are tried at a step.
        """
        self.records: list[Record] = []
        self._again = again
        self._most = most
        self._chosen: dict[tuple[int, int], Mapping[str, Any]] = {}
        self._is_over = False

    def __call__(self, t: int, us: int, agents: Sequence[str]) -> Mapping[str, Any] | None:
        """Try the first of some agents, and choose the one with the best end."""
        if self._is_over:
            return None
        tried: dict[str, TriedEnd] = {}
        for agent in agents[: self._most]:
            end = self._end((t, us), agent)
            if self.simulation.is_stopped:
                return None
            if end is None:
                self._is_over = True
                return {"agent": agents[0], "why": UNLIKE}
            tried[agent] = end
        best = max(tried, key=lambda name: tried[name].rank)
        said = {"agent": best, "tried": {name: asdict(end) for name, end in tried.items()}}
        self._chosen[t, us] = said
        return said

    def _end(self, place: tuple[int, int], agent: str) -> TriedEnd | None:
        """The end of the run if a step turns to an agent; ``None``: it is another run."""
        chosen, records = {**self._chosen, place: {"agent": agent}}, list[Record]()

        def choose(t: int, us: int, agents: Sequence[str]) -> Mapping[str, Any] | None:
            return chosen.get((t, us))

        def take(record: Record) -> None:
            records.append(record)
            if self.simulation.is_stopped:
                played.stop()

        played = self._again(choose, take)
        result = played.run()
        if records[: len(self.records)] != self.records:
            return None
        return TriedEnd.of(result, records, played)


def check_rehearsal(team: Team, speed: float | None) -> None:
    """Refuse to rehearse a run that cannot be played again.

    Args:
        team: Its agents, as they were made.
        speed: The speed of its clock; ``None``: virtual time.

    Raises:
        SettingsError: The run is none in virtual time, or an agent cannot be brought back to its
            beginning.
    """
    if speed is not None or models(team):
        raise SettingsError(
            "a step of healing can be rehearsed only in virtual time (--virtual), where the run "
            "can be played again: never in real time, with a language model or in a wrapped team"
        )
    for name, agent in team.items():
        if keeps_state(agent) and not isinstance(agent, Restorable):
            raise SettingsError(
                f"no step of healing can be rehearsed, since agent {name!r:.60} "
                f"({type(agent).__name__}) may keep a state of its own: give it `restore(past)`, "
                "or, if it keeps none, set `stateless = True` on its class"
            )


def anew(team: Team) -> Team:
    """A team whose agents have done nothing yet."""
    return {name: _anew(agent) for name, agent in team.items()}


def _anew(agent: Any) -> Any:
    if not (keeps_state(agent) and isinstance(agent, Restorable)):
        return agent
    agent = deepcopy(agent)
    agent.restore(())
    return agent
