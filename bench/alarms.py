"""`python -m bench.alarms [docs/lab/alarms.md]`: the tables of that page, below its marker.

How often healthy runs raise an alarm, how many failing runs raise one, and what healing costs runs
that are well; with what is usual learned, and without. Runs are simulated, in virtual time. Seeds
of measured runs are counted from 1, those of learning and of faults from other numbers on.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dig.detectors import standard
from dig.detectors.finding import Severity
from dig.detectors.policy import Policy
from dig.detectors.thresholds import Thresholds
from dig.diagnosis.goal import Goal, is_healthy
from dig.diagnosis.learning import Learned, learn
from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS
from dig.faults.inject.faulty_team import FaultyTeam
from dig.graph.records import Usual
from dig.lab.experiment.markdown_table import Table, TableCell, Value
from dig.lab.experiment.statistics import mean, share
from dig.runtime.workers import Workers
from dig.tasks.run.arrange import arrange, make_run, make_simulation, make_task
from dig.tasks.run.execute import Disturbance, execute
from dig.tasks.run.methods import Arrangement
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile

STUMBLING = Profile(submit_early=0.35, enough=0.5, chat=0.0)
"""Agents that submit early in a part of their runs. With the usual habits, which have as many ETs
as the paper's teams, nearly every run raises one, and an ET is no alarm."""

LEARN_FROM, FAULTS_FROM = 100_001, 200_001
MARKER = "<!-- tables -->"
DELIVERIES = {"one": "one agent", "all": "all agents"}
HEALTHY, INCOMPLETE, NO_ANSWER = "healthy", "incomplete answer", "no answer"
FAILING = {"one": (INCOMPLETE, NO_ANSWER), "all": (NO_ANSWER,)}
"""What counts as failing: given to all agents, an answer is made of what one of them had."""


@dataclass(frozen=True)
class Case:
    """One simulated run: how it is made, and what is done about what is found."""

    task: str
    to: str
    seed: int
    usual: Usual | None = None
    fault: str | None = None
    heal: str = "no"

    @property
    def run(self) -> TeamRun:
        return make_run(
            self.task, Thresholds(), seed=self.seed, to=self.to, usual=self.usual,
            method="mas" if self.heal == "no" else "dig", profile=STUMBLING,
        )  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """What came of it: how the run ended, the alarms by pattern and severity, and what it cost."""

    ended: str
    alarms: Counter[tuple[str, Severity]]
    seconds: float
    calls: int


def seen(case: Case) -> Seen:
    run = case.run
    task = make_task(run)
    arranged = arrange(run, task)
    arranged = replace(arranged, setup=replace(arranged.setup, **HEALINGS.get(case.heal, {})))
    disturbed = _disturbed(case, arranged)
    result = make_simulation(run, task, disturbed.follow, None, arranged, disturbed).run()
    score = task.score(result.answer)
    ended = NO_ANSWER if result.outcome != "submitted" else INCOMPLETE
    if result.outcome == "submitted" and score and score.valid and score.complete:
        ended = HEALTHY
    alarms = Counter((one.pattern, one.severity) for one in result.findings if one.is_alarm)
    return Seen(ended, alarms, result.seconds, result.activations)


HEALINGS: dict[str, dict[str, Any]] = {"all": {}, "by severity": {"policy": Policy()}}
"""Ways of healing, each with the settings that differ from those of the method `dig`."""


def _disturbed(case: Case, arranged: Arrangement) -> Disturbance:
    """Given to one agent, one of the team is faulty; given to all, each of them is."""
    if case.fault is None:
        return Disturbance(arranged)
    agents = [*arranged.team]
    targets = agents if case.to == "all" else [agents[case.seed % len(agents)]]
    return FaultyTeam.of_arrangement(
        arranged, [Fault(kind=case.fault, target=agent) for agent in targets]
    )


