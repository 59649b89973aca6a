"""Runs on their way to an OpenTelemetry receiver: for `digmon run --otlp` and `digmon export`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dig.traces.otel.sending import Exporting

Otlp = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Send traces, metrics and logs there: http://localhost:4318."),
]
PerAgent = Annotated[
    bool, typer.Option("--service-per-agent", help="Make each agent a service, with a colour.")
]


def send(file: Path, endpoint: str | None, service_per_agent: bool) -> int:
    """Send a stored run to an OpenTelemetry receiver; returns the exit status."""
    from dig.traces.otel.settings import content_of_environment
    from dig.traces.otel.stored import send

    content = content_of_environment()
    report = send(file, endpoint, content=content, service_per_agent=service_per_agent)
    print(f"OTLP: {report}", file=sys.stderr if report.lost else sys.stdout)
    return 1 if report.lost else 0


@contextmanager
def exporting(
    endpoint: str | None, service_per_agent: bool, may_wait: bool
) -> Iterator[Exporting | None]:
    """What sends a run to an OpenTelemetry receiver, if the call or the environment names one."""
    from dig.traces.otel.settings import content_of_environment, is_configured

    if not (endpoint or is_configured()):
        yield None
        return
    from dig.traces.otel.sending import sending

    def say(text: str) -> None:
        print(f"digmon: {text}", file=sys.stderr)

    content = content_of_environment()
    with sending(
        endpoint, say, content=content, service_per_agent=service_per_agent, may_wait=may_wait
    ) as export:
        yield export
