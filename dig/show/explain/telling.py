"""The data of `dig.show.explain.showing` in words: lines of 80 columns, without colour."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from dig._util.text import counted, cut, name, names, one_line, value_text
from dig.graph.words import PAST, seconds

from .explainer import Explained

WIDTH = 80
MOST_ROWS = 40
MOST_NOTE = 600


def tell(found: Explained) -> Iterator[str]:
    """An explanation in lines."""
    for line in _TELLERS[found["what"]](found):
        yield from _wrapped(line)


def _wrapped(line: str) -> Iterator[str]:
    """A line wrapped to `WIDTH`; all lines after the first are indented."""
    indent = len(line) - len(line.lstrip())
    under = " " * min(indent + 4, WIDTH // 2)
    yield from wrap(
        line, WIDTH, subsequent_indent=under, break_long_words=True, break_on_hyphens=False
    ) or [""]


# --- a run ---


def _run(found: Explained) -> Iterator[str]:
    task = f" on {name(found['task'])}" if found["task"] is not None else ""
    yield f"run {one_line(found['run'], 80)}{task}"
    for label, text in found["verdict"]:
        yield f"  {label + ':':<8} {text}"
    yield ""
    yield f"  {_ending(found)}"
    amounts = {"activation": found["activations"], "event": found["events"],
               "record": found["records"]}  # fmt: skip
    activity = ", ".join(counted(number, noun) for noun, number in amounts.items())
    yield f"  {activity} in {_time(found['seconds'])}"
    kind = f" ({name(found['agents_are'])})" if found["agents_are"] else ""
    yield f"  agents{kind}: {names(found['team'], 12)}"
    if found["data_are"]:
        yield f"  data: {one_line(found['data_are'])}"
    yield f"  problems: {names(found['problems'])}"
    if found["score"] is not None:
        yield f"  score: {_score(found['score'])}"
    if found["cost"]:
        yield "  cost: " + ", ".join(f"{name(k)} {v:,g}" for k, v in found["cost"].items())
    if not found["raised"]:
        yield "findings: none"
    yield from _findings(found["raised"])
    yield from _rows("healing", found["healing"])
    yield from _rows("incidents", found["incidents"])
    left = {label: what for label, what in found["left"].items() if what}
    for label, what in left.items():
        told = [f"{i} ({cause})" for i, cause in what.items()] if isinstance(what, dict) else what
        yield f"{label}: {names(told)}"


def _score(score: Any) -> str:
    """A score as the task wrote it, without empty fields."""
    if not isinstance(score, Mapping):
        return one_line(value_text(score))
    if score.get("valid") is False:
        return f"no valid answer: {one_line(score.get('reason') or 'no reason is given')}"
    parts = {k: v for k, v in score.items() if k not in ("valid", "says") and v not in ("", None)}
    told = [f"{_LABELS.get(k, name(k))} {_figure(v)}" for k, v in parts.items()]
    return cut(told) or "a valid answer"


_LABELS = {"rmse": "RMSE"}


def _figure(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else one_line(value_text(value))


def _ending(found: Explained) -> str:
    if found["state"] == "cut off":
        later = f"; result.json says: {found['outcome']}" if found["outcome"] else ""
        return f"has no end: it was cut off{later}"
    if found["state"] == "in progress":
        return "has no end: it is still going, or was cut off"
    return f"ended: {found['outcome']}"


def _findings(raised: Sequence[Explained]) -> Iterator[str]:
    yield from _rows("findings", [{**one, "says": _raised(one)} for one in raised])


def _raised(one: Explained) -> str:
    stage = "" if one["stage"] is None else f" {name(one['stage'])}"
    aside = "" if one["silenced"] is None else f" (silenced: {one_line(one['silenced'])})"
    return f"{one['severity']} {name(one['pattern'])}{stage}{aside}: {one['says']}"


def _rows(title: str, rows: Sequence[Explained]) -> Iterator[str]:
    """Things with a record number and a time, one a line under a title."""
    if not rows:
        return
    yield f"{title}:"
    for row in rows[:MOST_ROWS]:
        yield f"  record {row['record']}, {_time(row['ts'])}: {one_line(row['says'], MOST_NOTE)}"
    if len(rows) > MOST_ROWS:
        yield f"  and {len(rows) - MOST_ROWS} more; --json has them all"


# --- an event ---


def _event(found: Explained) -> Iterator[str]:
    kind = "final " if found["final"] else ""
    yield f"event {name(found['event'])} [{kind}{name(found['type'])}]: {_state(found['state'])}"
    yield from _rows("story", found["story"])
    yield from _paths([found["path"]])
    yield from _findings(found["findings"])


def _state(state: Explained) -> str:
    if state["accepted"]:
        return "accepted as the answer"
    texts = {
        "bounced": "sent back to who submitted it",
        "consumed": "consumed",
        "orphaned": f"orphaned ({state['orphaned']})",
        "lies_with": f"in front of {names(state['lies_with'])}",
        "on_its_way_to": f"on its way to {names(state['on_its_way_to'])}",
    }
    parts = [text for key, text in texts.items() if state[key]]
    return ", ".join(parts) or "with nobody any more"


def _paths(paths: Sequence[Sequence[str]]) -> Iterator[str]:
    told = [path for path in paths if len(path) > 1]
    if told:
        yield "causal path:" if len(told) == 1 else "causal paths:"
    for path in told:
        yield "  " + " -> ".join(map(name, path))


# --- an activation ---


def _activation(found: Explained) -> Iterator[str]:
    ended = found["ended"]
    until = f" to {_time(ended['ts'])}" if ended else ", not ended"
    yield (
        f"activation {name(found['activation'])} of {name(found['agent'])}, "
        f"{_time(found['began']['ts'])}{until}"
    )
    if found["error"] is not None:
        yield f"  failed: {one_line(found['error'])}"
    if found["usage"]:
        yield f"  used: {one_line(found['usage'])}"
    yield "inputs:" if found["inputs"] else "inputs: none"
    for one in found["inputs"]:
        fate = PAST[one["fate"]]
        yield f"  {fate} {name(one['event'])} [{name(one['type'])}], {_from(one)}"
    yield "outputs:" if found["outputs"] else "outputs: none"
    for one in found["outputs"]:
        kind = "final " if one["final"] else ""
        to = f" to {names(one['to']) or 'nobody'}" if not one["final"] else ""
        yield f"  {name(one['event'])} [{kind}{name(one['type'])}]{to}: {_state(one['state'])}"
    yield f"ancestors: {names(found['ancestors'], 20) or 'none'}"
    yield from _paths(found["paths"])
    yield from _findings(found["findings"])


def _from(one: Explained) -> str:
    if one["by"] is None:
        return "from outside"
    if one["agent"] is None:
        return "from healing"
    return f"from {name(one['by'])} of {name(one['agent'])}"


# --- an agent ---


def _agent(found: Explained) -> Iterator[str]:
    count = counted(len(found["activations"]), "activation")
    here = "" if found["present"] else ", not there at the end"
    yield f"agent {name(found['agent'])}: {count}{here}"
    did = {PAST.get(fate, fate): number for fate, number in found["fates"].items()}
    if did:
        yield "  " + ", ".join(f"{verb} {number:,}" for verb, number in did.items())
    yield f"  in front of it: {names(found['buffer']) or 'nothing'}"
    if found["on_the_way"]:
        yield f"  on the way to it: {names(found['on_the_way'])}"
    moves = [{**one, "says": {"join": "joined", "leave": "left"}[one["kind"]]}
             for one in found["came_and_went"]]  # fmt: skip
    yield from _rows("came and went", moves)
    yield from _rows("activations", [{**one, "says": _turn(one)} for one in found["activations"]])
    yield from _findings(found["findings"])


def _turn(one: Explained) -> str:
    did = [f"{PAST.get(fate, fate)} {names(events)}" for fate, events in one["did"].items()]
    if one["generated"]:
        did.append(f"generated {names(one['generated'])}")
    return f"{name(one['activation'])} {'; '.join(did) or 'did nothing'}"


# --- a finding ---


def _finding(found: Explained) -> Iterator[str]:
    yield _raised({**found, "says": one_line(found["why"], MOST_NOTE)})
    yield f"  raised at {_time(found['ts'])}, record {found['record']}"
    for other in found["also"]:
        yield f"  with it: {one_line(other)}"
    for one in found["healing"]:
        yield f"healing, record {one['record']}: {one_line(one['says'])}"
        if one["note"]:
            yield f"  {one_line(one['note'], MOST_NOTE)}"
    if not found["healing"]:
        yield "healing: none"
    for path in found["paths"]:
        yield f"path: {path['says']}"


def _time(ts: float) -> str:
    return seconds(round(ts * 1_000_000))


_TELLERS: dict[str, Callable[[Any], Iterator[str]]] = {
    "run": _run,
    "event": _event,
    "activation": _activation,
    "agent": _agent,
    "finding": _finding,
}
