"""The strip at the top of the page: what failed, what was done and what came of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from dig.show.cause import KnownCause, SuspectedPlace, TriedChange
from dig.show.page.writing import write_report
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from tests import failing
from tests.browser.conftest import Witness
from tests.browser.pages import box, opened, report, settled, state
from tests.histories import row, trace
from tests.traces.runs import directory

STUCK = TeamRun(seed=668, method="dig", profile=Profile.of(["error=0"]))


@pytest.fixture(scope="module")
def healed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team that gets stuck, and submits too early, and is healed."""
    return execute(STUCK, tmp_path_factory.mktemp("runs")).directory


def card(page: Page, key: str) -> Locator:
    """The card of one of the five answers."""
    return page.locator(f"#cards .{key}")


@pytest.fixture(autouse=True)
def _opened(page: Page, witness: Witness, healed: Path, tmp_path: Path) -> None:
    opened(page, report(healed, tmp_path / "r.html"))


def test_the_five_answers_stand_in_their_order(page: Page) -> None:
    """How it ended, what went wrong, who, the monitor, what next; with a sentence above."""
    assert page.locator("#cards h2").all_text_contents() == [
        "How it ended", "What went wrong", "Who", "What the monitor did", "Do next",
    ]  # fmt: skip
    expect(page.locator("#headline")).to_contain_text("Right answer after ")
    expect(card(page, "ended")).to_contain_text("counts all 10,000 elements right")
    expect(card(page, "monitor")).to_contain_text("That worked")


def test_a_click_in_the_answers_goes_there(page: Page) -> None:
    """To the finding of a step, and to the lane of an agent."""
    card(page, "wrong").get_by_role("button").last.click()
    chosen = settled(page, "s.selected")["selected"]
    assert chosen["kind"] == "finding"
    assert page.evaluate("id => dig.app.model.finding(id).pattern", chosen["id"]) == "ET"
    card(page, "who").get_by_role("button", name="agent-1").click()
    assert settled(page, "s.selected.kind === 'agent'")["selected"]["id"] == "agent-1"


def test_the_errors_of_a_healed_run_are_not_alarming_at_its_top(page: Page) -> None:
    """They were mended, and the answer is right."""
    expect(page.locator("#chips")).to_contain_text(", mended")
    expect(page.locator("#chips .bad")).to_have_count(0)


def test_a_click_on_the_command_copies_it(page: Page, healed: Path) -> None:
    """It can be pasted as it stands."""
    command = card(page, "next").locator(".command")
    expect(command).to_have_text(f"digmon show {healed.name} a1")
    command.click()
    expect(page.locator("#spoken")).to_have_text("Copied.")


def test_healing_has_marks_in_the_row_of_findings(page: Page) -> None:
    """One at the moment of each intervention; a click on it chooses the finding behind it."""
    marks = page.evaluate("dig.app.painter.marks.map(({ x, heal }) => [x, heal.us])")
    places = page.evaluate(
        "dig.app.model.heals.map((one) => dig.app.view.x(dig.app.layout.axis.place(one)))"
    )
    assert [x for x, _ in marks] == places
    at = box(page, "#canvas")
    page.mouse.click(at["x"] + marks[0][0] - 3, at["y"] + 44)
    assert settled(page, "s.selected")["selected"]["kind"] == "finding"
    assert state(page)["selected"]["id"] == page.evaluate("String(dig.app.model.heals[0].finding)")


def test_an_outage_is_a_line_through_the_picture(page: Page, tmp_path: Path) -> None:
    """Where the run went on, with what had happened; a moment before it does not show it."""
    breaks = [row(ts, "incident", what="owner", detail={"down_s": 5.0}) for ts in (1, 2)]
    later = row(4, "incident", what="mine", detail=None)
    run = directory(tmp_path, "broken", trace(*breaks, later))
    opened(page, report(run, tmp_path / "o.html"))
    shown = "dig.app.painter.outages.map(({ x, outage }) => [x - 0.5, outage.mark])"
    place = page.evaluate("Math.round(dig.app.view.x(2e6))")
    assert page.evaluate(shown) == [[place, "new owner after 5.0 s"]]
    page.evaluate("dig.app.setAt(1)")
    page.wait_for_function(f"() => !{shown}.length")


