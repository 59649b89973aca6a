"""A run beside its twin: both along one time, and what they have in common only once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dig.show.page.writing import write_report
from dig.tasks.run.execute import execute
from tests.browser.conftest import Witness
from tests.browser.pages import box, drawn, opened
from tests.browser.test_cards import STUCK


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a healed run, with the same run unwatched."""
    runs = tmp_path_factory.mktemp("runs")
    run, twin = (
        execute(replace(STUCK, seed=604, method=method), runs) for method in ("dig", "mas")
    )
    return write_report(run.directory, runs / "r.html", twin=twin.directory).path.as_uri()


def test_what_both_runs_have_is_drawn_once(page: Page, witness: Witness, address: str) -> None:
    """The twin has nothing of its own, as it stops where the monitor acts; that is said."""
    opened(page, address)
    twin = page.evaluate("({ ...dig.app.twin.painter.drawn, t: dig.app.twin.model.t })")
    assert (twin["events"], twin["activations"], twin["edges"]) == (0, 0, 0)
    assert twin["t"] > 100
    expect(page.locator("#with")).to_have_text("With the monitor")
    expect(page.locator("#without")).to_contain_text("Without the monitor: Got stuck")


def test_the_first_difference_is_the_first_intervention(page: Page, address: str) -> None:
    """At its moment, on the axis of both pictures, also after a zoom."""
    opened(page, address)
    heal = page.evaluate("dig.app.model.heals[0].event")
    assert heal in page.evaluate("dig.app.twin.says")
    for _ in range(2):
        ours, twin, there = page.evaluate(
            "[dig.app.view, dig.app.twin.view].map((v) => [v.from, v.scale, v.gutter])"
            ".concat([[dig.app.twin._x(), dig.app.view.x(dig.app.layout.axis.place("
            "dig.app.model.heals[0]))]])"
        )
        assert ours == twin
        assert there[0] == pytest.approx(there[1])
        page.evaluate("dig.app.view.zoom(2, 700)")
        drawn(page)


@pytest.mark.parametrize("size", [(1440, 900), (1024, 768), (390, 844)])
def test_both_pictures_have_a_place_on_every_screen(
    browser: Browser, address: str, size: tuple[int, int]
) -> None:
    """Neither is clipped, and they do not overlap."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    page = context.new_page()
    opened(page, address)
    above, caption, below = (box(page, one) for one in ("#canvas", "#without", "#twin-canvas"))
    assert above["height"] > 60 and below["height"] > 60
    assert above["y"] + above["height"] <= caption["y"] + 1
    assert caption["y"] + caption["height"] <= below["y"] + 1
    assert below["y"] + below["height"] <= box(page, "#minimap")["y"] + 1
    assert max(one["x"] + one["width"] for one in (above, caption, below)) <= size[0]
    context.close()


def test_a_run_beside_itself_has_no_difference(page: Page, tmp_path: Path) -> None:
    """That is said, and no line is drawn."""
    run = execute(STUCK, tmp_path).directory
    opened(page, write_report(run, tmp_path / "r.html", twin=run).path.as_uri())
    assert page.evaluate("dig.app.twin.us") is None
    assert page.evaluate("dig.app.twin.painter.drawn.events") == 0
