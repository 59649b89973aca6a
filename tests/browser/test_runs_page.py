"""The list of runs, in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dig.show.server import shelf
from dig.show.server.server import Server
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE
from tests import failing
from tests.browser.conftest import GONE, Witness
from tests.browser.pages import visited
from tests.histories import arrive, row
from tests.show.server.client import serving
from tests.traces.journals import story
from tests.traces.runs import directory, hasty, solved


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three runs."""
    directory(tmp_path, "one", solved(), method="dig", began="2026-01-01T10:00:00")
    directory(tmp_path, "two", hasty(), method="mas", began="2026-01-02T10:00:00")
    directory(tmp_path, "ten", [*hasty()[:4], {**hasty()[3], "t": 4}], method="mas")
    return tmp_path


@pytest.fixture
def page(fresh_page: Page) -> Page:
    """A page whose clock is the test's."""
    return fresh_page


@pytest.fixture(autouse=True)
def no_age(monkeypatch: pytest.MonkeyPatch, page: Page) -> None:
    """The list is made anew each time it is asked for, which is when the test lets time pass."""
    monkeypatch.setattr(shelf, "LEAST_AGE_S", 0)
    monkeypatch.setattr(shelf, "PATIENCE", 0)
    page.clock.install()


@pytest.fixture
def server(page: Page, folder: Path) -> Iterator[Server]:
    """A server of them."""
    with visited(page, folder) as server:
        yield server


def names(page: Page) -> list[str]:
    """The runs in the list, in order."""
    return page.locator("tbody th a").all_inner_texts()


def test_the_list_shows_every_run_and_asks_nobody_else(
    page: Page, witness: Witness, server: Server
) -> None:
    """It loads without an error, and no request leaves it."""
    page.goto(server.address)
    expect(page.locator("tbody tr")).to_have_count(3)
    assert sorted(names(page)) == ["one", "ten", "two"]
    assert page.locator("#count").inner_text() == "3 runs"
    expect(page.locator("tr.broken td.ended")).to_contain_text("broken: ")
    assert witness.strangers(server.guard.root) == []


def test_the_list_is_sorted_by_a_heading_and_filtered_by_words(
    page: Page, witness: Witness, server: Server
) -> None:
    """With the keyboard as with the mouse."""
    page.goto(server.address)
    expect(page.locator("tbody tr")).to_have_count(3)
    page.get_by_role("button", name="method").press("Enter")
    assert names(page) == ["one", "ten", "two"] or names(page) == ["one", "two", "ten"]
    page.get_by_role("button", name="method").press("Enter")
    assert names(page)[-1] == "one"
    page.get_by_role("button", name="run").click()
    assert names(page) == ["one", "ten", "two"]
    page.get_by_label("Filter").fill("mas")
    assert names(page) == ["ten", "two"]
    assert page.locator("#count").inner_text() == "2 of 3 runs"


def test_a_run_tells_how_good_its_answer_is_and_two_are_compared(
    page: Page, witness: Witness, server: Server, folder: Path
) -> None:
    """Scores have colours, values of a column are chosen, and two runs open as one page."""
    (folder / "one" / "result.json").write_text(
        json.dumps({"score": {"valid": True, "rmse": 0.5, "complete": True}})
    )
    page.goto(server.address)
    row = page.locator("tbody tr", has_text="one")
    expect(row.get_by_text("rmse 0.5 (0 is right)")).to_be_visible()
    page.get_by_label("method").select_option("mas")
    assert sorted(names(page)) == ["ten", "two"]
    page.get_by_label("method").select_option("")
    expect(page.get_by_role("button", name="Compare two")).to_be_disabled()
    for name in ("ten", "one", "two"):  # the two that were chosen last
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("button", name="Compare two").click()
    page.wait_for_function("() => window.dig?.state.frames > 0")
    expect(page.locator("#with")).to_have_text("With the monitor")
    expect(page.locator("#without")).to_contain_text("Without the monitor: ")
    page.get_by_role("link", name="Runs").click()
    expect(page.locator("tbody tr")).to_have_count(3)


def test_a_wrapped_team_is_shown_with_its_name_and_its_requests(
    page: Page, witness: Witness, tmp_path: Path
) -> None:
    """In the list and above its picture: neither `wrapped` nor that its session was closed."""
    begun = row(0, "run", run="wrapped", agents=["a"], session=True, memory=True, version=1)
    rows = [begun, *arrive(1, "e1", None, "a"), row(2, "finish", outcome="stopped")]
    rows = [{**one, "t": t} for t, one in enumerate(rows)]
    directory(tmp_path, "w", rows, team="a LangGraph graph")
    with visited(page, tmp_path) as server:
        page.goto(server.address)
        line = page.locator("tbody tr")
        expect(line).to_contain_text("a LangGraph graph")
        expect(line.locator("td.bad").first).to_have_text("No answer after 2.0 s.")
        page.get_by_role("link", name="w", exact=True).click()
        expect(page.locator("#chips")).to_contain_text("a LangGraph graph")
        expect(page.locator("#headline")).to_have_text("No answer after 2.0 s.")
        ended = page.locator("#cards .ended")
        expect(ended).to_contain_text("the request was left without an answer. The session lasted")
        expect(page.locator("#chips")).not_to_contain_text(re.compile("wrapped|stopped"))


