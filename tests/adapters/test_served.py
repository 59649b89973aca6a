"""A wrapped team of plain callables runs again from its journal: what is the same, and refused."""

from __future__ import annotations

import runpy
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import dig
from dig import Limits
from dig.adapters.plain.callables import TeamCallables, shared_state
from dig.adapters.plain.served import Served
from dig.detectors.policy import HEAL_ALL
from dig.errors import DivergenceError, ReplayError, SettingsError
from dig.graph.codec import encode
from dig.graph.records import Emit, End, Finish, IncidentRow, Record, Start
from dig.runtime import Setup
from dig.traces.replay.changes import read_change
from dig.traces.run import RecordedRun
from tests.helpers import VirtualLoop, backends

ROOT = Path(__file__).parent.parent.parent
SHOP = runpy.run_path(str(ROOT / "examples" / "wrap_plain.py"))["shop"]


class BusyError(Exception):
    """An exception of the module that the agents come from."""


@dataclass
class Town:
    name: str


@dataclass
class Desk:
    """A team: a desk asks `stock`, then `price`.

    Attributes:
        question: What the desk is asked.
        answers: What the two answer, or raise.
        options: What the team is wrapped with.
        calls: Which of the two were really called.
        notes: What the monitor has told the desk.
        answer: What came of it.
    """

    question: str = "parcel"
    answers: dict[str, Any] = field(default_factory=lambda: {"stock": {"town": "Ulm"}, "price": 7})
    options: dict[str, Any] = field(default_factory=lambda: {"stateless": {"stock", "price"}})
    calls: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    answer: Any = None

    def agents(self) -> dict[str, Any]:
        team: dict[str, Any] = {}
        answers, calls, notes = self.answers, self.calls, self.notes

        async def desk(question: str) -> Any:
            stock = await team["stock"](question)
            price = await team["price"](stock)
            notes.extend(dig.notes())
            return [stock, price]

        async def stock(question: str) -> Any:
            calls.append("stock")
            if isinstance(answers["stock"], Exception):
                raise answers["stock"]
            return answers["stock"]

        async def price(stock: Any) -> Any:
            calls.append("price")
            return answers["price"]

        team.update(desk=desk, stock=stock, price=price)
        return team

    async def run(self, runs: Path | None = None) -> Path:
        """Make the team, and ask it; gives the run directory."""
        team = dig.wrap(self.agents(), journal=runs, **self.options)
        try:
            self.answer = await team["desk"](self.question)
        except Exception as error:
            self.answer = error
        return ended(team)


def ended(team: Any) -> Path:
    """Unwrap a team; gives its run directory."""
    directory = dig.session_of(team).directory
    dig.unwrap(team)
    assert directory is not None
    return directory


def recorded(desk: Desk, folder: Path) -> RecordedRun:
    return RecordedRun.read(anyio.run(desk.run, folder), payloads=True)


def in_virtual_time(function: Callable[..., Any], *args: Any) -> Any:
    """Run it on asyncio, where no wait for a step that never comes takes long."""
    return anyio.run(function, *args, backend_options={"loop_factory": VirtualLoop})


def again(
    parent: RecordedRun, at: int, desk: Desk, folder: Path, *changes: dict[str, Any]
) -> RecordedRun:  # fmt: skip
    """Run it again from a record, and read what came of it."""
    return entered(parent, at, desk.run, folder, in_virtual_time, *changes)


def entered(
    parent: RecordedRun, at: int, entry: Any, folder: Path, run: Any, *changes: dict[str, Any]
) -> RecordedRun:
    made = [read_change(one) for one in changes]
    served = Served(parent, at, folder / "again", changes=made)
    run(served.run, entry, dig.unwrap)
    assert served.directory is not None
    return RecordedRun.read(served.directory, payloads=True)


def on(backend: str) -> Any:
    """What runs an entry in virtual time."""
    name, options = backends()[backend]()
    return partial(anyio.run, backend=name, backend_options=options)


def lines(records: Sequence[Record]) -> list[str]:
    return [encode(record) for record in records]


def place(run: RecordedRun, kind: type[Record], agent: str) -> int:
    """The first record of a kind of an agent."""
    for record in run.records:
        by = getattr(record, "activation", None) or getattr(record, "by", "") or ""
        by_agent = run.activations[by].agent if by in run.activations else None
        if isinstance(record, kind) and by_agent == agent:
            return record.t
    raise LookupError(agent)


