"""Values and texts from outside: plain JSON, and nothing that a terminal would act on."""

from __future__ import annotations

import json
import unicodedata
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig._util.json_values import MOST_DEPTH, MOST_DIGITS, plain
from dig._util.text import safe_text
from dig.errors import PayloadError

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


class Colour(IntEnum):
    RED = 1


def containers(value: Any) -> set[int]:
    """The identities of all lists and dicts in a value."""
    if isinstance(value, dict):
        return {id(value)}.union(*map(containers, value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*map(containers, value))
    return set()


def nested(depth: int) -> Any:
    """A list in a list in a list, so many deep."""
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


@given(json_values)
def test_a_copy_is_equal_and_shares_nothing(value: Any) -> None:
    """A sender that changes its own object later changes nothing that was delivered."""
    copy = plain(value)
    assert copy == value
    assert json.dumps(copy) == json.dumps(value)
    assert not containers(copy) & containers(value)


def test_tuples_become_lists() -> None:
    """JSON knows one kind of sequence."""
    assert plain(((1, 2), {"a": ("x", None)})) == [[1, 2], {"a": ["x", None]}]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "payload is of type object, which is not plain JSON"),
        ({"a": [0, {1, 2}]}, "payload['a'][1] is of type set, which is not plain JSON"),
        ([b"x"], "payload[0] is of type bytes, which is not plain JSON"),
        ([1, Colour.RED], "payload[1] is of type Colour, which is not plain JSON"),
        ({"a": {2: "x"}}, "payload['a'] has the key 2; keys must be strings"),
        ({None: 1}, "payload has the key None; keys must be strings"),
        ([1.5, float("nan")], "payload[1] is nan, which JSON has no number for"),
        ({"x": float("-inf")}, "payload['x'] is -inf, which JSON has no number for"),
        ([1, 2, 10**MOST_DIGITS], f"payload[2] is a number with more than {MOST_DIGITS} digits"),
        (-(10**MOST_DIGITS), f"payload is a number with more than {MOST_DIGITS} digits"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_is_no_json_is_refused_with_its_place(value: Any, message: str) -> None:
    """The message leads to the value at fault."""
    with pytest.raises(PayloadError) as caught:
        plain(value)
    assert str(caught.value) == message


def test_the_name_of_the_whole_may_be_chosen() -> None:
    """A message speaks of what the caller handed in."""
    with pytest.raises(PayloadError, match=r"^usage\['cost'\] is of type complex"):
        plain({"cost": 1j}, "usage")


def test_a_number_with_as_many_digits_as_python_reads_is_json() -> None:
    """What is taken can be written to a trace and read from it."""
    number = -(10**MOST_DIGITS) + 1
    assert json.loads(json.dumps(plain([number]))) == [number]


def test_values_are_nested_no_deeper_than_the_limit() -> None:
    """A value that nobody could write down, a list that holds itself for instance, is refused."""
    assert plain(nested(MOST_DEPTH)) == nested(MOST_DEPTH)
    with pytest.raises(PayloadError, match=f"is nested more than {MOST_DEPTH} levels deep"):
        plain(nested(MOST_DEPTH + 1))
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(PayloadError, match="levels deep"):
        plain(endless)


# -- texts ---

STEERING = {"Cc", "Cs", "Zl", "Zp"}
TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
# Not to be seen, but of a category that is: fillers, joiners, selectors of variants.
BLANK = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xFE00, 0xFE0E)}
BLANK |= {*range(0x180B, 0x1810), *range(0xE0100, 0xE01F0)}
# Of the category of invisible things, but to be seen: signs that enclose numbers and words.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
SEEN |= set(range(0x13430, 0x13440))


def is_unsafe(character: str) -> bool:
    """Whether a character steers a terminal, turns text or cannot be seen."""
    code, category = ord(character), unicodedata.category(character)
    if character in "\t\n" or code in SEEN:
        return False
    turns = unicodedata.bidirectional(character) in TURNING
    return category in STEERING or category == "Cf" or turns or code in BLANK


@given(st.text(st.characters(exclude_categories=())))
def test_a_safe_text_holds_nothing_that_is_unsafe(text: str) -> None:
    """No control, direction or zero-width character is left."""
    assert not any(map(is_unsafe, safe_text(text)))


def test_every_unsafe_character_is_made_visible_and_no_other() -> None:
    """What is taken out is shown by its number; letters, signs and emoji stay."""
    for code in range(0x110000):
        character = chr(code)
        shown = safe_text(character)
        if is_unsafe(character):
            assert shown == f"\\u{code:04x}"
        elif unicodedata.category(character) != "Cn":  # what is not assigned yet is nobody's text
            assert shown == character


def test_a_safe_text_is_its_own_safe_text() -> None:
    """To be careful twice changes nothing."""
    text = "a\x1b[31mb\u202ec\u200bd\te\n"
    assert safe_text(text) == "a\\u001b[31mb\\u202ec\\u200bd\te\n"
    assert safe_text(safe_text(text)) == safe_text(text)


@given(st.text(), st.integers(1, 20))
def test_a_safe_text_is_cut_to_length(text: str, most: int) -> None:
    """A text that is too long ends with a sign that it was cut."""
    whole, cut = safe_text(text), safe_text(text, most)
    assert len(cut) <= most
    assert cut == whole or (len(whole) > most and cut == whole[: most - 1] + "…")


def test_anything_has_a_safe_text() -> None:
    """Ids in a message need not be strings."""
    assert safe_text({"a": 1}) == "{'a': 1}"
