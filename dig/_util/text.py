"""Text safe on a terminal: dig's own ASCII around sanitized text from outside.

An id or a name can be anything, and so can the values that a detector of a user's own wrote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

MOST_LISTED = 6
MOST_IN_NAME = 40
MOST_IN_TEXT = 300

# What steers a terminal, turns the direction of text or is not to be seen at all. Tab and newline
# stay, and so do the two selectors that come with many an emoji.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def safe_text(text: object, most: int | None = None) -> str:
    """Text from outside, fit for a terminal: control and direction characters made visible.

    Args:
        text: Anything; its `str`.
        most: The number of characters after which it is cut; ``None``: it is not cut.
    """
    shown = _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", str(text))
    if most is not None and len(shown) > most:
        shown = shown[: most - 1] + "…"
    return shown


def one_line(text: object, most: int = MOST_IN_TEXT) -> str:
    """Make anything a single line, safe on a terminal; white space becomes a blank."""
    # Cut first: an answer may be megabytes long. A character gets at most ten times as long.
    shown = " ".join(safe_text(str(text)[: 2 * most]).split())
    return shown if len(shown) <= most else shown[: max(0, most - 3)] + "..."


def first_sentence(text: object, most: int) -> str:
    """The first sentence of a text on one line; a longer one is cut between two words."""
    sentence = one_line(text, 2 * most).partition(". ")[0].rstrip(".")
    if len(sentence) < most:
        return f"{sentence}."
    shown = sentence[:most]
    return f"{shown.rpartition(' ')[0] or shown} ..."


def first_words(text: object, most: int) -> str:
    """The first sentence of a text without its full stop; three dots say that it is cut."""
    sentence = first_sentence(text, most)
    return sentence if sentence.endswith(" ...") else sentence.removesuffix(".")


def name(text: object) -> str:
    """An id or an agent's name."""
    return one_line(text, MOST_IN_NAME) or "''"


def names(values: object, most: int = MOST_LISTED) -> str:
    """Some ids or names, cut where there are many."""
    if not isinstance(values, list | tuple):
        return name(values)
    return cut([name(value) for value in values[: most + 1]], most=most, of=len(values))


def cut(parts: Sequence[str], comma: str = ", ", *, most: int = MOST_LISTED, of: int = 0) -> str:
    """The first of some parts, and the number of further ones.

    Args:
        parts: The parts.
        comma: The text between two parts.
        most: The number of parts to show.
        of: The number of parts in all, if it is more than `parts` has.
    """
    more = max(of, len(parts)) - most
    stop = comma.rstrip().replace(",", "")  # sentences keep their semicolon before the `and`
    return comma.join(parts[:most]) + (f"{stop} and {more} more" if more > 0 else "")


def first_wrong(error: ValidationError) -> tuple[str, str]:
    """The first misfit of a value to a pydantic model: the place, and the message."""
    first = error.errors(include_url=False, include_input=False)[0]
    return ".".join(map(str, first["loc"])), first["msg"]


def join_clauses(parts: Sequence[str], most: int | None = None) -> str:
    """Clauses or names as one text: `a, b and c`, or with `most` 1 `a and 2 more`."""
    if most is not None and len(parts) > most:
        parts = [*parts[:most], f"{len(parts) - most} more"]
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def nearest(name: str, names: Collection[str], likeness: float = 0.5) -> str | None:
    """The existing name most like a misspelt name, in any case.

    Args:
        name: The misspelt name.
        names: The names that exist.
        likeness: The least likeness, from 0 to 1.
    """
    from difflib import get_close_matches  # only for an error

    by_upper = {name.upper(): name for name in names}
    close = get_close_matches(name.upper(), by_upper, 1, likeness)
    return by_upper[close[0]] if close else None


def did_you_mean(name: str, names: Collection[str]) -> str:
    """The end of an error about an unknown name: the nearest name, or all names."""
    close = nearest(name, names)
    return f"did you mean {close}?" if close else f"known are: {', '.join(names)}"


def counted(number: int, noun: str) -> str:
    """A number of things: `1 event`, `3 events`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def anything(subject: object, evidence: object) -> str:
    """A subject and evidence of any shape, on one line."""
    if isinstance(subject, Mapping):
        subject = cut([f"{name(key)} {_value(part, 1)}" for key, part in subject.items()])
    about = f"about {one_line(subject)}" if subject else "about the run"
    return f"{about}; {value_text(evidence)}" if evidence else about


def value_text(value: object) -> str:
    """Plain JSON of any shape in words, cut where there is much."""
    return _value(value, 0)


def _value(value: object, depth: int) -> str:
    """A value in words; from the third level on, as its `str`."""
    if isinstance(value, str) or depth == 3:
        return name(value)
    if isinstance(value, Mapping):
        parts = [f"{name(key)}: {_value(part, depth + 1)}" for key, part in value.items()]
        shown = cut(parts, "; ")
    elif isinstance(value, list | tuple):
        shown = cut([_value(part, depth + 1) for part in value]) or "nothing"
    else:
        return name(value)
    return f"({shown})" if depth > 1 else shown
