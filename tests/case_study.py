"""The paper's case study (section 7.2) with simulated agents: 20 of them, 100,000 elements.

    python -m tests.case_study [--seeds 20]

What `digmon run count-frequency --agents 20 --size 100000 --virtual --seed N --method METHOD` does,
for some seeds and all methods, as one table.
"""

from __future__ import annotations

import argparse
from collections import Counter
from statistics import median

from dig.detectors.patterns import NAMES
from dig.runtime.result import RunResult
from dig.tasks.run.arrange import make_simulation, make_task
from dig.tasks.run.team_run import TeamRun
from dig.tasks.task import Score

METHODS = ("mas", "redraw", "watchdog", "retry", "judge", "dig", "dig+")


def outcome(method: str, seed: int) -> tuple[RunResult, Score | None]:
    """How one run ended, and what its answer was worth."""
    run = TeamRun(agents=20, size=100_000, method=method, seed=seed)
    task = make_task(run)
    result = make_simulation(run, task, lambda record: None).run()
    return result, task.score(result.answer)


def rows(runs: list[tuple[RunResult, Score | None]]) -> dict[str, str]:
    """What a method's runs came to, by label."""
    results = [result for result, _ in runs]
    rmse = [score.rmse for _, score in runs if score and score.rmse is not None]
    complete = sum(score is not None and score.complete is True for _, score in runs)
    raised: Counter[str] = Counter()
    for result in results:
        raised.update(result.raised())
    return {
        "valid answers": f"{len(rmse)} of {len(runs)}",
        "complete answers": f"{complete} of {len(runs)}",
        "RMSE, median": f"{median(rmse):,.0f}" if rmse else "none",
        "RMSE, worst": f"{max(rmse):,.0f}" if rmse else "none",
        "virtual seconds, median": f"{median(result.seconds for result in results):.1f}",
        "activations, median": f"{median(result.activations for result in results):.0f}",
        **{f"{pattern} a run": f"{raised[pattern] / len(runs):.2f}" for pattern in NAMES},
    }


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description="Twenty simulated agents, 100,000 elements.")
    parser.add_argument("--seeds", type=int, default=20)
    seeds = range(1, parser.parse_args().seeds + 1)
    told = {method: rows([outcome(method, seed) for seed in seeds]) for method in METHODS}
    methods = " | ".join(METHODS)
    print(f"| 20 simulated agents, 100,000 elements, {len(seeds)} seeds | {methods} |")
    print(f"| --- |{' --- |' * len(METHODS)}")
    for label in told["mas"]:
        print(f"| {label} | {' | '.join(told[method][label] for method in METHODS)} |")


if __name__ == "__main__":
    main()