def test_a_new_run_comes_into_the_list(
    page: Page, witness: Witness, server: Server, folder: Path
) -> None:
    """And is in progress as long as it is written."""
    page.goto(server.address)
    expect(page.locator("tbody tr")).to_have_count(3)
    (folder / "new").mkdir()
    journal = Journal(folder / "new" / TRACE)
    journal(story()[0])
    page.clock.run_for(2000)
    expect(page.locator("tr.in-progress", has_text="new")).to_be_visible()
    for record in story()[1:]:
        journal(record)
    journal.close()
    page.clock.run_for(2000)
    expect(page.locator("tr.ended", has_text="new")).to_be_visible()


def test_when_the_server_ends_the_list_says_so(page: Page, witness: Witness, folder: Path) -> None:
    """And goes on when there is one again."""
    witness.allowed += GONE
    with serving(folder) as server:
        page.goto(server.address)
        expect(page.locator("tbody tr")).to_have_count(3)
    page.clock.run_for(2000)
    expect(page.locator("#count")).to_have_text("the server does not answer")
    with serving(folder, port=server.server_port):
        page.clock.run_for(2000)
        expect(page.locator("#count")).to_have_text("3 runs")


def test_names_of_runs_are_text(page: Page, witness: Witness, tmp_path: Path) -> None:
    """Whatever a directory is called."""
    hostile = "<img src=x onerror=alert(1)> & \u202e \"'"
    directory(tmp_path, hostile, solved(), method="<script>alert(1)</script>")
    with visited(page, tmp_path) as server:
        page.goto(server.address)
        expect(page.locator("tbody tr")).to_have_count(1)
        assert page.locator("tbody th a").text_content() == hostile
        assert page.locator("img, script:not([src])").count() == 0
        href = page.locator("tbody th a").get_attribute("href")
        assert page.evaluate("async (url) => (await fetch(url)).status", href) == 200
        assert json.loads(page.evaluate("JSON.stringify(digRuns.runs.length)")) == 1


def test_the_list_says_what_failed_and_what_waits_for_a_person(
    page: Page, folder: Path, server: Server
) -> None:
    """The sentence behind the verdict; who waits, since when and for what at the pointer."""
    directory(folder, "failed", failing.failed())
    directory(folder, "waits", failing.waiting(), began="2026-01-02T10:00:00+00:00")
    page.goto(server.address)
    rows = {
        name: page.locator("tr", has=page.get_by_role("link", name=name, exact=True))
        for name in ("failed", "waits")
    }
    failed = failing.FAILED.replace("`", "")
    expect(rows["failed"].locator("td.ended")).to_have_text(f"Failed: {failed}.")
    waiting = rows["waits"].locator("[data-label=waiting]")
    expect(waiting).to_have_text("1")
    since = "2026-01-02T10:00:03.500000+00:00"
    expect(waiting).to_have_attribute("title", f"buyer since {since}: Buy the tickets")


def test_a_run_goes_by_its_task_and_is_chosen_by_what_went_wrong(
    page: Page, witness: Witness, tmp_path: Path
) -> None:
    """A name that a person gave stays; an id stands behind the task, and is found all the same."""
    directory(tmp_path, "20260101-100000-abcdef", solved(), began="2026-01-01T10:00:00.123+00:00")
    early = directory(tmp_path, "mine", hasty())
    (early / "note.txt").write_text("look here")
    directory(tmp_path, "failed", failing.failed())
    with visited(page, tmp_path) as server:
        page.goto(server.address)
        expect(page.locator("tbody tr")).to_have_count(3)
        assert sorted(names(page)) == ["adding, 2026-01-01 10:00:00", "failed", "mine"]
        page.get_by_label("Filter").fill("abcdef")
        assert names(page) == ["adding, 2026-01-01 10:00:00"]
        page.get_by_label("Filter").fill("look here")
        assert names(page) == ["mine"]
        page.get_by_label("Filter").fill("")
        for choice, value, name in (
            ("pattern", "ET", "mine"),
            ("verdict", "Failed", "failed"),
            ("agent", "hotels", "failed"),
        ):
            page.get_by_label(choice, exact=True).select_option(value)
            assert names(page) == [name]
            page.get_by_label(choice, exact=True).select_option("")


@pytest.mark.parametrize("width", [390, 720, 1024, 1440])
def test_no_text_of_the_list_is_out_of_reach(page: Page, folder: Path, width: int) -> None:
    """A narrow screen has no table: all that a run has stands below one another."""
    page.set_viewport_size({"width": width, "height": 800})
    with visited(page, folder) as server:
        page.goto(server.address)
        expect(page.locator("tbody tr")).to_have_count(3)
        sizes = page.evaluate("[document.body.scrollWidth, innerWidth]")
        assert sizes[0] <= sizes[1]
        ends = "[...document.querySelectorAll('td.ended')]"
        assert page.evaluate(f"{ends}.filter((e) => e.scrollWidth > e.clientWidth).length") == 0
