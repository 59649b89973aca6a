"""How far a learned reader of the surface gets: `python -m bench.surface SET` (needs numpy).

A conditional logit over the agents of a failed run, from surface features alone: positions, counts,
sizes, times, text lengths. It follows no cause and reads no meaning. Asked about a run, it is
fitted without any run that has a fault of the same kind: a floor for kinds that it does not know.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from dig._util.json_values import dumps
from dig.lab.benchmark.attributing import case_about
from dig.lab.benchmark.instances import FaultSet, Instance
from dig.lab.benchmark.rules import rules
from dig.traces.run import RecordedRun

from .measure import Table
from .whowhen.fitting import newton, numeric

if TYPE_CHECKING:
    from .whowhen.fitting import Floats

L2 = 3.0


def surface(run: RecordedRun) -> tuple[list[str], list[list[float]]]:
    """The features of each agent of a run, beside those of the others.

    Returns:
        The agents, and the row of each.
    """
    agents = [*run.agents]
    expired = {record.event for record in run.expired}
    rows = []
    for place, agent in enumerate(agents):
        acts = [act for act in run.activations.values() if act.agent == agent]
        sent = [event for event in run.events.values() if event.agent == agent]
        fates = [fate for act in acts for fate in act.fates.values()]
        seconds = [((act.end or run.last).us - act.us) / 1e6 for act in acts]
        ways = [(run.times[e.arrivals[0][1]] - e.us) / 1e6 for e in sent if e.arrivals]
        lengths = [len(dumps(event.payload)) for event in sent]
        last = max((act.t for act in acts), default=0) / max(run.last.t, 1)
        rows.append([
            float(place == 0), place / len(agents), float(len(acts)), last,
            min((act.t for act in acts), default=run.last.t) / max(run.last.t, 1),
            float(len(sent)), sum(len(act.inputs) for act in acts), float(len(fates)),
            *(float(fates.count(fate)) for fate in ("delay", "reroute", "discard")),
            float(sum(not (act.outputs or act.end is None) for act in acts)),
            float(sum(act.has_failed for act in acts)), float(sum(act.end is None for act in acts)),
            max(seconds, default=0.0), fmean(seconds or [0.0]), max(ways, default=0.0),
            float(sum(event.id in expired for event in sent)), float(agent in run.leaves),
            float(sum(not event.arrivals and not event.final for event in sent)),
            float(sum(event.final for event in sent)),
            float(len(lengths) - len({dumps(event.payload) for event in sent})),
            float(max(lengths, default=0)), fmean(lengths or [0.0]),
            float(min(lengths, default=0)),
        ])  # fmt: skip
    return agents, rows


def standardised(rows: Sequence[Sequence[float]]) -> Floats:
    """The rows, each feature by its rank among the agents and by its distance from their mean."""
    np = numeric()
    block = np.array(rows)
    spread = block.std(axis=0)
    spread[spread < 1e-9] = 1.0
    distance = (block - block.mean(axis=0)) / spread
    return np.concatenate([distance, np.abs(distance)], axis=1)  # type: ignore[no-any-return]


class _Question:
    """A labelled failure: the features of its agents, and those at fault."""

    def __init__(self, instance: Instance) -> None:
        case = case_about(instance)
        label = instance.label()
        self.kinds = frozenset(str(fault["kind"]) for fault in label.faults)
        self.stratum = label.stratum
        self.agents, rows = surface(case.run)
        self.block = standardised(rows)
        self.guilty = {cause.component for cause in label.causes}
        named = rules(case.run.records)
        self.by_rules = named is not None and named[0] in self.guilty

    @property
    def pairs(self) -> list[tuple[Floats, int]]:
        """The block with each place at fault."""
        return [(self.block, n) for n, agent in enumerate(self.agents) if agent in self.guilty]

    def is_named(self, weights: Floats) -> bool:
        return self.agents[int((self.block @ weights).argmax())] in self.guilty


def ranked(fault_set: FaultSet) -> Table:
    """Any cause named, by stratum: the ranker, the page of rules, and chance."""
    questions = [_Question(each) for each in fault_set.labelled() if each.label().harm]
    marks = defaultdict[str, list[tuple[bool, bool, float]]](list)
    for kinds in dict.fromkeys(question.kinds for question in questions):
        others = (each for each in questions if each.kinds.isdisjoint(kinds))
        weights = newton([pair for each in others for pair in each.pairs], L2)
        for each in (question for question in questions if question.kinds == kinds):
            chance = len(each.guilty & {*each.agents}) / len(each.agents)
            mark = each.is_named(weights), each.by_rules, chance
            marks[each.stratum].append(mark)
            marks["all"].append(mark)
    rows = [
        (name, str(len(group)), *(f"{fmean(column):.2f}" for column in zip(*group, strict=True)))
        for name, group in sorted(marks.items())
    ]
    columns = ("stratum", "failures", "surface ranker", "rules", "chance")
    note = "The ranker is fitted without the kinds of faults that it is asked about."
    return Table(f"Any agent at fault named, in {fault_set.path.name}", columns, rows, note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    for path in parser.parse_args().sets:
        print(ranked(FaultSet.open(path)), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
