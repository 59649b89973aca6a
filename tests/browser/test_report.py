"""The report of a run, opened from disk: it loads, moves, folds, and looks as one wants it to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import HEIGHT, WIDTH, Witness
from tests.browser.pages import Oracle, box, drawn, opened, repeating, report, settled, state, width
from tests.histories import row, trace
from tests.traces.runs import store


@pytest.fixture
def canvas(page: Page, witness: Witness, address: str) -> Iterator[dict[str, float]]:
    """Where on the opened page the picture is."""
    opened(page, address)
    yield box(page, "#canvas")
    assert witness.strangers(address) == []


def test_it_shows_the_whole_run_and_asks_nobody(
    page: Page, witness: Witness, run: Path, address: str
) -> None:
    """As many nodes and edges as the graph has, without an error, a warning or a request."""
    found, oracle = opened(page, address), Oracle(run)
    assert found["counts"]["events"] == len(oracle.nodes("event"))
    assert found["counts"]["activations"] == len(oracle.nodes("activation"))
    assert found["counts"]["edges"] == oracle.deliveries() == found["drawn"]["edges"]
    assert (found["live"], found["fitted"], found["at"]) == (None, True, None)
    assert witness.requests == [address]
    expect(page.locator("#chips")).to_contain_text("simulated agents")


def test_it_says_which_parts_of_the_monitor_failed(page: Page, tmp_path: Path) -> None:
    """A line above the findings for each part, with its number: without it, less was found."""
    failed = {"who": "detector <b>X</b>", "what": "raised KeyError('e1')"}
    rows = [row(n, "incident", what="failed", detail=failed) for n in (1, 2)]
    run = store(tmp_path / "broken.dig.jsonl", trace(*rows, row(3, "finish", outcome="stopped")))
    assert opened(page, report(run, tmp_path / "page.html"))["failed"] == ["detector <b>X</b>"]
    line = page.locator("#failed li")
    expect(line).to_be_visible()
    expect(line).to_have_text(
        "detector <b>X</b> failed: raised KeyError('e1') (2 times; this is the latest)"
    )


def test_it_works_without_a_network(browser: Browser, address: str) -> None:
    """It can be mailed."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    assert opened(page, address)["counts"]["agents"] == 6
    context.close()


@pytest.mark.parametrize("by", ["wheel", "keys", "buttons", "double click"])
def test_one_zooms_in_and_back_to_all_of_it(page: Page, canvas: dict[str, float], by: str) -> None:
    """And what is below the pointer stays there."""
    before = state(page)
    x, y = canvas["x"] + 500, canvas["y"] + 200
    if by == "wheel":
        page.mouse.move(x, y)
        place = page.evaluate("dig.app.view.place(500)")
        page.mouse.wheel(0, -400)
        settled(page, "!s.fitted")
        assert page.evaluate("dig.app.view.place(500)") == pytest.approx(place)
    elif by == "keys":
        page.keyboard.press("+")
    elif by == "buttons":
        page.get_by_role("button", name="Zoom in").click()
    else:
        page.mouse.dblclick(x, y)
    closer = settled(page, "!s.fitted")
    assert width(closer) < 0.8 * width(before)
    page.keyboard.press("0")
    assert settled(page, "s.fitted")["window"] == before["window"]


