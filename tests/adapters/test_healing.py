"""What is found in a team of plain callables, and what healing makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import anyio
import pytest

from dig import Create, Finding, Healer, Hold, InteractionGraph, Limits, Pending, Reroute
from dig.adapters import Mode, notes, notes_about
from dig.adapters.base.capabilities import MOST_BOUNCES
from dig.graph.records import REQUEST_FAILED

from .watching import Clock, Watched, watched

pytestmark = pytest.mark.anyio

Team = dict[str, Any]


def reasons(it: Watched) -> list[str]:
    """Why something lesser was done than was wished."""
    told = [row for row in it.rows("incident") if row["what"] == "downgraded"]
    return [row["detail"]["reason"] for row in told]


def passing_on(most: int = 9) -> Team:
    """Two departments that each say that the other is responsible."""
    team: Team = {}
    passed: list[str] = []

    async def desk(question: str) -> Any:
        return await team["refunds"](f"please: {question}")

    async def refunds(message: str) -> Any:
        return await department("billing", message)

    async def billing(message: str) -> Any:
        return await department("refunds", message)

    async def department(other: str, message: str) -> Any:
        if notes() or len(passed) == most:
            return f"{len(passed)} times, {len(notes())} notes"
        passed.append(other)
        return await team[other](message)

    team.update(desk=desk, refunds=refunds, billing=billing)
    return team


async def test_a_message_that_is_passed_round_is_found() -> None:
    """ER: an agent that sends on what it was sent has rerouted it; instances are named."""
    team = passing_on()
    with watched(team) as it:
        assert await team["desk"]("money?") == "9 times, 0 notes"
        it.must_be_sound()
        assert it.patterns == ["ER"] * 2  # at the fourth, and when there were twice as many
        assert it.session.findings[0].evidence == {
            "path": ["refunds", "billing", "refunds#2", "billing#2"]
        }


async def test_a_message_that_is_passed_round_comes_with_a_note() -> None:
    """ER healed: whoever is sent it once more is told where it has been."""
    team = passing_on()
    with watched(team, "heal") as it:
        assert await team["desk"]("money?") == "4 times, 1 notes"
        it.must_be_sound()
        assert it.patterns == ["ER"]


def asking_twice() -> Team:
    team: Team = {}

    async def boss(question: str) -> Any:
        found = [await team[name]("count the trees") for name in ("bob", "cyd")]
        return found, notes()

    async def worker(task: str) -> int:
        return 7

    async def other(task: str) -> int:
        return 7

    team.update(boss=boss, bob=worker, cyd=other)
    return team


async def test_what_is_asked_of_two_is_no_repetition() -> None:
    """Each call is an event of its own, also with equal arguments."""
    team = asking_twice()
    with watched(team, "heal") as it:
        assert await team["boss"]("how many?") == ([7, 7], ())
        it.must_be_sound()
        assert it.patterns == []
        calls = [row for row in it.rows("emit") if row.get("payload") == "count the trees"]
        assert [row["to"] for row in calls] == [["bob"], ["cyd"]]


async def test_work_that_is_done_twice_is_found_and_who_gets_it_is_told() -> None:
    """RSP: with `same_work`, what a turn asks of one agent and then of another is one event."""
    team = asking_twice()
    with watched(team, same_work=True) as it:
        assert await team["boss"]("how many?") == ([7, 7], ())
        it.must_be_sound()
        assert it.patterns == ["RSP"]
    with watched(team, "heal", same_work=True) as it:
        found, told = await team["boss"]("how many?")
        assert found == [7, 7]
        assert told[0].startswith("Part of this may be there twice")
        it.must_be_sound()


def early() -> Team:
    """Asks two and answers as soon as one has answered, unless it is told to wait for both."""
    team: Team = {}

    async def boss(parts: list[int]) -> int:
        got: list[int] = []
        first = anyio.Event()

        async def one(name: str, part: int) -> None:
            got.append(await team[name](part))
            first.set()

        tasks = background["tasks"]
        tasks.start_soon(one, "quick", parts[0])
        tasks.start_soon(one, "slow", parts[1])
        await first.wait()
        if notes():
            await anyio.sleep(5)
        return sum(got)

    async def quick(part: int) -> int:
        return part

    async def slow(part: int) -> int:
        await anyio.sleep(1)
        return part

    background: dict[str, Any] = {}
    team.update(boss=boss, quick=quick, slow=slow)
    team["background"] = background
    return team


async def ask_early(team: Team, **options: Any) -> tuple[int, Watched]:
    background = team.pop("background")
    with watched(team, clock=anyio.current_time, **options) as it:
        async with anyio.create_task_group() as tasks:
            background["tasks"] = tasks
            answer: int = await team["boss"]([1, 2])
        it.must_be_sound()
    return answer, it


async def test_an_early_answer_is_found() -> None:
    """ET: a turn that ends while an agent works on what it was asked has answered too early."""
    answer, it = await ask_early(early())
    assert (answer, it.patterns) == (1, ["ET"])


async def test_an_early_answer_is_found_though_the_same_was_asked_of_another() -> None:
    """ET: one of two equal questions is answered, and the other one is open still."""
    team = early()
    background = team.pop("background")
    with watched(team, clock=anyio.current_time) as it:
        async with anyio.create_task_group() as tasks:
            background["tasks"] = tasks
            assert await team["boss"]([1, 1]) == 1
        it.must_be_sound()
        assert it.patterns == ["ET"]
        slow = next(row for row in it.rows("emit") if row["to"] == ["slow"])
        assert it.session.findings[0].evidence["unresolved"] == [slow["event"]]


async def test_an_equal_question_after_a_failure_is_another_attempt() -> None:
    """With `same_work`, what an agent could not do is done by the next one for the first time."""
    team: Team = {}

    async def boss(question: str) -> Any:
        with suppress(ValueError):
            await team["bob"]("count the trees")
        return await team["cyd"]("count the trees")

    async def bob(task: str) -> int:
        raise ValueError(task)

    async def cyd(task: str) -> int:
        return 7

    team.update(boss=boss, bob=bob, cyd=cyd)
    with watched(team, same_work=True) as it:
        assert await team["boss"]("how many?") == 7
        it.must_be_sound()
        assert [finding.stage for finding in it.session.findings] == ["turn"]  # made good


@pytest.mark.parametrize("same", [True, False])
async def test_what_is_not_told_whole_is_never_taken_for_equal(same: bool) -> None:
    """Two things of a kind that JSON has not: neither the same work, nor what was passed on."""
    team: Team = {}

    async def lead(thing: Any) -> Any:
        return [await team[name](object()) for name in ("boss", "bob")]

    async def boss(thing: Any) -> Any:
        return [await team[name](object()) for name in ("bob", "cyd")]

    async def worker(thing: Any) -> int:
        return 7

    async def other(thing: Any) -> int:
        return 8

    team.update(lead=lead, boss=boss, bob=worker, cyd=other)
    with watched(team, same_work=same) as it:
        await team["lead"]("how many?")
        it.must_be_sound()
        assert it.patterns == []
        assert len([row for row in it.rows("emit") if row["type"] == "message"]) == 8
        fates = {one["fate"] for row in it.rows("end") for one in row["fates"]}
        assert fates == {"consume"} and not it.rows("redirect")


async def test_an_early_answer_goes_back_where_that_is_allowed() -> None:
    """ET healed: the agent is called again, with a note."""
    answer, it = await ask_early(early(), mode="heal", allow={"bounce"})
    assert (answer, it.patterns) == (3, ["ET"])
    assert [row["action"] for row in it.rows("heal")] == ["reroute"]


async def test_what_is_not_allowed_is_done_in_a_lesser_way_and_written_down() -> None:
    """A bounce that is not declared becomes a note, and an incident says so."""
    answer, it = await ask_early(early(), mode="heal")
    assert (answer, it.patterns) == (1, ["ET"])
    assert [row["action"] for row in it.rows("heal")] == ["inject"]
    incidents = {row["what"]: row["detail"] for row in it.rows("incident")}
    assert incidents["downgraded"]["reason"] == "bounce is not declared"
    # The answer stands, and the agent that it did not wait for is still at work.
    assert incidents.keys() == {"downgraded", "work_after_answer"}


async def ask_who_never_learns(team: Team) -> tuple[int, Watched]:
    """Ask somebody who begins something new with each answer, and waits for nothing."""
    calls: list[str] = []

    async def boss(question: str) -> int:
        calls.append(question)
        tasks.start_soon(team["slow"], len(calls))
        await anyio.sleep(0.1)
        return len(calls)

    async def slow(part: int) -> None:
        await anyio.sleep(20)

    team.update(boss=boss, slow=slow)
    with watched(team, "heal", allow={"bounce"}, clock=anyio.current_time) as it:
        async with anyio.create_task_group() as tasks:
            answer: int = await team["boss"]("first?")
            await team["boss"]("second?")
        it.must_be_sound()
    return answer, it


async def test_answers_to_one_request_go_back_twice_and_no_more() -> None:
    """The third early answer is handed over with a note; the trace says why it did not go back.

    The next request has two of its own.
    """
    answer, it = await ask_who_never_learns({})
    assert answer == 1 + MOST_BOUNCES == 3
    assert [row["action"] for row in it.rows("heal")] == ["reroute", "reroute", "inject"] * 2
    reason = "answers to this request have gone back 2 times already"
    assert reasons(it) == [reason, reason]


async def test_an_answer_goes_back_to_nobody_but_its_submitter() -> None:
    """A gate that gives the answer to somebody else is told no, also where bounces are allowed."""
    team = office()
    with watched(team, "heal", gates=[Senior()], allow={"bounce"}, clock=anyio.current_time) as it:
        assert await team["junior"]("money") == "junior on money"
        it.must_be_sound()
        assert reasons(it) == ["an answer goes back to who submitted it"]


async def test_an_exception_is_no_answer() -> None:
    """It goes to the caller, whatever is open, and the trace says which request has failed."""
    team: Team = {}

    async def boss(question: str) -> None:
        background.start_soon(team["slow"], question)
        await anyio.sleep(0.1)
        raise ValueError("no idea")

    async def slow(question: str) -> None:
        await anyio.sleep(1)

    team.update(boss=boss, slow=slow)
    with watched(team, "heal", allow={"bounce"}, clock=anyio.current_time) as it:
        async with anyio.create_task_group() as background:
            with pytest.raises(ValueError, match="no idea"):
                await team["boss"]("?")
        it.must_be_sound()
        assert it.rows("heal") == []
        failed = [row["detail"] for row in it.rows("incident") if row["what"] == REQUEST_FAILED]
        error = {"error": "ValueError: no idea"}
        assert failed == [{"how": "error", "event": "e1", "activation": "a3", **error}]


async def test_two_that_wait_for_each_other_are_found_and_told() -> None:
    """DL: nothing moves, and activations that last longer than their limit count no more.

    What healing says is brought at once, if somebody takes it.
    """
    team: Team = {}
    keys = {"left": anyio.Event(), "right": anyio.Event()}

    async def boss(question: str) -> str:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(team["left"], "go")
            tasks.start_soon(team["right"], "go right")
        return "done"

    async def left(task: str) -> None:
        await keys["right"].wait()
        keys["left"].set()

    async def right(task: str) -> None:
        await keys["left"].wait()
        keys["right"].set()

    team.update(boss=boss, left=left, right=right)
    clock, limits = Clock(), Limits(dl_window_s=5, activation_limit_s=20)
    said: list[str] = []

    def deliver(agent: str, note: str) -> None:
        said.append(agent)
        if agent == "left":
            keys["left"].set()

    with watched(team, "heal", clock=clock, limits=limits, deliver=deliver) as it:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(team["boss"], "?")
            await anyio.sleep(1)
            clock.now += 19
            it.session.tick()
            assert it.patterns == []
            clock.now += 2
            it.session.tick()
        it.must_be_sound()
        assert it.patterns == ["DL"]
        assert set(it.session.findings[0].evidence["waiting"]) == {"left", "right"}
        assert it.rows("heal")[0]["to"] == ["boss", "left", "right"]
        assert said == ["boss", "left", "right"]


# --- how a note is given --------------------------------------------------------------------


async def worked_with(mode: Mode, **options: Any) -> dict[str, Any]:
    """What the second of two that are asked the same is called with; the first has answered."""
    team: Team = {}
    seen: dict[str, Any] = {}

    async def desk(question: str) -> None:
        await team["ann"](f"> {question}", urgent=True)

    async def ann(message: str, *, urgent: bool, notes: tuple[str, ...] = ()) -> None:
        seen.update(message=message, urgent=urgent, notes=notes, asked=told(), data=notes_about())
        if len(seen["asked"]) == 0:
            await team["bob"](message, urgent=urgent)

    async def bob(message: str, *, urgent: bool) -> None:
        await team["ann"](message, urgent=urgent)

    from dig.adapters import notes as told

    team.update(desk=desk, ann=ann, bob=bob)
    with watched(team, mode, limits=Limits(reroute_limit=0 + 1), **options) as it:
        await team["desk"]("?")
        it.must_be_sound()
    return seen


async def test_a_note_comes_by_a_parameter_and_by_a_function() -> None:
    """An agent with a parameter `notes` is given them, and any agent may ask for them."""
    seen = await worked_with("heal")
    assert seen["message"] == "> ?"
    assert len(seen["notes"]) == 1
    assert seen["notes"] == seen["asked"]


async def test_what_a_note_is_about_can_be_read_as_data() -> None:
    """The pattern, the events, the agents and the work; outside of a turn there is nothing."""
    seen = await worked_with("heal")
    (about,) = seen["data"]
    assert (about.pattern, about.agents) == ("ER", ("desk", "ann", "bob"))
    assert {*about.events} == {*about.work}
    assert notes_about() == ()


async def test_annotate_puts_notes_where_a_team_wants_them() -> None:
    """A user says how a note becomes part of a call; the parameter is left alone then."""
    seen = await worked_with(
        "heal", annotate=lambda args, kwargs, notes: ((f"{args[0]} ({len(notes)})",), kwargs)
    )
    assert (seen["message"], seen["notes"]) == ("> ? (1)", ())


# --- healers of one's own -------------------------------------------------------------------


class Says(Healer):
    def __init__(self, *interventions: Any) -> None:
        self.interventions = interventions

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterable[Any]:
        return [one(finding.subject["event"]) for one in self.interventions]


async def test_what_a_plain_team_cannot_do_is_written_down() -> None:
    """A reroute becomes a note, and the call goes where it was to go."""
    team = passing_on()
    healers = {"ER": Says(lambda event: Reroute(event, "to you", ("desk",)))}
    with watched(team, "heal", healers=lambda: healers) as it:
        assert await team["desk"]("money?") == "4 times, 1 notes"
        it.must_be_sound()
        lesser = [row["detail"].get("instead") for row in it.rows("incident")]
        assert [instead for instead in lesser if instead] == ["inject"]


class Senior:
    """A gate that sends what is about money to somebody else."""

    name = "senior"

    def hold(self, graph: InteractionGraph, event: Pending) -> Hold | None:
        return Hold(5.0) if "money" in str(event.payload) else None

    async def decide(self, event: Pending) -> Iterable[Reroute]:
        return [Reroute(event.id, "you know better", ("senior",))]


def office() -> Team:
    team: Team = {}

    async def desk(questions: list[str]) -> list[str]:
        answers: list[str] = []

        async def ask(question: str) -> None:
            answers.append(await team["junior"](question))

        async with anyio.create_task_group() as tasks:
            for question in questions:
                tasks.start_soon(ask, question)
        return answers

    async def junior(question: str) -> str:
        return f"junior on {question}"

    async def senior(question: str) -> str:
        told = len(notes())
        await anyio.sleep(1)
        return f"senior on {question}, {told} notes"

    team.update(desk=desk, junior=junior, senior=senior)
    return team


async def test_a_call_goes_to_another_agent_where_that_is_allowed() -> None:
    """The other is called with the same arguments and the note; its answer is the call's."""
    team = office()
    allow = {"reroute"}
    with watched(team, "heal", gates=[Senior()], allow=allow, clock=anyio.current_time) as it:
        answers = await team["desk"](["tea", "my purse"])
        assert sorted(answers) == ["junior on my purse", "junior on tea"]
        assert await team["desk"](["all money"]) == ["senior on all money, 1 notes"]
        it.must_be_sound()
        assert "redirect" in {record.kind for record in it.trace}


