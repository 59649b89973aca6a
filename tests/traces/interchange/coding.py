"""Small files in the form that coding agents write, made here: nothing in them was recorded."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

START = datetime(2026, 8, 18, 9, 0, tzinfo=UTC)


def at(seconds: float) -> str:
    return (
        (START + timedelta(seconds=seconds))
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


class Talk:
    """The rows of an agent, written one after another."""

    def __init__(self, agent: str | None = None, **keys: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        self.seconds = 0.0
        self._messages = count(1)
        self._keys = {"sessionId": "5e55", "version": "2.1.40", "cwd": "/repo", **keys}
        self._prefix = agent or "main"
        if agent is not None:
            self._keys |= {"isSidechain": True, "agentId": agent}

    def row(self, type: str, seconds: float | None = None, **keys: Any) -> Talk:
        self.seconds = self.seconds + 1 if seconds is None else seconds
        before = self.rows[-1]["uuid"] if self.rows else None
        uuid = f"{self._prefix}-{len(self.rows)}"
        self.rows.append(
            {"parentUuid": before, "isSidechain": False, **self._keys, "type": type, "uuid": uuid,
             "timestamp": at(self.seconds), **keys}
        )  # fmt: skip
        return self

    def user(self, content: Any, seconds: float | None = None, **keys: Any) -> Talk:
        return self.row("user", seconds, message={"role": "user", "content": content}, **keys)

    def assistant(
        self, *blocks: Any, seconds: float | None = None, id: str = "", **keys: Any
    ) -> Talk:
        message = {
            "id": id or f"msg-{self._prefix}-{next(self._messages)}",
            "role": "assistant",
            "content": list(blocks),
            "stop_reason": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        return self.row("assistant", seconds, message=message, **keys)

    def say(self, text: str, seconds: float | None = None) -> Talk:
        return self.assistant({"type": "text", "text": text}, seconds=seconds)

    def use(
        self, id: str, tool: str, seconds: float | None = None, message: str = "", **given: Any
    ) -> Talk:
        block = {"type": "tool_use", "id": id, "name": tool, "input": given}
        return self.assistant(block, seconds=seconds, id=message)

    def result(self, id: str, text: str, seconds: float | None = None, *, error: bool = False,
               facts: Any = None) -> Talk:  # fmt: skip
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": id,
            "content": [{"type": "text", "text": text}],
        }
        if error:
            block = {**block, "is_error": True}
        more = {} if facts is None else {"toolUseResult": facts}
        return self.user([block], seconds, **more)

    def spawn(self, id: str, what: str, type: str = "Explore", **given: Any) -> Talk:
        return self.use(
            id, "Agent", description=what, subagent_type=type, prompt=f"Do: {what}", **given
        )

    def launched(self, id: str, agent: str) -> Talk:
        facts = {"isAsync": True, "status": "async_launched", "agentId": agent}
        return self.result(id, f"Async agent launched successfully.\nagentId: {agent}", facts=facts)

    def notified(self, agent: str, text: str, status: str = "completed") -> Talk:
        return self.user(notification(agent, text, status))


def notification(agent: str, text: str, status: str = "completed") -> str:
    tags = {"task-id": agent, "status": status, "summary": f"Agent {status}", "result": text}
    inner = "".join(f"<{tag}>{value}</{tag}>\n" for tag, value in tags.items())
    return f"<task-notification>\n{inner}</task-notification>"


def write(path: Path, rows: list[dict[str, Any]] | Talk) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = rows.rows if isinstance(rows, Talk) else rows
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def subagent(agent: str, prompt: str, seconds: float, answer: str | None = "done") -> Talk:
    """The file of a subagent that looks at one thing; without an answer it stops in the middle."""
    talk = Talk(agent).user(prompt, seconds).use(f"t-{agent}", "Read", file_path="/repo/a.py")
    talk.result(f"t-{agent}", "text")
    return talk if answer is None else talk.say(answer)


def store(folder: Path, main: Talk, *subagents: Talk) -> Path:
    path = write(folder / "5e55.jsonl", main)
    for talk in subagents:
        write(folder / "5e55" / "subagents" / f"agent-{talk._prefix}.jsonl", talk)
    return path


def foreground(folder: Path) -> Path:
    """Two subagents of one message, side by side, and both reports read."""
    main = Talk().user("Review the change").say("I look.")
    main.spawn("c1", "Review auth", message="m").spawn("c2", "Review cache", message="m")
    main.result("c1", "auth is fine", 20, facts={"status": "completed", "agentId": "a1"})
    main.result("c2", "cache is fine", 25, facts={"status": "completed", "agentId": "a2"})
    main.say("Both are fine.", 27)
    return store(
        folder, main, subagent("a1", "Do: Review auth", 5), subagent("a2", "Do: Review cache", 6)
    )


def background(folder: Path, spawned: int = 19, unread: int = 4) -> Path:
    """As many in the background; the last ones end, and nobody is told."""
    main, others = Talk().user("Audit every module"), []
    for n in range(spawned):
        main.spawn(f"c{n}", f"Audit module {n}", run_in_background=True).launched(
            f"c{n}", f"a{n:02}"
        )
        others.append(
            subagent(f"a{n:02}", f"Do: Audit module {n}", main.seconds, f"module {n} is fine")
        )
    main.say(f"{spawned} are at work.")
    main.seconds += 100
    for n in range(spawned - unread):
        main.notified(f"a{n:02}", f"module {n} is fine").say(f"{n + 1} reports are here.")
    main.say("The audit is complete.")
    return store(folder, main, *others)
