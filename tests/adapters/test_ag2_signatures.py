"""AG2 1.x, wrapped: what stands in place of its functions looks like them, and is called so."""

from __future__ import annotations

import pytest

pytest.importorskip("ag2", reason="AG2 is not installed: pip install .[dev,ag2]")

from ag2.network import AgentClient

from dig.adapters.ag2 import hub as taps

from .ag2_teams import SCENARIOS
from .ag2_watch import Watched
from .framework_signatures import Pair, must_look_alike, must_take_keywords


def others() -> list[Pair]:
    """The method of the class, which all hubs share."""
    return [Pair(AgentClient.receive, taps._received)]


def test_what_is_replaced_has_the_signature_of_what_was_there() -> None:
    """Names, kinds and defaults of parameters are the same, and so is what has to be awaited."""
    must_look_alike(Watched, SCENARIOS, others)


def test_what_is_replaced_can_be_called_by_name() -> None:
    """Each argument may be given by its name, as without a monitor."""
    must_take_keywords(Watched, SCENARIOS)
