"""The words of a message, whatever the payload: the first sentence, or all."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from dig._util.text import one_line, value_text

from .finding import texts_in

MOST_GOAL = 90


def goal_text(payload: Any) -> str:
    """The first sentence of a request: of the payload's goal, or else of the longest text."""
    words = one_line(_longest_text(payload), 400).split(" ")
    end = next((n for n, word in enumerate(words) if _ends_sentence(word)), len(words))
    text = " ".join(words[: end + 1])
    return one_line(text.rstrip(".") or text, MOST_GOAL) or _value_words(payload)


def words_text(payload: Any, most: int = MOST_GOAL) -> str:
    """The first words of a message, as `goal_text`, with further sentences."""
    text = _longest_text(payload)
    return one_line(text.rstrip(".") or text, most) or _value_words(payload)


def _longest_text(payload: Any) -> str:
    own = [payload.get(key) for key in _WORDS] if isinstance(payload, Mapping) else []
    texts = [text for text in own if isinstance(text, str) and text]
    return texts[0] if texts else max(islice(texts_in(payload), 50), key=len, default="")


def _value_words(payload: Any) -> str:
    is_value = isinstance(payload, int | float | Mapping | list)
    return one_line(value_text(payload), MOST_GOAL) if payload and is_value else ""


def _ends_sentence(word: str) -> bool:
    """Whether a word ends a sentence, and is no abbreviation."""
    stem = word.removesuffix(".")
    return word != stem and len(stem) > 1 and "." not in stem and stem not in _TITLES


_TITLES = frozenset(("Dr", "Mr", "Mrs", "Ms", "No", "Prof", "St"))
_WORDS = ("goal", "body", "content", "text")
"""The keys of a message's words; an envelope has other texts beside them."""
