"""What every adapter promises, for each framework that is installed; a row says what of it is."""

from __future__ import annotations

import ast
import asyncio
import re
import runpy
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

import dig
from dig.cli import app
from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.graph.records import Emit, End, IncidentRow
from dig.runtime.setup import Setup
from dig.traces.journal.reader import read_records
from dig.traces.replay.rerun import rerun
from dig.traces.verify import verify

from . import harness
from .conformance import REQUESTS, ROOT, Failing, Framework, Hanging, Refused, Shown, Waiting
from .conftest import INSTALLED
from .framework_cases import Cases
from .framework_faults import break_part
from .framework_gates import Keeper, Keeps, behind, to, usher
from .framework_signatures import must_look_alike, must_take_keywords
from .framework_sites import Site
from .framework_watch import ladder
from .harness import Scenario, bare, cancelled_everywhere, play

FRAMEWORKS: list[Framework] = [
    row
    for name in ("plain", *INSTALLED)
    for row in import_module(f".{name}_cases", __package__).FRAMEWORKS
]

VALUES: dict[str, Callable[[Framework], Iterable[Any]]] = {
    "scenario": lambda row: row.scenarios,
    "cancelled": lambda row: row.named(row.cancelled),
    "package": lambda row: [row.package] if row.package else [],
    "going_round": lambda row: row.going_round,
    "asking": lambda row: row.asking,
    "crowded": lambda row: [row.crowded] if row.crowded else [],
    "faults": lambda row: [row.faults] if row.faults else [],
    "site": lambda row: row.faults.sites.all if row.faults else [],
    "called": lambda row: row.faults.sites.called if row.faults else [],
    "part": lambda row: row.parts,
    "fragile": lambda row: row.broken_in or row.named(row.fragile),
    "unhealed": lambda row: row.unhealed,
    "unheld": lambda row: row.unheld,
    "tapped": lambda row: [row.tapped] if row.tapped else [],
    "refused": lambda row: row.refused,
    "lacks": lambda row: [row.lacks] if row.lacks else [],
    "at_once": lambda row: [row.at_once] if row.at_once else [],
    "beside": lambda row: [row.beside] if row.beside else [],
    "kept": lambda row: [row.kept] if row.kept else [],
    "held": lambda row: [row.held] if row.held else [],
    "waiting": lambda row: [one for one in row.waiting if not one.overdue_s],
    "overdue": lambda row: [one for one in row.waiting if one.overdue_s],
    "failing": lambda row: row.failing,
    "hanging": lambda row: [row.hanging] if row.hanging else [],
    "example": lambda row: [row.example] if row.example else [],
    "docs": lambda row: [row.docs] if row.docs else [],
    "mode": lambda row: ["observe", "heal"],
    "stubborn": lambda row: [False, True],
}
"""What a test may ask for besides a framework: the values of it, each of which is a case."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise a test with the frameworks, and with all values of each that it asks for."""
    names = [name for name in VALUES if name in metafunc.fixturenames]
    cases = [
        pytest.param(row, *values, id="-".join([row.name, *_names(values)]), marks=row.marks)
        for row in FRAMEWORKS
        for values in product(*(VALUES[name](row) for name in names))
    ]
    metafunc.parametrize(("row", *names), cases)


def _names(values: Iterable[Any]) -> list[str]:
    shown = (str, bool, Failing, Refused, Scenario, Site, Waiting)
    return [str(value) for value in values if isinstance(value, shown)]


# --- nothing is changed ---


@pytest.mark.sampled(2)
def test_who_only_observes_changes_nothing_that_a_host_can_see(
    row: Framework, scenario: Scenario
) -> None:
    """Results, exceptions, order and time are the same, and the trace is sound."""
    for seed in range(3):
        watched, alone = row.watched(), play(scenario, seed=seed)
        mine = play(scenario, watched, seed=seed)
        assert mine == alone
        if row.adds_no_step:
            assert mine.steps == alone.steps, "wrapping has added a step of the event loop"
        assert watched.session.statistics().requests >= 1
        watched.must_be_sound()
        assert row.is_over(watched)


