"""What a team's requests have cost so far, and when that is enough."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from dig._util.text import counted
from dig.errors import StopRunError

from .settings import ModelSettings

Usage = MutableMapping[str, Any]
"""What somebody has used: `model_calls`, `input_tokens`, `output_tokens`, and `cost_usd` if the
prices are known; the model's name is in `model`."""


class Spending:
    """Counts tokens and money, for the whole team."""

    def __init__(self, settings: ModelSettings) -> None:
        """Begin at nothing."""
        self._settings = settings
        self.calls = 0
        self.tokens = 0
        self.usd = 0.0

    def allow(self) -> None:
        """Say nothing if another request may be sent.

        Raises:
            StopRunError: The budget is used up.
        """
        settings = self._settings
        spent = f"{counted(self.tokens, 'token')} in {counted(self.calls, 'request')}"
        if settings.max_tokens is not None and self.tokens >= settings.max_tokens:
            raise StopRunError(
                f"the budget of {counted(settings.max_tokens, 'token')} is used up: {spent}"
            )
        if settings.max_usd is not None and self.usd >= settings.max_usd:
            raise StopRunError(
                f"the budget of ${settings.max_usd:g} is used up: ${self.usd:.4f} for {spent}"
            )

    def sent(self, usage: Usage, model: str) -> None:
        """Count a request as soon as it is sent, so that one that is cut off counts too."""
        self.calls += 1
        usage["model"] = model
        _add(usage, "model_calls", 1)

    def received(self, tokens: tuple[int, int] | None, usage: Usage) -> None:
        """Count the tokens, sent and received, that the server says a request took.

        Raises:
            StopRunError: It does not say, and there is a budget to be kept.
        """
        settings = self._settings
        if tokens is None:
            if settings.max_tokens is not None or settings.max_usd is not None:
                raise StopRunError(
                    f"{settings.where} does not say how many tokens it took, so that no budget "
                    "can be kept; run without --max-tokens and --max-usd"
                )
            return
        self.tokens += sum(tokens)
        _add(usage, "input_tokens", tokens[0])
        _add(usage, "output_tokens", tokens[1])
        if settings.price_in is not None and settings.price_out is not None:
            usd = (tokens[0] * settings.price_in + tokens[1] * settings.price_out) / 1_000_000
            self.usd += usd
            _add(usage, "cost_usd", usd)


def _add(usage: Usage, key: str, amount: float) -> None:
    usage[key] = usage.get(key, 0) + amount
