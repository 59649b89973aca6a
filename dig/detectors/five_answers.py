"""Five answers about a run: how it ended, what went wrong, who, what the monitor did, what next.

    answers = five_answers(so_far, score=score, place="runs/1")
    print(answers.headline)

The terminal, the page, lists of runs, checks, notebooks, alerts and exports all show these.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dig._util.text import counted, cut, join_clauses, name, one_line
from dig.graph.words import MOST_NAMED, action_text, actions_text, moment

from .answer_facts import AnswerFacts
from .answers import FailureStep, FiveAnswers, Grade, InvolvedAgent
from .describe import pattern_title
from .headline import acting_agent
from .holders import Holder
from .patterns import BY_NAME
from .rings import Ring
from .run_so_far import EARLY, FailedTurns, PatternTally, RunSoFar, goal_text

MOST_STEPS = 4
NO_ANSWER = ("ended by an error", "left without an answer")
"""The ends of a request without an answer."""
LOOPS = ("ER", "LOOP", "LIVELOCK")
"""The patterns of agents that go on and on."""
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
    """
    return _Writer(so_far, state, score or {}, cause or {}, place, private, date).answers(spent)


class _Writer(AnswerFacts):
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
        if run.partial:
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
        left = requests.get("left without an answer", 0)
        if self._is_open and answered + left == number:
            return "Goes on", "open"
        if number > 1:
            return f"{answered:,} of {number:,} answered", "bad"
        ends = {EARLY: "Early answer", "answered in part": "Partial answer"}
        default = "Cut off" if self._state == "cut off" and not self._run.finish else "No answer"
        return next((ends[state] for state in ends if state in requests), default), "bad"

    def _headline(
        self, verdict: str, grade: Grade, steps: list[FailureStep], who: list[InvolvedAgent]
    ) -> str:
        if self._origin and not self._waiting:
            says = self._origin.private if self._private else self._origin.says
            is_known = self._origin.activation or not self._holders
            cause = "" if is_known else f"; `{self._holders[0].agent}` {_since(self._holders[0])}"
            return f"{verdict}: {says}{cause}."
        if self._waiting:
            us = min(activation.us_start for activation in self._waiting)
            date = self._date(us)
            since = f"{moment(us)} after its beginning"
            if date:
                since = f"{date[:16].replace('T', ' ')} {date[-6:].replace('+00:00', 'UTC')}"
            return f"{verdict} since {since}: {self._list_waiting('waits')}."
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
        if len(self._mistakes) > 1:
            early = f"{cause}; " if self._is_short else ""
            named = {culprit.agent} if culprit and self._is_short else set[str]()
            cause = f"{early}{self._list_miscounting(named)} miscounted"
        if not cause or (self._run.partial and not culprit):
            return f"{head}. Nothing went wrong." if grade in ("good", "unknown") else f"{head}."
        healing = "; the monitor mended that" if self._run.heals and grade == "good" else ""
        # A mended failure, or one on the way, does not explain a count that is wrong.
        is_apart = verdict in ("Wrong answer", "Inexact answer", "Partial answer")
        link = ". Besides, " if is_apart else ". On the way " if grade != "bad" else ": "
        link = ": " if self._mistakes else link
        return f"{head.removesuffix('.')}{link}{cause}{healing}."

    def _list_waiting(self, verb: str) -> str:
        agents = [f"`{name(activation.agent)}`" for activation in self._deserted]
        return f"{cut(agents, most=MOST_NAMED)} {verb} for a person or for another system"

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
            if self._is_open and state == "left without an answer":
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
        graph = self._run.graph
        harmless = set[int]()
        steps = [
            FailureStep(tally.t, tally.us, _tally_text(pattern, tally))
            for pattern, tally in self._tallies.items()
        ]
        steps += [
            FailureStep(holder.end.t, holder.end.us, f"{name(holder.agent)} {holder.says}")
            for holder in self._holders if holder.end and holder.agent not in self._run.failed
        ]  # fmt: skip
        for row in sorted(self._mistakes, key=_moment)[:1]:
            worst = self._mistakes[0]
            says = f"{name(worst['agent'])} {_act(worst)}"
            if len(self._mistakes) > 1:
                says = f"from here on {self._list_miscounting()} miscounted, the most: {says}"
            steps.append(FailureStep(row.get("t", 0), row.get("us", 0), says))
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
        limited = None if self._origin else self._run.limited
        if limited is not None:
            says = f"the team was {self._run.limit}"
            steps.append(FailureStep(limited.t, limited.us, says))
        steps += [*self._last_steps(), *map(self._ring_step, self._rings)]
        if self._origin:
            # The words of an error without an agent stand in the headline, and that is enough.
            is_private = self._private or self._origin.activation is None
            says = self._origin.private if is_private else self._origin.says
            culprit = acting_agent(graph, self._origin.activation) if graph is not None else None
            is_told = culprit in self._run.failed
            if not is_told or self._origin.stage == "answer":
                steps.append(FailureStep(self._origin.t, self._origin.us, says))
        steps.sort(key=lambda step: (step.t in harmless, step.us, step.t))
        left_out = len(steps) - MOST_STEPS
        if left_out > 0:
            last = steps[MOST_STEPS - 1]
            says = f"{last.says}; and {left_out} more"
            steps[MOST_STEPS - 1 :] = [FailureStep(last.t, last.us, says)]
        return steps

    def _last_steps(self) -> Iterator[FailureStep]:
        """The last turn before a time limit, and the end of a process or a session."""
        graph, finish = self._run.graph, self._run.finish
        if finish and finish.outcome == "timeout" and not (self._run.running or self._holders):
            says = "the last turn ended, and no agent went on"
            yield FailureStep(0, self._run.ended_us, says)
        if graph is not None and (self._is_gone or self._deserted) and not self._waiting:
            says = "that is the last record" if self._is_gone else "the session was closed"
            link = ":" if self._is_gone else " while"
            says += f"{link} {self._list_waiting('waited')}" if self._deserted else ""
            yield FailureStep(graph.t, self._run.us, says)

    def _ring_step(self, ring: Ring) -> FailureStep:
        ends = [self._run.latest[agent] for agent in ring.agents if agent in self._run.latest]
        last = max(ends, key=lambda end: end.us, default=self._origin)
        t, us = (last.t, last.us) if last else (0, self._run.us)
        spoken, text = self._last_words(ring), ring.remark.removesuffix(".")
        if spoken is not None and not self._private:
            words = goal_text(spoken.payload)
            speaker = acting_agent(self._run.graph, spoken.by) if self._run.graph else ""
            text += f"; `{name(speaker)}` said last: “{words}”" if words else ""
        return FailureStep(t, us, text)

    def _failed(self, agent: str, failed: FailedTurns) -> str:
        turns = self._run.turns[agent]
        return "failed" + (f" {failed.number:,} of {turns:,} turns" if turns > 1 else "")

    def _who(self) -> Iterator[InvolvedAgent]:
        """The agents behind the failure: named by a diagnosis, failed, and in findings."""
        parts: dict[str, list[str]] = {}
        first: dict[str, str] = {}
        waiting: list[str] = []
        if self._cause.get("agent"):
            parts[str(self._cause["agent"])] = ["named by the diagnosis"]
        for mistake in [] if self._is_short else self._mistakes[:2]:
            parts.setdefault(str(mistake["agent"]), []).append(_act(mistake))
            first[str(mistake["agent"])] = str(mistake.get("activation") or "")
        worst_first = sorted(self._run.failed.items(), key=lambda item: -item[1].number)
        for agent, failed in [row for row in worst_first if row[0] not in self._recovered]:
            parts.setdefault(agent, []).append(self._failed(agent, failed))
            first.setdefault(agent, failed.activation)
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
                parts.setdefault(agent, []).append(f"{role}{times}")
        for mistake in self._mistakes if self._is_short else self._mistakes[2:]:
            parts.setdefault(str(mistake["agent"]), []).append(_act(mistake))
        for holder in self._holders if not self._tallies else ():
            if not holder.waits_for:
                parts.setdefault(holder.agent, []).append(_since(holder))
        for agent, says in parts.items():
            yield InvolvedAgent(name(agent), join_clauses(says), True, first.get(agent, ""))
        yield from self._bystanders(parts)
        is_late = self._run.finish and self._run.finish.outcome == "timeout" and not parts
        open_work = self._count_left() if waiting or is_late else Counter[str]()
        if self._origin and not (parts or open_work):  # a limit of the framework
            yield from self._busiest(2)
        if self._run.limit and not (self._origin or parts):
            yield from self._busiest(MOST_NAMED)
        for agent in [*self._called_off] if not (parts or self._origin) else []:
            yield InvolvedAgent(name(agent), "was called off", False)
        for activation in self._deserted:
            verb = "waits" if self._waiting else "waited to the end"
            yield InvolvedAgent(name(activation.agent), verb, False, activation.id)
        deserted = {activation.agent for activation in self._deserted}
        running = self._run.running.values() if self._session and self._run.finish else ()
        unfinished = [a for a in dict.fromkeys(running) if a not in parts and a not in deserted]
        for n, agent in enumerate(unfinished[:MOST_NAMED]):
            more = len(unfinished) - MOST_NAMED if n == MOST_NAMED - 1 else 0
            further = f", nor did {counted(more, 'more agent')}" if more > 0 else ""
            yield InvolvedAgent(name(agent), f"did not end its turn{further}", False)
        for agent in dict.fromkeys(waiting or open_work):
            work = f"waits, with {counted(open_work[agent], 'message')} in front of it"
            if agent not in parts:
                yield InvolvedAgent(name(agent), work if open_work[agent] else "waited", False)

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
        for agent, turns in self._run.turns.most_common(most):
            yield InvolvedAgent(name(agent), f"took {counted(turns, 'turn')}", False)

    # --- what the monitor did, and what to do next ---

    def _monitor(self, grade: Grade) -> tuple[str, bool | None]:
        run = self._run
        if not run.heals:
            if run.is_imported:
                skipped = join_clauses([*map(name, run.skipped)])
                unseen = f", which cannot show {skipped}" if skipped else ""
                return f"It was not there: this was read after the run{unseen}.", None
            if run.limit:
                last = (
                    ", and gave its entry agent one turn more for an answer" if run.partial else ""
                )
                if last and self._score.get("complete"):
                    last += ". That worked: the answer is about all parts"
                return f"It {run.limit.replace('stopped', 'stopped the team', 1)}{last}.", None
            is_alarmed = bool(self._tallies or self._origin or run.failed)
            if self._waiting and not is_alarmed:
                return "It keeps watch, and takes this wait for no failure.", None
            if not is_alarmed and grade not in ("bad", "inexact"):
                return ("Nothing had to be done." if run.finish else "Nothing so far."), None
            if run.refused:
                return f"Nothing was done: {run.refused}.", None
            if not self._tallies and run.failed:
                return "It watched only: an error inside an agent is the agent's own to mend.", None
            if run.raised and not run.recorded:
                return "It was not there: these findings were made after the run.", None
            return "It watched only, and changed nothing.", None
        deeds = [
            action_text(rows[0], len(run.agents))
            if run.healed[kind] == 1
            else actions_text(kind, run.healed[kind])
            for kind, rows in run.heals.items()
        ]
        times = [row.us for rows in run.heals.values() for row in rows]
        first, last = moment(min(times)), moment(max(times))
        moments = f"At {first}" if first == last else f"From {first} to {last}"
        text = f"{moments} the monitor {join_clauses(deeds)}."
        if run.came_after and grade != "bad":
            return f"{text} That worked: an answer was accepted after it.", True
        is_lacking = bool(run.is_early or run.partial or self._origin)
        if isinstance(self._score.get("complete"), bool):
            is_lacking = not self._score["complete"]
        if run.came_after and not is_lacking:
            reason = "for another reason"
            if self._mistakes:
                reason = "because agents miscounted, which the monitor cannot see"
            return f"{text} What it found was mended; the answer is wrong {reason}.", None
        if run.came_after or run.is_noted or (run.finish and run.finish.outcome == "submitted"):
            return f"{text} That was not enough: the answer that was accepted is bad.", False
        if run.finish is None and self._state != "cut off":
            return f"{text} No answer has come since.", None
        return f"{text} That did not help: no answer came after it.", False

    def _next(self, grade: Grade, who: list[InvolvedAgent]) -> tuple[str, str]:
        """The next step, and a command with `RUN` for the path."""
        run = self._run
        if self._deserted:
            agent, turn = self._deserted[0].agent, self._deserted[0].id
            again = "" if self._waiting else "Ask again, and "
            says = f"{again}give `{name(agent)}` what it waits for; see its turn"
            return says[0].upper() + says[1:], f"digmon show RUN {shlex.quote(name(turn))}"
        if grade == "open":
            return "Follow it", "digmon view RUN"
        if self._state == "cut off" and run.finish is None and not self._session:
            return "Let it go on where it stopped", "digmon run --resume RUN"
        if self._cause.get("says"):
            return f"Mend the cause: {self._cause['says']}", "digmon why RUN --try"
        # Only the result of a run of a task has the numbers of its findings.
        has_result = bool(self._tallies and run.recorded) and not self._session
        if self._is_short and "ET" in self._tallies and has_result:
            says = "Let the agent wait for all parts"
            return says, "digmon why RUN --good findings.ET==0 --try"
        return self._next_of_failure(grade, who, has_result)

    def _next_of_failure(
        self, grade: Grade, who: list[InvolvedAgent], has_result: bool
    ) -> tuple[str, str]:
        run, origin = self._run, self._origin
        failed = {name(agent) for agent in run.failed if agent not in self._recovered}
        failing = next((each for each in who if each.is_at_fault and each.agent in failed), None)
        worst = self._mistakes[0] if self._mistakes else {}
        if worst.get("activation") and len(who) > 1 and not self._is_short:
            says = f"The cause is known: see the largest miscount, of `{name(worst['agent'])}`"
            return says, f"digmon show RUN {shlex.quote(name(worst['activation']))}"
        if self._score.get("rmse") and not (self._is_short and run.limit):
            return "Find the cause", "digmon why RUN --good score.rmse==0"
        if origin and origin.stage == "request" and has_result and len(run.failed) == 1:
            agent, turns = next(iter(run.failed.items()))
            if turns.number > 1:
                return f"Find out why `{name(agent)}` fails", "digmon why RUN"
        if origin and origin.activation and origin.stage == "request":
            turn = shlex.quote(name(origin.activation))
            return "See what it was given, and the error", f"digmon show RUN {turn}"
        if failing:
            says = f"Mend `{failing.agent}`: see its failed turns"
            return says, f"digmon show RUN {shlex.quote(failing.agent)}"
        if run.limit and not self._tallies:
            return "Raise the limit in `[budget]`, or see who used it up", "digmon show RUN"
        goal = f"findings.{next(iter(self._tallies))}==0" if has_result else ""
        holder = self._holders[0] if self._holders else None
        if holder and holder.end and run.heals and grade != "bad":
            turn = shlex.quote(name(holder.end.activation))
            return f"See why `{name(holder.agent)}` left its work lying", f"digmon show RUN {turn}"
        if goal and run.heals and grade != "bad":
            return "Find the cause of what was healed", f"digmon why RUN --good {goal} --try"
        spoken = next(filter(None, map(self._last_words, self._rings)), None)
        if self._rings and spoken:
            agents = join_clauses([f"`{name(agent)}`" for agent in self._rings[0].agents])
            says = f"Let the round of {agents} end; see its last message"
            return says, f"digmon show RUN {shlex.quote(name(spoken.event))}"
        if run.finish and run.finish.outcome == "timeout" and not run.running:
            says = "No agent was at work, so more time would not help: find the cause"
            return says, "digmon why RUN"
        if self._origin and self._origin.activation is None:
            if not {*LOOPS}.isdisjoint(self._tallies):
                says = "See how the agents go round; a higher limit would not end that"
                return says, "digmon show RUN"
            return "See who went on with what, or raise the limit", "digmon show RUN"
        if self._called_off and not self._tallies:
            return "Ask again what was called off; see what was done", "digmon show RUN"
        if self._state == "cut off" and run.finish is None and not goal:
            return "See where it stopped", "digmon show RUN"
        if grade in ("bad", "inexact"):
            return "Find the cause", "digmon why RUN"
        if self._tallies:
            return "Look at what was found", "digmon show RUN"
        return "Nothing has to be done.", ""

    # --- the task and the cost ---

    def _task(self) -> str:
        run = self._run
        task = run.run.task if run.run else None
        goal = ("" if self._private else run.goal) or ("" if task is None else name(task))
        team = counted(len(run.agents), "agent")
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


def _tally_text(pattern: str, tally: PatternTally) -> str:
    """A pattern in plain words, with the name and the number of findings behind."""
    times = f", {tally.number:,} times" if tally.number > 1 else ""
    return f"{tally.plain}: {pattern_title(pattern)}{times}"


_LACKING = ", before all of its work was done by the account of the monitor"
_ENDS = {
    "timeout": "The time limit ended the run",
    "stopped": "The run was stopped",
    "error": "The run ended with an error",
}
