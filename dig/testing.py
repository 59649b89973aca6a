"""Tests of a team: compare its behaviour with a golden file.

    from dig.testing import assert_same_behaviour

    def test_the_team_still_works_together_as_it_did(tmp_path):
        result = run_my_team(tmp_path)
        assert_same_behaviour(tmp_path / "trace.dig.jsonl", "tests/golden/team.behaviour")

`pytest --update-behaviour` writes the golden files instead of comparing with them; pytest finds
that option by itself where dig-monitor is installed. Without pytest, pass `update=True`.

The fixture `dig_team` wraps a team for a test, and fails it if `digmon check` would:

    async def test_the_team_answers(dig_team):
        team = dig_team({"planner": planner, "flights": flights})
        assert await team["planner"]("Lisbon")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """Remember whether golden files are to be written; add the fixture `dig_team`."""
    import pytest

    _updating.append(bool(config.getoption(_FLAG, default=False)))

    class Fixtures:
        @pytest.fixture
        def dig_team(self, tmp_path: Path) -> Iterator[Callable[..., Any]]:
            """Wraps teams, and checks the runs at the end of the test."""
            yield from _wrap_and_check(tmp_path / "dig", pytest.fail)

    config.pluginmanager.register(Fixtures(), "dig-fixtures")


def _wrap_and_check(folder: Path, fail: Callable[[str], object]) -> Iterator[Callable[..., Any]]:
    from dig.adapters.wrapping import session_of, unwrap, wrap
    from dig.detectors import standard
    from dig.show.gate import checked, quality_gate, reports

    from .errors import SettingsError

    teams: list[tuple[Any, Path | None]] = []

    def wrap_team(team: Any, **options: Any) -> Any:
        wrapped = wrap(team, **{"journal": folder, **options})
        with suppress(SettingsError):  # DIG_OFF wraps no team
            teams.append((wrapped, session_of(wrapped).directory))
        return wrapped

    yield wrap_team
    for wrapped, _ in teams:
        unwrap(wrapped)
    runs = [checked.check_run(path, standard()) for _, path in teams if path is not None]
    verdicts = [quality_gate.QualityGate().judge(run) for run in runs]
    if failed := [verdict for verdict in verdicts if verdict.fails]:
        fail("\n".join(line for verdict in failed for line in reports.run_lines(verdict)))


def pytest_unconfigure() -> None:
    """Forget the option of this pytest session."""
    del _updating[-1:]  # none, if another plugin kept pytest from starting


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the written golden files."""
    for path in _written:
        terminalreporter.write_line(f"dig: wrote {path}")
    _written.clear()
