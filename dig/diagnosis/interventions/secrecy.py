"""Keeps the right answer out of experiments: an agent that knows the answer proves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any


class AnswerGuard:
    """A guard against values of the expected answer, or of the score's target, in a change.

    Those are numbers of three digits or more, and texts with four letters or more.
    """

    def __init__(self, expected: str | None = None, target: Iterable[object] = ()) -> None:
        """Collect the secret values.

        Args:
            expected: The expected answer, if the user gave it; what stands in quotes in it is a
                text of its own.
            target: The values that the score compares an answer with.
        """
        answer = expected or ""
        self._numbers = {*_numbers(answer)}.union(*(_numbers(str(value)) for value in target))
        texts = [*re.findall(r'"([^"]+)"', answer), *re.findall(r"'([^']+)'", answer)]
        texts += [answer, *(value for value in target if isinstance(value, str))]
        self._texts = [text.casefold() for text in texts if len(re.findall(r"[^\W\d_]", text)) >= 4]

    def refusal(self, row: Mapping[str, Any]) -> str | None:
        """Return the reason to refuse a change; ``None``: there is none."""
        note = str(row.get("note", ""))
        has_text = any(re.search(rf"\b{re.escape(t)}\b", note.casefold()) for t in self._texts)
        if has_text or not self._numbers.isdisjoint(_numbers(note)):
            return "its text has a value of the right answer in it"
        return None


def _numbers(text: str) -> set[str]:
    # With and without commas: 12,345 is 12345, but may also be two numbers of a list.
    return {*re.findall(r"\d{3,}", text), *re.findall(r"\d{3,}", text.replace(",", ""))}
