"""What is masked: by the name of its key, by its shape, by its value."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig._util.redaction import MASK, mask_secrets, redacted
from dig.tasks.newsgroups_posts import our_own
from tests.secrets import planted

PIECES = (
    MASK, "*", "authorization", "Bearer", "basic", "token", "api_key", "sk-", "eyJ", "abcdefgh",
    "12345678", "=", ": ", " ", "\"", "\\", ".", "-", "_", "://", "@", ":", "\n",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "AKIAABCDEFGHIJKLMNOP",
)  # fmt: skip


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


# --- how much of it ---


def test_of_4000_planted_secrets_nearly_none_is_missed() -> None:
    """400 secrets of twenty kinds, each in ten places: at least 99 in a hundred are masked."""
    cases = [case for seed in range(400) for case in planted(seed)]
    assert len(cases) == 4_000
    missed = [case for case in cases if _core(case[0]) in json.dumps(redacted(case[1]))]
    assert len(missed) <= 40, missed[:5]


def _core(secret: str) -> str:
    """The middle of a secret, as it stands in JSON however often that is quoted."""
    body = secret.split("\n")[1] if "\n" in secret else secret
    return body[len(body) // 3 : len(body) // 3 + 6]


@given(st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from(PIECES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.text() | st.sampled_from(PIECES), inner, max_size=4
    ),
))  # fmt: skip
def test_what_is_masked_stays_as_it_is(value: Any) -> None:
    """Else a recorded run could not be driven again."""
    once = redacted(value)
    assert redacted(once) == once


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_masked_text_stays_as_it_is(text: str) -> None:
    """Whatever stands beside whatever."""
    assert redacted(redacted(text)) == redacted(text)


def test_two_keys_that_are_secrets_stay_two() -> None:
    """Nothing is lost by masking but the secrets."""
    value = {"sk-aaaaaaaaaaaa": 1, "sk-bbbbbbbbbbbb": 2, "x": 3}
    assert sorted(redacted(value).values()) == [1, 2, 3]
    assert "sk-" not in str(redacted(value))


def test_what_people_write_is_left_alone() -> None:
    """Of hundreds of posts and of this project's own pages, hardly a line is changed."""
    texts = [post.text() for post in our_own()]
    texts += [page.read_text() for page in Path("docs").glob("*.md")]
    lines = [line for text in texts for line in text.splitlines()]
    changed = [line for line in lines if redacted(line) != line]
    assert len(lines) > 2_000
    assert len(changed) <= len(lines) // 500, changed


@pytest.mark.parametrize(
    "piece", ["eyJ-", "eyJaaaaaaaa.", "token ", "token: ", "a://b:", "-----BEGIN ", "sk-", "SG.a-",
              "bearer ", "api_key\\\"", "a-", "xoxb-", "secret=bearer "],
)  # fmt: skip
def test_no_text_makes_it_slow(piece: str) -> None:
    """256 KiB of what nearly is a secret, again and again, take no longer than a blink."""
    text = piece * (256 * 1024 // len(piece))
    began = time.process_time()
    redacted({text: [text]})
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("levels", range(5))
def test_a_secret_is_found_in_json_text_in_json_text(levels: int) -> None:
    """As it stands in `exchanges.jsonl`: a server's reply, with a decision, with a payload."""
    text = '{"client_secret": "hunter2222", "more": "said"}'
    for _ in range(levels):
        text = json.dumps({"payload": text})
    masked = mask_secrets(text)
    assert "hunter2222" not in masked and "***" in masked and "said" in masked
    for _ in range(levels):
        masked = json.loads(masked)["payload"]
    assert json.loads(masked) == {"client_secret": "***", "more": "said"}
