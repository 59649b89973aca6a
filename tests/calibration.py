"""How a single agent that nobody watches scores, beside the paper's Table 2.

    python -m tests.calibration [--seeds 200] [--data PATH]

The errors in reading of `Profile` were chosen so that these figures meet, and nothing else was;
`tests/tasks/test_calibration.py` keeps them so. Newsgroups are calibrated on the real posts.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from statistics import fmean, stdev

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
        for size, paper in PAPER[task].items():
            one = cell(task, size, given.seeds, data)
            print(
                f"| {task}, {what} | {size:,} | {paper:.2f} | {one.rmse:.2f} ± {one.margin:.2f} "
                f"| {one.valid:.2f} | {one.seconds:.1f} |"
            )


if __name__ == "__main__":
    main()
