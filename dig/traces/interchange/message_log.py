"""A plain log of messages (sender, recipients, time, reply), as CSV, JSON or JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from dig._util.json_text import parse
from dig._util.json_values import plain
from dig.detectors.thresholds import Thresholds
from dig.errors import PayloadError, RecordError, TraceError
from dig.graph.records import NOTICE, SYSTEM, Limits, Record, micros

from .chat_turns import ChatMessage
from .conversation import as_run
from .scribe import Guesses

OUTSIDE = ("", "environment", "user", "human", "outside")
EVERYBODY = ("*", "all", "everybody", "broadcast")
_COARSE_S = 60
_KEYS = {
    "id": ("id", "message_id"),
    "sender": ("from", "sender", "who"),
    "to": ("to", "recipients", "recipient"),
    "at": ("at", "time", "timestamp", "when", "ts"),
    "reply_to": ("reply_to", "in_reply_to", "parent"),
    "type": ("type",),
    "payload": ("content", "payload", "text", "message"),
}


def read_log(path: Path, text: str) -> tuple[list[Record], Guesses]:
    """The records of a message log, and the guesses.

    Raises:
        TraceError: The text is no message log; the line (or the number of the message) is named.
    """
    guesses = Guesses()
    rows = list(_rows(path, text))
    times = [_time(path, line, row, guesses) for line, row in rows]
    messages = _messages(path, rows, times, guesses)
    if not messages:
        raise TraceError(path, None, "holds no message")
    return as_run(path, messages, guesses, _limits(times, guesses)), guesses


# --- reading ---


def _limits(times: Sequence[float | None], guesses: Guesses) -> Limits:
    """The default limits; without STALL if the times are too poor to tell how long a turn lasted.

    If no message has a time no time passes at all, and nothing can be overdue.
    """
    limits = Thresholds().limits
    stated = [time for time in times if time is not None]
    if not stated or (len(stated) == len(times) and any(time % _COARSE_S for time in stated)):
        return limits
    guesses.note("STALL is off, as some times are missing or all are whole minutes")
    return replace(limits, stall_factor=None)


def _messages(
    path: Path,
    rows: Sequence[tuple[int, Mapping[str, Any]]],
    times: Sequence[float | None],
    guesses: Guesses,
) -> list[ChatMessage]:
    base = min((time for time in times if time is not None), default=0.0)
    people = _people(path, rows)
    messages: list[ChatMessage] = []
    last = base
    for (line, row), time in zip(rows, times, strict=True):
        if time is None:
            guesses.note("a message without a time came when the one before it did", f"line {line}")
        last = last if time is None else time
        messages.append(_message(path, line, row, micros(last - base), people, guesses))
    # Sorting is stable: messages of one moment keep their order in the log.
    if any(a.us > b.us for a, b in pairwise(messages)):
        guesses.note("the messages were not in order of time, and were sorted")
        messages.sort(key=lambda message: message.us)
    lines: dict[str, int] = {}
    for message in messages:
        if message.id == SYSTEM:
            raise TraceError(path, message.line, "`system` can be nobody's id")
        if message.id in lines:
            reason = f"the id {message.id[:60]!r} is used in line {lines[message.id]} as well"
            raise TraceError(path, message.line, reason)
        lines[message.id] = message.line
    return _without_idle_notices(messages, guesses)


def _without_idle_notices(messages: list[ChatMessage], guesses: Guesses) -> list[ChatMessage]:
    """The messages; a notice without a reply goes to nobody, since no turn is known to read it."""
    replies = {event for message in messages for event in message.reply_to or ()}
    idle = {m.id for m in messages if m.type == NOTICE and m.to and m.id not in replies}
    if idle:
        # Else it would lie beside the messages of all later requests.
        guesses.note("a notice that no message replies to reached nobody")
    return [replace(m, to=()) if m.id in idle else m for m in messages]


def _rows(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Messages as mappings, with the line or number of each."""
    start = text.lstrip("\ufeff \t\r\n")[:1]
    if start in ("[", "{"):
        yield from json_rows(path, text.lstrip("\ufeff"))
        return
    try:
        reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff")), strict=True)
        for row in reader:
            if None in row:
                raise TraceError(path, reader.line_num, "has more columns than the first line")
            yield reader.line_num, {str(k).strip().lower(): v for k, v in row.items()}
    except csv.Error as error:
        raise TraceError(path, reader.line_num, f"is no CSV: {error}") from None


