"""The third of the five answers: the agents with a part in a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dig._util.text import counted, cut, join_clauses, name, one_line
from dig.graph.words import MOST_NAMED, moment

from .answer_facts import AnswerFacts
from .answers import InvolvedAgent
from .headline import MODEL_CALLS
from .holders import Holder
from .patterns import BY_NAME
from .spending_limits import UNITS
from .tallies import FailedTurns

PUT_IN = " (a fault put in on purpose)"


class Involved(AnswerFacts):
    """Lists the agents with a part in a failure."""

    def _failed(self, agent: str, failed: FailedTurns) -> str:
        turns = self._run.turns[agent]
        text = "failed" + (f" {failed.number:,} of {turns:,} turns" if turns > 1 else "")
        latest = self._run.latest.get(agent)
        if 1 < failed.number < turns and latest is not None and latest.error is None:
            text += " (the latest went well)"
        return text + self._fault(agent, failed.us)

    def _departure(self, agent: str) -> str:
        number = self._count_lost()[agent]
        work = f" with {counted(number, 'message')} to work on" if number else ""
        us = self._departures[agent].us
        return f"left the team{work}{self._fault(agent, us)}"

    def _fault(self, agent: str, us: int) -> str:
        """A remark on the deed of an agent at a moment; empty: no fault."""
        moments = map(act_us, self._injected.get(agent, ()))
        return PUT_IN if any(moment is None or moment == us for moment in moments) else ""

    def _with_act(self, agent: str, says: str) -> str:
        """The deeds of an agent, and the act of a fault unless a deed has the remark."""
        if agent not in self._injected or PUT_IN in says:
            return says.replace(PUT_IN, "") + PUT_IN if says.count(PUT_IN) > 1 else says
        return f"{says}; {self._act(agent)}"

    def _act(self, agent: str) -> str:
        return one_line(self._injected[agent][0].get("what") or "it acted") + PUT_IN

    def _who(self) -> Iterator[InvolvedAgent]:
        """The agents behind the failure: named by a diagnosis, failed, and in findings."""
        parts, first, waiting = dict[str, list[str]](), dict[str, str](), list[str]()
        if self._cause.get("agent"):
            parts[str(self._cause["agent"])] = ["named by the diagnosis"]
        for agent, losses in self._losses.items():
            parts[agent] = [f"{self._loss_text(losses)}{self._fault(agent, losses[0].us)}"]
        for mistake in [] if self._is_short else self._mistakes[:2]:
            parts.setdefault(str(mistake["agent"]), []).append(act_text(mistake))
            first[str(mistake["agent"])] = str(mistake.get("activation") or "")
        worst_first = sorted(self._run.failed.items(), key=lambda item: -item[1].number)
        for agent, failed in [row for row in worst_first if row[0] not in self._recovered]:
            parts.setdefault(agent, []).append(self._failed(agent, failed))
            first.setdefault(agent, failed.activation)
        for agent, says in self._missing_branches() if "ET" in self._tallies else ():
            parts.setdefault(agent, []).append(says)
        for pattern, tally in self._tallies.items():
            row = BY_NAME.get(pattern)
            role = row.role if row else f"is named by {name(pattern)}"
            for holder in [] if tally.holders is not self._holders else self._holders:
                if not holder.waits_for:
                    parts.setdefault(holder.agent, []).append(since_text(holder))
                    first.setdefault(holder.agent, holder.end.activation if holder.end else "")
            if role.startswith("waits"):
                waiting += [] if tally.holders else tally.agents
                continue
            for agent, number in tally.agents.most_common(MOST_NAMED):
                if pattern == "ER":  # a finding tells of many
                    number = self._run.handed_on[agent] or number
                times = f" {number:,} times" if number > 1 else ""
                parts.setdefault(agent, []).append(f"{role}{times}{self._fault(agent, tally.us)}")
        for agent, leave in self._departures.items():
            parts.setdefault(agent, []).append(f"{self._departure(agent)} at {moment(leave.us)}")
        for mistake in self._mistakes if self._is_short else self._mistakes[2:]:
            parts.setdefault(str(mistake["agent"]), []).append(act_text(mistake))
        for holder in self._holders if not self._tallies else ():
            if not holder.waits_for:
                parts.setdefault(holder.agent, []).append(since_text(holder))
        parts = self._put_stopper_first(parts, first)
        for agent, deeds in parts.items():
            says = self._with_act(agent, join_clauses(deeds))
            yield InvolvedAgent(name(agent), says, True, first.get(agent, ""))
        yield from self._bystanders(parts)
        is_late = self._run.finish and self._run.finish.outcome == "timeout" and not parts
        open_work = self._count_left() if waiting or is_late else Counter[str]()
        if self._origin and not (parts or open_work):  # a limit of the framework
            yield from self._take_part(self._rings[0].agents if self._rings else self._by_cost[:2])
        if self._run.limit and not (self._origin or parts):
            yield from self._take_part(self._by_cost[:2])
        yield from self._unfinished(parts)
        for agent in dict.fromkeys(waiting or open_work):
            work = f"waits, with {counted(open_work[agent], 'message')} in front of it"
            if agent not in parts:
                yield InvolvedAgent(name(agent), work if open_work[agent] else "waited", False)

    def _put_stopper_first(
        self, parts: dict[str, list[str]], first: dict[str, str]
    ) -> dict[str, list[str]]:
        if not (stopper := self._stopper):
            return parts
        first[stopper] = self._called_off[stopper].activation
        deed = f"was called off{self._work_time(stopper)}, without an answer"
        return {stopper: [deed], **parts}

    def _unfinished(self, parts: Mapping[str, Any]) -> Iterator[InvolvedAgent]:
        """The agents called off, waiting, or at work to the end."""
        is_failed = self._origin and self._origin.activation and self._origin.stage == "request"
        for agent in [*self._called_off] if is_failed or not (parts or self._origin) else []:
            if agent not in parts:
                number = self._run.called_off[agent]
                turns = f"had {counted(number, 'turn')} called off, the latest"
                says = f"{turns if number > 1 else 'was called off'}{self._work_time(agent)}"
                turn = self._called_off[agent].activation
                yield InvolvedAgent(name(agent), says, not is_failed, turn)
        if self._origin and self._origin.stage == "answer" and self._run.answer:
            author = self._speaker(self._run.answer)
            if author and author not in parts:
                yield InvolvedAgent(name(author), "answered all the same", False)
        for activation in self._deserted:
            us = self._run.asks.get(activation.id, {}).get("us", activation.us_start)
            verb = "waits" if self._waiting else "waited to the end,"
            says = f"{verb} since {moment(us)}"
            yield InvolvedAgent(name(activation.agent), says, False, activation.id)
        deserted = {activation.agent for activation in self._deserted}
        is_over = self._is_gone or (self._session and self._run.finish)
        running = self._run.at_work if is_over else ()
        unfinished = [a for a in running if a not in parts and a not in deserted]
        yield from self._first_of(unfinished, "did not end its turn")
        is_one = not self._session or self._run.counts["requests"] == 1
        idle = [a for a in self._team if not self._run.turns[a] and a not in parts]
        has_none = not self._run.counts["answered"] and (self._origin or self._holders)
        is_bad = is_one and (has_none or self._run.limit)
        yield from self._first_of(idle if is_bad else [], "never ran")

    def _first_of(self, agents: Sequence[str], did: str) -> Iterator[InvolvedAgent]:
        """The first agents with a deed in common, and the number of further agents."""
        for n, agent in enumerate(agents[:MOST_NAMED]):
            more = len(agents) - MOST_NAMED if n == MOST_NAMED - 1 else 0
            further = f", like {counted(more, 'more agent')}" if more > 0 else ""
            since = self._working.get(agent) if self._is_gone else None
            says = did if since is None else f"was at work since {moment(since)}"
            yield InvolvedAgent(name(agent), f"{says}{further}", False)

    def _called_off_text(self, agent: str) -> str:
        """A called-off turn, and the waiting agents."""
        callers = [f"`{name(a)}`" for a in self._run.callers.get(agent, ())]
        text = f"a turn of {name(agent)} was called off{self._work_time(agent)}"
        if (number := self._run.called_off[agent]) > 1:
            text = f"the latest of {number} turns of {name(agent)} that were called off"
        text += f" ({self._reason(agent)})" if self._reason(agent) else ""
        return f"{text}; {cut(callers, most=MOST_NAMED)} waited for it" if callers else text

    def _missing_branches(self) -> Iterator[tuple[str, str]]:
        """The dropped handoffs, and the joins without a turn, by agent."""
        for agent, to in self._run.dropped.items():
            yield agent, f"handed over to {to}, too, which was dropped"
        for agent, awaited in self._run.awaited.items():
            yield agent, f"never ran, since it waited for {cut(awaited, most=MOST_NAMED)}"

    def _bystanders(self, parts: Mapping[str, Any]) -> Iterator[InvolvedAgent]:
        """The agents hit by others, and the agents with failed turns that went on."""
        for holder in self._holders:
            if holder.waits_for and holder.agent not in parts:
                yield InvolvedAgent(name(holder.agent), since_text(holder), False)
        for agent in [agent for agent in self._recovered if agent not in parts]:
            failed = self._run.failed[agent]
            says = f"{self._failed(agent, failed)}; its work went on"
            yield InvolvedAgent(name(agent), says, False, failed.activation)
        early = self._tallies.get("ET")
        at_work = early.at_work if early else {}
        for agent, number in early.open_work.most_common(MOST_NAMED) if early else ():
            if agent not in parts:
                work, since = counted(number, "message"), at_work.get(agent)
                says = f"still had {work} to work on"
                if since is not None:
                    says = f"was at work since {moment(since)}, with {work} in front of it"
                yield InvolvedAgent(name(agent), self._with_act(agent, says), False)
        for agent, (turn, us) in self._run.waited.items():
            if agent not in parts and self._question(turn) and not self._deserted:
                says = f"waited {moment(us)} for an answer to {self._question(turn)}"
                yield InvolvedAgent(name(agent), says, False, turn)

    @property
    def _by_cost(self) -> list[str]:
        """The agents, those with most of what a limit counts first."""
        turns_of, spent, kind = self._run.turns, self._run.spent, self._spent_kind
        return sorted(turns_of, key=lambda a: (-spent[a][kind], -turns_of[a]))

    def _take_part(self, agents: Sequence[str]) -> Iterator[InvolvedAgent]:
        """The agents before a limit; of a ring the agent with the most repetitions first."""
        is_of_calls = self._origin and self._origin.error.startswith(MODEL_CALLS)
        calls = ", with all the model calls that the limit allows" if is_of_calls else ""
        kind = self._spent_kind
        first = self._repeating(agents) if self._rings else ""
        for agent in sorted(agents, key=lambda agent: agent != first):
            turns = self._run.turns[agent]
            says, spent = f"took {counted(turns, 'turn')}{calls}", self._run.spent[agent]
            if kind in ("dollars", "tokens"):
                sums = UNITS[kind].format(spent[kind]) if spent[kind] else "nothing"
                says = f"spent {sums} in {counted(turns, 'turn')}"
            elif kind == "us" and spent[kind]:
                says = f"was at work for {moment(spent[kind])} in {counted(turns, 'turn')}"
            elif words := self._words_of(agent):
                says += f", and said {words}"
            yield InvolvedAgent(name(agent), says, False)


def act_us(act: Mapping[str, Any]) -> int | None:
    """The moment of a fault's act, in microseconds; ``None``: not known."""
    ts = act.get("ts")
    return round(ts * 1e6) if isinstance(ts, int | float) and 0 <= ts < 1e12 else None


def since_text(holder: Holder) -> str:
    """The deed of an agent with waiting work, and the moment."""
    return f"{holder.says} from {moment(holder.end.us)} on" if holder.end else holder.says


def act_text(row: Mapping[str, Any]) -> str:
    """A mistake behind a wrong answer, in words."""
    return one_line(row.get("says") or "made a mistake")
