"""Runs the shapes of a framework, and writes down what was seen: the two tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .shapes import Shape, play

FRAMEWORKS = {
    "plain": ("plain callables", "anyio"),
    "langgraph": ("LangGraph", "langgraph"),
    "openai-agents": ("OpenAI Agents", "agents"),
    "autogen": ("AutoGen", "autogen_agentchat"),
    "agent-framework": ("agent-framework", "agent_framework_orchestrations"),
    "ag2": ("AG2 1.x", "ag2"),
    "pydantic-ai": ("Pydantic AI", "pydantic_ai"),
    "google-adk": ("Google ADK", "google.adk"),
    "a2a": ("A2A", "a2a"),
    "crewai": ("CrewAI", "crewai"),
    "llama-index": ("LlamaIndex", "llama_index"),
}
"""The frameworks, with their title and the module that is there if they are installed."""


def is_installed(framework: str) -> bool:
    return find_spec(FRAMEWORKS[framework][1]) is not None


def shapes_of(framework: str) -> list[Shape]:
    """The shapes that are written with a framework, which must be installed."""
    found: list[Shape] = import_module(
        f".{framework.replace('-', '_')}", __package__
    ).SHAPES  # fmt: skip
    return found


@dataclass(frozen=True)
class Row:
    """A shape, and the alarms of both of its programs, by pattern.

    Attributes:
        shape: The shape's name.
        framework: What it is written with.
        does: What a healthy team does.
        healthy: The alarms of the healthy program.
        line: The line of configuration that it needs; empty: none.
        without_line: The alarms of the healthy program without that line.
        mistake: What is wrong in the broken program.
        broken: The alarms of the broken program.
    """

    shape: str
    framework: str
    does: str
    healthy: dict[str, int]
    line: str
    without_line: dict[str, int]
    mistake: str
    broken: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def look(framework: str) -> list[Row]:
    """Run both programs of all shapes of a framework."""
    return [
        Row(
            shape.name, framework, shape.does, dict(play(shape, broken=False).alarms), shape.line,
            dict(play(shape, broken=False, with_line=False).alarms), shape.mistake,
            dict(play(shape, broken=True).alarms),
        )
        for shape in shapes_of(framework)
    ]  # fmt: skip


def claimed(framework: str) -> list[Row]:
    """What the shapes of a framework say of themselves, each alarm once; nothing is run."""
    return [
        Row(
            shape.name, framework, shape.does, {}, shape.line,
            dict.fromkeys(shape.without_line, 1), shape.mistake, dict.fromkeys(shape.alarms, 1),
        )
        for shape in shapes_of(framework)
    ]  # fmt: skip


def tables(rows: Iterable[Row]) -> str:
    """The two tables, in Markdown: of the healthy teams, and of the broken ones."""
    rows = list(rows)
    healthy = [
        (one.shape, one.does, _names(one.healthy), _names(one.without_line), _code(one.line))
        for one in rows
    ]
    broken = [(one.shape, one.mistake, _names(one.broken)) for one in rows]
    return "\n\n".join(
        (
            _table(("healthy", "what it does", "alarms", "without the line", "the line"), healthy),
            _table(("broken", "the mistake", "alarms"), broken),
        )
    )


def beyond_table(shapes: Iterable[Shape]) -> str:
    """The table of healthy teams, beside the others, that do raise an alarm, in Markdown."""
    return _table(
        ("also healthy", "what it does", "alarms", "a line that helps"),
        [(one.name, one.does, _names(one.without_line), _code(one.line)) for one in shapes],
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _names(alarms: Iterable[str]) -> str:
    return ", ".join(sorted(alarms)) or "-"


def _code(text: str) -> str:
    return f"`{text}`" if text else "-"
