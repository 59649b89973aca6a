"""Small conversations, made up for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dig.diagnosis.conversations.reading import (
    Conversation,
    build_step,
    read_conversation,
    with_roles,
)

TASK = "How many bridges cross the river Arvo between the towns of Lund and Minde?"

BRIDGES = (
    ("Survey_Expert", f"Task: {TASK}\n\nPlan: 1. look up the bridges. 2. count them. 3. check."),
    ("Map_Expert", "I look them up.\n```python\nprint(lookup('bridges', 'Arvo'))\n```"),
    (
        "Computer_terminal",
        "exitcode: 1 (execution failed)\nTraceback (most recent call last): oops",
    ),
    ("Map_Expert", "Let's assume a sample of 17 bridges, as the lookup failed on the map server."),
    ("Check_Expert", "The sample says 17 bridges, and nothing speaks against it. So it is 17."),
    ("Survey_Expert", "The answer is 17 bridges, as Check_Expert has confirmed.\n\nTERMINATE"),
    ("Map_Expert", "TERMINATE"),
)
"""An expert invents a number, since a lookup failed."""

LOOP = (
    ("human", "Find the opening hours of the museum in the old harbour of Lund."),
    ("Orchestrator (thought)", "The museum's site must be asked, and then the hours be read off."),
    ("Orchestrator (-> Browser)", "Please open the site of the museum and read its opening hours."),
    ("Browser", "Error: the page could not be opened, the connection was closed by the server."),
    ("Orchestrator (-> Browser)", "Please open the site of the museum and read its opening hours."),
    ("Browser", "Error: the page could not be opened, the connection was closed by the server."),
    ("Orchestrator (-> Browser)", "Please open the site of the museum and read its opening hours."),
    ("Browser", "Error: the page could not be opened, the connection was closed by the server."),
    ("Orchestrator (final answer)", "The museum is open from nine to five on each day but Monday."),
)
"""A planner that repeats a command that fails."""


def talk(
    rows: Sequence[tuple[str, str]] = BRIDGES, task: str | None = TASK, name: str = "talk"
) -> Conversation:
    steps = [build_step(number, speaker, text) for number, (speaker, text) in enumerate(rows)]
    return Conversation(name, "0" * 64, with_roles(steps), task)


def history(rows: Sequence[tuple[str, str]] = BRIDGES, **more: Any) -> dict[str, Any]:
    """A conversation in the benchmark's own layout."""
    said = [{"content": text, "role": "user", "name": who} for who, text in rows]
    return {"question": TASK, "ground_truth": "12", "history": said, **more}


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def read(path: Path, value: Any, *arguments: Any, **more: Any) -> Conversation:
    return read_conversation(write(path, value), *arguments, **more)
