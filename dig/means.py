"""Means of healing, and a fit that leaves healing only some of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

from .findings import Act, Create, Fit, Inject, Intervention, Refuse, Reroute

if TYPE_CHECKING:
    from .graph import InteractionGraph

Means = Literal["bounce", "redirect", "create", "note"]
"""A means of healing: to return an answer to its submitter, to send other work elsewhere, to make
a system event, or to put a note beside an event."""

MEANS: tuple[Means, ...] = get_args(Means)


def only(means: Collection[Means], fit: Fit | None = None) -> Fit | None:
    """A fit that leaves healing some means; what a host can do besides is asked afterwards.

    A reroute without its means is a note; what nothing is left of is refused, with the reason.
    """
    if set(MEANS) <= set(means):
        return fit

    def fitted(graph: InteractionGraph, wish: Act) -> tuple[Intervention | None, str | None]:
        allowed = _allowed(graph, wish, means)
        if fit is None or isinstance(allowed, Refuse):
            return allowed, None
        return fit(graph, allowed)

    return fitted


def _allowed(graph: InteractionGraph, wish: Act, means: Collection[Means]) -> Intervention:
    if isinstance(wish, Reroute):
        if ("bounce" if graph.event(wish.event).final else "redirect") in means:
            return wish if "note" in means else replace(wish, note="")
        wish = Inject(wish.event, wish.note)
    needed = {Create: "create", Inject: "note"}.get(type(wish))
    if needed is None or needed in means:
        return wish
    return Refuse(f"healing may not use the means {needed!r} in this run")
