"""The data of `dig.show.explain.facts` in words: lines of 80 columns, without colour."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from dig._util.text import counted, cut, name, names, one_line, safe_text
from dig.graph.words import PAST, moment
from dig.show.runs.summary import figures_text

from .explainer import Facts

WIDTH = 80
MOST_ROWS = 40
MOST_NOTE = 600

_FRAME = '  File "'
_LIBRARIES = "/site-packages/", "/lib/python", "<frozen "


def explanation_lines(facts: Facts) -> Iterator[str]:
    """An explanation in lines; continued lines are indented."""
    for line in _LINES[facts["what"]](facts):
        under = " " * min(len(line) - len(line.lstrip()) + 4, WIDTH // 2)
        yield from wrap(
            line, WIDTH, subsequent_indent=under, break_long_words=True, break_on_hyphens=False
        ) or [""]


# --- a run ---


def _run(facts: Facts) -> Iterator[str]:
    task = f" on {name(facts['task'])}" if facts["task"] is not None else ""
    yield f"run {one_line(facts['run'], 80)}{task}"
    for label, text in facts["answers"]:
        yield f"  {label + ':':<8} {text}"
    yield ""
    end = facts["outcome"] or f"has no end: it was {facts['state']}"
    yield f"  {end}, {counted(facts['records'], 'record')}"
    kind = f" ({name(facts['agents_are'])})" if facts["agents_are"] else ""
    yield f"  agents{kind}: {names(facts['team'], 12)}"
    turns = sorted(facts["turns"].items(), key=lambda item: -item[1])
    texts = [f"{name(agent)} {number:,}{_tokens(facts, agent)}" for agent, number in turns]
    if texts:
        yield f"  turns: {cut(texts, most=12)}"
    if facts["data_are"]:
        yield f"  data: {one_line(facts['data_are'])}"
    yield f"  problems: {names(facts['problems'])}"
    if figures := figures_text(facts["score"]):
        yield f"  score: {figures}"
    if not facts["raised"]:
        yield "findings: none"
    yield from _findings(facts["raised"])
    yield from _rows("healing", facts["healing"])
    yield from _rows("incidents", facts["incidents"])
    for label, ids in facts["left"].items():
        if isinstance(ids, dict):
            ids = [f"{id} ({cause})" for id, cause in ids.items()]
        if ids:
            yield f"{label}: {names(ids)}"


def _tokens(facts: Facts, agent: str) -> str:
    number = facts["tokens"].get(agent)
    return "" if number is None else f" ({number:,.0f} tokens)"


def _findings(findings: Sequence[Facts]) -> Iterator[str]:
    yield from _rows(
        "findings", [{**finding, "says": _finding_text(finding)} for finding in findings]
    )


def _finding_text(finding: Facts) -> str:
    stage = "" if finding["stage"] is None else f" {name(finding['stage'])}"
    silenced = finding["silenced"]
    aside = "" if silenced is None else f" (silenced: {one_line(silenced)})"
    return f"{finding['severity']} {name(finding['pattern'])}{stage}{aside}: {finding['says']}"


def _rows(title: str, rows: Sequence[Facts]) -> Iterator[str]:
    """Rows with a record number and a time, each in a line under a title."""
    if not rows:
        return
    yield f"{title}:"
    for row in rows[:MOST_ROWS]:
        yield f"  record {row['record']}, {_time(row['ts'])}: {one_line(row['says'], MOST_NOTE)}"
    if len(rows) > MOST_ROWS:
        yield f"  and {len(rows) - MOST_ROWS} more; --json has them all"


# --- an event ---


def _event(facts: Facts) -> Iterator[str]:
    yield f"event {_event_name(facts)}: {_state(facts['state'])}{_counts(facts)}"
    yield from _content(facts["payload"])
    yield from _rows("story", facts["story"])
    yield from _paths([facts["path"]])
    yield from _findings(facts["findings"])


def _counts(event: Facts) -> str:
    return f"; {one_line(event['counts'])}" if event["counts"] else ""


def _content(payload: Any) -> Iterator[str]:
    """A payload on a line; nothing without a payload."""
    if payload is not None:
        yield f"    {_text(payload)}"


def _text(value: Any) -> str:
    """A value from a trace on a line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line(text, MOST_NOTE)


def _event_name(event: Facts) -> str:
    kind = "final " if event["final"] else ""
    return f"{name(event['event'])} [{kind}{name(event['type'])}]"


def _state(state: Facts) -> str:
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
    long_paths = [path for path in paths if len(path) > 1]
    if long_paths:
        yield "causal path:" if len(long_paths) == 1 else "causal paths:"
    for path in long_paths:
        yield "  " + " -> ".join(map(name, path))


# --- an activation, an agent ---


