"""Agents in spans of LlamaIndex: a workflow has spans of steps alone.

OpenInference makes a span of each step of a workflow, with the text that Python prints of the
step's input: who has the floor, and the messages.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from dig.traces.otel import conventions

from . import span_words
from .span_rows import SpanRow

_PRINTED = re.compile(
    r"role=<MessageRole\.(\w+)|(block_type='text', text|current_agent_name)="
    r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
)
"""Roles, texts of messages and names of agents in what Python prints of a step's input."""

_ESCAPE = re.compile(
    r"\\(?:(x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})|(.))", re.DOTALL
)
"""A character in such a text that Python does not print as it is."""

_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_start = attrgetter("start")
_NAME = "current_agent_name"
_STEPS, _OUTPUT = (".setup_agent", ".run_agent_step"), ".parse_agent_output"


def with_agents(rows: Sequence[SpanRow]) -> list[SpanRow]:
    """Add a span around the work of each agent of a workflow."""
    runs: defaultdict[Any, list[SpanRow]] = defaultdict(list)
    steps: defaultdict[Any, list[SpanRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.start):
        runs[row.parent].append(row)
        if row.name.endswith(_STEPS) and _agent(row):
            steps[row.parent].append(row)
    spans = {row.id: row for row in rows}
    for run in [run for run in steps if run in spans]:
        spans |= {row.id: row for row in _agents(spans[run], steps[run], runs)}
    return [*spans.values()]


def _agents(
    run: SpanRow, steps: Sequence[SpanRow], below: defaultdict[Any, list[SpanRow]]
) -> Iterator[SpanRow]:
    """The spans of the agents of a run, and the spans below."""
    floors = [(name, [*group]) for name, group in groupby(steps, _agent)]
    starts, rows = [run.start, *(group[0].start for _, group in floors[1:])], below[run.id]
    for number, (name, group) in enumerate(floors):
        is_last = number + 1 == len(floors)
        end = run.end if is_last else starts[number + 1]
        first = bisect_left(rows, starts[number], key=_start)
        inside = rows[first : None if is_last else bisect_left(rows, end or 0, key=_start)]
        answers = [_words_of(row, "ASSISTANT") for row in inside if row.name.endswith(_OUTPUT)]
        handoffs = [_handoff(row) for step in inside for row in below[step.id]]
        answer = next(filter(None, [*handoffs, *answers[-1:]]), None)
        about = {conventions.KIND: "AGENT", "agent.name": name, conventions.OUTPUT: answer,
                 conventions.INPUT: None if number else _words_of(group[0], "USER")}  # fmt: skip
        own = replace(run, id=(run.id[0], f"{run.id[1]}.{number}"), parent=run.id, name=name,
                      start=starts[number], end=end, attributes=about)  # fmt: skip
        yield own if is_last else replace(own, status="", message="", events=())
        yield from (replace(row, parent=own.id) for row in inside)


def _handoff(row: SpanRow) -> Any:
    """The words of a hand-over; false: the span is of something else."""
    if span_words.first(row.attributes, span_words.TOOL) != "handoff":
        return False
    words = span_words.words(row.attributes, "question")
    arguments = words.get("kwargs") if isinstance(words, dict) else None
    return isinstance(arguments, dict) and {k: v for k, v in arguments.items() if k != "ctx"}


def _printed(row: SpanRow) -> Iterator[re.Match[str]]:
    """The printed parts of a step's input, else of the output."""
    about = row.attributes
    step = span_words.parsed(str(about.get(conventions.INPUT) or ""))
    text = step.get("ev") if isinstance(step, dict) else about.get(conventions.OUTPUT)
    return _PRINTED.finditer(str(text or ""))


def _agent(row: SpanRow) -> str:
    """The agent with the floor at a step; empty: the span does not tell."""
    names = [part[3] for part in _printed(row) if part[2] == _NAME]
    return _unquote(names[-1]) if names else ""


def _words_of(row: SpanRow, role: str) -> str:
    """The text of the last message of a role in the input of a step."""
    texts, speaker = list[str](), ""
    for part in _printed(row):
        if part[2] == _NAME:
            break
        if part[1]:
            speaker, texts = part[1], [] if part[1] == role else texts
        elif speaker == role:
            texts.append(_unquote(part[3]))
    return "".join(texts)


def _unquote(printed: str) -> str:
    """The text that Python printed in quotation marks."""
    return _ESCAPE.sub(
        lambda escape: _CONTROLS.get(escape[2], escape[2]) or chr(int(escape[1][1:], 16)),
        printed[1:-1],
    )
