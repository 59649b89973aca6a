"""What the payloads of our tasks mean."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .payloads import ANY, Payloads

PAYLOADS: Mapping[str, Payloads] = MappingProxyType({})
"""By the task's name."""


def payloads_of(task: str) -> Payloads:
    """What the payloads of a task mean; of a user's own nothing is known."""
    return PAYLOADS.get(task, ANY)
