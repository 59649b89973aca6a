"""What a wrapped team can be made to do decides which steps of healing are taken."""

from __future__ import annotations

import pytest

from dig import Create, Inject, Reroute
from dig.adapters.base.capabilities import CAPABILITIES, Fitting
from dig.detectors.interventions import Act, Intervention, Replace, Sending
from dig.graph.graph import InteractionGraph
from dig.graph.records import Deliver, Emit, Run


def graph() -> InteractionGraph:
    """Ann holds `held`; `sent` is on its way to her."""
    return InteractionGraph.of([
        Run(0, 0, "run", ("ann", "bob")),
        Emit(1, 0, "held", None, ("ann",), "problem", False),
        Deliver(2, 0, "held", "ann"),
        Emit(3, 0, "sent", None, ("ann",), "problem", False),
    ])  # fmt: skip


def fitted(wish: Act, *can: str) -> tuple[Intervention | None, str | None]:
    return Fitting(frozenset(can), lambda wish: None)(graph(), wish)


@pytest.mark.parametrize("action", ["redeliver", "reassign", "restart"])
def test_a_step_is_taken_if_it_is_declared_and_else_told_of(action: Sending) -> None:
    """Else the agent is told how things stand, or nothing if it can be told nothing."""
    wish = Reroute("held", "it is yours", ("bob",), action=action)
    assert fitted(wish, action) == (wish, None)
    words = (
        "`held` (`problem` from outside, in front of `ann`) is not done yet, and is still with its "
        "agent."
    )
    told = Create(words, ("bob",))  # it is not asked to do again what another agent still has
    assert fitted(wish, "tell", "reroute") == (told, f"{action} is not declared")
    assert fitted(wish) == (None, f"{action} is not declared")


def test_an_agent_is_taken_out_only_where_that_is_declared() -> None:
    """A note could not stand for it."""
    wish = Replace("ann", "it hangs")
    assert fitted(wish, "replace") == (wish, None)
    assert fitted(wish, *(CAPABILITIES.keys() - {"replace"})) == (None, "replace is not declared")


def test_an_event_on_its_way_goes_elsewhere_as_before() -> None:
    """`reroute` asks for what it asked for: a note beside the event is the lesser."""
    wish = Reroute("sent", "better there", ("bob",))
    assert fitted(wish, "reroute") == (wish, None)
    assert fitted(wish, "annotate") == (Inject("sent", "better there"), "reroute is not declared")


def test_a_note_that_stays_with_the_agent_it_is_about_says_you() -> None:
    """The agent that was to be left out reads of itself."""
    words = "`ann` passed this on. It is yours now, and so is what `ann` had to do with it."
    for without, note in [
        (("ann",), "You passed this on. It is yours now, and so is what you had to do with it."),
        (("bob",), words),
    ]:
        wish = Reroute("sent", words, ("bob",), without=without)
        assert fitted(wish, "annotate") == (Inject("sent", note), "reroute is not declared")