# --- the same ---


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_the_prefix_is_the_recorded_one_byte_for_byte(
    mode: Any, backend: str, tmp_path: Path
) -> None:
    """Times, instances, background tasks, findings and healing included; all agents run."""

    async def entry(runs: Path | None = None) -> Any:
        more: dict[str, Any] = {"allow": {"bounce"}, "policy": HEAL_ALL} if mode == "heal" else {}
        async with anyio.create_task_group() as tasks:
            team = dig.wrap(SHOP(tasks), mode=mode, journal=runs, **more)
            await team["desk"]("parcel 7")
        return ended(team)

    parent = RecordedRun.read(on(backend)(entry, tmp_path), payloads=True)
    for at in (0, 1, 20, 23, 48, len(parent.records) - 1, len(parent.records)):
        new = entered(parent, at, entry, tmp_path, on(backend))
        assert lines(new.records[:at]) == lines(parent.records[:at])
        assert isinstance(new.last, Finish)


def random_entry(seed: int) -> Callable[..., Any]:
    """An entry whose agents call each other, in turn and at once, with random pauses."""
    names = tuple(f"agent-{number}" for number in range(Random(seed).randint(2, 5)))

    async def entry(runs: Path | None = None) -> Any:
        team: dict[str, Any] = {}

        def make(agent: str) -> Any:
            async def work(task: str) -> Any:
                draw, got = Random(f"{seed} {agent} {task}"), [agent]

                async def ask(other: str, part: str) -> None:
                    try:
                        got.append(await team[other](part))
                    except ValueError as error:
                        got.append(str(error))

                await anyio.sleep(draw.choice([0, 0, 0.01, 0.02]))
                for _ in range(draw.randint(0, 2) if len(task) < 4 else 0):
                    async with anyio.create_task_group() as tasks:
                        for number in range(draw.randint(1, 3)):
                            tasks.start_soon(ask, draw.choice(names), f"{task}{number}")
                    await ask(draw.choice(names), f"{task}x")
                if draw.random() < 0.1:
                    raise ValueError(agent)
                return None if draw.random() < 0.1 else sorted(map(str, got))

            return work

        team.update((agent, make(agent)) for agent in names)
        stateless = {agent for agent in names if Random(agent).random() < 0.7}
        dig.wrap(team, journal=runs, stateless=stateless)
        with suppress(ValueError):
            await team["agent-0"]("q")
        return ended(team)

    return entry


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("seed", range(5))
def test_random_teams_run_again_as_recorded(seed: int, backend: str, tmp_path: Path) -> None:
    """Whatever goes on at once: every record before a random one comes again."""
    entry = random_entry(seed)
    parent = RecordedRun.read(on(backend)(entry, tmp_path), payloads=True)
    whole = len(parent.records)
    for at in (whole, *(Random(seed).randrange(whole) for _ in range(2))):
        new = entered(parent, at, entry, tmp_path, on(backend))
        assert lines(new.records[:at]) == lines(parent.records[:at])


def test_until_the_record_stateless_agents_answer_from_the_journal(tmp_path: Path) -> None:
    """Those that are asked later are called; the code of the others runs in any case."""
    before = {*threading.enumerate()}  # of teams that other tests have left wrapped
    parent = recorded(Desk(), tmp_path)
    for at, called in (
        (0, ["stock", "price"]),
        (place(parent, Start, "stock"), ["price"]),
        (place(parent, Start, "price"), []),
        (len(parent.records), []),
    ):
        desk = Desk()
        new = again(parent, at, desk, tmp_path)
        assert desk.calls == called
        for thread in {*threading.enumerate()} - before:
            if thread.name == "dig watchdog":
                thread.join(10)
                assert not thread.is_alive()
        assert desk.answer == [{"town": "Ulm"}, 7]
        assert lines(new.records[:at]) == lines(parent.records[:at])


def test_an_agent_that_calls_others_runs_again(tmp_path: Path) -> None:
    """Although it is declared stateless: its calls belong to the record."""
    stateless = {"desk", "stock", "price"}
    parent = recorded(Desk(options={"stateless": stateless}), tmp_path)
    desk = Desk(options={"stateless": stateless})
    again(parent, len(parent.records), desk, tmp_path)
    assert desk.calls == [] and desk.answer == [{"town": "Ulm"}, 7]


