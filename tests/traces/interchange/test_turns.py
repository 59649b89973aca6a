"""Imported conversations as they are judged: healthy ones pass, and what went wrong is named."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dig.detectors.finding import Finding
from dig.detectors.patterns import standard
from dig.detectors.thresholds import Thresholds
from dig.graph.records import Run
from dig.traces.interchange.imports import import_file, save
from dig.traces.run import RecordedRun
from tests.lab.test_reference import TEAM

Row = dict[str, Any]

LIMITS = Thresholds().limits
TURNS = LIMITS.livelock_turns or 0
WORKERS = [f"w{number}" for number in range(1, 20)]
SILENT = ["w3", "w8", "w12", "w17"]


def say(sender: str, to: str | list[str], text: str, at: float | None = None) -> Row:
    row = {"id": f"{sender}-{text}", "from": sender, "to": to, "text": text}
    return row if at is None else row | {"at": at}


def imported(folder: Path, rows: list[Row]) -> RecordedRun:
    log = folder / "log.json"
    log.write_text(json.dumps(rows), encoding="utf-8")
    path = save(import_file(log), folder / "log.dig.jsonl")
    return RecordedRun.read(path, detectors=standard())


def worth(run: RecordedRun) -> list[tuple[str, str]]:
    return [(finding.pattern, finding.severity or "") for finding in run.found]


def limits_of(run: RecordedRun) -> Any:
    (first, *_) = run.records
    assert isinstance(first, Run)
    return first.limits


# --- healthy sessions ---


def requests() -> list[Row]:
    return [
        row
        for n in range(10)
        for row in (say("user", "ann", f"question {n}", 400 * n + 1),
                    say("ann", "user", f"answer {n}", 400 * n + 51))
    ]  # fmt: skip


def conversation() -> list[Row]:
    rows = [say("user", "writer", "a text, please", 1)]
    for n in range(10):
        rows.append(say("writer", "critic", f"draft {n}", 46 + 90 * n))
        rows.append(say("critic", "writer", f"critique {n}", 91 + 90 * n))
    return [*rows, say("writer", "user", "the text", 1000)]


def debate() -> list[Row]:
    rows = [say("user", "chair", "is it so?", 1), say("chair", ["pro", "con"], "the question", 20)]
    for n in range(4):
        rows.append(say("pro", ["con", "chair"], f"for {n}", 60 + 80 * n))
        rows.append(say("con", ["pro", "chair"], f"against {n}", 100 + 80 * n))
    return [*rows, say("pro", "chair", "closing", 401), say("chair", "user", "it is so", 451)]


def broadcast() -> list[Row]:
    ideas = [say(name, "lead", f"idea of {name}", 60 + 50 * n) for n, name in enumerate("abcd", 1)]
    asked = [say("user", "lead", "a plan, please", 1), say("lead", "*", "ideas?", 20)]
    return [*asked, *ideas, say("lead", "user", "the plan", 330)]


def pipeline() -> list[Row]:
    return [
        row
        for n in range(6)
        for row in (say("user", "a", f"document {n}", 500 * n + 1),
                    say("a", "b", f"cut {n}", 500 * n + 31),
                    say("b", "c", f"read {n}", 500 * n + 70),
                    say("c", "user", f"done {n}", 500 * n + 110))
    ]  # fmt: skip


def interrupted() -> list[Row]:
    return [say("user", "ann", "one thing", 1), say("user", "ann", "and another", 60),
            say("ann", "user", "both", 100)]  # fmt: skip


def spawner(
    gap: float, slowest: float, silent: list[str], *, seed: int = 1, is_thread: bool = False
) -> list[Row]:
    """A lead that asks nineteen workers `gap` seconds apart, and answers 45 s after the last."""
    rng = random.Random(seed)
    rows = []
    for number, name in enumerate(WORKERS):
        at = 1 + number * gap
        rows.append(say("lead", name, f"part {name}", at) | {"reply_to": "user-all parts"})
        if name not in silent:
            report = say(name, "lead", f"report {name}", at + rng.uniform(slowest / 3, slowest))
            rows.append(report | {"reply_to": f"lead-part {name}"})
    rows.sort(key=lambda row: row["at"])
    answer = say("lead", "user", "all done", rows[-1]["at"] + 45) | {"reply_to": "user-all parts"}
    rows = [say("user", "lead", "all parts", 0), *rows, answer]
    return rows if is_thread else [{k: row[k] for k in row if k != "reply_to"} for row in rows]


SPAWNING = {"at once": (0, 200), "in a row": (1, 55), "meanwhile": (2, 30), "in turn": (40, 20)}


@pytest.mark.parametrize("rows", [requests, conversation, debate, broadcast, pipeline, interrupted])
@pytest.mark.parametrize("is_timed", [True, False], ids=["times", "no times"])
def test_a_healthy_session_raises_no_alarm(
    tmp_path: Path, rows: Callable[[], list[Row]], is_timed: bool
) -> None:
    """Agents that take 30 s and more are at work meanwhile, and no work waits without anybody."""
    log = rows()
    if not is_timed:
        log = [{k: row[k] for k in row if k != "at"} for row in log]
    run = imported(tmp_path, log)
    assert [pair for pair in worth(run) if pair[1] != "notice" or pair[0] != "RSP"] == []
    assert len(run.activations) >= len({row["from"] for row in log} - {"user"})


@pytest.mark.parametrize("is_thread", [True, False], ids=["replies", "no replies"])
@pytest.mark.parametrize("way", SPAWNING)
def test_a_spawner_that_waits_for_all_raises_nothing(
    tmp_path: Path, way: str, is_thread: bool
) -> None:
    assert worth(imported(tmp_path, spawner(*SPAWNING[way], [], is_thread=is_thread))) == []


@pytest.mark.parametrize(
    "silent", [SILENT, WORKERS[:4], WORKERS[-4:]], ids=["some", "first", "last"]
)
@pytest.mark.parametrize("is_thread", [True, False], ids=["replies", "no replies"])
@pytest.mark.parametrize("way", SPAWNING)
def test_an_answer_without_four_of_nineteen_reports_names_the_four(
    tmp_path: Path, way: str, is_thread: bool, silent: list[str]
) -> None:
    """However the calls and the reports lie between each other, it is an error."""
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        run = imported(folder, spawner(*SPAWNING[way], silent, seed=seed, is_thread=is_thread))
        (early,) = [finding for finding in run.found if finding.pattern == "ET"]
        assert early.severity == "error"
        assert early.evidence["unresolved"] == [f"lead-part {name}" for name in silent]


# --- rings ---


def ring(count: int, agents: str, text: Callable[[int], str], *, is_timed: bool) -> list[Row]:
    rows = [say("user", agents[0], "solve it")]
    for n in range(count):
        sender, to = agents[n % len(agents)], agents[(n + 1) % len(agents)]
        rows.append(say(sender, to, text(n)) | {"id": f"h{n}"})
    return [row | {"at": 4.5 * n} for n, row in enumerate(rows)] if is_timed else rows


@pytest.mark.parametrize("is_timed", [True, False], ids=["times", "no times"])
@pytest.mark.parametrize("agents", ["ab", "abc"])
@pytest.mark.parametrize("count", [15, 30, 100, 300])
def test_a_ring_that_says_the_same_raises_loop(
    tmp_path: Path, count: int, agents: str, is_timed: bool
) -> None:
    run = imported(tmp_path, ring(count, agents, lambda n: "your turn", is_timed=is_timed))
    assert "LOOP" in {pattern for pattern, _ in worth(run)}


@pytest.mark.parametrize("is_timed", [True, False], ids=["times", "no times"])
@pytest.mark.parametrize("agents", ["ab", "abc"])
@pytest.mark.parametrize("count", [TURNS - 1, TURNS, 2 * TURNS, 300])
def test_a_ring_in_other_words_raises_livelock_from_the_limit_on(
    tmp_path: Path, count: int, agents: str, is_timed: bool
) -> None:
    """Each hand-off is one turn: imported, it is neither doubled nor cut."""
    run = imported(tmp_path, ring(count, agents, lambda n: f"thought {n}", is_timed=is_timed))
    raised = [finding for finding in run.found if finding.pattern == "LIVELOCK"]
    assert [f.evidence["turns"] for f in raised] == _doublings(TURNS, count)


def _doublings(least: int, most: int) -> list[int]:
    return [least * 2**n for n in range(10) if least * 2**n <= most]


# --- the shape of turns ---


def test_a_turn_that_sends_before_it_ends_is_a_chain(tmp_path: Path) -> None:
    """Each message has its own time; a notice from the sender to itself leads on to the next."""
    rows = [say("user", "lead", "go", 0), say("lead", "a", "one", 3), say("lead", "b", "two", 7)]
    run = imported(tmp_path, rows)
    first, second = run.activations.values()
    assert first.outputs == ("lead-one", "onward-1")
    assert run.fates(second.id) == {"onward-1": "consume"}
    assert run.events["onward-1"].type == "notice"
    assert not run.events["onward-1"].is_work
    assert [run.times[run.events[name].t] for name in ("lead-one", "lead-two")] == [
        3_000_000, 7_000_000,
    ]  # fmt: skip


def test_a_turn_does_not_go_on_with_what_has_another_origin(tmp_path: Path) -> None:
    """A continuation and what comes from elsewhere are not put together."""
    rows = [say("user", "lead", "go", 0), say("user", "a", "go on", 1), say("a", "x", "hello", 2),
            say("lead", "a", "one", 3), say("lead", "b", "two", 4), say("a", "lead", "hi", 5),
            say("lead", "c", "three", 6)]  # fmt: skip
    rows[5] |= {"reply_to": "user-go on"}
    run = imported(tmp_path, rows)
    onward = [event.agent for event in run.events.values() if event.type == "notice"]
    assert sorted(onward, key=str) == ["a", "lead"]  # after `hello` and after `one`, not `two`
    assert "consumption" not in {finding.stage for finding in run.found}


def test_messages_that_nobody_prompted_are_turns_of_their_own(tmp_path: Path) -> None:
    """There is nothing to go on from, so they get no lineage."""
    rows = [say("a", "lead", "one", 0), say("a", "lead", "two", 1), say("b", "lead", "three", 2),
            say("b", "lead", "four", 3), say("lead", "a", "thanks", 4)]  # fmt: skip
    run = imported(tmp_path, rows)
    assert set(run.events) == {row["id"] for row in rows}
    assert worth(run) == []


def test_an_activation_begins_with_the_message_that_completes_what_it_uses(tmp_path: Path) -> None:
    rows = [say("user", "ann", "go", 0), say("ann", "user", "done", 50.5)]
    (activation,) = imported(tmp_path, rows).activations.values()
    assert (activation.us, activation.end and activation.end.us) == (0, 50_500_000)


def test_who_never_answers_is_not_at_work(tmp_path: Path) -> None:
    """Work that nobody answers while all are silent is a deadlock, as it was."""
    rows = [say("user", "ann", "go", 0), say("user", "bob", "go on", 100.5)]
    assert ("DL", "error") in worth(imported(tmp_path, rows))


# --- limits ---


def test_an_imported_trace_is_judged_by_our_limits(tmp_path: Path) -> None:
    """They stand in its first row: LOOP, LIVELOCK, STALL and LATE are on."""
    assert limits_of(imported(tmp_path, requests())) == LIMITS
    whole = json.loads(TEAM.read_text())
    (first, *_) = import_file(TEAM).records
    assert isinstance(first, Run)
    assert first.limits.loop_limit == LIMITS.loop_limit
    assert first.limits.livelock_turns == LIMITS.livelock_turns
    for event in whole["events"].values():
        event["timestamps"] = [s for s in event["timestamps"] if s["label"] != "delivered"]
    for activation in whole["activations"].values():
        activation["started_at"] = None
    poor = tmp_path / "poor.json"
    poor.write_text(json.dumps(whole))
    (first, *_) = import_file(poor).records
    assert isinstance(first, Run)
    assert (first.limits.late_window_s, first.limits.stall_factor) == (None, None)


@pytest.mark.parametrize(
    ("ats", "is_on"),
    [([None] * 20, True), ([*range(19), None], False), ([60 * n for n in range(20)], False),
     ([*range(20)], True)],
    ids=["no times", "one is missing", "whole minutes", "seconds"],
)  # fmt: skip
def test_stall_is_off_where_times_cannot_tell_how_long_a_turn_lasted(
    tmp_path: Path, ats: list[int | None], is_on: bool
) -> None:
    rows = [say("a", "b", str(n)) | {"at": at} for n, at in enumerate(ats)]
    limits = limits_of(imported(tmp_path, rows))
    assert limits.stall_factor == (LIMITS.stall_factor if is_on else None)
    assert limits.loop_limit == LIMITS.loop_limit


def test_a_turn_that_lasts_far_too_long_is_stalled(tmp_path: Path) -> None:
    """STALL looks at imported turns as at any other."""
    rows = []
    for n in range(8):
        rows.append(say("user", "ann", f"question {n}", 10 * n + 0.5))
        rows.append(say("ann", "user", f"answer {n}", 10 * n + 2.5))
    rows += [say("user", "ann", "last", 100.5), say("ann", "user", "at last", 1000.5)]
    stalled: list[Finding] = [f for f in imported(tmp_path, rows).found if f.pattern == "STALL"]
    assert [finding.evidence["agent"] for finding in stalled] == ["ann"]
