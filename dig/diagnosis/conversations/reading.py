"""Reads the log of a conversation into steps, and finds the role of each agent.

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

from dig._util.files import open_file
from dig._util.json_text import parse
from dig.errors import RecordError, SettingsError, TraceError
from dig.graph.records import SYSTEM
from dig.traces.interchange.imports import read_text
from dig.traces.interchange.message_log import json_rows
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
        """Report whether a step says next to nothing."""
        return len(self.text.replace(END_MARK, "").strip()) < LEAST_TEXT


@dataclass(frozen=True, slots=True)
class DataEdge:
    """A datum on the way from a step to a later step.

    Attributes:
        source: The latest earlier step that has it.
        target: The step that uses it.
        type: The sort of the edge.
    """

    source: int
    target: int
    fact: str
    type: DataType


# Without slots: the cached properties need a `__dict__`.
@dataclass(frozen=True)
class Conversation:
    """Log of a conversation, or a trace in the same form, without labels.

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
        """Agents, in order of first speech."""
        return tuple(dict.fromkeys(step.agent for step in self.steps))

    @cached_property
    def speaking_steps(self) -> tuple[ConversationStep, ...]:
        """Steps with a text."""
        return tuple(step for step in self.steps if step.text.strip())

    @cached_property
    def candidates(self) -> tuple[ConversationStep, ...]:
        """Steps that can be at fault: speaking steps of workers and planners."""
        acting = [step for step in self.speaking_steps if step.role in ("planner", "worker")]
        return tuple(
            [step for step in acting if not step.is_idle]
            or [step for step in self.speaking_steps if step.role != "outside"]
            or self.speaking_steps
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
        steps = _of_trace(path)
        with open_file(trace_path(path)) as file:
            data = file.read()
        document: Mapping[str, Any] = {}
    else:
        text = read_text(path)
        # The checksum is of the whole file, also of a byte order mark.
        data, text = text.encode(), text.lstrip("\ufeff")
        document = _parse_document(path, text) if layout in (None, "whowhen") else {}
        if "history" in document or layout == "whowhen":
            steps = _of_history(path, document)
        else:
            document = {}
            rows = enumerate(json_rows(path, text))
            steps = [_step(path, n, row, SPEAKER) for n, (_, row) in rows]
    if not steps:
        raise TraceError(path, None, "holds no message")
    if expected == "from-file":
        expected = _text(document.get("ground_truth")) or None
        if expected is None:
            raise SettingsError(f"{path} has no right answer; give it with --expected TEXT")
    task = _text(document.get("question")) if task is None else task
    return Conversation(
        path.name.split(".")[0], sha256(data).hexdigest(), with_roles(steps), task or None, expected
    )


def layout_of(path: Path) -> Layout | None:
    """Detect the layout of a conversation; ``None``: the source is a run directory or a trace.

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
    return "whowhen" if "history" in _parse_document(path, start) else "messages"


# --- layouts ---


def _parse_document(path: Path, text: str) -> Mapping[str, Any]:
    """Parse a JSON object; empty for anything else."""
    try:
        document = parse(text, "the file", finite=False)
    except json.JSONDecodeError:
        return {}
    except RecordError as error:
        raise TraceError(path, None, str(error)) from None
    return document if isinstance(document, dict) else {}


def _of_history(path: Path, document: Mapping[str, Any]) -> list[ConversationStep]:
    rows = document.get("history")
    if not isinstance(rows, list):
        raise TraceError(path, None, "has no list `history`")
    return [_step(path, n, row, ("name", "role")) for n, row in enumerate(rows)]


def _of_trace(path: Path) -> list[ConversationStep]:
    """Turn the events of an imported message log into steps; events of the system are left out."""
    events = [
        event
        for event in RecordedRun.read(path, payloads=True).events.values()
        if event.by != SYSTEM
    ]
    return [
        build_step(n, event.agent or "environment", _text(event.payload))
        for n, event in enumerate(events)
    ]


def _step(path: Path, number: int, row: Any, keys: Sequence[str]) -> ConversationStep:
    if not isinstance(row, dict):
        raise TraceError(path, number + 1, "a message must be a JSON object")
    speaker = next((_text(row[key]) for key in keys if row.get(key) not in (None, "")), "")
    if not speaker.strip():
        raise TraceError(path, number + 1, f"does not say who sent it (`{'`, `'.join(keys)}`)")
    content = next((row[key] for key in TEXT if row.get(key) is not None), None)
    return build_step(number, speaker, _text(content))


def build_step(number: int, speaker: str, text: str) -> ConversationStep:
    """Build a step, without a role yet."""
    agent = speaker.partition(" (")[0].strip() or speaker
    return ConversationStep(number, agent, speaker, text)


def _text(value: Any) -> str:
    """Extract the text of a message: a string, parts with `text`, or any other value as JSON."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(part, dict | str) for part in value):
        parts = [part if isinstance(part, str) else _text(part.get("text")) for part in value]
        return "\n".join(filter(None, parts))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # JSON may hold half a surrogate pair, which no file and no request can hold.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- roles ---


def fold_name(name: str) -> str:
    """Fold a name for comparison, without regard to case and surrounding space."""
    return name.strip().casefold()


def with_roles(steps: Sequence[ConversationStep]) -> tuple[ConversationStep, ...]:
    """Give steps the roles of the agents; the first spelling of a name stands for all."""
    spelled: dict[str, str] = {}
    texts: dict[str, list[ConversationStep]] = {}
    for step in steps:
        spelled.setdefault(fold_name(step.agent), step.agent)
        texts.setdefault(fold_name(step.agent), [])
        if not step.is_idle:
            texts[fold_name(step.agent)].append(step)
    # An addressee that never speaks is no agent but the first words of a sentence.
    speaking = frozenset(name for name, own_steps in texts.items() if own_steps)
    roles = {
        name: _role(name, spelled[name], own_steps, speaking) for name, own_steps in texts.items()
    }
    return tuple(replace(step, role=roles[fold_name(step.agent)]) for step in steps)


def _role(
    name: str, shown: str, own_steps: Sequence[ConversationStep], speaking: Collection[str]
) -> Role:
    """Guess the role of an agent from the name, from outputs and from addressees."""
    words = {word.casefold() for word in _WORDS.findall(shown)}
    if name in _OUTSIDE:
        return "outside"
    if words & _TOOLS or any(step.text.lstrip().startswith(_OUTPUT) for step in own_steps):
        return "tool"
    addressees = {_addressee(step) for step in own_steps}
    # Once may be chance: a planner begins each step with the name of another agent.
    delegates = len(own_steps) > 1 and all(
        other in speaking and other != name for other in addressees
    )
    return "planner" if words & _PLANNERS or delegates else "worker"


def _addressee(step: ConversationStep) -> str:
    """Read the addressee at the start of a text, or after the speaker, as in `Lead (-> Ann)`."""
    recipient = _TO.search(step.speaker)
    if recipient is not None:
        return fold_name(recipient[1])
    start = step.text[:MOST_IN_NAME].lstrip(" \t\n*@")
    return fold_name(_AFTER_NAME.split(start, maxsplit=1)[0])
