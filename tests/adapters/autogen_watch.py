"""AutoGen's teams and runtimes under a session whose time is virtual, and what they left in it."""

from __future__ import annotations

from dig.adapters import autogen

from .framework_watch import Watched as Framework


class Watched(Framework):
    """Wraps teams and runtimes."""

    adapter = autogen

    def must_be_sound(self) -> None:
        """As elsewhere, once the team is its own again."""
        self.detach()
        super().must_be_sound()
