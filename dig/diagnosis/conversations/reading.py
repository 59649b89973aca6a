"""Readers of conversations: from a file to its steps, and the role of each.

    conversation = read_conversation(Path("chat.json"))
    print(conversation.agents, conversation.steps[0].text)

A reader takes the keys that it knows and no others, so that labels in a file (which agent is at
fault, the right answer) never reach what names candidates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from dig.errors import RecordError, SettingsError, TraceError
from dig.graph.records import SYSTEM
from dig.traces.interchange.imports import read_text
from dig.traces.interchange.message_log import json_rows
from dig.traces.journal.json_text import parse
from dig.traces.journal.reader import TRACE, trace_path
from dig.traces.run import RecordedRun

Role = Literal["outside", "tool", "planner", "worker"]
DataType = Literal["text", "number", "list", "boolean"]
Layout = Literal["whowhen", "messages", "conversation"]
LAYOUTS: tuple[Layout, ...] = ("whowhen", "messages", "conversation")

SPEAKER = ("from", "sender", "who", "name", "agent", "role")
TEXT = ("content", "payload", "text", "message")
END_MARK = "TERMINATE"
LEAST_TEXT = 25
"""A step with fewer characters besides the end mark is idle."""

_OUTSIDE = frozenset(("human", "user", "environment", "system", "outside"))
_TOOLS = frozenset(("terminal", "executor", "tool", "interpreter"))
_PLANNERS = frozenset(
    ("orchestrator", "planner", "manager", "supervisor", "coordinator", "router")
)  # fmt: skip
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
_OUTPUT = "exitcode:"
_TO = re.compile(r"\(\s*->\s*+([^()]+)\)")
_AFTER_NAME = re.compile(r"[,:*]")
MOST_IN_NAME = 200


@dataclass(frozen=True, slots=True)
class ConversationStep:
    """A message of a conversation.

    Attributes:
        number: Its place in the file, counted from 0.
        agent: The agent that speaks: the speaker up to ` (`.
        speaker: The speaker as the file has it.
        text: The message.
        role: The role of the agent.
    """

    number: int
    agent: str
    speaker: str
    text: str
    role: Role = "worker"

    @property
    def is_idle(self) -> bool:
        """True for a step that says next to nothing."""
        return len(self.text.replace(END_MARK, "").strip()) < LEAST_TEXT


@dataclass(frozen=True, slots=True)
class DataEdge:
    """A datum that goes from one step to a later one.

    Attributes:
        source: The latest earlier step that has it.
        target: The step that uses it.
        type: The sort of the edge.
    """

    source: int
    target: int
    fact: str
    type: DataType


@dataclass(frozen=True)
class Conversation:
    """The log of a conversation, or a trace as one, for suspects: without labels.

    Attributes:
        name: The name of its file, without endings.
        sha256: The checksum of its file.
        steps: Its messages.
        task: The text of the task, if it is known.
        expected: The right answer; only if a user gave it on purpose.
        failures: Sentences about what went wrong, as far as that is known.
        lineage: The data that went from step to step, as records show; ``None``: texts alone can
            tell.
    """

    name: str
    sha256: str
    steps: tuple[ConversationStep, ...]
    task: str | None = None
    expected: str | None = None
    failures: tuple[str, ...] = ()
    lineage: tuple[DataEdge, ...] | None = None

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """Its agents, in the order in which they first speak."""
        return tuple(dict.fromkeys(one.agent for one in self.steps))

    @cached_property
    def told(self) -> tuple[ConversationStep, ...]:
        """The steps that have a text."""
        return tuple(one for one in self.steps if one.text.strip())

    @cached_property
    def candidates(self) -> tuple[ConversationStep, ...]:
        """The steps that can be at fault: those of workers and planners that say something."""
        acting = [one for one in self.told if one.role in ("planner", "worker")]
        return tuple(
            [one for one in acting if not one.is_idle]
            or [one for one in self.told if one.role != "outside"]
            or self.told
            or self.steps
        )


def read_conversation(
    path: Path,
    layout: Layout | None = None,
    *,
    task: str | None = None,
    expected: str | None = None,
) -> Conversation:
    """Read the log of a conversation.

    Args:
        path: The file.
        layout: Its layout; ``None``: the one that its content fits.
        task: The text of the task; ``None``: the one in the file, if there is one.
        expected: The right answer; `from-file`: the one in the file. ``None``: it is not read.

    Raises:
        TraceError: The file cannot be read, or has another layout, or holds no message.
        SettingsError: The right answer is to be read from a file that has none.
    """
    if layout == "conversation":
        found, data = _of_trace(path), trace_path(path).read_bytes()
        known: Mapping[str, Any] = {}
    else:
        text = read_text(path)
        data, text = text.encode(), text.lstrip("\ufeff")
        known = _whole(path, text) if layout in (None, "whowhen") else {}
        if "history" in known or layout == "whowhen":
            found = _of_history(path, known)
        else:
            known = {}
            found = _of_messages(path, text)
    if not found:
        raise TraceError(path, None, "holds no message")
    if expected == "from-file":
        expected = _text(known.get("ground_truth")) or None
        if expected is None:
            raise SettingsError(f"{path} has no right answer; give it with --expected TEXT")
    task = _text(known.get("question")) if task is None else task
    return Conversation(
        path.name.split(".")[0], sha256(data).hexdigest(), with_roles(found), task or None, expected
    )


def layout_of(path: Path) -> Layout | None:
    """The layout of a conversation; ``None``: the source is a run directory or a trace.

    Raises:
        TraceError: The file cannot be read.
    """
    if path.is_dir() or path.name.endswith((TRACE, ".dig.jsonl")) or not path.exists():
        return None
    start = read_text(path).lstrip("\ufeff \t\r\n")
    first = start.partition("\n")[0]
    try:
        row = parse(first, finite=False)
    except (json.JSONDecodeError, RecordError):
        row = None
    if isinstance(row, dict) and "history" not in row and {"t", "kind"} <= row.keys():
        return None
    if not start.startswith(("[", "{")):
        return None
    return "whowhen" if "history" in _whole(path, start) else "messages"


# --- layouts ---


def _whole(path: Path, text: str) -> Mapping[str, Any]:
    """The JSON object that a text is; empty if it is something else."""
    try:
        found = parse(text, "the file", finite=False)
    except json.JSONDecodeError:
        return {}
    except RecordError as error:
        raise TraceError(path, None, str(error)) from None
    return found if isinstance(found, dict) else {}


def _of_history(path: Path, whole: Mapping[str, Any]) -> list[ConversationStep]:
    rows = whole.get("history")
    if not isinstance(rows, list):
        raise TraceError(path, None, "has no list `history`")
    return [_step(path, n, row, ("name", "role")) for n, row in enumerate(rows)]


def _of_messages(path: Path, text: str) -> list[ConversationStep]:
    return [_step(path, n, row, SPEAKER) for n, (_, row) in enumerate(json_rows(path, text))]


def _of_trace(path: Path) -> list[ConversationStep]:
    """The events of an imported message log; those of the system are left out."""
    said = [
        one for one in RecordedRun.read(path, payloads=True).events.values() if one.by != SYSTEM
    ]
    return [step(n, one.agent or "environment", _text(one.payload)) for n, one in enumerate(said)]


def _step(path: Path, number: int, row: Any, keys: Sequence[str]) -> ConversationStep:
    if not isinstance(row, dict):
        raise TraceError(path, number + 1, "a message must be a JSON object")
    speaker = next((_text(row[key]) for key in keys if row.get(key) not in (None, "")), "")
    if not speaker.strip():
        raise TraceError(path, number + 1, f"says not who sent it (`{'`, `'.join(keys)}`)")
    said = next((row[key] for key in TEXT if row.get(key) is not None), None)
    return step(number, speaker, _text(said))


def step(number: int, speaker: str, text: str) -> ConversationStep:
    """A step, without a role yet."""
    agent = speaker.partition(" (")[0].strip() or speaker
    return ConversationStep(number, agent, speaker, text)


def _text(value: Any) -> str:
    """The text of a message: a string, parts with `text`, or any other value as JSON."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(one, dict | str) for one in value):
        parts = [one if isinstance(one, str) else _text(one.get("text")) for one in value]
        return "\n".join(filter(None, parts))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- roles ---


