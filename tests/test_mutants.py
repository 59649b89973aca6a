"""The planted bugs: each fits the code as it is, and the harness tells the caught from the rest.

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
from .mutants import IN_SUITE as MUTANTS
from .mutants import ROOT, Misfit, Trial, main, planted
from .planted import Mutant
from .planted_schedules import SCHEDULED

IN_PROCESS = ("cla-different-roots", "dl-order", "er-limit", "et-uncovered", "mc-last",
              "oe-window", "rsp-order")  # fmt: skip


def mutant(name: str) -> Mutant:
    return next(m for m in MUTANTS if m.name == name)


@cache
def program(file: str) -> str:
    """A file of the package, without its comments and its layout; many bugs are in one file."""
    return ast.dump(ast.parse((ROOT / "dig" / file).read_text(encoding="utf-8")))


@pytest.mark.parametrize("one", [*MUTANTS, *SCHEDULED], ids=lambda one: one.name)
def test_a_mutant_fits_the_code(one: Mutant) -> None:
    """Its text stands in its file exactly once, and what comes of it is another program."""
    assert ast.dump(ast.parse(planted(one))) != program(one.file)


def test_the_mutants_are_many_and_each_is_named_once() -> None:
    """They break all parts that findings depend on."""
    assert len(MUTANTS) >= 25
    assert len({one.name for one in MUTANTS}) == len(MUTANTS)
    assert len({one.breaks for one in MUTANTS}) == len(MUTANTS)
    own = {type(detector).__module__ for detector in detectors_with_an_oracle()}
    broken = {one.file.removesuffix(".py").replace("/", ".") for one in MUTANTS}
    core = {
        "_util.ranges", "detectors.patterns.idle", "detectors.watch", "graph.coverage",
        "graph.history", "graph.lineage", "graph.rewrites", "graph.state",
    }  # fmt: skip
    whole = (core | {module.removeprefix("dig.") for module in own}) - broken
    assert not whole, f"plant a bug in each of these, in tests/planted*.py: {whole}"


def test_schedules_have_bugs_to_find_in_all_that_holds_heals_and_delivers() -> None:
    """At least forty, each named once, and none twice."""
    assert len(SCHEDULED) >= 40
    assert len({one.name for one in [*MUTANTS, *SCHEDULED]}) == len(MUTANTS) + len(SCHEDULED)
    assert all(one.engine for one in SCHEDULED) and not any(one.engine for one in MUTANTS)


def detectors(one: Mutant) -> list[Detector]:
    """The standard detectors, that of the mutant with its bug."""
    module = ModuleType("dig.detectors.patterns.mutant")
    module.__package__ = "dig.detectors.patterns"
    exec(compile(planted(one), one.name, "exec"), vars(module))
    own: dict[str, type[Detector]] = {
        vars(value)["pattern"]: value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Detector)
        and value.__module__ == module.__name__
    }
    assert len(own) == 1
    return [own[d.pattern]() if d.pattern in own else d for d in detectors_with_an_oracle()]


@pytest.mark.parametrize("name", IN_PROCESS)
def test_random_traces_show_a_bug_in_a_detector(name: str) -> None:
    """Within the traces that the suite compares with the oracle, the findings differ."""
    traces = map(numbered_trace, range(2000))
    assert any(find(rows, detectors(mutant(name))) != find(rows) for rows in traces)


def test_survivors_are_named_and_make_it_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the suite does not notice is told with what it breaks; exit status 1."""
    outcomes = {None: True, "er-limit": False, "er-order": True}

    def trial(root: Path, one: Mutant | None) -> Trial:
        return Trial(outcomes[one and one.name], "tests/test_x.py::test_y", 0.5)

    monkeypatch.setattr(mutants, "trial", trial)
    assert main(["er-limit"]) == 0
    assert main(["er-limit", "er-order"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["caught", "er-limit", "0.5", "s", "by", "tests/test_x.py::test_y"]
    assert lines[-2:] == ["1 of 2 caught", f"er-order: {mutant('er-order').breaks}"]


def test_nothing_is_tried_where_the_suite_fails_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite that fails without a bug would seem to catch everything."""
    monkeypatch.setattr(mutants, "trial", lambda root, one: Trial(False, "", 0.0))
    with pytest.raises(SystemExit, match="fails without any bug"):
        main(["er-limit"])


def test_a_mutant_that_does_not_fit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which one, and what to do."""
    odd = Mutant("odd", "detectors/watch.py", "no such text", "", "nothing")
    monkeypatch.setattr(mutants, "MUTANTS", [odd])
    with pytest.raises(Misfit, match=r"odd: its text stands 0 times in dig/detectors/watch\.py"):
        planted(odd)
    with pytest.raises(SystemExit, match=r"odd: .*tests/planted"):
        main([])


def test_an_unknown_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, with the names that there are."""
    with pytest.raises(SystemExit) as ended:
        main(["nonsense"])
    assert ended.value.code == 2
    assert "there is no nonsense; known are: " in capsys.readouterr().err
