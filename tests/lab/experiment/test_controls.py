"""Controls that can fail: whether the comparison of the methods measures what it says.

Each runs with many seeds. They would fail if healing acted on the simulation by another way than
what agents are told and sent, if a method had advantages of its own, or if a judge did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from statistics import fmean

import pytest

from dig.detectors import JUDGE
from dig.graph.codec import to_row
from dig.graph.records import FindingRow, HealRow, Record
from dig.lab.experiment.grid import NEWSGROUPS, PAPER_SIZES
from dig.lab.experiment.statistics import mean
from dig.lab.judge.reviewer import ReviewLog
from dig.tasks.newsgroups_posts import sections
from dig.tasks.run.arrange import make_simulation, make_task
from dig.tasks.run.judging import Judging
from dig.tasks.run.methods import METHODS
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile

TASKS = {name: sizes[1] for name, sizes in PAPER_SIZES.items()}
SEEDS = range(1, 17)


def records(run: TeamRun) -> list[Record]:
    """Everything that happens in a run."""
    seen: list[Record] = []
    make_simulation(run, make_task(run), seen.append).run()
    return seen


def bare(seen: Iterable[Record]) -> list[str]:
    """Records without their place and the run's name, as text."""
    rows = [to_row(record) for record in seen]
    return [repr({k: v for k, v in row.items() if k not in ("t", "run")}) for row in rows]


# --- (a) healing acts by what agents are told and sent, and by nothing else ---


@pytest.mark.parametrize("task", TASKS)
def test_notes_that_nobody_heeds_change_nothing(task: str) -> None:
    """Compliance 0, notes only: without `finding` and `heal` rows, dig's trace is that of mas."""
    profile, healed = Profile(compliance=0.0), 0
    for seed in SEEDS:
        plain = TeamRun(task=task, size=TASKS[task], seed=seed, profile=profile, method="mas")
        seen = records(replace(plain, method="dig", means=("note",)))
        healed += sum(isinstance(record, HealRow) and record.action == "inject" for record in seen)
        kept = [record for record in seen if not isinstance(record, FindingRow | HealRow)]
        expected = [record for record in records(plain) if not isinstance(record, FindingRow)]
        assert bare(kept) == bare(expected), f"seed {seed}"
    assert healed > 5, "nothing was healed, so this says nothing"


def test_the_same_notes_change_something_if_they_are_heeded() -> None:
    """So the control above can fail."""
    profile, differ = Profile(compliance=1.0), 0
    for seed in SEEDS:
        plain = TeamRun(seed=seed, profile=profile, method="mas")
        seen = records(replace(plain, method="dig", means=("note",)))
        kept = [record for record in seen if not isinstance(record, FindingRow | HealRow)]
        expected = [record for record in records(plain) if not isinstance(record, FindingRow)]
        differ += bare(kept) != bare(expected)
    assert differ > 0


# --- (b) without errors and bad habits there is nothing to be healed ---


@pytest.fixture(scope="module")
def clear_posts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Posts of which each has words of one topic only, in the folders of the real ones."""
    folder = tmp_path_factory.mktemp("posts")
    words = {group: " ".join(lines).split() for group, lines in sections("keywords.txt").items()}
    topics = Counter(word for some in words.values() for word in set(some))
    for group, some in words.items():
        (folder / "20news-bydate-train" / group).mkdir(parents=True)
        clear = [word for word in some if topics[word] == 1]
        for i in range(8):
            post = folder / "20news-bydate-train" / group / f"{1000 + i}"
            post.write_text(f"Subject: words\n\n{' '.join(clear[i : i + 5] or clear)}\n")
    return str(folder)


@pytest.mark.parametrize("method", [*METHODS])
@pytest.mark.parametrize("task", TASKS)
def test_agents_without_fault_are_right_with_every_method(
    task: str, method: str, clear_posts: str
) -> None:
    """RMSE 0 and valid rate 1, for each team size of the grid, if the posts can be told apart."""
    for agents in (1, 3, 6):
        for seed in range(1, 5):
            run = TeamRun(
                task=task,
                size=PAPER_SIZES[task][0],
                seed=seed,
                agents=agents,
                method=method,
                data=clear_posts if task == NEWSGROUPS else None,
                profile=Profile.perfect(),
                judging=Judging(every=3, latency_s=2.0),
            )
            problem = make_task(run)
            result = make_simulation(run, problem, lambda record: None).run()
            score = problem.score(result.answer)
            assert score is not None
            assert (score.valid, score.rmse) == (True, 0.0), f"{agents} agents, seed {seed}"


# --- (c) a judge that sees nothing only makes the team wait ---

BLIND = Judging(every=4, recall=0.0, precision=0.5, latency_s=0.0)


def without_judge(seen: Iterable[Record]) -> list[str]:
    """Records without the judge's doings, with activations named by their order."""
    log = ReviewLog(JUDGE)
    for record in seen:
        log(record)
    text = "\n".join(bare(log.read(0).log))
    names: dict[str, str] = {}
    for record in log.read(0).log:
        if (activation := getattr(record, "activation", None)) is not None:
            names.setdefault(activation, f"turn {len(names)}")
    for old in sorted(names, key=len, reverse=True):
        text = text.replace(f"'{old}'", f"'{names[old]}'")
    return text.splitlines()


