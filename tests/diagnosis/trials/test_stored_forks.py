"""Forks that lie beside a run: which are believed, and that nothing is written through a link."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dig.diagnosis.diagnosing import try_changes
from dig.diagnosis.goal import Goal
from dig.diagnosis.telling import tell
from dig.diagnosis.trials import replays
from dig.diagnosis.trials.replays import (
    Replay,
    ReplayRequest,
    cache_folder,
    make_replay,
    read_source,
)
from dig.errors import SettingsError
from dig.show.document import Diagnosis
from dig.tasks.task import Score
from dig.traces.journal.journal import RESULT
from dig.traces.journal.reader import TRACE
from tests.diagnosis.failed_runs import demo, failed, trying

DEFAULT = Goal.parse("default")
EXACT = Goal.parse("score.rmse<=1")
AT = 30


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that failed, with one fork that was made here."""
    folder = failed(tmp_path)
    assert make(folder).origin == "made"
    return folder


def make(folder: Path, at: int = AT, goal: Goal = DEFAULT) -> Replay:
    """What is made, or found, of an unchanged fork of a run."""
    replays.read_fork.cache_clear()
    return make_replay(trying(folder).replayer(folder, goal), ReplayRequest(at, (), 1))


def fork(folder: Path) -> Path:
    """The only fork of a run."""
    (made,) = (folder / "why").iterdir()
    return made


def test_a_fork_that_was_made_here_is_found(run: Path) -> None:
    """Nothing is made a second time, and what it came to is the same."""
    before = (fork(run) / RESULT).stat().st_mtime_ns
    made = make(run)
    assert (made.origin, made.cpu_s) == ("found", 0.0)
    assert (fork(run) / RESULT).stat().st_mtime_ns == before


def test_a_fork_is_found_where_its_run_was_moved_to(run: Path) -> None:
    """What counts is its content."""
    moved = run.rename(run.with_name("moved"))
    assert make(moved).origin == "found"


def test_a_fork_that_somebody_else_has_made_is_made_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache of another user does not know it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert make(run).origin == "made again"
    assert make(run).origin == "found"


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def replace_by_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("no fork")


EDITS: dict[str, Callable[[Path], object]] = {
    "score": lambda made: (made / RESULT).write_text(
        json.dumps({**json.loads((made / RESULT).read_text()), "outcome": "submitted"})
    ),
    "brackets": lambda made: (made / RESULT).write_text("[" * 100_000),
    "digits": lambda made: (made / RESULT).write_text('{"score": ' + "9" * 5_000 + "}"),
    "nan": lambda made: (made / RESULT).write_text('{"score": NaN, "outcome": 5}'),
    "list": lambda made: (made / RESULT).write_text("[]"),
    "no result": lambda made: (made / RESULT).unlink(),
    "trace": lambda made: append(made / TRACE, "\n"),
    "no trace": lambda made: (made / TRACE).unlink(),
    "segment": lambda made: (made / f"{TRACE}.000002").write_text("{}\n"),
    "file": replace_by_file,
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_fork_that_was_edited_is_made_again(run: Path, edit: str) -> None:
    """Whatever its files hold now; what it comes to is what it came to."""
    before = make(run)
    EDITS[edit](fork(run))
    again = make(run)
    assert again.origin == "made again"
    assert (again.good, again.progress, again.why) == (before.good, before.progress, before.why)
    assert make(run).origin == "found"


def test_a_fork_in_the_place_of_another_is_made_again(run: Path) -> None:
    """Its content is right, but it follows from something else."""
    first = fork(run)
    other = make(run, AT + 1).fork
    assert other is not None
    shutil.rmtree(first)
    shutil.copytree(other, first)
    assert make(run).origin == "made again"


def test_a_link_in_the_place_of_a_fork_is_replaced(run: Path, tmp_path: Path) -> None:
    """What it leads to stays as it is."""
    made, elsewhere = fork(run), tmp_path / "elsewhere"
    made.rename(elsewhere)
    before = (elsewhere / RESULT).read_bytes()
    made.symlink_to(elsewhere)
    assert make(run).origin == "made again"
    assert not made.is_symlink() and (elsewhere / RESULT).read_bytes() == before


def test_forks_are_not_written_through_a_link(tmp_path: Path) -> None:
    """`why` may lead anywhere in a run that somebody has sent; a named folder is the user's own."""
    run, elsewhere = failed(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (run / "why").symlink_to(elsewhere)
    with pytest.raises(SettingsError, match="why is a link, and no fork is written through it"):
        make(run)
    assert [*elsewhere.iterdir()] == []
    assert trying(run, runs=elsewhere).replayer(run, DEFAULT).forks == elsewhere


def test_the_score_of_a_found_fork_is_computed_from_its_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number in its result is not read: a better scorer judges it anew."""
    run = demo(tmp_path)
    make(run, goal=EXACT)
    made = make(run, goal=EXACT)
    assert made.origin == "found" and not made.good and "score" in made.why
    crew = trying(run).replayer(run, EXACT).make_crew()
    exact = replace(crew, score=lambda answer: Score(valid=True, rmse=0.0))
    monkeypatch.setattr(replays.Replayer, "make_crew", lambda replayer: exact)
    assert make(run, goal=EXACT).good


def test_the_cache_is_never_beside_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A path that is relative would lead into the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "why")
    assert cache_folder().is_absolute() and tmp_path not in cache_folder().parents
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache" / "dig-monitor"


def test_without_a_cache_each_fork_is_made_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be written is no error."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [make(run).origin for _ in range(2)] == ["made again"] * 2


def test_what_was_found_is_told(tmp_path: Path) -> None:
    """Line by line as it goes on, in the text, and as a number in the document."""
    run = demo(tmp_path)
    change = {"kind": "tell", "at": AT, "agent": "agent-1", "note": "Check again"}

    def tried() -> tuple[Diagnosis, list[str], str]:
        lines: list[str] = []
        found = try_changes(run, [[change]], EXACT, trying=trying(run), tell=lines.append)
        return found, lines, "\n".join(tell(found, read_source(run)))

    first, lines, text = tried()
    assert first.cost.replays > 0 == first.cost.found
    assert "found" not in " ".join(lines) and "found, not made" not in text
    second, lines, text = tried()
    assert (second.cost.replays, second.cost.found) == (0, first.cost.replays)
    assert all(line.endswith(" (found, not made)") for line in lines)
    assert f"No replay was made; {second.cost.found} found, not made" in text
    append(run / "why" / second.hypotheses[0].arms.changed.forks[0] / RESULT, " ")
    third, lines, text = tried()
    assert third.cost.replays == 1
    again = "(made again: the fork that was there is not as you made it)"
    assert sum(line.endswith(again) for line in lines) == 1