def test_an_agent_says_itself_that_it_is_stateless(tmp_path: Path) -> None:
    """By an attribute of the callable; the side file names it as it names declared ones."""

    class Marked(Desk):
        def agents(self) -> dict[str, Any]:
            team = super().agents()
            team["stock"].stateless = team["price"].stateless = True
            return team

    parent = recorded(Marked(options={}), tmp_path)
    desk = Marked(options={})
    again(parent, len(parent.records), desk, tmp_path)
    assert desk.calls == []
    (side,) = (tmp_path).glob("*/side.json")
    assert '"stateless": [\n    "price",\n    "stock"\n  ]' in side.read_text()


@pytest.mark.parametrize("error", [ConnectionError("nobody there"), BusyError("later")])
def test_an_exception_is_raised_again(error: Exception, tmp_path: Path) -> None:
    """One of Python, or of the module of the agent."""
    answers = {"stock": error, "price": 7}
    parent = recorded(Desk(answers=answers), tmp_path)
    desk = Desk()
    again(parent, place(parent, End, "stock"), desk, tmp_path)
    assert type(desk.answer) is type(error) and str(desk.answer) == str(error)
    assert desk.calls == []


def test_what_time_alone_has_raised_comes_again(tmp_path: Path) -> None:
    """A finding, and the incident of a long activation; no thread has to wait for them."""

    async def entry(runs: Path | None = None) -> Any:
        found: list[str] = []
        team: dict[str, Any] = {}

        async def desk(question: str) -> Any:
            return await team["stock"](question)

        async def stock(question: str) -> str:
            while not found:
                await anyio.lowlevel.checkpoint()
            return "Ulm"

        team.update(desk=desk, stock=stock)
        limits = Limits(dl_window_s=0.5, activation_limit_s=0.2)
        told = lambda finding: found.append(finding.pattern)  # noqa: E731
        dig.wrap(team, journal=runs, limits=limits, on_finding=told, stateless={"stock"})
        await team["desk"]("parcel")
        return ended(team)

    parent = RecordedRun.read(anyio.run(entry, tmp_path), payloads=True)
    assert {one.kind for one in parent.records[10:12]} == {"finding", "incident"}
    new = entered(parent, len(parent.records), entry, tmp_path, in_virtual_time)
    assert lines(new.records) == lines(parent.records)


def test_answers_that_were_asked_for_before_come_in_their_recorded_order(tmp_path: Path) -> None:
    """Although the run is free by then."""
    order: list[str] = []

    async def entry(runs: Path | None = None) -> Any:
        team: dict[str, Any] = {}
        late = anyio.Event()

        async def desk(question: str) -> None:
            async def ask(agent: str) -> None:
                order.append(await team[agent](question))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, "slow")
                tasks.start_soon(ask, "quick")

        async def slow(question: str) -> str:
            await late.wait()
            return "slow"

        async def quick(question: str) -> str:
            late.set()
            return "quick"

        team.update(desk=desk, slow=slow, quick=quick)
        dig.wrap(team, journal=runs, stateless={"desk", "slow", "quick"})
        await team["desk"]("parcel")
        return ended(team)

    parent = RecordedRun.read(anyio.run(entry, tmp_path), payloads=True)
    at = max(place(parent, Start, agent) for agent in ("slow", "quick"))
    entered(parent, at, entry, tmp_path, anyio.run)
    assert order == ["quick", "slow"] * 2


def test_nothing_is_sent_elsewhere(tmp_path: Path) -> None:
    """Neither alarms nor records leave a run that goes again, whatever it is wrapped with."""
    parent = recorded(Desk(), tmp_path)
    elsewhere: list[Record] = []
    desk = Desk()
    desk.options |= {"sink": elsewhere.append, "on_alarm": elsewhere.append}
    again(parent, 3, desk, tmp_path)
    assert desk.answer == [{"town": "Ulm"}, 7] and elsewhere == []
    assert len([*tmp_path.glob("*/side.json")]) == 1


# --- changes ---


def test_an_edited_answer_reaches_the_caller(tmp_path: Path) -> None:
    """From the record of the answer on the run is another one."""
    parent = recorded(Desk(), tmp_path)
    at = place(parent, Emit, "stock")
    desk = Desk()
    edit = {"kind": "edit", "at": at, "edit": {"payload": {"town": "Bonn"}}}
    new = again(parent, at, desk, tmp_path, edit)
    assert desk.answer == [{"town": "Bonn"}, 7]
    assert lines(new.records[:at]) == lines(parent.records[:at])
    assert desk.calls == ["price"]