@pytest.mark.parametrize("task", TASKS)
def test_a_blind_judge_that_takes_no_time_changes_nothing(task: str) -> None:
    """Recall 0, no latency: apart from the judge's own rows its trace is that of mas."""
    read = 0
    for seed in SEEDS:
        plain = TeamRun(task=task, size=TASKS[task], seed=seed, method="mas")
        seen = records(replace(plain, method="judge", judging=BLIND))
        read += sum(getattr(record, "agent", None) == JUDGE for record in seen)
        assert without_judge(seen) == without_judge(records(plain)), f"seed {seed}"
    assert read > 50, "it has hardly read, so this says nothing"


def test_a_blind_judge_only_delays_an_agent_that_works_alone() -> None:
    """With one agent nothing can come in a pause: the same happens, later by the pauses."""
    judging = replace(BLIND, latency_s=5.0, spread=0.0, every=2)
    for seed in SEEDS:
        plain = TeamRun(seed=seed, agents=1, method="mas", profile=Profile(fail=0.0))
        seen, expected = records(replace(plain, method="judge", judging=judging)), records(plain)
        assert timeless(without_judge(seen)) == timeless(without_judge(expected)), f"seed {seed}"


def timeless(lines: Iterable[str]) -> list[str]:
    return [line.partition("'kind'")[2] for line in lines]


def test_a_blind_judge_with_pauses_is_no_better_and_no_worse() -> None:
    """In a team pauses change who sees what when; the differences in RMSE and valid rate are
    within their 99.9 % range of chance, over 60 seeds.

    Agents do not submit early: a pause delays what an early answer would have had in it.
    """
    judging = replace(BLIND, latency_s=4.0, spread=0.25, every=6)
    valid, errors = [], []
    for seed in range(1, 61):
        plain = TeamRun(size=1000, seed=seed, method="mas", profile=Profile(submit_early=0))
        scores = []
        for run in (plain, replace(plain, method="judge", judging=judging)):
            task = make_task(run)
            score = task.score(make_simulation(run, task, lambda record: None).run().answer)
            assert score is not None
            scores.append(score)
        valid.append(float(scores[1].valid) - float(scores[0].valid))
        if scores[0].rmse is not None and scores[1].rmse is not None:
            errors.append(scores[1].rmse - scores[0].rmse)
    for values in (valid, errors):
        spread = (sum((v - fmean(values)) ** 2 for v in values) / len(values) ** 2) ** 0.5
        assert abs(fmean(values)) < 3.3 * spread + 1e-9


def test_an_interval_holds_the_mean_as_often_as_it_says() -> None:
    """Of 100 samples of 20 fair dice about 95 % have an interval with 3.5 in it."""
    import random

    hits = 0
    for i in range(100):
        rolls = [float(random.Random(f"{i} {j}").randint(1, 6)) for j in range(20)]
        found = mean(rolls, 1, 6)
        assert found is not None and found.low is not None and found.high is not None
        hits += found.low <= 3.5 <= found.high
    assert 85 <= hits <= 100