def keep(case: Case, runs: Path) -> None:
    """Carry a run out, and keep its directory to learn from."""
    execute(case.run, runs)


@dataclass
class Measured:
    """All runs of one delivery: each with nothing learned, and with what is usual."""

    to: str
    learned: Learned
    plain: Sequence[Seen]
    told: Sequence[Seen]
    faulty: Sequence[tuple[str, Seen, Seen]]
    healed: dict[str, Sequence[tuple[Seen, Seen]]]


def measured(task: str, to: str, sizes: argparse.Namespace, workers: Workers) -> Measured:
    """Learn from some runs of a delivery, and measure others."""
    case = partial(Case, task, to)
    with TemporaryDirectory() as folder:
        wanted = [case(LEARN_FROM + i) for i in range(sizes.learn)]
        for _ in workers.each(partial(keep, runs=Path(folder)), wanted):
            pass
        goal = Goal.parse("default", is_healthy)
        learned = learn([Path(folder)], goal, standard, at_least=min(100, sizes.learn // 2))
    usual = learned.team.usual
    _say(f"{to}: learned from {usual.runs} good runs of {learned.runs}")
    seeds = range(1, sizes.runs + 1)
    plain = [*workers.each(seen, [case(seed) for seed in seeds])]
    told = [*workers.each(seen, [case(seed, usual) for seed in seeds])]
    _say(f"{to}: {len(told)} runs without faults")
    faults = [(kind, FAULTS_FROM + i) for kind in KINDS for i in range(sizes.faults)]
    before = workers.each(seen, [case(seed, None, kind) for kind, seed in faults])
    after = [*workers.each(seen, [case(seed, usual, kind) for kind, seed in faults])]
    faulty = [(kind, a, b) for (kind, _), a, b in zip(faults, before, after, strict=True)]
    _say(f"{to}: {len(faulty)} runs with faults")
    well = [seed for seed, one in zip(seeds, told, strict=True) if one.ended == HEALTHY]
    well = well[: sizes.heals]
    healed: dict[str, Sequence[tuple[Seen, Seen]]] = {}
    for heal in HEALINGS:
        again = [*workers.each(seen, [case(seed, usual, None, heal) for seed in well])]
        healed[heal] = [(told[seed - 1], one) for seed, one in zip(well, again, strict=True)]
        _say(f"{to}: {len(well)} healthy runs healed ({heal})")
    return Measured(to, learned, plain, told, faulty, healed)


# --- tables ---


def _share(runs: Sequence[Seen]) -> Value:
    return Value(share([bool(run.alarms) for run in runs]))


def _of(runs: Sequence[Seen], ends: Sequence[str]) -> list[Seen]:
    return [run for run in runs if run.ended in ends]


def alarms(all_measured: Sequence[Measured]) -> Table:
    rows: list[list[TableCell]] = []
    for one in all_measured:
        for end in (HEALTHY, INCOMPLETE, NO_ANSWER):
            plain, told = _of(one.plain, [end]), _of(one.told, [end])
            rows.append([DELIVERIES[one.to], end, len(told), _share(plain), _share(told)])
    heads = ["problem to", "runs that ended with", "runs", "nothing learned", "learned"]
    title = "Runs without faults that raise an alarm"
    return Table("alarms", title, heads, rows, ["Share of runs [95 % interval]."])


def raised(all_measured: Sequence[Measured]) -> Table:
    """Which findings the alarms of healthy runs are."""
    rows: list[list[TableCell]] = []
    for one in all_measured:
        counts = [
            Counter(key for run in _of(runs, [HEALTHY]) for key in run.alarms)
            for runs in (one.plain, one.told)
        ]
        rows += [
            [DELIVERIES[one.to], f"{pattern} ({severity})", plain, counts[1][pattern, severity]]
            for (pattern, severity), plain in counts[0].most_common()
        ]
    heads = ["problem to", "alarm", "healthy runs with it", "learned"]
    return Table("raised", "What raises alarms in healthy runs", heads, rows)


def usual(all_measured: Sequence[Measured]) -> Table:
    rows: list[list[TableCell]] = [
        [
            DELIVERIES[one.to], one.learned.runs, one.learned.team.usual.runs,
            ", ".join(f"{name} x {j}" for name, j in one.learned.usual.items()) or "nothing",
            ", ".join(f"{count} {why}" for why, count in one.learned.bad.items()),
        ]
        for one in all_measured
    ]  # fmt: skip
    heads = ["problem to", "runs", "good", "usual, up to", "not good"]
    return Table("usual", "What was learned", heads, rows)


def recall(all_measured: Sequence[Measured]) -> Table:
    rows: list[list[TableCell]] = []
    for one in all_measured:
        ends = FAILING[one.to]
        plain, told = _of(one.plain, ends), _of(one.told, ends)
        rows.append([DELIVERIES[one.to], "none", len(told), _share(plain), _share(told)])
        failed = [(kind, a, b) for kind, a, b in one.faulty if a.ended in ends]
        by_kind = {kind: [(a, b) for k, a, b in failed if k == kind] for kind, _, _ in failed}
        by_kind = {"any": [(a, b) for _, a, b in failed], **by_kind}
        for kind, pairs in by_kind.items():
            shares = [_share([pair[i] for pair in pairs]) for i in (0, 1)]
            rows.append([DELIVERIES[one.to], kind, len(pairs), *shares])
    heads = ["problem to", "fault", "failing runs", "nothing learned", "learned"]
    return Table(
        "recall", "Failing runs that raise an alarm", heads, rows,
        ["Share of failing runs [95 % interval]. Failing is: given to one agent, no answer "
         "or an incomplete one; given to all, no answer. Faults: given to one agent, one of them "
         "is faulty; given to all, each is."],
    )  # fmt: skip


def costs(all_measured: Sequence[Measured]) -> Table:
    rows: list[list[TableCell]] = []
    for one in all_measured:
        for heal, pairs in one.healed.items():
            seconds = [100 * (b.seconds / a.seconds - 1) for a, b in pairs]
            calls = [100 * (b.calls / a.calls - 1) for a, b in pairs]
            more = [Value(mean(values)) for values in (seconds, calls)]
            rows.append([DELIVERIES[one.to], heal, len(pairs), *more])
    heads = ["problem to", "healing", "healthy runs", "more time, %", "more calls, %"]
    return Table(
        "costs", "What healing costs runs that are well, in a learned team", heads, rows,
        ["Mean over the same seeds with and without healing [95 % interval]. All: each "
         "finding is healed, as in the paper. By severity: errors with all means, warnings and RSP "
         "by notes, other notices not at all."],
    )  # fmt: skip


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.alarms", description=__doc__)
    parser.add_argument("page", nargs="?", type=Path, help="where they go; else to the terminal")
    parser.add_argument("--task", default="count-frequency")
    parser.add_argument("--runs", type=int, default=1000, help="measured runs of each delivery")
    parser.add_argument("--learn", type=int, default=300, help="runs to learn from")
    parser.add_argument("--faults", type=int, default=20, help="runs of each kind of fault")
    parser.add_argument("--heals", type=int, default=300, help="healthy runs that are healed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    sizes = parser.parse_args()
    with Workers(sizes.jobs, "the measurement") as workers:
        found = [measured(sizes.task, to, sizes, workers) for to in DELIVERIES]
    tables = [make(found) for make in (alarms, raised, usual, recall, costs)]
    text = "\n".join(table.markdown() for table in tables).replace("\n## ", "\n### ")
    if sizes.page is None:
        sys.stdout.write(text)
    else:
        above, _, _ = sizes.page.read_text("utf-8").partition(MARKER)
        sizes.page.write_text(f"{above}{MARKER}\n\n#{text}", "utf-8")


if __name__ == "__main__":
    main()
