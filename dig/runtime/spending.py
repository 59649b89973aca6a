"""Spending: the turns, tokens, dollars and seconds of requests, and the requests at a limit.

`TeamSpending` follows the records of a run. Hosts and wrappers ask `refuses` before an agent's
turn; a request at a limit gets one more turn of its entry agent, and then none. A turn costs a few
look-ups: the accounts behind an event are kept by its sources.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from dig._util.ranges import RangeSet, union
from dig._util.redaction import masking_logger
from dig.detectors.budget import ANY_MODEL, UNITS, TeamBudget, limit_text
from dig.errors import BudgetExceeded
from dig.graph.graph import InteractionGraph
from dig.graph.records import (
    NOTICE,
    SYSTEM,
    TOOL,
    Emit,
    Record,
    base_name,
)

logger = masking_logger("dig")

ALARM_SHARE = 0.8
"""The share of a limit at which an alarm is raised."""

MOST_KNOWN = 256
"""The sets of sources for which the accounts are kept."""

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
        self.spent: dict[str, float] = dict.fromkeys(UNITS, 0)
        self.warned: set[str] = set()
        self.reached: dict[str, Any] = {}

    def at(self, share: float, now: float) -> list[str]:
        """The limits with a share spent."""
        spent, limits = self.spent, self.limits
        if "seconds" in limits:
            spent["seconds"] = now - self.began
        reached = [limit for limit in limits if spent[limit] >= share * limits[limit]]
        # Spending of an unknown amount must not count as none, so it uses up the limit.
        if self.unpriced and "dollars" in limits and "dollars" not in reached:
            reached.append("dollars")
        return reached

    def detail(self, limit: str) -> dict[str, Any]:
        """The spending as the detail of an incident about a limit."""
        scope = "team" if self.request is None else "request"
        spent, most = round(self.spent[limit], 6), self.limits[limit]
        unpriced = {"unpriced": self.unpriced} if self.unpriced and limit == "dollars" else {}
        about = {"event": self.request, "scope": scope, "limit": limit}
        return {**about, "spent": spent, "most": most, **unpriced}

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
        due: The details of incidents to be written down.
        limited: The requests that are stopped, or were.
    """

    def __init__(
        self, budget: TeamBudget, graph: InteractionGraph, now: Callable[[], float]
    ) -> None:
        """Begin with nothing spent; `now`: seconds since the run began."""
        self._budget, self._graph, self._now = budget, graph, now
        self._limits = budget.limits()
        team = Account(None, budget.team.limits(), now())
        self._team = [team] if team.limits else []
        self._accounts: dict[str, Account] = {}
        self._known: dict[tuple[int, ...], list[Account]] = {}  # by sources
        self.due: list[dict[str, Any]] = []
        self.limited: list[Account] = []

    # --- records ---

    def __call__(self, record: Record) -> None:
        """Take a record into account."""
        self.write((record,))

    def write(self, records: Sequence[Record]) -> None:
        """Note what the records give to agents."""
        for record in records:
            if type(record) is Emit:
                self.note_output(record)

    def note_output(self, record: Emit) -> None:
        """Note the output of an agent to others, for the caller of a request without an answer."""
        if record.by not in (None, SYSTEM) and record.type != NOTICE:
            names = [*map(base_name, record.to)]
            for account in self.accounts((record.event,)):
                (account.outputs if account.entry in names else account.latest).append(
                    record.payload
                )

    def evicted(self, eviction: object) -> None:
        """Forget the accounts of evicted requests."""
        knows = self._graph.knows
        self._accounts = {name: account for name, account in self._accounts.items() if knows(name)}
        self.limited = [it for it in self.limited if it.request in self._accounts]
        self._known.clear()  # sources have new numbers

    # --- before a turn ---

    def accounts(self, events: Iterable[str]) -> list[Account]:
        """The accounts of the requests behind some events."""
        graph, sources = self._graph, list[RangeSet]()
        for event in events:
            state = graph.live.get(event)
            if state is not None:
                sources.append(state.sources)
            elif graph.knows(event):
                sources.append(graph.sources_of(graph.history.event_number(event)))
        return self.accounts_of(sources[0] if len(sources) == 1 else union(sources))

    def accounts_of(self, sources: RangeSet) -> list[Account]:
        """The accounts of the requests with some source numbers; a run has a single request."""
        accounts = self._known.get(sources.ranges)
        if accounts is None:
            graph = self._graph
            requests = graph.source_ids(sources if graph.run.session else [0] if sources else [])
            for request in requests:
                if request not in self._accounts:
                    self._accounts[request] = Account(request, self._limits, self._now())
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            accounts = [self._accounts[request] for request in requests]
            self._known[sources.ranges] = accounts
        return accounts

    def in_progress(self) -> list[Account]:
        """The accounts of the requests that go on without an answer."""
        return [it for it in self._accounts.values() if it.stage == "open" and not it.is_answered]

    def refuses(self, accounts: Sequence[Account], but: str = "") -> Account | None:
        """The account of a request without budget for a turn; ``None``: the turn may begin.

        Args:
            accounts: The accounts of the requests that the turn is about.
            but: A limit that does not matter: that of turns, in the midst of one.
        """
        for account in accounts:
            if not self.is_over(account, but):
                return None  # work that also concerns a request with budget goes on
        return accounts[-1] if accounts else None

    def is_over(self, account: Account, but: str = "") -> bool:
        """Whether a request is at a limit of the request or of the team."""
        if account.stage != "open":
            return True
        for holder in (account, *self._team):
            for limit in holder.at(1.0, self._now()):
                if limit != but:
                    account.reached = {**holder.detail(limit), "event": account.request}
                    return True
        return False

    def stop(self, account: Account) -> None:
        """Stop a request at a limit, once."""
        if account.stage == "open":
            account.stage = "over" if account.is_answered else "stopped"
            self.limited.append(account)
            self.due.append({**account.reached, "stage": "stopped"})

    def answered(self, accounts: Iterable[Account]) -> None:
        """Note an accepted answer to some requests."""
        for account in accounts:
            account.is_answered = True
            if account.stage in ("stopped", "asked", "last"):
                account.stage = "over"
                self.due.append({**account.reached, "stage": "partial"})

    # --- spending ---

    def begin_turn(self, agent: str, accounts: Iterable[Account]) -> None:
        """Count a turn of an agent; parts of wrappers and tools have none."""
        name = base_name(agent)
        if not name.rpartition("/")[2].startswith(("__", TOOL)):
            for account in accounts:
                account.entry = account.entry or name
            self._count(accounts, "turns", 1)

    def take_due(self) -> list[dict[str, Any]]:
        """The details of the incidents to be written down now; warnings are logged, too."""
        due, self.due = self.due, []
        for detail in due:
            if detail["stage"] == "warning":
                whose = detail["event"] or "all requests"
                logger.warning("dig: budget of %s: %s", whose, limit_text(detail))
        return due

    def warn(self, accounts: Iterable[Account]) -> None:
        """Note each limit with `ALARM_SHARE` spent, once."""
        for account in (*accounts, *self._team):
            for limit in account.at(ALARM_SHARE, self._now()):
                if limit not in account.warned:
                    account.warned.add(limit)
                    self.due.append({**account.detail(limit), "stage": "warning"})

    def next_alarm(self) -> float | None:
        """The time of the next limit in seconds, or of the alarm before."""
        if "seconds" not in self._budget.named_limits:
            return None
        holders = self.in_progress()
        holders += self._team if holders else []
        timed = ((it, it.limits["seconds"]) for it in holders if "seconds" in it.limits)
        shares = ((it, most * (1 if "seconds" in it.warned else ALARM_SHARE)) for it, most in timed)
        return min((account.began + seconds for account, seconds in shares), default=None)

    def charge(self, accounts: Iterable[Account], usage: Any, model: str = "") -> None:
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
            for account in (*accounts, *self._team):
                account.unpriced = account.unpriced or model or "a model without a name"
        self._count(accounts, "tokens", tokens)
        self._count(accounts, "dollars", dollars)
        for name, value in usage.items():
            self.charge(accounts, value, name)

    def _count(self, accounts: Iterable[Account], unit: str, amount: float) -> None:
        for account in (*accounts, *self._team):
            account.spent[unit] += amount
        self.warn(accounts)
