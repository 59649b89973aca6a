"""Five answers about a run: how it ended, what went wrong, who, what the monitor did, what next.

    answers = five_answers(so_far, score=score, place="runs/1")
    print(answers.headline)

The terminal, the page, lists of runs, checks, notebooks, alerts and exports all show these.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dig._util.text import counted, cut, join_clauses, name
from dig.graph.words import MOST_NAMED, moment

from .advice import Advice
from .answers import FailureStep, FiveAnswers, Grade, InvolvedAgent
from .headline import Headline
from .patterns import BY_NAME
from .run_so_far import RunSoFar
from .tallies import AGAIN, CANCELLED, EARLY, NO_REAL, UNANSWERED

NO_ANSWER = ("ended by an error", CANCELLED, UNANSWERED)
"""The ends of a request without an answer."""
HEALING = ("dig", "dig+")
"""The methods of a run by which the monitor heals."""
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
    can_heal: bool = False,
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
        can_heal: Whether the monitor was to heal, and not only to watch.
    """
    writer = _Writer(so_far, state, score or {}, cause or {}, place, private, date)
    writer.add_facts(injections, can_try=can_try, can_heal=can_heal)
    return writer.answers(spent)


class _Writer(Advice):
    """Writes the answers about a run."""

    def answers(self, spent: str) -> FiveAnswers:
        """Write all answers."""
        verdict, grade = self._verdict()
        self.list_facts()
        who, steps = self._who(), self._steps()
        headline = self._headline(verdict, grade, steps, who)
        monitor, helped = self._monitor(grade)
        next_step, command = self._next(grade)
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
        if run.void:
            return "No real answer", "bad"
        return ("Early answer", "bad") if run.is_early else ("Answered", "unknown")

    def _session_verdict(self) -> tuple[str, Grade]:
        requests, number = self._run.requests, self._run.counts["requests"]
        if not number:
            return "Not asked yet", "open"
        answered = requests.get("answered", 0) + requests.get(AGAIN, 0)
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
        ends = {EARLY: "Early answer", NO_REAL: "No real answer",
                "answered in part": "Partial answer", CANCELLED: "Cancelled"}  # fmt: skip
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
        head = f"{verdict}, {moment(self._run.us)} so far"
        if grade != "open":
            is_answered = self._run.counts["answered"] == self._run.counts["requests"] == 1
            us = self._run.us_answered if self._session and is_answered else self._run.us
            head = f"{verdict} after {moment(us)}"
        if verdict == "Cancelled":
            head = f"{verdict} by the caller at {moment(self._run.ended_us)}"
        if self._is_gone:
            head = f"{verdict} at {moment(self._run.us)} or later"
        if self._run.partial and not self._score.get("complete"):
            head += f", since the team was {self._run.partial}"
        quality = self._quality().removesuffix(".") if self._score and grade != "good" else ""
        head = f"{head}. {quality}" if quality else head
        retried = (agent for agent in who if agent.agent in map(name, self._recovered))
        root = self._root
        culprit = who[0] if root else next(retried, None)
        cause = f"`{culprit.agent}` {culprit.says}" if culprit else steps[0].says if steps else ""
        if root and (agents := self._going_round):
            role = BY_NAME[root.kind].role
            cause = f"{agents} {role}{' again and again' * (root.kind == 'ER')}"
        if len(self._mistakes) > 1:
            early = f"{cause}; " if self._is_short else ""
            named = {culprit.agent} if culprit and self._is_short else set[str]()
            cause = f"{early}{self._list_miscounting(named)} miscounted"
        if root and root.kind in ("lost", "left") and (not self._mistakes or self._is_short):
            hasty = self._tallies["ET"].agents if "ET" in self._tallies else ()
            for agent in [agent for agent in hasty if agent != root.agent]:
                cause = f"{cause}, and then `{name(agent)}` submitted too early"
        if not cause or (self._run.partial and not culprit):
            return f"{head}. Nothing went wrong." if grade in ("good", "unknown") else f"{head}."
        healing = "; the monitor mended that" if self._run.heals and grade == "good" else ""
        # A mended failure, or one on the way, does not explain a count that is wrong.
        is_apart = verdict in ("Wrong answer", "Inexact answer", "Partial answer")
        is_explained = grade in ("bad", "open")
        link = ". Besides, " if is_apart else ": " if is_explained else ". On the way "
        link = ": " if self._mistakes else link
        return f"{head.removesuffix('.')}{link}{cause}{healing}."

    def _failure(self, origin: Headline) -> str:
        """The failure of a request, the agent behind a failed caller, and the lost request."""
        says = self._origin_says(is_private=self._private)
        root, cause = self._root, ""
        if root and (root.kind == "called off" or not origin.activation):
            cause = f"; `{name(root.agent)}` {root.deed}"
        request = self._run.unanswered.get(origin.event)
        if request and not self._private and self._run.counts["requests"] > 1:
            cause += f"; “{request}” has no answer"
        return says + cause

    def _ended(self) -> str:
        resumed = [
            f"A turn of `{name(agent)}` was called off at {moment(end.us)}"
            f"{f' ({self._reason(agent)})' if self._reason(agent) else ''}; its work went on."
            for agent, end in self._run.cancelled.items()
            if agent not in {*self._called_off, *self._cut_waits} and not self._origin
        ]
        resumed += [
            f"{self._quoted(message.payload)} of `{name(self._speaker(message))}` was not done."
            for message in self._run.messages if self._run.limit and self._speaker(message)
            if message.event in self._run.headlines.never_ran and self._quoted(message.payload)
        ][:MOST_NAMED]  # fmt: skip
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
        if run.finish.outcome == "submitted" and run.void:
            return self._no_real_answer(f" after {length}")
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

    def _no_real_answer(self, when: str) -> str:
        words = f": {self._answer_words}" if self._answer_words else ""
        return f"What was submitted{when} is no answer: it is {self._run.void}{words}."

    def _quality(self) -> str:
        """The answer in the words of the score."""
        if not self._run.counts["answered"]:
            return ""
        if self._score.get("valid") is False:
            return f"It is not valid: {self._score.get('reason') or 'no reason is given'}."
        is_many = self._session and self._run.counts["requests"] > 1
        it = "they are" if is_many else "it is"
        is_told = self._origin or self._score or self._run.void
        unchecked = "" if is_told else f"No one outside the team checked whether {it} right."
        return str(self._score.get("says") or unchecked)

    def _requests(self) -> str:
        requests, states = self._run.counts["requests"], self._run.requests
        parts: list[str] = []
        for state, number in states.items():
            end = f"answered{_LACKING}" if state == EARLY else state
            if self._is_open and state == UNANSWERED:
                end = "not answered yet"
            if requests == 1 and self._run.void:
                return self._no_real_answer("")
            if requests == 1:
                partial = f": the team was {self._run.partial}" if self._run.partial else ""
                if state.startswith("answered") and self._answer_words:
                    is_led = self._author and len(self._team) > 1 and not partial
                    by = f" by `{name(self._speaker(self._author))}`" if is_led else ""
                    answer = f"{self._answer_words}{self._answer_basis}"
                    partial += f"{by}{'. The answer' * bool(partial)}: {answer}"
                is_told = state not in NO_ANSWER or end == "not answered yet"
                none = "The" if is_told else "There is no answer: the"
                is_open = "It goes on: " if self._waiting else ""
                text = f"{none} request was {end}{partial}."
                return f"{is_open}{text[0].lower() if is_open else text[0]}{text[1:]}"
            if number == requests:
                return f"{'Both' if requests == 2 else f'All {requests:,}'} requests were {end}."
            # A session that was ended may have let go of them.
            is_kept = state == UNANSWERED and self._run.finish is None
            words = self._open_requests() if is_kept else ""
            parts.append(f"{number:,} {'was' if number == 1 else 'were'} {end}{words}")
        if not parts:
            return "There was no request."
        latest = f" The latest answer: {self._answer_words}." if self._answer_words else ""
        return f"Of {counted(requests, 'request')} {join_clauses(parts)}.{latest}"

    def _open_requests(self) -> str:
        """The first words of the requests without an end; empty: not known, or private."""
        graph = self._run.graph
        events = graph.source_ids(graph.problems.waiting) if graph is not None else []
        failed = self._run.unanswered
        messages = [self._run.message(event) for event in events if event not in failed]
        words = [self._quoted(message.payload) for message in messages if message is not None]
        return f" ({join_clauses([*filter(None, words)], MOST_NAMED)})" if any(words) else ""

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


_LACKING = ", before all of its work was done by the account of the monitor"
_ENDS = {
    "timeout": "The time limit ended the run",
    "stopped": "The run was stopped",
    "error": "The run ended with an error",
}
