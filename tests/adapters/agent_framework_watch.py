"""Workflows under a session whose time is virtual, and what they left in it."""

from __future__ import annotations

from dig.adapters import agent_framework

from .framework_watch import Watched as Framework


class Watched(Framework):
    """Wraps workflows."""

    adapter = agent_framework

    def must_be_sound(self) -> None:
        """As elsewhere, once the workflow is its own again."""
        self.detach()
        super().must_be_sound()
