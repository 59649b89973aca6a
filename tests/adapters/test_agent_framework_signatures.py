"""agent-framework, wrapped: what stands in place of its functions looks like them."""

from __future__ import annotations

import pytest

pytest.importorskip(
    "agent_framework", reason="agent-framework is not installed: pip install .[dev,agent-framework]"
)

from .agent_framework_asked import SCENARIOS
from .agent_framework_watch import Watched
from .framework_signatures import must_look_alike, must_take_keywords


def test_what_is_replaced_has_the_signature_of_what_was_there() -> None:
    """Names, kinds and defaults of parameters are the same, and so is what has to be awaited."""
    must_look_alike(Watched, SCENARIOS)


def test_what_is_replaced_can_be_called_by_name() -> None:
    """Each argument may be given by its name, as without a monitor."""
    must_take_keywords(Watched, SCENARIOS)
