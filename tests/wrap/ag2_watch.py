"""Hubs under a session whose time is virtual, and what they left in it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio

from dig.detectors import standard, standard_healers
from dig.records import HealRow, IncidentRow
from dig.runtime.host import Setup
from dig.runtime.wrap import Session
from dig.runtime.wrap import ag2 as adapter
from tests.helpers import Recorder

from .watching import Watched as Live


class Watched:
    """Wraps hubs, and remembers their session and records."""

    def __init__(
        self, mode: Any = "observe", setup: Setup | None = None, *, strict: bool = True,
        **options: Any,
    ) -> None:  # fmt: skip
        self.mode = mode
        self.now = 0.0
        self.strict = strict
        self.more: dict[str, Any] = {}  # further arguments of the session
        self.setup = setup or Setup(detectors=standard, healers=standard_healers)
        self.options = options
        self.records = Recorder()
        self.detach: Callable[[], Any] = lambda: None

    def __call__(self, team: Any) -> Any:
        plan = adapter.plan(team, **self.options)
        more = {"sink": self.records, **self.more}
        self.session = Session(
            plan.agents, self.setup, mode=self.mode, capabilities=plan.capabilities,
            veto=plan.veto, on_note=plan.on_note, clock=self.clock, keeps_time=False,
            strict=self.strict, **more,
        )  # fmt: skip
        attached = plan.attach(self.session)
        self.detach = attached.restore
        return attached.team

    def clock(self) -> float:
        """The loop's time; when there is no loop any more, the last there was."""
        with suppress(RuntimeError):
            self.now = anyio.current_time()
        return self.now

    @property
    def patterns(self) -> list[str]:
        return [finding.pattern for finding in self.session.findings]

    def healed(self) -> list[str]:
        return [record.action for record in self.records if isinstance(record, HealRow)]

    def incidents(self) -> list[str]:
        return [record.what for record in self.records if isinstance(record, IncidentRow)]

    def must_be_sound(self) -> None:
        """Whoever reads the trace finds in it what was found live, and nothing lost."""
        self.detach()
        Live(self.session, self.records).must_be_sound()