def test_the_answer_of_an_agent_that_runs_can_be_edited(tmp_path: Path) -> None:
    """The desk runs, and its answer to the outside is the edited one."""
    parent = recorded(Desk(), tmp_path)
    at = next(one.t for one in parent.records if isinstance(one, Emit) and one.final)
    desk = Desk()
    again(parent, at, desk, tmp_path, {"kind": "edit", "at": at, "edit": {"payload": "none"}})
    assert desk.answer == "none"


def test_an_answer_can_stand_in_for_an_exception(tmp_path: Path) -> None:
    """The record of the end has the exception, so that one is edited."""
    parent = recorded(Desk(answers={"stock": ConnectionError("x"), "price": 7}), tmp_path)
    at, desk = place(parent, End, "stock"), Desk()
    edit = {"kind": "edit", "at": at, "edit": {"outputs": [{"payload": {"town": "Bonn"}}]}}
    again(parent, at, desk, tmp_path, edit)
    assert desk.answer == [{"town": "Bonn"}, 7]


def test_an_agent_that_is_asked_again_is_called(tmp_path: Path) -> None:
    """The other one still answers from the journal."""
    parent = recorded(Desk(), tmp_path)
    start = place(parent, Start, "price")
    name = next(one.id for one in parent.activations.values() if one.agent == "price")
    for at in (start, start + 1):
        desk = Desk(answers={"stock": "never asked", "price": 8})
        again(parent, at, desk, tmp_path, {"kind": "again", "at": at, "activation": name})
        assert desk.answer == [{"town": "Ulm"}, 8] and desk.calls == ["price"]


def test_an_agent_reads_what_it_is_told(tmp_path: Path) -> None:
    """The note comes with what the agent takes up next; it is told at the record itself."""
    parent = recorded(Desk(), tmp_path)
    for at in (1, place(parent, Start, "stock")):
        desk = Desk()
        tell = {"kind": "tell", "at": at, "agent": "desk", "note": "hurry"}
        new = again(parent, at, desk, tmp_path, tell)
        assert desk.notes == ["hurry"]
        assert isinstance(new.records[at], IncidentRow)
        assert lines(new.records[:at]) == lines(parent.records[:at])
        assert "stock" not in desk.calls or at == 1


def test_an_answer_that_was_early_can_be_edited(tmp_path: Path) -> None:
    """Its activation begins only with the answer, since other answers are still awaited."""

    async def entry(runs: Path | None = None) -> Any:
        async with anyio.create_task_group() as tasks:
            team = dig.wrap(SHOP(tasks), journal=runs)
            answers.append(await team["desk"]("parcel 7"))
        return ended(team)

    answers: list[str] = []
    parent = RecordedRun.read(in_virtual_time(entry, tmp_path), payloads=True)
    early = next(one.t for one in parent.records if isinstance(one, Emit) and one.final)
    change = {"kind": "edit", "at": early, "edit": {"payload": "wait"}}
    entered(parent, early, entry, tmp_path, in_virtual_time, change)
    assert answers == ["it is on its way", "wait"]


# --- what is told and refused ---


def refused(
    parent: RecordedRun, at: int, desk: Desk, folder: Path, why: str, *changes: dict[str, Any],
    error: type[Exception] = ReplayError
) -> None:  # fmt: skip
    with pytest.raises(error, match=why):
        again(parent, at, desk, folder, *changes)


def test_the_first_difference_is_told(tmp_path: Path) -> None:
    """An argument that is not the recorded one ends it, with both."""
    parent = recorded(Desk(), tmp_path)
    with pytest.raises(DivergenceError) as caught:
        again(parent, len(parent.records), Desk(question="letter"), tmp_path)
    assert caught.value.record == 1
    assert '"parcel"' in (caught.value.expected or "") and '"letter"' in caught.value.got


