"""A thread that keeps time for a session, and watches over the monitor.

The team's event loop is not ours: there may be none when nothing happens, and it stands still
while a detector does not return. So findings about absence are raised by a thread, which also
reports an activation that takes longer than its limit, and a step that does not come back.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from threading import Event, Thread
from typing import TYPE_CHECKING

from .entrance import Entrance

if TYPE_CHECKING:
    from .steps import Steps

HANGS_S = 5.0
"""After how many seconds a step is reported that has not come back."""

logger = logging.getLogger("dig.wrap")


class Timekeeper:
    """Keeps time while there is something to keep; a daemon that no program waits for.

    Attributes:
        hanging: How many steps were found not to come back for `HANGS_S`.
        long_turns: How many activations were reported to take too long.
    """

    def __init__(self, steps: Steps, entrance: Entrance, hangs_s: float = HANGS_S) -> None:
        """Begin without a thread; the session starts it with its first turn or request."""
        self._steps = steps
        self._entrance = entrance
        self._hangs_s = hangs_s
        self._moved = Event()
        self._due: float | None = None
        self._thread: Thread | None = None
        self._is_stopped = False
        self._reported = 0
        self._late: set[str] = set()  # activations that were reported
        self.hanging = 0
        self.long_turns = 0

    def start(self) -> None:
        """Keep time from now on; twice does no harm."""
        if self._thread is None and not self._is_stopped:
            self._thread = Thread(target=self._keep, name="dig timekeeper", daemon=True)
            self._thread.start()

    def set(self) -> None:
        """Wake up, if there is something to do before the alarm that is set."""
        due = self._steps.next_deadline()
        if due is not None and (self._due is None or due < self._due):
            self._moved.set()

    def stop(self) -> None:
        """Be done; a thread that is in the middle of something finishes that."""
        self._is_stopped = True
        self._moved.set()

    def _keep(self) -> None:
        while not self._is_stopped:
            self._moved.clear()
            self._moved.wait(self._nap_s())
            if self._is_stopped:
                return
            if not self._watch():
                self._steps.step(self._tick, otherwise=None, patience_s=self._hangs_s)

    def _nap_s(self) -> float:
        """Seconds until something is due, or until it is time to see whether a step hangs."""
        due = self._due = self._steps.next_deadline()
        if due is None:
            return self._hangs_s
        return min(max(0.0, due - self._steps.now()), self._hangs_s)

    def _tick(self) -> None:
        self._steps.tick()
        self._report_long_turns()

    def _watch(self) -> bool:
        """Whether somebody is in the monitor and does not come back; says so, once."""
        entrance = self._entrance
        owner, entry = entrance.owner, entrance.entries
        if owner is None or time.monotonic() - entrance.since < self._hangs_s:
            return False
        if entry != self._reported:
            self._reported = entry
            self.hanging += 1
            frame = sys._current_frames().get(owner)
            where = "".join(traceback.format_stack(frame, limit=8)) if frame else ""
            logger.error(
                "dig: a detector, healer, gate or sink has not come back for %g s; the agent "
                "that is waiting for it cannot go on:\n%s", self._hangs_s, where,
            )  # fmt: skip
        return True

    def _report_long_turns(self) -> None:
        monitor = self._steps.monitor
        limit_s = monitor.graph.run.limits.activation_limit_s
        going_on = monitor.graph.activations
        self._late &= going_on.keys()
        for activation in tuple(going_on.values()):
            took_s = self._steps.now() - activation.us_start / 1_000_000
            if took_s >= limit_s and activation.id not in self._late:
                self._late.add(activation.id)
                self.long_turns += 1
                who = {"activation": activation.id, "agent": activation.agent}
                detail = {**who, "limit_s": limit_s}
                self._steps.incident("long activation", detail)
