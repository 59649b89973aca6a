"""A learned reader of the surface: the deeds of each agent beside the deeds of the team.

It follows no cause and knows no other runs. Its weights were fitted to the labels of another set
by `python -m bench.surface SET --fit FILE`, so that the card tells how far learning alone goes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from math import copysign, log1p, sqrt
from operator import mul
from statistics import median

from dig.diagnosis.components import blamed_agents
from dig.diagnosis.signs.analysis import RunAnalysis
from dig.graph.records import Record
from dig.tasks.accounting import PAYLOADS
from dig.traces.run import RecordedRun

from .rules import ORDER, Found, accusations

DEEDS = (
    "acts", "errors", "unfinished", "slowest", "last", "consume", "delay", "reroute", "discard",
    "no output", "sent problem", "sent solution", "unused problem", "unused solution",
    "unused raw_data", "not arrived", "late", "given problem", "given solution", "owed",
    "least amount", "odd amounts", "ET", "MC", "OE", "DL", "ER", "STALL", "LATE",
)  # fmt: skip
"""The counts and measures of each agent; the last ones count the findings about it."""


def surface(run: RecordedRun) -> dict[str, list[float]]:
    """List the numbers of each agent: three for each sign of the rules, and three for each deed."""
    signs = {*accusations(run)}
    counts = Counter((agent, kind) for agent, kind, _ in signs)
    kinds = Counter(kind for _, kind, _ in signs)
    rows = {
        agent: [
            float(number)
            for kind in ORDER
            for count, total in [(counts[agent, kind], kinds[kind])]
            for number in (count > 0, count / max(total, 1), 0 < count == total)
        ]
        for agent in run.agents
    }
    deeds = _count_deeds(run)
    for deed in DEEDS:
        values = {agent: deeds[agent][deed] for agent in run.agents}
        middle, ends = median(values.values()), Counter(values.values())
        least, most = min(ends), max(ends)
        for agent, value in values.items():
            beyond = value - middle
            rows[agent] += [
                copysign(log1p(abs(beyond)), beyond),
                (least < value == most) / ends[value],
                (least == value < most) / ends[value],
            ]
    return rows


def _count_deeds(run: RecordedRun) -> dict[str, defaultdict[str, float]]:
    """Count and measure the deeds of each agent."""
    deeds = {agent: defaultdict[str, float](float) for agent in run.agents}
    for act in run.activations.values():
        mine, until = deeds[act.agent], act.end.us if act.end else run.last.us
        for deed in ("acts", *act.fates.values()):
            mine[deed] += 1
        mine["slowest"] = max(mine["slowest"], (until - act.us) / 1e6)
        mine["last"] = 10 * until / max(run.last.us, 1)
        mine["unfinished"] += act.end is None
        mine["errors"] += act.has_failed
        mine["no output"] += bool(run.inputs(act)) and not act.outputs
    for event in run.events.values():
        for agent, t in event.arrivals:
            deeds[agent][f"given {event.type}"] += 1
            deeds[agent]["owed"] += event.type == "problem"
            if event.agent is not None:
                late_s = (run.times[t] - event.us) / 1e6
                deeds[event.agent]["late"] = max(deeds[event.agent]["late"], late_s)
        if event.agent is None:
            continue
        mine = deeds[event.agent]
        mine[f"sent {event.type}"] += 1
        mine["owed"] -= event.type == "solution"
        is_used = event.consumed_by or event.accepted_t is not None
        mine[f"unused {event.type}"] += not is_used
        mine["not arrived"] += not (event.arrivals or event.final)
    for finding, agents in blamed_agents(run):
        for agent in agents:
            deeds[agent][finding.pattern] += 1
    analysis = RunAnalysis(run, PAYLOADS)
    for name, distance in analysis.profiles.items():
        # The smaller the sample, the farther it is from others by chance.
        size = sum(analysis.payloads.amounts(run.events[name]).values())
        mine = deeds[run.events[name].agent or ""]
        mine["odd amounts"] = max(mine["odd amounts"], distance * sqrt(size))
    for name, amount in analysis.amounts.items():
        mine = deeds[run.events[name].agent or ""]
        mine["least amount"] = min(mine["least amount"], 10 * (amount - 1))
    return deeds


def learned(records: Sequence[Record]) -> Found:
    """Name the agent with the heaviest numbers, and the kind and place of the heaviest sign."""
    run, weights = RecordedRun(records), _weights()
    rows = surface(run)
    agent = max(rows, key=lambda each: sum(map(mul, weights, rows[each])))
    parts = [*map(mul, weights, rows[agent])]
    # Three numbers in a row are about one kind.
    worth = {kind: sum(parts[3 * n : 3 * n + 3]) for n, kind in enumerate(ORDER)}
    signs = [(-worth[kind], t, kind) for by, kind, t in accusations(run) if by == agent]
    _, t, kind = min(signs, default=(0.0, run.last.t, ORDER[-1]))
    return agent, kind, t


@cache
def _weights() -> list[float]:
    text = files("dig.lab.benchmark").joinpath("surface.json").read_text("utf-8")
    weights: list[float] = json.loads(text)["weights"]
    return weights
