"""Five answers about a run: how it ended, what went wrong, who, what the monitor did, what next.

    answers = five_answers(so_far, score=score, place="runs/1")
    print(answers.headline)

The terminal, the page, lists of runs, checks, notebooks, alerts and exports all show these.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dig._util.text import counted, cut, join_clauses, name, one_line
from dig.graph.words import MOST_NAMED, moment

from .advice import Advice
from .answers import FailureStep, FiveAnswers, Grade, InvolvedAgent
from .describe import pattern_title
from .headline import Headline, acting_agent
from .involved import PUT_IN, act_text, act_us, since_text
from .rings import Ring
from .run_so_far import CANCELLED, EARLY, MOST_MESSAGES, UNANSWERED, RunSoFar
from .spending_limits import UNITS
from .tallies import PatternTally

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
        involved = [*self._who()]
        steps = self._steps(involved)
        headline = self._headline(verdict, grade, steps, involved)
        monitor, helped = self._monitor(grade)
        next_step, command = self._next(grade, involved)
        command = command.replace("RUN", shlex.quote(self._place), 1)
        return FiveAnswers(
            verdict, grade, headline, self._ended(), tuple(steps), tuple(involved), monitor, helped,
            next_step, command, self._task(), self._cost(spent),
        )  # fmt: skip

    # --- how it ended ---

    def _verdict(self) -> tuple[str, Grade]:
        """The end in a word or two, and the colour."""
        run = self._run
        if self._waiting:
            return "Waits", "open"
        is_only = not self._session or run.counts["requests"] < 2
        if self._origin and self._origin.stage == "request" and is_only:
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
            return f"{verdict}: {self._failure(self._origin)}."
        if self._waiting:
            us = min(activation.us_start for activation in self._waiting)
            date = self._date(us)
            since = f"{moment(us)} after its beginning"
            if date:
                since = f"{date[:16].replace('T', ' ')} {date[-6:].replace('+00:00', 'UTC')}"
            return f"{verdict} since {since}: {self._list_waiting('waits')}."
        if verdict == "Cancelled" and self._cut_waits:
            return f"Cancelled by the caller at {moment(self._run.ended_us)}; {self._cut_text()}."
        if verdict == "Cancelled" and self._called_off:
            us = max(end.us for end in self._called_off.values())
            agents = cut([f"`{name(agent)}`" for agent in self._called_off], most=MOST_NAMED)
            were = "was" if len(self._called_off) == 1 else "were"
            return f"Cancelled by the caller at {moment(us)}; {agents} {were} working."
        head = f"{verdict}, {moment(self._run.us)} so far"
        if grade != "open":
            is_answered = self._run.counts["answered"] == self._run.counts["requests"] == 1
            us = self._run.us_answered if self._session and is_answered else self._run.us
            head = f"{verdict} after {moment(us)}"
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
        if culprit and "ET" in self._tallies and (not self._mistakes or self._is_short):
            for agent, number in self._count_lost().most_common(1):
                cause = f"`{name(agent)}` left with {counted(number, 'message')}, and then {cause}"
            hasty = [a for a in self._tallies["ET"].agents if a != culprit.agent][:1]
            for agent in hasty if culprit.agent in map(name, self._losses) else ():
                cause = f"{cause}, and then `{name(agent)}` submitted too early"
        if not cause or (self._run.partial and not culprit):
            return f"{head}. Nothing went wrong." if grade in ("good", "unknown") else f"{head}."
        healing = "; the monitor mended that" if self._run.heals and grade == "good" else ""
        # A mended failure, or one on the way, does not explain a count that is wrong.
        is_apart = verdict in ("Wrong answer", "Inexact answer", "Partial answer")
        link = ". Besides, " if is_apart else ". On the way " if grade != "bad" else ": "
        link = ": " if self._mistakes else link
        return f"{head.removesuffix('.')}{link}{cause}{healing}."

    def _failure(self, origin: Headline) -> str:
        """The failure of a request, the agent behind a failed caller, and the lost request."""
        says = origin.private if self._private else origin.says
        is_known = origin.activation or not self._holders
        cause = "" if is_known else f"; {self._blame()}"
        if self._stopper:
            time = self._work_time(self._stopper)
            cause = f"; `{name(self._stopper)}` was called off{time}"
        request = self._run.unanswered.get(origin.event)
        if request and not self._private and self._run.counts["requests"] > 1:
            cause += f"; “{request}” has no answer"
        return says + cause

    def _blame(self) -> str:
        """The holders at fault, with the amount of work and the moment."""
        holders = self._guilty_holders or self._holders[:1]
        if len(holders) == 1:
            return f"`{holders[0].agent}` {since_text(holders[0])}"
        agents = join_clauses([f"`{name(holder.agent)}`" for holder in holders])
        number = counted(sum(holder.number for holder in holders), "message")
        since = [holder.end.us for holder in holders if holder.end]
        return f"{agents} left {number} lying" + (f" from {moment(min(since))} on" if since else "")

    def _list_waiting(self, verb: str) -> str:
        agents = [f"`{name(agent)}`" for agent, _ in self._waits]
        question = self._question(self._waits[0][1]) if self._waits else ""
        whom = f"an answer to {question}" if question else "a person or for another system"
        return f"{cut(agents, most=MOST_NAMED)} {verb} for {whom}"

    def _cut_text(self) -> str:
        """The waits that a cancelled request ended."""
        length = moment(max(us for _, us in self._cut_waits.values()))
        return self._list_waiting(f"had waited {length}")

    def _ended(self) -> str:
        resumed = [
            f"A turn of `{name(agent)}` was called off at {moment(end.us)}; its work went on."
            for agent, end in self._run.cancelled.items()
            if agent not in {*self._called_off, *self._cut_waits} and not self._origin
        ]
        finished = self._list_finished()
        until = [f"Done until then: {finished}."] if finished else []
        no_error = "No error was raised, and what the caller was given is not recorded."
        returned = [no_error] if self._is_returned and not self._run.limit else []
        late = self._run.late_turns.texts()
        idle = [f"{self._idle} never ran."] if self._idle and self._run.limit else []
        sentences = [self._end(), *idle, self._quality(), *until, *returned, *resumed, *late]
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
            words = f": {self._answer_words}" if self._answer_words else ""
            return f"An answer was accepted after {length}{lacks}{words}."
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
        is_many = self._session and self._run.counts["requests"] > 1
        unchecked = "" if is_many or self._origin else "No one checked whether it is right."
        return str(self._score.get("says") or unchecked)

    def _requests(self) -> str:
        requests, states = self._run.counts["requests"], self._run.requests
        parts: list[str] = []
        for state, number in states.items():
            end = f"answered{_LACKING}" if state == EARLY else state
            if self._is_open and state == UNANSWERED:
                end = "not answered yet"
            if requests == 1:
                partial = f": the team was {self._run.partial}" if self._run.partial else ""
                if state.startswith("answered") and self._answer_words:
                    partial += f"{'. The answer' * bool(partial)}: {self._answer_words}"
                is_told = state not in NO_ANSWER or end == "not answered yet"
                none = "The" if is_told else "There is no answer: the"
                is_open = "It goes on: " if self._waiting else ""
                text = f"{none} request was {end}{partial}."
                return f"{is_open}{text[0].lower() if is_open else text[0]}{text[1:]}"
            if number == requests:
                return f"{'Both' if requests == 2 else f'All {requests:,}'} requests were {end}."
            parts.append(f"{number:,} {'was' if number == 1 else 'were'} {end}")
        if not parts:
            return "There was no request."
        return f"Of {counted(requests, 'request')} {join_clauses(parts)}."

    # --- what went wrong, and who ---

    def _steps(self, involved: Sequence[InvolvedAgent]) -> list[FailureStep]:
        """The first failure of each agent and the first finding of each pattern, by time."""
        harmless = set[int]()
        origins = [row for n, row in enumerate(self._origins) if row not in self._origins[:n]]
        steps = [
            FailureStep(
                tally.t, tally.us,
                _tally_text(
                    pattern, tally, _take_loss(origins, tally),
                    next(filter(None, (self._fault(a, tally.us) for a in tally.agents)), "")
                    if tally.loss else "",
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
        orphaned = {tally.us for tally in self._tallies.values() if tally.loss}
        steps += [
            FailureStep(
                0, min(loss.us for loss in losses),
                f"{name(agent)} {self._loss_text(losses)}{self._fault(agent, losses[0].us)}",
            )
            for agent, losses in self._losses.items()
            if orphaned.isdisjoint(loss.us for loss in losses)
        ]  # fmt: skip
        for agent, failed in self._run.failed.items():
            error = "" if self._private else f": {failed.error}"
            first = ", the first" if failed.number > 1 and self._input_text(failed, agent) else ""
            says = f"{name(agent)} {self._failed(agent, failed)}{first}"
            says += f"{self._input_text(failed, agent)}{error}"
            if failed.number > 1:
                says += f" (the latest at {moment(failed.us_latest)})"
            holder = next((holder for holder in self._holders if holder.agent == agent), None)
            says += f", and {holder.says}" if holder else ""
            if agent in self._recovered:
                harmless.add(failed.t)
                says += "; its work went on"
            steps.append(FailureStep(failed.t, failed.us, says))
        steps += [
            FailureStep(end.t, end.us, self._called_off_text(agent))
            for agent, end in self._called_off.items()
            if agent == self._stopper or not (steps or self._origin)
        ]
        steps += [*self._last_steps(), *map(self._ring_step, self._rings)]
        steps += [*self._injected_steps(involved, steps)]
        steps.sort(key=lambda step: (step.us, step.t))
        if len(steps) > MOST_STEPS:
            steps = [step for step in steps if step.t not in harmless]
        left_out = len(steps) - MOST_STEPS
        if left_out > 0:
            last = steps[MOST_STEPS - 1]
            says = f"{last.says}; and {left_out} more"
            steps[MOST_STEPS - 1 :] = [FailureStep(last.t, last.us, says)]
        return steps

    def _injected_steps(
        self, involved: Sequence[InvolvedAgent], steps: Sequence[FailureStep]
    ) -> Iterator[FailureStep]:
        """The faults of the agents behind a failure, beside all other steps."""
        for agent, acts in self._injected.items():
            marked = [step for step in steps if PUT_IN in step.says and name(agent) in step.says]
            if not marked and name(agent) in [row.agent for row in involved]:
                says = f"{name(agent)} {self._act(agent)}"
                yield FailureStep(0, act_us(acts[0]) or 0, says)

    def _mistake_steps(self) -> Iterator[FailureStep]:
        """The first miscount of the run."""
        for row in sorted(self._mistakes, key=_moment)[:1]:
            worst = self._mistakes[0]
            says = f"{name(worst['agent'])} {act_text(worst)}"
            if len(self._mistakes) > 1:
                agents = f"{self._list_miscounting(is_short=True)} miscounted{self._shares()}"
                at = "" if worst is row else f", at {moment(worst.get('us', 0))}"
                says = f"from here on {agents}, the most{at}: {says}"
            yield FailureStep(row.get("t", 0), row.get("us", 0), says)

    def _last_steps(self) -> Iterator[FailureStep]:
        """The departures, the limits, and the end of a request, a process or a session."""
        graph, finish, origin = self._run.graph, self._run.finish, self._origin
        for agent, leave in self._departures.items():
            yield FailureStep(leave.t, leave.us, f"{name(agent)} {self._departure(agent)}")
        limited = self._run.limited
        if limited is not None and not (origin and origin.activation):
            limit = self._run.limit.replace(f" at {moment(limited.us)},", "", 1)
            idle = "".join(f"; {agents} never ran" for agents in filter(None, [self._idle]))
            says = f"the team was {limit}{_overspent(limited.detail)}{idle}"
            yield FailureStep(limited.t, limited.us, says)
            if agent := self._slowest:
                us, turn, began = self._run.longest[agent]
                yield FailureStep(0, began, f"{name(agent)} was at work for {moment(us)} ({turn})")
        culprit = acting_agent(graph, origin.activation) if graph and origin else None
        if origin and (culprit not in self._run.failed or origin.stage == "answer"):
            # An error stands in the headline, or in a step of its own.
            is_told = not origin.activation or culprit in self._run.failed
            says = origin.private if self._private or is_told else origin.says
            if limited is not None and not self._private:
                # The first half tells of the limit, which has a step of its own.
                message = self._run.asked_last
                words = self._quoted(message.payload) if message is not None else ""
                says = origin.says.partition(", and ")[2] or says
                says = says.removesuffix(f", at {moment(origin.us)}")
                says += f": {words}" if words and " but asked " in says else ""
            says = says.removesuffix(f", at {moment(origin.us)}")
            is_spoken = origin.activation or self._rings or limited
            says += "" if is_spoken else self._said_last()
            yield FailureStep(origin.t, origin.us, says)
        if finish and finish.outcome == "timeout" and not (self._run.running or self._holders):
            says = "the last turn ended, and no agent went on"
            yield FailureStep(0, self._run.ended_us, says)
        for turn, us_waited in [*self._cut_waits.values()][:1]:
            wait = self._run.asks[turn]
            says = f"{self._list_waiting('waited')}; none came in {moment(us_waited)}"
            yield FailureStep(wait["t"], wait["us"], says)
            says = "the request was cancelled by the caller"
            yield FailureStep(0, self._run.ended_us, says)
        if self._deserted and not self._waiting:
            wait = self._run.asks.get(self._deserted[0].id, {})
            us = wait.get("us", self._deserted[0].us_start)
            end = "the last record" if self._is_gone else "the end of the session"
            waited = moment(self._run.us - us)
            until = f"{waited} later came {end}" if self._run.us > us else f"that is {end}"
            says = f"{self._list_waiting('waited')}; {until}"
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
        words = "" if self._run.limit else self._said_last(ring)
        messages = self._run.messages
        ends = [self._run.latest[agent] for agent in ring.agents if agent in self._run.latest]
        last = max(ends, key=lambda end: end.us, default=self._origin)
        first = next((m for m in messages if self._speaker(m) in ring.agents), None)
        # A ring is the reason of what comes after it, so it stands where it began.
        is_whole = len(messages) < MOST_MESSAGES and first is not None
        start = first if is_whole else last
        t, us = (start.t, start.us) if start else (0, self._run.us)
        says = ring.text()
        if ring.rounds:
            says = f"{join_clauses([*map(name, ring.agents)])} have gone round {ring.rounds} times"
        return FailureStep(t, us, f"{'from here on ' * is_whole}{says}, without an answer{words}")

    def _said_last(self, ring: Ring | None = None) -> str:
        """The last words of an agent, of a ring if there is one; empty: not known, or private."""
        speaker = self._repeating(ring.agents if ring else self._team)
        words = self._words_of(speaker)
        return f"; `{name(speaker)}` said {words}" if words else ""

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


def _overspent(detail: Mapping[str, Any]) -> str:
    """The sum beyond the limit in the incident `budget`; empty: none."""
    try:
        unit, digits = UNITS[detail["limit"]], 1 if detail["limit"] == "seconds" else 2
        spent = unit.format(round(detail["spent"], digits))
        is_more = detail["spent"] > detail["most"] and spent != unit.format(detail["most"])
        return f" ({spent} spent)" if is_more else ""
    except (KeyError, TypeError, ValueError, ArithmeticError):  # a trace may hold anything
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
    is_apart = tally.loss and times and moment(tally.us_latest) != moment(tally.us)
    times += f" (the latest loss at {moment(tally.us_latest)})" if is_apart else ""
    # A fault that was put in is the reason, whatever a trace has to say.
    loss = f"{tally.loss.partition(', since ')[0] if fault else tally.loss}{fault}"
    loss = one_line(origin.get("says")) if origin else loss
    plain = tally.plain.removeprefix("some work was lost: ") if loss else tally.plain
    return f"{f'{loss}; ' if loss else ''}{plain}: {pattern_title(pattern)}{times}"


_LACKING = ", before all of its work was done by the account of the monitor"
_ENDS = {
    "timeout": "The time limit ended the run",
    "stopped": "The run was stopped",
    "error": "The run ended with an error",
}