def folded(name: str) -> str:
    """A name as names are compared: without regard to case and surrounding space."""
    return name.strip().casefold()


def with_roles(steps: Sequence[ConversationStep]) -> tuple[ConversationStep, ...]:
    """Steps with the roles of their agents; the first spelling of a name stands for all."""
    spelled: dict[str, str] = {}
    texts: dict[str, list[ConversationStep]] = {}
    for one in steps:
        spelled.setdefault(folded(one.agent), one.agent)
        texts.setdefault(folded(one.agent), [])
        if not one.is_idle:
            texts[folded(one.agent)].append(one)
    speaking = frozenset(name for name, said in texts.items() if said)
    roles = {name: _role(name, spelled[name], said, speaking) for name, said in texts.items()}
    return tuple(replace(one, role=roles[folded(one.agent)]) for one in steps)


def _role(
    name: str, shown: str, said: Sequence[ConversationStep], speaking: Collection[str]
) -> Role:
    """The role of an agent.

    Args:
        name: Its name, as names are compared.
        shown: Its name, as it stands in the file.
        said: Its steps that say something.
        speaking: The agents that say something.
    """
    words = {word.casefold() for word in _WORDS.findall(shown)}
    if name in _OUTSIDE:
        return "outside"
    if words & _TOOLS or any(one.text.lstrip().startswith(_OUTPUT) for one in said):
        return "tool"
    asked = {_addressee(one) for one in said}
    delegates = len(said) > 1 and all(other in speaking and other != name for other in asked)
    return "planner" if words & _PLANNERS or delegates else "worker"


def _addressee(one: ConversationStep) -> str:
    """The name that a step begins with, or that its speaker tells, as in `Lead (-> Ann)`."""
    told = _TO.search(one.speaker)
    if told is not None:
        return folded(told[1])
    start = one.text[:MOST_IN_NAME].lstrip(" \t\n*@")
    return folded(_AFTER_NAME.split(start, maxsplit=1)[0])
