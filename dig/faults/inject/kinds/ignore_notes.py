"""An agent does not read what the system says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dig.faults.inject.injector import Injector, Moment
from dig.graph.records import SYSTEM
from dig.monitor.messages import Pending
from dig.runtime.agents import Decision, Plan, View


class IgnoreNotes(Injector):
    """Is shown neither notes nor system events; only where healing speaks does it matter."""

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        """Begin with nothing left unread."""
        super().__init__(chosen)
        self._left: tuple[Pending, ...] | None = None

    def seen(self, view: View, moment: Moment) -> View:
        """The view without the system's words."""
        speaks = any(event.notes or event.sender == SYSTEM for event in view.events)
        self._left = None
        if not speaks or not self.happens(moment):
            return view
        moment.tell("did not read what the system said")
        self._left = tuple(replace(e, notes=()) for e in view.events if e.sender != SYSTEM)
        return replace(view, events=self._left) if self._left else view

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """Nothing, where there is nothing but the system's words."""
        if self._left != () or isinstance(plan.decision, str):
            return plan
        return Plan(plan.think_s, Decision())
