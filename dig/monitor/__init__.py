"""The monitor: hold, detect, heal, release, inside one synchronous call.

- `monitor`: `Monitor`, what a host asks. `messages`: what goes in and what comes out.
- `recorder`: applies a record, writes it, has it looked at, collects effects. `sinks`: where
  records go. `payloads`: payloads and notes of events on their way. `sanitize`: what comes in.
- `healing`: carries out interventions. `gates`: keep an event held for longer.
- `release`: from held to delivered. `policies`, `schedule`: events that arrive later.
- `sweeping`: dropping closed history in a long session.
"""

from __future__ import annotations

from .monitor import Monitor

__all__ = ["Monitor"]
