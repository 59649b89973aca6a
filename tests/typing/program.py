"""A user's program: a wrapped team, a bus, a policy, results, a test; checked, never run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import dig
from dig.detectors.policy import Policy
from dig.runtime import Alerts, Bus, Decision, LogAlerts, RunResult, Setup, View


async def ann(question: str) -> str:
    return question


def note(finding: dig.Finding) -> None:
    print(finding.pattern, finding.severity, finding.subject)


team = dig.wrap(
    {"ann": ann},
    mode="heal",
    journal="runs",
    sample=0.5,
    budget={"turns": 20},
    policy="policy.toml",
    on_finding=note,
    on_alarm=Alerts(LogAlerts()),
)
answer = team["ann"]
session = dig.session_of(team)
print(session.statistics().unsampled, [finding.evidence for finding in session.findings])
result: RunResult = session.result()
print(result.outcome, result.heals.get("inject", 0), result.answer)
assert_type(result.seconds, float)
dig.unwrap(team)


async def solve(view: View) -> Decision:
    return Decision.submit(view, len(view.events))


async def main() -> None:
    ended = dig.run({"solver": solve}, "count")
    assert_type(ended, RunResult)
    bus = Bus({"solver": solve}, setup=Setup(policy=Policy(heal="severity")))
    print(bus)


def test_team(dig_team: Callable[..., Any]) -> None:
    checked = dig_team({"ann": ann})
    print(checked)
