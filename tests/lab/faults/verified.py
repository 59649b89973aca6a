"""Runs with a fault, their twins and a baseline, small enough for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from dig.diagnosis.causes import CausalGraph
from dig.faults.inject.fault import Fault
from dig.graph.records import Limits
from dig.lab.run_pair import Played, lines, play
from dig.lab.truth.baseline import Baseline
from dig.lab.truth.verification import Dropped, verify
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile

CALM = Profile(
    submit_early=0, discard=0, misaddress=0, fail=0, hand_over=0, wait=0.001, merge=0.03,
    broadcast=0.01, duplicate=0.01, pass_on=0.01, chat=0, unwanted=0, announce=0,
)  # fmt: skip
LIMITS = Limits(mc_window_s=10, oe_window_s=5, dl_window_s=10)
RUNS = 40


def configured(seed: int, profile: Profile = CALM) -> TeamRun:
    """Four agents and four parts."""
    return TeamRun(agents=4, size=2000, seed=seed, method="mas", profile=profile, limits=LIMITS)


@cache
def twin(seed: int) -> Played:
    return play(configured(seed))


@cache
def fault_free() -> tuple[Played, ...]:
    return tuple(play(configured(1000 + i)) for i in range(RUNS))


@cache
def baseline() -> Baseline:
    return Baseline.from_runs(fault_free())


def fault(kind: str, target: str = "agent-3", start_s: float = 0.0, **parameters: Any) -> Fault:
    return Fault(kind=kind, target=target, start_s=start_s, parameters=parameters)


def verified(seed: int, *faults: Fault) -> CausalGraph | Dropped:
    return verify(play(configured(seed), faults), twin(seed), baseline())


def found(*faults: Fault, seeds: Iterable[int] = range(1, 20)) -> tuple[int, CausalGraph]:
    """The first seed with which some faults are verified, and their graph."""
    for seed in seeds:
        graph = verified(seed, *faults)
        if isinstance(graph, CausalGraph):
            return seed, graph
    raise AssertionError(f"{faults} are never verified")


def write(folder: Path, instances: Iterable[tuple[int, tuple[Fault, ...], CausalGraph]]) -> None:
    """The files of a set that an audit reads."""
    free = folder / "baseline" / "small"
    free.mkdir(parents=True)
    for i, run in enumerate(fault_free()):
        (free / f"{i:03}.dig.jsonl").write_bytes(lines(run.records))
    _json(free / "endings.json", [{"rmse": _rmse(run)} for run in fault_free()])
    for number, (seed, faults, graph) in enumerate(instances, 1):
        run, usual = play(configured(seed), faults), twin(seed)
        place = folder / "public" / f"i{number:04}"
        place.mkdir(parents=True)
        (place / "trace.dig.jsonl").write_bytes(lines(run.records))
        (place / "twin.dig.jsonl").write_bytes(lines(usual.records))
        _json(place / "causal_graph.json", graph.to_json())
        label = {
            "configuration": "small",
            "faults": [one.to_json() for one in faults],
            "injections": [asdict(one) for one in run.injections],
            "faulted": {"rmse": _rmse(run)},
            "twin": {"rmse": _rmse(usual)},
        }
        _json(place / "label.json", label)


def _rmse(run: Played) -> float | None:
    return run.score.rmse if run.score else None


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1))
