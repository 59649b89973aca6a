"""W3C trace contexts of agents and clients, as far as OpenTelemetry is in use."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

from .envelopes import Mail
from .names import TRACEPARENT, child_context


def trace_context(mail: Mail) -> AbstractContextManager[object]:
    """Make the context of the first traced event the current context."""
    if not mail.contexts:
        return nullcontext()
    from opentelemetry import context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {TRACEPARENT: next(iter(mail.contexts.values()))}
    return _Attached(context.attach(TraceContextTextMapPropagator().extract(carrier)))


class _Attached(AbstractContextManager[object]):
    def __init__(self, token: object) -> None:
        self._token = token

    def __exit__(self, *error: object) -> None:
        from opentelemetry import context

        context.detach(self._token)  # type: ignore[arg-type]


def current_context() -> str | None:
    """Get the current W3C trace context; ``None``: nothing is traced."""
    if "opentelemetry.trace" not in sys.modules:  # then nothing here can be traced
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(TRACEPARENT)


def problem_context() -> str:
    """Make a trace context for a problem: a child of the current one, or a new one."""
    return child_context(current_context())
