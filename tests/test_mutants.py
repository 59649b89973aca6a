"""The bugs to plant: each fits the code as it is, and the harness tells the caught from the rest.

That the suite catches all of them is shown by `make mutants`.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from dig.detectors.protocols import Detector

from . import mutants
from .comparison import detectors_with_an_oracle, find, numbered_trace
from .mutants import MUTANTS, ROOT, Misfit, Trial, main, planted
from .operators import FILES, generate, sample
from .planted import IN_SUITE, Mutant

PATTERNS = "detectors/patterns/"
IN_PROCESS = {
    "lineages that differ count as disjoint",
    "the activation that ended last is not told",
    "the window of another pattern is used",
    "in a session open work on other problems counts too",
    "an instance of an agent is another agent that reroutes",
    "of the instances of an agent only the first one stalls",
}


@cache
def program(file: str) -> str:
    """A file of the package, without its comments and its layout; many bugs are in one file."""
    return ast.dump(ast.parse((ROOT / "dig" / file).read_text(encoding="utf-8")))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_a_mutant_fits_the_code(mutant: Mutant) -> None:
    """Its text stands in its file exactly once, and what comes of it is another program."""
    assert ast.dump(ast.parse(planted(mutant))) != program(mutant.file)


def test_no_bug_is_told_twice() -> None:
    """What survives is known by what it breaks."""
    assert len({mutant.breaks for mutant in MUTANTS}) == len(MUTANTS)


def test_a_machine_breaks_all_parts_that_findings_depend_on() -> None:
    """A new detector is among them by itself."""
    sampled = {mutant.file for mutant in sample(ROOT, 0, 60)}
    own = {type(detector).__module__ for detector in detectors_with_an_oracle()}
    assert {f"{module.removeprefix('dig.').replace('.', '/')}.py" for module in own} <= sampled
    named = {f"{folder}/{name}.py" for folder, names in FILES.items() for name in names.split()}
    assert named - {"detectors/patterns/[!_]*.py"} <= sampled


def test_a_machine_makes_each_small_change_once() -> None:
    """Each is another program; types, docstrings and names stay."""
    source = '''
def work(event: int = 1) -> bool:
    """A docstring."""
    for part in event.parts:
        if part and not part.done:
            event.total += 2
    return sorted(event, key=by) < 3
'''
    changed = [mutant.new for mutant in generate("work.py", source, 0)]
    assert len({*changed, ast.unparse(ast.parse(source))}) == len(changed) + 1
    assert all('"""A docstring."""' in text and "-> bool" in text for text in changed)
    for line in (
        "def work(event: int=2)", "for part in [*event.parts][:1]:", "    pass", "if part:",
        "if not part.done:", "if part and part.done:", "if True:", "if False:", "event.total = 2",
        "event.total += 3", "list(event) < 3", "sorted(event, key=by) <= 3", "return\n",
    ):  # fmt: skip
        assert any(line in f"{text}\n" for text in changed), line


def test_a_seed_draws_the_same_changes_again() -> None:
    """Another seed draws others."""
    assert sample(ROOT, 7, 3) == sample(ROOT, 7, 3) != sample(ROOT, 8, 3)


def detectors(mutant: Mutant) -> list[Detector]:
    """The standard detectors, that of the mutant with its bug."""
    module = ModuleType("dig.detectors.patterns.mutant")
    module.__package__ = "dig.detectors.patterns"
    exec(compile(planted(mutant), mutant.file, "exec"), vars(module))
    own: dict[str, type[Detector]] = {
        vars(value)["pattern"]: value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Detector)
        and value.__module__ == module.__name__
    }
    assert len(own) == 1
    return [own[d.pattern]() if d.pattern in own else d for d in detectors_with_an_oracle()]


@pytest.mark.parametrize("breaks", sorted(IN_PROCESS))
def test_random_traces_show_a_bug_in_a_detector(breaks: str) -> None:
    """Within the traces that the suite compares with the oracle, the findings differ."""
    [mutant] = [mutant for mutant in IN_SUITE if mutant.breaks == breaks]
    traces = map(numbered_trace, range(2000))
    assert any(find(rows, detectors(mutant)) != find(rows) for rows in traces)


def test_survivors_are_named_and_make_it_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the suite does not notice is told with what it breaks; exit status 1."""
    outcomes = {None: True, "nothing goes on": False, "nothing stays": True}

    def trial(root: Path, mutant: Mutant | None) -> Trial:
        return Trial(outcomes[mutant and mutant.breaks], "tests/test_x.py::test_y", 0.5)

    monkeypatch.setattr(mutants, "MUTANTS", [
        Mutant("graph/rules.py", breaks, "from __future__", "from  __future__")
        for breaks in ("nothing goes on", "nothing stays")
    ])  # fmt: skip
    monkeypatch.setattr(mutants, "trial", trial)
    assert main(["goes on", "--count", "0"]) == 0
    assert main(["--count", "0"]) == 1
    lines = capsys.readouterr().out.splitlines()
    caught = "caught 0.5 s graph/rules.py: nothing goes on, by tests/test_x.py::test_y"
    assert lines[0].split() == caught.split()
    assert lines[-2:] == ["1 of 2 caught", "graph/rules.py: nothing stays"]


@pytest.mark.parametrize(("survivors", "status"), [(1, 0), (2, 1)])
def test_three_in_ten_of_what_a_machine_made_may_survive(
    survivors: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not each change of a program is a bug."""
    outcomes = iter([True] * (1 + survivors) + [False] * (5 - survivors))
    monkeypatch.setattr(mutants, "MUTANTS", [])
    monkeypatch.setattr(mutants, "trial", lambda root, one: Trial(next(outcomes), "", 0.0))
    assert main(["--count", "5", "--jobs", "1"]) == status


def test_nothing_is_tried_where_the_suite_fails_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite that fails without a bug would seem to catch everything."""
    monkeypatch.setattr(mutants, "trial", lambda root, one: Trial(False, "", 0.0))
    with pytest.raises(SystemExit, match="fails without any bug"):
        main(["--count", "1"])


def test_a_mutant_that_does_not_fit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which one, and what to do."""
    odd = Mutant("detectors/watch.py", "nothing", "no such text", "")
    monkeypatch.setattr(mutants, "MUTANTS", [odd])
    with pytest.raises(Misfit, match=r"dig/detectors/watch\.py: nothing: its text stands there 0"):
        planted(odd)
    with pytest.raises(SystemExit, match=r"nothing: .*tests/planted"):
        main(["--count", "0"])


def test_words_that_no_bug_has_are_told() -> None:
    """It is no success that nothing was tried."""
    with pytest.raises(SystemExit, match="none has nonsense and watch in its words"):
        main(["nonsense", "watch", "--count", "1"])
