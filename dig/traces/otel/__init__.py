"""A run as OpenTelemetry traces, metrics and logs, while it goes on and afterwards.

- `ids`: names of executions into ids of traces. `items`: what is exported, as plain data.
- `mapping`: records into items, with `tree` (where spans stand), `activations` (their spans) and
  `content` (what text may leave). It is pure, and the one mapping behind every export.
- `follow`: a run while it goes on. `writer`: items into the OpenTelemetry SDK.
- `otlp`: a receiver, by URL and environment. `delivery`: a queue that counts what it loses.
- `stored`: a stored trace, to a receiver or into a file: `otlp_json`, `jaeger`, `perfetto`.

The files without the SDK (`ids`, `items`, `mapping`, the formats) are imported without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .follow import Follower, current_traceparent, instrument

__all__ = ["Follower", "current_traceparent", "instrument"]


def __getattr__(name: str) -> Any:
    """Import the SDK, which takes a while, with the first of these that is asked for."""
    if name not in __all__:
        raise AttributeError(name)
    from . import follow

    return getattr(follow, name)
