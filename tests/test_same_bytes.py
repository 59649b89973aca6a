"""A small part of what `python -m tests.same_bytes compare` holds, and that it would notice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dig.detectors.patterns.early_termination import EarlyTermination

from . import same_bytes
from .same_bytes import FIXTURE, main
from .same_outputs import BLOCK, JOBS, pinned

SMALL = ("traces/count-frequency/dig/001", "traces/newsgroups/judge/011", "commands/of/parts")
"""Traces with and without faults and healing, and each command on one run."""


def only(*names: str) -> list[str]:
    return ["--jobs", "1", *(word for name in names for word in ("--only", name))]


def test_a_part_has_the_same_bytes_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    """Some traces, and each command on a run: what is told says which of them differ."""
    assert main(["compare", *only(*SMALL)]) == 0, capsys.readouterr().out
    assert capsys.readouterr().out.endswith(" outputs: the same bytes\n")


def test_the_fixture_knows_every_job() -> None:
    """No job is without a digest, and no digest without a job."""
    known = json.loads(FIXTURE.read_text())
    of = {name: [each for each in known if f"{each}/".startswith(f"{name}/")] for name in JOBS}
    assert all(of.values())
    assert sorted(known) == sorted(each for some in of.values() for each in some)


def test_a_change_is_noticed_and_can_be_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A detector that finds nothing any more: the traces with what it found differ."""
    monkeypatch.setattr(EarlyTermination, "detect", lambda *given: ())
    (job,) = (name for name in JOBS if name.startswith(SMALL[0]))
    assert main(["compare", *only(job), "--keep", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"different: {job}",
        "1 outputs: 1 NOT the same",
        "a change that is meant, such as a new pattern: python -m tests.same_bytes take",
    ]
    kept = (tmp_path / f"{job}.txt").read_text()
    assert kept.count("\n== ") == BLOCK - 1 and '"pattern":"ET"' not in kept


def test_taking_a_part_leaves_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """New digests of the jobs that are named, the old ones of all others; then all is equal."""
    path = tmp_path / "digests.json"
    path.write_text('{"page/report": "another", "page/report/gone": "old", "tables/paper": "kept"}')
    monkeypatch.setattr(same_bytes, "outputs_of", lambda job: {job: "<html>"})
    assert main(["compare", *only("page"), "--fixture", str(path)]) == 1
    assert main(["take", *only("page"), "--fixture", str(path)]) == 0
    taken = json.loads(path.read_text())
    assert list(taken) == ["page/report", "tables/paper"] and taken["tables/paper"] == "kept"
    assert main(["compare", *only("page"), "--fixture", str(path)]) == 0
    capsys.readouterr()


def test_what_differs_between_executions_is_pinned() -> None:
    """Execution ids, dates and seconds; names of classes are not."""
    text = '{"execution": "20260714-101112-0af9b3", "wall_s": 1.25e-3, "class": "dig.x.Y"}'
    want = '{"execution": "20260101-000000-abcdef", "wall_s": 0.5, "class": "dig.x.Y"}'
    assert pinned(text) == want


@pytest.mark.parametrize("wrong", ["--only=nothing", "--jobs=0", "--fixture=/nowhere.json"])
def test_wrong_arguments_are_told(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, and the usage on standard error."""
    with pytest.raises(SystemExit) as ended:
        main(["compare", wrong])
    assert ended.value.code == 2
    assert "usage: python -m tests.same_bytes" in capsys.readouterr().err
