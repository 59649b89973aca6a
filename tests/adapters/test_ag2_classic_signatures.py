"""AG2 classic, wrapped: what stands in place of its functions looks like them, and is called so."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")

from .ag2_classic_asked import SCENARIOS
from .ag2_classic_teams import Watched, Wrapping
from .framework_signatures import must_look_alike, must_take_keywords


def wrapping(*made_of: Any) -> Wrapping:
    return Wrapping(Watched(*made_of))


def test_what_is_replaced_has_the_signature_of_what_was_there() -> None:
    """Names, kinds and defaults of parameters are the same, and so is what has to be awaited."""
    must_look_alike(wrapping, SCENARIOS)


def test_what_is_replaced_can_be_called_by_name() -> None:
    """Each argument may be given by its name, as without a monitor."""
    must_take_keywords(wrapping, SCENARIOS)
