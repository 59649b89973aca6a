"""The facts about a failure, in one list: the first cause, further causes, and their effects.

The headline and the next step take the first cause, the steps take all by time, and the third
answer takes all by agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from dig._util.text import counted, cut, join_clauses, name, one_line
from dig.graph.records import base_name
from dig.graph.words import MOST_NAMED, moment

from .answer_facts import AnswerFacts
from .answers import FailureStep, InvolvedAgent
from .describe import pattern_title
from .error_causes import cause_of
from .headline import acting_agent, list_agents
from .holders import Holder
from .patterns import BY_NAME
from .rings import LOOPS, Ring
from .run_so_far import MOST_MESSAGES
from .spending_limits import UNITS
from .tallies import FailedTurns, PatternTally

MOST_STEPS = 6
LONG_US = 5_000_000
"""The length from which on it is told of a failed turn: it may have hung up to a limit."""
SOON_US = 1_000
MOST_SPENT = 10**15
"""A sum of a foreign monitor may be any number."""
PUT_IN = " (a fault put in on purpose)"
OWN_LIMIT = "took longer than "
"""In the error of a turn that a limit of the team has ended."""
Role = Literal["cause", "effect", "harmless"]


class RunFact(NamedTuple):
    """A deed of an agent, or an event in the life of a team.

    Attributes:
        kind: The case that it is: `error` or `lying`, for instance.
        agent: The agent; empty: the team.
        deed: The deed in the answer about agents; empty: it has no place there.
        says: The sentence among the steps; empty: it is no step.
        us: The moment.
        t: The record; 0: not known.
        turn: The activation to look at; empty: not known.
        role: `cause`; `effect`, if the agent was hit; or `harmless`, if its work went on.
    """

    kind: str
    agent: str = ""
    deed: str = ""
    says: str = ""
    us: int = 0
    t: int = 0
    turn: str = ""
    role: Role = "cause"


class FactList(AnswerFacts):
    """Lists the facts about a failure."""

    def list_facts(self) -> None:
        """List all facts: the causes, the first cause first, and then the effects."""
        self._facts = list[RunFact]()
        for find in _CAUSES:
            self._facts += [*find(self)]
        graph, origin = self._run.graph, self._origin
        failing = acting_agent(graph, origin.activation) if graph and origin else None
        if failing and not self._stopper:  # the headline tells of its turn
            self._facts.sort(key=lambda fact: (fact.kind, fact.agent) != ("error", failing))
        for find in _EFFECTS:
            self._facts += [*find(self)]
        for agent, acts in self._injected.items():
            facts = [fact for fact in self._facts if fact.agent == agent and fact.deed]
            act = one_line(acts[0].get("what") or "acted") + PUT_IN
            # A deed of the agent at that moment may have the remark.
            deed = "" if any(PUT_IN in fact.deed for fact in facts) else act
            marked = [f for f in self._facts if PUT_IN in f.says and name(agent) in f.says]
            says = "" if marked else f"{name(agent)}{':' * act.startswith('a ')} {act}"
            us, turn = _act_us(acts[0]) or 0, str(acts[0].get("activation") or "")
            if facts:
                self._facts.append(RunFact("put in", agent, deed, says, us, 0, turn, "effect"))
            elif self._causing and not self._mistakes:  # the others only followed on it
                self._facts.insert(0, RunFact("act", agent, act, says, us, 0, turn))

    @property
    def _root(self) -> RunFact | None:
        """The first cause; ``None``: no agent is at fault."""
        return next((fact for fact in self._facts if fact.deed and fact.role == "cause"), None)

    @property
    def _going_round(self) -> str:
        """The agents that hand on again and again, if they are the first cause; empty: not so."""
        root = self._root
        agents = self._tallies[root.kind].agents if root and root.kind in LOOPS else ()
        return list_agents(agents) if len(agents) > 1 else ""

    @property
    def _causing(self) -> list[str]:
        """The agents at fault, in the order of the causes."""
        causes = (fact.agent for fact in self._facts if fact.deed and fact.role == "cause")
        return [*dict.fromkeys(causes)]

    def _steps(self) -> list[FailureStep]:
        """The facts by time."""
        facts = [fact for fact in self._facts if fact.says]
        # An agent miscounts before it submits, though one record has both.
        facts.sort(key=lambda f: (f.us, f.kind in BY_NAME, f.kind != "miscount", f.t))
        if len(facts) > MOST_STEPS:
            facts = [fact for fact in facts if fact.role != "harmless"]
        steps = [FailureStep(fact.t, fact.us, fact.says) for fact in facts[:MOST_STEPS]]
        if more := len(facts) - len(steps):
            steps[-1] = FailureStep(steps[-1].t, steps[-1].us, f"{steps[-1].says}; and {more} more")
        return steps

    def _who(self) -> list[InvolvedAgent]:
        """The facts by agent: all deeds of an agent at fault, and the first of another agent."""
        rows, causing = list[InvolvedAgent](), self._causing
        for agent in dict.fromkeys([*causing, *(f.agent for f in self._facts if f.deed)]):
            facts = [fact for fact in self._facts if fact.agent == agent and fact.deed]
            put_in = [fact.deed for fact in facts if fact.kind == "put in"]
            deeds = [fact for fact in facts if fact.kind != "put in"]
            causes = [fact for fact in deeds if fact.role == "cause"] or deeds[:1]
            says = join_clauses([*dict.fromkeys(fact.deed for fact in causes)])
            if says.count(PUT_IN) > 1:
                says = says.replace(PUT_IN, "") + PUT_IN
            says = "; ".join([says, *put_in])
            turn = next((fact.turn for fact in causes if fact.turn), "")
            rows.append(InvolvedAgent(name(agent), says, agent in causing, turn))
        return rows

    # --- the causes ---

    def _find_stopped(self) -> Iterator[RunFact]:
        """The agent behind a failed caller."""
        if agent := self._stopper:
            yield self._called_off_fact(agent, f"was called off{self._work_time(agent)}")

    def _find_diagnosed(self) -> Iterator[RunFact]:
        if self._cause.get("agent"):
            yield RunFact("diagnosed", str(self._cause["agent"]), "named by the diagnosis")

    def _find_lost(self) -> Iterator[RunFact]:
        """The departures with work, and the losses of work behind an early answer."""
        yield from (fact for fact in self._find_departures() if self._count_lost()[fact.agent])
        orphaned = {tally.us for tally in self._tallies.values() if tally.loss}
        for agent, losses in self._losses.items():
            us = min(loss.us for loss in losses)
            deed = f"{self._loss_text(losses)}{self._fault(agent, losses[0].us)}"
            is_step = orphaned.isdisjoint(loss.us for loss in losses)
            yield RunFact("lost", agent, deed, f"{name(agent)} {deed}" if is_step else "", us)

    def _find_worst_mistakes(self) -> Iterator[RunFact]:
        return self._find_mistakes([] if self._is_short else self._mistakes[:2])

    def _find_other_mistakes(self) -> Iterator[RunFact]:
        """Further mistakes; where the answer lacks work, all of them."""
        yield from self._find_mistakes(self._mistakes if self._is_short else self._mistakes[2:])
        if self._mistakes:
            yield from self._mistake_steps()

    def _find_mistakes(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[RunFact]:
        for row in rows:
            kind = "double" if row["origins"] else "miscount"
            turn = str(row.get("activation") or "")
            yield RunFact(kind, str(row["agent"]), act_text(row), turn=turn)

    def _mistake_steps(self) -> Iterator[RunFact]:
        """The origins of the mistakes, and the first miscount of the run."""
        origins = [row for n, row in enumerate(self._origins) if row not in self._origins[:n]]
        losses = {tally.us for tally in self._tallies.values() if tally.loss}
        for row in origins:
            if row.get("is_healing") or row["us"] not in losses:  # else the finding tells of it
                says = one_line(row["says"])
                yield RunFact("origin", says=says, us=row["us"], t=row.get("t", 0))
        row, worst = min(self._mistakes, key=_moment), self._mistakes[0]
        says = f"{name(worst['agent'])} {act_text(worst)}"
        if len(self._mistakes) > 1:
            agents = f"{self._list_miscounting(is_short=True)} miscounted"
            at = "" if worst is row else f", at {moment(worst.get('us', 0))}"
            says = f"from here on {agents}, the most{at}: {says}"
        yield RunFact("miscount", says=says, us=row.get("us", 0), t=row.get("t", 0))

    def _find_failures(self) -> Iterator[RunFact]:
        """The failed turns by agent, most first."""
        failures = sorted(self._run.failed.items(), key=lambda item: -item[1].number)
        for agent, failed in failures:
            deed = self._failed(agent, failed)
            error = "" if self._private else f": {failed.error}"
            is_own = failed.awaited or PUT_IN in deed or OWN_LIMIT in failed.error
            cause = None if is_own else cause_of(failed.error, agent)
            why, reason = (f": {cause.says}", f" ({cause.says})") if cause else ("", "")
            words = self._input_text(failed, agent)
            first = ", the first" if failed.number > 1 and words else ""
            says = f"{name(agent)} {deed}{first}{words}{error}{reason}"
            if failed.number > 1:
                says += f" (the latest at {moment(failed.us_latest)})"
            holder = next((holder for holder in self._holders if holder.agent == agent), None)
            says += f", and {holder.says}" if holder else ""
            is_whole = agent in self._recovered
            on = "; its work went on" if is_whole else ""
            yield RunFact(
                "error", agent, f"{deed}{why}{on}", says + on, failed.us, failed.t,
                failed.activation, "harmless" if is_whole else "cause",
            )  # fmt: skip

    def _failed(self, agent: str, failed: FailedTurns) -> str:
        turns = self._run.turns[agent]
        text = "failed" + (f" {failed.number:,} of {turns:,} turns" if turns > 1 else "")
        latest = self._run.latest.get(agent)
        if 1 < failed.number < turns and latest is not None and latest.error is None:
            text += " (the latest went well)"
        if (failed.us_worked or 0) >= LONG_US:
            text += f", {'the first ' * (failed.number > 1)}after {moment(failed.us_worked or 0)}"
        acts = self._injected.get(agent, ())
        is_act = any(act.get("activation") == failed.activation for act in acts)
        return text + (PUT_IN if is_act else self._fault(agent, failed.us))

    def _find_missing_branches(self) -> Iterator[RunFact]:
        """The dropped handoffs, and the joins without a turn."""
        if "ET" in self._tallies:
            for agent, to in self._run.dropped.items():
                yield RunFact("handoff", agent, f"handed over to {to}, too, which was dropped")
            for agent, awaited in self._run.headlines.awaited.items():
                agents = cut(awaited, most=MOST_NAMED)
                yield RunFact("join", agent, f"never ran, since it waited for {agents}")

    def _find_by_time(self) -> Iterator[RunFact]:
        """The findings, departures and work left lying, by time; a fault put in comes first."""
        going = (fact for fact in self._find_departures() if not self._count_lost()[fact.agent])
        facts = [*self._find_lying(), *self._find_findings(), *going]
        return iter(sorted(facts, key=lambda f: (f.agent not in self._injected, f.us)))

    def _find_lying(self) -> Iterator[RunFact]:
        """The agents with work in front of them; some of them wait for others."""
        # An agent in the middle of a turn has not left its work lying.
        for holder in [holder for holder in self._holders if holder.agent not in self._working]:
            end, agent = holder.end, holder.agent
            is_step = end and agent not in self._run.failed
            yield RunFact(
                "lying", agent, since_text(holder),
                f"{name(agent)} {holder.says}" if is_step else "",
                end.us if end else 0, end.t if end else 0, end.activation if end else "",
                "effect" if holder.waits_for else "cause",
            )  # fmt: skip

    def _find_findings(self) -> Iterator[RunFact]:
        """A step for each pattern, and the agents behind it."""
        for pattern, tally in self._tallies.items():
            if pattern == "STALL" and tally.turn in self._run.running:
                yield self._stalled(tally)
                continue
            faults = (self._fault(agent, tally.us) for agent in tally.agents if tally.loss)
            says = self._tally_text(pattern, tally, next(filter(None, faults), ""))
            yield RunFact(pattern, says=says, us=tally.us, t=tally.t)
            row = BY_NAME.get(pattern)
            role = row.role if row else f"is named by {name(pattern)}"
            agents, turn = tally.agents, tally.turn
            if pattern == "VOID" and not agents and (author := self._author):
                agents, turn = Counter([self._speaker(author)]), str(author.by)
            for agent, number in agents.most_common(MOST_NAMED):
                if pattern == "ER":  # a finding tells of many
                    number = self._run.handed_on[agent] or number
                times = f" {number:,} times" if number > 1 else ""
                deed = f"{role}{times}{self._fault(agent, tally.us)}"
                deed += self._answer_basis * (pattern == "VOID" and bool(self._run.void))
                if not role.startswith("waits"):
                    # To be the last at work is no fault.
                    part: Role = "effect" if pattern == "MC" else "cause"
                    yield RunFact(pattern, agent, deed, us=tally.us, turn=turn, role=part)
            if (keeper := tally.keeper) and (end := keeper.end):
                deed = f"took {counted(keeper.number, 'message')} and sent nothing on"
                deed += self._fault(keeper.agent, end.us)
                says = f"{name(keeper.agent)} {deed}"
                yield RunFact("kept", keeper.agent, deed, says, end.us, end.t, end.activation)

    def _stalled(self, tally: PatternTally) -> RunFact:
        """A turn that goes on far too long: a cause that stands at its beginning."""
        start = self._run.running[tally.turn]
        agent = base_name(start.agent)
        inputs = [e.id for a in self._activations() if a.id == tally.turn for e in a.inputs]
        messages = [message for event in inputs if (message := self._run.message(event))]
        words = self._quoted(messages[-1].payload) if messages else ""
        length = moment(self._run.us - start.us)
        says = f"{name(agent)} began a turn{f' on {words}' * bool(words)}, and was still at it "
        says += f"{length} later, far longer than usual: {pattern_title('STALL')}"
        deed = f"was still at work {length} after it began, far longer than usual"
        return RunFact("STALL", agent, deed, says, start.us, start.t, tally.turn)

    def _tally_text(self, pattern: str, tally: PatternTally, fault: str) -> str:
        """A pattern in plain words, with the name and the number of findings behind."""
        times = f", {tally.number:,} times" if tally.number > 1 else ""
        is_apart = tally.loss and times and moment(tally.us_latest) != moment(tally.us)
        times += f" (the latest loss at {moment(tally.us_latest)})" if is_apart else ""
        # A fault that was put in is the reason, whatever a trace has to say.
        loss = f"{tally.loss.partition(', since ')[0] if fault else tally.loss}{fault}"
        origins = (r for r in self._origins if r["us"] == tally.us and not r.get("is_healing"))
        if origin := next(origins, None) if tally.loss else None:
            loss = one_line(origin["says"])
        plain = tally.plain.removeprefix("some work was lost: ") if loss else tally.plain
        return f"{f'{loss}; ' if loss else ''}{plain}: {pattern_title(pattern)}{times}"

    def _find_departures(self) -> Iterator[RunFact]:
        for agent, leave in self._departures.items():
            number = self._count_lost()[agent]
            work = f" with {counted(number, 'message')} to work on" if number else ""
            fault = self._fault(agent, leave.us)
            deed = f"left the team{work}{fault}"
            yield RunFact(
                "left", agent, f"{deed} at {moment(leave.us)}", f"{name(agent)} {deed}",
                leave.us, leave.t, role="cause" if number or fault else "harmless",
            )  # fmt: skip

    # --- the effects, and what is told of a run without a cause ---

    def _find_called_off(self) -> Iterator[RunFact]:
        """The turns called off when a request failed, or without any other fact."""
        is_failed = self._origin and self._origin.activation and self._origin.stage == "request"
        is_alone = not (self._facts or self._origin or self._run.limit)
        for agent in self._called_off if is_failed or is_alone else ():
            number = self._run.called_off[agent]
            turns = f"had {counted(number, 'turn')} called off, the latest"
            deed = f"{turns if number > 1 else 'was called off'}{self._work_time(agent)}"
            fact = self._called_off_fact(agent, deed)
            yield fact if is_alone else fact._replace(says="", role="effect")

    def _called_off_fact(self, agent: str, deed: str) -> RunFact:
        """A called-off turn, with the waiting agents."""
        callers, end = self._run.callers.get(agent, ()), self._called_off[agent]
        text = f"a turn of {name(agent)} was called off{self._work_time(agent)}"
        if (number := self._run.called_off[agent]) > 1:
            text = f"the latest of {number} turns of {name(agent)} that were called off"
        text += f" ({self._reason(agent)})" if self._reason(agent) else ""
        text += f"; {list_agents(callers)} waited for it" if callers else ""
        return RunFact("called off", agent, deed, text, end.us, end.t, end.activation)

    def _find_bystanders(self) -> Iterator[RunFact]:
        """The agents with open work at an early answer, and the waits with an end."""
        early, deeds = self._tallies.get("ET"), dict[str, str]()
        for agent, number in early.open_work.most_common() if early else ():
            work, since = counted(number, "message"), early.at_work.get(agent) if early else None
            deeds[agent] = f"still had {work} to work on"
            if not self._run.turns[agent]:
                deeds[agent] = f"never ran, with {work} in front of it"
            if since is not None:
                deeds[agent] = f"was at work since {moment(since)}, with {work} in front of it"
        yield from self._first_of(deeds)
        for agent, (turn, us) in self._run.waited.items():
            if self._question(turn) and not self._deserted:
                none = "; none came" if agent in self._cut_waits else ""
                says = f"waited {moment(us)} for a person to answer {self._question(turn)}{none}"
                yield RunFact("waited", agent, says, role="effect")

    def _find_limit(self) -> Iterator[RunFact]:
        """The stop at a limit of the budget, and the agents with most expenses."""
        limited, origin, is_alone = self._run.limited, self._origin, not self._causing
        if limited is not None and not (origin and origin.activation):
            limit = self._run.limit.replace(f" at {moment(limited.us)},", "", 1)
            idle = "".join(f"; {agents} never ran" for agents in filter(None, [self._idle]))
            says = f"the team was {limit}{_overspent(limited.detail)}{idle}"
            yield RunFact("limit", says=says, us=limited.us, t=limited.t)
            if agent := self._slowest:
                us, turn, began = self._run.longest[agent]
                says = f"{name(agent)} was at work for {moment(us)} ({turn})"
                yield RunFact("slow", agent, says=says, us=began)
        if is_alone and (self._run.limit or origin) and not self._open_work:
            is_ring = origin and self._rings
            yield from self._take_part(self._rings[0].agents if is_ring else self._by_cost[:2])

    def _find_origin(self) -> Iterator[RunFact]:
        """The end of a request, unless a failed turn was the end; and the author of an answer."""
        graph, origin, limited = self._run.graph, self._origin, self._run.limited
        culprit = acting_agent(graph, origin.activation) if graph and origin else None
        if origin and (culprit not in self._run.failed or origin.stage == "answer"):
            # An error stands in the headline, or in a step of its own.
            is_told = not origin.activation or culprit in self._run.failed
            says = self._origin_says(is_private=self._private or is_told)
            if limited is not None and not self._private:
                # The first half tells of the limit, which has a step of its own.
                message = self._run.message(self._run.headlines.asked_last)
                words = self._quoted(message.payload) if message is not None else ""
                says = origin.says.partition(", and ")[2] or says
                says = says.removesuffix(f", at {moment(origin.us)}")
                says += f": {words}" if words and " but asked " in says else ""
            says = says.removesuffix(f", at {moment(origin.us)}")
            is_spoken = origin.activation or self._rings or limited
            says += "" if is_spoken else self._said_last()
            yield RunFact("end", says=says, us=origin.us, t=origin.t)
        author = self._author or self._run.answer
        if origin and origin.stage == "answer" and (speaker := self._speaker(author)):
            yield RunFact("answered", speaker, "answered all the same", role="effect")

    def _find_waits(self) -> Iterator[RunFact]:
        """The waits for a person to the end, or to the end of the request."""
        for turn, us_waited in [*self._cut_waits.values()][:1]:
            wait = self._run.asks[turn]
            says = f"{self._list_waiting('waited')}; none came in {moment(us_waited)}"
            yield RunFact("wait", says=says, us=wait["us"], t=wait["t"])
            says = "the request was cancelled by the caller"
            yield RunFact("cancelled", says=says, us=self._run.ended_us)
        for activation in self._deserted:
            wait = self._run.asks.get(activation.id, {})
            us = wait.get("us", activation.us_start)
            deed = f"{'waits' if self._waiting else 'waited to the end,'} since {moment(us)}"
            end = "the last record" if self._is_gone else "the end of the session"
            waited = moment(self._run.us - us)
            until = f"{waited} later came {end}" if self._run.us > us else f"that is {end}"
            is_step = activation is self._deserted[0] and not self._waiting
            says = f"{self._list_waiting('waited')}; {until}" if is_step else ""
            yield RunFact(
                "wait", activation.agent, deed, says, us, wait.get("t", 0), activation.id, "effect"
            )

    def _find_unfinished(self) -> Iterator[RunFact]:
        """The agents at work to the end, and the agents without a turn."""
        run, finish = self._run, self._run.finish
        if run.graph is not None and self._is_gone and not self._deserted:
            says = f"when and why the process ended is not recorded; {self._list_working()}"
            yield RunFact("cut off", says=says, us=run.us, t=run.graph.t)
        if finish and finish.outcome == "timeout" and not (run.running or self._holders):
            says = "the last turn ended, and no agent went on"
            yield RunFact("late", says=says, us=run.ended_us)
        deserted = {activation.agent for activation in self._deserted}
        is_over = self._is_gone or (self._session and finish)
        running = run.at_work if is_over else ()
        did = {a: "did not end its turn" for a in running if a not in deserted}
        since = self._working if self._is_gone else {}
        did |= {a: f"was at work since {moment(since[a])}" for a in did if a in since}
        yield from self._first_of(did)
        is_one = not self._session or run.counts["requests"] == 1
        is_left = self._cut_waits or (self._deserted and not self._waiting)
        has_none = not run.counts["answered"] and (self._origin or self._holders or is_left)
        is_bad = is_one and (has_none or run.limit)
        idle = (a for a in self._team if is_bad and not run.turns[a])
        yield from self._first_of(dict.fromkeys(idle, "never ran"))
        for agent, number in self._open_work.items():
            work = f"waits, with {counted(number, 'message')} in front of it"
            yield RunFact("waits", agent, work if number else "waited", role="effect")

    def _find_givers(self) -> Iterator[RunFact]:
        """The handovers of a request to the agents behind a failure."""
        for agent in [*self._causing, *self._called_off] if self._origin else ():
            giver, end = self._run.handed_by.get(agent, ("", None))
            if end and giver and "ER" not in self._tallies:
                text = f"handed over to `{name(agent)}`"
                yield RunFact(
                    "handed", giver, text, f"{name(giver)} {text}", end.us, end.t, role="effect"
                )

    @property
    def _open_work(self) -> Counter[str]:
        """The number of messages in front of each agent in a standstill without holders."""
        waits = [pattern for pattern, row in BY_NAME.items() if row.role.startswith("waits")]
        tallies = [tally for pattern, tally in self._tallies.items() if pattern in waits]
        waiting = [a for tally in tallies if not tally.holders for a in tally.agents]
        finish, work = self._run.finish, self._count_left()
        is_late = finish and finish.outcome == "timeout" and not self._causing
        if waiting:
            return Counter({agent: work[agent] for agent in waiting})
        return work if is_late else Counter()

    def _first_of(self, deeds: Mapping[str, str]) -> Iterator[RunFact]:
        """The first agents with a deed of a kind, and the number of further agents."""
        agents = [agent for agent in deeds if agent not in self._causing]
        most = max(1, MOST_NAMED - len(self._causing))  # a page shows no more rows
        for n, agent in enumerate(agents[:most], 1):
            more = len(agents) - most if n == most else 0
            further = f", like {counted(more, 'more agent')}" if more else ""
            yield RunFact("unfinished", agent, f"{deeds[agent]}{further}", role="effect")

    def _list_working(self) -> str:
        """The agents in the middle of a turn, the agents that waited for these, and the answers."""
        working = self._working.items()
        texts = [f"`{name(agent)}` was at work since {moment(us)}" for agent, us in working]
        callers, answers = self._callers()
        if callers:
            them = "it" if len(texts) == 1 else "them"
            texts.append(f"{list_agents(callers)} waited for {them}")
        if answers:
            texts.append(f"{list_agents(answers)} had answered")
        return cut(texts, most=MOST_NAMED + 1) or "no agent was at work"

    def _find_rings(self) -> Iterator[RunFact]:
        for ring in self._rings:
            words = "" if self._run.limit else self._said_last(ring)
            messages = self._run.messages
            ends = [self._run.latest[agent] for agent in ring.agents if agent in self._run.latest]
            last = max(ends, key=lambda end: end.us, default=self._origin)
            first = next((m for m in messages if self._speaker(m) in ring.agents), None)
            # A ring is the reason of what comes after it, so it stands where it began.
            is_whole = len(messages) < MOST_MESSAGES and first is not None
            start = first if is_whole else last
            says = ring.text()
            if ring.rounds:
                agents = join_clauses([*map(name, ring.agents)])
                says = f"{agents} have gone round {ring.rounds} times"
            says = f"{'from here on ' * is_whole}{says}, without an answer{words}"
            us, t = (start.us, start.t) if start else (self._run.us, 0)
            yield RunFact("ring", says=says, us=us, t=t)

    def _said_last(self, ring: Ring | None = None) -> str:
        """The last words of an agent, of a ring if there is one; empty: not known, or private."""
        speaker = self._repeating(ring.agents if ring else self._team)
        words = self._words_of(speaker)
        return f"; `{name(speaker)}` said {words}" if speaker and words else ""

    @property
    def _by_cost(self) -> list[str]:
        """The agents by the sums behind a limit, or by the time at work; most first."""
        turns_of, spent, kind = self._run.turns, self._run.spent, self._spent_kind
        return sorted(turns_of, key=lambda a: (-spent[a][kind], -turns_of[a], -spent[a]["us"]))

    def _take_part(self, agents: Sequence[str]) -> Iterator[RunFact]:
        """The agents before a limit; of a ring the agent with the most repetitions first."""
        kind = self._spent_kind
        first = self._repeating(agents) if self._rings else ""
        for agent in sorted(agents, key=lambda agent: agent != first):
            turns = self._run.turns[agent]
            says, spent = f"took {counted(turns, 'turn')}", self._run.spent[agent]
            if self._resumed and turns < self._resumed.rounds:
                others = list_agents(other for other in self._resumed.agents if other != agent)
                says = f"asked {others} {self._resumed.rounds} times"
            if kind in ("dollars", "tokens"):
                sums = UNITS[kind].format(spent[kind]) if spent[kind] else "nothing"
                says = f"spent {sums} in {counted(turns, 'turn')}"
            elif kind == "us" and spent[kind]:
                says = f"was at work for {moment(spent[kind])} in {counted(turns, 'turn')}"
            elif words := self._words_of(agent):
                says += f", and said {words}"
            elif spent["us"]:
                says = f"was at work for {moment(spent['us'])} in {counted(turns, 'turn')}"
            yield RunFact("spent", agent, says, role="effect")

    # --- faults that were put in ---

    def _put_in_place(self, agent: str) -> str:
        """The event or the turn of a fault's first act; empty: no fault, or not known."""
        act = self._injected.get(agent, [{}])[0]
        return str(act.get("event") or act.get("activation") or "")

    def _fault(self, agent: str, us: int) -> str:
        """A remark on the deed of an agent at a moment; empty: no fault."""
        moments = map(_act_us, self._injected.get(agent, ()))
        # The effect of an act has a moment of its own, just behind.
        is_act = any(act is None or abs(act - us) <= SOON_US for act in moments)
        return PUT_IN if is_act else ""


