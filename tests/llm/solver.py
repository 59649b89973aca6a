"""A scripted model that really solves CountFrequency: from the prompt alone, and by its tools.

Whoever holds a long part has it cut and deals it out; a short one is read and counted, and the
counts go to whoever dealt it out, who submits once they cover everything.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.llm.server import Answer, calls, says, writes

Event = dict[str, Any]


def solve(request: dict[str, Any]) -> Answer:
    """The next step for the agent that a request is about."""
    _, situation, *talk = request["messages"]
    here = json.loads(situation["content"])
    events = [{**event, "payload": json.loads(event["payload"])} for event in here["events"]]
    jobs = [event for event in events if event["type"] == "problem"]
    results = list(results_in(talk))
    if jobs and not results:
        wanted = [_call(job["payload"], len(here["team"])) for job in jobs]
        return calls(*wanted) if "tools" in request else writes(*wanted)
    outputs = [
        output
        for job, result in zip(jobs, results, strict=True)
        for output in _outputs(job["payload"], result, here)
    ]
    found = [event for event in events if event["type"] == "solution"]
    decision = _collected(jobs, found, outputs)
    return says(decision if "tools" in request else {"calls": [], **decision})


def results_in(talk: list[Any]) -> Iterator[Any]:
    """What the tools returned, however a model is told."""
    for one in talk:
        if one["role"] == "tool":
            yield json.loads(one["content"])
        elif one["role"] == "user" and one["content"].startswith('{"results"'):
            yield from (row["result"] for row in json.loads(one["content"])["results"])


def _is_long(job: Any) -> bool:
    start, stop = job["part"]
    return bool(stop - start > job["most_per_message"])


def _call(job: Any, size: int) -> tuple[str, dict[str, Any]]:
    if _is_long(job):
        pieces = max(size, -(-(job["part"][1] - job["part"][0]) // job["most_per_message"]))
        return "split", {"part": job["part"], "pieces": pieces}
    return "raw_data", {"part": job["part"]}


def _outputs(job: Any, result: Any, here: dict[str, Any]) -> list[dict[str, Any]]:
    whole, boss = job.get("whole", job["part"]), job.get("boss", here["you"])
    if _is_long(job):
        team = here["team"]
        return [
            _event("problem", team[i % len(team)],
                   {**job, "part": part, "whole": whole, "boss": boss})
            for i, part in enumerate(result)
        ]  # fmt: skip
    counts = {str(value): n for value, n in Counter(result).items()}
    return [_event("solution", boss, {"counts": counts, "part": job["part"], "whole": whole})]


def _collected(jobs: list[Event], found: list[Event], outputs: list[Any]) -> dict[str, Any]:
    """Submit if everything is there; else what was done, with the solutions kept."""
    used = jobs
    covered = sum(one["payload"]["part"][1] - one["payload"]["part"][0] for one in found)
    if found and not outputs and covered == found[0]["payload"]["whole"][1]:
        total: Counter[str] = Counter()
        for one in found:
            total.update(one["payload"]["counts"])
        used, outputs = found, [_event("solution", None, {"counts": total}, final=True)]
    fates = [{"event": event["id"], "fate": "consume", "to": []} for event in used]
    return {"fates": fates, "outputs": outputs}


def _event(kind: str, to: str | None, payload: Any, *, final: bool = False) -> dict[str, Any]:
    return {
        "type": kind,
        "to": [to] if to else [],
        "payload": json.dumps(payload),
        "final": final,
    }
