"""What docs/wrapping.md shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anyio
import pytest

import dig
from dig.adapters import CAPABILITIES
from tests.helpers import Recorder

PAGE = Path(__file__).parents[2] / "docs" / "wrapping.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs")


def shown() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_a_wrapper_of_ones_own_has_fifty_lines_and_finds_an_early_answer() -> None:
    """The net answers while a message lies in its queue; ET is found, and all is restored."""
    framework, wrapper = shown()[-2:]
    assert len(wrapper.strip().splitlines()) <= 52
    names: dict[str, Any] = {}
    exec(compile(framework + wrapper, str(PAGE), "exec"), names)

    async def boss(message: str) -> list[tuple[str | None, str]]:
        return [("ann", "part 1"), ("bob", "part 2")]

    async def worker(message: str) -> list[tuple[str | None, str]]:
        return [(None, message)]

    nodes = {"boss": boss, "ann": worker, "bob": worker}
    net, trace = names["Net"](dict(nodes)), Recorder()
    assert dig.wrap(net, adapter=names["NetAdapter"](), mode="heal", sink=trace) is net
    assert anyio.run(net.run, "boss", "?") == "part 1"
    session = dig.session_of(net)
    assert [(f.pattern, f.evidence["unresolved"]) for f in session.findings] == [("ET", ["e3"])]
    assert session.statistics().faults == 0
    assert dig.unwrap(net).nodes == nodes


def test_the_first_lines_run() -> None:
    """The three lines at the top, around a team."""
    code = "async def main():\n" + "".join(
        f"    {line}\n" for line in shown()[0].replace(', journal="runs"', "").splitlines()[2:]
    )

    async def planner(question: str) -> str:
        return question[::-1]

    names: dict[str, Any] = {"dig": dig, "made": {"planner": planner}}
    exec(code.replace("wrap(team)", "wrap(made)").replace("unwrap(made)", "unwrap(team)"), names)
    anyio.run(names["main"])
    assert names["made"] == {"planner": planner}


def test_every_capability_is_in_the_table() -> None:
    """The page tells of all there are, and of no other."""
    told = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert told == [*CAPABILITIES] or sorted(told) == sorted(CAPABILITIES)
