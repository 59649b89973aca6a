"""The switches of the environment, and the arguments of `dig.wrap` as people write them."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest

import dig
from dig.adapters import switches
from dig.detectors.finding import Finding
from dig.detectors.protocols import Detector
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, Limits, Record
from dig.monitor.messages import Hold, Pending
from dig.traces.journal.reader import TRACE
from tests.helpers import Recorder


async def ann(question: str) -> str:
    return question


class Approval:
    """Keeps nothing."""

    name = "approval"

    def hold(self, graph: InteractionGraph, event: Pending) -> Hold | None:
        return None

    async def decide(self, event: Pending) -> tuple[()]:
        return ()


class Shouting(Detector):
    """Raised by each event in capitals."""

    pattern = "SHOUT"

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        if isinstance(record, Emit) and str(record.payload).isupper():
            yield Finding("SHOUT", record.t, record.us, {"event": record.event}, {})


GUARDED: list[dict[str, Any]] = [
    {"gates": [Approval()], "mode": "heal"},
    {"approve": lambda proposed: True},
    {"budget": {"turns": 20}},
]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    switches._warn_once.cache_clear()


def test_off_wraps_nothing_and_warns_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("DIG_OFF", "1")
    team = {"ann": ann}
    with caplog.at_level(logging.WARNING, "dig"):
        assert dig.wrap(team, journal=tmp_path) is team
        assert dig.wrap(team) is team
    assert team == {"ann": ann}
    assert [line for line in caplog.messages if "DIG_OFF" in line] == [
        "dig: DIG_OFF=1: teams run without a monitor"
    ]
    assert dig.unwrap(team) is team
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("value", ["1", "true", "unsafe"])
def test_a_team_has_no_session_while_all_is_off(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIG_OFF", value)
    with pytest.raises(SettingsError, match="DIG_OFF is set"):
        dig.session_of(dig.wrap({"ann": ann}))


@pytest.mark.parametrize("options", GUARDED)
@pytest.mark.parametrize("switch", ["DIG_OFF=1", "DIG_MODE=observe"])
def test_a_team_that_would_lose_its_guards_refuses_to_start(
    switch: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*switch.split("="))
    with pytest.raises(SettingsError, match=f"^{switch}: this team has .* DIG_OFF=unsafe runs"):
        dig.wrap({"ann": ann}, **options)


@pytest.mark.parametrize("options", GUARDED)
def test_unsafe_runs_it_all_the_same(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIG_OFF", "unsafe")
    monkeypatch.setenv("DIG_MODE", "observe")
    team = {"ann": ann}
    assert dig.wrap(team, **options) is team


def test_the_mode_of_the_environment_wins(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DIG_MODE", "observe")
    monkeypatch.setenv("DIG_OFF", "0")
    with caplog.at_level(logging.WARNING, "dig"):
        for _ in range(2):
            team = dig.wrap({"ann": ann}, mode="heal")
            assert dig.session_of(team).mode == "observe"
            dig.unwrap(team)
    assert len([line for line in caplog.messages if "DIG_MODE=observe" in line]) == 1


@pytest.mark.parametrize("switch", ["DIG_OFF=yes", "DIG_MODE=heal", "DIG_MODE=off"])
def test_an_unknown_value_is_refused(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*switch.split("="))
    with pytest.raises(SettingsError, match="is unknown"):
        dig.wrap({"ann": ann})


@pytest.mark.parametrize("detector", [Shouting, Shouting()])
def test_further_detectors_stand_beside_the_standard_ones(detector: Any) -> None:
    trace, findings = Recorder(), list[dig.Finding]()
    team = dig.wrap(
        {"ann": ann}, detectors=[detector], gates=[Approval()], mode="heal", sink=trace,
        on_finding=findings.append,
    )  # fmt: skip
    anyio.run(team["ann"], "HELP")
    dig.unwrap(team)
    assert "SHOUT" in {finding.pattern for finding in findings}


def test_a_policy_may_be_named_by_its_file(tmp_path: Path) -> None:
    """It may be about further detectors; its budget counts."""
    file = tmp_path / "dig.toml"
    file.write_text('[policy]\nSHOUT = "off"\n[budget]\nturns = 3\n')
    findings = list[dig.Finding]()
    team = dig.wrap(
        {"ann": ann}, detectors=[Shouting], policy=str(file), on_finding=findings.append
    )
    assert dig.session_of(team).budget is not None
    anyio.run(team["ann"], "HELP")
    dig.unwrap(team)
    shouts = [finding for finding in findings if finding.pattern == "SHOUT"]
    assert shouts and all(finding.silenced for finding in shouts)
    with pytest.raises(SettingsError, match="missing"):
        dig.wrap({"ann": ann}, policy=tmp_path / "missing.toml")


def test_a_team_reads_a_file_of_settings_as_the_commands_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Thresholds, a budget and alerts of the file hold; arguments of `wrap` stand above them."""
    file = tmp_path / "digmon.toml"
    file.write_text(
        '[policy]\nRSP = "off"\n[budget]\nturns = 1\n[alerts]\nto = ["log"]\n'
        "[thresholds]\nreroute_limit = 7\nheals_per_run = 9\ncooldown_s = 2\n"
    )
    team: dict[str, Any] = {"bob": ann}

    async def asks(question: str) -> Any:
        return await team["bob"](question)

    team["ann"] = asks
    dig.wrap(team, policy=file, journal=tmp_path / "runs")
    with pytest.raises(dig.BudgetExceeded):
        anyio.run(team["ann"], "?")
    directory = dig.session_of(team).directory
    assert directory is not None
    dig.unwrap(team)
    first = json.loads((directory / TRACE).read_text().splitlines()[0])
    assert first["limits"]["reroute_limit"] == 7
    assert first["journal"]["budget"]["per_run"] == 9
    assert first["journal"]["healers"] == {}  # it only observes
    until = time.monotonic() + 10  # alarms are sent by a thread of their own
    while not any("FAIL request" in line for line in caplog.messages):
        assert time.monotonic() < until
        time.sleep(0.01)
    team = dig.wrap({"ann": ann}, policy=file, limits=Limits(reroute_limit=4))
    assert dig.session_of(team).monitor.graph.run.limits.reroute_limit == 4
    dig.unwrap(team)
