"""Synchronous steps for requests to the monitor; failures never reach the team.

The team's own threads and tasks make the steps, one at a time. A failure is counted, logged and
recorded; if the monitor cannot go on (its sink has failed, say), monitoring stops for good.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial, wraps
from threading import Lock, get_ident
from typing import Any, Concatenate, ParamSpec, TypeVar

from dig._util.redaction import mask_secrets, masking_logger
from dig.errors import PART_ERRORS, DecisionError, PayloadError, RequestError
from dig.graph.records import FAILED
from dig.monitor.messages import Effect
from dig.monitor.monitor import Monitor

logger = masking_logger("dig.wrap")

NONE: list[Effect] = []

_T = TypeVar("_T")
_P = ParamSpec("_P")
_Method = Callable[Concatenate[Any, _P], _T]


def in_step(default: _T) -> Callable[[_Method[_P, _T]], _Method[_P, _T]]:
    """Make a method of an object with a `guard` a step, or part of a step (see `Guard.run`)."""

    def decorate(method: _Method[_P, _T]) -> _Method[_P, _T]:
        @wraps(method)
        def run_step(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
            step = partial(method, **kwargs) if kwargs else method
            result: _T = self.guard.run(step, self, *args, default=default)
            return result

        return run_step

    return decorate


_NAMED_S = 0.05


class ReentrancyLock:
    """A non-reentrant lock around the monitor, with the owner and the time of the last entry.

    Attributes:
        entries: The number of times that the lock was acquired.
        owner: The thread that holds the lock; ``None``: no thread does.
        release: Releases the lock; the owner is reset before.
        since: The time when the owner acquired the lock, in seconds on `time.monotonic`.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.release = self._lock.release
        self.entries = 0
        self.owner: int | None = None
        self.since = 0.0

    def acquire(self, timeout_s: float = -1.0) -> bool:
        """Acquire the lock, after the owner has released the lock.

        Args:
            timeout_s: The seconds to wait; negative: for as long as it takes.

        Returns:
            Whether the calling thread has just acquired the lock. ``False``, if the thread had the
            lock already: a detector that calls the team, for instance, would see a graph in the
            middle of a change.
        """
        thread = get_ident()
        try:
            if self.owner == thread or not self._lock.acquire(timeout=timeout_s):
                return False
            self.owner = thread
            self.entries += 1
            self.since = time.monotonic()
        except BaseException:  # Ctrl-C while the lock was acquired: nobody would release the lock
            time.sleep(_NAMED_S)  # a thread that has just acquired the lock is its owner by then
            if self.owner in (None, thread) and self._lock.locked():
                self.owner = None
                self.release()
            raise
        return True


