"""What wrapping costs when agents pass a lot, framework by framework, in CPU time of its thread.

Small: a sentence. Wide: a table of 5,000 rows. History: all that was said before, and one message
more. Frameworks whose agents pass text alone are given the table and the history as text.
A framework is measured in an environment that has it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any, NamedTuple

import anyio

from . import (
    wrap,
    wrap_a2a,
    wrap_ag2,
    wrap_agent_framework,
    wrap_autogen,
    wrap_crewai,
    wrap_google_adk,
    wrap_langgraph,
    wrap_llama_index,
    wrap_openai_agents,
    wrap_pydantic_ai,
)
from .measure import Table
from .wrapped import WAYS, Say, compared, history, history_text, small, wide, wide_text

OBJECTS = {"small": small, "wide": wide, "history": history}
TEXTS = {"small": small, "wide": wide_text, "history": history_text}


class Framework(NamedTuple):
    """A framework to measure.

    Attributes:
        module: A module that is there if the framework is installed.
        team: What is wrapped.
        times: Measures a team, as `bench.wrapped.Times` do, given a length and what agents say.
        total: The number of messages, calls or runs of all rounds; a quarter of it in a quick look.
        messages: The number of messages in what is measured at once.
        says: What its agents say, by name.
        length: The number of messages, calls or runs of a round of payloads.
    """

    module: str
    team: str
    times: Callable[..., Any]
    total: int
    messages: int = 1
    says: dict[str, Say] = OBJECTS
    length: int = 100


FRAMEWORKS = {
    "plain callables": Framework("dig", "team", wrap.times, 10_000, 2),
    "LangGraph": Framework("langgraph", "graph", wrap_langgraph.times, 2_000),
    "AutoGen core": Framework("autogen_core", "runtime", wrap_autogen.ask, 4_000, 2),
    "AutoGen chat": Framework("autogen_agentchat", "team", wrap_autogen.chat, 1_000, 1, TEXTS),
    "OpenAI Agents": Framework("agents", "team", wrap_openai_agents.times, 60, 1, TEXTS, 2),
    "Google ADK": Framework("google.adk", "team", wrap_google_adk.times, 20, 1, TEXTS, 2),
    "LlamaIndex": Framework("llama_index", "team", wrap_llama_index.times, 60, 1, TEXTS, 2),
    "Pydantic AI": Framework("pydantic_ai", "team", wrap_pydantic_ai.times, 60, 2, TEXTS, 2),
    "A2A": Framework("a2a", "team", wrap_a2a.times, 60, 2, TEXTS, 2),
    "CrewAI": Framework("crewai", "crew", wrap_crewai.times, 20, 1, TEXTS, 2),
    "AG2": Framework("ag2", "hub", wrap_ag2.times, 1_000, 1, TEXTS, 20),
    "agent-framework": Framework("agent_framework", "workflow", wrap_agent_framework.times, 2_000),
}


def wrapping(name: str, quick: bool) -> Table:
    """CPU time of a sentence between agents of a framework, in each way."""
    framework = FRAMEWORKS[name]
    total, rounds = (framework.total // 4, 2) if quick else (framework.total, 5)
    return compared(
        f"A message of a wrapped {framework.team} of {name}, microseconds of CPU time",
        framework.team, lambda *way: framework.times(*way, total // rounds), rounds,
        f"{total} measured, each {framework.messages} message(s); seven detectors; bare: the "
        "framework's own cost, with its turn, step or continuation",
        messages=framework.messages,
    )  # fmt: skip


def payloads(quick: bool) -> Table:
    """CPU time of a message, alone, observed and healed."""
    rounds = 3 if quick else 9
    rows = []
    for name, framework in FRAMEWORKS.items():
        if find_spec(framework.module) is None:
            continue
        for kind, say in framework.says.items():
            taken = [_round(framework, say) for _ in range(rounds)]
            us = (f"{median(one):.0f}" for one in zip(*taken, strict=True))
            ratios = (f"{median(one[way] / one[0] for one in taken):.2f}" for way in (1, 2))
            rows.append((f"{name}, {kind}", *us, *ratios))
    return Table(
        "A message of a wrapped team, microseconds of CPU time",
        ("team, what it passes", "bare", "observe", "heal", "observe/bare", "heal/bare"), rows,
        "wide: 5,000 rows; history: a message longer with each turn, up to some hundred",
    )  # fmt: skip


def _round(framework: Framework, say: Say) -> list[float]:
    """Microseconds of a message in each way, one after the other: medians."""
    ways = [way for way in WAYS.values() if not way[1]]
    times = (partial(framework.times, *way, framework.length, say) for way in ways)
    return [median(anyio.run(one)) / framework.messages for one in times]
