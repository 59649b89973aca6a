"""An agent keeps everything and always waits."""

from __future__ import annotations

from dig.faults.injector import Moment, OnTurn
from dig.runtime.agents import Decision, View


class Hoard(OnTurn):
    """Leaves all that is in front of it where it is."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """To wait."""
        moment.tell("waited, and kept everything")
        return Decision.wait()
