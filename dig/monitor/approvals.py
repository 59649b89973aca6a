"""Approvals: healing that waits for a person's decision, or for the deadline.

What is held is kept meanwhile, as a gate keeps it; if the finding is about nothing that is held,
the healing alone waits. The team goes on in both cases.
"""

from __future__ import annotations

from typing import NamedTuple

from dig.graph.records import micros

from .gates import Gates
from .healing import Healing
from .holds import Holds
from .messages import Proposed
from .recorder import Recorder

DECIDED = "healing decided"
"""The incident when it was decided whether a finding is healed."""

PERSON, DEADLINE = "person", "deadline"


class _Open(NamedTuple):
    """An open question: the deadline in microseconds, and the event kept meanwhile."""

    proposed: Proposed
    due: int
    event: str | None


class Approvals:
    """The questions to persons in one run.

    Attributes:
        open: The open questions, by the logical time of the finding's record.
    """

    def __init__(
        self, recorder: Recorder, holds: Holds, gates: Gates, healing: Healing, *, can_hold: bool
    ) -> None:
        """Begin without a question.

        Args:
            recorder: Writes the decisions down.
            holds: Knows which events are held.
            gates: Keep held events.
            healing: Carries out what was agreed to.
            can_hold: Whether the host can keep an event while a person decides.
        """
        self._recorder = recorder
        self._holds = holds
        self._gates = gates
        self._healing = healing
        self._can_hold = can_hold
        self.open: dict[int, _Open] = {}

    def ask(self, proposed: Proposed) -> None:
        """Ask a person about healing a finding; keep the event, if it is held."""
        event = proposed.finding.subject.get("event")
        event_kept: str | None = None
        if self._can_hold and isinstance(event, str) and event in self._holds.held:
            state = self._recorder.graph.event(event)
            if state.work or state.final:  # else an agent would wait for it in vain
                event_kept = event
                self._gates.keep_for(proposed, event)
        # At least a microsecond later: the host is to see the question before its deadline.
        due = self._recorder.now + max(1, micros(proposed.seconds))
        self.open[proposed.row] = _Open(proposed, due, event_kept)
        self._recorder.effects.append(proposed)

    def decide(self, row: int, heal: bool, by: str = PERSON) -> None:
        """Heal the finding at record `row`, or leave it; a late decision has no effect."""
        question = self.open.pop(row, None)
        if question is None or self._recorder.is_over:
            return
        pattern = question.proposed.finding.pattern
        detail = {"finding": row, "pattern": pattern, "heal": heal, "by": by}
        self._recorder.incident(DECIDED, detail)
        if question.event is not None:  # before it is sent elsewhere, maybe for later
            self._gates.give_up(question.proposed, question.event)
        if heal:
            self._healing.apply_approved(question.proposed)
        else:
            decider = "a person" if by == PERSON else "the policy, at its deadline,"
            self._healing.refuse(row, f"{decider} decided to leave it")

    def stop_holding(self, event: str) -> None:
        """Stop keeping an event the host no longer waits for; the healing goes on waiting."""
        for row, question in self.open.items():
            if question.event == event:
                self._gates.give_up(question.proposed, event)
                self.open[row] = question._replace(event=None)

    def deadline(self) -> int | None:
        """The next deadline of a question, in microseconds."""
        return min((question.due for question in self.open.values()), default=None)

    def overrule_late(self) -> None:
        """Decide the questions after their deadline."""
        for row, question in sorted(self.open.items(), key=lambda item: item[1].due):
            if question.due <= self._recorder.now:
                self.decide(row, question.proposed.otherwise == "heal", DEADLINE)
