"""How agents without healing score, beside the paper's tables: one agent, and teams.

    python -m tests.lab.experiment.calibration [--seeds 200] [--data PATH]

The errors in reading of `Profile` were chosen so that the figures of one agent meet, and four
habits so that those of teams do; `tests/lab/experiment/test_calibration.py` keeps them so.
Newsgroups are calibrated on the real posts.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from statistics import fmean, stdev

from dig.lab.experiment.grid import LEVELS, WINDOWS
from dig.lab.experiment.paper_figures import paper
from dig.tasks.newsgroups import data_from_environment
from dig.tasks.run.arrange import make_simulation, make_task
from dig.tasks.run.team_run import TeamRun

PAPER = {
    "count-frequency": {1000: 41.03, 5000: 202.05, 10_000: 431.67},
    "newsgroups": {60: 2.40, 100: 4.08, 150: 6.52},
}
"""RMSE of one agent with MAS-Only, by task and size."""


@dataclass(frozen=True)
class Cell:
    """What some runs of one kind came to.

    Attributes:
        rmse: The mean RMSE of the valid answers.
        margin: Half of its 95 % interval.
        valid: Which share of the runs had a valid answer.
        seconds: How long they took on average, in virtual time.
    """

    rmse: float
    margin: float
    valid: float
    seconds: float


def cell(task: str, size: int, seeds: int, data: str | None = None) -> Cell:
    """Run a single agent with the default profile, with seeds from 1."""
    scores, seconds = [], []
    for seed in range(1, seeds + 1):
        run = TeamRun(task=task, size=size, agents=1, method="mas", seed=seed, data=data)
        made = make_task(run)
        result = make_simulation(run, made, lambda record: None).run()
        score = made.score(result.answer)
        seconds.append(result.seconds)
        if score is not None and score.rmse is not None:
            scores.append(score.rmse)
    margin = 1.96 * stdev(scores) / len(scores) ** 0.5
    return Cell(fmean(scores), margin, len(scores) / seeds, fmean(seconds))


@dataclass(frozen=True)
class Team:
    """What the runs of teams of one size came to, over both tasks and all sizes of problems.

    Attributes:
        valid: Which share of the runs had a valid answer.
        early: How often ET was raised a run.
        complete: Which share of the runs had an answer about all of the problem.
        rmse: The mean RMSE of the valid answers, by task and size of the problem.
    """

    valid: float
    early: float
    complete: float
    rmse: dict[tuple[str, int], float]


def team(agents: int, seeds: int, data: str | None = None) -> Team:
    """Run teams of one size with the default profile and without healing."""
    valid, early, complete = [], [], []
    rmse: dict[tuple[str, int], list[float]] = {}
    for task, size in ((task, size) for task, sizes in PAPER.items() for size in sizes):
        for seed in range(1, seeds + 1):
            run = TeamRun(
                task=task, size=size, agents=agents, method="mas", seed=seed,
                data=data if task == "newsgroups" else None, limits=WINDOWS.limits,
            )  # fmt: skip
            made = make_task(run)
            result = make_simulation(run, made, lambda record: None).run()
            score = made.score(result.answer)
            valid.append(score is not None and score.valid)
            complete.append(score is not None and score.complete is True)
            early.append(result.raised().get("ET", 0))
            if score is not None and score.rmse is not None:
                rmse.setdefault((task, size), []).append(score.rmse)
    means = {key: fmean(values) for key, values in rmse.items()}
    return Team(fmean(valid), fmean(early), fmean(complete), means)


def _print_teams(seeds: int, data: str | None) -> None:
    print("\n| simulated teams, mas | agents | paper | here |")
    print("| --- | --- | --- | --- |")
    for agents in (3, 6):
        ours = team(agents, seeds, data)
        theirs = {
            (task, size): paper(task, size, level, agents, "mas")
            for task, sizes in PAPER.items()
            for size, level in zip(sizes, LEVELS, strict=True)
        }
        known = [one for one in theirs.values() if one is not None]
        valid, early = (fmean(some) for some in zip(
            *((one.valid, one.findings["ET"]) for one in known), strict=True
        ))  # fmt: skip
        print(f"| valid answers | {agents} | {valid:.2f} | {ours.valid:.2f} |")
        print(f"| ET a run | {agents} | {early:.2f} | {ours.early:.2f} |")
        print(f"| complete answers | {agents} | - | {ours.complete:.2f} |")
        for (task, size), one in theirs.items():
            told = "-" if one is None else f"{one.rmse:.2f}"
            print(f"| RMSE, {task} {size:,} | {agents} | {told} | {ours.rmse[task, size]:.2f} |")


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description="Simulated agents beside the paper's Table 2.")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--data", default=data_from_environment())
    given = parser.parse_args()
    print("| task (one simulated agent, mas) | size | paper | here, 95 % | valid | virtual s |")
    print("| --- | --- | --- | --- | --- | --- |")
    sources = [("count-frequency", None, "random numbers"), ("newsgroups", None, "our own posts")]
    if given.data:
        sources.insert(1, ("newsgroups", given.data, "real posts"))
    for task, data, what in sources:
        for size, theirs in PAPER[task].items():
            one = cell(task, size, given.seeds, data)
            print(
                f"| {task}, {what} | {size:,} | {theirs:.2f} | {one.rmse:.2f} ± {one.margin:.2f} "
                f"| {one.valid:.2f} | {one.seconds:.1f} |"
            )
    _print_teams(given.seeds, given.data)


if __name__ == "__main__":
    main()
