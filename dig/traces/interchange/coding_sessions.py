"""Sessions of Claude Code: the rows of the main agent's file, and of the subagents' files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path

from dig._util.files import open_file, read_file
from dig.errors import TraceError, trace_errors
from dig.graph.records import Record

from .scribe import Guesses
from .source_files import MOST_BYTES
from .talks import Node, Talk, Talks, as_node, as_nodes, micros_of, text_of

_ENDS = ("end_turn", "stop_sequence", "max_tokens", "refusal")
_USAGE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_OWN_KEYS = ("parentUuid", "sessionId", "leafUuid", "snapshot")
_NOBODYS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")


def is_session(path: Path, head: str) -> bool:
    """Whether a file is a session, by the beginning."""
    try:
        row = as_node(json.loads(head.partition("\n")[0]))
    except (ValueError, RecursionError):  # maybe a row that is longer than the beginning
        return head.startswith("{") and '"isSidechain":' in head
    return "type" in row and any(key in row for key in _OWN_KEYS)


def is_subagent(path: Path) -> bool:
    """Whether a session's file is a subagent's, to be read with the caller's."""
    return path.name.startswith("agent-")


def read_session(path: Path) -> tuple[list[Record], Guesses]:
    """The records of a session with all subagents, and the guesses.

    Raises:
        TraceError: A file cannot be read, or holds something else; the line is named.
    """
    mixed = set[Path]()  # the files with rows to be sorted: rare, so only these are held in memory
    while True:
        session, count = Talks(Guesses()), len(mixed)
        _read(path, session, mixed)
        if len(mixed) == count:
            return session.write(path, "main")


def _read(path: Path, session: Talks, mixed: set[Path]) -> None:
    for file in agent_files(path):
        talk = session.talk(file.stem.removeprefix("agent-"))
        talk.use = _use_of(file)
        for row in _ordered(file, session.guesses, mixed):
            _take(session, talk, row)
    roots: dict[str, str] = {}  # of the rows of subagents in the same file, as older versions write
    with_files = {*session.talks} - {""}
    for line in _ordered(path, session.guesses, mixed):
        key, row = _place(line, roots, is_alone=is_subagent(path))
        if key not in with_files:  # whose files hold the same, and more
            _take(session, session.talk(key), row)


def _place(row: Node, roots: dict[str, str], *, is_alone: bool) -> tuple[str, Node]:
    """The key of a row's talk, and the row."""
    if row.get("type") == "progress" and (data := as_node(row.get("data"))).get("agentId"):
        inner = {"timestamp": row.get("timestamp"), **as_node(data.get("message"))}
        return str(data["agentId"]), {**inner, "parentToolUseID": row.get("parentToolUseID")}
    if not row.get("isSidechain") or is_alone:
        return "", row
    uuid, parent = str(row.get("uuid")), str(row.get("parentUuid"))
    roots[uuid] = str(row.get("agentId") or roots.get(parent, uuid))
    return roots[uuid], row


def agent_files(path: Path) -> list[Path]:
    """The subagents' files of a session: in the session's directory, or (older) beside the file."""
    if is_subagent(path):
        return []
    near = [*path.parent.glob("agent-*.jsonl"), *path.parent.glob("subagents/agent-*.jsonl")]
    files = [file for file in near if session_id(file) == session_id(path) != ""]
    files += (path.with_suffix("") / "subagents").rglob("agent-*.jsonl")
    here = path.parent
    place = here.resolve()  # no link leads out of it
    return [file for file in sorted(files) if file.resolve() == place / file.relative_to(here)]


@lru_cache(1024)
def session_id(path: Path) -> str:
    """The id of a file's session, by the first rows; empty: no row has an id."""
    with suppress(TraceError):
        rows = islice(_rows(path, Guesses()), 20)
        return next((str(row["sessionId"]) for row in rows if row.get("sessionId")), "")
    return ""


