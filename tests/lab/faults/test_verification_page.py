"""docs/lab/faults-verification.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dig.lab.truth import verification
from dig.lab.truth.baseline import FEWEST
from dig.lab.truth.onsets import ONSETS
from dig.lab.truth.relations import Relation
from dig.lab.truth.rules import RULES
from dig.lab.truth.states import NUMBERS, RARE, UNUSUAL

PAGE = Path(__file__).parents[3] / "docs" / "lab" / "faults-verification.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs")


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text("utf-8")


def test_it_has_all_rules(page: str) -> None:
    """Its table is that of the code, rule by rule, and each rule has a mechanism there."""
    rows = []
    for rule in RULES:
        source = f"{rule.source}: {' '.join(sorted(rule.source_states))}"
        target = f"{rule.target}: {' '.join(sorted(rule.target_states))}"
        rows.append([rule.id, source, _words(rule.relation), target])
    lines = [line for line in page.splitlines() if re.match(r"\| [A-Z]\d \|", line)]
    cells = [line.strip("| ").split(" | ") for line in lines]
    assert [[*rule[:2], rule[2].lower(), rule[3]] for rule in cells] == rows
    assert all(len(rule) == 5 and rule[4] for rule in cells)
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_it_has_all_relations(page: str) -> None:
    """Those that rules name, in a table of their own."""
    table = page.split("## Relations\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| ")]
    named = [row.removeprefix("| ").lower() for row in rows if row not in ("| relation", "| ---")]
    assert sorted(named) == sorted({_words(rule.relation) for rule in RULES})


def _words(relation: Relation) -> str:
    """A relation as the page names it, in small letters."""
    return str(getattr(relation, "__name__", "")).strip("_").replace("_", " ")


def test_it_has_all_states_with_their_levels(page: str) -> None:
    """And rules lead to all of them, and to no other ones."""
    for kind, state in ONSETS:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {kind} | {state} |")]
        level = RARE if state in NUMBERS else UNUSUAL
        assert row.split(" | ")[-2] == f"{level:g}"
    known = {*ONSETS, ("agent", "injected")}
    for rule in RULES:
        assert {(rule.source, state) for state in rule.source_states} <= known
    assert {(rule.target, state) for rule in RULES for state in rule.target_states} == set(ONSETS)


def test_it_has_all_reasons(page: str) -> None:
    """Why something is dropped, and how many runs a baseline needs."""
    reasons = [value for name, value in vars(verification).items() if name in _REASONS]
    assert len(reasons) == len(_REASONS)
    for reason in reasons:
        assert f"| {reason} | " in page
    assert f"A baseline has {FEWEST} runs at least" in page


_REASONS = {"SILENT", "BASELINE_ANOMALOUS", "TWIN_ANOMALOUS", "NO_CONSEQUENCE", "NOT_VERIFIED"}


def test_its_code_prints_what_it_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is run as it stands."""
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    printed = capsys.readouterr().out
    assert "".join(f"    {line}\n" for line in printed.splitlines()) in page
