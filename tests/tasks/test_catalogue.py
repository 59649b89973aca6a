"""Tasks by name: ours, those of packages, and a user's own; and who works on them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import anyio
import pytest

from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.monitor.messages import Output
from dig.runtime.agents import Decision, Plan, View
from dig.runtime.llm import Model, ModelAgent, ModelSettings
from dig.tasks import catalogue
from dig.tasks.catalogue import TASKS, kind
from dig.tasks.general_agent import GeneralBrief
from dig.tasks.run.arrange import arrange, make_run, make_task, members
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.tasks.task import Score, Task

PLAIN = Thresholds.load()


class Echo:
    """Submits what it is given."""

    def plan(self, view: View) -> Plan:
        return Plan(0.5, Decision.submit(view, view.events[0].payload))


async def sleeps(view: View) -> Decision:
    with suppress(Exception):
        await anyio.sleep(1)
    return Decision.submit(view, "slept")


@dataclass
class Doubling:
    """A task of a user's own: give back twice the size."""

    size: int
    seed: int
    name: str = "doubling"
    data: str = "a number"

    def problem(self, *to: str) -> Output:
        return Output(2 * self.size, to, "problem")

    def tools(self) -> dict[str, Any]:
        return {}

    def score(self, answer: object) -> Score:
        return Score(answer == 2 * self.size, 0.0)


PAIR = ({"ada": Echo()}, {"say": "hello"})
BROKEN = object()


def team_of_echoes(names: tuple[str, ...], task: Task) -> dict[str, Echo]:
    return {name: Echo() for name in names}


def raises(size: int) -> None:
    raise RuntimeError("no luck")


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This file can be named as a user's module."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def test_a_users_own_team_and_problem_can_be_run(tmp_path: Path) -> None:
    run = make_run("test_catalogue:PAIR", PLAIN)
    execution = execute(run, tmp_path)
    assert (run.agents_are, run.agents, members(run, make_task(run))) == ("own", 1, ("ada",))
    assert (execution.result.answer, execution.score) == ({"say": "hello"}, None)


def test_a_users_own_task_is_scored_by_it_with_agents_of_the_users(tmp_path: Path) -> None:
    run = make_run(
        "test_catalogue:Doubling", PLAIN, size=21, agents_are="test_catalogue:team_of_echoes"
    )
    execution = execute(run, tmp_path)
    assert (execution.result.answer, execution.score) == (42, Score(True, 0.0))


def test_a_package_makes_a_task_known_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("doubling", "test_catalogue:Doubling", "dig.tasks")
    monkeypatch.setattr(catalogue, "list_entries", lambda group: [entry])
    assert kind("doubling").make(4, 1, None).problem().payload == 8


def test_a_package_in_the_working_folder_brings_no_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder may be somebody else's; a module in it has to be named."""
    about = tmp_path / "hostile-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: hostile\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[dig.tasks]\nx = test_catalogue:Doubling\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SettingsError, match="there is no task 'x'"):
        kind("x")


@pytest.mark.parametrize("name", ["cooking", "no_such_module:task", "test_catalogue:nothing"])
def test_a_task_that_is_not_there_is_named_in_the_error(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        kind(name)


def test_the_error_about_an_unknown_task_names_all_that_are_known() -> None:
    with pytest.raises(SettingsError, match=", ".join(TASKS)):
        kind("cooking")


@pytest.mark.parametrize(
    ("name", "said"), [("BROKEN", "lacks name, size, data, problem"), ("raises", "no luck")]
)
def test_what_is_no_task_is_refused(name: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        kind(f"test_catalogue:{name}").make(1, 1, None)


def test_a_task_without_a_team_says_that_nobody_works_on_it() -> None:
    with pytest.raises(SettingsError, match="has no team"):
        make_run("test_catalogue:Doubling", PLAIN, size=2)
    simulated = make_run("test_catalogue:Doubling", PLAIN, size=2, agents_are="simulated")
    with pytest.raises(SettingsError, match="no simulated agents"):
        arrange(simulated, make_task(simulated))


SLOW = ({"ada": sleeps}, "hello")
MODEL = Model(ModelSettings("m", "http://localhost"))
ASKING = ({"ada": ModelAgent(MODEL, GeneralBrief())}, "hello")
NO_AGENT = ({"ada": 3}, "hello")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "SLOW",
            r"agent 'ada' awaits something real at test_catalogue.py:\d+.*leave --virtual out",
        ),
        ("ASKING", "real time is needed by ada, since a language model decides"),
        ("NO_AGENT", "'ada' is 3, which is no agent"),
    ],
)
def test_a_team_that_cannot_work_in_virtual_time_is_refused(
    tmp_path: Path, name: str, said: str
) -> None:
    """The error names the agent and what to do, and nothing is left of the attempt."""
    with pytest.raises(SettingsError, match=said):
        execute(make_run(f"test_catalogue:{name}", PLAIN), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_task_that_makes_its_own_data_takes_none() -> None:
    with pytest.raises(SettingsError, match="leave --data out"):
        make_task(TeamRun(data="here"))
