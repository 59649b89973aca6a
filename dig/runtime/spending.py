"""Spending: the turns, tokens, dollars and seconds of requests, and the requests at a limit.

`TeamSpending` follows the records of a run. Hosts and wrappers ask `refuses` before an agent's
turn; a request at a limit gets one more turn of its entry agent, and then none.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from dig._util.ranges import union
from dig._util.redaction import masking_logger
from dig.detectors.budget import ANY_MODEL, TeamBudget, limit_text
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

logger = masking_logger("dig")

ALARM_SHARE = 0.8
"""The share of a limit at which an alarm is raised."""

MOST_OUTPUTS = 10
"""The number of outputs to the entry agent that are kept for the caller."""

Stage = Literal["open", "stopped", "asked", "last", "over"]
"""A request goes on; is stopped; its entry agent is asked for what there is; has its last turn; and
gets no turn any more."""

_TOKENS = ("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens")


class Account:
    """The spending of a request, or of all requests together.

    Attributes:
        request: The event that posed the request; ``None``: the account is the team's.
        limits: The limits, by name.
        began: The time of the first turn, in seconds.
        entry: The agent of the first turn, which hands back what there is at a limit.
        stage: The state of the request.
        is_answered: Whether an answer was accepted.
        outputs: The last outputs to the entry agent; latest: that to any agent.
        spent: The spending, by the name of the limit.
        unpriced: A model that was used and has no price.
        warned: The limits that an alarm was raised for.
        reached: The limit that has stopped the request, as the detail of the incident.
    """

    def __init__(self, request: str | None, limits: Mapping[str, float], began: float) -> None:
        self.request, self.limits, self.began = request, limits, began
        self.entry = self.unpriced = ""
        self.stage: Stage = "open"
        self.is_answered = False
        self.outputs, self.latest = deque[Any](maxlen=MOST_OUTPUTS), deque[Any](maxlen=1)
        self.spent: Counter[str] = Counter()
        self.warned: set[str] = set()
        self.reached: dict[str, Any] = {}

    def at(self, share: float, now: float) -> Iterator[dict[str, Any]]:
        """The limits with a share spent, each as the detail of an incident."""
        self.spent["seconds"] = now - self.began  # type: ignore[assignment]
        for limit, most in self.limits.items():
            # Spending of an unknown amount must not count as none, so it uses up the limit.
            unpriced = self.unpriced if limit == "dollars" else ""
            if self.spent[limit] >= share * most or unpriced:
                scope = "team" if self.request is None else "request"
                spent = round(self.spent[limit], 6)
                detail = {"event": self.request, "scope": scope, "limit": limit, "spent": spent}
                yield {**detail, "most": most, **({"unpriced": unpriced} if unpriced else {})}

    @property
    def note(self) -> str:
        """The note for the last turn of the entry agent."""
        return (
            f"The budget of this request is used up ({limit_text(self.reached)}). This is its last "
            "turn: hand back now what there is, even if it is not complete; no other agent will be "
            "started."
        )

    def exceeded(self) -> BudgetExceeded:
        """End the request without an answer; returns the exception for the caller."""
        self.stage = "over"
        agent = f"`{self.entry}`" if self.entry else "no agent"
        return BudgetExceeded(
            f"the request was {limit_text(self.reached)}, and {agent} handed back no answer in its "
            "last turn",
            **{key: self.reached[key] for key in ("limit", "spent", "most")},
            partial=self.outputs or self.latest, request=self.request,
        )  # fmt: skip


class TeamSpending:
    """The accounts of a run, by request; a follower of the run's records.

    Attributes:
        at_work: The accounts of the activations in progress.
        last: The account whose last turn an activation is.
        next_last: The account whose last turn is about to start.
    """

    def __init__(
        self, budget: TeamBudget, graph: InteractionGraph, now: Callable[[], float], *,
        counts_starts: bool = False,
    ) -> None:  # fmt: skip
        """Begin with nothing spent.

        Args:
            budget: The budget.
            graph: The graph of the run.
            now: Seconds since the run began.
            counts_starts: Whether each activation is a turn; else `begin_turn` tells of turns.
        """
        self._budget, self._graph, self._now = budget, graph, now
        self._counts_starts = counts_starts
        self._limits = budget.limits()
        self._team = Account(None, budget.team.limits(), now())
        self._accounts: dict[str, Account] = {}
        self._due: list[dict[str, Any]] = []  # details of incidents to be written down
        self._told_live: set[str] = set()  # activations whose usage was told before their end
        self.at_work: dict[str, list[Account]] = {}
        self.last: dict[str, Account] = {}
        self.next_last: Account | None = None

    # --- records ---

    def __call__(self, record: Record) -> None:
        """Take a record into account."""
        if isinstance(record, Start):
            inputs, last = record.inputs, self.next_last
            if self._counts_starts:  # a host shows the agent no event without budget
                inputs = tuple(event for event in inputs if self.refuses([event]) is None)
            accounts = [last] if last else self.accounts(inputs)
            self.at_work[record.activation], self.next_last = accounts, None
            if last is not None:
                last.stage, self.last[record.activation] = "last", last
            if self._counts_starts:
                self.begin_turn(record.agent, accounts)
        elif isinstance(record, End):
            accounts = self.at_work.pop(record.activation, [])
            if record.activation not in self._told_live:
                self._charge(accounts, record.usage)
            self._told_live.discard(record.activation)
        elif isinstance(record, Emit) and record.by not in (None, SYSTEM):
            for account in () if record.type == NOTICE else self.accounts([record.event]):
                is_for_entry = account.entry in map(base_name, record.to)
                (account.outputs if is_for_entry else account.latest).append(record.payload)
        elif isinstance(record, IncidentRow) and record.what == BUDGET:  # of a run that is resumed
            row = record.detail if isinstance(record.detail, dict) else {}
            self._due = [detail for detail in self._due if detail != row]
            known = self._accounts.get(str(row.get("event")))
            if known is not None and (row.get("stage"), known.stage) == ("stopped", "open"):
                known.reached, known.stage = row, "stopped"

    def evicted(self, eviction: object) -> None:
        """Forget the accounts of evicted requests."""
        knows = self._graph.knows
        self._accounts = {name: account for name, account in self._accounts.items() if knows(name)}

    # --- before a turn ---

    def accounts(self, events: Iterable[str]) -> list[Account]:
        """The accounts of the requests behind some events; a run has a single request."""
        graph, number = self._graph, self._graph.history.event_number
        sources = union([graph.sources_of(number(event)) for event in events if graph.knows(event)])
        requests = graph.source_ids(sources if graph.run.session else [0] if sources else [])
        for request in requests:
            if request not in self._accounts:
                self._accounts[request] = Account(request, self._limits, self._now())
        return [self._accounts[request] for request in requests]

    def at_stage(self, *stages: Stage) -> list[Account]:
        """The accounts of the requests in some states."""
        return [account for account in self._accounts.values() if account.stage in stages]

    def refuses(self, events: Iterable[str], but: str = "") -> Account | None:
        """The account of a request without budget for a turn about some events; ``None``: go on.

        Args:
            events: The events.
            but: A limit that does not matter: that of turns, in the midst of one.
        """
        accounts = self.accounts(events)
        over = [account for account in accounts if self.is_over(account, but)]
        # Work that also concerns a request with budget goes on.
        return over[-1] if over and len(over) == len(accounts) else None

    def is_over(self, account: Account, but: str = "") -> bool:
        """Whether a request is at a limit of the request or of the team."""
        if account.stage != "open":
            return True
        for holder in (account, self._team):
            for detail in holder.at(1.0, self._now()):
                if detail["limit"] == but:
                    continue
                account.reached = {**detail, "event": account.request}
                return True
        return False

    def stop(self, account: Account) -> None:
        """Stop a request at a limit, once."""
        if account.stage == "open":
            account.stage = "over" if account.is_answered else "stopped"
            self._due.append({**account.reached, "stage": "stopped"})

    def answered(self, answer: str) -> None:
        """Note an accepted answer to requests; in a last turn, to the stopped request alone."""
        history = self._graph.history
        # An agent that remembers has earlier requests behind its answer, too.
        last = self.last.get(history.by(history.event_number(answer)) or "")
        for account in self.accounts([answer]) if last is None else [last]:
            account.is_answered = True
            if account.stage in ("stopped", "asked", "last"):
                account.stage = "over"
                self._due.append({**account.reached, "stage": "partial"})

    # --- spending ---

    def begin_turn(self, agent: str, accounts: Iterable[Account]) -> None:
        """Count a turn of an agent; parts of wrappers and tools have none."""
        name = base_name(agent)
        if not name.rpartition("/")[2].startswith(("__", "tool:")):
            for account in accounts:
                account.entry = account.entry or name
            self._count(accounts, turns=1)

    def add(self, activation: str, usage: Mapping[str, Any]) -> None:
        """Add the usage of an activation in progress; the usage at the end is then ignored."""
        self._told_live.add(activation)
        self._charge(self.at_work.get(activation, ()), usage)

    def take_due(self) -> list[dict[str, Any]]:
        """The details of the incidents to be written down now; warnings are logged, too."""
        due, self._due = self._due, []
        for detail in due:
            if detail["stage"] == "warning":
                whose = detail["event"] or "all requests"
                logger.warning("dig: budget of %s: %s", whose, limit_text(detail))
        return due

    def warn(self, accounts: Iterable[Account]) -> None:
        """Note each limit with `ALARM_SHARE` spent, once."""
        for account in (*accounts, self._team):
            for detail in account.at(ALARM_SHARE, self._now()):
                if detail["limit"] not in account.warned:
                    account.warned.add(detail["limit"])
                    self._due.append({**detail, "stage": "warning"})

    def next_alarm(self) -> float | None:
        """The time of the next limit in seconds, or of the alarm before."""
        holders = [account for account in self.at_stage("open") if not account.is_answered]
        holders += [self._team] if holders else []
        timed = ((it, it.limits["seconds"]) for it in holders if "seconds" in it.limits)
        shares = ((it, most * (1 if "seconds" in it.warned else ALARM_SHARE)) for it, most in timed)
        return min((account.began + seconds for account, seconds in shares), default=None)

    def _charge(self, accounts: Iterable[Account], usage: Any, model: str = "") -> None:
        """Add usage, flat or nested by model."""
        if not isinstance(usage, Mapping):
            return
        model = str(usage.get("model") or model)
        counts = Counter({key: it for key, it in usage.items() if type(it) in (int, float)})
        keys = next((keys for keys in _TOKENS if not counts.keys().isdisjoint(keys)), _TOKENS[0])
        sent, received = (counts[key] for key in keys)
        tokens = counts["total_tokens"] or sent + received
        price = self._budget.prices.get(model) or self._budget.prices.get(ANY_MODEL)
        dollars: float = counts["cost_usd"]
        if "cost_usd" not in counts and price is not None:
            dollars = price.dollars(sent, received, min(counts["cached_tokens"], sent))
        elif "cost_usd" not in counts and tokens:
            for account in (*accounts, self._team):
                account.unpriced = account.unpriced or model or "a model without a name"
        self._count(accounts, tokens=tokens, dollars=dollars)
        for name, value in usage.items():
            self._charge(accounts, value, name)

    def _count(self, accounts: Iterable[Account], **amounts: float) -> None:
        for account in (*accounts, self._team):
            account.spent.update(amounts)
        self.warn(accounts)
