"""Bookkeeping: checks each record by the format and counts; at the end the counts must agree."""

from __future__ import annotations

import json
import os
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

from .places import Locations, TrackedAgent, TrackedEvent, flag, names, optional_text, text
from .trace_lines import MOST_BYTES
from .violations import VerificationReport, refuse

_ASIDE = ("finding", "heal", "incident")
_KINDS = {
    "run", "emit", "deliver", "start", "end", "join", "leave", "redirect", "expire", "finish",
    *_ASIDE,
}  # fmt: skip
"""The kinds of records; `Books` has a method for each, called after it."""


class Books:
    """The bookkeeping of a run, with one method per kind of record."""

    def __init__(self, report: VerificationReport, folder: Path) -> None:
        """Begin with empty books; payloads beside the trace are in `folder`."""
        self.line = 0
        self.places = Locations()
        self._report = report
        self._folder = folder
        self._t, self._us = -1, 0
        self._running: dict[str, tuple[str, list[str]]] = {}  # activation -> agent, inputs
        self._awaited: list[str] = []
        self._emitter, self._sole = "", False
        self._finals: dict[str, Any] = {}  # final event -> its payload
        self._bounced: set[str] = set()
        self._accepted: list[str] = []
        self._findings: set[int] = set()
        self._failed: dict[str, str] = {}  # activation that ended with an error -> agent
        self._is_session = self._is_over = self._is_finished = False
        self._count: Counter[str] = Counter()
        self._promises: Promises | None = None  # a plain trace makes none

    def enter(self, row: dict[str, Any]) -> None:
        """Enter the next record."""
        try:
            kind = row["kind"]
            self._check_order(kind, row)
            if kind not in _KINDS:
                refuse(f"there is no kind {kind!r}")
            # A finding or incident may stand between an intervention and its effect.
            promises = self._promises
            if promises and promises.is_owed and kind not in ("finding", "incident"):
                self._report_rule(promises.keep(row))
            # `kind` is in `_KINDS`, so no other method can be called.
            getattr(self, f"_{kind}")(row)
            if "blobs" in row:
                self._check_blobs(row["blobs"])
        except KeyError as missing:
            refuse(f"the key {missing} is missing")
        except (TypeError, AttributeError, ValueError, OverflowError) as wrong:
            refuse(f"a value is of a wrong type: {wrong}")

    def close(self) -> None:
        """Check the balance of the books at the end of the file."""
        if self._is_finished and self._awaited:
            refuse("the run ended before all outputs were there")
        count = self._count
        work = [event for event in self.places.live.values() if event.work and not event.consumed]
        is_open = [event for event in work if event.copies or event.flight]
        orphaned = [event for event in work if event.cause is not None]
        states = {"open": len(is_open), "consumed": count["consumed"], "orphaned": len(orphaned)}
        self._report.work = states
        if sum(states.values()) != count["work"] or set(is_open) & set(orphaned):
            self._report_rule(f"{count['work']} pieces of work are in these states: {states}")
        buffered = sum(len(agent.buffer) for agent in self.places.agents.values())
        if count["delivered"] != count["taken"] + count["lost"] + buffered:
            self._report_rule(
                f"{count['delivered']} copies were delivered, {count['taken']} taken, "
                f"{count['lost']} lost with their agents, and {buffered} are there"
            )

    def _report_rule(self, broken: str | None) -> None:
        if broken is not None:
            self._report.add(self.line, broken)

    def _check_order(self, kind: str, row: dict[str, Any]) -> None:
        t, ts = row["t"], row["ts"]
        if type(t) is not int or t != self._t + 1:
            refuse(f"`t` is {t!r}, but record {self._t + 1} comes next")
        if (
            type(ts) not in (int, float)
            or abs(ts) > 1e15
            or (us := round(ts * 1_000_000)) < self._us
        ):
            refuse(f"`ts` is {ts!r}, after {self._us / 1_000_000}")
        if (kind == "run") != (t == 0):
            refuse("the first record, and no other, is of kind `run`")
        if self._is_finished:
            refuse("a record follows `finish`")
        if kind not in _ASIDE:
            if self._awaited and not (kind == "emit" and row["event"] == self._awaited[0]):
                refuse(f"output {self._awaited[0]!r} must be emitted first")
            if self._is_over and kind != "finish":
                refuse("something follows an accepted final event")
        self._t, self._us = t, us

    # --- one method per kind of record: `enter` finds it by its name ---

    def _run(self, row: dict[str, Any]) -> None:
        if type(row["version"]) is not int or row["version"] != 1:
            refuse(f"version {row['version']!r} is not known")
        text(row["run"])
        agents = names(row["agents"])
        if "system" in agents or len(set(agents)) != len(agents):
            refuse("two agents have one name, or one is called `system`")
        self.places.agents = {name: TrackedAgent() for name in agents}
        self._is_session, _ = flag(row, "session"), flag(row, "memory")
        edition = row.get("patterns")
        if edition is not None and (type(edition) is not int or edition < 1):
            refuse(f"`patterns` is {edition!r}, and names no edition of the patterns")
        limits = row.get("limits")
        _check_limits({} if limits is None else dict(limits))
        if (usual := row.get("usual")) is not None:
            lists = [usual["runs"], *(n for counts in usual["counts"].values() for n in counts)]
            if any(type(n) is not int or n < 0 for n in lists):
                refuse("`usual` holds a number of runs that is none")
        if self._report.is_journal:
            self._promises = Promises(dict(row.get("journal", {}).get("budget", {})))

    def _emit(self, row: dict[str, Any]) -> None:
        name, by, final = row["event"], row["by"], row["final"]
        if self._awaited:
            if by != self._emitter:
                refuse(f"{name!r} is an output of {self._emitter!r}, not of {by!r}")
            self._awaited.pop(0)
        elif by not in (None, "system"):
            refuse(f"no end of {by!r} names the output {name!r}")
        self.places.use(name, self.places.events)
        if type(final) is not bool or (final and not (by == self._emitter and self._sole)):
            refuse("a final event must be the only output of an activation")
        system, kind = by == "system", text(row["type"])
        work = not (system or final or kind == "notice")
        to, ordered = names(row["to"]), optional_text(row, "policy") is None
        event = self.places.live[name] = TrackedEvent(name, work, final, system)
        self._count["work"] += work
        if final:
            self._finals[name] = payload(row, "payload")
        else:
            self.places.send(event, to, ordered)
        self.places.settle(event, "no_recipient")

    def _deliver(self, row: dict[str, Any]) -> None:
        event, to = self.places.event(row["event"]), row["to"]
        if to is None:
            if not event.final or event.id in self._bounced or event.id in self._accepted:
                refuse(f"{event.id!r} is not final, or was bounced or accepted before")
            self.places.land(event)
            self._accepted.append(event.id)
            self._is_over = not self._is_session
            if self._promises:
                self._promises.renew_budget()
            return
        if to not in event.flight:
            refuse(f"{event.id!r} is not on its way to {to!r}")
        agent = self.places.agents[to]
        if self._promises:
            self._report_rule(self._promises.in_order(event, to, agent))
        agent.lane.pop(event.id, None)
        del event.flight[to], agent.incoming[event.id]
        event.copies[to] = None
        agent.buffer[event.id] = event
        self._count["delivered"] += 1
        if event.final:
            self._bounced.add(event.id)

    def _start(self, row: dict[str, Any]) -> None:
        name, agent = row["agent"], self.places.agent(row["agent"])
        if agent.activation is not None:
            refuse(f"{name!r} is busy with {agent.activation!r}")
        if row["inputs"] != list(agent.buffer):
            refuse(f"`inputs` is not the buffer of {name!r}: {list(agent.buffer)}")
        self.places.use(row["activation"], self.places.activations)
        agent.activation = row["activation"]
        self._running[row["activation"]] = (name, row["inputs"])

    def _end(self, row: dict[str, Any]) -> None:
        if row["activation"] not in self._running:
            refuse(f"{row['activation']!r} is not in progress")
        error = optional_text(row, "error")
        name, inputs = self._running.pop(row["activation"])
        agent = self.places.agents[name]
        agent.activation = None
        self._check_error(row, error, name)
        if type(row["fates"]) is not list:
            refuse("`fates` is no list")
        fates = {fate["event"]: fate for fate in row["fates"]}
        if len(fates) != len(row["fates"]) or not fates.keys() <= set(inputs):
            refuse("an event has two fates, or is no input")
        for event_id in inputs:
            event = agent.buffer[event_id]
            # A system event is used up when it was shown; all else stays until a fate takes it.
            implied = "consume" if event.system else "delay"
            fate = fates.get(event_id, {"fate": implied})
            if fate["fate"] != "delay":
                self._take(name, agent, event, fate)
        self._awaited = list(names(row["outputs"]))
        if len(set(self._awaited)) != len(self._awaited):
            refuse("`outputs` names an event twice")
        for output in self._awaited:
            self.places.check_new(output)
        self._emitter, self._sole = row["activation"], len(self._awaited) == 1

    def _check_error(self, row: dict[str, Any], error: str | None, name: str) -> None:
        because, cancelled = row.get("because"), flag(row, "cancelled")
        if because is not None and self._failed.get(text(because), name) == name:
            refuse(f"`because` is {because!r}, which is no failed activation of another agent")
        reasons = (because is not None) + cancelled
        if reasons > (error is not None):
            refuse("`because` and `cancelled` stand beside `error` only, and not both")
        if error is not None:
            self._failed[row["activation"]] = name

    def _take(
        self, name: str, agent: TrackedAgent, event: TrackedEvent, fate: dict[str, Any]
    ) -> None:
        del agent.buffer[event.id], event.copies[name]
        self._count["taken"] += 1
        if fate["fate"] == "consume":
            self._count["consumed"] += event.work and not event.consumed
            event.consumed, event.cause = True, None
        elif fate["fate"] == "reroute":
            self.places.send(event, names(fate["to"]), ordered=True)
        elif fate["fate"] != "discard":
            refuse(f"there is no fate {fate['fate']!r}")
        self.places.settle(event, "discarded" if fate["fate"] == "discard" else "no_recipient")

    def _join(self, row: dict[str, Any]) -> None:
        name = row["agent"]
        agents = self.places.agents
        if name in agents or type(name) is not str or name == "system":
            refuse(f"{name!r} cannot join")
        agents[name] = TrackedAgent()

    def _leave(self, row: dict[str, Any]) -> None:
        name, agent = row["agent"], self.places.agent(row["agent"])
        del self.places.agents[name]
        if agent.activation is not None:
            del self._running[agent.activation]
        self._count["lost"] += len(agent.buffer)
        for event in {**agent.buffer, **agent.incoming}.values():
            event.copies.pop(name, None)
            event.flight.pop(name, None)
            self.places.settle(event, "left")

    def _redirect(self, row: dict[str, Any]) -> None:
        event = self.places.event(row["event"])
        if event.id in self._accepted:
            refuse(f"{event.id!r} was accepted, and goes nowhere any more")
        self.places.land(event)
        self.places.send(event, names(row["to"]), ordered=False)
        self.places.settle(event, "no_recipient")

    def _expire(self, row: dict[str, Any]) -> None:
        event = self.places.event(row["event"])
        self.places.land(event)
        self.places.settle(event, "expired")

    def _finding(self, row: dict[str, Any]) -> None:
        row["pattern"], row["stage"], row["subject"], row["evidence"]
        self._findings.add(row["t"])
        if self._promises:
            self._promises.finding(row)

    def _heal(self, row: dict[str, Any]) -> None:
        row["action"], row["event"]
        if type(row["finding"]) is not int or row["finding"] not in self._findings:
            refuse("`finding` is no earlier record of that kind")
        if "note" not in row and "reason" not in row:
            raise KeyError("note")
        if self._promises:
            self._report_rule(self._promises.heal(row))

    def _incident(self, row: dict[str, Any]) -> None:
        text(row["what"]), row["detail"]

    def _finish(self, row: dict[str, Any]) -> None:
        outcome = row["outcome"]
        if outcome not in ("submitted", "timeout", "stopped", "error"):
            refuse(f"there is no outcome {outcome!r}")
        self._is_finished, self._report.outcome = True, outcome
        if self._promises and not self._is_session:
            last = (self._finals[self._accepted[-1]],) if self._accepted else None
            self._report_rule(self._promises.finish(row, last))

    def _check_blobs(self, blobs: dict[str, str]) -> None:
        for name in blobs.values():
            if len(name) != 64 or name.strip("0123456789abcdef"):
                refuse("`blobs` names what is no checksum")
            try:
                path = self._folder / "blobs" / f"{name}.json"
                # Links, pipes and devices in the place of the file are refused.
                odd = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
                with open(os.open(path, os.O_RDONLY | odd), "rb") as file:
                    data = file.read(MOST_BYTES + 1)
            except OSError as error:
                self._report_rule(f"the payload {name} cannot be read: {error.strerror}")
                continue
            if sha256(data).hexdigest() != name:
                self._report_rule(f"the payload {name} is damaged")


