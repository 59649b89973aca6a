"""The facts about a run, its score and its cause, from which the five answers are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from dig._util.text import MOST_LISTED, cut, join_clauses, name
from dig.graph.records import Emit, base_name
from dig.graph.words import MOST_NAMED

from .describe import goal_text
from .headline import acting_agent, is_framework_node
from .holders import Holder, list_holders
from .rings import LEAST_AT_LIMIT, LEAST_ROUNDS, Ring, rings_without_answer
from .run_so_far import PatternTally, RunSoFar

_TYPES = {"agent": str, "activation": str, "says": str, "t": int, "us": int}


def mistakes_of(score: object) -> list[Mapping[str, Any]]:
    """The mistakes in a score; rows of another shape, as in a file of someone else, are left out.

    Each has an agent and, maybe empty, its `counts` by event and its `origins`.
    """
    rows = score.get("mistakes") if isinstance(score, Mapping) else ()
    return [
        {
            **row,
            "counts": counts if isinstance(counts := row.get("counts"), Mapping) else {},
            "origins": _rows_of(row.get("origins"), "us", "says"),
        }
        for row in _rows_of(rows, "agent")
    ]


def _rows_of(rows: object, *needed: str) -> list[Mapping[str, Any]]:
    """The rows with the needed keys, and with no value of another type."""
    rows = rows if isinstance(rows, list | tuple) else ()
    return [
        row for row in rows
        if isinstance(row, Mapping) and row.keys() >= {*needed}
        and all(isinstance(row[key], _TYPES[key]) for key in _TYPES.keys() & row.keys())
    ]  # fmt: skip


class AnswerFacts:
    """Gathers what the answers about a run have in common."""

    def __init__(
        self, so_far: RunSoFar, state: str, score: Mapping[str, Any], cause: Mapping[str, Any],
        place: str, private: bool, date: Callable[[int], str],
    ) -> None:  # fmt: skip
        self._run, self._state, self._score, self._cause = so_far, state, score, cause
        self._can_try, self._injected = False, set[Any]()
        self._place, self._private, self._origin = place, private, so_far.headline
        if self._origin and self._origin.stage == "answer" and self._score.get("complete"):
            self._origin = None  # the work was done by another agent
        self._date, self._mistakes = date, mistakes_of(score)
        self._is_short = self._score.get("complete") is False
        self._session = bool(so_far.run and so_far.run.session)
        is_over = so_far.finish or state == "cut off"
        self._deserted = [a for a in self._activations() if a.waits]
        self._waiting = [] if is_over else self._deserted
        self._called_off = {
            a: end for a, end in so_far.cancelled.items() if not so_far.goes_on(end.activation)
        }
        self._tallies = dict(self._find_tallies())
        # The agents of a wrapped team come and go.
        is_team = not self._session and bool(self._tallies or so_far.headline)
        self._departures = so_far.departures if is_team else {}
        self._is_open = bool(self._waiting) or not is_over
        self._holders = self._find_holders()
        graph = so_far.graph
        origin = self._origin
        is_limit = origin and origin.stage == "request" and not (origin.activation or so_far.limit)
        least = LEAST_AT_LIMIT if is_limit else LEAST_ROUNDS
        self._rings = list[Ring]()
        if graph is not None and graph.t >= 0:
            self._rings = rings_without_answer(graph, least)
        numbered = {holder.agent for holder in self._holders}
        self._recovered = [
            agent for agent, failed in so_far.failed.items()
            if failed.number == 1 and agent not in numbered and so_far.goes_on(failed.activation)
        ]  # fmt: skip

    def add_facts(self, injections: Iterable[Any], *, can_try: bool) -> None:
        """Add facts beside the trace: the acts of faults, and whether changes can be tried."""
        self._can_try = can_try
        self._injected = {row["agent"] for row in _rows_of([*injections], "agent")}

    @property
    def _guilty_holders(self) -> list[Holder]:
        return [holder for holder in self._holders if not holder.waits_for]

    @property
    def _team(self) -> list[str]:
        return [agent for agent in self._run.agents if not is_framework_node(agent)]

    @property
    def _origins(self) -> list[Mapping[str, Any]]:
        """The origins of the mistakes."""
        return [row for mistake in self._mistakes for row in mistake["origins"]]

    def _question(self, activation: str) -> str:
        """The question of a waiting activation, in quotes; empty: not recorded, or private."""
        asks = None if self._private else self._run.asks.get(activation, {}).get("asks")
        words = "" if asks is None else goal_text(asks)
        return f"“{words}”" if words else ""

    def _shares(self) -> str:
        """The shares of wrong elements, of all agents behind a wrong answer."""
        shares = [row.get("share") for row in self._mistakes]
        figures = [100 * share for share in shares if isinstance(share, int | float) and share]
        if len(figures) < len(shares):
            return ""
        least, most = f"{min(figures):.0f}", f"{max(figures):.0f}"
        return f", {f'{least} to ' if least != most else ''}{most} % each"

    def _activations(self) -> list[Any]:
        graph = self._run.graph
        return [*graph.running.values()] if graph is not None and graph.t >= 0 else []

    def _find_tallies(self) -> Iterator[tuple[str, PatternTally]]:
        """The findings of the worst kind, errors or warnings, by pattern."""
        by_severity = self._run.recorded or self._run.raised
        tallies = by_severity.get("error") or by_severity.get("warning") or {}
        for pattern, tally in tallies.items():
            if not (self._origin and pattern == "FAIL"):  # the headline says that
                yield pattern, tally

    def _find_holders(self) -> list[Holder]:
        """The agents with work in front of them when nothing moved any more."""
        for tally in self._tallies.values():
            if tally.holders:
                return tally.holders
        finish, graph = self._run.finish, self._run.graph
        if graph is None or self._run.running or not (finish and finish.outcome == "timeout"):
            return []
        waiting: dict[str, list[str]] = {}
        for event in graph.open_events():
            for agent in event.copies:
                waiting.setdefault(agent, []).append(event.id)
        return list_holders(graph, self._run.latest, waiting)

    def _count_lost(self) -> Counter[str]:
        """The number of messages that were lost with each agent that left."""
        graph = self._run.graph
        events = [e for e in graph.live.values() if e.cause == "left"] if graph is not None else []
        return Counter(agent for e in events for agent in e.sent_to if agent in self._departures)

    @property
    def _is_gone(self) -> bool:
        return self._state == "cut off" and self._run.finish is None

    @property
    def _working(self) -> dict[str, int]:
        """The agents in the middle of a turn, with the beginning in microseconds."""
        return {base_name(a.agent): a.us_start for a in reversed(self._activations())}

    def _callers(self) -> list[list[str]]:
        """The idle agents behind the turns in progress, and the agents with answers to these."""
        if self._run.graph is None:
            return [[], []]
        sender, open_events = self._run.graph.history.sender, self._run.graph.open_events()
        inputs = [event for turn in self._activations() for event in turn.inputs]
        callers = {base_name(sender(event.n) or "") for event in inputs} - {"", *self._working}
        answers = [e for e in open_events if e.work and not callers.isdisjoint(e.copies)]
        agents = {base_name(sender(event.n) or "") for event in answers} - {"", *callers}
        return [[f"`{name(agent)}`" for agent in sorted(each)] for each in (callers, agents)]

    def _list_miscounting(self, without: Collection[str] = (), *, is_short: bool = False) -> str:
        """The agents behind a wrong answer; short: the number of many agents."""
        agents = [name(row["agent"]) for row in self._mistakes]
        if 2 < len(agents) >= len(self._team) and not without:
            return f"all {len(agents)} agents"
        if is_short and len(agents) > MOST_NAMED:
            return f"{len(agents)} agents"
        listed = [f"`{agent}`" for agent in agents if agent not in without]
        return join_clauses(listed) if len(listed) <= MOST_LISTED else cut(listed)

    def _last_words(self, ring: Ring | None) -> Emit | None:
        """The latest message of an agent, of a ring if there is one; ``None``: unknown."""
        graph = self._run.graph
        for message in reversed(self._run.messages):
            speaker = acting_agent(graph, message.by) if graph is not None else None
            agents = self._team if ring is None else ring.agents
            if speaker is not None and speaker in agents:
                return message
        return None

    def _count_left(self) -> Counter[str]:
        """The number of messages in front of each agent."""
        graph = self._run.graph
        open_events = graph.open_events() if graph is not None and graph.t >= 0 else ()
        return Counter(base_name(agent) for event in open_events for agent in event.copies)
