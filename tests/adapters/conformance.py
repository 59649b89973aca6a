"""What every adapter promises, as classes of tests; each framework's files bind theirs to these.

A framework's tests run in an environment of its own, so these are not parametrised by framework:
a subclass says what is wrapped, by what, and where the framework's own nature allows less.
"""

from __future__ import annotations

import ast
import asyncio
import re
import runpy
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

import dig
from dig.cli import app
from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.graph.records import Emit, End
from dig.runtime.host import Setup
from dig.traces.verify import verify

from .framework_cases import Cases
from .framework_faults import PARTS, break_part
from .framework_signatures import Pair, must_look_alike, must_take_keywords
from .framework_sites import Site, Sites
from .harness import Outcome, Scenario, cancelled_everywhere, play

ROOT = Path(__file__).parents[2]


class Shared:
    """What the tests of an adapter are about.

    Attributes:
        watched: Makes what wraps a team, of a mode, a setup and options (`framework_watch`).
        scenarios: What hosts ask of their teams.
    """

    watched: ClassVar[Callable[..., Any]]
    scenarios: ClassVar[Sequence[Scenario]]

    def wrap(self, watched: Any) -> Any:
        """What a scenario's team is handed to; by default what wraps it."""
        return watched


class Unchanged(Shared):
    """The monitor changes nothing that a host can see, as long as there is nothing to heal.

    Attributes:
        healing: The setup of a session that may heal.
        cancelled: The scenarios that are cancelled at every await.
        cancelled_in: The mode in which they are.
        adds_no_step: Whether the loop makes as many steps as without a monitor.
        may_be_healed: Whether there is something to heal in some scenarios.
    """

    healing: ClassVar[Any] = None
    cancelled: ClassVar[Sequence[Scenario]] = ()
    cancelled_in: ClassVar[str] = "observe"
    adds_no_step: ClassVar[bool] = False
    may_be_healed: ClassVar[bool] = False

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        for name, scenarios in (("scenario", self.scenarios), ("cancelled_one", self.cancelled)):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, scenarios, ids=str)

    def is_over(self, watched: Any) -> bool:
        """Whether nothing is open any more, as far as the framework allows that."""
        return bool(watched.leaves_nothing_open())

    def test_who_only_observes_changes_nothing_that_a_host_can_see(
        self, scenario: Scenario
    ) -> None:
        """Results, exceptions, order and time are the same, and the trace is sound."""
        for seed in range(3):
            watched, bare = type(self).watched(), play(scenario, seed=seed)
            mine = play(scenario, self.wrap(watched), seed=seed)
            assert mine == bare
            if self.adds_no_step:
                assert mine.steps == bare.steps, "wrapping has added a step of the event loop"
            assert watched.session.statistics().requests >= 1
            watched.must_be_sound()
            assert self.is_over(watched)

    def test_where_nothing_is_found_healing_changes_nothing_either(
        self, scenario: Scenario
    ) -> None:
        """A session that could heal, but has no reason to, changes nothing."""
        watched = type(self).watched("heal", self.healing)
        mine = play(scenario, self.wrap(watched))
        watched.must_be_sound()
        if self.may_be_healed and watched.healed():
            return
        assert mine == play(scenario)
        assert self.is_over(watched)

    def test_a_request_may_be_cancelled_at_every_await(self, cancelled_one: Scenario) -> None:
        """The host sees the same as without a monitor, and nothing stays open."""
        watched = type(self).watched(self.cancelled_in)
        for step, bare, mine in cancelled_everywhere(cancelled_one, self.wrap(watched)):
            assert mine == bare, f"cancelled before step {step}"
            if self.adds_no_step:
                assert mine.steps == bare.steps, f"cancelled before step {step}"
            watched.detach()
            assert self.is_over(watched), f"cancelled before step {step}"


class Recorded(Shared):
    """The trace of a team has all that has happened; an older version is refused.

    Attributes:
        package: The distribution whose version is looked at first.
    """

    package: ClassVar[str]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "scenario" in metafunc.fixturenames:
            metafunc.parametrize("scenario", self.scenarios, ids=str)

    def test_an_older_version_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The message says which version is there, and which ones were tested."""
        monkeypatch.setattr("dig.adapters.base.plan.version", lambda package: "0.0.1")
        with pytest.raises(SettingsError, match=rf"{self.package} 0.0.1 is installed.*tested with"):
            play(self.scenarios[0], self.wrap(type(self).watched()))

    def test_a_newer_version_is_told_and_watched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is not refused as long as it has what the adapter relies on."""
        watched = type(self).watched()
        version = f"{watched.adapter.VERSIONS[1]}.0"
        monkeypatch.setattr("dig.adapters.base.plan.version", lambda package: version)
        with pytest.warns(UserWarning, match="was tested with") as told:
            assert play(self.scenarios[0], self.wrap(watched)) == play(self.scenarios[0])
        said = f"{self.package} {version} is installed, and this wrapper was tested with"
        assert str(told[0].message).startswith(said)

    def test_a_journal_passes_the_independent_checker_and_a_check_finds_the_same(
        self, scenario: Scenario, tmp_path: Path
    ) -> None:
        """So does a check of the file of a team that is healed."""
        made: list[Any] = []

        def wrap(team: Any) -> Any:
            made.append(dig.wrap(team, mode="heal", journal=tmp_path))
            return made[0]

        play(scenario, self.wrap(wrap))
        session = dig.session_of(made[0])
        dig.unwrap(made[0])
        assert session.directory is not None
        trace = session.directory / "trace.dig.jsonl"
        assert not verify(trace).problems
        checked = CliRunner().invoke(app, ["check", str(trace), "--fail-on", "notice"])
        assert checked.exit_code == bool(session.findings), checked.output


