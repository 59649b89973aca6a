"""An independent account of a run: the checker of traces, and what a healing monitor owes besides.

`dig.traces.verify` is written from the definition of the graph alone, and knows nothing of the
monitor. Here it is shown the records of a run, with all that a journal promises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dig.graph.codec import encode
from dig.traces.verify import VerificationReport
from dig.traces.verify.books import Books
from dig.traces.verify.places import TrackedEvent


@dataclass
class Account:
    """Where everything is at the end of a run, by id, each list in order of generation."""

    undelivered: list[str]
    unconsumed: list[str]
    orphaned: dict[str, str]
    consumed: list[str]
    unfinished: dict[str, str]
    accepted: list[str]
    healed: int


@dataclass
class Allowed:
    """What a run may do. The budget is (run, pattern, subject, problem), as in `Budget`."""

    budget: tuple[int, int, int, int] = (60, 30, 3, 12)
    ladder_us: int | None = None  # the least time between two steps; None: no ladders
    interference: bool = False  # gates, policies, hosts redirect and speak without a finding
    unordered: Callable[[Any], bool] = lambda payload: False  # a policy delays such an event


def conservation(records: Iterable[Any], allowed: Allowed | None = None) -> Account:
    """Assert all that must be true of every finished run, and say where everything is."""
    rows = [json.loads(encode(record)) for record in records]
    assert rows and rows[-1]["kind"] == "finish", "finish is last"
    ledger = _Ledger(allowed or Allowed())
    for row in rows:
        ledger.enter(row)
    return ledger.close()


class _Ledger:
    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self._report = VerificationReport(is_journal=True)
        self._books = Books(self._report, Path())
        self._places = self._books.places
        self._events: dict[str, TrackedEvent | None] = {}  # in order of generation
        self._accepted: list[str] = []
        self._bounced: set[str] = set()  # answers that are on their way back to somebody
        self._healed: dict[int, list[float]] = {}  # by finding, the moments at which it was healed
        self._is_promised = False  # whether the row before was an intervention with an effect

    def enter(self, row: dict[str, Any]) -> None:
        """Enter the next record, in the words of the checker."""
        if row["kind"] not in ("finding", "incident"):
            self._look_for_interference(row)
        enter = getattr(self, f"_{row['kind']}", None)
        if enter is not None:
            enter(row)
        self._books.enter(row)
        if row["kind"] == "emit":
            self._events[row["event"]] = self._places.live.get(row["event"])
        assert not self._report.problems, str(self._report.problems[0])

    def close(self) -> Account:
        """Assert that nothing is missing, and say where everything is."""
        self._books.close()
        assert not self._report.problems, str(self._report.problems[0])
        live = self._places.live
        work = [event for event in self._events.values() if event is not None and event.work]
        return Account(
            [name for name in self._events if name in live and live[name].flight],
            [e.id for e in work if not e.consumed and (e.copies or e.flight)],
            {e.id: e.cause for e in work if e.cause is not None},
            [e.id for e in work if e.consumed],
            {a.activation: name for name, a in self._places.agents.items() if a.activation},
            self._accepted,
            sum(map(len, self._healed.values())),
        )

    def _look_for_interference(self, row: dict[str, Any]) -> None:
        """Only healing redirects, and speaks for the system."""
        is_system = row["kind"] == "emit" and row["by"] == "system"
        if not self._allowed.interference and (is_system or row["kind"] == "redirect"):
            assert self._is_promised, f"no intervention asked for what stands at t={row['t']}"
        self._is_promised = row["kind"] == "heal" and row["action"] != "refused"

    # --- what a monitor owes by a kind of record, and the word that the checker has for it ---

    def _run(self, row: dict[str, Any]) -> None:
        limits = ("per_run", "per_pattern", "per_subject", "per_problem")
        row["journal"] = {"budget": dict(zip(limits, self._allowed.budget, strict=True))}

    def _emit(self, row: dict[str, Any]) -> None:
        is_unordered = self._allowed.unordered(row.get("payload"))
        row["policy"] = "a policy delays it" if is_unordered else None

    def _deliver(self, row: dict[str, Any]) -> None:
        if row["to"] is None:
            assert row["event"] not in self._bounced, "an answer that was sent back is accepted"
            self._accepted.append(row["event"])

    def _redirect(self, row: dict[str, Any]) -> None:
        self._bounced.add(row["event"])

    def _leave(self, row: dict[str, Any]) -> None:
        flights = {name: [*self._places.event(name).flight] for name in self._bounced}
        # Such an answer comes back to nobody any more, so it may be accepted.
        self._bounced -= {name for name, to in flights.items() if to == [row["agent"]]}

    def _finding(self, row: dict[str, Any]) -> None:
        row["evidence"] = row["evidence"].get("waiting")  # other work, another deadlock

    def _heal(self, row: dict[str, Any]) -> None:
        if row["action"] == "refused":
            assert row["reason"] and row["event"] is None
            return
        moments = self._healed.setdefault(row["finding"], [])
        if row["ts"] not in moments:
            least, ladder_us = max(moments, default=None), self._allowed.ladder_us
            if least is not None and ladder_us is not None:
                assert (row["ts"] - least) * 1_000_000 > ladder_us - 1, "a step had no time to help"
            moments.append(row["ts"])