@pytest.mark.sampled(2)
def test_where_nothing_is_found_healing_changes_nothing_either(
    row: Framework, scenario: Scenario
) -> None:
    """A session that could heal, but has no reason to, changes nothing."""
    watched = row.watched("heal", row.healing)
    mine = play(scenario, watched)
    watched.must_be_sound()
    if row.may_be_healed and watched.healed():
        return
    assert mine == bare(scenario)
    assert row.is_over(watched)


def test_a_request_may_be_cancelled_at_every_await(
    row: Framework, cancelled: Scenario, every: int
) -> None:
    """The host sees the same as without a monitor, and nothing stays open."""
    watched = row.watched(row.cancelled_in)
    for step, alone, mine in cancelled_everywhere(cancelled, watched, every=every):
        assert mine == alone, f"cancelled before step {step}"
        if row.adds_no_step:
            assert mine.steps == alone.steps, f"cancelled before step {step}"
        watched.detach()
        assert row.is_over(watched), f"cancelled before step {step}"


def test_another_team_is_not_seen(row: Framework, package: str) -> None:
    """One of the same class that is not wrapped."""
    watched = row.watched()
    other = Scenario(
        "other", lambda script: (watched(row.team()), row.team())[1], row.scenarios[0].drive
    )
    play(other)
    assert watched.session.statistics().requests == 0
    watched.detach()


def test_what_is_replaced_has_the_signature_of_what_was_there(row: Framework, tapped: Any) -> None:
    """Parameters' names, kinds and defaults are the same, and so is what must be awaited."""
    must_look_alike(row.watched, tapped, row.replaced)


def test_what_is_replaced_can_be_called_by_name(row: Framework, tapped: Any) -> None:
    """Each argument may be given by its name, as without a monitor."""
    must_take_keywords(row.watched, tapped)


# --- what is refused ---


