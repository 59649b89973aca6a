"""What the taps of AutoGen's teams and runtimes share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dig.adapters import Session
from dig.adapters.base.holds import OnLoop
from dig.adapters.base.patching import Teller
from dig.errors import SettingsError


def must_have(owner: Any, names: tuple[str, ...]) -> None:
    """Check that what this relies on is there.

    Raises:
        SettingsError: It is not; the message says what is missing.
    """
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        what = ", ".join(missing)
        raise SettingsError(f"this AutoGen is put together in another way: no {what}")


Deliver = Callable[[str, str], object]
"""Brings an agent a note of the monitor at once."""


class Messenger:
    """Brings agents notes where their team runs.

    Attributes:
        loop: Where that is.
        teller: Whose notes these are; without one, or if it has failed, nothing is brought.
    """

    def __init__(self, deliver: Deliver | None) -> None:
        """Begin with nobody whose notes these are."""
        self.loop = OnLoop()
        self.teller: Teller | None = None
        self._deliver = deliver

    @property
    def bring(self) -> Deliver | None:
        """Brings an agent a note; ``None``: nobody has said how."""
        return None if self._deliver is None else self._bring

    def _bring(self, agent: str, note: str) -> None:
        if self.teller is not None and not self.teller.only_looks and self._deliver is not None:
            self.loop.run(partial(self._call, self.teller.session, self._deliver, agent, note))

    def _call(self, session: Session, deliver: Deliver, agent: str, note: str) -> None:
        session.guard(deliver, agent, note, otherwise=None)  # nothing may be raised on that loop
