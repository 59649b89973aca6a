"""What a run has cost, in words."""

from __future__ import annotations

import pytest

from dig.traces.usage import cost_text

TOKENS = {"input_tokens": 1000, "output_tokens": 100}
SAID = "1,100 tokens (1,000 sent, 100 received)"


@pytest.mark.parametrize(
    ("sums", "text"),
    [
        ({}, ""),
        ({"model_calls": 1, **TOKENS}, f"{SAID}, 1 request to a model"),
        ({"model_calls": 3}, "3 requests to a model, tokens unknown"),
        ({"model_calls": 3, "uncounted_calls": 3, "failed_calls": 3},
         "3 requests to a model, 3 failed, tokens unknown"),
        ({"model_calls": 4, "uncounted_calls": 2, "failed_calls": 2, **TOKENS},
         f"{SAID}, 4 requests to a model, 2 failed, tokens of 2 unknown"),
        ({"model_calls": 1, "failed_calls": 1}, "1 request to a model, 1 failed"),
        (TOKENS, SAID),
    ],
)  # fmt: skip
def test_the_cost_names_what_is_not_known(sums: dict[str, float], text: str) -> None:
    """Tokens that no server has named are unknown, and never 0."""
    assert cost_text(sums) == text