def test_an_older_version_is_refused(
    row: Framework, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says which version is there, and which ones were tested."""
    monkeypatch.setattr("dig.adapters.base.plan.version", lambda package: "0.0.1")
    with pytest.raises(SettingsError, match=rf"{package} 0.0.1 is installed.*tested with"):
        play(row.scenarios[0], row.watched())


def test_a_newer_version_is_told_and_watched(
    row: Framework, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not refused as long as it has what the adapter relies on."""
    watched = row.watched()
    version = f"{watched.adapter.VERSIONS[1]}.0"
    monkeypatch.setattr("dig.adapters.base.plan.version", lambda package: version)
    with pytest.warns(UserWarning, match="was tested with") as told:
        assert play(row.scenarios[0], watched) == bare(row.scenarios[0])
    said = f"{package} {version} is installed, and this wrapper was tested with"
    message = next(str(one.message) for one in told if one.category is UserWarning)
    assert message.startswith(said)


def test_a_framework_that_is_put_together_in_another_way_is_refused(
    row: Framework, lacks: tuple[Any, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the part that is missing."""
    owner, name, why = lacks
    team = row.team()
    monkeypatch.delattr(owner, name)
    with pytest.raises(SettingsError, match=f"in another way: .*{why}"):
        dig.wrap(team)


def test_what_cannot_be_wrapped_is_refused(row: Framework, refused: Refused) -> None:
    """The message says why, and what to do instead."""
    with pytest.raises(SettingsError, match=refused.why):
        dig.wrap(refused.team(), **refused.options)


# --- traces ---


@pytest.mark.sampled(2)
def test_a_journal_passes_the_independent_checker_and_a_check_finds_the_same(
    row: Framework, package: str, scenario: Scenario, tmp_path: Path
) -> None:
    """So does a check of the file of a team that is healed."""
    made: list[Any] = []

    def wrap(team: Any) -> Any:
        made.append(dig.wrap(team, mode="heal", journal=tmp_path))
        return made[0]

    play(scenario, wrap)
    session = dig.session_of(made[0])
    dig.unwrap(made[0])
    assert session.directory is not None
    trace = session.directory / "trace.dig.jsonl"
    assert not verify(trace).problems
    checked = CliRunner().invoke(app, ["check", str(trace), "--fail-on", "notice"])
    assert checked.exit_code == bool(session.findings), checked.output


def test_a_request_outside_the_sample_leaves_no_trace(
    row: Framework, package: str, scenario: Scenario, tmp_path: Path
) -> None:
    """The host sees the same as without; a team that cannot leave requests out is refused."""
    made: list[Any] = []

    def wrap(team: Any) -> Any:
        made.append(dig.wrap(team, mode="heal", journal=tmp_path, sample=0))
        return made[0]

    if "sample" not in row.watched().adapter.plan(row.team()).capabilities:
        with pytest.raises(SettingsError, match="cannot sample"):
            wrap(row.team())
        return
    assert play(scenario, wrap) == bare(scenario)
    session = dig.session_of(made[0])
    seen, rest = session.statistics(), session.statistics().unsampled
    dig.unwrap(made[0])
    assert session.directory is not None and rest is not None
    records = read_records(session.directory / "trace.dig.jsonl")
    assert [record.kind for record in records] == ["run", "finish"]
    assert (seen.requests, seen.turns, seen.faults, rest.faults) == (0, 0, 0, 0)
    assert rest.requests >= 1


def test_of_requests_that_overlap_each_is_in_the_sample_or_not(
    row: Framework, at_once: Scenario, tmp_path: Path
) -> None:
    """A trace with each part of three is sound, and has no other request."""
    if "sample" not in row.watched().adapter.plan(row.team()).capabilities:
        pytest.skip("it leaves no request out")
    for chosen in product([True, False], repeat=3):
        made, draws = list[Any](), iter(chosen)

        def wrap(team: Any, made: Any = made, draws: Any = draws) -> Any:
            made.append(dig.wrap(team, mode="heal", journal=tmp_path, sample=0.5))
            session = dig.session_of(made[0])
            assert session.unsampled is not None
            session.leave_out(session.unsampled, partial(next, draws))
            return made[0]

        play(at_once, wrap)
        session = dig.session_of(made[0])
        dig.unwrap(made[0])
        assert session.directory is not None
        trace = session.directory / "trace.dig.jsonl"
        assert not verify(trace).problems
        asked = [it for it in read_records(trace) if isinstance(it, Emit) and it.by is None]
        assert len(asked) == sum(chosen) and session.statistics().faults == 0


def test_requests_that_overlap_are_problems_of_their_own(row: Framework, at_once: Scenario) -> None:
    """Three at once, whose agents work side by side as instances."""
    watched = row.watched()
    assert play(at_once, watched).peak > 2 and {*row.seats} <= {*watched.ran()}
    assert watched.session.statistics().requests == 3 and watched.patterns == []
    watched.must_be_sound()


def test_the_example_shows_both_failures_and_both_cures(
    row: Framework, example: Any, tmp_path: Path, capsys: Any
) -> None:
    """It keeps four sound traces, and says where they are, and what was found."""
    patterns, answers = example
    main = runpy.run_path(str(ROOT / "examples" / f"wrap_{row.name}.py"))["main"](str(tmp_path))
    result = asyncio.run(main) if asyncio.iscoroutine(main) else main
    told = capsys.readouterr().out
    assert told.count("trace and result: ") == 4
    assert all(f"found {pattern}" in told for pattern in patterns)
    traces = [*tmp_path.glob("*/trace.dig.jsonl")]
    assert len(traces) == 4 and not any(verify(trace).problems for trace in traces)
    for answer, said in zip(result, answers, strict=True):
        assert re.fullmatch(said, answer, re.DOTALL)


TOLD_WITH = {"ag2": "autogen"}
"""The frameworks that have a section of another one's page."""


def test_the_lines_in_the_docs_work(
    row: Framework, docs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Python is run as it stands, with a team of the tests; each session leaves a result."""
    page = ROOT / "docs" / f"wrapping-{TOLD_WITH.get(row.name, row.name).replace('_', '-')}.md"
    if not page.exists():
        pytest.skip("an installed package has no docs")
    first, *further = page.read_text().split("\n## AG2")
    text = further[0] if row.name == "ag2" else first
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    monkeypatch.chdir(tmp_path)
    sessions = asyncio.run(docs([compile(one, page.name, "exec", flags) for one in code]))
    assert len([*tmp_path.glob("runs/*/result.json")]) == sessions


# --- what is found, and healed ---


def test_er_a_handoff_that_goes_round_and_round_ends_when_they_are_told(
    row: Framework, going_round: Scenario
) -> None:
    """One note is enough; it is private to the agent that got it."""
    alone = bare(going_round)
    assert row.unsolved in f"{alone.returned} {alone.raised}"
    assert row.solved not in str(alone.returned)
    watched = row.watched("heal")
    returned = str(play(going_round, watched).returned)
    assert row.solved in returned and "monitor" not in returned
    assert watched.patterns == ["ER"] and watched.healed() == ["inject"]
    path = watched.session.findings[0].evidence["path"]
    assert path == path[:2] * 2 and len({*path}) == 2
    watched.must_be_over()


def test_er_is_found_by_who_only_observes_and_nothing_is_changed(
    row: Framework, going_round: Scenario
) -> None:
    """What was on its way when all was over is not lost either; the request may have failed."""
    watched = row.watched()
    watched.must_change_nothing(going_round)
    assert {*watched.patterns} - {"FAIL"} == {"ER"} and watched.healed() == []
    watched.must_be_sound()
    assert not watched.session.monitor.graph.orphans()


def test_each_call_is_an_event_of_its_own(row: Framework, asking: Scenario) -> None:
    """Those that are asked the same repeat nothing, so that nothing is healed either."""
    watched = row.watched("heal")
    watched.must_change_nothing(asking)
    assert watched.patterns == watched.healed() == []
    assert all(len(emit.to) <= 1 for emit in watched.rows(Emit) if emit.by is not None)
    watched.must_be_over()


def test_rsp_equal_messages_may_be_declared_to_be_the_same_work(
    row: Framework, asking: Scenario
) -> None:
    """`same_work=True`: they are one event, and a note says that it was done twice."""
    watched = row.watched("heal", same_work=True)
    assert row.told in str(play(asking, watched).returned)
    assert row.told not in str(bare(asking).returned)
    assert watched.patterns == ["RSP"] and watched.healed() == ["inject"]
    watched.must_be_over()


def test_no_turn_is_shown_a_note_about_another_request(
    row: Framework, crowded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many requests at once, each note is about work that goes back to that of its turn."""
    monkeypatch.setattr(harness, "STEPS", 100_000)  # some frameworks make tasks for each call
    shown: Shown = []
    limits = Thresholds(activation_limit_s=5, dl_window_s=5, loop_limit=5).limits
    setup = Setup(detectors=standard, healers=standard_healers, limits=limits, policy=HEAL_ALL)
    watched = (row.in_a_crowd or row.watched)("heal", setup)
    play(watched.ticking(crowded(shown)), watched)
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
    for record in records:
        if isinstance(record, End):
            consumed = [fate.event for fate in record.fates if fate.fate == "consume"]
            of[record.activation] = set().union(*(sources[event] for event in consumed))
        elif isinstance(record, Emit):
            sources[record.event] = of.get(record.by or "", set())
            if record.by is None:
                number = re.search(r"request (\d+)", str(record.payload))
                assert number is not None
                requests[record.event], sources[record.event] = int(number[1]), {record.event}
    return requests, sources


# --- persons ---


def test_who_waits_for_a_person_is_neither_judged_nor_healed(
    row: Framework, waiting: Waiting, mode: str
) -> None:
    """All is as without a monitor, however long the person takes; the trace says who waits."""
    watched = row.watched(mode, limits=waiting.limits)
    watched.must_change_nothing(waiting.asked, ticks=True)
    assert watched.patterns == [] and watched.healed() == []
    assert watched.incidents().count("waits") == waiting.waits
    assert "downgraded" not in watched.incidents()
    assert len(watched.answers()) == waiting.answers
    watched.must_be_sound()
    assert row.is_over(watched)


def test_a_hang_after_a_person_has_answered_is_seen(
    row: Framework, overdue: Waiting, mode: str
) -> None:
    """The activation that goes on with the answer does not wait, so that it can be overdue."""
    watched = row.watched(mode, limits=overdue.limits)
    watched.must_change_nothing(overdue.asked, ticks=True)
    assert watched.patterns == ["MC"]
    assert watched.session.findings[0].ts > overdue.overdue_s
    watched.must_be_sound()


# --- errors ---


def test_an_error_is_of_who_raised_it_and_others_pass_it_on_or_are_called_off(
    row: Framework, failing: Failing, mode: str
) -> None:
    """A request that fails says how and by whom, has no answer, and nobody runs who did not."""
    watched = row.watched(mode, row.healing, **failing.options)
    watched.must_change_nothing(failing.asked)
    ends = watched.ends()
    assert ends.keys() == failing.ends.keys()
    assert all(ends[agent].startswith(end) for agent, end in failing.ends.items()), ends
    assert watched.failed() == ([failing.failed] if failing.failed else [])
    assert len(watched.answers()) == (failing.failed is None)
    assert not {*failing.never} & {*watched.ran()}
    watched.must_be_sound()
    assert row.is_over(watched)


# --- gates ---


def test_a_gate_keeps_a_message_and_agents_that_are_not_concerned_go_on(
    row: Framework, beside: tuple[Scenario, str, str, dict[str, Any]]
) -> None:
    """It is told something beside the message, which it gets when the gate has decided."""
    scenario, late, other, options = beside
    gate = usher("It is late.", keeps=to(late), after_s=5.0)
    watched = row.watched("heal", behind(gate)(), **options)
    outcome, alone = play(scenario, watched), bare(scenario)
    assert outcome.per_agent()[other] == alone.per_agent()[other]
    assert outcome.elapsed >= alone.elapsed + 4 and not outcome.raised
    ended = [agent for agent, what, _ in outcome.log if what == "ends"]
    assert ended.index(other) < ended.index(late)
    assert "It is late." in str(outcome.per_agent()[late])
    watched.must_be_sound()


def test_a_gate_keeps_an_answer(row: Framework, kept: tuple[Scenario, Keeps]) -> None:
    """The host gets it when the gate has decided."""
    scenario, keeps = kept
    gate = Keeper(keeps=keeps, after_s=5.0)
    watched = row.watched("heal", behind(gate)())
    held = play(scenario, watched)
    assert gate.seen and held.returned == bare(scenario).returned
    assert held.elapsed == pytest.approx(bare(scenario).elapsed + 5 * len(gate.seen))
    watched.must_be_over()


def test_who_waits_for_what_is_held_may_be_cancelled_at_every_await(
    row: Framework, held: tuple[Scenario, Keeps], every: int
) -> None:
    """Nothing is left of it."""
    scenario, keeps = held
    for step in range(1, 60, every):
        watched = row.watched("heal", behind(Keeper(keeps=keeps, after_s=5.0))())
        outcome = play(scenario, watched, cancel_at=step)
        assert outcome.cancelling == (1 if outcome.raised else 0)
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"


# --- an agent that hangs ---


def test_another_agent_is_asked_in_place_of_one_that_hangs(
    row: Framework, hanging: Hanging, stubborn: bool
) -> None:
    """STALL healed: what the first one says after its cancellation is dropped."""
    watched = row.watched("heal", ladder(), allow={"reassign"})
    answer = play(hanging.asked(watched, stubborn=stubborn)).returned
    assert re.fullmatch(hanging.relieved, str(answer))
    assert watched.patterns == ["STALL"] and watched.healed() == ["reassign"]
    watched.must_be_over()


def test_an_agent_that_hangs_is_left_alone_unless_that_is_allowed(
    row: Framework, hanging: Hanging
) -> None:
    """With `allow` empty it is not cancelled: its team waits for it, as without us."""
    watched = row.watched("heal", ladder())
    assert hanging.waited_for in str(play(hanging.asked(watched)).returned)
    assert watched.patterns[0] == "STALL" and "reassign" not in watched.healed()
    assert "downgraded" in watched.incidents()


def test_the_example_answers_although_an_agent_hangs(
    row: Framework, hanging: Hanging, tmp_path: Path
) -> None:
    """Another courier brings the last parcel, in real time; the journal can be run once more."""
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "wrap_hanging.py"))
    assert anyio.run(example["main"], row.name, str(tmp_path)) == "Bob has brought parcel 12"
    [run] = tmp_path.iterdir()
    records = list(read_records(run))
    assert rerun(run).records == len(records)
    incidents = {record.what for record in records if isinstance(record, IncidentRow)}
    assert ("downgraded" in incidents) == hanging.downgrades


# --- whatever fails in the monitor, or in what a user has handed in, the host does not see it ---

sampled = pytest.mark.sampled(5)


def test_no_call_site_is_left_out(row: Framework, faults: Cases) -> None:
    """Every place in the code is passed, and every call comes from a place that was read."""
    assert len(faults.sites.all) >= row.at_least
    assert faults.left_out() == []


@sampled
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(
    row: Framework, faults: Cases, site: Site
) -> None:
    """It fails at its first pass or at its last one, before or after its work."""
    faults.must_stand(site)


@sampled
def test_what_fails_for_good_changes_nothing_for_the_host(
    row: Framework, faults: Cases, called: str
) -> None:
    """It fails from its first or third call on."""
    for asked in row.named(row.fragile):
        watched = partial(row.watched, "heal", row.finding, strict=False, **row.options(asked))
        faults.must_stand_for_good(called, asked, bare(asked), watched)


@sampled
def test_broken_parts_change_nothing_for_the_host(
    row: Framework, faults: Cases, part: str, fragile: Scenario
) -> None:
    """What a user has handed in raises whenever it is called."""
    watched = row.watched("heal", strict=False)
    break_part(watched, part)
    assert play(fragile, watched) == bare(fragile)
    watched.detach()


def test_once_the_wrapper_has_failed_nothing_is_healed_any_more(
    row: Framework, faults: Cases, unhealed: tuple[Scenario, Setup | None]
) -> None:
    """What it knows may be wrong: of a request whose end it has missed, work may lie about."""
    asked, setup = unhealed
    assert play(asked, row.watched("heal", setup)) != bare(asked)
    planted = 0
    for request in [site for site in faults.sites.all if site.called == "session.request"]:
        watched = row.watched("heal", setup, strict=False)
        with faults.sites.passing(request, 1, True) as passes:
            outcome = play(asked, watched)
        watched.detach()
        assert watched.session.statistics().faults == passes.planted
        assert outcome == bare(asked) or not passes.planted
        planted += passes.planted
    assert planted


def test_what_is_held_while_the_wrapper_fails_delays_nobody(
    row: Framework, faults: Cases, unheld: Scenario
) -> None:
    """Nobody waits for what is sent in the step that fails, and it keeps back nothing else."""
    planted = 0
    for end in [site for site in faults.sites.all if site.called == "turn.end"]:
        watched = row.watched("heal", behind(usher())(), strict=False)
        with faults.sites.passing(end, 1, True) as passes:
            assert play(unheld, watched).elapsed == bare(unheld).elapsed
        watched.detach()
        planted += passes.planted
    assert planted
