"""Fourteen kinds of faults that are in no catalogue, for evaluation alone.

    digmon bench make --kind tests.faults.unseen:Truncate ... --out SET

Signs, healing and proposals were made without them, and must stay so: do not look here to improve
those. `DIAGNOSED` are for `digmon why`, `HEALED` for healing; `LATER` were written when both were
finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dig.faults.inject.injector import (
    Injector,
    Occasion,
    OnMessage,
    OnTurn,
    is_solution,
    is_work,
    parts_of,
)
from dig.monitor.messages import Pending
from dig.runtime.agents import Decision, NewEvent, Plan, View


class Truncate(OnMessage):
    """A solution lacks every second of its counts."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """The same solution with half of its counts."""
        counts = _counts(message)
        if len(counts) < 2:
            return [message]
        payload = {**message.payload, "counts": dict([*counts.items()][::2])}
        return self.change_message(message, occasion, "a solution was cut", payload=payload)


class Shift(OnMessage):
    """A solution says that it is about the range after its own."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """The same solution with other ranges."""
        covers = message.payload.get("covers") if isinstance(message.payload, Mapping) else None
        if message.type != "solution" or not covers:
            return [message]
        shifted = [[stop, 2 * stop - start] for start, stop in covers]
        payload = {**message.payload, "covers": shifted}
        return self.change_message(
            message, occasion, "a solution was labelled wrong", payload=payload
        )


class SwapRecipients(OnTurn):
    """Two messages of one decision go to each other's recipients."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """The same decision, with the recipients of its messages in turn."""
        outputs = [output for output in decision.outputs if output.to and not output.final]
        tos = [output.to for output in outputs]
        if len({*map(tuple, tos)}) < 2:
            return decision
        moved = [
            output.model_copy(update={"to": to})
            for output, to in zip(outputs, tos[1:] + tos[:1], strict=True)
        ]
        occasion.add_act("exchanged the recipients", output=moved[0])
        rest = [output for output in decision.outputs if output not in outputs]
        return decision.model_copy(update={"outputs": [*moved, *rest]})


class AskBack(OnTurn):
    """The agent sends the work that it is given back to the agent that sent it, as a question."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """To consume, and to ask."""
        asked = [
            NewEvent(payload={"question": one.payload}, to=[one.sender], type="message")
            for one in view.events
            if is_work(one) and not is_solution(one) and one.sender in view.others
        ]
        if not asked:
            return decision
        occasion.add_act("asked instead of working", output=asked[0])
        return Decision.respond(view).model_copy(update={"outputs": asked})


class _ReadsLess(Injector):
    """The agent does not see some of the events in front of it, and consumes them."""

    def unread(self, view: View) -> Sequence[Pending]:
        """The events that it does not see."""
        return ()

    def change_view(self, view: View, occasion: Occasion) -> View:
        """The view without some events."""
        unread = self.unread(view)
        if not unread or not self.should_act(occasion):
            return view
        occasion.add_act("did not read all events", since_start=True)
        return replace(view, events=tuple(one for one in view.events if one not in unread))

    def change_plan(self, view: View, plan: Plan, occasion: Occasion) -> Plan:
        """The plan, which consumes what was not read."""
        if isinstance(plan.decision, str):
            return plan
        known = {fate.event for fate in plan.decision.fates}
        fates = [f for f in Decision.respond(view).fates if f.event not in known]
        decision = plan.decision.model_copy(update={"fates": [*plan.decision.fates, *fates]})
        return Plan(plan.think_s, decision)


class FirstOnly(_ReadsLess):
    """The agent reads the first of the events in front of it; the others are gone unread."""

    def unread(self, view: View) -> Sequence[Pending]:
        """All work but the first."""
        return [one for one in view.events if is_work(one)][1:]


class Enveloped(OnMessage):
    """A solution is put into an envelope that no other agent opens."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """The same solution, one level deeper."""
        if message.type != "solution":
            return [message]
        what = "a solution was put into an envelope"
        return self.change_message(message, occasion, what, payload={"result": message.payload})


class Mislabel(OnMessage):
    """A solution is called a problem."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """The same message under another type."""
        if message.type != "solution":
            return [message]
        return self.change_message(
            message, occasion, "a solution was called a problem", type="problem"
        )


class LastWins(_ReadsLess):
    """Of several solutions in front of it the agent uses the latest; the others are gone."""

    def unread(self, view: View) -> Sequence[Pending]:
        """All solutions but the latest."""
        return [one for one in view.events if is_solution(one)][:-1]


class Echo(OnTurn):
    """The agent sends the solutions that it is given back to the agents that sent them."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """To consume, and to send back."""
        back = [
            NewEvent(payload=one.payload, to=[one.sender], type="solution")
            for one in view.events
            if is_solution(one) and one.sender in view.others
        ]
        if not back:
            return decision
        occasion.add_act("sent solutions back", output=back[0])
        return Decision.respond(view).model_copy(update={"outputs": back})


class Gap(OnTurn):
    """The agent hands out all parts of a problem but the last."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """The same decision without one part."""
        parts = parts_of(decision)
        if not parts:
            return decision
        occasion.add_act("did not hand out the last part")
        outputs = [output for output in decision.outputs if output is not parts[-1]]
        return decision.model_copy(update={"outputs": outputs})


class Promise(OnTurn):
    """The agent takes work in, and says that it will be done."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """To consume, and to promise."""
        promised = [
            NewEvent(payload={"text": "It will be done."}, to=[one.sender], type="message")
            for one in view.events
            if is_work(one) and not is_solution(one) and one.sender in view.others
        ]
        if not promised:
            return decision
        occasion.add_act("promised instead of working", output=promised[0])
        return Decision.respond(view).model_copy(update={"outputs": promised})


class Blank(OnMessage):
    """A solution says nothing."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """The same message with an empty object in it."""
        if message.type != "solution":
            return [message]
        return self.change_message(message, occasion, "a solution was blank", payload={})


class NoRange(OnMessage):
    """A solution does not say what it is about."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """The same solution with an empty list of ranges."""
        if not _counts(message) or not message.payload.get("covers"):
            return [message]
        payload = {**message.payload, "covers": []}
        return self.change_message(message, occasion, "a solution lost its range", payload=payload)


class SamePart(OnTurn):
    """The agent hands out the first part of a problem in place of each of its parts."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """The same decision with one payload in all parts."""
        parts = parts_of(decision)
        if not parts:
            return decision
        same = [part.model_copy(update={"payload": parts[0].payload}) for part in parts]
        occasion.add_act("handed out one part as all", output=same[1])
        rest = [output for output in decision.outputs if output not in parts]
        return decision.model_copy(update={"outputs": [*same, *rest]})


def _counts(message: NewEvent) -> dict[str, Any]:
    payload = message.payload
    counts = payload.get("counts") if isinstance(payload, Mapping) else None
    is_one = message.type == "solution" and isinstance(counts, dict)
    return counts if is_one and counts else {}


DIAGNOSED = (Truncate, Shift, SwapRecipients, AskBack, FirstOnly)
HEALED = (Enveloped, Mislabel, LastWins, Echo, Gap)
LATER = (Promise, Blank, NoRange, SamePart)
