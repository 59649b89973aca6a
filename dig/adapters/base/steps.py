"""What a session does, it does in synchronous steps; and what fails in one never reaches the team.

The team's own threads and tasks make the steps, one at a time. A failure is counted, logged and
written down; if the monitor cannot go on (its sink has failed, say), monitoring stops for good.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from dig.detectors.finding import Finding
from dig.errors import DecisionError, PayloadError, RequestError
from dig.monitor.messages import Asked, Effect, Healed, Raised
from dig.monitor.monitor import Monitor
from dig.runtime.host import Tally

from .entrance import Entrance
from .holds import Bell, Holding
from .watchdog import Timekeeper

logger = logging.getLogger("dig.wrap")

NONE: list[Effect] = []

_T = TypeVar("_T")


class Steps:
    """The steps of one session.

    Attributes:
        monitor: To look at; what is asked of it goes through `ask`.
        stopped: Why it is not monitored any more; ``None``: it is.
    """

    def __init__(
        self,
        make: Callable[[Callable[[], float]], Monitor],
        clock: Callable[[], float],
        on_finding: Callable[[Finding], object] | None,
        tally: Tally,
        *,
        keeps_time: bool,
        strict: bool,
    ) -> None:
        """Make the monitor, on a clock; its first record goes to the sink at once."""
        self.stopped: str | None = None
        self._strict = strict
        self._on_finding = on_finding
        self._tally = tally
        self._counts: Counter[str] = Counter()
        self._raised: list[Finding] = []
        self._said: list[tuple[str, str]] = []  # by healing: to whom, what
        self._entrance = Entrance()
        self._due: float | None = None
        self._is_asking = False  # a detector that calls the team must not find its way in here
        self._holding = Holding(self)
        self._timekeeper = Timekeeper(self, self._entrance) if keeps_time else None
        self._clock, self._began = clock, clock()
        self.monitor = make(self.now)

    @property
    def is_on(self) -> bool:
        """Whether the team is monitored."""
        return self.stopped is None

    def next_deadline(self) -> float | None:
        """When time makes something due, in seconds since the session began, as of now."""
        return self._due

    def now(self) -> float:
        """Seconds since the session began."""
        return self._clock() - self._began

    def incident(self, what: str, detail: Any) -> None:
        """Write down what changes no graph but must not be silent."""
        self.step(self.ask, self.monitor.incident, what, detail, otherwise=NONE)

    def tick(self) -> None:
        """Do what time has made due."""
        self.step(self.ask, self.monitor.tick, otherwise=NONE)

    # --- one synchronous step ---

    def step(
        self, do: Callable[..., _T], *args: Any, otherwise: _T, patience_s: float = -1.0
    ) -> _T:
        """Do something in one step, which nothing else can get between.

        Args:
            do: What; a step that it begins itself is part of this one.
            args: What it is called with.
            otherwise: What is returned if monitoring has stopped, or `do` raised.
            patience_s: How long to wait for another thread's step; negative: until it is over.
        """
        if self._entrance.is_mine and self.is_on and not self._is_asking:
            return do(*args)
        if not self.is_on or not self._entrance.enter(patience_s):
            self._counts["missed"] += patience_s < 0
            return otherwise
        try:
            return do(*args)
        except Exception as error:  # whatever fails in here must not reach the team
            self._own_up(error)
            if self._strict:
                raise
            return otherwise
        finally:
            self._leave()

    def _leave(self) -> None:
        """End a step, whatever state the monitor is in: who waits to enter must get in."""
        found: list[Finding] = []
        said: list[tuple[str, str]] = []
        freed: list[Bell] = []
        try:
            self._due = self.monitor.next_deadline()
            freed = self._holding.freed()
            found, self._raised = self._raised, []
            said, self._said = self._said, []
        except Exception as error:
            self._own_up(error)
        finally:
            self._entrance.leave()
        self._follow_up(found, said, freed)

    def guard(self, do: Callable[..., _T], *args: Any, otherwise: _T) -> _T:
        """Call what a user has handed in; what it raises is counted and written down."""
        try:
            return do(*args)
        except Exception as error:  # whoever only looks on must not stop a team
            name = getattr(do, "__qualname__", type(do).__name__)
            self._counts["faults"] += 1
            logger.warning("dig: %s raised; the team goes on", name, exc_info=error)
            self.incident("failed", {"who": name, "what": f"raised {error!r}"})
            return otherwise

    def ask(self, request: Callable[..., list[Effect]], *args: Any, **kwargs: Any) -> list[Effect]:
        """Ask something of the monitor, and take note of what it has done; inside a step.

        What it refuses it has not begun. Whatever else it raises has left it in the midst of
        something that would be held for ever, so monitoring stops.
        """
        self._is_asking = True
        try:
            effects = request(*args, **kwargs)
        except (DecisionError, PayloadError, RequestError):
            raise
        except Exception as error:
            self._stop(f"monitoring stopped: {error!r}")
            raise
        finally:
            self._is_asking = False
        self._tally.count(effects)
        for effect in effects:
            if isinstance(effect, Raised):
                self._raised.append(effect.finding)
            elif isinstance(effect, Healed) and effect.row.action == "create":
                self._said += [(to, effect.row.note or "") for to in effect.row.to or ()]
            elif isinstance(effect, Asked):
                self._holding.ask(effect)
        return effects

    def _own_up(self, error: Exception) -> None:
        """A step has failed: carry out what came of it, and say so."""
        self._counts["faults"] += 1
        logger.warning("dig: a step of the monitor failed; the team goes on", exc_info=error)
        try:
            if self.is_on and not self.monitor.is_over:
                self.ask(self.monitor.tick)
            detail = {"who": "wrapper", "what": f"raised {error!r}"}
            self.ask(self.monitor.incident, "failed", detail)
            if not self.is_on:
                self.ask(self.monitor.finish, "error")
        except Exception as further:
            error = further
        if self.monitor.is_over:
            self._stop(f"monitoring stopped: {error!r}")

    def _follow_up(
        self, found: list[Finding], said: list[tuple[str, str]], freed: list[Bell]
    ) -> None:
        """After a step, with nothing locked: tell who wants to know."""
        for bell in freed:
            self.guard(bell.ring, otherwise=None)  # its loop may be closed by now
        if self._timekeeper is not None:
            self._timekeeper.set()
        for seat, note in said:
            self._say(seat, note)
        if self._on_finding is not None:
            for finding in found:
                self.guard(self._on_finding, finding, otherwise=None)

    def _say(self, seat: str, note: str) -> None:
        """Healing has made a system event for an agent; a session may bring it at once."""

    def _stop(self, reason: str) -> None:
        """Monitor no more; inside a step or after the last one."""
        if self.is_on:
            self.stopped = reason
            if self._timekeeper is not None:
                self._timekeeper.stop()
