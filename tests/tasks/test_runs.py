"""One run of CountFrequency, put together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dig.errors import SettingsError
from dig.runtime.result import RunResult
from dig.tasks.profile import Profile
from dig.tasks.runs import CountFrequencyRun

DEMO = CountFrequencyRun(agents=6, size=10_000, seed=25)


def simulated(run: CountFrequencyRun) -> RunResult:
    return run.simulation(run.task(), lambda record: None).run()


def test_the_demo_gets_stuck_and_submits_early_and_is_healed() -> None:
    result = simulated(DEMO)
    assert result.outcome == "submitted"
    assert {"DL", "ET"} <= result.raised().keys()
    score = DEMO.task().score(result.answer)
    assert score.valid
    assert score.rmse is not None
    assert score.rmse < 100


def test_the_demo_without_healing_ends_without_an_answer() -> None:
    result = simulated(replace(DEMO, method="mas"))
    assert (result.outcome, result.answer, result.heals) == ("stopped", None, {})
    assert "DL" in result.raised()


def test_a_configuration_has_a_name_of_its_own() -> None:
    """The same settings have the same name, and any other setting another one."""
    others = [
        replace(DEMO, seed=2),
        replace(DEMO, method="mas"),
        replace(DEMO, profile=Profile(wait=0.5)),
        replace(DEMO, limit_s=60.0),
    ]
    assert CountFrequencyRun(seed=25).name == DEMO.name
    assert len({run.name for run in (DEMO, *others)}) == 5


@pytest.mark.parametrize("wrong", [{"agents": 0}, {"method": "magic"}, {"limit_s": 0.0}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        CountFrequencyRun(**wrong)  # type: ignore[arg-type]  # that is the point