async def test_a_call_goes_to_nobody_who_is_at_work_and_an_answer_to_who_has_asked() -> None:
    """What is not possible at the moment becomes a note, and an incident says why."""
    team = office()
    allow = {"reroute"}
    with watched(team, "heal", gates=[Senior()], allow=allow, clock=anyio.current_time) as it:
        answers = await team["desk"](["money 1", "money 2"])
        assert sorted(answer.split()[0] for answer in answers) == ["junior", "senior"]
        it.must_be_sound()
        assert {*reasons(it)} == {
            "senior is at work",
            "an answer goes to who has asked",
            "bounce is not declared",  # the answer to the outside is about money, too
        }


async def test_a_system_event_is_told_to_nobody_after_the_answer() -> None:
    """What healing says about a request is no business of the turns for later ones."""
    team = passing_on()
    heard: list[tuple[str, ...]] = []

    async def listener(message: str) -> None:
        heard.append(notes())

    team["listener"] = listener
    healers = {"ER": Says(lambda event: Create("listen!", ("listener",)))}
    with watched(team, "heal", healers=lambda: healers) as it:
        await team["desk"]("money?")
        await team["listener"]("hello")
        await team["listener"]("hello again")
        assert [row["action"] for row in it.rows("heal")] == ["create"] * 2
        assert heard == [(), ()]
        it.must_be_sound()
