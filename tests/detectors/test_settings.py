"""Thresholds, wherever they are set."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from dig.detectors import COOLDOWN_S
from dig.detectors.interventions import Budget
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.graph.records import Limits


def test_the_defaults_are_those_of_a_trace_and_of_a_budget() -> None:
    """But for the patterns that only a trace of ours is looked through for, if it does not say."""
    defaults = Thresholds()
    ours = Limits(
        stall_factor=5.0, stall_min_s=60.0, late_window_s=10.0, loop_limit=5, livelock_turns=25
    )
    assert (defaults.limits, defaults.budget) == (ours, Budget())
    assert defaults.cooldown_s == COOLDOWN_S


def test_a_pattern_is_switched_off_by_a_word() -> None:
    """Where neither the command line nor TOML has a null."""
    found = Thresholds.load(["loop_limit=none", "late_window_s=none"], None, {})
    assert (found.limits.loop_limit, found.limits.late_window_s) == (None, None)


def test_every_default_is_argued() -> None:
    """Each threshold has a docstring that says more than its name."""
    for name, field in Thresholds.model_fields.items():
        assert len(field.description or "") > 80, name


def test_the_source_that_is_closest_wins(tmp_path: Path) -> None:
    """Command line before environment before file before default."""
    config = tmp_path / "dig.toml"
    config.write_text("[thresholds]\nmc_window_s = 1\noe_window_s = 1\ndl_window_s = 1\n[other]\n")
    environment = {"DIG_OE_WINDOW_S": "2", "DIG_DL_WINDOW_S": "2", "DIG_NEWSGROUPS": "/x"}
    found = Thresholds.load(["dl_window_s=3"], config, environment)
    assert (found.mc_window_s, found.oe_window_s, found.dl_window_s) == (1.0, 2.0, 3.0)
    assert found.reroute_limit == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("mc_windw_s=1", "did you mean mc_window_s?"),
        ("speed_of_light=1", "known are: mc_window_s, "),
        ("mc_window_s=0", "--set mc_window_s=0: mc_window_s is '0': input should be greater"),
        ("mc_window_s=nan", "input should be"),
        ("reroute_limit=1.5", "valid integer"),
        ("coverage=maybe", "valid boolean"),
        ("mc_window_s", "write it as NAME=VALUE"),
        ("mc_window_s=none", "valid number"),
    ],
)
def test_a_wrong_threshold_is_refused_with_its_place(given: str, message: str) -> None:
    with pytest.raises(SettingsError, match=r"^--set ") as refused:
        Thresholds.load([given], None, {})
    assert message in str(refused.value)


def test_the_environment_and_the_file_are_named_in_errors(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="environment variable DIG_COVERAGE: coverage is 'x'"):
        Thresholds.load((), None, {"DIG_COVERAGE": "x"})
    with pytest.raises(SettingsError, match="DIG_MC_WINDOW is no threshold; did you mean DIG_MC"):
        Thresholds.load((), None, {"DIG_MC_WINDOW": "3"})
    config = tmp_path / "dig.toml"
    for text, message in [
        ("[thresholds]\nfoo = 1", r"dig.toml, \[thresholds\]: there is no threshold 'foo'"),
        ("thresholds = 3", r"has no table \[thresholds\]"),
        ("mc_window_s = 3", r"has no table \[thresholds\]"),
        ("[thresholds]\nmc_window_s = true", "it must be a number"),
        ("[", "is not TOML"),
    ]:
        config.write_text(text)
        with pytest.raises(SettingsError, match=message):
            Thresholds.load((), config, {})
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        Thresholds.load((), tmp_path / "nowhere.toml", {})


def test_the_limits_of_a_trace_can_be_set_anew() -> None:
    """What is not named stays as the trace has it."""
    limits = Limits(mc_window_s=5, coverage=False)
    changed = Thresholds.change_limits(limits, ["reroute_limit=7"])
    assert asdict(changed) == {**asdict(limits), "reroute_limit": 7}
    with pytest.raises(SettingsError, match="a trace has no cooldown_s"):
        Thresholds.change_limits(limits, ["cooldown_s=1"])
