"""Healthy teams raise no alarm, and the mistakes that they can have do."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from .__main__ import main
from .beyond import BEYOND, UNSEEN
from .report import FRAMEWORKS, beyond_table, claimed, is_installed, shapes_of, tables
from .shapes import GAVE_UP, Mode, Seen, Shape, play

# LlamaIndex looks at all attributes of its agents, which are models of pydantic.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning"),
    # Google ADK calls its own old ways.
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),
]

PAGE = Path(__file__).parents[2] / "docs" / "lab" / "alarms-library.md"

INSTALLED = [name for name in FRAMEWORKS if is_installed(name)]
SHAPES = [shape for name in INSTALLED for shape in shapes_of(name)]


PLAYED: dict[tuple[str, bool, bool, str], Seen] = {}


def played(shape: Shape, *, broken: bool, with_line: bool = True, mode: Mode = "observe") -> Seen:
    """What was seen of a program of a shape; several tests look at one run."""
    key = shape.name, broken, with_line or not shape.line, mode
    if key not in PLAYED:
        PLAYED[key] = play(shape, broken=broken, with_line=key[2], mode=mode)
    return PLAYED[key]


ITS_OWN = pytest.mark.filterwarnings("ignore::DeprecationWarning")
"""CrewAI uses what it deprecates."""

each_shape = pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, id=shape.name, marks=ITS_OWN if "crew" in shape.name else ())
        for shape in SHAPES
    ],
)


@pytest.mark.sampled(2)
@each_shape
def test_a_healthy_team_raises_no_alarm(shape: Shape) -> None:
    """It answers right, with one line of configuration at most, and nobody works on after that."""
    seen = played(shape, broken=False)
    assert seen.answer == shape.answer
    assert not seen.late
    assert not seen.alarms, seen.findings
    assert seen.faults == 0


@pytest.mark.sampled(2)
@each_shape
def test_a_healthy_team_that_is_healed_answers_as_it_does_without_a_monitor(shape: Shape) -> None:
    """Nothing is healed in it, and it is told nothing."""
    seen = played(shape, broken=False, mode="heal")
    assert seen.answer == played(shape, broken=False, mode="bare").answer == shape.answer
    assert not seen.alarms, seen.findings
    assert seen.faults == 0


@pytest.mark.sampled(2)
@each_shape
def test_its_broken_twin_raises_the_alarms_that_are_named(shape: Shape) -> None:
    """These alarms, and no others; those of failures name who failed, and which request."""
    seen = played(shape, broken=True)
    assert set(seen.alarms) == set(shape.alarms), seen.findings
    assert seen.names == set(shape.names)
    assert seen.faults == 0


@pytest.mark.parametrize(
    ("name", "late"),
    [
        ("voting", {"cyd"}),
        ("race with cancel", {"large", "huge"}),
        ("map-reduce", {"mapper"}),
        ("fire-and-forget audit", {"shipping"}),  # and not `audit`, which gets notices
    ],
)
def test_who_works_on_after_the_answer_is_told(name: str, late: set[str]) -> None:
    """The agents that nobody has called off."""
    (shape,) = [shape for shape in SHAPES if shape.name == name]
    assert played(shape, broken=True).late == late


@pytest.mark.sampled(2)
@each_shape
def test_a_broken_team_answers_as_it_does_without_a_monitor(shape: Shape) -> None:
    """What is only observed is not changed, not even in what it raises."""
    observed, bare = (played(shape, broken=True, mode=mode) for mode in ("observe", "bare"))
    assert observed.answer == bare.answer


@each_shape
def test_a_line_stands_only_where_it_silences_an_alarm(shape: Shape) -> None:
    """Without it the healthy team raises the alarms that are named, and no others."""
    assert bool(shape.line) == bool(shape.without_line)
    assert "\n" not in shape.line
    seen = played(shape, broken=False, with_line=False)
    assert set(seen.alarms) == set(shape.without_line), seen.findings


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs")
@pytest.mark.parametrize("framework", INSTALLED)
def test_the_page_has_the_tables_of_the_shapes(framework: str) -> None:
    """`docs/lab/alarms-library.md` says of each shape what the tests above hold."""
    assert tables(claimed(framework)) in PAGE.read_text("utf-8"), f"paste those of {framework}"


@pytest.mark.parametrize("shape", [pytest.param(one, id=one.name) for one in BEYOND])
def test_a_healthy_team_that_is_known_to_raise_an_alarm_does(shape: Shape) -> None:
    """One whose alarm is gone belongs to the others; the line that helps is tried."""
    seen = play(shape, broken=False, with_line=False)
    assert seen.answer == shape.answer
    assert set(seen.alarms) == set(shape.without_line)
    assert not play(shape, broken=False).alarms


@pytest.mark.parametrize("shape", [pytest.param(one, id=one.name) for one in UNSEEN])
def test_a_mistake_that_is_known_not_to_be_noticed_raises_no_alarm(shape: Shape) -> None:
    """One that is noticed by now belongs to the others."""
    seen = play(shape, broken=True)
    assert (seen.answer, dict(seen.alarms)) == (shape.answer, {})
    assert not PAGE.exists() or f"**{shape.mistake[:-1]}" in PAGE.read_text("utf-8")


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs")
def test_the_page_has_the_healthy_teams_that_raise_an_alarm() -> None:
    """None is hidden."""
    assert beyond_table(BEYOND) in PAGE.read_text("utf-8")


def rows(page: str, kind: str) -> list[list[str]]:
    """The cells of the rows of all tables of one kind in the page."""
    blocks = re.findall(rf"^\| {kind} \|.*\n\| ---.*\n((?:\|.*\n?)+)", page, re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs")
def test_all_shapes_are_quiet_with_three_lines_and_two_mistakes_are_not_noticed() -> None:
    """The numbers of all frameworks together, by the page's tables."""
    page = PAGE.read_text("utf-8")
    healthy, broken = rows(page, "healthy"), rows(page, "broken")
    assert [one[0] for one in healthy] == [one[0] for one in broken]
    assert len({one[0] for one in healthy}) == len(healthy) == 92
    assert all(alarms == "-" for _, _, alarms, *_ in healthy)
    assert sum(line != "-" for *_, line in healthy) <= 3
    assert sum(alarms == "-" for *_, alarms in broken) <= 2


def test_a_program_that_never_answers_is_given_up() -> None:
    """The user gives up, and what was raised until then is told."""

    async def program(watch: Any, broken: bool) -> Any:
        async def agent(question: str) -> str:
            await never.wait()
            return question

        never = asyncio.Event()
        return await watch({"agent": agent})["agent"]("?")

    seen = play(Shape("hung", "", program, "?", "", ()), broken=False)
    assert seen.answer == GAVE_UP
    assert set(seen.alarms) == {"DL"}


def test_the_command_prints_a_line_of_json_for_each_shape(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the number of alarms of each pattern, in the healthy and in the broken program."""
    main(["--framework", "plain", "--json"])
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["shape"] for one in printed] == [one.shape for one in claimed("plain")]
    (dropped,) = [one for one in printed if one["shape"] == "map-reduce"]
    assert dropped["healthy"] == {} and dropped["broken"] == {"ET": 2}


def test_the_command_says_which_framework_is_not_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A framework that is missing is skipped, and the others are run."""
    monkeypatch.setitem(FRAMEWORKS, "crew", ("Crew", "a_module_that_is_not_there"))
    main(["--framework", "crew"])
    assert capsys.readouterr().out == "## Crew\n\nNot installed here, so skipped.\n\n"
