"""How often the answers to one request go back: each time costs what the agents behind it cost."""

from __future__ import annotations

from collections.abc import Iterable

from dig.graph.graph import InteractionGraph

MOST_BOUNCES = 2
"""How often answers to one request go back at most, whatever the budget of healing allows."""


class Bounces:
    """The answers that have gone back, by the request from outside that they were to answer."""

    def __init__(self) -> None:
        """Begin with none."""
        self._of: dict[str, set[str]] = {}  # request -> the answers to it that have gone back

    def why_not(self, graph: InteractionGraph, answer: str) -> str | None:
        """Why an answer cannot go back once more; ``None``: it can, and counts from now on."""
        self._of = {request: back for request, back in self._of.items() if graph.knows(request)}
        requests = graph.asked(answer)
        if any(len(self._before(one) - {answer}) >= MOST_BOUNCES for one in requests):
            return f"answers to this request have gone back {MOST_BOUNCES} times already"
        self._count(requests, answer)
        return None

    def _before(self, request: str) -> set[str]:
        return self._of.get(request, set())

    def _count(self, requests: Iterable[str], answer: str) -> None:
        for request in requests:
            self._of.setdefault(request, set()).add(answer)
