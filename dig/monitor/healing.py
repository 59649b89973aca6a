"""Healing: asks the healers, keeps to the budget, records the interventions and acts.

Several findings about one event end in one delivery: all their notes go with it, and the first
that reroutes it decides where to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from json import dumps
from typing import Any

from dig.detectors.finding import Finding, bound_evidence, concerned_nodes
from dig.detectors.interventions import (
    BEYOND_NOTES,
    Budget,
    Create,
    Fit,
    Inject,
    Intervention,
    Refuse,
    Replace,
    Reroute,
    action_of,
)
from dig.detectors.ladder import Progress, open_problem
from dig.detectors.notes import MOST_QUOTED, reader, words
from dig.detectors.policy import Extent, Policy
from dig.detectors.protocols import Healer, check
from dig.errors import PART_ERRORS
from dig.graph.records import HealRow, micros
from dig.graph.words import NOTHING_TO_DO

from .holds import Holds
from .ladders import Ladder, Ladders
from .messages import About, Healed, Proposed, TakenOut
from .recorder import FREE_TEXTS, Recorder
from .relevance import Scope
from .sanitize import are_names
from .schedule import DeliverySchedule

IDLE = ("DL", "MC")
"""The patterns of idle teams: a step about them has helped only if a turn had an effect."""

GOING_ROUND = ("LOOP", "LIVELOCK")
"""The patterns of busy teams that come no further: their outputs are no effect of a step."""

REPLACED = "replaced"
"""The incident when healing has taken an agent out of the team."""


class Healing:
    """The healing of one run.

    Attributes:
        ladders: The subjects that have further steps; ``None``: healing has no ladders.
        timed: Those of them that have a moment at which they are looked at.
    """

    def __init__(
        self, recorder: Recorder, holds: Holds, schedule: DeliverySchedule,
        healers: Mapping[str, Healer], budget: Budget, fit: Fit | None, policy: Policy,
        *, ladder: bool = False,
    ) -> None:  # fmt: skip
        """Begin with the whole budget; `dig.monitor.monitor.Monitor` describes the last five."""
        self._recorder = recorder
        self._holds = holds
        self._schedule = schedule
        for healer in healers.values():
            check(healer, Healer)
        self._healers = dict(healers)
        self._preventers = {
            k: v for k, v in healers.items() if type(v).prevent is not Healer.prevent
        }
        self.ladders = Ladders(lambda: recorder.graph.run.limits) if ladder else None
        self.timed = [] if self.ladders is None else self.ladders.timed
        if ladder or any(healer.repeats_problems for healer in healers.values()):
            holds.payloads.keeps_problems = True
        self._budget = budget
        self._fit = fit
        self._policy = policy
        self._spent: Counter[str] = Counter()
        self._refused: set[str] = set()  # what budgets were told to be used up
        self._healed: dict[str, int] = {}  # pattern and subject -> when it was healed last

    def renew_budget(self) -> None:
        """Begin the budget anew, for the next problem of a session."""
        self._spent.clear()
        self._refused.clear()
        self._healed.clear()
        if self.ladders is not None:
            self.ladders.end_answered(self._recorder.graph)

    def restrict(self, fit: Fit) -> None:
        """Ask a further `fit` about each intervention, before the present fit."""
        before = self._fit

        def fit_both(graph: Any, wish: Any) -> tuple[Intervention | None, str | None]:
            possible, reason = fit(graph, wish)
            return (possible, reason) if possible is None or before is None else before(graph, wish)

        self._fit = fit_both

    def awaited_ids(self) -> set[str]:
        """The events and activations of further steps; eviction has to wait for these."""
        return self.ladders.awaited_ids(self._recorder.graph) if self.ladders is not None else set()

    def forget(self) -> None:
        """Have healers forget evicted history."""
        if self.ladders is not None:
            self.ladders.forget(self._recorder.graph)
        for pattern, healer in self._healers.items():
            try:
                healer.forget(self._recorder.graph)
            except PART_ERRORS as error:  # a healer must never be able to stop a team
                self._report(pattern, error)

    def apply_healers(self) -> list[Proposed]:
        """Heal the new findings; findings caused by healing are for the next round.

        Returns:
            The healing about which a person is to decide first.
        """
        findings, self._recorder.new_findings = self._recorder.new_findings, []
        moved: set[str] = set()
        proposed: list[Proposed] = []
        for row, finding in findings:
            if self.ladders is not None and finding.pattern in GOING_ROUND:
                self.ladders.discount(self._agents_of(finding), self._recorder.now)
            healer = self._healers.get(finding.pattern)
            if healer is None or not healer.can_heal(finding):
                continue
            ladder = None
            if self.ladders is not None and type(healer).escalate is not Healer.escalate:
                ladder = self.ladders.open_ladder(row, finding, self._about(finding, healer))
            if ladder and ladder.due is not None and ladder.due > self._recorder.now:
                self.refuse(row, "the step before still has time to help")
            else:
                proposed += self._heal(row, finding, ladder, moved)
        return proposed

    def poll(self) -> None:
        """Look at the effect of earlier steps, where due."""
        if self.ladders is not None:
            self.ladders.poll(self._recorder.now, self._progress)

    def take_steps(self) -> list[Proposed]:
        """Take the next due step about subjects not helped by the steps before.

        Returns:
            The healing about which a person is to decide first.
        """
        proposed: list[Proposed] = []
        for ladder in self.ladders.ripe if self.ladders else ():
            if self._recorder.is_over or not ladder.is_ripe:
                continue
            if ladder.steps < self._budget.per_subject:
                t = self._recorder.graph.t
                proposals = self._heal(ladder.row, ladder.finding, ladder, set())
                proposed += proposals
                if self._recorder.graph.t == t and not proposals:  # a replay has to take it, too
                    self.refuse(ladder.row, NOTHING_TO_DO)
            else:
                ladder.due, ladder.is_ripe = None, False
                self.refuse(ladder.row, f"all {ladder.steps} steps about this were taken")
        return proposed

    def _heal(
        self, row: int, finding: Finding, ladder: Ladder | None, moved: set[str]
    ) -> list[Proposed]:
        """Heal a finding, by the next step if there is a ladder.

        Args:
            row: The logical time of its record.
            finding: The finding.
            ladder: Its ladder; ``None``: there are none.
            moved: The events that were rerouted because of findings at the same moment.

        Returns:
            The healing about which a person is to decide first.
        """
        healer = self._healers[finding.pattern]
        rule = self._policy.ruling(self._recorder.graph, finding)
        extent = self._policy.extent(rule, finding)
        is_step = ladder is not None and ladder.is_ripe
        if ladder:
            ladder.due, ladder.is_ripe = None, False
        if extent == "none":  # before the budget: a finding that is not healed costs nothing
            return []
        reason, is_new = self._spend(finding, healer)
        if reason is not None:
            if is_new or is_step:  # a replay has to take a step, too
                self.refuse(row, reason)
            return []
        wishes = _limit_wishes(self._ask(healer, finding, ladder), extent)
        about, now = self._as_data(finding), self._recorder.now
        scope = self._recorder.relevance.scope(finding)
        proposed: list[Proposed] = []
        if rule is not None and extent == "ask":
            terms = rule.reason_text, rule.deadline_s, rule.otherwise
            proposed += [Proposed(row, finding, wishes, *terms, about)] if wishes else []
            now += micros(rule.deadline_s)  # the step can help only after the decision
        else:
            for wish in wishes:
                if self._is_possible(f"healer of {finding.pattern}", wish):
                    self._carry_out(row, wish, about, moved, scope)
        if ladder and self.ladders is not None:
            self.ladders.wait(ladder, self._progress(ladder, now), now)
        return proposed

    def _progress(self, ladder: Ladder, us: int) -> Progress:
        """The effect of the latest step about a subject, at a moment."""
        assert self.ladders is not None
        finding, step = ladder.finding, self.ladders.step(ladder, us)
        try:
            graph = self._recorder.graph
            progress = self._healers[finding.pattern].progress(graph, finding, step)
        except PART_ERRORS as error:  # a healer must never be able to stop a team
            self._report(finding.pattern, error)
            return "made"
        is_idle = finding.pattern in IDLE and open_problem(graph, finding) is not None
        return self.ladders.judge(ladder, progress, us) if is_idle else progress

    def _agents_of(self, finding: Finding) -> Sequence[str]:
        """The agents that repeat themselves: those of a LIVELOCK, or the sender of a LOOP."""
        if "agents" in finding.evidence:
            agents: Sequence[str] = finding.evidence["agents"]
            return agents
        graph = self._recorder.graph
        return [graph.history.sender(graph.event(finding.subject["event"]).n) or ""]

    def _report(self, pattern: str, error: BaseException) -> None:
        self._recorder.report_component_failure(f"healer of {pattern}", f"raised {error!r}")

    def apply_approved(self, proposed: Proposed) -> None:
        """Carry out an approved proposal, as far as it still makes sense."""
        moved: set[str] = set()
        scope = self._recorder.relevance.scope(proposed.finding)
        for wish in proposed.interventions:
            if self._recorder.is_over:
                return
            reason = self._outdated_reason(wish)
            if reason is not None:
                self.refuse(proposed.row, reason)
            else:
                self._carry_out(proposed.row, wish, proposed.about, moved, scope)

    def apply(self, event: str, interventions: Iterable[Intervention]) -> None:
        """Carry out a gate's decision about an event; without a finding, there is no heal row."""
        for wish in interventions:
            if event not in self._holds.payloads:
                return  # an earlier intervention withheld a notice
            intervention = self._fit_wish(wish)
            if intervention is None:
                continue
            if isinstance(intervention, Create):
                self._holds.emit_notice(intervention.note, intervention.to)
            elif not isinstance(intervention, Refuse | Replace):  # a gate decides about one event
                to = intervention.to if isinstance(intervention, Inject) else None
                self._holds.payloads.add_note(event, intervention.note, to)
                if isinstance(intervention, Reroute):
                    self._send(intervention)

    def add_preventive_notes(self, event: str) -> None:
        """Attach preventive notes to an event before delivery to several agents."""
        for pattern, healer in self._preventers.items():
            if not self._policy.prevents(pattern):
                continue
            try:
                notes = list(healer.prevent(self._recorder.graph, event))
                for note in notes:
                    self.check(note)
                    if not isinstance(note, Inject):
                        raise TypeError(f"{note!r} is more than a note")
            except PART_ERRORS as error:  # a healer must never be able to stop a team
                self._report(pattern, error)
                continue
            for note in (wish for wish in map(self._fit_wish, notes) if isinstance(wish, Inject)):
                detail = {"pattern": pattern, "event": note.event, "to": note.to, "note": note.note}
                self._recorder.incident("prevented", detail)
                self._holds.payloads.add_note(note.event, note.note, note.to)

    def _spend(self, finding: Finding, healer: Healer) -> tuple[str | None, bool]:
        """Take a finding, or a step about it, out of the budget, or return the reason against.

        Returns:
            The reason, and whether it is still to be told: that a budget is used up is told once.
        """
        cooldown_s = healer.cooldown_s
        subject = f"{finding.pattern} {self._about(finding, healer)}"
        now, before = self._recorder.now, self._healed.get(subject)
        if before is not None and now < before + micros(cooldown_s):
            return f"it was healed less than {cooldown_s:g} s ago", True
        limits = {
            "run": self._budget.per_run,
            f"pattern {finding.pattern}": self._budget.per_pattern,
            f"subject {subject}": self._budget.per_subject,
        }
        for limit, most in limits.items():
            if self._spent[limit] >= most:
                is_new = limit not in self._refused
                self._refused.add(limit)
                return f"the budget of {most} for this {limit.split()[0]} is used up", is_new
        # All three are counted together: a refusal by one limit must not use up another.
        self._spent.update(limits.keys())
        self._healed[subject] = now
        return None, True

    def _about(self, finding: Finding, healer: Healer) -> str:
        """The subject of a finding for the budget, as text: equal for equal subjects."""
        about = None
        try:
            about = healer.about(finding)
        except PART_ERRORS as error:  # a healer must never be able to stop a team
            self._report(finding.pattern, error)
        return dumps([finding.subject, about], sort_keys=True, default=repr)

    def _ask(self, healer: Healer, finding: Finding, ladder: Ladder | None) -> list[Intervention]:
        """The interventions of a healer about a finding; with a ladder, of the next step."""
        try:
            interventions = self._step(healer, finding, ladder)
            for intervention in interventions:
                self.check(intervention)
            missing = list(healer.missing_work(finding))[:MOST_QUOTED]
            quotation = words((event, self._holds.payloads.payload(event)) for event in missing)
        except PART_ERRORS as error:  # a healer must never be able to stop a team
            self._report(finding.pattern, error)
            return []
        if ladder and self.ladders:
            self.ladders.took(ladder, interventions, self._recorder.graph.t)
        return [_with_words(intervention, quotation) for intervention in interventions]

    def _step(self, healer: Healer, finding: Finding, ladder: Ladder | None) -> list[Intervention]:
        """The next step about a finding; without a ladder, or at the end, the first response."""
        graph = self._recorder.graph
        if ladder and self.ladders and ladder.steps < self._budget.per_subject:
            ladder.steps, ladder.us_step = ladder.steps + 1, self._recorder.now
            step = self.ladders.step(ladder, self._recorder.now)
            wishes = list(healer.escalate(graph, finding, step))
            if self._is_in_vain(wishes):  # waiting would only delay the first response
                return list(healer.heal(graph, finding))
            is_more = any(action_of(wish) in BEYOND_NOTES for wish in wishes)
            if not is_more or self._spent["problem"] < self._budget.per_problem:
                self._spent["problem"] += is_more
                return wishes
        return list(healer.heal(graph, finding))

    def _is_in_vain(self, wishes: Sequence[Intervention]) -> bool:
        """Whether a step waits for work that may not, or cannot, be given to another agent."""
        moved = [wish for wish in wishes if isinstance(wish, Reroute)]
        reassigned = [wish for wish in moved if wish.action == "reassign"]
        if not reassigned or not any(wish.in_s for wish in moved):
            return False
        fitted = [self._possible(wish)[0] for wish in reassigned]
        return not any(isinstance(wish, Reroute) and wish.action == "reassign" for wish in fitted)

    def check(self, intervention: Intervention) -> None:
        """Check an intervention: the types, and the presence of the event or agent.

        Raises:
            TypeError: The object is no intervention, its note is no text, or its delay no time.
            ValueError: The event does not exist, or is used up.
        """
        if isinstance(intervention, Refuse):
            return
        if not isinstance(intervention, Inject | Reroute | Create | Replace):
            raise TypeError(f"{intervention!r} is no intervention")
        if isinstance(intervention, Replace):
            if intervention.agent not in self._recorder.graph.agents:
                raise ValueError(f"agent {intervention.agent!r:.60} is not present")
            return
        if not isinstance(intervention.note, str):
            raise TypeError(f"the note {intervention.note!r} is no text")
        for_all = isinstance(intervention, Inject) and intervention.to is None
        if not (for_all or are_names(intervention.to)):
            raise TypeError(f"{intervention.to!r} is no list of agents")
        if isinstance(intervention, Reroute) and not 0 <= intervention.in_s < 1e9:
            raise TypeError(f"{intervention.in_s!r} is no number of seconds")
        if not isinstance(intervention, Create) and intervention.event not in self._holds.payloads:
            raise ValueError(f"event {intervention.event!r} does not exist, or is used up")

    def _is_possible(self, component: str, intervention: Intervention) -> bool:
        """Whether an intervention still makes sense after the earlier ones."""
        try:
            self.check(intervention)
        except ValueError as gone:
            self._recorder.report_component_failure(component, str(gone))
            return False
        return not self._recorder.is_over

    def _outdated_reason(self, wish: Intervention) -> str | None:
        """The reason against an intervention after a wait for approval, if any."""
        if isinstance(wish, Create | Refuse):
            return None
        if isinstance(wish, Replace):
            is_there = wish.agent in self._recorder.graph.agents
            return None if is_there else f"agent {wish.agent!r:.60} had left before"
        if wish.event not in self._holds.payloads:
            return f"event {wish.event!r:.60} was used up before a decision was there"
        event = self._recorder.graph.event(wish.event)
        is_gone = event.consumed or bool(event.copies) or self._recorder.graph.is_accepted(event.id)
        if isinstance(wish, Reroute) and wish.action in ("reroute", "redeliver") and is_gone:
            return f"event {wish.event!r:.60} had arrived before a decision was there"
        return None

    def _fit_wish(self, wish: Intervention) -> Intervention | None:
        """The part of an intervention within the host's abilities; a loss becomes an incident."""
        # A healer may quote payloads in its words, and those go into the trace and to agents.
        texts = {name: getattr(wish, name) for name in FREE_TEXTS if hasattr(wish, name)}
        wish = replace(wish, **{name: self._recorder.mask(text) for name, text in texts.items()})
        possible, reason = self._possible(wish)
        if reason is not None and not isinstance(wish, Refuse):
            action = action_of(wish)
            instead = "nothing" if possible is None else action_of(possible)
            detail: dict[str, Any] = {"action": action, "instead": instead, "reason": reason}
            if isinstance(wish, Replace):
                detail["agent"] = wish.agent
            elif not isinstance(wish, Create):
                detail["event"] = wish.event
                if isinstance(possible, Reroute):
                    detail["to"] = possible.to
            self._recorder.incident("downgraded", detail)
        return possible

    def _possible(self, wish: Intervention) -> tuple[Intervention | None, str | None]:
        """The part of an intervention that policy and host allow; if it is less, the reason."""
        action = action_of(wish)
        if action in self._policy.refuse:
            return Refuse(f"the policy refuses the step {action!r}"), None
        if self._fit is None or isinstance(wish, Refuse):
            return wish, None
        return self._fit(self._recorder.graph, wish)

    def _as_data(self, finding: Finding) -> About:
        """The content of a finding's notes, for agents without a reader of words."""
        graph, payloads = self._recorder.graph, self._holds.payloads
        events, agents = concerned_nodes(graph, finding)
        named = bound_evidence({"events": events, "agents": agents})
        states = {name: graph.event(name) for name in named["events"] if name in payloads}
        # A problem keeps its payload when it is consumed, and is no open work then.
        work = {e: payloads.payload(e) for e, state in states.items() if not state.consumed}
        orphans = tuple(event for event in work if states[event].cause is not None)
        return About(
            finding.pattern, tuple(named["events"]), tuple(named["agents"]), work, orphans,
            more="more" in named,
        )  # fmt: skip

    def _carry_out(
        self, row: int, wish: Intervention, about: About, moved: set[str], scope: Scope
    ) -> None:
        """Carry out the part of an intervention within the host's abilities, and write it down.

        Args:
            row: The logical time of its finding's record.
            wish: The intervention.
            about: The subject of its note, as data.
            moved: The events that were rerouted because of the same findings.
            scope: The turns that its note is for.
        """
        fitted = self._fit_wish(wish)
        if fitted is None:
            return
        wish = fitted
        if isinstance(wish, Refuse):
            self.refuse(row, wish.reason)
            return
        if isinstance(wish, Replace):
            self._replace(row, wish)
            return
        if isinstance(wish, Inject):
            event = reader(self._recorder.graph, wish.event)
            if event is None:
                self.refuse(row, "a tool reads no notes, and its caller's turn is over")
                return
            wish = replace(wish, event=event)
        elif wish.without:
            about = replace(about, without=wish.without)
        shown_about = about if wish.note else None  # an agent must not act on data without words
        about_row = shown_about and shown_about.row()
        if isinstance(wish, Create):
            name = self._holds.new_id("e")
            self._write(row, "create", name, wish.to, wish.note, about=about_row)
            self._holds.emit_notice(wish.note, wish.to, name, shown_about, scope)
        elif isinstance(wish, Inject) or wish.event in moved:
            to = wish.to if isinstance(wish, Inject) else None
            self._write(row, "inject", wish.event, to, wish.note, about=about_row)
            self._holds.payloads.add_note(wish.event, wish.note, to, shown_about, scope)
        else:
            self._write(row, wish.action, wish.event, wish.to, wish.note, about=about_row)
            self._holds.payloads.add_note(wish.event, wish.note, None, shown_about, scope)
            self._send(wish)
            moved.add(wish.event)

    def _replace(self, row: int, wish: Replace) -> None:
        """Take an agent out of the team, and let the host know."""
        state = self._recorder.graph.agents[wish.agent]
        activation = None if state.activation is None else state.activation.id
        self._write(row, "replace", None, (wish.agent,), reason=wish.why)
        # After the row, so that what the departure raises comes after its reason in the trace.
        self._schedule.take_out(wish.agent)
        detail = {"agent": wish.agent, "activation": activation, "finding": row, "why": wish.why}
        self._recorder.incident(REPLACED, detail)
        self._recorder.effects.append(TakenOut(wish.agent, activation))

    def _send(self, reroute: Reroute) -> None:
        self._holds.redirect(reroute.event, reroute.to, hold=not reroute.in_s)
        if reroute.in_s:
            self._schedule.schedule(reroute.event, reroute.to, reroute.in_s)

    def refuse(self, row: int, reason: str) -> None:
        """Write down why the finding at record `row` is not healed."""
        self._write(row, "refused", reason=reason)

    def _write(self, finding: int, action: str, *fields: Any, **named: Any) -> None:
        row = HealRow(*self._recorder.moment, finding, action, *fields, **named)
        self._recorder.write(row)
        self._recorder.effects.append(Healed(row))


def _with_words(intervention: Intervention, quotation: str) -> Intervention:
    """Put a quotation before an intervention's note; the request stays at the end."""
    if isinstance(intervention, Refuse | Replace) or not quotation or not intervention.note:
        return intervention
    return replace(intervention, note=quotation + intervention.note)


def _limit_wishes(wishes: list[Intervention], extent: Extent) -> tuple[Intervention, ...]:
    """The part of a healer's wishes within the policy's extent.

    Where it may only give notes, a reroute becomes its note. No system event is made, so that no
    agent is woken, and no agent is taken out.
    """
    if extent != "notes":
        return tuple(wishes)
    return tuple(
        Inject(wish.event, wish.note) if isinstance(wish, Reroute) else wish
        for wish in wishes
        if not isinstance(wish, Create | Replace)
    )
