"""The budget of a wrapped team: allowed turns, and the entry agent's last turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from dig.detectors.spending_limits import METERED, TeamBudget
from dig.graph.records import BUDGET, NOTICE
from dig.monitor.messages import Answered, Effect, Output
from dig.runtime.spending import Account, TeamSpending

from .call_errors import is_called_off, is_stop
from .capabilities import demand
from .guard import Guard, in_step
from .turn import Turn


class SessionBudget:
    """The budget of a session.

    An adapter asks `Session.refuses` before a turn. At a limit it starts no further agent, gives
    the entry agent a turn if `Session.hand_back` says so, and raises `Account.exceeded()` without
    an answer.

    Attributes:
        guard: The guard of the session.
        partial: The number of requests that were answered at a limit.
        is_metered: Whether the usage of models matters to a limit.
    """

    def __init__(
        self, budget: TeamBudget, guard: Guard, capabilities: frozenset[str], team: str
    ) -> None:
        """Begin before the first request.

        Raises:
            SettingsError: The team cannot be stopped, or does not report the use of tokens.
        """
        self.is_metered = not budget.named_limits.isdisjoint(METERED)
        needed = {"stop", "meter"} if self.is_metered else {"stop"}
        demand(needed, capabilities, f"to keep a budget: {team}")
        self.guard, self.partial = guard, 0
        self._graph = guard.monitor.graph
        self._spending = TeamSpending(budget, self._graph, guard.now)

    def join_team(self, other: SessionBudget) -> None:
        """Share the limits of all requests together with another session of the team."""
        self._spending.join_team(other._spending)

    def accounts(self, *events: str) -> list[Account]:
        """The accounts of the requests behind some events."""
        none = list[Account]()
        return self.guard.run(self._spending.accounts, events, default=none)

    def stopped(self, event: str, error: BaseException) -> Account | None:
        """The account of a stopped request ended by an error; ``None``: none, or cancelled."""
        if is_called_off(error) and not is_stop(error):
            return None  # the caller has called it off
        return next((it for it in self.accounts(event) if it.stage in ("stopped", "last")), None)

    @in_step(None)
    def spend(self, turn: Turn, accounts: list[Account], usage: Mapping[str, Any]) -> None:
        """Add the usage of a call of a model.

        Args:
            turn: The turn of the agent.
            accounts: The accounts of the requests that it works for.
            usage: `input_tokens`, `output_tokens`, and if known `model`, `cached_tokens` (of those
                that were sent) and `cost_usd`.
        """
        if turn.activation is not None:
            counts = turn.usage.setdefault(str(usage.get("model") or "model"), {})
            for name, amount in usage.items():
                if name != "model" and isinstance(amount, int | float):
                    counts[name] = counts.get(name, 0) + amount
            self._spending.charge(accounts, usage)
            self._write_due()

    # --- inside a step ---

    def begin(self, turn: Turn) -> None:
        """Count the turn of an agent; all spending is charged to the requests at the beginning."""
        spending, graph = self._spending, self._graph
        accounts = spending.accounts_of(graph.activation_sources(turn.activation or ""))
        spending.begin_turn(turn.instance, accounts)
        turn.spend = partial(self.spend, turn, accounts)
        turn.note_outputs = partial(self.note_outputs, accounts)
        if spending.due:
            self._write_due()

    def note_outputs(self, accounts: list[Account], outputs: Iterable[Output]) -> None:
        """Note the outputs of an activation, for the caller of a request at a limit."""
        for output in outputs:
            if output.type != NOTICE:
                self._spending.note_output(accounts, output.to, output.payload)

    def take(self, effects: Iterable[Effect]) -> None:
        """Note the accepted answers among some effects."""
        for effect in effects:
            if isinstance(effect, Answered):
                accounts = self._spending.of_answer(effect.event, effect.problems)
                self._spending.answered(accounts)
                self._write_due()

    def refuse(self, events: Iterable[str], but: str = "") -> Account | None:
        """Do what `Session.refuses` says."""
        account = self._spending.refuses(self._spending.accounts(events), but)
        if account is not None:
            self._spending.stop(account)
            self._write_due()
        return account

    def _write_due(self) -> None:
        for detail in self._spending.take_due() if self._spending.due else ():
            self.partial += detail["stage"] == "partial"
            self.guard.ask(self.guard.monitor.incident, BUDGET, detail)
