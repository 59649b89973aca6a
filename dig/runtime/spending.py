"""Spending: the turns, tokens, dollars and seconds of requests, and the requests at a limit.

Hosts and wrappers ask `TeamSpending.refuses` before an agent's turn; a request at a limit gets one
more turn of its entry agent, and then none. A turn costs a few look-ups: until an account is near a
limit, each sum is compared with a single number.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, Literal

from dig._util.ranges import NOTHING, RangeSet, union
from dig._util.redaction import masking_logger
from dig.detectors.spending_limits import ANY_MODEL, METERED, UNITS, TeamBudget, limit_text
from dig.errors import BudgetExceeded
from dig.graph.graph import InteractionGraph
from dig.graph.records import base_name
from dig.graph.turns import takes_turns

logger = masking_logger("dig")

ALARM_SHARE = 0.8
"""The share of a limit at which an alarm is raised."""

LEAST_FORGOTTEN = 256
"""The number of accounts from which on those of evicted requests are forgotten."""

MOST_UNMETERED = 50
"""The turns without any usage after which a limit of tokens or dollars is told to count nothing."""

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
        alarms: The spending from which on an account is near a limit, by the name of the limit.
        alarm_at: The time from which on it is near that of `seconds`.
        is_near: Whether it was near one, so that the limits themselves must be looked at.
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
        self.alarms = {unit: ALARM_SHARE * limits.get(unit, inf) for unit in UNITS}
        self.alarm_at = began + ALARM_SHARE * limits.get("seconds", inf)
        self.is_near = False
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
        handed = "no agent handed back an answer"
        if self.entry and self.stage != "stopped":
            handed = f"`{self.entry}` handed back no answer in its last turn"
        self.stage = "over"
        return BudgetExceeded(
            f"the request was {limit_text(self.reached)}, and {handed}",
            **{key: self.reached[key] for key in ("limit", "spent", "most")},
            partial=self.outputs or self.latest, request=self.request,
        )  # fmt: skip


class TeamSpending:
    """The accounts of a run, by request.

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
        self._most_accounts = LEAST_FORGOTTEN
        self._latest: tuple[RangeSet, list[Account]] = NOTHING, []
        self.due: list[dict[str, Any]] = []
        self.limited: list[Account] = []
        # Turns left without usage; 0 once it was told or missed, or where no limit needs it.
        self._unmetered = 0 if budget.named_limits.isdisjoint(METERED) else MOST_UNMETERED

    def join_team(self, other: TeamSpending) -> None:
        """Count all requests together with another run, maybe on other threads."""
        # No lock: within `spent[unit] += amount`, with plain numbers, CPython's GIL is never given
        # up, since it neither calls nor jumps back.
        self._team = other._team

    def note_output(self, accounts: Iterable[Account], to: Iterable[str], payload: Any) -> None:
        """Note the output of an agent, for the caller of a request without an answer."""
        for account in accounts:
            is_for_entry = account.entry in map(base_name, to)
            (account.outputs if is_for_entry else account.latest).append(payload)

    # --- before a turn ---

    def accounts(self, events: Iterable[str]) -> list[Account]:
        """The accounts of the requests behind some events."""
        live, closed = self._graph.live, self._closed_sources
        sources = [live[event].sources if event in live else closed(event) for event in events]
        return self.accounts_of(sources[0] if len(sources) == 1 else union(sources))

    def _closed_sources(self, event: str) -> RangeSet:
        return self._graph.event(event).sources if self._graph.knows(event) else NOTHING

    def accounts_of(self, sources: RangeSet) -> list[Account]:
        """The accounts of the requests with some source numbers; a run has a single request."""
        if sources is not self._latest[0]:
            graph, accounts = self._graph, self._accounts
            requests = graph.source_ids(sources if graph.run.session else [0] if sources else [])
            opened = [accounts.get(request) or self._open(request) for request in requests]
            self._latest = sources, opened  # a check and the turn after it have the same sources
        return self._latest[1]

    def _open(self, request: str) -> Account:
        """Open the account of a request, and forget those of evicted requests now and then."""
        accounts, knows = self._accounts, self._graph.knows
        if len(accounts) >= self._most_accounts:
            for evicted in [name for name in accounts if not knows(name)]:
                del accounts[evicted]
            self.limited = [it for it in self.limited if it.request in accounts]
            self._most_accounts = 2 * len(accounts) + LEAST_FORGOTTEN
        account = accounts[request] = Account(request, self._limits, self._now())
        return account

    def of_answer(self, event: str, problems: Sequence[str]) -> list[Account]:
        """The accounts of the requests behind an accepted answer.

        Args:
            event: The answer.
            problems: The events from outside that it answers, also by what its agent remembers.
        """
        if len(problems) == 1 and problems[0] in self._accounts:
            return [self._accounts[problems[0]]]  # no need to walk back to the first turn
        return self.accounts((event,))

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
        for holder in (account, *self._team) if self._team else (account,):
            if not (holder.is_near or (holder.alarm_at < inf and self._now() >= holder.alarm_at)):
                continue
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

    def answered(self, accounts: Sequence[Account]) -> None:
        """Note an accepted answer to some requests."""
        if accounts and self._unmetered:
            self._warn_unmetered()
        for account in accounts:
            account.is_answered = True
            if account.stage in ("stopped", "asked", "last"):
                account.stage = "over"
                self.due.append({**account.reached, "stage": "partial"})

    # --- spending ---

    def begin_turn(self, agent: str, accounts: Iterable[Account]) -> None:
        """Count a turn of an agent."""
        if takes_turns(agent):
            for account in accounts:
                if not account.entry:
                    account.entry = base_name(agent)
            self._count(accounts, "turns", 1)
            if self._unmetered:
                self._unmetered -= 1
                if not self._unmetered:
                    self._warn_unmetered()

    def _warn_unmetered(self) -> None:
        self._unmetered = 0
        logger.warning(
            "dig: no agent has told of its usage, so a limit of tokens or dollars counts nothing; "
            "a team of functions tells by dig.report_usage(model=.., input_tokens=..)"
        )

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
                account.is_near = True
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
                account.alarms["dollars"] = 0
        if tokens or dollars:
            self._unmetered = 0
        self._count(accounts, "tokens", tokens)
        self._count(accounts, "dollars", dollars)
        for name, value in usage.items():
            self.charge(accounts, value, name)

    def _count(self, accounts: Iterable[Account], unit: str, amount: float) -> None:
        is_near = False
        for account in (*accounts, *self._team) if self._team else accounts:
            account.spent[unit] += amount
            if account.spent[unit] >= account.alarms[unit] or (
                account.alarm_at < inf and self._now() >= account.alarm_at
            ):
                is_near = True
        if is_near:
            self.warn(accounts)