class Guard:
    """Makes the steps of a session, and contains failures.

    The session sets itself and the three hooks after making the guard.

    Attributes:
        monitor: The monitor; requests to it go through `ask`.
        lock: Held during a step.
        counts: Counts by name, of the session too; `faults` and `missed` are counted here.
        stopped: The reason why monitoring has stopped; ``None``: monitoring goes on.
        due: The time of the next `tick`, in seconds since the session began, or earlier.
        on_effects: Called inside a step with the effects of a request.
        on_step_end: Called as a step ends; the follow-up that it returns is called when the lock is
            released.
        on_stop: Called once when monitoring stops.
        session: The session, for code that knows one of its turns.
    """

    session: Any
    on_effects: Callable[[list[Effect]], object]
    on_step_end: Callable[[], Callable[[], object]]
    on_stop: Callable[[], object]

    def __init__(
        self,
        make: Callable[[Callable[[], float]], Monitor],
        clock: Callable[[], float],
        *,
        strict: bool,
    ) -> None:
        """Make the monitor; the first record goes to the sink at once.

        Args:
            make: Makes the monitor, given a function that returns seconds since the beginning.
            clock: Seconds, from any beginning.
            strict: Whether a failure in a step is also raised; for tests.
        """
        self.stopped: str | None = None
        self.lock = ReentrancyLock()
        self.counts: Counter[str] = Counter()
        self._strict = strict
        self.due: float | None = None
        self._is_asking = False  # a detector that calls the team must not make a step in here
        self._clock, self._began = clock, clock()
        self.monitor = make(self.now)

    @property
    def is_on(self) -> bool:
        """Whether the team is monitored."""
        return self.stopped is None

    def now(self) -> float:
        """Seconds since the session began."""
        return self._clock() - self._began

    def incident(self, name: str, detail: Any) -> None:
        """Record an incident: changes no graph but must not be silent."""
        self.run(self.ask, self.monitor.incident, name, detail, default=NONE)

    def tick(self) -> None:
        """Do everything due by now."""
        self.run(self.ask, self.monitor.tick, default=NONE)

    # --- one synchronous step ---

    def run(self, fn: Callable[..., _T], *args: Any, default: _T, timeout_s: float = -1.0) -> _T:
        """Call a function in a single step, without interruption by other steps.

        Args:
            fn: The function; a step that it makes itself is part of this one.
            args: The arguments of the function.
            default: The return value if monitoring has stopped, or the function raised.
            timeout_s: The seconds to wait for another thread's step; negative: for as
                long as it takes.
        """
        is_on, lock = self.stopped is None, self.lock
        if is_on and lock.owner == get_ident() and not self._is_asking:
            return fn(*args)
        if not is_on or not lock.acquire(timeout_s):
            self.counts["missed"] += timeout_s < 0
            return default
        try:
            return fn(*args)
        except Exception as error:  # no failure in here may reach the team
            self._report_failure(error)
            if self._strict:
                raise
            return default
        finally:
            follow_up: Callable[[], object] | None = None
            try:
                self.due = self.monitor.next_deadline(exact=False)
                follow_up = self.on_step_end()
            except Exception as error:
                self._report_failure(error)
            finally:  # without a call of Python, at whose entry Ctrl-C might be raised
                lock.owner = None
                lock.release()
            if follow_up is not None:
                follow_up()

    def call(self, fn: Callable[..., _T], *args: Any, default: _T) -> _T:
        """Call a function of the user; an exception is counted, recorded and contained."""
        try:
            return fn(*args)
        except PART_ERRORS as error:  # an observer must not stop a team
            name = getattr(fn, "__qualname__", type(fn).__name__)
            self.counts["faults"] += 1
            logger.warning("dig: %s raised; the team goes on", name, exc_info=error)
            self.incident(FAILED, {"who": name, "what": f"raised {error!r}"})
            return default

    def ask(self, request: Callable[..., list[Effect]], *args: Any, **kwargs: Any) -> list[Effect]:
        """Make a request to the monitor, inside a step, and hand the effects to the session.

        DecisionError, PayloadError and RequestError leave the monitor unchanged. After any other
        exception its state is undefined, so monitoring stops for good.
        """
        self._is_asking = True
        try:
            effects = request(*args, **kwargs)
        except (DecisionError, PayloadError, RequestError):
            raise
        except BaseException as error:  # Ctrl-C, too
            self.stop(f"monitoring stopped: {error!r}")
            raise
        finally:
            self._is_asking = False
        self.on_effects(effects)
        return effects

    def stop(self, reason: str) -> None:
        """Stop monitoring for good; inside a step or after the last step."""
        if self.is_on:
            self.stopped = mask_secrets(reason)
            self.on_stop()

    def _report_failure(self, error: Exception) -> None:
        """Record the failure of a step, after all due effects."""
        self.counts["faults"] += 1
        logger.warning("dig: a step of the monitor failed; the team goes on", exc_info=error)
        try:
            # The failed step may have left effects behind; the tick carries them out first.
            if self.is_on and not self.monitor.is_over:
                self.ask(self.monitor.tick)
            detail = {"who": "wrapper", "what": f"raised {error!r}"}
            self.ask(self.monitor.incident, FAILED, detail)
            if not self.is_on:
                self.ask(self.monitor.finish, "error")
        except Exception as further:
            error = further
        if self.monitor.is_over:
            self.stop(f"monitoring stopped: {error!r}")