@pytest.mark.parametrize(
    ("score", "grade"),
    [
        ({"valid": True, "rmse": 0.0, "complete": True}, "good"),
        ({"valid": True, "rmse": 3.0, "complete": True, "wrong": 0.01}, "inexact"),
        ({"valid": True, "rmse": 3.0, "complete": True, "wrong": 0.3}, "bad"),
        ({"valid": True, "rmse": 0.0, "complete": False}, "bad"),
        ({"valid": False, "rmse": None, "complete": None}, "bad"),
        (None, "unknown"),
    ],
)
def test_only_a_good_answer_is_green(
    page: Page, healed: Path, tmp_path: Path, score: object, grade: str
) -> None:
    """Neither the card nor the star in the picture is, if the answer lacks something."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "trace.dig.jsonl").write_bytes((healed / "trace.dig.jsonl").read_bytes())
    (run / "result.json").write_text(json.dumps({"score": score}))
    opened(page, report(run, tmp_path / "s.html"))
    assert page.evaluate("dig.app.model.head.answers.grade") == grade
    green = "good" in str(card(page, "ended").get_attribute("class")).split()
    assert green is (grade == "good")
    star = page.evaluate(
        "dig.app.painter._colour(dig.app.model.events.find((one) => one.accepted !== undefined))"
    )
    assert star == ("error" if grade == "bad" else "final")


def test_the_task_and_the_cost_stand_in_the_overview(page: Page) -> None:
    """What is none of the five answers."""
    page.locator("#tab-overview").click()
    words = page.locator("#overview section").nth(1)
    for label in ("task", "cost"):
        expect(words.locator("dt", has_text=label)).to_have_count(1)


def test_a_diagnosis_is_told_with_its_candidates_and_what_was_tried(
    page: Page, witness: Witness, healed: Path, tmp_path: Path
) -> None:
    """In the overview: a click on a candidate goes there, and each change has its runs as dots."""
    places = (SuspectedPlace("a7", 34, "agent-3 lost e7"), SuspectedPlace(None, None, "agent-4"))
    tried = TriedChange("agent-3 is told", "validated", 2, 3, 0, 1)
    cause = KnownCause(34, "agent-3 lost e7 (confirmed)", places, (0, 6), (tried,))
    out = write_report(healed, tmp_path / "why.html", cause=cause).path
    opened(page, out.as_uri())
    assert page.evaluate("dig.app.painter.candidates") == ["a7"]  # by number, in the picture
    page.get_by_role("tab", name="Overview").click()
    expect(page.locator("table.tried td").first).to_have_text("\u25cf\u25cf\u25cb 2 of 3")
    expect(page.locator("#overview")).to_contain_text("The failure went on by a1 \u2192 a7")
    page.get_by_role("button", name="1 agent-3 lost e7").click()
    assert settled(page, "s.selected.id === 'a7'")["selected"]["kind"] == "activation"


def test_the_first_thing_said_about_a_failed_run_is_its_headline(
    page: Page, tmp_path: Path
) -> None:
    """In the line above the cards, marked as bad; the culprit and the next step stand below."""
    opened(page, report(directory(tmp_path, "r", failing.failed()), tmp_path / "f.html"))
    expect(page.locator("#headline")).to_have_text(f"Failed: {failing.FAILED}.".replace("`", ""))
    expect(page.locator("#headline .error")).to_have_text("Failed")
    assert box(page, "#headline")["y"] < box(page, "#cards")["y"]
    expect(card(page, "who")).to_contain_text("hotels failed")
    expect(card(page, "next")).to_contain_text("a4")
