"""The helper for tests of a team: what passes, what fails and how, and when goldens are written."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dig.errors import TraceError
from dig.graph.codec import decode
from dig.testing import assert_same_behaviour
from tests.traces.runs import directory, solved, store

from .behaviours import graph_of, renamed

pytest_plugins = ["pytester"]

HASTY = solved(q="discard")


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = tmp_path / "golden" / "team.behaviour"
    assert_same_behaviour(graph_of(solved()), path, update=True)
    return path


def test_a_run_that_behaves_as_before_passes(golden: Path, tmp_path: Path) -> None:
    """As a graph, as records, as a trace, as a run directory, by text or by path."""
    rows = renamed(solved(), random.Random(1))
    assert_same_behaviour(graph_of(rows), golden)
    assert_same_behaviour(map(decode, rows), golden, strict=True)
    assert_same_behaviour(store(tmp_path / "t.dig.jsonl", rows), str(golden))
    assert_same_behaviour(str(directory(tmp_path, "run", rows)), golden)


def test_a_run_that_behaves_otherwise_fails_and_says_where(golden: Path) -> None:
    with pytest.raises(AssertionError) as failure:
        assert_same_behaviour(graph_of(HASTY), golden)
    assert str(failure.value).splitlines()[:5] == [
        f"the behaviour is not that of {golden}",
        "different behaviour (causally)",
        "first divergence:",
        "  golden: step 4: v1 of a1, which consumed e1",
        "  run:    record 7: w of b, which discarded q",
    ]


def test_a_golden_file_that_is_not_there_fails_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="--update-behaviour writes it"):
        assert_same_behaviour(graph_of(solved()), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_update_writes_only_what_changed(golden: Path) -> None:
    """A run that behaves the same, in another order perhaps, leaves the file as it is."""
    before = golden.stat().st_mtime_ns, golden.read_bytes()
    assert_same_behaviour(graph_of(solved()), golden, update=True)
    assert (golden.stat().st_mtime_ns, golden.read_bytes()) == before
    assert_same_behaviour(graph_of(HASTY), golden, update=True)
    assert golden.read_bytes() != before[1]
    assert_same_behaviour(graph_of(HASTY), golden)


def test_a_trace_will_do_as_golden_but_is_never_written_over(tmp_path: Path) -> None:
    trace = store(tmp_path / "t.dig.jsonl", solved())
    assert_same_behaviour(graph_of(solved()), trace)
    with pytest.raises(TraceError, match="not written over"):
        assert_same_behaviour(graph_of(HASTY), trace, update=True)


def test_pytest_has_the_option(pytester: pytest.Pytester) -> None:
    """Without it a new golden fails; with it the file is written, and holds from then on."""
    store(Path(pytester.path) / "run.dig.jsonl", solved())
    pytester.makepyfile(
        """
        from dig.testing import assert_same_behaviour

        def test_team():
            assert_same_behaviour("run.dig.jsonl", "golden/team")
        """
    )
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:asyncio")
    pytester.runpytest(*options).assert_outcomes(failed=1)
    result = pytester.runpytest(*options, "--update-behaviour")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["dig: wrote golden/team"])
    again = pytester.runpytest(*options)
    again.assert_outcomes(passed=1)
    again.stdout.no_fnmatch_line("dig: wrote*")


TEAM = """
    import asyncio

    async def flights(question):
        await asyncio.sleep(0.05)
        return "9:40"

    async def hotels(question):
        await asyncio.sleep(0.2)
        return "a room"

    def trip(is_hasty):
        async def planner(question):
            asked = {asyncio.ensure_future(team[name](question)) for name in ("flights", "hotels")}
            when = asyncio.FIRST_COMPLETED if is_hasty else asyncio.ALL_COMPLETED
            done, _ = await asyncio.wait(asked, return_when=when)
            return ", ".join(sorted(task.result() for task in done))

        team = {"planner": planner, "flights": flights, "hotels": hotels}
        return team

    async def ask(team):
        answer = await team["planner"]("Rome")
        await asyncio.sleep(0.3)
        return answer

    def test_patient(dig_team, tmp_path):
        team = dig_team(trip(False))
        assert asyncio.run(ask(team)) == "9:40, a room"
        assert [*tmp_path.glob("dig/*/trace.dig.jsonl")]

    def test_hasty(dig_team):
        team = dig_team(trip(True))
        assert asyncio.run(ask(team)) == "9:40"
"""


def test_a_fixture_wraps_a_team_and_checks_its_run(pytester: pytest.Pytester) -> None:
    """An answer that is right for the test fails it, if work that it needs was left behind."""
    pytester.makepyfile(TEAM)
    outcome = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    outcome.assert_outcomes(passed=2, errors=1)
    outcome.stdout.fnmatch_lines(["*ERROR at teardown of test_hasty*", "*submitted too early*"])


def test_the_fixture_checks_nothing_where_wrapping_is_switched_off(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIG_OFF", "1")
    pytester.makepyfile(TEAM)
    outcome = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-k", "hasty")
    outcome.assert_outcomes(passed=1)
