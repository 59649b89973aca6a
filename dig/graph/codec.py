"""Records from and to JSON: one line of a trace file, without regard to the lines before."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from json.encoder import encode_basestring_ascii
from sys import intern
from typing import Any, TypeVar, cast, get_args

from dig._util.json_values import dumps
from dig.errors import RecordError

from . import records
from .records import Fate, Limits, Record, Usual, micros

_T = TypeVar("_T")

# --- from JSON ------------------------------------------------------------------------------

_MISSING = object()
_NAMES = {
    str: "a string", bool: "true or false", int: "a whole number", list: "a list",
    dict: "an object",
}  # fmt: skip


def _want(row: dict[str, Any], key: str, kind: type[_T]) -> _T:
    value = row.get(key, _MISSING)
    if type(value) is not kind:
        problem = "is missing" if value is _MISSING else f"is {_show(value)}"
        raise RecordError(f"`{key}` {problem}; it must be {_NAMES[kind]}")
    return value


def _name(row: dict[str, Any], key: str) -> str:
    # A name stands in many rows, and a long run would keep a text for each.
    return intern(_want(row, key, str))


def _show(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _value(row: dict[str, Any], key: str) -> Any:
    value = row.get(key, _MISSING)
    if value is _MISSING:
        raise RecordError(f"`{key}` is missing")
    return value


def _or_null(row: dict[str, Any], key: str) -> str | None:
    return None if _value(row, key) is None else _name(row, key)


def _text(row: dict[str, Any], key: str) -> str | None:
    """Read a non-empty text, if there is one; null counts as absent."""
    if row.get(key) is None:
        return None
    if not _want(row, key, str):
        raise RecordError(f"`{key}` is empty; leave it out if there is none")
    return row[key]  # type: ignore[no-any-return]  # it is a string


def _strings(row: dict[str, Any], key: str) -> tuple[str, ...]:
    values = _want(row, key, list)
    for value in values:
        if type(value) is not str:
            raise RecordError(f"`{key}` holds {_show(value)}; it must be a list of strings")
    return tuple(map(intern, values))


def _one_of(row: dict[str, Any], key: str, choices: tuple[_T, ...]) -> _T:
    value = _value(row, key)
    if value not in choices:
        allowed = ", ".join(map(str, choices))
        raise RecordError(f"`{key}` is {_show(value)}; it must be one of: {allowed}")
    return choices[choices.index(value)]


def _flag(row: dict[str, Any], key: str) -> bool:
    return _want(row, key, bool) if row.get(key) is not None else False


def _micros(row: dict[str, Any], key: str, least: int = 0) -> int:
    """A time in seconds, as microseconds: at least `least` of them."""
    value: float = row[key]
    if type(value) not in (int, float) or not abs(value) <= 1e15:
        raise RecordError(f"`{key}` is {_show(value)}; it must be a number of seconds")
    us = micros(value)
    if us < least:
        bound = "not negative" if least == 0 else "at least a microsecond"
        raise RecordError(f"`{key}` is {_show(value)}; it must be {bound}")
    return us


def _time(row: dict[str, Any], key: str) -> float:
    _micros(row, key, 1)
    return row[key]  # type: ignore[no-any-return]  # a whole number stays one, as it was read


def _factor(row: dict[str, Any], key: str) -> float:
    value: float = row[key]
    if type(value) not in (int, float) or not 0 < value <= 1e9:
        raise RecordError(f"`{key}` is {_show(value)}; it must be a number greater than 0")
    return value


def _count(row: dict[str, Any], key: str, least: int) -> int:
    """A whole number that is at least `least`."""
    value = _want(row, key, int)
    if value < least:
        raise RecordError(f"`{key}` is {value}; it must be at least {least}")
    return value


_LIMITS: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "reroute_limit": lambda row, key: _count(row, key, 1),
    "coverage": lambda row, key: _want(row, key, bool),
    "stall_factor": _factor,
    "loop_limit": lambda row, key: _count(row, key, 2),
    "livelock_turns": lambda row, key: _count(row, key, 2),
    "livelock_agents": lambda row, key: _count(row, key, 2),
}
"""The reader of each limit that is no time in seconds."""


def _limits(row: dict[str, Any]) -> Limits:
    if row.get("limits") is None:
        return Limits()
    limits = _want(row, "limits", dict)
    values: dict[str, Any] = {}
    for key in (limit.name for limit in fields(Limits)):
        if limits.get(key) is not None:
            read = _LIMITS.get(key) or _time
            values[key] = read(limits, key)
    return Limits(**values)


def _usual(row: dict[str, Any]) -> Usual | None:
    usual = row.get("usual")
    if usual is None:
        return None
    if type(usual) is not dict:
        raise RecordError(f"`usual` is {_show(usual)}; it must be an object")
    counts = _want(usual, "counts", dict)
    for pattern, runs in counts.items():
        if type(runs) is not list or not all(type(k) is int and k >= 0 for k in runs):
            raise RecordError(
                f"`usual` has {_show(runs)} for {_show(pattern)}; it must be a list of numbers "
                "of runs"
            )
    return Usual(_count(usual, "runs", 0), {name: tuple(runs) for name, runs in counts.items()})


def _run(t: int, us: int, row: dict[str, Any]) -> records.Run:
    version = _want(row, "version", int)
    if version != records.VERSION:
        raise RecordError(f"`version` is {version}; only version {records.VERSION} can be read")
    return records.Run(
        t, us, _want(row, "run", str), _strings(row, "agents"), row.get("task"), row.get("seed"),
        _flag(row, "session"), _flag(row, "memory"), _limits(row), _usual(row), version,
        1 if row.get("patterns") is None else _count(row, "patterns", 1),
    )  # fmt: skip


def _emit(t: int, us: int, row: dict[str, Any]) -> records.Emit:
    context = row.get("traceparent")
    return records.Emit(
        t, us, _name(row, "event"), _or_null(row, "by"), _strings(row, "to"),
        _name(row, "type"), _want(row, "final", bool), row.get("payload"),
        _text(row, "policy"),
        context if type(context) is str else None,
    )  # fmt: skip


def _fates(row: dict[str, Any]) -> tuple[Fate, ...]:
    fates = []
    for item in _want(row, "fates", list):
        if type(item) is not dict:
            raise RecordError(f"`fates` holds {_show(item)}; it must be a list of objects")
        fate = _one_of(item, "fate", records.FATES)
        to = _strings(item, "to") if fate == "reroute" else ()
        fates.append(Fate(_name(item, "event"), fate, to))
    return tuple(fates)


def _end(t: int, us: int, row: dict[str, Any]) -> records.End:
    return records.End(
        t, us, _name(row, "activation"), _fates(row), _strings(row, "outputs"),
        row.get("usage"), _text(row, "error"), _text(row, "because"), _flag(row, "cancelled"),
    )  # fmt: skip


def _start(t: int, us: int, row: dict[str, Any]) -> records.Start:
    activation, agent = _name(row, "activation"), _name(row, "agent")
    return records.Start(t, us, activation, agent, _strings(row, "inputs"))


def _heal(t: int, us: int, row: dict[str, Any]) -> records.HealRow:
    if "note" not in row and "reason" not in row:
        raise RecordError("`note` is missing (or `reason`, if it was refused)")
    to = row.get("to")
    return records.HealRow(
        t, us, _value(row, "finding"), _value(row, "action"), _value(row, "event"),
        tuple(to) if type(to) is list else to, row.get("note"), row.get("reason"), row.get("about"),
    )  # fmt: skip


# Detectors and healers of a user's own have names and shapes of their own, so of these two rows
# only the keys are looked at.
def _finding(t: int, us: int, row: dict[str, Any]) -> records.FindingRow:
    keys = ("pattern", "stage", "subject", "evidence")
    pattern, stage, subject, evidence = (_value(row, key) for key in keys)
    more = row.get("severity"), row.get("silenced")
    return records.FindingRow(t, us, pattern, stage, subject, evidence, *more)


_DECODERS: dict[str, Callable[[int, int, dict[str, Any]], Record]] = {
    "run": _run,
    "emit": _emit,
    "deliver": lambda t, us, row: records.Deliver(t, us, _name(row, "event"), _or_null(row, "to")),
    "start": _start,
    "end": _end,
    "join": lambda t, us, row: records.Join(t, us, _name(row, "agent")),
    "leave": lambda t, us, row: records.Leave(t, us, _name(row, "agent")),
    "redirect": lambda t, us, row: records.Redirect(
        t, us, _name(row, "event"), _strings(row, "to")
    ),
    "expire": lambda t, us, row: records.Expire(t, us, _name(row, "event")),
    "finding": _finding,
    "heal": _heal,
    "incident": lambda t, us, row: records.IncidentRow(
        t, us, _want(row, "what", str), _value(row, "detail")
    ),
    "finish": lambda t, us, row: records.Finish(
        t, us, _one_of(row, "outcome", records.OUTCOMES), row.get("answer"), row.get("usage")
    ),
}


def decode(row: Any) -> Record:
    """Turn the JSON object of one line into a record; unknown keys are ignored.

    Raises:
        RecordError: A key is missing, or a value is of the wrong type.
    """
    if type(row) is not dict:
        raise RecordError("a record must be a JSON object")
    kind = _want(row, "kind", str)
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise RecordError(f"`kind` is {_show(kind)}; known are: {', '.join(_DECODERS)}")
    t = _want(row, "t", int)
    _value(row, "ts")
    return decoder(t, _micros(row, "ts"), row)


# --- to JSON --------------------------------------------------------------------------------

_ABSENT: dict[str, object] = dict.fromkeys((
    "task", "seed", "payload", "policy", "traceparent", "usage", "error", "to", "note",
    "reason", "answer", "usual", "severity", "silenced", "about", "because",
)) | {"cancelled": False, "patterns": 1}  # fmt: skip
"""The optional keys, each with the value that is left out."""


def _is_optional(cls: type[Record], key: str) -> bool:
    # Of a delivery it is written although it is null, because the format says that it is there.
    return key in _ABSENT and (cls.kind, key) != ("deliver", "to")


def _keys(cls: type[Record]) -> list[tuple[str, object]]:
    """The keys of a kind of record, each with the value that is left out."""
    names = [field.name for field in fields(cls)[2:]]
    return [(key, _ABSENT[key] if _is_optional(cls, key) else cls) for key in names]


_KEYS: dict[type, list[tuple[str, object]]] = {cls: _keys(cls) for cls in get_args(Record)}


def to_row(record: Record) -> dict[str, Any]:
    """Make the JSON object of a record, keys in a fixed order; empty optional ones are left out."""
    kind = type(record)
    row: dict[str, Any] = {"t": record.t, "ts": record.ts, "kind": record.kind}
    for key, absent in _KEYS[kind]:
        value = getattr(record, key)
        if value is not absent:
            row[key] = value
    if type(record) is records.End:
        row["fates"] = [_fate_row(fate) for fate in record.fates]
    elif type(record) is records.Run:
        row["limits"] = {f.name: getattr(record.limits, f.name) for f in fields(Limits)}
        if record.usual is not None:
            row["usual"] = {"runs": record.usual.runs, "counts": dict(record.usual.counts)}
    elif type(record) is records.HealRow and record.note is record.reason is None:
        row["note"] = None  # one of the two keys has to be there
    return row


def _fate_row(fate: Fate) -> dict[str, Any]:
    row: dict[str, Any] = {"event": fate.event, "fate": fate.fate}
    if fate.fate == "reroute":
        row["to"] = fate.to
    return row


def _fate_text(fate: Fate) -> str:
    """A fate as in `to_row`, as text."""
    if fate.fate == "reroute":
        return dumps(_fate_row(fate))
    return f'{{"event":{encode_basestring_ascii(fate.event)},"fate":"{fate.fate}"}}'


_BY_TYPE = {
    "str": "quote({0})",
    "str | None": "('null' if {0} is None else quote({0}))",
    "tuple[str, ...]": "'[%s]' % ','.join(map(quote, {0}))",
    "bool": "('true' if {0} else 'false')",
    "tuple[Fate, ...]": "'[%s]' % ','.join(map(_fate_text, {0}))",
}
"""By type, the function that writes a value faster than `dumps`."""


def _writer(cls: type[Record]) -> Callable[[Record], str]:
    """Make the writer of a kind of record."""
    line, values = f'{{"t":%d,"ts":%r,"kind":"{cls.kind}"', ["r.t", "r.us / 1_000_000"]
    for field in fields(cls)[2:]:
        key, value = f',"{field.name}":', f"r.{field.name}"
        text = _BY_TYPE.get(str(field.type), "dumps({})").format(value)
        if _is_optional(cls, field.name):
            text = f"'' if {value} is {_ABSENT[field.name]} else {key!r} + {text}"
        line += "%s" if _is_optional(cls, field.name) else f"{key}%s"
        values.append(text)
    # From its source, as dataclasses do: each record passes here, and a loop costs twice as much.
    source = f"lambda r: {line + '}'!r} % ({', '.join(values)})"
    names: dict[str, Any] = {**globals(), "quote": encode_basestring_ascii}
    return cast("Callable[[Record], str]", eval(source, names))


_OWN_KEYS = (records.Run, records.HealRow)
"""The kinds of records of which a line has keys, or leaves out keys, by more than their value."""

_WRITERS = {cls: _writer(cls) for cls in get_args(Record) if cls not in _OWN_KEYS}
_WRITERS |= dict.fromkeys(_OWN_KEYS, lambda record: dumps(to_row(record)))


def encode(record: Record) -> str:
    """Write one line of a trace file, without its newline; the same record gives the same text."""
    return _WRITERS[type(record)](record)
