"""Graphs under a session whose time is virtual, and what they left in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dig import InteractionGraph
from dig.adapters import langgraph

from .framework_watch import Watched as Framework
from .harness import Scenario, Script
from .langgraph_asked import ask


class Watched(Framework):
    """Wraps graphs."""

    adapter = langgraph

    def leaves_nothing_open(self) -> bool:
        """As elsewhere; and nobody has joined, since a graph's nodes are known."""
        monitored = self.session.monitor.graph
        return super().leaves_nothing_open() and {*monitored.agents} == {*monitored.run.agents}


def team(build: Callable[[Script], Any], drive: Callable[[Any], Any] = ask) -> Scenario:
    return Scenario(build.__name__, build, drive)


def seats(monitored: InteractionGraph) -> set[str]:
    """Who has worked: agents and their instances."""
    history = monitored.history
    return {history.agent(v) for v in range(len(history.activation_ids))}
