"""Hubs under a session whose time is virtual, and what they left in it."""

from __future__ import annotations

from dig.adapters import ag2

from .framework_watch import Watched as Framework


class Watched(Framework):
    """Wraps hubs."""

    adapter = ag2

    def must_be_sound(self) -> None:
        """As elsewhere, once the hub is its own again."""
        self.detach()
        super().must_be_sound()
