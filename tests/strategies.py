"""What property tests draw."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from .oracle import Row
from .random_traces import random_trace


@st.composite
def traces(draw: st.DrawFn, *, most: int = 60) -> list[Row]:
    """A random valid trace.

    A seed and a length are drawn, not the choices themselves: Hypothesis then knows next to
    nothing of a trace, but traces keep the variety that they were made for. A failing test gets
    a short one, and says at which record it fails; the records up to there are a trace as well.
    """
    lengths = [10, 20, 40, most]
    length = draw(st.sampled_from([n for n in lengths if n <= most]))
    seed = draw(st.integers(0, 2**32 - 1))
    return random_trace(random.Random(seed), length=length)
