"""Tests of a team: compare its behaviour with a golden file.

    from dig.testing import assert_same_behaviour

    def test_the_team_still_works_together_as_it_did(tmp_path):
        result = run_my_team(tmp_path)
        assert_same_behaviour(tmp_path / "trace.dig.jsonl", "tests/golden/team.behaviour")

`pytest --update-behaviour` writes the golden files instead of comparing with them; pytest finds
that option by itself where dig-monitor is installed. Without pytest, pass `update=True`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dig.graph.behaviour import Behaviour, Comparable, same_behaviour, signature

from .errors import TraceError

if TYPE_CHECKING:
    import pytest

__all__ = ["assert_same_behaviour", "same_behaviour", "signature"]

_FLAG = "--update-behaviour"
_updating: list[bool] = []  # one for each pytest that runs in this process, the innermost last
_written: list[Path] = []


def assert_same_behaviour(
    run: Comparable | str | os.PathLike[str],
    golden: str | os.PathLike[str],
    *,
    strict: bool = False,
    update: bool | None = None,
) -> None:
    """Fail unless a run behaves like the run behind a golden file.

    Args:
        run: A graph, its records, or the path of a trace or run directory.
        golden: The golden file, written by an update; a trace or a run directory is possible too.
        strict: Whether all steps must have the same order; by default, only steps that depend
            on each other.
        update: Whether to write the file instead; ``None``: if pytest was started with
            `--update-behaviour`.

    Raises:
        AssertionError: The behaviour differs, or there is no golden file; the message
            names the first difference.
        TraceError: The run or the golden file cannot be read.
        UndecidedError: The comparison took too long, because many parts of the two are alike.
    """
    __tracebackhide__ = True  # pytest points at the test, not in here
    from dig.show.compare import golden as files
    from dig.show.compare.difference import BehaviourComparison

    path = Path(golden)
    behaviour = (
        files.behaviour_at(Path(run)) if isinstance(run, str | os.PathLike) else Behaviour.of(run)
    )
    is_update = any(_updating[-1:]) if update is None else update
    if not path.exists():
        if not is_update:
            raise AssertionError(f"there is no golden file {path}; pytest {_FLAG} writes it")
        files.write(behaviour, path)
        _written.append(path)
        return
    comparison = BehaviourComparison.of(files.behaviour_at(path), behaviour, strict=strict)
    if comparison.is_same:
        return
    if not is_update:
        lines = comparison.lines("golden", "run")
        raise AssertionError("\n".join([f"the behaviour is not that of {path}", *lines]))
    if not files.is_golden(path):
        raise TraceError(path, None, "is no golden file, so it is not written over")
    files.write(behaviour, path)
    _written.append(path)


# --- hooks of pytest ---


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--update-behaviour`."""
    group = parser.getgroup("dig", "behaviour of agents")
    group.addoption(
        _FLAG,
        action="store_true",
        help="Write the golden files of assert_same_behaviour instead of comparing with them.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Remember whether golden files are to be written."""
    _updating.append(bool(config.getoption(_FLAG, default=False)))


def pytest_unconfigure() -> None:
    """Forget the option of this pytest session."""
    del _updating[-1:]  # none, if another plugin kept pytest from starting


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the golden files that were written."""
    for path in _written:
        terminalreporter.write_line(f"dig: wrote {path}")
    _written.clear()
