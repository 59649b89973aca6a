"""The package `openai`, which only an extra installs."""

from __future__ import annotations

from dig._util.extras import importing_extra

with importing_extra("llm", "a language model"):
    import openai

__all__ = ["openai"]
