"""Pages of conversations and investigations.

Both are shown by the page of runs, so there is one layout and one viewer: what spoke or was judged
is an agent, a message or a judgement is an activation, and what went on from it is an event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dig._util.text import one_line, safe_text
from dig.detectors.answers import FiveAnswers
from dig.show.document import Candidate, Diagnosis, cause
from dig.show.page.rows import MOST_TEXT
from dig.show.page.writing import Report, write_page

from .conversations.reading import Conversation

LASTS = 0.6
"""The length of a step on the page; steps are a second apart."""
MOST_FACTS = 50


class StepPage:
    """Writes the rows of a page."""

    def __init__(self, title: str, agents: Iterable[str]) -> None:
        """Begin with the agents, in the order of lanes."""
        self.title, self.rows = title, list[dict[str, Any]]()
        self._findings: list[dict[str, Any]] = []
        self._arrived: set[tuple[str, str]] = set()
        self._add(0.0, "run", run=one_line(title, 120), agents=[*agents], limits={})

    def _add(self, ts: float, kind: str, **more: Any) -> None:
        self.rows.append({"t": len(self.rows), "ts": ts, "kind": kind, **_safe(more)})

    def say(self, ts: float, event: str, by: str | None, type_: str, to: Sequence[str],
            payload: object, *, is_answer: bool = False) -> None:  # fmt: skip
        """Add an event with immediate delivery."""
        text = payload if isinstance(payload, str) else json.dumps(payload, indent=1)
        self._add(
            ts, "emit", event=event, by=by, to=[*to], type=type_, final=is_answer,
            payload=text[:MOST_TEXT], chars=len(text),
        )  # fmt: skip
        for agent in [None] if is_answer else to:
            self._add(ts, "deliver", event=event, to=agent)
            self._arrived.add((event, agent or ""))

    def act(
        self, ts: float, name: str, agent: str, inputs: Iterable[str], lasts: float = LASTS
    ) -> int:
        """Add an activation with inputs; return the number of the start record."""
        used = [event for event in dict.fromkeys(inputs) if (event, agent) in self._arrived]
        start = len(self.rows)
        self._add(ts, "start", activation=name, agent=agent, inputs=used)
        fates = [{"event": event, "fate": "consume"} for event in used]
        outputs = [name]  # the page asks how many there are
        self._add(ts + lasts, "end", activation=name, fates=fates, outputs=outputs)
        return start

    def find(
        self, t: int, pattern: str, title: str, says: str, ids: Sequence[str],
        path: Sequence[str] = (), *, is_first: bool,
    ) -> None:  # fmt: skip
        """Add a row to the list of findings, with a flag in the picture."""
        sentence = one_line(says, 400)
        paths = [{"nodes": [*path], "says": ""}] if path else []
        self._findings.append(_safe({
            "t": t, "ts": self.rows[t]["ts"], "kind": "finding", "found": True, "stage": None,
            "pattern": one_line(pattern, 40), "severity": "error" if is_first else "notice",
            "silenced": None, "like": pattern, "title": title, "plain": sentence, "says": sentence,
            "why": sentence, "paths": paths, "ids": [*ids],
        }))  # fmt: skip

    def write(self, out: Path, head: Mapping[str, Any]) -> Report:
        """Write the page; the first finding is chosen.

        Args:
            out: The file.
            head: Further data of the head (`dig.show.page.about`).
        """
        first = next(iter(self._findings), None)
        opened = f"is=finding&id={first['t']}" if first else ""
        defaults = {"file": self.title, "open": opened, "unit": "steps", "records": len(self.rows)}
        return write_page({**defaults, **head}, [*self.rows, *self._findings], out)


def _safe(value: Any) -> Any:
    """Make plain JSON safe: no text can hide or turn neighbouring text."""
    match value:
        case str():
            return safe_text(value)
        case list():
            return [_safe(element) for element in value]
        case dict():
            return {key: _safe(element) for key, element in value.items()}
    return value


def draw_conversation(conversation: Conversation, diagnosis: Diagnosis, out: Path) -> Report:
    """Write the page of an explained conversation: lanes by agent, subtasks as bands.

    Args:
        conversation: The conversation.
        diagnosis: Its diagnosis, with the graph.
        out: The file.

    Raises:
        JournalError: The file cannot be written.
    """
    graph = diagnosis.graph or {"edges": [], "subtasks": []}
    into: dict[int, list[str]] = {}
    readers: dict[int, dict[str, None]] = {}
    for edge in graph["edges"]:
        if edge["level"] == "step":
            into.setdefault(edge["target"], ["task"]).append(_text(edge["source"]))
            reader = conversation.steps[edge["target"]].agent
            readers.setdefault(edge["source"], {})[reader] = None
    page = StepPage(diagnosis.source.name, conversation.agents)
    steps, starts = conversation.steps, list[int]()
    if conversation.task:
        page.say(0.0, "task", None, "problem", [steps[0].agent], conversation.task)
    for step in steps:
        name, to = _step(step.number), [*readers.get(step.number, ())]
        starts.append(page.act(step.number, name, step.agent, into.get(step.number, ["task"])))
        page.say(step.number + LASTS, _text(step.number), name, step.role, to, step.text)
    for row in diagnosis.candidates:
        if row.step is not None:
            _blame(page, row, row.step, starts, diagnosis.chain if row.rank == 1 else ())
    # A band ends where the next step begins, the last one at the end of the page.
    bounds = [*starts, len(page.rows)]
    bands = [
        {
            "from": bounds[subtask["first"]], "says": f"{subtask['id']}: {subtask['name']}",
            "to": bounds[subtask["last"] + 1],
        }
        for subtask in graph["subtasks"]
    ]  # fmt: skip
    culprit = cause(diagnosis)
    sentence = culprit.says if culprit else "No agent can be named."
    head = {
        "state": "taken as failed",
        "bands": bands,
        "answers": asdict(FiveAnswers(headline=sentence)),
    }
    return page.write(out, head)


def _blame(
    page: StepPage, row: Candidate, step: int, starts: Sequence[int], chain: Sequence[int]
) -> None:
    says = "; ".join(evidence.says for evidence in row.evidence)
    says += "" if row.status == "open" else f" ({row.status})"
    title = f"{'Cause' if row.rank == 1 else 'Candidate'}: {row.agent}, step {step}"
    path = [node for number in chain for node in (_step(number), _text(number))]
    page.find(
        starts[step], row.id, title, says, [_step(step), _text(step)], path,
        is_first=row.rank == 1,
    )  # fmt: skip


def _step(number: int) -> str:
    return f"step {number}"


def _text(number: int) -> str:
    return f"text {number}"
