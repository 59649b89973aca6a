"""What is masked: by the name of its key, by its shape, by its value."""

from __future__ import annotations

import pytest

from dig.redaction import redacted


@pytest.mark.parametrize("name", ["api_key", "API-Key", "Authorization", "my_password", "token"])
def test_what_stands_under_the_name_of_a_secret_is_masked(name: str) -> None:
    """Whatever it looks like, and however deep it lies."""
    assert redacted([{"a": {name: "abc"}}]) == [{"a": {name: "***"}}]


def test_numbers_under_such_names_stay() -> None:
    """Counts of tokens are no tokens."""
    usage = {"prompt_tokens": 5, "max_tokens": 6, "token": 7, "is_token": None}
    assert redacted(usage) == usage


def test_a_known_secret_is_masked_wherever_it_stands() -> None:
    """In texts, in keys, and in the middle of words."""
    value = {"aq1w2b": ["xq1w2y", ("q1w2",)], "n": [1, 2.5, True, None]}
    masked = {"a***b": ["x***y", ["***"]], "n": [1, 2.5, True, None]}
    assert redacted(value, ["q1w2", ""]) == masked


def test_what_looks_like_a_key_is_masked() -> None:
    """Without a name or somebody who knows it."""
    assert redacted({"said": "use sk-proj-0123456789 now"}) == {"said": "use *** now"}
