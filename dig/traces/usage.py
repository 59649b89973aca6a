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
    if calls := sums.get("model_calls"):
        parts.append(f"{calls:,.0f} request{'' if calls == 1 else 's'} to a model")
        if failed := sums.get("failed_calls"):
            parts.append(f"{failed:,.0f} failed")
        if unknown := unknown_text(all_tokens, sums):
            parts.append(unknown)
    return ", ".join(parts)


def unknown_text(known: float | None, sums: Mapping[str, float]) -> str:
    """The requests of unknown cost, in words; empty if there are none.

    Args:
        known: The tokens that servers have named; ``None``: none of them has.
        sums: The sum of each figure of the usage.
    """
    # Older traces count no such requests; a refused one takes no tokens.
    unknown = sums.get("model_calls", 0) - sums.get("failed_calls", 0) if known is None else 0
    unknown = sums.get("uncounted_calls", unknown)
    if not known:
        return "tokens unknown" if unknown else ""
    return f"tokens of {unknown:,.0f} unknown" if unknown else ""


def is_number(value: object) -> bool:
    """Whether a value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
