"""The agents behind a wrong answer: the errors of solutions, without those that they inherit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dig.cli.run import disturbing
from dig.graph.codec import decode
from dig.tasks.count_frequency import CountFrequency
from dig.tasks.run.arrange import make_task
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from dig.traces.journal.reader import read_records
from tests.histories import arrive, deliver, end, final, start, trace

TASK = CountFrequency(size=20, seed=1)
# Its elements are 3 9 6 8 8 9 5 9 5 5 | 7 0 2 5 3 4 9 9 4 0.
FIRST = {"3": 1, "5": 3, "6": 1, "8": 2, "9": 3}
SECOND = {"0": 2, "2": 1, "3": 1, "4": 2, "5": 1, "7": 1, "9": 2}
WHOLE = {value: FIRST.get(value, 0) + SECOND.get(value, 0) for value in "0123456789"}


def solution(rows: Any, counts: Mapping[str, float], *covers: list[int]) -> list[Any]:
    first, *others = rows if isinstance(rows, list) else [rows]
    return [{**first, "payload": {"counts": counts, "covers": [*covers]}}, *others]


def mistakes(
    first: dict[str, int], second: dict[str, int], whole: dict[str, int]
) -> dict[str, str]:
    """Two agents count half of the data each, and `c` puts the halves together."""
    rows = trace(
        arrive(0, "e0", None, "a"), arrive(0, "e1", None, "b"),
        start(1, "v1", "a", "e0"), end(1, "v1", "e2", e0="consume"),
        solution(arrive(1, "e2", "v1", "c", "solution"), first, [0, 10]),
        start(2, "v2", "b", "e1"), end(2, "v2", "e3", e1="consume"),
        solution(arrive(2, "e3", "v2", "c", "solution"), second, [10, 20]),
        start(3, "v3", "c", "e2 e3"), end(3, "v3", "e4", e2="consume", e3="consume"),
        solution({**final(3, "e4", "v3"), "type": "solution"}, whole, [0, 20]),
        deliver(4, "e4", None),
    )  # fmt: skip
    found = TASK.mistakes([decode(row) for row in rows])
    return {mistake.agent: mistake.says for mistake in found}


@pytest.mark.parametrize(
    ("first", "second", "whole", "says"),
    [
        (FIRST, SECOND, WHOLE, {}),
        (
            FIRST | {"9": 0}, SECOND, WHOLE | {"9": 2},
            {"a": "left out 3 of 10 elements"},
        ),
        (
            FIRST | {"9": 0}, SECOND | {"4": 1, "2": 2}, WHOLE | {"9": 2, "4": 1, "2": 2},
            {"a": "left out 3 of 10 elements",
             "b": "misread 1 of 10 elements"},
        ),
        # Each error alone is as large as the errors of both, which cancel in part.
        (
            FIRST | {"9": 1, "5": 5}, SECOND | {"9": 4, "4": 0}, WHOLE | {"5": 6, "4": 0},
            {"a": "misread 2 of 10 elements", "b": "misread 2 of 10 elements"},
        ),
        # What is misread counts beside what is left out: 5 of 10 are more than 4.
        (
            FIRST | {"9": 0, "8": 0, "5": 5}, SECOND | {"0": 0, "4": 0},
            WHOLE | {"9": 2, "8": 0, "5": 6, "0": 0, "4": 0},
            {"a": "left out 3 and misread 2 of 10 elements", "b": "left out 4 of 10 elements"},
        ),
        (
            FIRST, SECOND, WHOLE | {"9": 15},
            {"c": "counted 10 too many elements when it put the counts of others together"},
        ),
        (FIRST, SECOND, {k: FIRST.get(k, 0) * 2 + SECOND.get(k, 0) for k in {**FIRST, **SECOND}},
         {"c": "added the counts of [0, 10] twice (10 elements)"}),
        # A mistake that another agent mended, or that never came into the answer, is none.
        (FIRST | {"9": 0}, SECOND, WHOLE, {}),
    ],
)  # fmt: skip
def test_each_agent_has_its_own_errors_and_none_of_others(
    first: dict[str, int], second: dict[str, int], whole: dict[str, int], says: dict[str, str]
) -> None:
    """What an answer inherits from the solutions behind it is not counted again."""
    assert [*mistakes(first, second, whole).items()] == [*says.items()]


def test_a_payload_without_counts_is_nobodys_mistake() -> None:
    """Nothing can be said of it, so the error is that of the agent with the answer."""
    assert mistakes({"?": 1}, SECOND, WHOLE) == {}
    assert [*mistakes({"?": 1}, SECOND, WHOLE | {"9": 0})] == ["c"]


def test_the_mistakes_of_a_run_make_up_the_error_of_its_answer(tmp_path: Path) -> None:
    """They are in the score, in the five answers, and the headline names the agents."""
    run = TeamRun(seed=5, method="mas", profile=Profile.of(["error=0.65"]))
    execution = execute(run, tmp_path)
    assert execution.score is not None and execution.score.wrong
    answers = execution.verdict
    assert answers.verdict == "Wrong answer"
    named = {mistake.agent for mistake in execution.score.mistakes}
    assert len(named) >= 3 and answers.who[0].agent == execution.score.mistakes[0].agent
    assert answers.headline.endswith(": all 6 agents miscounted.")
    worst = execution.score.mistakes[0]
    event, says = next(iter(worst.counts.items()))
    assert answers.command == f"digmon show {execution.directory} {event}"
    assert answers.next.endswith(f"`{worst.agent}` {says}")
    left = [int(m.says.split()[2].replace(",", "")) for m in execution.score.mistakes]
    missing = int(execution.score.says.split()[3].replace(",", ""))
    assert sum(left) == pytest.approx(missing, rel=0.02)
    task = make_task(run)
    assert not task.mistakes([*read_records(execution.directory)][:-3])  # type: ignore[attr-defined]


def test_the_steps_to_a_double_count_begin_with_the_part_that_was_given_out_twice(
    tmp_path: Path,
) -> None:
    """And they end before the sum."""
    execution = execute(TeamRun(seed=640, method="mas", profile=Profile.of(["error=0"])), tmp_path)
    assert execution.score is not None
    (mistake,) = execution.score.mistakes
    assert [step.says for step in mistake.origins] == [
        "agent-1 gave [833, 1666] to agent-3 and itself",
        "agent-3 and agent-1 had counted [833, 1666] each",
    ]
    assert not any(step.is_healing for step in mistake.origins)
    assert all(step.t < mistake.t for step in mistake.origins)


def test_a_part_that_came_twice_by_healing_is_the_monitors(tmp_path: Path) -> None:
    """It was lost, and by then its sender had asked for it anew."""
    execution = execute(TeamRun(seed=639, method="dig+", profile=Profile.of(["error=0"])), tmp_path)
    assert execution.score is not None
    (mistake,) = execution.score.mistakes
    assert [step.says for step in mistake.origins if step.is_healing] == [
        "the monitor gave [3333, 4166] to agent-1"
    ]
    assert "agent-6 threw [3333, 4166] away" in [step.says for step in mistake.origins]
    assert "That did harm" in execution.verdict.monitor


def test_a_part_that_came_twice_already_is_not_the_monitors(tmp_path: Path) -> None:
    """Both counts were there when the monitor gave the part to one of the two."""
    execution = execute(TeamRun(seed=641, method="dig+", profile=Profile.of(["error=0"])), tmp_path)
    assert execution.score is not None
    (mistake,) = execution.score.mistakes
    assert "agent-4 and agent-1 had counted [3333, 4166] each" in [s.says for s in mistake.origins]
    assert not any(step.is_healing for step in mistake.origins)
    assert "That did harm" not in execution.verdict.monitor


def test_a_value_that_is_wrong_by_less_than_half_an_element_is_not_listed() -> None:
    """It would be told as `0 too many`."""
    rows = trace(
        arrive(0, "e0", None, "a"), start(1, "v1", "a", "e0"), end(1, "v1", "e1", e0="consume"),
        solution({**final(1, "e1", "v1"), "type": "solution"}, WHOLE | {"9": 2, "4": 2.3}, [0, 20]),
        deliver(2, "e1", None),
    )  # fmt: skip
    (mistake,) = TASK.mistakes([decode(row) for row in rows])
    assert mistake.errors == {"e1": "9 3 too few"}


def test_several_parts_that_were_added_twice_are_all_told(tmp_path: Path) -> None:
    """Each explains a third of the error only, and what was lost on the way explains nothing."""
    run = TeamRun(seed=503, agents=4, method="mas", profile=Profile.of(["error=0"]))
    disturb = disturbing(["work_on_others_part target=agent-1"])
    execution = execute(run, tmp_path, disturb=disturb)
    assert execution.score is not None
    (mistake,) = execution.score.mistakes
    parts = "[1666, 2500], [5000, 5833] and [5833, 6666]"
    assert mistake.says.startswith(f"added the counts of {parts} twice (2,500 elements, by ")
    assert "agent-1 gave [5833, 6666] to agent-3 and itself" in [s.says for s in mistake.origins]
    answers = execution.verdict
    steps = [step.says for step in answers.wrong]
    assert steps[0] == "agent-1 kept 9 parts of others (a fault put in on purpose)"
    assert not [says for says in steps if "away" in says or "ET" in says]
    assert answers.who[0].says.count("put in on purpose") == 1
    assert answers.next.startswith("Do not use the answer. Let `agent-1` add the counts of each")
    assert answers.command.endswith(f" {mistake.activation}")
