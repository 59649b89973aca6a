"""Whether ladders leave healthy teams alone, and whether each of them ends.

    python -m bench.ladders --count 1000 --jobs 2

Healthy teams make no mistake and think unevenly: the longest of a hundred turns takes ten times
as long as the median. Each run is played once observed and once healed step by step. Deaf
teams keep what they are given, read or do not read what they are told, and hang now and then: each
of their runs must end within its budget.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool

from dig.detectors import standard, standard_healers
from dig.detectors.interventions import BEYOND_NOTES, Budget
from dig.detectors.policy import HEAL_ALL, Policy
from dig.detectors.thresholds import Thresholds
from dig.graph.records import HealRow, Record
from dig.lab.experiment.grid import WINDOWS
from dig.lab.run_pair import play
from dig.monitor.messages import Output
from dig.runtime import Decision, EventFate, NewEvent, Plan, Setup, View, simulate
from dig.runtime.keyed_random import KeyedRandom
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile

HABITS = (
    "wait", "pass_on", "unwanted", "discard", "discard_double", "broadcast", "chat", "duplicate",
    "misaddress", "merge", "hand_over", "count_twice", "mix", "submit_early", "announce", "fail",
)  # fmt: skip
SPREAD = 1.0
BUDGET = Budget()


@dataclass(frozen=True)
class Played:
    """What a run took: seconds, activations, whether it was answered, and what healing did."""

    seconds: float
    calls: int
    answered: bool
    actions: Counter[str]


def healthy(seed: int, method: str) -> Played:
    """A healthy team of three to eight agents with uneven turns, under the product's policy."""
    profile = Profile(think_s=2.0, think_spread=SPREAD, **dict.fromkeys(HABITS, 0.0))
    run = TeamRun(
        agents=3 + seed % 6, size=5_000, seed=seed, method=method, limits=WINDOWS.limits,
        limit_s=600.0, profile=profile, policy=Policy(),
    )  # fmt: skip
    played = play(run)
    done = Counter(row.action for row in played.records if isinstance(row, HealRow))
    result = played.result
    answered = result.outcome == "submitted"
    return Played(result.seconds, result.activations, answered, done)


@dataclass(frozen=True)
class Deaf:
    """An agent that keeps what it is given, or passes it on, and never answers."""

    seed: int

    def plan(self, view: View) -> Plan:
        """Draw how long it takes, and what it does with each event."""
        draws = KeyedRandom(self.seed, view.agent, view.turn)
        hangs = draws.chance(0.05, "hangs")
        fates, outputs = [*self._fates(draws, view)], list[NewEvent]()
        if view.turn == 1 or draws.chance(0.1, "hands out"):
            outputs = [NewEvent(payload=i, to=[draws.choice(view.team, "to", i)]) for i in range(3)]
        return Plan(500.0 if hangs else draws.lognormal(1.0, 0.5, "think"), Decision(
            fates=fates, outputs=outputs
        ))  # fmt: skip

    def _fates(self, draws: KeyedRandom, view: View) -> Iterator[EventFate]:
        for i, event in enumerate(view.events):
            luck = draws.uniform("fate", i)
            if event.sender == "system" and luck < 0.5:
                continue  # it reads it
            if luck < 0.1 or view.turn == 1:
                yield EventFate(event=event.id, fate="consume")
            elif luck < 0.15 and view.others:
                to = [draws.choice(view.others, "pass on to", i)]
                yield EventFate(event=event.id, fate="reroute", to=to)
            else:
                yield EventFate(event=event.id, fate="delay")


def deaf(seed: int) -> Played:
    """A deaf team of two to seven agents.

    Raises:
        AssertionError: Healing went beyond its budget.
    """
    records: list[Record] = []
    names = [f"agent-{i + 1}" for i in range(2 + seed % 6)]
    setup = Setup(
        seed=seed, detectors=standard, healers=standard_healers, policy=HEAL_ALL, ladder=True,
        limits=Thresholds(stall_min_s=20.0, dl_window_s=10.0, mc_window_s=10.0).limits,
        limit_s=20_000.0, activation_timeout_s=400.0,
    )  # fmt: skip
    problem = Output("problem", (names[0],), "problem")
    result = simulate(dict.fromkeys(names, Deaf(seed)), problem, setup=setup, sink=records.append)
    healed = [row for row in records if isinstance(row, HealRow) and row.action != "refused"]
    steps = {(row.finding, row.us): row.action in BEYOND_NOTES for row in healed}
    assert len(steps) <= BUDGET.per_run, f"seed {seed}: {len(steps)} steps"
    beyond = {(row.finding, row.us) for row in healed if row.action in BEYOND_NOTES}
    assert len(beyond) <= BUDGET.per_problem, f"seed {seed}: {len(beyond)} steps beyond notes"
    done = Counter(row.action for row in healed)
    return Played(result.seconds, result.activations, result.outcome == "stopped", done)


def main() -> None:
    """Print what both kinds of teams took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    seeds = range(1, chosen.count + 1)
    with Pool(chosen.jobs) as pool:
        before = pool.map(partial(healthy, method="mas"), seeds, 10)
        after = pool.map(partial(healthy, method="dig+"), seeds, 10)
        ended = pool.map(deaf, seeds, 10)
    for name, some in (("healthy, observed", before), ("healthy, dig+", after), ("deaf", ended)):
        actions = sum((one.actions for one in some), Counter[str]())
        print(
            f"{name}: {len(some)} runs, {sum(one.answered for one in some)} ended as they should, "
            f"{sum(one.calls for one in some) / len(some):.2f} calls, "
            f"{sum(one.seconds for one in some) / len(some):.2f} s, {dict(actions)}"
        )
    more = [
        (sum(getattr(one, what) for one in after) / sum(getattr(one, what) for one in before) - 1)
        for what in ("calls", "seconds")
    ]
    out = sum(one.actions["replace"] + one.actions["restart"] for one in after)
    print(f"healthy teams: {more[0]:+.2%} calls, {more[1]:+.2%} s, {out} replaced or restarted")


if __name__ == "__main__":
    main()
