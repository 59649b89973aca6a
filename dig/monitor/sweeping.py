"""Sweeping: when a session lets go of its closed history, and who else forgets something then.

Between two calls, never while something is held; seldom enough that it costs each record little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dig.errors import SettingsError

if TYPE_CHECKING:
    from .gates import Gates
    from .healing import Treatment
    from .recorder import Ledger
    from .schedule import Policies

KEEP = 1_000
"""How many records of closed history a session keeps for inspection, if nothing else is said."""

GROWTH = 3
"""A history is swept when it is so many times as long as what stayed of it the last time."""


class Sweeper:
    """Keeps the memory of a session in proportion to what is going on in it."""

    def __init__(
        self,
        keep: int | None,
        ledger: Ledger,
        treatment: Treatment,
        gates: Gates,
        policies: Policies,
    ) -> None:
        """Begin; `keep` is how many records of closed history stay, ``None``: all.

        Raises:
            SettingsError: `keep` is no number of records.
        """
        if keep is not None and (type(keep) is not int or keep < 0):
            raise SettingsError(f"keep={keep!r:.60} is no number of records; None keeps all")
        self._keep = keep
        self._ledger = ledger
        self._treatment = treatment
        self._gates = gates
        self._policies = policies
        self._next = keep or 0

    def sweep(self) -> None:
        """Let go of what can change no verdict any more, if there is enough of it."""
        graph = self._ledger.graph
        if self._keep is None or graph.history.rows < self._next or not graph.run.session:
            return
        self._ledger.let_go(self._keep, {*self._gates.deciding, *self._policies.events})
        self._treatment.let_go()
        self._gates.let_go()
        self._next = max(1, GROWTH * graph.history.rows + self._keep)
