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

STUCK = TeamRun(seed=604, method="dig", profile=Profile.of(["error=0"]))


@pytest.fixture(scope="module")
def healed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team that gets stuck, and submits too early, and is healed."""
    return execute(STUCK, tmp_path_factory.mktemp("runs")).directory


def card(page: Page, label: str) -> Locator:
    return page.locator("#cards button", has=page.locator(".label", has_text=label))


@pytest.fixture(autouse=True)
def _opened(page: Page, witness: Witness, healed: Path, tmp_path: Path) -> None:
    opened(page, report(healed, tmp_path / "r.html"))


def test_the_cards_tell_the_run_from_left_to_right(page: Page) -> None:
    """Each failure with its healing, and the answer; the line above says how it ended."""
    labels = page.locator("#cards .label").all_inner_texts()
    assert [label.split(" · ")[0] for label in labels] == [
        "Deadlock (DL)", "Healed", "Early termination (ET)", "Held", "Answer",
    ]  # fmt: skip
    expect(page.locator("#headline")).to_contain_text("counts all 10,000 elements right")


def test_a_click_on_a_card_goes_there(page: Page) -> None:
    """To the finding, to what healing sent, and to the answer that was accepted."""
    card(page, "Early termination").click()
    assert settled(page, "s.selected")["selected"]["kind"] == "finding"
    card(page, "Healed").click()
    assert settled(page, "s.selected.kind === 'event'")["tab"] == "details"
    card(page, "Answer").click()
    accepted = page.evaluate("dig.app.model.events.find((one) => one.accepted).id")
    assert settled(page, f"s.selected.id === '{accepted}'")["selected"]["kind"] == "event"


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
        ({"valid": True, "rmse": 3.0, "complete": True}, "inexact"),
        ({"valid": True, "rmse": 0.0, "complete": False}, "bad"),
        ({"valid": False, "rmse": None, "complete": None}, "bad"),
        (None, "unknown"),
    ],
)
def test_only_a_good_answer_is_green(
    page: Page, healed: Path, tmp_path: Path, score: object, grade: str
) -> None:
    """Neither the card nor the word `submitted` above it is, if the answer lacks something."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "trace.dig.jsonl").write_bytes((healed / "trace.dig.jsonl").read_bytes())
    (run / "result.json").write_text(json.dumps({"score": score}))
    opened(page, report(run, tmp_path / "s.html"))
    assert grade in str(card(page, "Answer").get_attribute("class")).split()
    chip = page.locator("#chips li", has_text="submitted")
    assert ("good" in str(chip.get_attribute("class"))) is (grade == "good")


def test_the_verdict_stands_in_the_overview(page: Page) -> None:
    """All of its lines, as in the terminal."""
    page.locator("#tab-overview").click()
    words = page.locator("#overview section").first
    for label in ("task", "end", "failure", "healing", "cost"):
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
    """In the line above the cards, marked as bad; no card says the same, or that nothing failed."""
    opened(page, report(directory(tmp_path, "r", failing.failed()), tmp_path / "f.html"))
    headline = page.locator("#headline.bad")
    expect(headline).to_have_text(failing.FAILED)
    assert box(page, "#headline")["y"] < box(page, "#cards")["y"]
    labels = page.locator("#cards .label").all_inner_texts()
    assert [label.split(" · ")[0] for label in labels] == ["No answer"]
