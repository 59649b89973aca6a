"""AG2 classic, wrapped: what stands in place of its functions looks like them, and is called so."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")

from .ag2_classic_asked import SCENARIOS
from .ag2_classic_teams import Watched, Wrapping
from .conformance import LooksAlike


class TestLooksAlike(LooksAlike):
    watched, scenarios = Watched, SCENARIOS

    def wrap(self, watched: Any) -> Wrapping:
        return Wrapping(watched)
