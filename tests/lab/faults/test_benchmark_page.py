"""The page about the benchmark: its code runs, its example is an answer, its table is complete."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dig.lab.benchmark.answer_file import Answers
from dig.lab.benchmark.attributing import ATTRIBUTORS, FLOORS, attribute_all
from dig.lab.benchmark.instances import FaultSet
from dig.lab.benchmark.scores_answers import METRICS, score

PATH = Path(__file__).parents[3] / "docs" / "lab" / "faults-benchmark.md"
pytestmark = pytest.mark.skipif(not PATH.exists(), reason="an installed package has no docs")


@pytest.fixture(scope="module")
def page() -> str:
    return PATH.read_text("utf-8")


def test_the_attributor_of_the_page_answers(
    page: str, small: FaultSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied as it stands, and is right about somebody."""
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    module = ModuleType("my_module")
    exec(compile(code, "faults-benchmark.md", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "my_module", module)
    found = score(attribute_all("my_module:slowest", small), small)
    assert any(one.marks["any_agent"] for one in found.scored)


def test_it_names_all_attributors(page: str) -> None:
    """Those of the code, in their order, in the list; the floors in the table of results."""
    section = page.split("The baselines set the floor.")[1].split("\n## ")[0]
    assert re.findall(r"^- `(\w+)`:", section, re.MULTILINE) == [*ATTRIBUTORS]
    results = page.split("### The baselines\n")[1].split("\n### ")[0]
    assert re.findall(r"^\| (\w+) \|", results, re.MULTILINE)[: len(FLOORS)] == [*FLOORS]


def test_the_example_is_an_answer(page: str) -> None:
    """It fits the schema."""
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert Answers.model_validate(json.loads(example), strict=False).answers["i0007"].root_causes


def test_the_table_has_every_metric(page: str) -> None:
    """In the order of all other tables."""
    first = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = [name for cell in first for name in re.findall(r"`(\w+)`", cell)]
    assert named[: len(METRICS)] == [*METRICS]