def json_rows(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a JSON list, of `{"messages": [...]}` or of JSON lines, with numbers.

    Raises:
        TraceError: The text is something else; the line (or the number of the object) is named.
    """
    try:
        document = parse(text, "what begins here", finite=False)
        rows = document.get("messages", [document]) if isinstance(document, dict) else document
    except RecordError as error:
        raise TraceError(path, 1, str(error)) from None
    except json.JSONDecodeError:
        rows = []
        for number, line in enumerate(text.splitlines(), 1):
            try:
                rows += [parse(line, finite=False)] if line.strip() else []
            except json.JSONDecodeError as error:
                raise TraceError(path, number, f"is no JSON: {error.msg}") from None
            except RecordError as error:
                raise TraceError(path, number, str(error)) from None
    if not isinstance(rows, list):
        raise TraceError(path, None, "`messages` must be a list")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise TraceError(path, number, "a message must be a JSON object")
        yield number, row


def _get(row: Mapping[str, Any], key: str) -> Any:
    return next((row[k] for k in _KEYS[key] if row.get(k) not in (None, "")), None)


def _time(path: Path, line: int, row: Mapping[str, Any], guesses: Guesses) -> float | None:
    value = _get(row, "at")
    if value is None:
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            reason = f"{str(value)[:40]!r} is no time; write seconds, or ISO 8601"
            raise TraceError(path, line, reason) from None
        if moment.tzinfo is None:
            guesses.note("a time without a zone is in UTC")
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    if not abs(seconds) < 1e12:
        raise TraceError(path, line, f"{str(value)[:40]!r} is no time that makes sense")
    return seconds


def _names(value: Any) -> list[str]:
    """The names in a cell or a list; several in a cell stand between `;`."""
    if isinstance(value, list):
        return [str(name).strip() for name in value]
    return [name.strip() for name in str(value or "").split(";")]


def _people(path: Path, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> list[str]:
    """All senders and recipients, by order of appearance, but for the outside."""
    people: dict[str, None] = {}
    for line, row in rows:
        for name in (*_names(_get(row, "sender")), *_names(_get(row, "to"))):
            if name == SYSTEM:
                raise TraceError(path, line, "`system` can be nobody's name here")
            if name.lower() not in (*OUTSIDE, *EVERYBODY):
                people[name] = None
    return list(people)


def _message(
    path: Path, line: int, row: Mapping[str, Any], us: int, people: list[str], guesses: Guesses
) -> ChatMessage:
    if not any(key in row for key in _KEYS["sender"]):
        raise TraceError(path, line, f"does not say who sent it (`{'`, `'.join(_KEYS['sender'])}`)")
    (sender, *more) = _names(_get(row, "sender"))
    if more:
        raise TraceError(path, line, "has more than one sender")
    is_outside = sender.lower() in OUTSIDE
    name = _get(row, "id")
    if name is None:
        guesses.note("messages without an id are called by their line: m1, m2, ...")
    replies = _get(row, "reply_to")
    try:
        payload = plain(_get(row, "payload"))
    except PayloadError as error:
        raise TraceError(path, line, str(error)) from None
    return ChatMessage(
        line, f"m{line}" if name is None else str(name), None if is_outside else sender,
        _recipients(row, sender, people, guesses), us,
        None if replies is None else tuple(event for event in _names(replies) if event),
        str(_get(row, "type") or "message"), payload,
    )  # fmt: skip


def _recipients(
    row: Mapping[str, Any], sender: str, people: list[str], guesses: Guesses
) -> tuple[str | None, ...]:
    recipients: dict[str | None, None] = {}
    for name in _names(_get(row, "to")):
        if not name or name.lower() in EVERYBODY:
            whom = "everybody" if name else "nobody in particular"
            guesses.note(f"a message to {whom} went to all who appear in the log")
            recipients.update(dict.fromkeys(name for name in people if name != sender))
        else:
            recipients[None if name.lower() in OUTSIDE else name] = None
    return tuple(recipients)
