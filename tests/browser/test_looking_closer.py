"""Looking closer: at what a finding names, at what is selected, and from the strip of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Witness
from tests.browser.pages import box, drawn, opened, repeating, report, settled, state, width
from tests.histories import arrive, row, trace, turn
from tests.oracle import Row
from tests.traces.runs import store

AGENTS = 100
EVIDENCE = """(finding) => {
  const { layout, model, view } = dig.app;
  const nodes = finding.ids.map((id) => model.node(id)).filter(Boolean);
  const places = nodes.flatMap((node) => node.kind === "event"
    ? [layout.eventAt[node.i]] : [layout.startAt[node.i], layout.endOf(node.i)]);
  places.push(layout.axis.place(finding));
  return [Math.min(...places), Math.max(...places)].map((place) => view.x(place));
}"""


def crowded(folder: Path, rounds: int = 120) -> Path:
    """A long run of many agents in which somebody answers too early, once."""
    names = [chr(0x100 + i) for i in range(AGENTS)]
    parts: list[list[Row]] = [arrive(0, "e0", None, names[0])]
    for n in range(rounds):
        here, there = names[n % AGENTS], names[(n + 1) % AGENTS]
        fates: dict[str, Any] = {f"e{n}": "consume"}
        parts.append(turn(n + 1, f"v{n}", here, f"e{n + 1}", **fates))
        parts.append(arrive(n + 1, f"e{n + 1}", f"v{n}", there, "message"))
    finding = row(
        rounds, "finding", pattern="OE", stage=None, subject={"event": "e50"},
        evidence={"cause": "discarded"},
    )  # fmt: skip
    rows = trace(*parts, finding, row(rounds + 9, "finish", outcome="timeout"), agents=names)
    return store(folder / "crowded.dig.jsonl", rows)


def test_what_a_finding_names_is_shown_so_close_that_one_can_tell_it(
    page: Page, witness: Witness, address: str
) -> None:
    """However short a stretch of the run it is; a long one stays in sight as a whole."""
    opened(page, address)
    page.keyboard.press("0")
    before = [
        page.evaluate(f"({EVIDENCE})(dig.app.model.findings[{i}])")
        for i in range(state(page)["counts"]["findings"])
    ]
    assert min(right - left for left, right in before) < 100, "there is a short one"
    for i in range(len(before)):
        page.keyboard.press("0")
        page.evaluate(f"dig.app.select(dig.app.model.findings[{i}])")
        left, right = page.evaluate(f"({EVIDENCE})(dig.app.model.findings[{i}])")
        assert right - left > 150
        assert left >= 128 and right <= box(page, "#canvas")["width"]


def test_what_is_selected_stays_in_sight_when_one_zooms_by_key(
    page: Page, witness: Witness, address: str
) -> None:
    """Also by the buttons; and back."""
    opened(page, address)
    page.evaluate("dig.app.select(dig.app.model.node('a1'))")
    first = page.evaluate("dig.app.view.x(dig.app.layout.startAt[0])")
    for _ in range(6):
        page.keyboard.press("+")
    page.get_by_role("button", name="Zoom in").click()
    assert page.evaluate("dig.app.view.x(dig.app.layout.startAt[0])") == pytest.approx(first)


def test_lanes_grow_by_keys_and_the_wheel(page: Page, witness: Witness, address: str) -> None:
    """With Alt; with Shift the wheel goes along; neither changes the zoom."""
    before = opened(page, address)
    page.keyboard.press("]")
    assert state(page)["lane"] > before["lane"]
    page.keyboard.press("[")
    assert state(page)["lane"] == pytest.approx(before["lane"])
    picture = box(page, "#canvas")
    page.mouse.move(picture["x"] + 500, picture["y"] + 200)
    page.keyboard.down("Alt")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Alt")
    grown = settled(page, f"s.lane > {before['lane'] + 1}")
    assert grown["scale"] == pytest.approx(before["scale"])
    for _ in range(4):
        page.keyboard.press("+")
    closer = state(page)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 200)
    page.keyboard.up("Shift")
    along = settled(page, f"s.window[0] > {closer['window'][0]}")
    assert width(along) == pytest.approx(width(closer))


def test_the_strip_of_the_run_is_dragged(page: Page, witness: Witness, address: str) -> None:
    """The window follows the pointer, and stays where it is left."""
    opened(page, address)
    for _ in range(5):
        page.keyboard.press("+")
    strip = box(page, "#minimap")
    y, left, wide = strip["y"] + 20, strip["x"] + 128, strip["width"] - 152
    page.mouse.move(left + 0.3 * wide, y)
    page.mouse.down()
    before = state(page)
    page.mouse.move(left + 0.7 * wide, y, steps=4)
    dragged = state(page)
    page.mouse.up()
    page.mouse.move(left + 0.1 * wide, y)
    assert sum(dragged["window"]) / 2 == pytest.approx(0.7 * dragged["end"], rel=0.1)
    assert state(page)["window"] == dragged["window"] != before["window"]


def test_a_fold_is_opened_by_a_click(page: Page, witness: Witness, tmp_path: Path) -> None:
    """What is folded says that one can."""
    opened(page, report(repeating(tmp_path), tmp_path / "r.html"))
    page.keyboard.press("r")
    drawn(page)
    fold = page.evaluate("(({ x0, x1 }) => (x0 + x1) / 2)(dig.app.painter.folds[0])")
    picture = box(page, "#canvas")
    page.mouse.move(picture["x"] + fold, picture["y"] + 150)
    expect(page.locator("#tip")).to_contain_text("Click to unfold")
    page.mouse.click(picture["x"] + fold, picture["y"] + 150)
    assert not settled(page, "!s.folded")["folded"]


def test_among_a_hundred_agents_a_finding_can_be_seen(
    page: Page, witness: Witness, tmp_path: Path
) -> None:
    """All lanes are in sight; who the finding names is shown in lanes that have place for it."""
    found = opened(page, report(crowded(tmp_path), tmp_path / "c.html"))
    assert found["counts"]["agents"] == AGENTS
    tall = box(page, "#canvas")["height"]
    assert 0.85 * tall < (AGENTS + 1) * found["lane"] <= tall
    page.keyboard.press("n")
    closer = drawn(page)
    assert closer["selected"]["kind"] == "finding" and closer["lane"] >= 20
    y = page.evaluate("dig.app.painter.seat(dig.app.model.node('e50').i).y")
    assert 50 < y < tall


@pytest.mark.parametrize("size", [(720, 800), (1440, 900)])
def test_nothing_is_missing_on_half_a_screen(
    browser: Browser, address: str, size: tuple[int, int]
) -> None:
    """The link, and what the picture leaves out."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    page = context.new_page()
    opened(page, address)
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()
    page.keyboard.press("n")
    expect(page.locator("#hint")).to_be_visible()
    expect(page.locator("#hint")).to_contain_text("in focus")
    context.close()
