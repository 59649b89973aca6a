"""What observers of a team add to its turns, in processor time of the process, all in one run.

Ours holds every message, looks for thirteen patterns, heals and, if asked, writes a journal. The
others record: spans or runs, of model calls and inner runs too. None of them sends anything: their
exporters take what there is and drop it, so a real one costs more. Each is a process of its own,
since most of them patch the framework for good; the processes are asked in turns.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from tempfile import TemporaryDirectory, mkdtemp
from time import process_time
from typing import Any, cast

import anyio

import dig
from dig.adapters import Mode

from . import wrap_langgraph, wrap_openai_agents
from .apart import made_ready
from .measure import Table
from .wrapped import small

TURNS = 100
Team = Any
Run = Callable[[int], Awaitable[object]]
"""Runs a team for so many turns."""
Attach = Callable[[Team], Team]
"""Has an observer observe a team from now on; returns the team to run."""

# --- the teams ---


def _langgraph(attach: Attach) -> Run:
    graph = attach(wrap_langgraph.ring(TURNS, [], small))
    config = {"recursion_limit": TURNS + 10}
    return lambda turns: graph.ainvoke({"turn": 0, "said": "Count."}, config)


def _openai_agents(attach: Attach) -> Run:
    from agents import Runner

    team = attach(wrap_openai_agents.ring([], small))

    async def run(turns: int) -> None:
        for _ in range(turns // len(wrap_openai_agents.AGENTS)):
            await Runner.run(team, "Count.", max_turns=turns)

    return run


# --- the observers ---


def _bare(team: Team) -> Team:
    if "agents" in type(team).__module__:
        from agents import set_tracing_disabled

        set_tracing_disabled(True)
    return team


def _ours(mode: Mode, is_kept: bool, team: Team) -> Team:
    return dig.wrap(_bare(team), mode=mode, journal=mkdtemp() if is_kept else None)


def _dropping() -> Any:
    """An exporter that takes spans and drops them."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Dropping(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    return Dropping()


def _provider() -> Any:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(_dropping()))
    return provider


def _openinference(team: Team) -> Team:
    if "agents" in type(team).__module__:
        from agents import set_trace_processors
        from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor as Patch

        set_trace_processors([])  # its own exporter would send
    else:
        from openinference.instrumentation.langchain import LangChainInstrumentor as Patch
    Patch().instrument(tracer_provider=_provider())
    return team


def _langfuse(team: Team) -> Team:
    from langfuse import Langfuse

    Langfuse(public_key="pk", secret_key="sk", span_exporter=_dropping())
    if "agents" in type(team).__module__:
        from agents import set_trace_processors
        from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

        set_trace_processors([])
        OpenAIAgentsInstrumentor().instrument()  # as its documents say
        return team
    from langfuse.langchain import CallbackHandler

    return team.with_config(callbacks=[CallbackHandler()])


def _logfire(team: Team) -> Team:
    import logfire
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if "agents" not in type(team).__module__:  # by LangSmith's bridge, as its documents say
        os.environ |= {"LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}
        os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "none"}
    processor = BatchSpanProcessor(_dropping())
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[processor])
    if "agents" in type(team).__module__:
        from agents import set_trace_processors

        set_trace_processors([])
        logfire.instrument_openai_agents()
    return team


def _langsmith(team: Team) -> Team:
    from langchain_core.tracers import LangChainTracer
    from langsmith import Client
    from requests import Response, Session

    class Dropping(Session):
        def request(self, *args: Any, **kwargs: Any) -> Response:
            response = Response()
            response.status_code, response._content = 202, b"{}"
            return response

    client = Client("http://localhost:1", api_key="none", session=Dropping(), info={})
    return team.with_config(callbacks=[LangChainTracer(client=client)])


OBSERVERS: dict[str, tuple[str, Attach]] = {
    "bare": ("", _bare),
    "dig, observed": ("", partial(_ours, "observe", False)),
    "dig, healed": ("", partial(_ours, "heal", False)),
    "dig, healed, journal": ("", partial(_ours, "heal", True)),
    "OpenInference": ("openinference-instrumentation-", _openinference),
    "langfuse": ("langfuse", _langfuse),
    "logfire": ("logfire", _logfire),
    "LangSmith": ("langsmith", _langsmith),
}
"""Each observer's package, and what attaches it."""

TEAMS: dict[str, tuple[str, Callable[[Attach], Run], tuple[str, ...]]] = {
    "LangGraph": ("langchain", _langgraph, tuple(OBSERVERS)),
    "OpenAI Agents": ("openai-agents", _openai_agents, tuple(OBSERVERS)[:-1]),
}
"""Each framework: how packages call it, its team, and who can observe it."""


def _serve(setting: tuple[str, str]) -> Callable[[Any], float]:
    """A process: a team with its observer; asked for the microseconds of processor time a turn."""
    team, observer = setting
    run = TEAMS[team][1](OBSERVERS[observer][1])

    async def measure() -> float:
        begin = process_time()
        await run(TURNS)
        return (process_time() - begin) / TURNS * 1e6

    anyio.run(measure)
    return lambda _: anyio.run(measure)


def _table(team: str, rounds: int) -> list[tuple[str, ...]]:
    """The rows of a framework's team."""
    name, _, able = TEAMS[team]
    packages = {o: OBSERVERS[o][0] + name * OBSERVERS[o][0].endswith("-") for o in able}
    titles, missing = {}, []
    for observer, package in packages.items():
        try:
            which = f" ({package} {version(package)})" if package else ""
            titles[observer] = f"{team}: {observer}{which}"
        except PackageNotFoundError:
            missing.append((f"{team}: {observer}", f"not installed: {package}", "-", "-"))
    processes = made_ready(_serve, [(team, observer) for observer in titles])
    times: dict[str, list[float]] = {observer: [] for observer in titles}
    for _ in range(rounds):
        for (_, observer), process in processes.items():
            times[observer].append(cast(float, process.ask()))
    for process in processes.values():
        process.close()
    us = {observer: median(taken) for observer, taken in times.items()}
    bare = us["bare"]
    rows = [
        (titles[o], f"{us[o]:,.0f}", f"{us[o] - bare:+,.0f}", f"{us[o] / bare:.2f}") for o in us
    ]
    return rows + missing


def observers(quick: bool = False) -> Table:
    """Microseconds of processor time a turn, and the ratio to the bare turn."""
    with TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder  # of all processes: our journals lie there
        rows = [row for team in TEAMS for row in _table(team, 3 if quick else 9)]
    note = "Recorders write spans of inner runs and model calls; ours holds, checks and heals."
    return Table("Observers of a team", ("", "us/turn", "added", "ratio"), rows, note)
