"""A thread to tick a session's monitor on time, and to report hanging steps.

The event loop belongs to the team: there may be none when nothing happens, and the loop stands
still while a detector does not return. So findings about absence are raised by a thread, which also
reports an activation that takes longer than its limit, and a step that does not come back.
"""

from __future__ import annotations

import sys
import time
import traceback
from threading import Event, Thread

from dig._util.redaction import masking_logger

from .guard import Guard

LONG_ACTIVATION = "long activation"
"""The incident of an activation that takes longer than its limit."""

HANGS_S = 5.0
"""The duration after which a step counts as hanging, in seconds."""

logger = masking_logger("dig.wrap")


class Watchdog:
    """Keeps time while turns or requests are open, in a daemon thread.

    Attributes:
        hanging: The number of steps that did not come back for `HANGS_S`.
        long_turns: The number of activations that took longer than their limit.
    """

    def __init__(self, guard: Guard, *, is_used: bool) -> None:
        """Begin without a thread; the session starts the thread with the first turn or request."""
        self._guard = guard
        self._hangs_s = HANGS_S
        self._moved = Event()  # set when the thread shall look again
        self._due: float | None = None
        self._thread: Thread | None = None
        self._is_stopped = not is_used
        self._reported = 0
        self._late: set[str] = set()  # activations that were reported
        self.hanging = 0
        self.long_turns = 0

    def start(self) -> None:
        """Start the thread; a second call does nothing."""
        if self._thread is None and not self._is_stopped:
            self._thread = Thread(target=self._keep, name="dig watchdog", daemon=True)
            self._thread.start()

    def use(self) -> None:
        """Start the thread, although the session was made without."""
        self._is_stopped = False
        self.start()

    def wake(self) -> None:
        """Wake the thread, if a deadline comes before the thread would wake by itself."""
        due = None if self._is_stopped else self._guard.due
        if due is not None and (self._due is None or due < self._due):
            self._moved.set()

    def stop(self) -> None:
        """Stop the thread, after the current step."""
        self._is_stopped = True
        self._moved.set()

    def _keep(self) -> None:
        while not self._is_stopped:
            self._moved.clear()  # before the deadline is read, or a change of it would be missed
            due = self._due = self._guard.due
            sleep_s = self._hangs_s if due is None else max(0.0, due - self._guard.now())
            self._moved.wait(min(sleep_s, self._hangs_s))
            if self._is_stopped:
                return
            if not self._hangs():
                self._guard.run(self._tick, default=None, timeout_s=self._hangs_s)

    def _hangs(self) -> bool:
        """Whether a thread is in the monitor and does not come back; reports each step once."""
        lock = self._guard.lock
        owner, entry = lock.owner, lock.entries
        if owner is None or time.monotonic() - lock.since < self._hangs_s:
            return False
        if entry != self._reported:
            self._reported = entry
            self.hanging += 1
            frame = sys._current_frames().get(owner)
            stack = "".join(traceback.format_stack(frame, limit=8)) if frame else ""
            logger.error(
                "dig: a detector, healer, gate or sink has not come back for %g s; the agent "
                "that is waiting for it cannot go on:\n%s", self._hangs_s, stack,
            )  # fmt: skip
        return True

    def _tick(self) -> None:
        self._guard.tick()
        graph = self._guard.monitor.graph
        limit_s = graph.run.limits.activation_limit_s
        self._late &= graph.activations.keys()
        for activation in tuple(graph.activations.values()):
            lasts_s = self._guard.now() - activation.us_start / 1_000_000
            if lasts_s >= limit_s and activation.id not in self._late:
                self._late.add(activation.id)
                self.long_turns += 1
                fields = {"activation": activation.id, "agent": activation.agent}
                self._guard.incident(LONG_ACTIVATION, {**fields, "limit_s": limit_s})
