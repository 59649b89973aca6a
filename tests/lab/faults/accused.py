"""Accuses the innocent: `python -m tests.lab.faults.accused DIR [--count N --seed S]`.

How often would verification admit a false label? Each run of a set is played again, and each agent
that no fault was injected into is said to be the target, with all that it did since the fault began
as acts of the fault. Prints how many of these accusations are verified, and of how many that the
true graph already has the accused in it: they did take part, though they did not begin it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

from dig.diagnosis.causes import CausalGraph
from dig.faults.inject.fault import Fault
from dig.graph.records import Start
from dig.lab.run_pair import Played, play
from dig.lab.truth.baseline import Baseline
from dig.lab.truth.verification import verify
from dig.tasks.run.team_run import TeamRun


def accuse(run: Played, agent: str) -> Played:
    """The same run, with what another agent did since the first act in place of the acts."""
    first = run.injections[0]
    acts = tuple(
        replace(first, fault=0, agent=agent, activation=row.activation, t=row.t, ts=row.ts)
        for row in run.records[first.t :]
        if isinstance(row, Start) and row.agent == agent
    )
    return replace(run, faults=(replace(run.faults[0], target=agent),), injections=acts)


def accusations(folder: Path, count: int | None, seed: int) -> Counter[str]:
    """How the accusations of a set's public instances came out."""
    names = sorted(path.parent for path in folder.glob("public/*/label.json"))
    if count is not None and count < len(names):
        names = sorted(Random(seed).sample(names, count))
    found: Counter[str] = Counter()
    for place in names:
        label = json.loads((place / "label.json").read_text("utf-8"))
        if label["stratum"] not in ("plain", "hybrid"):  # one problem, and no decoys
            continue
        true = CausalGraph.read(json.loads((place / "causal_graph.json").read_text("utf-8")))
        known = folder / "baseline" / f"{label['configuration']}.json"
        baseline = Baseline.read(json.loads(known.read_text("utf-8")))
        run = TeamRun.read(label["run"])
        faulted, twin = play(run, [Fault.read(one) for one in label["faults"]]), play(run)
        guilty = {fault.target for fault in faulted.faults}
        for agent in sorted(set(run.names) - guilty):
            accused = accuse(faulted, agent)
            if accused.injections:
                is_verified = isinstance(verify(accused, twin, baseline), CausalGraph)
                takes_part = agent in {node.component for node in true.nodes}
                found["all"] += 1
                found["verified"] += is_verified
                found["verified, and takes part"] += is_verified and takes_part
    return found


def main() -> None:
    """Accuse, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.faults.accused", description=__doc__)
    parser.add_argument("folder", type=Path, help="the set, as `digmon bench make` has made it")
    parser.add_argument("--count", type=int, help="how many instances; all, if left out")
    parser.add_argument("--seed", type=int, default=0, help="which of them")
    chosen = parser.parse_args()
    for what, number in accusations(chosen.folder, chosen.count, chosen.seed).items():
        print(f"{number:6} {what}")


if __name__ == "__main__":
    main()
