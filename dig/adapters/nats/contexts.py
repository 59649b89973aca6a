"""W3C trace contexts of agents and clients, as the current context of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from .envelopes import Mail
from .names import TRACEPARENT, child_context

_propagator = TraceContextTextMapPropagator()


@contextmanager
def trace_context(mail: Mail) -> Iterator[None]:
    """Make the context of the first traced event the current context."""
    first = next(iter(mail.contexts.values()), None)
    token = context.attach(_propagator.extract({TRACEPARENT: first})) if first else None
    try:
        yield
    finally:
        if token is not None:
            context.detach(token)


def current_context() -> str | None:
    """Get the current W3C trace context; ``None``: nothing is traced."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier.get(TRACEPARENT)


def problem_context() -> str:
    """Make a trace context for a problem: a child of the current one, or a new one."""
    return child_context(current_context())