@pytest.mark.parametrize("first", ["", "price"])
def test_code_that_decides_otherwise_is_told(first: str, tmp_path: Path) -> None:
    """An agent that runs, and answers or calls another one than recorded."""

    class Other(Desk):
        def agents(self) -> dict[str, Any]:
            team = super().agents()

            async def desk(question: str) -> Any:
                return await team[first](question) if first else question

            team["desk"] = desk
            return team

    parent = recorded(Desk(), tmp_path)
    why, error = "record [456] differs", DivergenceError
    refused(parent, len(parent.records), Other(), tmp_path, why, error=error)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("api_key: sk-123456789012345", "masked secret"),
        ({"at": object()}, "no plain JSON"),
        (Town("Ulm"), "no plain JSON, but a Town"),
        (("Ulm", 7), "no plain JSON, but a tuple"),
        (LookupError("a" * 400), "cannot be raised again"),
        (anyio.EndOfStream("x"), "neither an exception of Python nor one of its own"),
    ],
)
def test_an_answer_that_the_journal_does_not_have_is_refused(
    answer: Any, why: str, tmp_path: Path
) -> None:
    """Masked answers, values that are no plain JSON, and exceptions that nobody can make."""
    answers = {"stock": answer, "price": 7}
    parent = recorded(Desk(answers=answers), tmp_path)
    refused(parent, place(parent, End, "stock") + 1, Desk(answers=answers), tmp_path, why)


def test_agents_that_share_state_and_are_not_declared_are_refused(tmp_path: Path) -> None:
    """The message names both, and the variable; declared, they run."""
    parent = recorded(Desk(options={}), tmp_path)
    for options in ({}, {"stateless": {"stock"}}):
        desk = Desk(options=options)
        why = "stock and price share `(answers|calls)` in their closures"
        refused(parent, 3, desk, tmp_path, why, error=SettingsError)
        assert desk.calls == []


def test_shared_state_is_what_can_change(tmp_path: Path) -> None:
    """A counter that one of them writes, an object, what a helper keeps; no constant, no team."""

    def team_of() -> dict[str, Any]:
        team: dict[str, Any] = {}
        counter, limit = 0, 3
        seen: list[int] = []

        async def first(x: int) -> int:
            nonlocal counter
            counter += 1
            return counter if counter < limit else len(team)

        async def second(x: int) -> int:
            return counter + limit + len(team)

        def keep(x: int) -> None:
            seen.append(x)

        async def third(x: int) -> int:
            keep(x)
            return limit

        async def fourth(x: int) -> int:
            return len(seen)

        team.update(first=first, second=second, third=third, fourth=fourth)
        return team

    team = team_of()
    assert [*shared_state(TeamCallables.of(team).places, team)] == [
        ("first", "second", "counter"), ("third", "fourth", "seen"),
    ]  # fmt: skip


def test_methods_share_what_their_object_has() -> None:
    """An object without attributes is none."""

    class Pair:
        async def ask(self) -> None: ...

        async def tell(self) -> None: ...

    empty, full = Pair(), Pair()
    full.seen = 1  # type: ignore[attr-defined]
    assert [*shared_state(TeamCallables.of(empty).places, empty)] == []
    assert [*shared_state(TeamCallables.of(full).places, full)] == [("ask", "tell", "self")]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "seat", "agent": "stock", "by": "price"}, "different work"),
        ({"kind": "resend", "events": ["e2"]}, "its caller waits"),
        ({"kind": "omit", "t": 3}, "its code decides"),
        ({"kind": "sooner", "event": "e2"}, "no delivery policy"),
        ({"kind": "wait", "seconds": 3}, "no time limit"),
        ({"kind": "tell", "agent": "nobody", "note": "x"}, "no agent 'nobody'"),
        ({"kind": "tell", "agent": "desk", "note": "x", "once": False}, "done once"),
        ({"kind": "again", "activation": "a99"}, "no activation 'a99'"),
        ({"kind": "again", "activation": "a1"}, "runs again in any case"),
        ({"kind": "again", "activation": "a2", "note": "x"}, "gets no note"),
        ({"kind": "again", "activation": "a4"}, "begins later than record 9"),
        ({"kind": "edit", "edit": {"payload": 1}}, "is no answer"),
        ({"kind": "edit", "at": 5, "edit": {"payload": 1}}, "is no answer"),
        ({"kind": "edit", "at": 11, "edit": {"to": ["price"]}}, "only the `payload`"),
        ({"kind": "edit", "at": 10, "edit": {"fates": []}}, "can be changed"),
        ({"kind": "edit", "at": 999, "edit": {"payload": 1}}, "is no answer"),
    ],
)
def test_other_changes_are_refused_with_the_reason(
    change: dict[str, Any], why: str, tmp_path: Path
) -> None:
    """Before anything runs."""
    parent, desk = recorded(Desk(), tmp_path), Desk()
    assert place(parent, Start, "stock") == 9
    refused(parent, 9, desk, tmp_path, why, {"at": 9, **change})
    assert desk.calls == []


