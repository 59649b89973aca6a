"""A team with faults around it, for the simulator and for the bus.

Only the targets are wrapped; all other agents, and all detectors, are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import anyio

from dig.errors import SettingsError
from dig.graph.records import Leave, Record, micros
from dig.monitor.messages import Effect
from dig.monitor.monitor import Monitor
from dig.runtime.bus import Bus
from dig.runtime.simulator import Happening
from dig.tasks.run.arrange import Disturbance
from dig.tasks.run.methods import Arrangement

from .fault import Fault
from .faulty_agent import Acting, FaultContext, FaultyAgent, FaultyPolicy
from .injections import Places
from .injector import NO_TURN, Change, Moment, Touch
from .payloads import UNKNOWN, Payloads, payloads_of


@dataclass
class Outside:
    """A target comes or goes.

    Attributes:
        at_s: When, in seconds since the run began.
        agent: The target.
        change: `leave` or `join`.
        moment: Takes the act.
        is_told: Whether the act was noted.
    """

    at_s: float
    agent: str
    change: Change
    moment: Moment
    is_told: bool = False

    def is_possible(self, monitor: Monitor) -> bool:
        """Whether the step can still happen: an agent that has left cannot leave."""
        is_there = self.agent in monitor.graph.agents
        return not monitor.is_over and is_there == (self.change == "leave")

    def happen(self, monitor: Monitor) -> list[Effect]:
        """Have it happen in virtual time."""
        if not self.is_possible(monitor):
            return []
        do = monitor.leave if self.change == "leave" else monitor.join
        effects = do(self.agent)
        self.tell()
        return effects

    def tell(self) -> None:
        """Note, once, that it has happened; to join is the end of a fault, not an act."""
        if self.change == "leave" and not self.is_told:
            self.moment.tell("left the team")
        self.is_told = True


class Injected(Disturbance):
    """A team with faults around it, for one run.

    Attributes:
        team: The agents by name, as they were or with faults around them.
        touches: Their acts so far.
    """

    def __init__(
        self, team: Mapping[str, Any], faults: Sequence[Fault], *, seed: int | str = 0,
        payloads: Payloads = UNKNOWN, speed: float = 1.0,
    ) -> None:  # fmt: skip
        """Put them round it.

        Args:
            team: The agents by name; it is not changed.
            faults: One, or several as a hybrid; of two on one agent the first acts first.
            seed: The seed, or key, of the faults' random numbers.
            payloads: The transforms of the task's payloads.
            speed: The speed of the bus's clock, as a multiple of real time.

        Raises:
            SettingsError: A target is not in the team.
        """
        for fault in faults:
            fault.check_target(team)
        self.faults = tuple(faults)
        self.touches: list[Touch] = []
        self._run = FaultContext(seed, payloads, speed, self.touches.append)
        self._places = Places()
        self._acting = [Acting(i, fault, self._run) for i, fault in enumerate(faults)]
        self.team: dict[str, Any] = {
            name: self._around(name, agent) for name, agent in team.items()
        }
        self._script = self._changes()

    @classmethod
    def into(cls, arranged: Arrangement, faults: Sequence[Fault]) -> Injected:
        """Put faults round the team of a run that is arranged.

        Raises:
            SettingsError: A target is not in the team.
        """
        setup = arranged.setup
        payloads = payloads_of(str(setup.task))
        return cls(arranged.team, faults, seed=setup.draws_by, payloads=payloads, speed=setup.speed)

    def happenings(self, since_s: float = 0.0) -> list[Happening]:
        """The leaves and joins from a moment on, for the simulator."""
        return [(one.at_s, one.happen) for one in self._script if one.at_s >= since_s]

    async def run_on(self, bus: Bus, since_s: float = 0.0, now_s: float = 0.0) -> None:
        """Make the leaves and joins on an open bus; returns after the last one.

        Args:
            bus: The bus.
            since_s: The moment from which on they are made, in seconds since the run began.
            now_s: The present time, in seconds since the run began.
        """
        began = anyio.current_time() - now_s / self._run.speed
        for one in self._script:
            if one.at_s < since_s:
                continue
            await anyio.sleep_until(began + one.at_s / self._run.speed)
            if bus.monitor is None or not one.is_possible(bus.monitor):
                continue
            if one.change == "leave":
                bus.leave(one.agent)
            else:
                bus.join(one.agent, self.team[one.agent])
            one.tell()

    def about(self) -> dict[str, Any]:
        """The faults, for the side file of the run."""
        return {"faults": [fault.to_json() for fault in self.faults]}

    def follow(self, record: Record) -> None:
        """Note a record, to find the place of each act in the trace."""
        self._places(record)
        if isinstance(record, Leave):
            due = (
                one
                for one in self._script
                if one.agent == record.agent and one.change == "leave" and not one.is_told
            )
            one = next(due, None)
            if one is not None and micros(one.at_s) <= record.us:
                one.tell()

    def outcome(self) -> dict[str, Any]:
        """The acts of the faults, for the result of the run."""
        return {"injections": [asdict(one) for one in self._places.of(self.touches)]}

    def _around(self, name: str, agent: Any) -> Any:
        acting = [one for one in self._acting if one.fault.target == name]
        if not acting:
            return agent
        return (FaultyPolicy if hasattr(agent, "plan") else FaultyAgent)(agent, acting, self._run)

    def _changes(self) -> list[Outside]:
        """All leaves and joins, in order."""
        script: list[Outside] = []
        for acting in self._acting:
            fault = acting.fault
            moment = acting.moment(NO_TURN, fault.start_s)
            for at_s, change in acting.injector.script(moment, fault.start_s, fault.end_s):
                script.append(Outside(at_s, fault.target, change, moment))
        return sorted(script, key=lambda one: one.at_s)


def disturbance_of(
    side: Mapping[str, Any], foreign: Collection[str] = ()
) -> Callable[[Arrangement], Injected] | None:
    """A function that injects the faults of a recorded run again, for a fork of it.

    Args:
        side: The side file of the run.
        foreign: The user's own kinds of faults, as `module:object`, that the caller allows.

    Returns:
        The function; ``None``: the run had no faults.

    Raises:
        SettingsError: The contents of the file are no list of faults.
    """
    rows = side.get("faults")
    if not rows:
        return None
    if not isinstance(rows, list):
        raise SettingsError(f"the faults in the side file are no list, but {type(rows).__name__}")
    return partial(Injected.into, faults=[Fault.read(row, foreign) for row in rows])
