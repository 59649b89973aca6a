"""The costs of a run: the sums of the `usage` of activations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dig.graph.records import End, Finish, Record


class Costs:
    """Adds up usage, in any units.

    Attributes:
        sums: The sum of each figure, by its key.
    """

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()

    def __call__(self, record: Record) -> None:
        """Add the usage in a record, if any."""
        if isinstance(record, (End, Finish)) and record.usage is not None:
            self._add(record.usage)

    def _add(self, usage: object) -> None:
        if isinstance(usage, Mapping):
            for key, value in usage.items():
                if is_number(value):
                    self.sums[key] += value
                else:
                    # Usage may be nested, by model for instance.
                    self._add(value)


def tokens(sums: Mapping[str, float]) -> float | None:
    """The tokens in some costs, under any of the usual keys; ``None`` if there are none."""
    for keys in (("total_tokens",), ("input_tokens", "output_tokens"),
                 ("prompt_tokens", "completion_tokens")):  # fmt: skip
        if any(key in sums for key in keys):
            return sum(sums.get(key, 0) for key in keys)
    return None


def cost_text(sums: Mapping[str, float]) -> str:
    """The tokens and the money in some costs, in words; empty if there are none.

    >>> cost_text({"input_tokens": 1000, "output_tokens": 100, "cost_usd": 0.02})
    '1,100 tokens (1,000 sent, 100 received), $0.0200'
    """
    all_tokens, parts = tokens(sums), list[str]()
    if all_tokens is not None:
        sent = sums.get("input_tokens", sums.get("prompt_tokens"))
        received = sums.get("output_tokens", sums.get("completion_tokens"))
        parts_text = f" ({sent:,.0f} sent, {received:,.0f} received)" if sent and received else ""
        parts.append(f"{all_tokens:,.0f} tokens{parts_text}")
    if "cost_usd" in sums:
        parts.append(f"${sums['cost_usd']:,.4f}")
    if "model_calls" in sums:
        failed = f", {sums['failed_calls']:,.0f} failed" if "failed_calls" in sums else ""
        parts.append(f"{sums['model_calls']:,.0f} requests to a model{failed}")
    return ", ".join(parts)


def is_number(value: object) -> bool:
    """Whether a value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