_CAUSES: tuple[Callable[[FactList], Iterator[RunFact]], ...] = (
    FactList._find_stopped, FactList._find_diagnosed, FactList._find_worst_mistakes,
    FactList._find_lost, FactList._find_failures, FactList._find_missing_branches,
    FactList._find_by_time, FactList._find_other_mistakes,
)  # fmt: skip
"""The kinds of causes, those that explain most first."""
_EFFECTS: tuple[Callable[[FactList], Iterator[RunFact]], ...] = (
    FactList._find_called_off, FactList._find_bystanders, FactList._find_limit,
    FactList._find_origin, FactList._find_waits, FactList._find_unfinished, FactList._find_givers,
    FactList._find_rings,
)  # fmt: skip


def _moment(row: Mapping[str, Any]) -> tuple[int, int]:
    return row.get("us", 0), row.get("t", 0)


def _act_us(act: Mapping[str, Any]) -> int | None:
    """The moment of a fault's act, in microseconds; ``None``: not known."""
    ts = act.get("ts")
    return round(ts * 1e6) if isinstance(ts, int | float) and 0 <= ts < 1e12 else None


def _overspent(detail: Mapping[str, Any]) -> str:
    """The sum beyond the limit in the incident `budget`; empty: none."""
    try:
        unit, digits = UNITS[detail["limit"]], 1 if detail["limit"] == "seconds" else 2
        spent = unit.format(round(detail["spent"], digits))
        most = detail["most"]
        is_more = MOST_SPENT > detail["spent"] > most and spent != unit.format(most)
        return f" ({spent} spent)" if is_more else ""
    except (KeyError, TypeError, ValueError, ArithmeticError):  # a trace may hold anything
        return ""


def since_text(holder: Holder) -> str:
    """The deed of an agent with waiting work, and the moment."""
    return f"{holder.says} from {moment(holder.end.us)} on" if holder.end else holder.says


def act_text(row: Mapping[str, Any]) -> str:
    """A mistake behind a wrong answer, in words."""
    return one_line(row.get("says") or "made a mistake")
