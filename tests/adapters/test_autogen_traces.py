"""AutoGen, wrapped: what the docs and the example show."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from typing import Any

import pytest
from autogen_core import AgentId

import dig
from dig.errors import SettingsError
from dig.graph.records import Emit

from .autogen_runtimes import Ask, Net, says
from .autogen_teams import Watched, round_robin, scenario, swarm
from .conformance import example, lines_of
from .harness import Script, play


def test_the_example_shows_both_failures_and_both_cures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        round_and_round, paid, half, whole = example("autogen", tmp_path, capsys, "ER", "ET")
    assert round_and_round.startswith("Transferred to")
    assert paid == "Paid back. DONE"
    assert "snow" not in half and "snows on 12" in whole


def test_the_lines_in_the_docs_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, core = lines_of("wrapping-autogen.md")

    async def drive() -> None:
        names: dict[str, Any] = {"team": round_robin(Script())}
        await eval(chat, names)
        assert names["result"].messages[-1].content == "TERMINATE"
        net = Net(Script(), {"planner": says("It rains.")})
        async with net:
            planner = AgentId("planner", "default")
            names = {"dig": dig, "runtime": net.runtime, "planner": planner, "question": Ask("?")}
            await eval(core, names)
            assert names["answer"].text == "It rains."
        dig.unwrap(net.runtime)

    monkeypatch.chdir(tmp_path)
    asyncio.run(drive())
    assert len([*tmp_path.glob("runs/*/result.json")]) == 2


@pytest.mark.parametrize("wanted", [True, False])
def test_calls_of_tools_are_events_where_that_is_wanted(wanted: bool) -> None:
    """A tool is an agent `tool:NAME`; a handoff is none."""
    watched, asked = Watched("heal", tools=wanted), scenario(swarm)
    assert play(asked, watched) == play(asked)
    sent = [row for row in watched.records if isinstance(row, Emit) and row.type[:4] == "tool"]
    told = [(row.type, row.to, row.payload) for row in sent]
    called = [
        ("tool_call", ("tool:look_up",), {"what": "it"}),
        ("tool_result", ("bob",), "it: 42"),
    ]
    assert told == (called if wanted else [])
    assert watched.patterns == []
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


def test_a_runtime_does_not_tell_of_tools() -> None:
    async def drive() -> None:
        async with Net(Script(), {}) as net:
            with pytest.raises(SettingsError, match="tools= is for teams"):
                dig.wrap(net.runtime, tools=True)

    asyncio.run(drive())
