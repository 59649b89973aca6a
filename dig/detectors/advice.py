"""The last two of the five answers: the deeds of the monitor, and the next step."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from dig._util.text import counted, cut, join_clauses, name, one_line
from dig.graph.records import base_name
from dig.graph.words import MOST_NAMED, REMARK, action_text, actions_text, moment

from .answers import Grade, InvolvedAgent
from .describe import pattern_title
from .headline import acting_agent
from .involved import Involved
from .tallies import FailedTurns

LOOPS = ("ER", "LOOP", "LIVELOCK")
"""The patterns of agents that go on and on."""

MOST_SPENT = 10**15
"""A sum of a foreign monitor may be any number."""

UNSEEN = "because agents miscounted, which the monitor cannot see"


class Advice(Involved):
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
            deeds.append(f"{when} {deed}" if deeds else f"{when.capitalize()} the monitor {deed}")
        effect, has_helped = self._effect(grade)
        is_whole = self._score.get("complete") is True
        notes = [row.about for row in run.heals.get(REMARK, ()) if isinstance(row.about, Mapping)]
        if any(about.get("pattern") in ("ET", "FAIL") for about in notes) and is_whole:
            effect = f"None of the answer's parts is missing, as its note feared. {effect}"
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
            return "That was not enough: the answer that was accepted is bad.", False
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
            entry = f"`{name(author)}`" if author else "its entry agent"
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
            return "It watched only: an error inside an agent is the agent's own to mend."
        if run.raised and not run.recorded:
            return "It was not there: these findings were made after the run."
        return "It watched only, and changed nothing."

    # --- what to do next ---

    def _next(self, grade: Grade, who: list[InvolvedAgent]) -> tuple[str, str]:
        """The next step, and a command with `RUN` for the path."""
        run = self._run
        if self._waits:
            return self._next_of_wait()
        if grade == "open":
            return "Follow it", "digmon view RUN"
        if self._state == "cut off" and run.finish is None and not self._session:
            return "Let it go on where it stopped", "digmon run --resume RUN"
        if self._cause.get("says"):
            return f"Mend the cause: {self._cause['says']}", "digmon why RUN --try"
        # Only the result of a run of a task has the numbers of its findings.
        has_result = bool(self._tallies and run.recorded) and not self._session
        if self._is_short and "ET" in self._tallies and has_result:
            agent = next(iter(self._tallies["ET"].agents), "the agent")
            says = f"Let `{name(agent)}` wait for {self._awaited_by(agent) or 'all parts'}"
            if {*self._tallies["ET"].open_work} == {agent}:
                says = f"Let `{name(agent)}` use all that is in front of it before it answers"
            for failing in [a for a in self._run.failed if a in self._tallies["ET"].open_work]:
                says = f"Mend `{name(failing)}`, whose turns failed, so that its work gets done"
            for holder, losses in [*self._losses.items()][:1]:
                work = f"{self._lost_text(losses)}, which `{name(holder)}` lost,"
                says = f"Give {work} to another agent; waiting would not help"
            for holder, number in self._count_lost().most_common(1):
                work = f"the {counted(number, 'message')} that `{name(holder)}` had when it left"
                says = f"Give {work} to another agent; waiting would not bring them back"
            says += "; then mend the counting, which stays wrong" if self._mistakes else ""
            return says, "digmon why RUN --good findings.ET==0 --try"
        return (
            self._next_of_answer(who)
            or self._next_of_failure(has_result)
            or self._next_of_healed(grade, has_result)
            or self._next_of_rest(grade)
        )

    def _awaited_by(self, agent: str) -> str:
        """The agents with open work at an early answer of an agent; empty: none but itself."""
        early = self._tallies.get("ET")
        agents = [a for a, _ in early.open_work.most_common(MOST_NAMED)] if early else []
        return join_clauses([f"`{name(other)}`" for other in agents if other != agent])

    def _next_of_wait(self) -> tuple[str, str]:
        agent, turn = name(self._waits[0][0]), self._waits[0][1]
        question, command = self._question(turn), f"digmon show RUN {shlex.quote(name(turn))}"
        answer = self._run.asks.get(turn, {}).get("answer")
        if question:
            means = f" ({one_line(answer)})" if isinstance(answer, str) else ""
            first = "Answer" if self._waiting else "Ask again, and answer"
            return f"{first} `{agent}`, which asks {question}{means}; its turn", command
        first = "Give" if self._waiting else "Ask again, and give"
        is_private = self._private and self._run.asks.get(turn)
        why = "its question is left out" if is_private else "no question is recorded"
        says = f"{first} `{agent}` what it waits for; {why}, so see its input"
        return says, command

    def _next_of_answer(self, involved: list[InvolvedAgent]) -> tuple[str, str] | None:
        """The next step after a wrong answer."""
        worst = self._mistakes[0] if self._mistakes else {}
        counts = worst.get("counts")
        if counts and not self._is_short:
            event, says = next(iter(counts.items()))
            agents = f"`{name(worst['agent'])}`"
            if len(self._mistakes) > 1:
                agents = self._list_miscounting(is_short=True)
            failing = [f"`{agent.agent}`" for agent in involved if agent.agent in self._failing()]
            more = f"; then {join_clauses(failing)}, whose turns failed" if failing else ""
            example = f"`{name(worst['agent'])}` {one_line(says)}"
            text = f"Mend the counting of {agents}{more}. The largest miscount: {example}"
            return text, f"digmon show RUN {shlex.quote(name(event))}"
        if worst.get("origins") and "activation" in worst and not self._is_short:
            turn = shlex.quote(name(worst["activation"]))
            says = f"Let `{name(worst['agent'])}` add the counts of each part once; its sum"
            return f"Do not use the answer. {says}", f"digmon show RUN {turn}"
        if self._score.get("rmse") and not (self._is_short and self._run.limit):
            return "Find the cause", f"digmon why RUN --good score.rmse==0{self._try}"
        return None

    @property
    def _try(self) -> str:
        return " --try" if self._can_try else ""

    def _failing(self) -> dict[str, FailedTurns]:
        """The agents with failed turns and without substitutes."""
        failed = self._run.failed.items()
        return {name(agent): turns for agent, turns in failed if agent not in self._recovered}

    def _next_of_failure(self, has_result: bool) -> tuple[str, str] | None:
        """The next step after a failed turn, or at a limit of a budget."""
        run, origin = self._run, self._origin
        origin = origin if origin and origin.stage == "request" else None
        if self._stopper:
            return self._next_of_called_off(self._stopper)
        if origin and has_result and len(run.failed) == 1:
            agent, turns = next(iter(run.failed.items()))
            if agent in self._injected:
                says = f"The fault of `{name(agent)}` was put in on purpose: see what saves the run"
                return says, f"digmon why RUN{self._try}"
            if turns.number > 1:
                return f"Find out why `{name(agent)}` fails", f"digmon why RUN{self._try}"
        if origin and origin.activation:
            turn = shlex.quote(name(origin.activation))
            failing = acting_agent(run.graph, origin.activation) if run.graph else None
            culprit = f"`{name(failing)}`" if failing else "the agent"
            request = "" if self._private else run.unanswered.get(origin.event, "")
            again = f", then ask “{request}” again" if request and self._session else ""
            return f"Mend {culprit}{again}; its failed turn", f"digmon show RUN {turn}"
        for agent, turns in self._failing().items():
            command = f"digmon show RUN {shlex.quote(name(turns.activation))}"
            is_answered = self._origin and self._origin.stage == "answer"
            if is_answered and run.answer is not None and not self._score:
                says = f"Do not rely on the answer. Mend `{agent}`, and ask again; its failed turn"
                return says, command
            if self._is_mended(turns):
                says = f"Nothing has to be done for this answer. If `{agent}` fails again, mend it"
                return f"{says}; its {'first ' * (turns.number > 1)}failed turn", command
            return f"Mend `{agent}`: see its {'first ' * (turns.number > 1)}failed turn", command
        if run.limit and not self._tallies:
            return self._next_at_limit()
        return None

    def _is_mended(self, turns: FailedTurns) -> bool:
        """Whether a request has its answer, and the agent of failed turns went on after them."""
        run = self._run
        ends = (end for agent, end in run.latest.items() if run.failed.get(agent) is turns)
        is_answered = run.answer is not None and run.counts["answered"] == run.counts["requests"]
        is_whole = not (self._origin or self._is_short or self._mistakes or run.partial)
        return is_answered and is_whole and all(end.error is None for end in ends)

    def _next_of_called_off(self, agent: str) -> tuple[str, str]:
        turn = shlex.quote(name(self._called_off[agent].activation))
        says = f"See why `{name(agent)}` did not come to an end, or give it more time"
        if self._reason(agent):
            says = f"Ask `{name(agent)}` again, if that is still wanted ({self._reason(agent)})"
            return f"{says}; the turn that was called off", f"digmon show RUN {turn}"
        return f"{says}, before you ask again; its turn", f"digmon show RUN {turn}"

    def _next_at_limit(self) -> tuple[str, str]:
        """The next step where a budget stopped the team: more money, or a better last turn."""
        run, origin = self._run, self._origin
        setting = f"`{name(self._limit.get('limit'))} = {name(self._limit.get('most'))}`"
        setting += f" of the budget (`[budget]` or `budget=`) {_enough(self._limit)}".rstrip()
        ended = [agent for agent in self._team if agent in run.latest]
        last = max(ended, key=lambda agent: run.latest[agent].us, default="")
        if origin is None or not last:
            if agent := self._slowest:
                turn = shlex.quote(name(run.longest[agent][1]))
                says = f"Raise {setting}, or make `{name(agent)}` quicker; its longest turn"
                return says, f"digmon show RUN {turn}"
            for agent in self._by_cost[:1]:
                says = f"Raise {setting}, or see what `{name(agent)}` did"
                return says, f"digmon show RUN {shlex.quote(name(agent))}"
            return f"Raise {setting}", "digmon show RUN"
        says = f"Raise {setting}, or let `{name(last)}` answer with what it has"
        if self._rings:
            says = f"Let `{name(last)}` answer with what it has; more would only make it go on"
        turn = shlex.quote(name(run.latest[last].activation))
        return f"{says}; its last turn", f"digmon show RUN {turn}"

    def _next_of_healed(self, grade: Grade, has_result: bool) -> tuple[str, str] | None:
        """The next step after a run with healing."""
        goal = f"findings.{next(iter(self._tallies))}==0" if has_result else ""
        holder = self._holders[0] if self._holders else None
        if not self._run.heals or grade == "bad":
            return None
        if holder and holder.end:
            turn, agent = name(holder.end.activation), name(holder.agent)
            says = f"Nothing must be done. No reason is recorded why `{agent}` let its work lie"
            if holder.agent in self._injected:
                says = f"Nothing must be done: the fault of `{agent}` was put in on purpose, and"
                return f"{says} mended; its turn", f"digmon show RUN {shlex.quote(turn)}"
            return f"{says}; the input of that turn", f"digmon show RUN {shlex.quote(turn)}"
        if not goal or all(agent in self._injected for agent in self._tally_agents()):
            put_in = "the failure was put in on purpose, and it was mended"
            return (f"Nothing must be done: {put_in}.", "") if goal else None
        says = "Nothing must be done. To find the cause of what was healed"
        return says, f"digmon why RUN --good {goal} --try"

    def _tally_agents(self) -> list[str]:
        return [agent for tally in self._tallies.values() for agent in tally.agents]

    def _next_of_rest(self, grade: Grade) -> tuple[str, str]:
        run = self._run
        for ring in [ring for ring in self._rings if self._last_words(ring.agents)][:1]:
            agents = join_clauses([f"`{name(agent)}`" for agent in ring.agents])
            speaker = self._repeating(ring.agents)
            says = f"Give the round of {agents} a way out; a higher limit helps only if it would"
            command = f"digmon show RUN {shlex.quote(name(speaker))}"
            words = self._words_of(speaker) if self._count_said(speaker) > 1 else ""
            see = f"See why `{name(speaker)}` said {words}" if words else ""
            see = see or f"All that `{name(speaker)}` said"
            return f"{says} ever come to an end. {see}", command
        if run.finish and run.finish.outcome == "timeout" and not run.running:
            agents = join_clauses([f"`{name(holder.agent)}`" for holder in self._guilty_holders])
            aim = f"find what frees {agents}" if agents else "find the cause"
            says = f"No agent was at work, so more time would not help: {aim}"
            return says, f"digmon why RUN{self._try}"
        if self._origin and self._origin.activation is None:
            for tally in [self._tallies[loop] for loop in LOOPS if loop in self._tallies]:
                agents = join_clauses([f"`{name(agent)}`" for agent in tally.agents][:MOST_NAMED])
                says = f"Let {agents or 'them'} finish what they hand on"
                command = f"digmon show RUN {shlex.quote(name(tally.event))}".removesuffix(" ''")
                return f"{says}; a higher limit would not help", command
            spoken = self._last_words(self._team)
            if spoken and (talker := self._speaker(spoken)):
                says = f"See why `{name(talker)}` never came to an end, before you raise the limit"
                return says, f"digmon show RUN {shlex.quote(name(spoken.event))}"
            if self._session and len(self._team) == 1:
                says = "See what its model calls are for, before you raise the limit: wrap it with"
                return f"{says} its tools, and ask again", "dig.wrap(agent, tools=True)"
            return "See who went on with what, or raise the limit", "digmon show RUN"
        if self._called_off and not self._tallies:
            return self._next_of_called_off(next(iter(self._called_off)))
        if self._state == "cut off" and run.finish is None and not (run.recorded and self._tallies):
            for turn, start in [*run.running.items()][:1]:
                says = "See how the process ended (its exit code and its log), then ask again"
                command = f"digmon show RUN {shlex.quote(name(turn))}"
                return f"{says}; the turn of `{name(base_name(start.agent))}`", command
            return "See where it stopped", "digmon show RUN"
        early = next(iter(self._tallies["ET"].agents), "") if "ET" in self._tallies else ""
        if self._session and early and (awaited := self._awaited_by(early)):
            agent = next(a for a in self._tallies["ET"].open_work if a != early)
            says = f"Let `{name(early)}` wait for {awaited}; its turns"
            return says, f"digmon show RUN {shlex.quote(name(agent))}"
        if grade in ("bad", "inexact"):
            return "Find the cause", f"digmon why RUN{self._try}"
        if self._tallies:
            return "Look at what was found", "digmon show RUN"
        if run.answer is not None and self._answer_words:
            event = shlex.quote(name(run.answer.event))
            return "Nothing has to be done. The answer in full", f"digmon show RUN {event}"
        return "Nothing has to be done.", ""


def _enough(detail: Mapping[str, Any]) -> str:
    """A round sum above what was spent beyond a limit; empty: what is needed is not known."""
    spent, most = detail.get("spent"), detail.get("most")
    if not (isinstance(spent, int | float) and isinstance(most, int | float)):
        return ""
    if not 0 < most < spent < MOST_SPENT:
        return ""
    digit = 10 ** math.floor(math.log10(1.25 * spent))
    return f"to {math.ceil(1.25 * spent / digit) * digit:,g} or so"