_SECONDS = {
    "mc_window_s", "oe_window_s", "dl_window_s", "activation_limit_s", "stall_min_s",
    "late_window_s",
}  # fmt: skip
_LEAST = {"reroute_limit": 1, "loop_limit": 2, "livelock_turns": 2, "livelock_agents": 2}


def _check_limits(limits: dict[str, Any]) -> None:
    for name, value in limits.items():
        if value is None:
            continue
        is_number = type(value) in (int, float) and abs(value) <= 1e15
        if name in _SECONDS and not (is_number and round(value * 1_000_000) >= 1):
            refuse(f"`{name}` is no time, or of no length")
        if name == "stall_factor" and not (is_number and value > 0):
            refuse("`stall_factor` is no number above 0")
        if name in _LEAST and (type(value) is not int or value < _LEAST[name]):
            refuse(f"`{name}` is no whole number, or too small")
        if name == "coverage" and type(value) is not bool:
            refuse("`coverage` is not true or false")


# --- what a monitor promises besides the rules ---


_EFFECTS = {
    "create": "emit", "reroute": "redirect", "redeliver": "redirect", "reassign": "redirect",
    "restart": "redirect", "replace": "leave",
}  # fmt: skip
"""The record that has to follow an intervention, by its action."""


_HANDOVERS = ("reassign", "replace", "restart")
"""The actions that give work, or an agent's place, to others."""