class GoingRound(Shared):
    """Two agents that each believe that the other one is responsible, until they are told.

    Attributes:
        going_round: They are asked something, in each way.
        unsolved: What comes of it without a monitor.
        solved: What the answer of one that was told says.
    """

    going_round: ClassVar[Sequence[Scenario]]
    unsolved: ClassVar[str]
    solved: ClassVar[str]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        metafunc.parametrize("asked", self.going_round, ids=str)

    def test_er_a_handoff_that_goes_round_and_round_ends_when_they_are_told(
        self, asked: Scenario
    ) -> None:
        """One note is enough; it is private to the agent that got it."""
        bare = play(asked)
        assert self.unsolved in f"{bare.returned} {bare.raised}"
        assert self.solved not in str(bare.returned)
        watched = type(self).watched("heal")
        returned = str(play(asked, self.wrap(watched)).returned)
        assert self.solved in returned and "monitor" not in returned
        assert watched.patterns == ["ER"] and watched.healed() == ["inject"]
        path = watched.session.findings[0].evidence["path"]
        assert path == path[:2] * 2 and len({*path}) == 2
        watched.must_be_sound()
        assert watched.leaves_nothing_open()

    def test_er_is_found_by_who_only_observes_and_nothing_is_changed(self, asked: Scenario) -> None:
        """What was on its way when all was over is not lost either; the request may have failed."""
        watched = type(self).watched()
        assert play(asked, self.wrap(watched)) == play(asked)
        assert {*watched.patterns} - {"FAIL"} == {"ER"} and watched.healed() == []
        watched.must_be_sound()
        assert not watched.session.monitor.graph.orphans()


class AskingTheSame(Shared):
    """An agent asks others the same, and says so once it hears that this was done twice.

    Attributes:
        asking: It is asked something, in each way.
        told: What its answer says then.
    """

    asking: ClassVar[Sequence[Scenario]]
    told: ClassVar[str]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        metafunc.parametrize("asked", self.asking, ids=str)

    def test_each_call_is_an_event_of_its_own(self, asked: Scenario) -> None:
        """Those that are asked the same repeat nothing, so that nothing is healed either."""
        watched = type(self).watched("heal")
        assert play(asked, self.wrap(watched)) == play(asked)
        assert watched.patterns == watched.healed() == []
        sent = [row for row in watched.records if isinstance(row, Emit) and row.by is not None]
        assert all(len(row.to) <= 1 for row in sent)
        watched.must_be_sound()
        assert watched.leaves_nothing_open()

    def test_rsp_equal_messages_may_be_declared_to_be_the_same_work(self, asked: Scenario) -> None:
        """`same_work=True`: they are one event, and a note says that it was done twice."""
        watched = type(self).watched("heal", same_work=True)
        assert self.told in str(play(asked, self.wrap(watched)).returned)
        assert self.told not in str(play(asked).returned)
        assert watched.patterns == ["RSP"] and watched.healed() == ["inject"]
        watched.must_be_sound()
        assert watched.leaves_nothing_open()


REQUESTS = 200
"""The number of requests that overlap in a crowd."""

Shown = list[tuple[int, Sequence[dig.About]]]
"""The notes of turns, as data, with the number of the request that each turn works for."""


class NotesStayApart(Shared):
    """Notes about one of many requests at once are shown in turns of no other one.

    Attributes:
        crowded: Makes a scenario that asks `REQUESTS` requests at once, whose texts have `request
            NUMBER`; some say the same again and again, some hang for longer than the activation
            limit. When a turn ends, its agent adds `dig.notes_about()` to the list that is given.
    """

    crowded: ClassVar[Callable[..., Scenario]]

    def test_no_turn_is_shown_a_note_about_another_request(self) -> None:
        """Each note is about work that goes back to the request of its turn."""
        shown: Shown = []
        limits = Thresholds(activation_limit_s=5, dl_window_s=5, loop_limit=5).limits
        setup = Setup(detectors=standard, healers=standard_healers, limits=limits, policy=HEAL_ALL)
        watched = type(self).watched("heal", setup)
        play(watched.ticking(type(self).crowded(shown)), self.wrap(watched))
        requests, sources = requests_and_sources(watched.records)
        assert len(requests) == REQUESTS and {"LOOP", "DL"} <= {*watched.patterns}
        strange = [
            (number, about)
            for number, notes in shown
            for about in notes
            if {requests[source] for event in about.events for source in sources[event]} - {number}
        ]
        assert strange == []
        assert len({number for number, notes in shown if notes}) > 1