def _activation(facts: Facts) -> Iterator[str]:
    ended = facts["ended"]
    began = _time(facts["began"]["ts"])
    time = f"{began} to {_time(ended['ts'])}" if ended else f"since {began}, not ended"
    yield f"activation {name(facts['activation'])} of {name(facts['agent'])}, {time}"
    if facts["error"] is not None:
        yield f"  failed: {one_line(facts['error'])}"
    if facts["usage"]:
        yield f"  used: {one_line(facts['usage'])}"
    if facts["asks"] is not None:
        yield f"  asks: {_text(facts['asks'])}"
    yield "inputs:" if facts["inputs"] else "inputs: none"
    for event in facts["inputs"]:
        if event["by"] is None:
            origin = "outside"
        elif event["agent"] is None:
            origin = "healing"
        else:
            origin = f"{name(event['by'])} of {name(event['agent'])}"
        kind = f"[{name(event['type'])}]"
        text = f"{PAST[event['fate']]} {name(event['event'])} {kind}, from {origin}"
        yield f"  {text}{_counts(event)}"
        yield from _content(event["payload"])
    yield "outputs:" if facts["outputs"] else "outputs: none"
    for event in facts["outputs"]:
        to = f" to {names(event['to']) or 'nobody'}" if not event["final"] else ""
        yield f"  {_event_name(event)}{to}: {_state(event['state'])}{_counts(event)}"
    yield from _stack(facts["stack"])
    if facts["ancestors"] is not None:  # of an activation that has ended
        yield f"ancestors: {names(facts['ancestors'], 20) or 'none'}"
    yield from _paths(facts["paths"])
    yield from _findings(facts["findings"])


def _stack(text: str) -> Iterator[str]:
    """A stack trace, line by line; of a long one the frames of the user's own code."""
    lines = text.splitlines()
    if len(lines) > MOST_ROWS:
        lines = [*_own_frames(lines)]
    if len(lines) > MOST_ROWS:  # a chain begins with the cause, and ends with what was raised
        lines[MOST_ROWS // 2 : -MOST_ROWS // 2] = ["  ..."]
    if text:
        yield "stack trace:"
        yield from (f"  {safe_text(line)}" for line in lines)


def _own_frames(lines: Sequence[str]) -> Iterator[str]:
    """The lines without the frames of libraries; the innermost frame of an exception stays."""
    frame, is_cut = list[str](), False
    for line in (*lines, ""):
        if frame and not line.startswith("    "):
            is_left_out = any(place in frame[0] for place in _LIBRARIES) and line.startswith(_FRAME)
            yield from ["  ..."] * (is_left_out and not is_cut) + frame * (not is_left_out)
            frame, is_cut = [], is_left_out
        if line.startswith(_FRAME) or frame:
            frame.append(line)
        elif line:
            yield line


def _incident(facts: Facts) -> Iterator[str]:
    yield f"record {facts['record']}, {_time(facts['ts'])}: {one_line(facts['incident'])}"
    detail = facts["detail"] if isinstance(facts["detail"], Mapping) else {"": facts["detail"]}
    for key, value in detail.items():
        if key == "text":
            yield from _stack(str(value))
        else:
            yield f"  {name(key)}: {_text(value)}"


def _agent(facts: Facts) -> Iterator[str]:
    count = counted(len(facts["activations"]), "activation")
    absent = "" if facts["present"] else ", not there at the end"
    yield f"agent {name(facts['agent'])}: {count}{absent}"
    if facts["fates"]:
        counts = [f"{PAST.get(fate, fate)} {number:,}" for fate, number in facts["fates"].items()]
        yield "  " + ", ".join(counts)
    yield f"  in front of it: {names(facts['buffer']) or 'nothing'}"
    if facts["on_the_way"]:
        yield f"  on the way to it: {names(facts['on_the_way'])}"
    verbs = {"join": "joined", "leave": "left"}
    moves = [{**move, "says": verbs[move["kind"]]} for move in facts["came_and_went"]]
    yield from _rows("came and went", moves)
    turns = [{**turn, "says": _turn(turn)} for turn in facts["activations"]]
    yield from _rows("activations", turns)
    yield from _findings(facts["findings"])


def _turn(turn: Facts) -> str:
    deeds = [f"{PAST.get(fate, fate)} {names(events)}" for fate, events in turn["did"].items()]
    if turn["generated"]:
        words = f" “{turn['said']}”" if turn["said"] else ""
        deeds.append(f"generated {names(turn['generated'])}{words}")
    if turn["error"] is not None:
        deeds.append(f"failed: {one_line(turn['error'])}")
    deeds.append("not ended" if turn["ended"] is None else f"ended at {_time(turn['ended'])}")
    deeds += [f"used {turn['used']}"] * bool(turn["used"])
    return f"{name(turn['activation'])} {'; '.join(deeds)}"


# --- a finding ---


def _finding(facts: Facts) -> Iterator[str]:
    yield _finding_text({**facts, "says": one_line(facts["why"], MOST_NOTE)})
    yield f"  raised at {_time(facts['ts'])}, record {facts['record']}"
    for sentence in facts["also"]:
        yield f"  with it: {one_line(sentence)}"
    for row in facts["healing"]:
        yield f"healing, record {row['record']}: {one_line(row['says'])}"
        if row["note"]:
            yield f"  {one_line(row['note'], MOST_NOTE)}"
    if not facts["healing"]:
        yield "healing: none"
    for path in facts["paths"]:
        yield f"path: {path['says']}"


def _time(ts: float) -> str:
    return moment(round(ts * 1_000_000))


_LINES: dict[str, Callable[[Any], Iterator[str]]] = {
    "run": _run,
    "event": _event,
    "activation": _activation,
    "agent": _agent,
    "finding": _finding,
    "incident": _incident,
}