class Promises:
    """Order for each recipient, the effects and the budget of healing, and the answer."""

    def __init__(self, budget: dict[str, int]) -> None:
        self._budget = budget
        self._findings: dict[int, tuple[str, str]] = {}
        self._healed: set[tuple[int, float]] = set()  # one finding is healed step by step
        self._handovers: set[tuple[int, float]] = set()
        self._spent: Counter[str] = Counter()
        self.is_owed: dict[str, Any] | None = None  # the heal row whose effect comes next

    def finding(self, row: dict[str, Any]) -> None:
        """Enter a finding; healing may follow."""
        # A healer may take what is about the same subject for different things, by the evidence.
        about = json.dumps([row["subject"], row["evidence"]], sort_keys=True)
        self._findings[row["t"]] = (str(row["pattern"]), f"{row['pattern']} {about}")

    def heal(self, row: dict[str, Any]) -> str | None:
        """Enter an intervention; return a broken rule, if any."""
        if row["action"] in _EFFECTS:
            self.is_owed = row
        step = row["finding"], row["ts"]
        wrong = None
        if row["action"] in _HANDOVERS and step not in self._handovers:
            self._handovers.add(step)
            wrong = self._count("per_problem")
        if row["action"] == "refused" or step in self._healed:
            return wrong
        self._healed.add(step)
        pattern, subject = self._findings[row["finding"]]
        run, kind = self._count("per_run"), self._count("per_pattern", pattern)
        return wrong or self._count("per_subject", subject) or kind or run

    def _count(self, limit: str, key: str = "") -> str | None:
        """Count a step against a limit of the budget; return the broken rule, if any."""
        self._spent[f"{limit} {key}"] += 1
        most = self._budget.get(limit)
        if most is None or self._spent[f"{limit} {key}"] <= most:
            return None
        return f"healing goes beyond its budget: {limit} is {most}"

    def renew_budget(self) -> None:
        """Begin the budget anew, after an answer in a session."""
        self._spent.clear()

    def keep(self, row: dict[str, Any]) -> str | None:
        """Check the record after an intervention, the effect; return the broken rule."""
        owed, self.is_owed = self.is_owed or {}, None
        kind = _EFFECTS[owed["action"]]
        to = [row.get("agent")] if kind == "leave" else row.get("to")
        if (row["kind"], row.get("event"), to) == (kind, owed["event"], owed.get("to")):
            return None
        about = owed["event"] or owed.get("to")
        return f"the `{kind}` of {about!r} that healing promised is missing"

    def in_order(self, event: TrackedEvent, to: str, agent: TrackedAgent) -> str | None:
        """Enter a delivery to an agent; return an error if another event had to come first.

        Args:
            event: The event.
            to: The name of the agent.
            agent: The agent, before the delivery.
        """
        first = next(iter(agent.lane), event.id)
        if event.id not in agent.lane or first == event.id:
            return None
        return f"{event.id!r} reaches {to!r} before {first!r}, which was held first"

    def finish(self, row: dict[str, Any], accepted: tuple[Any] | None) -> str | None:
        """Check the answer at the end against the payload of the `accepted` event."""
        if row["outcome"] == "submitted" and accepted is None:
            return "the run ends with an answer, but none was accepted"
        answer = payload(row, "answer")
        if answer is not None and (accepted is None or answer != accepted[0]):
            return "the answer is not what the accepted event carries"
        return None


def payload(row: dict[str, Any], key: str) -> Any:
    """The payload or answer of a record, or the name of the file with the payload."""
    return row.get("blobs", {}).get(key, row.get(key))