def requests_and_sources(records: Iterable[Any]) -> tuple[dict[str, int], dict[str, set[str]]]:
    """The number of each request in a trace, and the requests that each event goes back to."""
    requests: dict[str, int] = {}
    sources: dict[str, set[str]] = {}
    of: dict[str, set[str]] = {}  # activation -> the requests behind what it has consumed
    for row in records:
        if isinstance(row, End):
            consumed = [fate.event for fate in row.fates if fate.fate == "consume"]
            of[row.activation] = set().union(*(sources[event] for event in consumed))
        elif isinstance(row, Emit):
            sources[row.event] = of.get(row.by or "", set())
            if row.by is None:
                number = re.search(r"request (\d+)", str(row.payload))
                assert number is not None
                requests[row.event], sources[row.event] = int(number[1]), {row.event}
    return requests, sources


@cache
def bare(scenario: Scenario) -> Outcome:
    """What a host sees without a monitor."""
    return play(scenario)


@pytest.mark.sampled(5)
class Faultless(Shared):
    """Whatever fails in the monitor, or in what a user has handed in, the host does not see it.

    Attributes:
        sites: Where the adapter calls the monitor.
        at_least: How many sites there are at least, or reading has missed some.
        faults: The cases that come through the sites.
        fragile: Scenarios in which each method fails for good.
        broken_in: Scenarios in which parts that a user has handed in are broken.
        parts: These parts.
        finding: The setup of a session that must not heal, since healing changes the result.
    """

    sites: ClassVar[Sites]
    at_least: ClassVar[int]
    faults: ClassVar[Cases]
    fragile: ClassVar[Sequence[Scenario]]
    broken_in: ClassVar[Sequence[Scenario]] = ()
    parts: ClassVar[Sequence[str]] = PARTS
    finding: ClassVar[Any] = None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        values: dict[str, Iterable[Any]] = {
            "site": self.sites.all, "called": self.sites.called, "part": self.parts,
            "asked": self.broken_in or self.fragile,
        }  # fmt: skip
        for name, some in values.items():
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, [*some], ids=str)

    def options(self, scenario: Scenario) -> dict[str, Any]:
        """The options of the adapter that a scenario needs."""
        return {}

    def test_no_call_site_is_left_out(self) -> None:
        """Every place in the code is passed, and every call comes from a place that was read."""
        assert len(self.sites.all) >= self.at_least
        assert self.faults.left_out() == []

    def test_a_fault_at_a_call_site_changes_nothing_for_the_host(self, site: Site) -> None:
        """It fails at its first pass or at its last one, before or after its work."""
        self.faults.must_stand(site)

    def test_what_fails_for_good_changes_nothing_for_the_host(self, called: str) -> None:
        """It fails from its first or third call on."""
        for one in self.fragile:
            watched = partial(
                type(self).watched, "heal", self.finding, strict=False, **self.options(one)
            )
            self.faults.must_stand_for_good(called, one, bare(one), watched, self.wrap)

    def test_broken_parts_change_nothing_for_the_host(self, part: str, asked: Scenario) -> None:
        """What a user has handed in raises whenever it is called."""
        watched = type(self).watched("heal", strict=False)
        break_part(watched, part)
        assert play(asked, self.wrap(watched)) == bare(asked)
        watched.detach()


class LooksAlike(Shared):
    """What replaces a framework's functions looks like them, and is called like them."""

    def others(self) -> list[Pair]:
        """What is replaced by other means than patches."""
        return []

    def test_what_is_replaced_has_the_signature_of_what_was_there(self) -> None:
        """Parameters' names, kinds and defaults are the same, and so is what must be awaited."""
        must_look_alike(self._made, self.scenarios, self.others)

    def test_what_is_replaced_can_be_called_by_name(self) -> None:
        """Each argument may be given by its name, as without a monitor."""
        must_take_keywords(self._made, self.scenarios)

    def _made(self, *made_of: Any) -> Any:
        return self.wrap(type(self).watched(*made_of))


def example(name: str, tmp_path: Path, capsys: Any, *found: str) -> Any:
    """What the main function of `examples/wrap_NAME.py` returns.

    It must keep four sound traces, and say where they are, and that these patterns were found.
    """
    made = runpy.run_path(str(ROOT / "examples" / f"wrap_{name}.py"))["main"](str(tmp_path))
    result = asyncio.run(made) if asyncio.iscoroutine(made) else made
    told = capsys.readouterr().out
    assert told.count("trace and result: ") == 4
    assert all(f"found {pattern}" in told for pattern in found)
    traces = [*tmp_path.glob("*/trace.dig.jsonl")]
    assert len(traces) == 4 and not any(verify(trace).problems for trace in traces)
    return result


def lines_of(page: str) -> list[Any]:
    """The Python of a page of the docs, compiled, in order; it may await."""
    path = ROOT / "docs" / page
    if not path.exists():
        pytest.skip("an installed package has no docs")
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
    return [compile(one, page, "exec", flags) for one in code]
