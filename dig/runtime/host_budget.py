"""The budget of a team on the bus or in the simulator: allowed starts of activations.

At a limit the next activation is not started. When no activation of the request goes on any more,
its open events go to the entry agent with a note, for one more activation. An answer ends the
request; without one it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dig.detectors.interventions import Intervention
from dig.detectors.spending_limits import TeamBudget
from dig.errors import BudgetExceeded
from dig.graph.graph import InteractionGraph
from dig.graph.records import (
    BUDGET,
    NOTICE,
    SYSTEM,
    Emit,
    End,
    IncidentRow,
    Record,
    Start,
    base_name,
)
from dig.monitor.messages import Answered, Effect, Started
from dig.monitor.monitor import Monitor

from .agent_errors import describe
from .spending import Account, Stage, TeamSpending


class HostSpending(TeamSpending):
    """The accounts of a run whose activations are turns; a follower of the run's records.

    Attributes:
        at_work: The accounts of the activations in progress.
        last: The account whose last turn an activation is.
        next_last: The account whose last turn is about to start.
    """

    def __init__(self, budget: TeamBudget, monitor: Monitor) -> None:
        """Begin with nothing spent."""
        super().__init__(budget, monitor.graph, lambda: monitor.now)
        self.at_work: dict[str, list[Account]] = {}
        self.last: dict[str, Account] = {}
        self.next_last: Account | None = None
        self._ended: list[Account] = []  # of the latest ended activation, whose outputs come next

    def __call__(self, record: Record) -> None:
        """Take a record into account."""
        self.write((record,))

    def write(self, records: Sequence[Record]) -> None:
        """Take records into account, also those of a run that is resumed."""
        for record in records:
            if type(record) is Start:
                self._start(record)
            elif type(record) is End:
                self._ended = self.at_work.pop(record.activation, [])
                self.charge(self._ended, record.usage)
            elif type(record) is Emit and record.by not in (None, SYSTEM):
                if record.type != NOTICE:
                    self.note_output(self._ended, record.to, record.payload)
            elif type(record) is IncidentRow and record.what == BUDGET:
                self._note_incident(record)

    def at_stage(self, stage: Stage) -> list[Account]:
        """The accounts of the requests in a state after that of the limit."""
        return [account for account in self.limited if account.stage == stage]

    def of_answer(self, event: str, problems: Sequence[str]) -> list[Account]:
        """In a last turn, the account of the stopped request."""
        history = self._graph.history
        last = self.last.get(history.by(history.event_number(event)) or "")
        return super().of_answer(event, problems) if last is None else [last]

    def _start(self, record: Start) -> None:
        last, self.next_last = self.next_last, None
        if last is None:  # a host shows the agent no event without budget
            each = ((event, self.accounts((event,))) for event in record.inputs)
            shown = [event for event, accounts in each if self.refuses(accounts) is None]
            accounts = self.accounts(shown)
        else:
            accounts, last.stage, self.last[record.activation] = [last], "last", last
        self.at_work[record.activation] = accounts
        self.begin_turn(record.agent, accounts)

    def _note_incident(self, record: IncidentRow) -> None:
        row = record.detail if isinstance(record.detail, dict) else {}
        self.due = [detail for detail in self.due if detail != row]
        account = self._accounts.get(str(row.get("event")))
        if account is not None and (row.get("stage"), account.stage) == ("stopped", "open"):
            account.reached, account.stage = row, "stopped"
            self.limited.append(account)


class HostBudget:
    """The budget of a run, for the host.

    Attributes:
        spending: The accounts of the requests.
        exceeded: The exceptions for callers of failed requests, until the shell takes them.
    """

    def __init__(self, budget: TeamBudget, monitor: Monitor) -> None:
        """Begin before the first request."""
        self._monitor = monitor
        self.spending = HostSpending(budget, monitor)
        self.exceeded: list[BudgetExceeded] = []
        monitor.follow(self.spending)
        monitor.restrict_healing(self._fit)

    def start(self, agent: str) -> list[Effect]:
        """Start an activation of an agent, with the events of requests with budget."""
        monitor, spending = self._monitor, self.spending
        effects, state = monitor.tick(), monitor.graph.present.get(agent)
        buffer = state.buffer.values() if state else ()
        work = {it.id: spending.accounts_of(it.sources) for it in buffer if it.by != SYSTEM}
        asked = (it for it in spending.at_stage("asked") if it.entry == base_name(agent))
        last, refused = next(asked, None), dict[Account, None]()
        if last is not None:
            hidden = [name for name, accounts in work.items() if accounts and last not in accounts]
        else:
            hidden = [event for event, accounts in work.items() if spending.refuses(accounts)]
            refused = dict.fromkeys(account for event in hidden for account in work[event])
        if refused and len(hidden) == len(work):
            monitor.postpone(agent)
        else:
            spending.next_last = last
            effects += [_without(hidden, effect) for effect in monitor.start(agent)]
        # A note to this agent comes after its start: it would else be woken for nothing.
        return effects + self._stop(refused)

    def after_activation(self) -> list[Effect]:
        """Ask entry agents of stopped requests to hand back; fail requests without an answer."""
        effects, last = list[Effect](), self.spending.last
        for activation in last.keys() - self._monitor.graph.running.keys():
            account = last.pop(activation)
            effects += self._fail(account) if account.stage == "last" else []
        return effects + self._stop(())

    def look_at_clock(self) -> list[Effect]:
        """Stop the requests at a limit in seconds."""
        accounts = self.spending.in_progress()
        self.spending.warn(accounts)
        return self._stop(account for account in accounts if self.spending.is_over(account))

    def note_answers(self, effects: Iterable[Effect]) -> None:
        """Note the accepted answers among some effects."""
        for effect in effects:
            if isinstance(effect, Answered):
                self.spending.answered(self.spending.of_answer(effect.event, effect.problems))

    # --- inside ---

    def _fit(self, graph: InteractionGraph, wish: Any) -> tuple[Intervention | None, str | None]:
        """Refuse to send back the answer of a last turn."""
        event = graph.live.get(getattr(wish, "event", ""))
        if event is not None and event.final and event.by in self.spending.last:
            return None, "the budget of the request is used up, so its answer stands"
        return wish, None

    def _stop(self, accounts: Iterable[Account]) -> list[Effect]:
        """Stop some requests, and ask the entry agents of all stopped requests."""
        for account in accounts:
            self.spending.stop(account)
        effects = self._write_due()
        for account in self.spending.at_stage("stopped"):
            effects += self._ask(account)
        return effects + self._write_due()

    def _ask(self, account: Account) -> list[Effect]:
        """Give the entry agent all open events, unless an activation of the request goes on."""
        monitor, entry, effects = self._monitor, account.entry, list[Effect]()
        if any(account in accounts for accounts in self.spending.at_work.values()):
            return []
        if entry not in monitor.graph.present:
            return self._fail(account)
        account.stage = "asked"
        for event in [*monitor.graph.open.values()]:
            if account in self.spending.accounts_of(event.sources) and entry not in event.copies:
                effects += monitor.redirect(event.id, (entry,))
        return effects + monitor.tell(account.note, (entry,))

    def _fail(self, account: Account) -> list[Effect]:
        self.exceeded.append(account.exceeded())
        error = describe(self.exceeded[-1])
        return self._monitor.request_failed("limit", event=account.request, error=error)

    def _write_due(self) -> list[Effect]:
        due = self.spending.take_due()
        return [effect for detail in due for effect in self._monitor.incident(BUDGET, detail)]


def _without(hidden: list[str], effect: Effect) -> Effect:
    """A start without the events of other requests, left in front of the agent."""
    if not (hidden and isinstance(effect, Started)):
        return effect
    shown = tuple(event for event in effect.events if event.id not in hidden)
    return replace(effect, events=shown, kept=(*effect.kept, *hidden))
