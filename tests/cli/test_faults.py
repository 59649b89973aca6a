"""`digmon faults`, and `digmon run --fault`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dig.faults.inject.fault_catalogue import KINDS

RUN = ("run", "count-frequency", "--size", 2000, "--agents", 3, "--method", "mas")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_all_kinds_are_listed_with_what_they_can_be_told(call: Any) -> None:
    code, out, err = call("faults")
    assert (code, err) == (0, "")
    for kind in KINDS.values():
        assert f"{kind.name} ({kind.family})\n    {kind.meaning}" in out
    assert "seconds = 90.0  Seconds that a message arrives later." in out


def test_a_program_can_read_the_list(call: Any) -> None:
    code, out, _ = call("faults", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert (code, [*rows]) == (0, [*KINDS])
    assert rows["stall"]["parameters"]["seconds"]["null"] == 0
    assert rows["split_twice"]["not_around"]


@pytest.mark.parametrize("clock", [["--virtual"], ["--speed", 200, "-q"]])
def test_a_fault_is_injected_and_told_beside_the_trace(call: Any, clock: list[Any]) -> None:
    """In virtual time and on the bus: what was injected is in the side file, acts in the result."""
    faults = ["--fault", "crash target=agent-2 start=1", "--fault", "leave target=agent-3 start=4"]
    _, out, err = call(*RUN, *clock, *faults, "--json")
    result = json.loads(out)
    assert err == ""
    assert result["failures"]["agent-2"] >= 1
    assert {act["fault"] for act in result["injections"]} == {0, 1}
    (run,) = Path("runs").iterdir()
    side = json.loads((run / "side.json").read_text())
    assert [fault["kind"] for fault in side["faults"]] == ["crash", "leave"]
    assert '"leave"' in (run / "trace.dig.jsonl").read_text()
    assert call("verify", run)[0] == 0


def test_a_fork_has_the_faults_of_its_run(call: Any) -> None:
    """Unchanged, it is the same run, with the same acts."""
    _, out, _ = call(*RUN, "--virtual", "--fault", "silent target=agent-2 start=1", "--json")
    parent = json.loads(out)
    _, out, err = call("fork", parent["directory"], "--at", 12, "--json")
    again = json.loads(out)
    assert err == ""
    assert again["injections"] == parent["injections"] != []
    traces = [Path(one["directory"], "trace.dig.jsonl").read_bytes() for one in (parent, again)]
    assert traces[0] == traces[1]


def test_the_summary_says_what_was_done(call: Any) -> None:
    _, out, _ = call(*RUN, "--virtual", "--fault", "silent target=agent-2")
    act = r"^faults +acted .*agent-2: took 1 message and sent\s+nothing on$"
    assert re.search(act, out, re.MULTILINE | re.DOTALL)
    _, out, _ = call(*RUN, "--virtual", "--fault", "silent target=agent-2 start=90")
    assert re.search(r"^faults +none had an occasion to act", out, re.MULTILINE)
    assert "faults" not in call(*RUN, "--virtual")[1]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("crush target=agent-2", "there is no fault 'crush'; known are: drop"),
        ("crash target=agent-9", "crash has the target 'agent-9', who is not in the team"),
        ("crash", "'crash' has no target"),
    ],
)
def test_a_fault_that_makes_no_sense_ends_in_one_line(call: Any, fault: str, says: str) -> None:
    """Before anything is left on the disk."""
    code, out, err = call(*RUN, "--virtual", "--fault", fault)
    assert (code, out) == (2, "")
    assert says in err and err.count("\n") == 1
    assert not Path("runs").exists()