def _use_of(file: Path) -> str:
    """The id of the use of the tool behind a subagent, if a file beside tells."""
    with suppress(OSError, ValueError, RecursionError):
        meta = json.loads(read_file(file.with_suffix(".meta.json")))
        return str(as_node(meta).get("toolUseId", ""))
    return ""


def _ordered(path: Path, guesses: Guesses, mixed: set[Path]) -> Iterator[Node]:
    """The rows; at a row before the parent's the file is added to `mixed`, and the rows end."""
    if path in mixed:
        guesses.note("rows that stand before those that they follow were sorted by time")
        yield from sorted(
            _rows(path, guesses), key=lambda row: micros_of(row.get("timestamp")) or 0
        )
        return
    seen, awaited = set[str](), set[str]()
    for row in _rows(path, guesses):
        uuid, parent = str(row.get("uuid")), row.get("parentUuid")
        if uuid in awaited:
            mixed.add(path)
            return
        seen.add(uuid)
        if parent is not None and str(parent) not in seen:
            awaited.add(str(parent))
        yield row


def _rows(path: Path, guesses: Guesses) -> Iterator[Node]:
    """The rows of a file, each once; half a row at the end is left out."""
    seen: set[str] = set()
    with trace_errors(path), open_file(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(MOST_BYTES + 1), b""), 1):
            try:
                row = json.loads(line.decode("utf-8-sig")) if line.strip() else {}
            except (ValueError, RecursionError) as error:
                if not line.endswith(b"\n") and len(line) <= MOST_BYTES:
                    guesses.note("a half row at the end of a file was left out", path.name)
                    return
                reason = f"is no JSON, or too long: {str(error)[:100]}"
                raise TraceError(path, number, reason) from None
            uuid = row.get("uuid") if isinstance(row, dict) else None
            if isinstance(row, dict) and (uuid is None or str(uuid) not in seen):
                seen.update([str(uuid)] if uuid is not None else ())
                yield row


def _take(session: Talks, talk: Talk, row: Node) -> None:
    """Feed a row to a talk."""
    us, kind = micros_of(row.get("timestamp")), row.get("type")
    message = as_node(row.get("message"))
    content = message.get("content")
    talk.use = talk.use or str(row.get("parentToolUseID") or "")
    if kind == "assistant":
        _take_work(talk, us, message, is_error=bool(row.get("isApiErrorMessage")))
    elif kind in ("user", "tool_result"):
        for block in as_nodes(content):
            if block.get("type") == "tool_result":
                use, text = str(block.get("tool_use_id")), text_of(block.get("content"))
                is_error, facts = bool(block.get("is_error")), as_node(row.get("toolUseResult"))
                talk.result(us, use, text, is_error=is_error, facts=facts)
        text = text_of(content)
        if "<task-notification>" in text or not any(row.get(key) for key in _NOBODYS):
            talk.hear(us, text)
    elif kind == "attachment":
        attachment = as_node(row.get("attachment"))
        if attachment.get("type") == "queued_command":
            talk.hear(us, text_of(attachment.get("prompt")), is_queued=True)
        elif attachment.get("type") == "teammate_mailbox":
            for mail in as_nodes(attachment.get("messages")):
                talk.hear_from(us, str(mail.get("from")), text_of(mail.get("text")))


def _take_work(talk: Talk, us: int | None, message: Node, *, is_error: bool) -> None:
    usage = as_node(message.get("usage"))
    numbers = {key: usage[key] for key in _USAGE if isinstance(usage.get(key), int)}
    talk.work(us, numbers, message.get("id"))
    if is_error:
        talk.stop(text_of(message.get("content")) or "API error")
        return
    for block in as_nodes(message.get("content")):
        if block.get("type") == "text":
            talk.say(text_of([block]))
        elif block.get("type") == "tool_use":
            given = as_node(block.get("input"))
            talk.use_tool(str(block.get("id")), str(block.get("name")), given)
    if (reason := message.get("stop_reason")) in _ENDS or reason == "tool_use":
        talk.rest(is_over=reason != "tool_use")
