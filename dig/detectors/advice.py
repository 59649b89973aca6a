"""The last two of the five answers: the deeds of the monitor, and the next step."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from dig._util.text import counted, cut, join_clauses, name, one_line
from dig.graph.records import base_name
from dig.graph.words import MOST_NAMED, REMARK, action_text, actions_text, moment

from .answers import Grade
from .describe import pattern_title
from .error_causes import cause_of
from .headline import MODEL_CALLS, acting_agent, list_agents
from .rings import LOOPS
from .run_facts import MOST_SPENT, FactList
from .tallies import FailedTurns

Step = tuple[str, str]
"""A thing to do, and a command."""

UNSEEN = "because agents miscounted, which the monitor cannot see"


class Advice(FactList):
    """Writes the deeds of the monitor and the effect, and a next step with a command."""

    def _monitor(self, grade: Grade) -> tuple[str, bool | None]:
        run = self._run
        if not run.heals:
            return self._nothing_healed(grade), None
        deeds = list[str]()
        for kind, rows in run.heals.items():
            first, last = moment(rows[0].us), moment(rows[-1].us)
            when = f"at {first}" if first == last else f"from {first} to {last}"
            number, to = run.healed[kind], run.recipients[kind]
            deed = actions_text(kind, number, to, len(self._team))
            if number == 1:
                deed = action_text(rows[0], len(self._team), kind)
            relieved = [a for a, end in run.cancelled.items() if "in its place" in str(end.error)]
            if kind == "reassign" and relieved:
                deed = f"gave the work of {list_agents(relieved)} to {list_agents(to)}"
            deeds.append(f"{when} {deed}" if deeds else f"{when.capitalize()} the monitor {deed}")
        effect, has_helped = self._effect(grade)
        is_whole = self._score.get("complete") is True
        notes = [row.about for row in run.heals.get(REMARK, ()) if isinstance(row.about, Mapping)]
        if any(about.get("pattern") in ("ET", "FAIL") for about in notes) and is_whole:
            effect = f"Its note, that a part may be missing, was needless: none is. {effect}"
        return f"{join_clauses(deeds)}. {effect}", has_helped

    def _effect(self, grade: Grade) -> tuple[str, bool | None]:
        """The effect of the interventions, by the account of a check."""
        run, (number, standing) = self._run, self._run.errors
        harmful = next((row for row in self._origins if row.get("is_healing")), None)
        if harmful and self._mistakes:
            deed = f"at {moment(harmful['us'])} {one_line(harmful['says'])}"
            return f"That did harm: {deed}, and then these counts came in twice.", False
        were = "was" if standing == 1 else "were"
        unmended = f"{standing or 0:,} of the {number:,} errors {were} not"
        if standing is None:
            unmended = "not all errors are known to be"
        elif standing == number:
            unmended = f"none of the {number:,} errors was" if number > 1 else "the error was not"
        if run.came_after and grade != "bad":
            worked = "That worked: an answer was accepted after it"
            return f"{worked}{f', although {unmended} mended' if standing else ''}.", True
        is_whole = self._score.get("complete")
        is_lacking = bool(run.is_early or run.partial or self._origin)
        if isinstance(is_whole, bool):
            is_lacking = not is_whole
        reason = UNSEEN if self._mistakes else "for another reason"
        if run.came_after and not is_lacking and standing == 0:
            return f"What it found was mended; the answer is wrong {reason}.", None
        if run.came_after and is_whole is True:
            early = ", and the accepted answer, too, came too early" if run.is_early else ""
            account = f"By its own account {unmended} mended{early}."
            return f"{account} Yet the answer covers all, and is wrong {reason}.", False
        if run.came_after or run.is_noted or (run.finish and run.finish.outcome == "submitted"):
            lack = "lacks a part" if self._is_short else "is bad"
            return f"That was not enough: the answer that was accepted {lack}.", False
        if run.finish is None and self._state != "cut off":
            return "No answer has come since.", None
        return "That did not help: no answer came after it.", False

    def _nothing_healed(self, grade: Grade) -> str:
        run = self._run
        if run.is_imported:
            skipped = cut([*map(pattern_title, run.skipped)], most=MOST_NAMED)
            unseen = f", which cannot show {skipped}" if skipped else ""
            return f"It was not there: this was read after the run{unseen}."
        if run.limit:
            author = self._speaker(run.answer)
            entry = f"`{name(author)}`" if author in self._team else "its entry agent"
            turn = f"gave {entry} one turn more, which brought what there was"
            last = f", and {turn}" if run.partial else ""
            if self._origin and "handed back no answer" in self._origin.says:
                last = ", and gave its entry agent one turn more, in which no answer came"
            if last and self._score.get("complete"):
                last += ". That worked: the answer is about all parts"
            return f"It {run.limit.replace('stopped', 'stopped the team', 1)}{last}."
        is_alarmed = bool(self._tallies or self._origin or run.failed)
        if self._waiting and not is_alarmed:
            return "It keeps watch, and takes this wait for no failure."
        if not is_alarmed and grade not in ("bad", "inexact"):
            return "Nothing had to be done." if run.finish else "Nothing so far."
        if run.refused:
            return f"Nothing was done: {run.refused}."
        if not self._tallies and run.failed:
            kept = "was ready to heal, and had nothing to do" if self._can_heal else "watched only"
            return f"It {kept}: an error inside an agent is the agent's own to mend."
        if run.raised and not run.recorded:
            return "It was not there: these findings were made after the run."
        if self._can_heal:
            return "It was ready to heal, and found nothing that it could mend."
        return "It watched only, and changed nothing."

    # --- what to do next ---

    def _next(self, grade: Grade) -> tuple[str, str]:
        """The next step of the first fitting case, and a command with `RUN` for the path."""
        self._grade = grade
        kind = self._root.kind if self._root else ""
        first = (Advice._answer_person, Advice._go_on, Advice._replace_void)
        cases = (*first, *_CASES.get(kind, _LACKING), *_REST)
        return next(filter(None, (case(self) for case in cases)))

    # Runs that go on, or that can.

    def _answer_person(self) -> Step | None:
        if not self._waits:
            return None
        agent, turn = name(self._waits[0][0]), self._waits[0][1]
        question, command = self._question(turn), _show(turn)
        answer = self._run.asks.get(turn, {}).get("answer")
        if question:
            means = f" ({one_line(answer)})" if isinstance(answer, str) else ""
            first = "Answer" if self._waiting else "Ask again, and answer"
            return f"{first} `{agent}`, which asks {question}{means}; its turn", command
        first = "Give" if self._waiting else "Ask again, and give"
        is_private = self._private and self._run.asks.get(turn)
        why = "its question is left out" if is_private else "no question is recorded"
        return f"{first} `{agent}` what it waits for; {why}, so see its input", command

    def _go_on(self) -> Step | None:
        says, root = self._cause.get("says"), self._root
        if root and root.turn in self._run.running:
            limit = "give it a limit of time, and ask again"
            ways = limit if self._is_gone else f"if it stays so, cancel that turn, or {limit}"
            says = (
                f"See what `{name(root.agent)}` {'hung' if self._is_gone else 'hangs'} on; {ways}"
            )
            return says, _show(root.turn)
        if self._grade == "open":
            return "Follow it", "digmon view RUN"
        if self._is_gone and not self._session:
            return "Let it go on where it stopped", "digmon run --resume RUN"
        return (f"Mend the cause: {says}", "digmon why RUN --try") if says else None

    # An answer that is none, lacks work, or is wrong.

    def _replace_void(self) -> Step | None:
        """Look at the turn of an empty answer, or of a call in words."""
        author = self._author
        if not (self._run.void and author and author.by):
            return None
        says = f"Do not take it as done. See why `{name(self._speaker(author))}` submitted that"
        return f"{says}, then ask again; its turn", _show(author.by)

    def _give_again(self) -> Step | None:
        """Give work to another agent: work thrown away, or lost with a departure."""
        if not self._is_lacking:
            return None
        for holder, number in self._count_lost().most_common(1):
            work = f"the {counted(number, 'message')} that `{name(holder)}` had when it left"
            says = f"Give {work} to another agent; waiting would not bring them back"
            return self._with_goal(says)
        for holder, losses in self._losses.items():
            work = f"{self._lost_text(losses)}, which `{name(holder)}` lost,"
            return self._with_goal(f"Give {work} to another agent; waiting would not help")
        return None

    def _let_wait(self) -> Step | None:
        root, early = self._root, self._tallies.get("ET")
        if early is None or (root and root.agent in self._injected and root.kind != "ET"):
            return None
        agent = next(iter(early.agents), "the agent")
        agents = [other for other, _ in early.open_work.most_common() if other != agent]
        number = len({*agents, *early.unread} - {agent})
        is_all = MOST_NAMED < number == len(self._team) - 1
        awaited = f"all {number} others" if is_all else list_agents(agents)
        says = f"Let `{name(agent)}` wait for {awaited or 'all parts'}"
        if not self._is_lacking:
            is_left = self._session and agents and root and root.kind == "ET"
            return (f"{says}; its turns", _show(agents[0])) if is_left else None
        if {*early.open_work} == {agent}:
            says = f"Let `{name(agent)}` use all that is in front of it before it answers"
        for failing in [agent for agent in self._run.failed if agent in early.open_work]:
            says = f"Mend `{name(failing)}`, whose turns failed, so that its work gets done"
        return self._with_goal(says)

    def _with_goal(self, says: str) -> Step:
        """The step, and a command to try changes until no answer comes too early."""
        says += "; then mend the counting, which stays wrong" if self._mistakes else ""
        return says, "digmon why RUN --good findings.ET==0 --try"

    @property
    def _is_lacking(self) -> bool:
        return self._is_short and "ET" in self._tallies and self._has_result

    @property
    def _has_result(self) -> bool:
        """Whether the result of a run of a task has the numbers of its findings."""
        return bool(self._tallies and self._run.recorded) and not self._session

    def _mend_counting(self) -> Step | None:
        worst = self._mistakes[0]
        if self._is_short or not worst["counts"]:
            return None
        event, says = next(iter(worst["counts"].items()))
        agents = f"`{name(worst['agent'])}`"
        if len(self._mistakes) > 1:
            agents = self._list_miscounting(is_short=True)
        example = f"`{name(worst['agent'])}` {one_line(says)}"
        text = f"Mend the counting of {agents}. The largest miscount: {example}"
        return text, _show(event)

    def _add_once(self) -> Step | None:
        worst = self._mistakes[0]
        if self._is_short or not worst["origins"] or "activation" not in worst:
            return None
        says = f"Let `{name(worst['agent'])}` add the counts of each part once; its sum"
        return f"Do not use the answer. {says}", _show(worst["activation"])

    def _find_wrong_count(self) -> Step | None:
        if self._score.get("rmse") and not (self._is_short and self._run.limit):
            return "Find the cause", f"digmon why RUN --good score.rmse==0{self._try}"
        return None

    @property
    def _try(self) -> str:
        return " --try" if self._can_try else ""

    # Turns that failed, or were called off.

    def _see_put_in(self) -> Step | None:
        root = self._root
        if root is None or root.agent not in self._injected:
            return None
        fault = f"the fault of `{name(root.agent)}` was put in on purpose"
        says = f"Do not use the answer: {fault}"
        _, _, lack = str(self._score.get("says") or "").rstrip(".").rpartition("; ")
        if self._is_short and lack and not self._mistakes:
            says = f"Do not use the answer as a whole: {one_line(lack)}; {fault}"
        if self._grade == "good":
            mended = ", and mended" if self._run.heals else ""
            says = f"Nothing must be done: {fault}{mended}"
        elif not self._run.counts["answered"]:
            says = f"Run it again without {fault.replace(' was put', ', which was put')}"
        return f"{says}; where it acted", _show(
            self._put_in_place(root.agent) or root.turn or root.agent
        )

    def _mend(self) -> Step | None:
        """Mend the agent behind a failed request, or else the agent with most failed turns."""
        run, root, origin = self._run, self._root, self._origin
        if origin and origin.activation and origin.stage == "request":
            failing = acting_agent(run.graph, origin.activation) if run.graph else None
            culprit = f"`{name(failing)}`" if failing else "the agent"
            tool = origin.error.partition("Error running tool ")[2].partition(":")[0]
            culprit = f"the tool `{name(tool)}` of {culprit}" if tool else culprit
            request = "" if self._private else run.unanswered.get(origin.event, "")
            again = f", then ask “{request}” again" if request and self._session else ""
            says = _cure(failing or "", origin.error, culprit)
            again = "" if "ask again" in says.lower() else again
            return f"{says}{again}; its failed turn", _show(origin.activation)
        if root is None or root.kind != "error":
            return None
        turns, agent = run.failed[root.agent], f"`{name(root.agent)}`"
        first, command = "first " * (turns.number > 1), _show(root.turn)
        is_answered = self._origin and self._origin.stage == "answer"
        if is_answered and run.answer is not None and not self._score:
            says = f"The answer lacks the work of {agent}: do not rely on that part."
            cure = _cure(root.agent, turns.error)
            again = "" if "ask again" in cure.lower() else ", and ask again"
            return f"{says} {cure}{again}; its failed turn", command
        if self._is_mended(turns):
            cause = cause_of(turns.error, root.agent)
            cure = f"If it comes often, {cause.lasting}" if cause else ""
            says = cure or f"If {agent} fails again, mend it"
            says = f"Nothing has to be done for this answer. {says}"
            return f"{says}; its {first}failed turn", command
        return f"{_cure(root.agent, turns.error)}: see its {first}failed turn", command

    def _is_mended(self, turns: FailedTurns) -> bool:
        """Whether a request has its answer, and the agent of failed turns went on after them."""
        run = self._run
        ends = (end for agent, end in run.latest.items() if run.failed.get(agent) is turns)
        number = run.counts["answered"] + run.counts["again"]
        is_answered = run.answer is not None and number == run.counts["requests"]
        is_whole = not (self._origin or self._is_short or self._mistakes or run.partial)
        return is_answered and is_whole and all(end.error is None for end in ends)

    def _ask_again(self) -> Step | None:
        agent = self._stopper or next(iter(self._called_off), "")
        if not agent or (self._tallies and not self._stopper):
            return None
        says = f"See why `{name(agent)}` did not come to an end, or give it more time"
        command = _show(self._called_off[agent].activation)
        if self._reason(agent):
            says = f"Ask `{name(agent)}` again, if that is still wanted ({self._reason(agent)})"
            return f"{says}; the turn that was called off", command
        return f"{says}, before you ask again; its turn", command

    # Limits, rings and standstills.

    def _raise_limit(self) -> Step | None:
        """More money, or a better last turn."""
        run = self._run
        if not run.limit or self._tallies:
            return None
        setting = f"`{name(self._limit.get('limit'))} = {name(self._limit.get('most'))}`"
        setting += f" of the budget (`[budget]` or `budget=`) {_enough(self._limit)}".rstrip()
        ended = [agent for agent in self._team if agent in run.latest]
        last = max(ended, key=lambda agent: run.latest[agent].us, default="")
        if self._origin and last:
            says = f"Raise {setting}, or let `{name(last)}` answer with what it has"
            if self._rings:
                says = f"Let `{name(last)}` answer with what it has; more would only make it go on"
            return f"{says}; its last turn", _show(run.latest[last].activation)
        if agent := self._slowest:
            says = f"Raise {setting}, or make `{name(agent)}` quicker; its longest turn"
            return says, _show(run.longest[agent][1])
        author = self._speaker(run.answer)
        spoken = self._last_words([agent for agent in self._team if agent != author])
        if self._spent_kind == "turns" and spoken and (agent := self._speaker(spoken)):
            says = f"Raise {setting}, or see why `{name(agent)}` said {self._words_of(agent)}"
            return says, _show(spoken.event)
        for agent in self._by_cost[:1]:
            if agent in run.dearest:
                says = f"Raise {setting}, or see why `{name(agent)}` needed most; its dearest turn"
                return says, _show(run.dearest[agent][1])
            return f"Raise {setting}, or see what `{name(agent)}` did", _show(agent)
        return f"Raise {setting}", "digmon view RUN"

    def _leave_healed(self) -> Step | None:
        """After a run with healing."""
        goal = f"findings.{next(iter(self._tallies))}==0" if self._has_result else ""
        if not self._run.heals or self._grade == "bad":
            return None
        root = self._root
        if root and root.kind == "lying" and root.turn:
            says = f"Nothing must be done. No reason is recorded why `{name(root.agent)}` let its"
            return f"{says} work lie; the input of that turn", _show(root.turn)
        if not goal:
            return None
        says = "Nothing must be done. To find the cause of what was healed"
        return says, f"digmon why RUN --good {goal} --try"

    def _leave_ring(self) -> Step | None:
        for ring in [ring for ring in self._rings if self._last_words(ring.agents)]:
            agents = list_agents(ring.agents)
            speaker = self._repeating(ring.agents)
            says = f"Give the round of {agents} a way out; a higher limit helps only if it would"
            words = self._words_of(speaker) if self._count_said(speaker) > 1 else ""
            see = f"See why `{name(speaker)}` said {words}" if words else ""
            see = see or f"All that `{name(speaker)}` said"
            return f"{says} ever come to an end. {see}", _show(speaker)
        return None

    def _free(self) -> Step | None:
        finish = self._run.finish
        if not (finish and finish.outcome == "timeout") or self._run.running:
            return None
        agents = list_agents([holder.agent for holder in self._guilty_holders])
        aim = f"find what frees {agents}" if agents else "find the cause"
        says = f"No agent was at work, so more time would not help: {aim}"
        return says, f"digmon why RUN{self._try}"

    def _end_talk(self) -> Step | None:
        """At a limit of a framework."""
        if self._origin is None or self._origin.activation is not None:
            return None
        for tally in [self._tallies[loop] for loop in LOOPS if loop in self._tallies]:
            agents = list_agents(tally.agents)
            says = f"Let {agents or 'them'} finish what they hand on; a higher limit would not help"
            return says, _show(tally.event) if tally.event else "digmon view RUN"
        says = "See why `{}` never came to an end, before you raise the limit"
        for agent in [agent for agent in self._by_cost if agent in self._called_off]:
            is_of_calls = self._origin.error.startswith(MODEL_CALLS)
            tools = "; its tools are shown if you wrap it with `tools=True`" * is_of_calls
            turn = self._called_off[agent].activation
            return f"{says.format(name(agent))}{tools}; its turn", _show(turn)
        spoken = self._last_words(self._team)
        if spoken and (talker := self._speaker(spoken)):
            return says.format(name(talker)), _show(spoken.event)
        for agent in self._by_cost[:1]:
            return says.format(name(agent)), _show(agent)
        return "See who went on with what, or raise the limit", "digmon view RUN"

    def _see_log(self) -> Step | None:
        run = self._run
        is_cut = self._state == "cut off" and run.finish is None
        if not is_cut or (run.recorded and self._tallies):
            return None
        for turn, start in run.running.items():
            says = "See how the process ended (its exit code and its log), then ask again"
            return f"{says}; the turn of `{name(base_name(start.agent))}`", _show(turn)
        last = max(run.latest.values(), key=lambda end: end.us, default=None)
        return "See where it stopped", _show(last.activation) if last else "digmon view RUN"

    # The rest.

    def _look(self) -> Step:
        run = self._run
        if self._grade in ("bad", "inexact"):
            return "Find the cause", f"digmon why RUN{self._try}"
        if root := self._root:
            start = "Nothing has to be done for the answer. " if self._grade == "good" else ""
            says = f"{start}See why `{name(root.agent)}` {root.deed}"
            if (agents := self._going_round) and (event := self._tallies[root.kind].event):
                says = f"{start}Say in the prompts of {agents} who does such work; the way it took"
                return says, _show(event)
            return says, _show(root.turn or root.agent)
        if run.answer is not None and self._answer_words:
            more = "The answer in full" if "..." in self._answer_words else "What it was made from"
            return f"Nothing has to be done. {more}", _show((self._author or run.answer).event)
        return "Nothing has to be done.", ""


Case = Callable[[Advice], Step | None]
_LACKING = (
    Advice._give_again, Advice._let_wait, Advice._see_put_in, Advice._find_wrong_count,
)  # fmt: skip
_CASES: Mapping[str, tuple[Case, ...]] = {
    "double": (Advice._add_once, Advice._find_wrong_count),
    "miscount": (Advice._mend_counting, Advice._find_wrong_count),
    "called off": (Advice._ask_again,),
}  # fmt: skip
"""By kind of the first cause: the next steps, the most specific first."""
_REST: tuple[Case, ...] = (
    Advice._mend, Advice._raise_limit, Advice._leave_healed,
    Advice._leave_ring, Advice._free,
    Advice._end_talk, Advice._ask_again, Advice._see_log, Advice._look,
)  # fmt: skip


def _show(place: object) -> str:
    """The command for a turn, an event or an agent."""
    return f"digmon show RUN {shlex.quote(name(place))}"


def _cure(agent: str, error: str, culprit: str = "") -> str:
    """The cure of an error: a remedy outside the team, or else to mend the culprit."""
    cause = cause_of(error, agent)
    return cause.remedy if cause else f"Mend {culprit or f'`{name(agent)}`'}"


def _enough(detail: Mapping[str, Any]) -> str:
    """A round sum above what was spent beyond a limit; empty: what is needed is not known."""
    spent, most = detail.get("spent"), detail.get("most")
    if not (isinstance(spent, int | float) and isinstance(most, int | float)):
        return ""
    if not 0 < most < spent < MOST_SPENT:
        return ""
    digit = 10 ** math.floor(math.log10(1.25 * spent))
    return f"to {math.ceil(1.25 * spent / digit) * digit:,g} or so"
