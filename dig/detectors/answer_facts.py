"""The facts about a run, its score and its cause, from which the five answers are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from dig._util.text import (
    MOST_LISTED,
    counted,
    cut,
    first_words,
    join_clauses,
    name,
    one_line,
    value_text,
)
from dig.graph.records import Emit, base_name
from dig.graph.words import MOST_NAMED, moment

from .describe import LostWork
from .headline import MOST_ERROR, acting_agent, is_framework_node
from .holders import Holder, list_holders
from .message_words import MOST_GOAL, goal_text, words_text
from .rings import LEAST_AT_LIMIT, LEAST_ROUNDS, Ring, rings_without_answer
from .run_so_far import RunSoFar
from .tallies import FailedTurns, PatternTally

MOST_ANSWER = 200
"""The characters of an answer that are shown."""

MOST_REMARK = 40
SOON_US = 1_000_000
"""A turn that is called off so soon after its wait did not go on with an answer."""
_TYPES = {"agent": str, "activation": str, "says": str, "t": int, "us": int}


def mistakes_of(score: object) -> list[Mapping[str, Any]]:
    """The mistakes in a score; rows of another shape, as in a file of someone else, are left out.

    Each has an agent and, maybe empty, its `counts` and `errors` by event, and its `origins`.
    """
    rows = score.get("mistakes") if isinstance(score, Mapping) else ()
    return [
        {
            **row,
            **{key: _mapping_of(row.get(key)) for key in ("counts", "errors")},
            "origins": _rows_of(row.get("origins"), "us", "says"),
        }
        for row in _rows_of(rows, "agent")
    ]


def _mapping_of(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


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
        self._can_try = self._can_heal = False
        self._injected = dict[str, list[Mapping[str, Any]]]()
        self._place, self._private, self._origin = place, private, so_far.headline
        if self._origin and self._origin.stage == "answer" and self._score.get("complete"):
            self._origin = None  # the work was done by another agent
        self._date, self._mistakes = date, mistakes_of(score)
        self._is_short = self._score.get("complete") is False
        self._session = bool(so_far.run and so_far.run.session)
        is_over = so_far.finish or state == "cut off"
        self._deserted = [a for a in self._activations() if a.waits]
        self._waiting = [] if is_over else self._deserted
        off = so_far.cancelled.items()
        self._called_off = {a: end for a, end in off if not so_far.goes_on(end.activation)}
        # By agent the wait that its cancelled turn stood in, and the length.
        self._cut_waits = {a: wait for a, wait in so_far.waited.items() if self._is_cut(a, wait)}
        for agent in self._cut_waits:
            del self._called_off[agent]
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

    def add_facts(self, injections: Iterable[Any], *, can_try: bool, can_heal: bool) -> None:
        """Add facts beside the trace: the acts of faults, and what can be tried, or be healed."""
        self._can_try, self._can_heal = can_try, can_heal
        for row in injections:
            if isinstance(row, Mapping) and isinstance(row.get("agent"), str):
                self._injected.setdefault(row["agent"], []).append(row)

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

    @property
    def _idle(self) -> str:
        """The agents without a turn; empty: all ran, or there were several requests."""
        is_one = not self._session or self._run.counts["requests"] == 1
        idle = [f"`{name(agent)}`" for agent in self._team if not self._run.turns[agent]]
        is_short = is_one and not self._score.get("complete")
        return cut(idle, most=MOST_NAMED) if is_short else ""

    @property
    def _slowest(self) -> str:
        """The agent with the longest turn before a limit of seconds; empty: none, or unknown."""
        longest = self._run.longest if self._spent_kind == "us" else {}
        return max(longest, key=lambda agent: longest[agent], default="")

    @property
    def _spent_kind(self) -> str:
        """The key in `spent` of a limit of the budget; empty: no limit."""
        kind = str(self._limit.get("limit", "")).replace("seconds", "us")
        # Prices may be known to the budget alone.
        is_priced = kind != "dollars" or any(spent["dollars"] for spent in self._run.spent.values())
        return kind if is_priced else "tokens"

    @property
    def _limit(self) -> Mapping[str, Any]:
        """The detail of the first stop at a limit of the budget; empty: no limit."""
        limited = self._run.limited
        return _mapping_of(limited.detail) if limited is not None else {}

    def _quoted(self, payload: object, most: int = MOST_GOAL) -> str:
        """The first words of a payload, in quotes; empty: none, or private."""
        words = "" if payload is None or self._private else words_text(payload, most)
        task = self._run.run.task if self._run.run else None
        if isinstance(payload, Mapping) and words == task:  # all messages of a task may name it
            parts = {key: value for key, value in payload.items() if value != task}
            words = one_line(value_text(parts).partition("; ")[0], MOST_GOAL)
        return f"“{words}”" if words else ""

    def _is_cut(self, agent: str, wait: tuple[str, int]) -> bool:
        """Whether a turn was called off at the end of a wait, and not after work."""
        ask, end = self._run.asks.get(wait[0]), self._called_off.get(agent)
        return bool(ask and end and 0 <= end.us - ask["us"] - wait[1] < SOON_US)

    @property
    def _waits(self) -> list[tuple[str, str]]:
        """The waits without an answer, each an agent and its activation."""
        cut_off = [(agent, turn) for agent, (turn, _) in self._cut_waits.items()]
        return [(activation.agent, activation.id) for activation in self._deserted] + cut_off

    def _question(self, activation: str) -> str:
        """The question of a waiting activation, in quotes; empty: not recorded, or private."""
        return self._quoted(self._run.asks.get(activation, {}).get("asks"))

    def _list_waiting(self, verb: str) -> str:
        agents = [f"`{name(agent)}`" for agent, _ in self._waits]
        question = self._question(self._waits[0][1]) if self._waits else ""
        whom = f"a person to answer {question}" if question else "a person or for another system"
        return f"{cut(agents, most=MOST_NAMED)} {verb} for {whom}"

    @property
    def _answer_words(self) -> str:
        """The first words of the accepted answer, in quotes; empty: a score tells of the answer."""
        answer = self._run.answer
        if answer is None or self._score:
            return ""
        return self._quoted(answer.payload, MOST_ANSWER)

    @property
    def _author(self) -> Emit | None:
        """The message of an agent that is the answer: a framework's node only passes it on."""
        answer = self._run.answer
        spoken = [m for m in reversed(self._run.messages) if self._speaker(m) in self._team]
        equal = (m for m in spoken if answer and m.payload == answer.payload)
        # A node may put the words of the latest agent into a form of its own.
        is_passed_on = is_framework_node(self._speaker(answer))
        return next(equal, spoken[0] if spoken and is_passed_on else None)

    @property
    def _answer_basis(self) -> str:
        """The message before a short answer, which may only be a remark on it; empty: none."""
        author, messages = self._author, self._run.messages
        if author is None or len(self._answer_words) > MOST_REMARK:
            return ""
        agent = self._speaker(author)
        before = [m for m in messages if m.us <= author.us and agent in m.to and m is not author]
        speaker = self._speaker(before[-1]) if before else ""
        words = self._quoted(before[-1].payload) if speaker in {*self._team} - {agent} else ""
        return f" (on {words} from `{name(speaker)}`)" if words else ""

    @property
    def _resumed(self) -> Ring | None:
        """The ring at a limit with an agent that went round several times in one turn."""
        turns = self._run.turns
        rings = (ring for ring in self._rings[:1] if self._origin and not self._origin.activation)
        return next((r for r in rings if any(turns[a] < r.rounds for a in r.agents)), None)

    def _origin_says(self, *, is_private: bool) -> str:
        """The headline of the failure; rounds where an agent has several in one turn."""
        if self._origin is None:
            return ""
        says = self._origin.private if is_private else self._origin.says
        head, after, turns = says.rpartition(", after ")
        number, _, agents = turns.partition(" of ")
        if self._resumed and after and agents and number.endswith("turns"):
            return f"{head}, after {self._resumed.rounds} rounds of {agents}"
        return says

    def _speaker(self, message: Emit | None) -> str:
        """The agent of a message; empty: not known, or outside."""
        return self._run.senders.get(message.event, "") if message is not None else ""

    def _input_text(self, failed: FailedTurns, agent: str) -> str:
        """The input of a failed turn, and the sender; empty: unknown, or the task."""
        message, sender = failed.input, self._speaker(failed.input)
        words = self._quoted(message.payload) if message is not None else ""
        is_task = message is not None and message.by is None and self._run.counts["requests"] == 1
        if not words or is_task:
            return ""
        is_other = sender and sender != agent and not is_framework_node(sender)
        return f" on {words}" + (f" from `{name(sender)}`" if is_other else "")

    def _work_time(self, agent: str) -> str:
        """How long an agent had worked when its turn was called off; empty: not known."""
        end = self._called_off.get(agent)
        began = self._run.began.get(agent)
        return f" after {moment(end.us - began)} of work" if end and began is not None else ""

    def _reason(self, agent: str) -> str:
        """The reason why a turn was called off; empty: not known, or private."""
        error = first_words(self._run.cancelled[agent].error, MOST_ERROR)
        reason = error.removeprefix("CancelledError").removeprefix(": ")
        is_code = " 0x" in reason or "cancel scope" in reason or reason.endswith("CancelledError")
        return "" if self._private or is_code else reason

    @property
    def _stopper(self) -> str:
        """The agent behind a failed caller, with a turn called off before; empty: none."""
        graph, origin = self._run.graph, self._origin
        culprit = acting_agent(graph, origin.activation) if graph and origin else None
        failed = self._run.failed.get(culprit or "")
        return failed.awaited if failed and failed.awaited in self._called_off else ""

    @property
    def _losses(self) -> dict[str, list[LostWork]]:
        """The work missing from an early answer because of a loss, by agent."""
        by_agent: dict[str, list[LostWork]] = {}
        for loss in self._tallies["ET"].losses if "ET" in self._tallies else ():
            by_agent.setdefault(loss.agent, []).append(loss)
        return by_agent

    def _lost_text(self, losses: Sequence[LostWork]) -> str:
        """The first words of a message, or the number of several."""
        first = self._run.message(losses[0].event) if len(losses) == 1 else None
        words = self._quoted(first.payload) if first is not None else ""
        return words or counted(len(losses), "message")

    def _loss_text(self, losses: Sequence[LostWork]) -> str:
        """The deed of an agent behind some losses."""
        return losses[0].deed.format(self._lost_text(losses))

    def _list_finished(self) -> str:
        """The agents with ended turns when a request failed; empty: none, or many."""
        run, callers = self._run, {*chain(*self._run.callers.values())}
        busy = {*run.failed, *run.at_work, *(holder.agent for holder in self._holders)}
        # An agent that handed its work over waits for nobody.
        callers -= {
            a for a, end in run.latest.items() if all(f.fate == "consume" for f in end.fates)
        }
        busy |= {*self._callers()[0]} if self._is_gone else callers
        ended = [a for a in self._team if a in run.latest and run.latest[a].error is None]
        ended = [agent for agent in ended if agent not in busy]
        finished = [f"`{name(agent)}`" for agent in ended]
        if self._is_gone and len(ended) == 1 and (words := self._words_of(ended[0])):
            finished = [f"{finished[0]}, which said {words}"]
        is_off = self._called_off or self._cut_waits or self._is_gone
        is_failed = not self._rings and (is_off or run.failed)
        is_one = run.counts["requests"] == 1 and not run.counts["answered"]
        return cut(finished, most=MOST_NAMED) if is_failed and is_one else ""

    @property
    def _is_returned(self) -> bool:
        """Whether a framework ended the request at a limit without raising an error."""
        origin = self._origin
        is_limit = origin and origin.stage == "request" and not origin.activation
        return bool(is_limit and origin and origin.error and not origin.exception[0])

    def _activations(self) -> list[Any]:
        graph = self._run.graph
        return [*graph.running.values()] if graph is not None and graph.t >= 0 else []

    def _find_tallies(self) -> Iterator[tuple[str, PatternTally]]:
        """The findings of the worst kind, errors or warnings, by pattern."""
        by_severity = self._run.recorded or self._run.raised
        warnings = by_severity.get("warning", {})
        tallies = by_severity.get("error") or warnings
        if self._is_short and "ET" in warnings:  # it is why the answer is short
            tallies = {**tallies, "ET": warnings["ET"]}
        for pattern, tally in tallies.items():
            # Work that the accepted answer lacks explains nothing where the answer is whole.
            is_harmless = tally.number == 1 and self._run.is_early and self._score.get("complete")
            # The headline tells of it, or the request was answered when it was asked again.
            is_over = tally.number <= self._run.counts["again"]
            is_told = pattern == "FAIL" and (self._origin or is_over)
            if not (is_told or (pattern == "ET" and is_harmless)):
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
        """The number of messages lost with each departed agent."""
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
        return [sorted(callers), sorted(agents)]

    def _list_miscounting(self, without: Collection[str] = (), *, is_short: bool = False) -> str:
        """The agents behind a wrong answer; short: the number of many agents."""
        agents = [name(row["agent"]) for row in self._mistakes]
        if 2 < len(agents) >= len(self._team) and not without:
            return f"all {len(agents)} agents"
        if is_short and len(agents) > MOST_NAMED:
            return f"{len(agents)} agents"
        listed = [f"`{agent}`" for agent in agents if agent not in without]
        return join_clauses(listed) if len(listed) <= MOST_LISTED else cut(listed)

    def _count_said(self, agent: str) -> int:
        """Count how often an agent said the latest words."""
        last = self._last_words([agent])
        equal = [m for m in self._run.messages if last and m.payload == last.payload]
        return sum(self._speaker(message) == agent for message in equal)

    def _repeating(self, agents: Collection[str]) -> str:
        """The agent with the most repetitions, or else the latest speaker; empty: unknown."""
        latest = self._speaker(self._last_words(agents))
        most = max(agents, key=self._count_said, default="")
        return most if self._count_said(most) > 1 else latest

    def _words_of(self, agent: str) -> str:
        """The latest words of an agent, and the number; empty: none, or private."""
        last, number = self._last_words([agent]), self._count_said(agent)
        words = self._quoted(last.payload) if last is not None else ""
        return f"{f'{number} times' if number > 1 else 'last'}: {words}" if words else ""

    def _last_words(self, agents: Collection[str]) -> Emit | None:
        """The latest message with words of one of some agents; ``None``: unknown."""
        for message in reversed(self._run.messages):
            if self._speaker(message) in agents and goal_text(message.payload):
                return message
        return None

    def _count_left(self) -> Counter[str]:
        """The number of messages in front of each agent."""
        graph = self._run.graph
        open_events = graph.open_events() if graph is not None and graph.t >= 0 else ()
        return Counter(base_name(agent) for event in open_events for agent in event.copies)
