"""`digmon demo`, `doctor`, `init`, and the help of commands in groups."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dig.detectors.patterns import NAMES
from dig.detectors.policy import Policy
from dig.detectors.policy_settings import load_policy
from dig.detectors.thresholds import Thresholds

REQUIREMENTS = [
    "anyio>=4.11",
    'pytest<99,>=8.3; extra == "tested"',
    'pytest<8,>=7; extra == "old"',
    'no-such-package>=1; extra == "absent"',
    'dig-monitor[draw]; extra == "all"',
]


def test_the_demo_ends_with_the_page_and_both_runs(call: Any, tmp_path: Path) -> None:
    status, shown, _ = call("demo", "--speed", "1000", "--runs", tmp_path)
    assert status in (0, 1)  # at such a speed a busy machine lets the team run out of time
    assert "1000 times as fast" in shown and "report.html" in shown
    assert len([*tmp_path.glob("*/trace.dig.jsonl")]) == 2


def test_doctor_names_each_extra_and_what_does_not_fit(
    call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.metadata.requires", lambda name: REQUIREMENTS)
    status, shown, _ = call("doctor")
    assert status == 1 and shown.endswith("1 thing to do\n")
    assert f"  extra tested: pytest {pytest.__version__}\n" in shown
    assert f"! extra old: pytest {pytest.__version__} does not fit <8,>=7" in shown
    assert "  extra absent: not installed: pip install 'dig-monitor[absent]'\n" in shown
    assert "extra all" not in shown
    assert f"Python: {sys.version.split()[0]}, {sys.executable}" in shown
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("installed", "bounds", "fits"),
    [("1.39", ">=1.39.0", True), ("2", ">=2.0.0,<2.14", True), ("2.14", "<2.14.0", False)],
)
def test_a_version_may_have_fewer_numbers_than_its_bound(
    installed: str, bounds: str, fits: bool, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "importlib.metadata.requires", lambda name: [f'some{bounds}; extra == "some"']
    )
    monkeypatch.setattr("importlib.metadata.version", lambda name: installed)
    assert ("does not fit" in call("doctor")[1]) is not fits


def test_doctor_is_content_with_a_machine_on_which_all_is_well(
    call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.metadata.requires", lambda name: REQUIREMENTS[:2])
    monkeypatch.setenv("DIG_OFF", "unsafe")
    status, shown, _ = call("doctor", "--json")
    assert status == 0
    lines = {line["about"]: line for line in json.loads(shown)}
    assert lines["DIG_OFF"]["text"] == "unsafe: teams are not wrapped"
    assert lines["writing to runs"]["text"] == "possible"
    assert not any(line["is_wrong"] for line in lines.values())


@pytest.mark.parametrize(
    ("switch", "text"),
    [
        ("DIG_OFF=no", "is unknown"), ("DIG_MODE=foo", "is unknown"),
        ("DIG_OTLP=foo", "is no OTLP endpoint"), ("DIG_OFF=true", ""),
    ],
)  # fmt: skip
def test_doctor_reads_a_variable_as_wrapping_does(
    switch: str, text: str, call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.metadata.requires", lambda name: REQUIREMENTS[:2])
    name, value = switch.split("=")
    monkeypatch.setenv(name, value)
    status, shown, _ = call("doctor")
    assert status == bool(text) and text in shown
    assert f"{'!' if text else ' '} {name}: " in shown


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_doctor_says_where_nothing_can_be_written(call: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    status, shown, _ = call("doctor", "--runs", tmp_path)
    assert status == 1 and f"! writing to {tmp_path}: Permission denied" in shown


def test_doctor_reads_the_settings(
    call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.digmon.policy]\nET = "sleep"\n')
    status, shown, _ = call("doctor")
    assert status == 1 and "! settings: " in shown and "ET" in shown


def test_init_writes_a_file_that_changes_nothing(call: Any, tmp_path: Path) -> None:
    file = tmp_path / "digmon.toml"
    status, shown, _ = call("init", file)
    assert status == 0 and "all lines are comments" in shown
    assert load_policy(file, {}) == Policy()
    assert Thresholds.load((), file, {}) == Thresholds()
    status, _, errors = call("init", file)
    assert status == 2 and "is there already" in errors


def test_each_setting_of_init_can_be_taken_in(call: Any, tmp_path: Path) -> None:
    """All are named, and those that are taken in as they stand are the defaults."""
    file = tmp_path / "digmon.toml"
    call("init", file)
    lines = file.read_text().splitlines()
    settings = [line.removeprefix("# ") if " = " in line else line for line in lines]
    file.write_text("\n".join(settings))
    policy = load_policy(file, {})
    assert [rule.pattern for rule in policy.rules] == [*NAMES]
    assert {rule.action for rule in policy.rules} == {"heal"}
    assert policy.budget is not None and policy.budget.turns == 40
    assert Thresholds.load((), file, {}) == Thresholds()


def test_no_line_of_the_list_of_commands_is_cut(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    _, shown, _ = call("--help")
    assert "  demo  " in shown and "..." not in shown.replace("[ARGS]...", "")


def test_help_shows_options_in_groups(call: Any) -> None:
    _, shown, _ = call("run", "--help")
    headings = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == [
        "Arguments:",
        "A team, the data of the problem, and the method against failures:",
        "The language model behind the agents:",
        "The speed of the clock:",
        "The place of a run's directory, and the durability of the journal:",
        "Options:",
    ]
    assert shown.index("--max-usd") < shown.index("The speed of the clock:") < shown.index("--twin")
    assert shown.count("--runs <path>") == 1
