"""What docs/lab/faults.md and the example of a game day show is what happens."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from dig.faults.inject import fault_catalogue as catalogue
from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS, Kind
from dig.faults.inject.injector import COMMON, Parameter
from dig.graph.records import Emit
from dig.lab.run_pair import play
from tests.helpers import backends

from .plays import STEADY

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "lab" / "faults.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs")


def shown(words: str) -> str:
    """The block of Python with some words in it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found: str = next(block for block in blocks if words in block)
    return found


def row(kind: Kind) -> str:
    """A kind's row in the table of the page."""
    told = ", ".join(_told(n, p) for n, p in kind.parameters.items() if COMMON.get(n) != p)
    cells = [
        f"`{kind.name}`", kind.meaning, told, ", ".join(kind.raises), ", ".join(kind.may_raise),
        "no" if kind.not_around else "yes",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def _told(name: str, parameter: Parameter) -> str:
    return f"`{name}` {parameter.default}"


def test_the_page_has_the_catalogue() -> None:
    """Each row, in order, and no other."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows[: len(KINDS)] == [row(kind) for kind in KINDS.values()]


def test_a_run_is_played_next_to_its_twin(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(shown("play("), str(PAGE), "exec"), {})
    printed = capsys.readouterr().out.strip()
    assert f"    {printed}" in PAGE.read_text()


def test_a_kind_of_ones_own_is_one_file_and_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that is shown works as any other."""
    names: dict[str, Any] = {}
    exec(compile(shown("class Shout"), "shout.py", "exec"), names)
    exec(
        compile("row = " + shown('name="shout"'), str(PAGE), "exec"), names | vars(catalogue), names
    )
    kind = names["row"][0]
    monkeypatch.setattr(catalogue, "KINDS", MappingProxyType({**KINDS, kind.name: kind}))
    played = play(STEADY, [Fault.parse("shout target=agent-2")])
    loud = [played.records[injection.t] for injection in played.injections]
    assert loud
    assert all(isinstance(r, Emit) and set(r.to) == {*STEADY.names} for r in loud)


def test_a_game_day_on_ones_own_team(capsys: pytest.CaptureFixture[str]) -> None:
    """As it is shown: the fault acts, and the team is as it was afterwards."""
    names: dict[str, Any] = {}
    exec(compile(shown("around(team"), str(PAGE), "exec"), names)

    async def planner(question: str) -> str:
        return question

    team = {"planner": planner}
    answer = anyio.run(names["game_day"], team)
    assert answer == "What now?"
    assert team == {"planner": planner}
    assert "planner: hung for" in capsys.readouterr().out


def test_the_example_finds_and_heals_what_it_injects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole without the fault, early with it, and whole again where it may be healed."""
    example = runpy.run_path(str(ROOT / "examples" / "game_day.py"))
    name, options = backends()["asyncio"]()
    answers = anyio.run(example["main"], str(tmp_path), backend=name, backend_options=options)
    whole = "it is on its way, it is paid back"
    assert answers == [whole, "it is on its way", whole]
    printed = capsys.readouterr().out
    assert printed.count("injected at") == printed.count("found ET") == 2