def test_one_moves_along_by_dragging_and_by_keys(page: Page, canvas: dict[str, float]) -> None:
    """The window goes elsewhere and stays as wide."""
    for _ in range(4):
        page.keyboard.press("+")
    before = state(page)
    x, y = canvas["x"] + 500, canvas["y"] + canvas["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 150, y, steps=3)
    page.mouse.up()
    dragged = state(page)
    assert dragged["window"][0] - before["window"][0] == pytest.approx(150 / before["scale"])
    assert width(dragged) == pytest.approx(width(before))
    assert dragged["selected"] is None, "a drag is no click"
    page.keyboard.press("ArrowLeft")
    assert state(page)["window"][0] < dragged["window"][0]


def test_one_moves_through_the_minimap(page: Page, canvas: dict[str, float]) -> None:
    """A click on the strip of the whole run brings that moment to the middle."""
    for _ in range(4):
        page.keyboard.press("+")
    strip = box(page, "#minimap")
    page.mouse.click(strip["x"] + 128 + (strip["width"] - 152) * 0.75, strip["y"] + 20)
    found = state(page)
    assert sum(found["window"]) / 2 == pytest.approx(0.75 * found["end"], rel=0.15)


def test_two_fingers_zoom(browser: Browser, address: str) -> None:
    """Apart: closer; around the middle between them."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, has_touch=True)
    page = context.new_page()
    before = opened(page, address)
    session, area = context.new_cdp_session(page), box(page, "#canvas")

    def touch(kind: str, *xs: int) -> None:
        y = area["y"] + area["height"] / 2
        points = [{"x": x, "y": y, "id": n} for n, x in enumerate(xs)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 450, 550)
    touch("touchMove", 350, 650)
    touch("touchEnd")
    assert width(settled(page, "!s.fitted")) == pytest.approx(width(before) / 3, rel=0.4)
    context.close()


def test_the_cleaned_graph_has_the_productive_edges(
    page: Page, canvas: dict[str, float], run: Path
) -> None:
    """And raw is all of it again."""
    cleaned, raw = Oracle(run, cleaned=True), Oracle(run)
    page.get_by_role("button", name="Cleaned").click()
    found = drawn(page)
    assert found["graph"] == "cleaned"
    assert found["drawn"]["edges"] == cleaned.deliveries() < raw.deliveries()
    assert found["drawn"]["events"] == len(cleaned.nodes("event"))
    assert found["drawn"]["activations"] == len(cleaned.nodes("activation"))
    page.keyboard.press("c")
    assert drawn(page)["drawn"]["edges"] == raw.deliveries()


def test_the_axis_is_wall_time_or_records(page: Page, canvas: dict[str, float]) -> None:
    """All of the run, by either."""
    wall = state(page)
    page.get_by_role("button", name="Records").click()
    found = state(page)
    assert (found["axis"], wall["axis"]) == ("logical", "wall")
    assert wall["end"] > 50_000_000 > 1000 > found["end"] >= found["t"]
    assert found["window"][1] >= found["end"]
    page.keyboard.press("t")
    assert state(page)["window"] == wall["window"]


def test_what_repeats_is_folded(page: Page, witness: Witness, tmp_path: Path) -> None:
    """A stretch in which the same happens again and again takes little room, until it is wanted."""
    found = opened(page, report(repeating(tmp_path), tmp_path / "r.html"))
    assert (found["repeats"], found["folded"]) == (1, False)
    page.get_by_role("button", name="Fold repeats").click()
    folded = drawn(page)
    assert folded["folded"] and folded["folds"] >= 1
    assert folded["end"] < found["end"]
    page.keyboard.press("r")
    assert drawn(page)["end"] == found["end"]


def test_it_is_as_dark_as_the_system_until_one_chooses(browser: Browser, address: str) -> None:
    """The choice is kept for the next time."""
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    assert opened(page, address)["theme"] == "dark"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("x")
    assert settled(page, "s.theme === 'light'")["theme"] == "light"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    assert opened(page, address)["theme"] == "light"
    context.close()


@pytest.mark.parametrize("size", [(720, 800), (960, 600), (1600, 1000)])
def test_it_fits_into_half_a_laptop(browser: Browser, address: str, size: tuple[int, int]) -> None:
    """Nothing is wider than the window, and the picture has most of it."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    page = context.new_page()
    opened(page, address)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= size[0]
    picture = box(page, "#canvas")
    assert picture["width"] >= 0.5 * size[0] and picture["height"] >= 200
    for button in page.locator("button:visible").all():
        place = button.bounding_box()
        assert place is not None and place["x"] >= 0 and place["x"] + place["width"] <= size[0]
    context.close()


def test_it_follows_the_window(page: Page, canvas: dict[str, float]) -> None:
    """A window that becomes smaller still shows all of the run."""
    before = state(page)
    page.set_viewport_size({"width": 1100, "height": 700})
    found = settled(page, f"s.scale < {before['scale']}")
    assert found["window"][0] <= 0 and found["window"][1] >= found["end"]
    assert found["fitted"]
