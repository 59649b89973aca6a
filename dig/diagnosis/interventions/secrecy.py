"""Keeps the right answer out of experiments: an agent that is told it proves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any


class AnswerGuard:
    """Knows what a change must not say: values of the expected answer, or of the score's target.

    Those are numbers of three digits or more, and texts with four letters or more.
    """

    def __init__(self, expected: str | None = None, target: Iterable[object] = ()) -> None:
        """Collect what must not be said.

        Args:
            expected: The expected answer, if the user gave it; what stands in quotes in it is a
                text of its own.
            target: The values that the score compares an answer with.
        """
        said = expected or ""
        self._numbers = {*_numbers(said)}.union(*(_numbers(str(one)) for one in target))
        texts = [*re.findall(r'"([^"]+)"', said), *re.findall(r"'([^']+)'", said)]
        texts += [said, *(one for one in target if isinstance(one, str))]
        self._texts = [one.casefold() for one in texts if len(re.findall(r"[^\W\d_]", one)) >= 4]

    def refusal(self, row: Mapping[str, Any]) -> str | None:
        """Why a change is refused; ``None``: it is not."""
        note = str(row.get("note", ""))
        has_text = any(re.search(rf"\b{re.escape(one)}\b", note.casefold()) for one in self._texts)
        if has_text or not self._numbers.isdisjoint(_numbers(note)):
            return "its text has a value of the right answer in it"
        return None


def _numbers(text: str) -> set[str]:
    return {*re.findall(r"\d{3,}", text), *re.findall(r"\d{3,}", text.replace(",", ""))}
