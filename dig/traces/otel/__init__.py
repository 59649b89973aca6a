"""A run as OpenTelemetry traces, metrics and logs, in progress and afterwards.

- `ids`: trace and span ids from names. `conventions`: the names of attributes. `items`: the
  exported spans and logs, as plain data.
- `mapping`: records into items, with `tree` (the places of spans), `activation_spans`, `lasting`
  (findings and waits) and `content` (masks and cuts text). It is pure, and the one mapping behind
  every export.
- `follow`: a run while it goes on, also to a receiver. `writer`: items into the OpenTelemetry SDK.
- `otlp`: a receiver, with `exporters` by URL and `environment`. `export_queue`: a queue with a
  count of all losses.
- `stored_spans`: a stored trace, to a receiver or into a file (`otlp_json`).

The files without the SDK (`ids`, `items`, `mapping`, the formats) are imported without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dig._util.on_demand import names_on_demand

if TYPE_CHECKING:
    from .follow import Follower, current_traceparent, instrument

__all__ = ["Follower", "current_traceparent", "instrument"]

# The import of the SDK takes a while.
_HOME, __getattr__, __dir__ = names_on_demand(__name__, {".follow": " ".join(__all__)})
