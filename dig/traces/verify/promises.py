"""What the monitor promises besides the rules of the format; only a journal's word is taken."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from .places import Agent, Event


class Promises:
    """Order for each recipient, the effects and the budget of healing, and the answer."""

    def __init__(self, budget: dict[str, int]) -> None:
        self._budget = budget
        self._findings: dict[int, tuple[str, str]] = {}
        self._healed: set[int] = set()
        self._spent: Counter[str] = Counter()
        self.is_owed: dict[str, Any] | None = None  # the heal row whose effect comes next

    def finding(self, row: dict[str, Any]) -> None:
        """A finding that may be healed."""
        # A healer may take what is about the same subject for different things, by the evidence.
        about = json.dumps([row["subject"], row["evidence"]], sort_keys=True)
        self._findings[row["t"]] = (str(row["pattern"]), f"{row['pattern']} {about}")

    def heal(self, row: dict[str, Any]) -> str | None:
        """An intervention; says what is wrong with it."""
        if row["action"] in ("create", "reroute"):
            self.is_owed = row
        if row["action"] == "refused" or row["finding"] in self._healed:
            return None
        self._healed.add(row["finding"])
        return self._spend(*self._findings[row["finding"]])

    def accepted(self) -> None:
        """In a session, the budget begins anew."""
        self._spent.clear()

    def keep(self, row: dict[str, Any]) -> str | None:
        """The record after an intervention has to be its effect; says if it is not."""
        owed, self.is_owed = self.is_owed or {}, None
        kind = {"create": "emit", "reroute": "redirect"}[owed["action"]]
        if (row["kind"], row.get("event"), row.get("to")) == (kind, owed["event"], owed.get("to")):
            return None
        return f"the `{kind}` of {owed['event']!r} that healing promised is missing"

    def in_order(self, event: Event, to: str, agent: Agent) -> str | None:
        """An event reaches an agent; says which one should have come first."""
        first = next(iter(agent.lane), event.id)
        if event.id not in agent.lane or first == event.id:
            return None
        return f"{event.id!r} reaches {to!r} before {first!r}, which was held first"

    def finish(self, row: dict[str, Any], accepted: tuple[Any] | None) -> str | None:
        """The end; says what is wrong with the answer. `accepted`: what the accepted event has."""
        if row["outcome"] == "submitted" and accepted is None:
            return "the run ends with an answer, but none was accepted"
        answer = payload(row, "answer")
        if answer is not None and (accepted is None or answer != accepted[0]):
            return "the answer is not what the accepted event carries"
        return None

    def _spend(self, pattern: str, subject: str) -> str | None:
        wrong = None
        for what, key in (("per_run", ""), ("per_pattern", pattern), ("per_subject", subject)):
            self._spent[f"{what} {key}"] += 1
            most = self._budget.get(what)
            if most is not None and self._spent[f"{what} {key}"] > most:
                wrong = f"healing goes beyond its budget: {what} is {most}"
        return wrong


def payload(row: dict[str, Any], key: str) -> Any:
    """What a record carries, or the name of the file that has it."""
    return row.get("blobs", {}).get(key, row.get(key))
