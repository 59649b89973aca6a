"""A team with faults around agents, for the simulator and for the bus.

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
from .faulty_agent import ActiveFault, FaultContext, FaultyAgent, FaultyPolicy
from .injections import ActLocator
from .injector import NO_TURN, Act, Change, Occasion
from .payload_changes import UNKNOWN, Payloads, payloads_of


@dataclass
class _MembershipChange:
    """A leave or join of a target.

    Attributes:
        at_s: When, in seconds since the run began.
        agent: The target.
        change: `leave` or `join`.
        occasion: Takes the act.
        is_noted: Whether the act was noted.
    """

    at_s: float
    agent: str
    change: Change
    occasion: Occasion
    is_noted: bool = False

    def is_possible(self, monitor: Monitor) -> bool:
        """Whether the change can still happen: an absent agent cannot leave."""
        is_present = self.agent in monitor.graph.agents
        return not monitor.is_over and is_present == (self.change == "leave")

    def apply(self, monitor: Monitor) -> list[Effect]:
        """Make the change in virtual time, if possible."""
        if not self.is_possible(monitor):
            return []
        effects = (monitor.leave if self.change == "leave" else monitor.join)(self.agent)
        self.note()
        return effects

    def note(self) -> None:
        """Add the act, once; a join ends a fault and is no act."""
        if self.change == "leave" and not self.is_noted:
            self.occasion.add_act("left the team")
        self.is_noted = True


class FaultyTeam(Disturbance):
    """A team with faults around agents, for a single run.

    Attributes:
        team: The agents by name; the targets have faults around them.
        acts: The acts of the faults so far.
    """

    def __init__(
        self, team: Mapping[str, Any], faults: Sequence[Fault], *, seed: int | str = 0,
        payloads: Payloads = UNKNOWN, speed: float = 1.0,
    ) -> None:  # fmt: skip
        """Put faults around agents.

        Args:
            team: The agents by name; the mapping is not changed.
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
        self.acts: list[Act] = []
        self._run = FaultContext(seed, payloads, speed, self.acts.append)
        self._locator = ActLocator()
        active_faults = [ActiveFault(i, fault, self._run) for i, fault in enumerate(faults)]
        self.team: dict[str, Any] = dict(team)
        for name in dict.fromkeys(fault.target for fault in faults):
            agent = team[name]
            wrapper = FaultyPolicy if hasattr(agent, "plan") else FaultyAgent
            own = [active for active in active_faults if active.fault.target == name]
            self.team[name] = wrapper(agent, own, self._run)
        changes: list[_MembershipChange] = []
        for active in active_faults:
            fault, occasion = active.fault, active.occasion(NO_TURN, active.fault.start_s)
            changes += [
                _MembershipChange(at_s, fault.target, change, occasion)
                for at_s, change in active.injector.membership_changes(
                    occasion, fault.start_s, fault.end_s
                )
            ]
        self._changes = sorted(changes, key=lambda change: change.at_s)

    @classmethod
    def of_arrangement(cls, arrangement: Arrangement, faults: Sequence[Fault]) -> FaultyTeam:
        """Put faults around the team of an arranged run.

        Raises:
            SettingsError: A target is not in the team.
        """
        setup = arrangement.setup
        payloads = payloads_of(str(setup.task))
        return cls(
            arrangement.team, faults, seed=setup.draws_by, payloads=payloads, speed=setup.speed
        )

    def happenings(self, since_s: float = 0.0) -> list[Happening]:
        """The leaves and joins from a moment on, for the simulator."""
        return [(change.at_s, change.apply) for change in self._changes if change.at_s >= since_s]

    async def run_on(self, bus: Bus, since_s: float = 0.0, now_s: float = 0.0) -> None:
        """Make the leaves and joins on an open bus; returns after the last one.

        Args:
            bus: The bus.
            since_s: The moment from which on they are made, in seconds since the run began.
            now_s: The present time, in seconds since the run began.
        """
        start = anyio.current_time() - now_s / self._run.speed
        for change in self._changes:
            if change.at_s < since_s:
                continue
            await anyio.sleep_until(start + change.at_s / self._run.speed)
            if bus.monitor is None or not change.is_possible(bus.monitor):
                continue
            if change.change == "leave":
                bus.leave(change.agent)
            else:
                bus.join(change.agent, self.team[change.agent])
            change.note()

    def about(self) -> dict[str, Any]:
        """The faults, for the side file of the run."""
        return {"faults": [fault.to_json() for fault in self.faults]}

    def follow(self, record: Record) -> None:
        """Take a record, to locate each act in the trace."""
        self._locator(record)
        if isinstance(record, Leave):
            # The prefix of a fork repeats leaves as recorded, not by `apply`.
            for change in self._changes:
                if (change.agent, change.change, change.is_noted) == (record.agent, "leave", False):
                    if micros(change.at_s) <= record.us:
                        change.note()
                    break

    def outcome(self) -> dict[str, Any]:
        """The acts of the faults, for the result of the run."""
        return {"injections": [asdict(act) for act in self._locator.locate(self.acts)]}


def disturbance_of(
    side: Mapping[str, Any], foreign: Collection[str] = ()
) -> Callable[[Arrangement], FaultyTeam] | None:
    """Make a function to inject the faults of a recorded run again, for a fork.

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
    return partial(FaultyTeam.of_arrangement, faults=[Fault.read(row, foreign) for row in rows])
