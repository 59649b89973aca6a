"""The frontier: the origins that no other origin explains, and the graph of effects.

A claim leads from a cause to its effect. In a cycle of origins each one explains the others, so
such a cycle is in the frontier as a whole, unless an origin outside of it leads into it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from .beliefs import Alert, Belief, Claim, Fact

Successors = Mapping[str, Sequence[str]]


def successors(claims: Iterable[Claim]) -> Successors:
    """The targets of each source, in the order of the claims."""
    by_source: dict[str, dict[str, None]] = {}
    for claim in claims:
        # A dict instead of a set: the order of claims decides between paths of one length.
        by_source.setdefault(claim.source, {})[claim.target] = None
    return {source: [*targets] for source, targets in by_source.items()}


def search_from(graph: Successors, start: str) -> dict[str, str | None]:
    """The entities within reach of a start, nearest first, each with the entity before."""
    before: dict[str, str | None] = {start: None}
    ahead = deque([start])
    while ahead:
        source = ahead.popleft()
        for target in graph.get(source, ()):
            if target not in before:
                before[target] = source
                ahead.append(target)
    return before


def distances(graph: Successors, start: str) -> dict[str, int]:
    """The number of links from a start to each entity within reach, nearest first."""
    steps: dict[str, int] = {}
    for entity, before in search_from(graph, start).items():
        steps[entity] = 0 if before is None else steps[before] + 1
    return steps


def frontier(claims: Iterable[Claim], origins: Collection[str]) -> list[str]:
    """The origins outside the reach of any other origin; origins in a cycle all count.

    Args:
        claims: The links.
        origins: The entities judged to be origins; the answer has their order.
    """
    graph = successors(claims)
    reach = {origin: search_from(graph, origin) for origin in origins}
    return [
        origin
        for origin in origins
        # Mutual reach is a cycle, in which nobody comes first.
        if all(origin not in reach[other] or other in reach[origin] for other in origins)
    ]


def explanation(
    claims: Sequence[Claim], sources: Sequence[str], alerts: Iterable[Alert]
) -> tuple[list[Claim], dict[Alert, list[str]]]:
    """The smallest graph from the frontier to the alarms.

    Args:
        claims: All links.
        sources: The frontier.
        alerts: The alarms.

    Returns:
        The claims on the shortest path from the frontier to each alarm, and for each alarm that
        path, from its source on; an alarm without a path is not among them.
    """
    graph = successors(claims)
    reach = {source: search_from(graph, source) for source in sources}
    paths: dict[Alert, list[str]] = {}
    for alert in alerts:
        ways = [_path(before, alert.entity) for before in reach.values() if alert.entity in before]
        if ways:
            paths[alert] = min(ways, key=len)
    used = {step for path in paths.values() for step in pairwise(path)}
    return [claim for claim in claims if (claim.source, claim.target) in used], paths


def _path(before: Mapping[str, str | None], end: str) -> list[str]:
    path, at = [end], before[end]
    while at is not None:
        path.append(at)
        at = before[at]
    return path[::-1]


def rank_entities(
    beliefs: Mapping[str, Belief],
    claims: Iterable[Claim],
    alerts: Iterable[Alert],
    evidence: Mapping[str, Iterable[Fact]],
) -> list[str]:
    """The entities in trouble, the likeliest cause first.

    They are ordered by weight, by the number of alarms that they reach, by their earliest evidence
    and by name.

    Args:
        beliefs: The belief about each entity.
        claims: The links.
        alerts: The alarms.
        evidence: The facts about each entity.
    """
    graph, alarmed = successors(claims), [alert.entity for alert in alerts]

    def key(entity: str) -> tuple[float, int, float, str]:
        reach = search_from(graph, entity)
        first = min((fact.ts for fact in evidence.get(entity, ())), default=float("inf"))
        return -beliefs[entity].weight, -sum(name in reach for name in alarmed), first, entity

    return sorted((entity for entity, its in beliefs.items() if its.label != "healthy"), key=key)
