"""A team that never ends: requests overlap, and all that goes wrong in teams goes wrong here.

Leads split a request among workers and merge what comes back; workers solve, put off, pass on,
drop and fail. An agent is a function of what lies in front of it, so it remembers nothing. All
choices are draws from `dig.runtime.keyed_random`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from dig import Output, Pending
from dig.monitor.policies import Delayed, Expiring, ToAgents
from dig.runtime import Decision, EventFate, NewEvent, Plan, View
from dig.runtime.keyed_random import KeyedRandom

LEADS = ("lead-1", "lead-2", "lead-3")
WORKERS = tuple(f"worker-{n}" for n in range(1, 9))
GUESTS = ("guest-1", "guest-2")  # workers that come and go
PARTS = 3
PATIENCE_S = 120.0  # then a lead answers with what it has


@dataclass(frozen=True)
class Member:
    """Somebody who leads or works."""

    seed: int

    def plan(self, view: View) -> Plan:
        """What it does with what lies in front of it."""
        draws = KeyedRandom(self.seed, view.agent, view.turn)
        think_s = round(1 + 8 * draws.uniform("think"), 3)
        if draws.chance(0.01, "fail"):
            return Plan(think_s, "it had a bad day")
        turn = _Turn(view, draws)
        (turn.lead if view.agent in LEADS else turn.work)()
        if any(output.final for output in turn.outputs):  # an answer stands alone
            turn.outputs = [output for output in turn.outputs if output.final][:1]
            turn.fates = [fate for fate in turn.fates if fate.event in turn.used]
        return Plan(think_s, Decision(fates=turn.fates, outputs=turn.outputs))


class _Turn:
    def __init__(self, view: View, draws: KeyedRandom) -> None:
        self.view, self.draws = view, draws
        self.fates: list[EventFate] = []
        self.outputs: list[NewEvent] = []
        self.used: set[str] = set()  # by an answer

    def lead(self) -> None:
        """Merge what is complete or has waited for long, else split what is new."""
        parts: dict[str, list[Pending]] = defaultdict(list)
        for event in self.view.events:
            if event.final or "part" in _body(event):
                parts[_body(event)["request"]].append(event)
        for request, found in parts.items():
            body = _body(found[-1])
            have = {_body(event).get("part") for event in found}
            is_late = self.view.time_s - body["since"] > PATIENCE_S
            if any(event.final for event in found) and self.draws.chance(0.6, request):
                continue  # it came back: wait for what is missing
            if len(have) >= PARTS or is_late:
                self._submit(request, body["since"], found)
                return
        if self._is_told_to_submit():
            self._submit("?", self.view.time_s, [])
            return
        new = [e for e in self.view.events if e.type in ("problem", "notice") and not _body(e)]
        if any(event.type == "problem" for event in new):  # a notice is news for the next answer
            for event in new:
                self._take_up(event)

    def work(self) -> None:
        """Do something with every event."""
        if self._is_told_to_submit():
            self._submit("?", self.view.time_s, [])
            return
        for i, event in enumerate(self.view.events):
            if event.sender == "system" or "part" not in _body(event):
                self.fates.append(EventFate(event=event.id, fate="consume"))
                continue
            self._treat(event, i)

    def _treat(self, event: Pending, i: int) -> None:
        luck, body = self.draws.uniform("luck", i), _body(event)
        is_old = self.view.time_s - body["since"] > PATIENCE_S
        if luck < 0.08 and not is_old:
            self.fates.append(EventFate(event=event.id, fate="delay"))
        elif luck < 0.14 and not is_old and event.type == "problem":
            other = self.draws.choice((*WORKERS, *GUESTS), "pass on", i)
            self.fates.append(EventFate(event=event.id, fate="reroute", to=[other]))
        elif luck < 0.16 or event.type != "problem":
            self.fates.append(EventFate(event=event.id, fate="discard"))
        else:
            self.fates.append(EventFate(event=event.id, fate="consume"))
            copies = 2 if self.draws.chance(0.03, "twice", i) else 1
            to = [body["lead"]]
            if self.draws.chance(0.03, "tell others", i):
                to.append(self.draws.choice(LEADS, "other", i))
            self.outputs += [NewEvent(payload=body, to=to, type="solution")] * copies

    def _take_up(self, event: Pending) -> None:
        self.fates.append(EventFate(event=event.id, fate="consume"))
        if event.type == "notice":
            return
        if self.draws.chance(0.01, "forgets"):
            return  # nobody will ever answer this, unless it is asked to
        body = {"request": event.id, "since": self.view.time_s, "lead": self.view.agent}
        for part in range(PARTS):
            to = [self.draws.choice((*WORKERS, *GUESTS), "worker", part)]
            if self.draws.chance(0.02, "two workers", part):
                to.append(self.draws.choice(WORKERS, "second", part))
            payload = {**body, "part": part}
            self.outputs.append(NewEvent(payload=payload, to=to, type="problem"))

    def _submit(self, request: str, since: float, found: list[Pending]) -> None:
        self.used = {event.id for event in found}
        self.fates += [EventFate(event=event.id, fate="consume") for event in found]
        answer = {"request": request, "since": since, "parts": len(found)}
        self.outputs.append(NewEvent(payload=answer, type="solution", final=True))

    def _is_told_to_submit(self) -> bool:
        notes = [event for event in self.view.events if event.sender == "system"]
        asked = any("Submit the answer now" in str(event.payload) for event in notes)
        return asked and self.draws.chance(0.4, "submits")


def _body(event: Pending) -> dict[str, Any]:
    return event.payload if isinstance(event.payload, dict) else {}


def team(seed: int) -> dict[str, Member]:
    """Everybody by name; the guests are there from the beginning."""
    return dict.fromkeys((*LEADS, *WORKERS, *GUESTS), Member(seed))


def request(draws: KeyedRandom) -> Output:
    """The next request: for a lead, now and then for nobody, or one that expires."""
    lead = draws.choice(LEADS, "lead")
    if draws.chance(0.02, "to nobody"):
        return Output("a request", ("nobody",), "problem")
    if draws.chance(0.02, "expires"):
        policy = Expiring(Delayed(ToAgents((lead,)), after_s=60.0), after_s=30.0)
        return Output("a request", (), "problem", policy=policy)
    kind = "notice" if draws.chance(0.02, "notice") else "problem"
    return Output("a request", (lead,), kind)