def test_an_agent_that_is_not_declared_cannot_be_asked_again(tmp_path: Path) -> None:
    """It runs with and without that change."""
    parent, desk = recorded(Desk(), tmp_path), Desk(options={"stateless": {"desk"}})

    class Lone(Desk):
        def agents(self) -> dict[str, Any]:
            team = super().agents()

            async def stock(question: str) -> Any:
                return {"town": "Ulm"}

            team["stock"] = stock
            return team

    desk = Lone(options={"stateless": {"price", "desk"}})
    at = place(parent, Start, "stock")
    why = "stock is not declared stateless"
    refused(parent, at, desk, tmp_path, why, {"kind": "again", "at": at, "activation": "a2"})


@pytest.mark.parametrize("options", [{"gates": [object()]}, {"approve": True}])
def test_a_team_in_which_others_decide_is_refused(options: Any, tmp_path: Path) -> None:
    """What gates and people decided is not repeated."""
    parent, desk = recorded(Desk(), tmp_path), Desk()

    async def approve(proposed: Any) -> bool:
        return True

    options = {"approve": approve} if "approve" in options else options
    setup = Setup("wrapped", **options)
    desk.options |= {"mode": "heal", "setup": setup}
    refused(parent, 3, desk, tmp_path, "cannot run again", error=SettingsError)


def test_an_entry_is_of_one_team(tmp_path: Path) -> None:
    """One that wraps none, two, or ends too soon is told so."""
    parent = recorded(Desk(), tmp_path)

    async def nothing() -> None:
        raise OSError("no disk")

    async def two() -> None:
        for _ in range(2):
            dig.wrap(Desk().agents(), stateless={"stock", "price"})

    async def half() -> None:
        dig.wrap(Desk().agents(), stateless={"stock", "price"})

    wanted: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (nothing, ReplayError, "wraps no team .*no disk"),
        (two, SettingsError, "wraps two teams"),
        (half, ReplayError, "record 1 did not come again by the end"),
    ]
    for entry, error, why in wanted:
        with pytest.raises(error, match=why):
            anyio.run(Served(parent, 5, tmp_path / "again").run, entry, dig.unwrap)
    refused(parent, 999, Desk(), tmp_path, "there is no record 999")


def test_a_run_that_hangs_ends(tmp_path: Path) -> None:
    """Before the record it could not be repeated; after that it is a run that took too long."""
    parent = recorded(Desk(), tmp_path)

    class Hanging(Desk):
        def agents(self) -> dict[str, Any]:
            team = super().agents()

            async def price(stock: Any) -> Any:
                await anyio.sleep_forever()

            team["price"] = price
            return team

    desk = Hanging(options={"stateless": {"stock"}})
    end = len(parent.records)
    refused(parent, end, desk, tmp_path, "did not come again in")
    desk = Hanging(options={"stateless": {"stock"}})
    served = Served(parent, place(parent, Start, "price"), tmp_path / "late")

    async def entry() -> None:
        team = dig.wrap(desk.agents(), **desk.options)
        await team["desk"]("parcel")

    in_virtual_time(served.run, entry, dig.unwrap)
    assert served.directory is not None
    last = RecordedRun.read(served.directory).last
    assert isinstance(last, Finish) and last.outcome == "timeout"


def test_only_agents_of_the_team_can_be_stateless() -> None:
    """A wrong name is told when the team is wrapped."""
    with pytest.raises(SettingsError, match="stateless names 'shipping', which is no agent"):
        dig.wrap(Desk().agents(), stateless={"shipping"})


def test_what_a_caller_gets_beyond_json_is_noted(tmp_path: Path) -> None:
    """An incident, since the journal has the fields of a dataclass and not its class."""
    parent = recorded(Desk(answers={"stock": Town("Ulm"), "price": 7}), tmp_path)
    (row,) = parent.incidents
    assert row.detail == {"activation": "a2", "type": "Town"}
