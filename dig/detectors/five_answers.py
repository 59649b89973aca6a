"""Five answers about a run: how it ended, what went wrong, who, what the monitor did, what next.

    answers = five_answers(so_far, score=score, place="runs/1")
    print(answers.headline)

The terminal, the page, lists of runs, checks, notebooks, alerts and exports all show these.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dig._util.text import counted, cut, join_clauses, name, one_line
from dig.graph.words import MOST_NAMED, moment

from .advice import Advice
from .answers import FailureStep, FiveAnswers, Grade, InvolvedAgent
from .describe import goal_text, pattern_title
from .headline import MODEL_CALLS, acting_agent
from .holders import Holder
from .patterns import BY_NAME
from .rings import Ring
from .run_so_far import CANCELLED, EARLY, UNANSWERED, FailedTurns, PatternTally, RunSoFar
from .spending_limits import UNITS

MOST_STEPS = 6
NO_ANSWER = ("ended by an error", CANCELLED, UNANSWERED)
"""The ends of a request without an answer."""
INEXACT = 0.05
"""The share of an answer that may be wrong before the answer as a whole is."""


def five_answers(
    so_far: RunSoFar,
    *,
    state: str = "it goes on",
    score: Mapping[str, Any] | None = None,
    cause: Mapping[str, Any] | None = None,
    place: str = "RUN",
    spent: str = "",
    private: bool = False,
    date: Callable[[int], str] = lambda us: "",
    injections: Sequence[Any] = (),
    can_try: bool = False,
) -> FiveAnswers:
    """Give the five answers about a run as far as it was followed.

    Args:
        so_far: The run: its graph and its findings.
        state: The state of a run without an end: `cut off`, or else it goes on.
        score: The score of the answer, as `result.json` has it; ``None``: it was not scored.
        cause: What a diagnosis names (`says`, and `agent` if it is one); ``None``: nothing.
        place: The path of the run, for the command.
        spent: The tokens and the money that the run took; empty: they are not known.
        private: Leave out the words of the task and of errors.
        date: The date of a moment in microseconds, as ISO 8601; empty: not known.
        injections: The acts of faults that were put in on purpose, as `result.json` has them.
        can_try: Whether changes of the run can be tried without costs.
    """
    writer = _Writer(so_far, state, score or {}, cause or {}, place, private, date)
    writer.add_facts(injections, can_try=can_try)
    return writer.answers(spent)


class _Writer(Advice):
    """Writes the answers about a run."""

    def answers(self, spent: str) -> FiveAnswers:
        """Write all answers."""
        verdict, grade = self._verdict()
        steps, who = self._steps(), [*self._who()]
        headline = self._headline(verdict, grade, steps, who)
        monitor, helped = self._monitor(grade)
        next_step, command = self._next(grade, who)
        command = command.replace("RUN", shlex.quote(self._place), 1)
        return FiveAnswers(
            verdict, grade, headline, self._ended(), tuple(steps), tuple(who), monitor, helped,
            next_step, command, self._task(), self._cost(spent),
        )  # fmt: skip

    # --- how it ended ---

    def _verdict(self) -> tuple[str, Grade]:
        """The end in a word or two, and the colour."""
        run = self._run
        if self._waiting:
            return "Waits", "open"
        if self._origin and self._origin.stage == "request":
            return "Failed", "bad"
        if self._session:
            return self._session_verdict()
        if run.finish is None:
            return ("Cut off", "bad") if self._state == "cut off" else ("Goes on", "open")
        if run.finish.outcome == "submitted":
            return self._answer_verdict()
        if run.finish.outcome == "stopped":
            is_stuck = not (run.running or run.limit or run.is_halted)
            return ("Got stuck" if is_stuck else "Stopped"), "bad"
        return ("Ran out of time" if run.finish.outcome == "timeout" else "Failed"), "bad"

    def _answer_verdict(self) -> tuple[str, Grade]:
        """The verdict on an accepted answer, by the score or by the findings."""
        run, score = self._run, self._score
        rmse, wrong = score.get("rmse"), score.get("wrong")
        if run.partial and not score.get("complete"):
            return "Partial answer", "inexact" if rmse == 0 else "bad"
        if score.get("valid") is False:
            return "Unusable answer", "bad"
        if isinstance(rmse, int | float) and not rmse and score.get("complete") is not False:
            return "Right answer", "good"
        if score.get("complete") is False or self._origin:
            return "Incomplete answer", "bad"
        if isinstance(rmse, int | float):
            is_off = not isinstance(wrong, int | float) or wrong > INEXACT
            return ("Wrong answer", "bad") if is_off else ("Inexact answer", "inexact")
        return ("Early answer", "bad") if run.is_early else ("Answered", "unknown")

    def _session_verdict(self) -> tuple[str, Grade]:
        requests, number = self._run.requests, self._run.counts["requests"]
        if not number:
            return "Not asked yet", "open"
        answered = requests.get("answered", 0)
        if answered == number and not self._run.finish and self._state == "cut off":
            return "Cut off", "inexact"
        if answered == number:
            is_whole = self._origin is None
            return ("Answered", "good") if is_whole else ("Incomplete answer", "bad")
        left = requests.get(UNANSWERED, 0)
        if self._is_open and answered + left == number:
            return "Goes on", "open"
        # A person may still be asked for the answer, in another session.
        is_asked = self._run.finish and self._deserted and answered + left == number
        grade: Grade = "inexact" if is_asked else "bad"
        if number > 1:
            return f"{answered:,} of {number:,} answered", grade
        ends = {EARLY: "Early answer", "answered in part": "Partial answer", CANCELLED: "Cancelled"}
        default = "Cut off" if self._state == "cut off" and not self._run.finish else "No answer"
        return next((ends[state] for state in ends if state in requests), default), grade

    def _headline(
        self, verdict: str, grade: Grade, steps: list[FailureStep], who: list[InvolvedAgent]
    ) -> str:
        if self._origin and not self._waiting:
            says = self._origin.private if self._private else self._origin.says
            is_known = self._origin.activation or not self._holders
            cause = "" if is_known else f"; {self._blame()}"
            return f"{verdict}: {says}{cause}."
        if self._waiting:
            us = min(activation.us_start for activation in self._waiting)
            date = self._date(us)
            since = f"{moment(us)} after its beginning"
            if date:
                since = f"{date[:16].replace('T', ' ')} {date[-6:].replace('+00:00', 'UTC')}"
            return f"{verdict} since {since}: {self._list_waiting('waits')}."
        if verdict == "Cancelled" and self._called_off:
            us = max(end.us for end in self._called_off.values())
            agents = cut([f"`{name(agent)}`" for agent in self._called_off], most=MOST_NAMED)
            were = "was" if len(self._called_off) == 1 else "were"
            return f"Cancelled by the caller at {moment(us)}; {agents} {were} working."
        head = f"{verdict}, {moment(self._run.us)} so far"
        if grade != "open":
            head = f"{verdict} after {moment(self._run.us)}"
        if self._is_gone:
            head = f"{verdict} at {moment(self._run.us)} or later"
            if self._deserted:
                waits = f"where {self._list_waiting('waited')}"
                last = f"the last record is at {moment(self._run.us)}, {waits}"
                return f"{verdict}: {last}; when the process ended is not known."
        if self._run.partial and not self._score.get("complete"):
            head += f", since the team was {self._run.partial}"
        quality = self._quality().removesuffix(".") if self._score and grade != "good" else ""
        head = f"{head}. {quality}" if quality else head
        retried = (agent for agent in who if agent.agent in map(name, self._recovered))
        culprit = next((agent for agent in who if agent.is_at_fault), next(retried, None))
        cause = f"`{culprit.agent}` {culprit.says}" if culprit else steps[0].says if steps else ""
        if len(self._guilty_holders) > 1 and not self._mistakes:
            cause = self._blame()
        if len(self._mistakes) > 1:
            early = f"{cause}; " if self._is_short else ""
            named = {culprit.agent} if culprit and self._is_short else set[str]()
            cause = f"{early}{self._list_miscounting(named)} miscounted{self._shares()}"
        if not cause or (self._run.partial and not culprit):
            return f"{head}. Nothing went wrong." if grade in ("good", "unknown") else f"{head}."
        healing = "; the monitor mended that" if self._run.heals and grade == "good" else ""
        # A mended failure, or one on the way, does not explain a count that is wrong.
        is_apart = verdict in ("Wrong answer", "Inexact answer", "Partial answer")
        link = ". Besides, " if is_apart else ". On the way " if grade != "bad" else ": "
        link = ": " if self._mistakes else link
        return f"{head.removesuffix('.')}{link}{cause}{healing}."

    def _blame(self) -> str:
        """The holders at fault, with the amount of work and the moment."""
        holders = self._guilty_holders or self._holders[:1]
        if len(holders) == 1:
            return f"`{holders[0].agent}` {_since(holders[0])}"
        agents = join_clauses([f"`{name(holder.agent)}`" for holder in holders])
        number = counted(sum(holder.number for holder in holders), "message")
        since = [holder.end.us for holder in holders if holder.end]
        return f"{agents} left {number} lying" + (f" from {moment(min(since))} on" if since else "")

    def _list_waiting(self, verb: str) -> str:
        agents = [f"`{name(activation.agent)}`" for activation in self._deserted]
        question = self._question(self._deserted[0].id) if self._deserted else ""
        whom = f"an answer to {question}" if question else "a person or for another system"
        return f"{cut(agents, most=MOST_NAMED)} {verb} for {whom}"

    def _ended(self) -> str:
        resumed = [
            f"A turn of `{name(agent)}` was called off at {moment(end.us)}; its work went on."
            for agent, end in self._run.cancelled.items()
            if agent not in self._called_off and not self._origin
        ]
        sentences = [self._end(), self._quality(), *resumed, *self._run.late_turns.texts()]
        return " ".join(filter(None, sentences))

    def _end(self) -> str:
        run, length = self._run, moment(self._run.us)
        has_answer = run.counts["answered"] > 0
        state = f" ({self._state})" if run.finish is None else ""
        if self._session:
            session = f"The session lasted {length}{state}."
            if self._is_gone:
                session = f"The trace breaks off after its record at {length}{state}."
            return self._requests() if self._waiting else f"{self._requests()} {session}"
        if run.finish is None:
            none = "" if has_answer else " There is no answer so far."
            return f"The trace ends after {length}, and the run has no end{state}.{none}"
        if run.finish.outcome == "submitted" and run.partial and self._score.get("complete"):
            return f"An answer was accepted after {length}, when the team was {run.partial}."
        if run.finish.outcome == "submitted" and run.partial:
            return f"A partial answer was accepted after {length}: the team was {run.partial}."
        if run.finish.outcome == "submitted":
            lacks = "" if not run.is_early or self._score else _LACKING
            return f"An answer was accepted after {length}{lacks}."
        end = _ENDS[run.finish.outcome]
        if run.finish.outcome == "stopped" and run.limit:
            end = f"The run was {run.limit},"
        elif run.finish.outcome == "stopped" and not run.running:
            end = "The run stopped because nothing could go on any more,"
        return f"{end} after {length}." + ("" if has_answer else " There is no answer.")

    def _quality(self) -> str:
        """The answer in the words of the score."""
        if not self._run.counts["answered"]:
            return ""
        if self._score.get("valid") is False:
            return f"It is not valid: {self._score.get('reason') or 'no reason is given'}."
        return str(
            self._score.get("says")
            or ("" if self._session else "No one checked whether it is right.")
        )

    def _requests(self) -> str:
        requests, states = self._run.counts["requests"], self._run.requests
        parts: list[str] = []
        for state, number in states.items():
            end = f"answered{_LACKING}" if state == EARLY else state
            if self._is_open and state == UNANSWERED:
                end = "not answered yet"
            if requests == 1:
                partial = f": the team was {self._run.partial}" if self._run.partial else ""
                is_told = state not in NO_ANSWER or end == "not answered yet"
                none = "The" if is_told else "There is no answer: the"
                is_open = "It goes on: " if self._waiting else ""
                text = f"{none} request was {end}{partial}."
                return f"{is_open}{text[0].lower() if is_open else text[0]}{text[1:]}"
            if number == requests:
                return f"All {requests:,} requests were {end}."
            parts.append(f"{number:,} {'was' if number == 1 else 'were'} {end}")
        if not parts:
            return "There was no request."
        return f"Of {counted(requests, 'request')} {join_clauses(parts)}."

    # --- what went wrong, and who ---

    def _steps(self) -> list[FailureStep]:
        """The first failure of each agent and the first finding of each pattern, by time."""
        harmless = set[int]()
        origins = [row for n, row in enumerate(self._origins) if row not in self._origins[:n]]
        steps = [
            FailureStep(
                tally.t, tally.us,
                _tally_text(
                    pattern, tally, _take_loss(origins, tally),
                    next(filter(None, map(self._fault, tally.agents)), "") if tally.loss else "",
                ),
            )
            for pattern, tally in self._tallies.items()
        ]  # fmt: skip
        steps += [FailureStep(row.get("t", 0), row["us"], one_line(row["says"])) for row in origins]
        steps += [
            FailureStep(holder.end.t, holder.end.us, f"{name(holder.agent)} {holder.says}")
            for holder in self._holders if holder.end and holder.agent not in self._run.failed
        ]  # fmt: skip
        steps += self._mistake_steps()
        for agent, failed in self._run.failed.items():
            error = "" if self._private else f": {failed.error}"
            says = f"{name(agent)} {self._failed(agent, failed)}{error}"
            if failed.number > 1:
                says += f" (the latest at {moment(failed.us_latest)})"
            holder = next((holder for holder in self._holders if holder.agent == agent), None)
            says += f", and {holder.says}" if holder else ""
            if agent in self._recovered:
                harmless.add(failed.t)
                says += "; its work went on"
            steps.append(FailureStep(failed.t, failed.us, says))
        steps += [
            FailureStep(end.t, end.us, f"a turn of {name(agent)} was called off")
            for agent, end in self._called_off.items()
            if not (steps or self._origin)
        ]
        steps += [*self._last_steps(), *map(self._ring_step, self._rings)]
        steps.sort(key=lambda step: (step.us, step.t))
        if len(steps) > MOST_STEPS:
            steps = [step for step in steps if step.t not in harmless]
        left_out = len(steps) - MOST_STEPS
        if left_out > 0:
            last = steps[MOST_STEPS - 1]
            says = f"{last.says}; and {left_out} more"
            steps[MOST_STEPS - 1 :] = [FailureStep(last.t, last.us, says)]
        return steps

    def _mistake_steps(self) -> Iterator[FailureStep]:
        """The first miscount of the run."""
        for row in sorted(self._mistakes, key=_moment)[:1]:
            worst = self._mistakes[0]
            says = f"{name(worst['agent'])} {_act(worst)}"
            if len(self._mistakes) > 1:
                agents = f"{self._list_miscounting(is_short=True)} miscounted{self._shares()}"
                says = f"from here on {agents}, the most: {says}"
            yield FailureStep(row.get("t", 0), row.get("us", 0), says)

    def _last_steps(self) -> Iterator[FailureStep]:
        """The departures, the limits, and the end of a request, a process or a session."""
        graph, finish, origin = self._run.graph, self._run.finish, self._origin
        for agent, leave in self._departures.items():
            yield FailureStep(leave.t, leave.us, f"{name(agent)} {self._departure(agent)}")
        limited = self._run.limited
        if limited is not None and not (origin and origin.activation):
            says = f"the team was {self._run.limit}{_overspent(limited.detail)}"
            yield FailureStep(limited.t, limited.us, says)
        culprit = acting_agent(graph, origin.activation) if graph and origin else None
        if origin and (culprit not in self._run.failed or origin.stage == "answer"):
            # The words of an error without an agent stand in the headline, and that is enough.
            says = origin.private if self._private or not origin.activation else origin.says
            says = says.removesuffix(f", at {moment(origin.us)}")
            says += "" if origin.activation or self._rings else self._said_last()
            yield FailureStep(origin.t, origin.us, says)
        if finish and finish.outcome == "timeout" and not (self._run.running or self._holders):
            says = "the last turn ended, and no agent went on"
            yield FailureStep(0, self._run.ended_us, says)
        if self._deserted and not self._waiting:
            wait = self._run.asks.get(self._deserted[0].id, {})
            us = wait.get("us", self._deserted[0].us_start)
            end = "the last record" if self._is_gone else "the end of the session"
            says = f"{self._list_waiting('waited')}, to {end} at {moment(self._run.us)}"
            yield FailureStep(wait.get("t", 0), us, says)
        elif graph is not None and self._is_gone:
            says = f"when and why the process ended is not recorded; {self._list_working()}"
            yield FailureStep(graph.t, self._run.us, says)

    def _list_working(self) -> str:
        """The agents in the middle of a turn, the agents that waited for these, and the answers."""
        working = self._working.items()
        texts = [f"`{name(agent)}` was at work since {moment(us)}" for agent, us in working]
        callers, answers = self._callers()
        if callers:
            them = "it" if len(texts) == 1 else "them"
            texts.append(f"{join_clauses(callers)} waited for {them}")
        if answers:
            texts.append(f"{join_clauses(answers)} had answered")
        return cut(texts, most=MOST_NAMED + 1) or "no agent was at work"

    def _ring_step(self, ring: Ring) -> FailureStep:
        ends = [self._run.latest[agent] for agent in ring.agents if agent in self._run.latest]
        last = max(ends, key=lambda end: end.us, default=self._origin)
        t, us = (last.t, last.us) if last else (0, self._run.us)
        return FailureStep(t, us, ring.remark.removesuffix(".") + self._said_last(ring))

    def _said_last(self, ring: Ring | None = None) -> str:
        """The last words of an agent, of a ring if there is one; empty: not known, or private."""
        spoken = self._last_words(ring)
        if spoken is None or self._private or self._run.graph is None:
            return ""
        words, speaker = goal_text(spoken.payload), acting_agent(self._run.graph, spoken.by)
        equal = [m for m in self._run.messages if m.payload == spoken.payload]
        number = sum(acting_agent(self._run.graph, message.by) == speaker for message in equal)
        often = f"{number} times" if number > 1 else "last"
        return f"; `{name(speaker)}` said {often}: “{words}”" if words else ""

    def _failed(self, agent: str, failed: FailedTurns) -> str:
        turns = self._run.turns[agent]
        text = "failed" + (f" {failed.number:,} of {turns:,} turns" if turns > 1 else "")
        return text + self._fault(agent)

    def _departure(self, agent: str) -> str:
        return f"left the team{self._fault(agent)}"

    def _fault(self, agent: str) -> str:
        return " (a fault put in on purpose)" if agent in self._injected else ""

    def _who(self) -> Iterator[InvolvedAgent]:
        """The agents behind the failure: named by a diagnosis, failed, and in findings."""
        parts, first, waiting = dict[str, list[str]](), dict[str, str](), list[str]()
        if self._cause.get("agent"):
            parts[str(self._cause["agent"])] = ["named by the diagnosis"]
        for mistake in [] if self._is_short else self._mistakes[:2]:
            parts.setdefault(str(mistake["agent"]), []).append(_act(mistake))
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
                    parts.setdefault(holder.agent, []).append(_since(holder))
                    first.setdefault(holder.agent, holder.end.activation if holder.end else "")
            if role.startswith("waits"):
                waiting += [] if tally.holders else tally.agents
                continue
            for agent, number in tally.agents.most_common(MOST_NAMED):
                if pattern == "ER":  # a finding tells of many
                    number = self._run.handed_on[agent] or number
                times = f" {number:,} times" if number > 1 else ""
                parts.setdefault(agent, []).append(f"{role}{times}{self._fault(agent)}")
        for agent, leave in self._departures.items():
            parts.setdefault(agent, []).append(f"{self._departure(agent)} at {moment(leave.us)}")
        for mistake in self._mistakes if self._is_short else self._mistakes[2:]:
            parts.setdefault(str(mistake["agent"]), []).append(_act(mistake))
        for holder in self._holders if not self._tallies else ():
            if not holder.waits_for:
                parts.setdefault(holder.agent, []).append(_since(holder))
        for agent, deeds in parts.items():
            yield InvolvedAgent(name(agent), join_clauses(deeds), True, first.get(agent, ""))
        yield from self._bystanders(parts)
        is_late = self._run.finish and self._run.finish.outcome == "timeout" and not parts
        open_work = self._count_left() if waiting or is_late else Counter[str]()
        if self._origin and not (parts or open_work):  # a limit of the framework
            yield from self._busiest(2)
        if self._run.limit and not (self._origin or parts):
            yield from self._busiest(MOST_NAMED)
        yield from self._unfinished(parts)
        for agent in dict.fromkeys(waiting or open_work):
            work = f"waits, with {counted(open_work[agent], 'message')} in front of it"
            if agent not in parts:
                yield InvolvedAgent(name(agent), work if open_work[agent] else "waited", False)

    def _unfinished(self, parts: Mapping[str, Any]) -> Iterator[InvolvedAgent]:
        """The agents called off, waiting, or at work to the end."""
        for agent in [*self._called_off] if not (parts or self._origin) else []:
            yield InvolvedAgent(name(agent), "was called off", False)
        for activation in self._deserted:
            verb = "waits" if self._waiting else "waited to the end"
            yield InvolvedAgent(name(activation.agent), verb, False, activation.id)
        deserted = {activation.agent for activation in self._deserted}
        is_over = self._is_gone or (self._session and self._run.finish)
        running = self._run.running.values() if is_over else ()
        unfinished = [a for a in dict.fromkeys(running) if a not in parts and a not in deserted]
        for n, agent in enumerate(unfinished[:MOST_NAMED]):
            more = len(unfinished) - MOST_NAMED if n == MOST_NAMED - 1 else 0
            further = f", nor did {counted(more, 'more agent')}" if more > 0 else ""
            since = self._working.get(agent)
            did = "did not end its turn"
            if self._is_gone and since is not None:
                did = f"was at work since {moment(since)}"
            yield InvolvedAgent(name(agent), f"{did}{further}", False)

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
                yield InvolvedAgent(name(holder.agent), _since(holder), False)
        for agent in [agent for agent in self._recovered if agent not in parts]:
            failed = self._run.failed[agent]
            says = f"{self._failed(agent, failed)}; its work went on"
            yield InvolvedAgent(name(agent), says, False, failed.activation)

    def _busiest(self, most: int) -> Iterator[InvolvedAgent]:
        is_of_calls = self._origin and self._origin.error.startswith(MODEL_CALLS)
        calls = ", with all the model calls that the limit allows" if is_of_calls else ""
        dollars = self._run.dollars
        for agent, turns in self._run.turns.most_common(most):
            spent = f" for ${dollars.get(agent, 0):,.2f}" if dollars else ""
            says = f"took {counted(turns, 'turn')}{calls}{spent}"
            yield InvolvedAgent(name(agent), says, False)

    # --- the task and the cost ---

    def _task(self) -> str:
        run = self._run
        task = run.run.task if run.run else None
        goal = ("" if self._private else run.goal) or ("" if task is None else name(task))
        team = counted(len(self._team), "agent")
        if self._session:
            requests = counted(run.counts["requests"], "request")
            first = ": " if run.counts["requests"] == 1 else "; the first: "
            return f"{requests} to a team of {team}" + (f"{first}{goal}" if goal else "")
        return f"{goal} ({team})" if goal else f"a run of {team}"

    def _cost(self, spent: str) -> str:
        run = self._run
        parts = {
            "turn": run.counts["turns"],
            "message": run.counts["messages"],
            "intervention": run.healed.total(),
        }
        numbers = [counted(number, noun) for noun, number in parts.items() if number]
        return f"{cut(numbers)} in {moment(run.us)}.{f' {spent}.' if spent else ''}"


def _moment(row: Mapping[str, Any]) -> tuple[int, int]:
    return row.get("us", 0), row.get("t", 0)


def _since(holder: Holder) -> str:
    """The deed of an agent with work in front of it, and its moment."""
    return f"{holder.says} from {moment(holder.end.us)} on" if holder.end else holder.says


def _act(row: Mapping[str, Any]) -> str:
    """A mistake behind a wrong answer, in words."""
    return one_line(row.get("says") or "made a mistake")


def _overspent(detail: Mapping[str, Any]) -> str:
    """The sum beyond the limit in the incident `budget`; empty: none."""
    try:
        spent = UNITS[detail["limit"]].format(detail["spent"])
        return f" ({spent} spent)" if detail["spent"] > detail["most"] else ""
    except (KeyError, TypeError, ValueError):  # a trace may hold anything
        return ""


def _take_loss(origins: list[Mapping[str, Any]], tally: PatternTally) -> Mapping[str, Any]:
    """Take the origin that is the loss of a tally out of the origins; empty: there is none."""
    for n, row in enumerate(origins if tally.loss else ()):
        if row["us"] == tally.us and not row.get("is_healing"):
            return origins.pop(n)
    return {}


def _tally_text(pattern: str, tally: PatternTally, origin: Mapping[str, Any], fault: str) -> str:
    """A pattern in plain words, with the name and the number of findings behind."""
    times = f", {tally.number:,} times" if tally.number > 1 else ""
    loss = one_line(origin.get("says")) if origin else f"{tally.loss}{fault}"
    plain = tally.plain.removeprefix("some work was lost: ") if loss else tally.plain
    return f"{f'{loss}; ' if loss else ''}{plain}: {pattern_title(pattern)}{times}"


_LACKING = ", before all of its work was done by the account of the monitor"
_ENDS = {
    "timeout": "The time limit ended the run",
    "stopped": "The run was stopped",
    "error": "The run ended with an error",
}
