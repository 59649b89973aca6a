"""The picture is true: what is drawn at a place happened at the moment of that place."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from dig.graph.records import Emit, End, Fate, Redirect, Start
from dig.tasks.run.execute import execute
from dig.traces.journal.reader import read_records
from tests.browser.conftest import Witness
from tests.browser.pages import box, drawn, opened, report, settled, state
from tests.browser.test_cards import STUCK

SLOT = 11  # pixels that an event takes


@pytest.fixture(scope="module")
def healed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return execute(STUCK, tmp_path_factory.mktemp("runs")).directory


@pytest.fixture(autouse=True)
def _opened(page: Page, witness: Witness, healed: Path, tmp_path: Path) -> None:
    opened(page, report(healed, tmp_path / "r.html"))


SEATS = """() => {
  const { painter, layout, view, model } = dig.app;
  return painter.seated.map((i) => ({
    x: painter.seat(i).x, time: view.x(layout.eventAt[i]), on: painter.slots.on[i] >= 0,
    place: [model.events[i].lane, painter.slots.row[i], Math.round(painter.seat(i).x)].join(),
  }));
}"""


@pytest.mark.parametrize("zoom", [1, 3, 40])
def test_no_event_is_moved_along_time(page: Page, zoom: float) -> None:
    """Each is drawn at its own moment; one without a free row is counted beside its neighbour."""
    # Around an event in the middle of the run: some are in sight however near one goes.
    page.evaluate(
        "zoom => { const { view, layout, model } = dig.app;"
        " view.zoom(zoom, view.x(layout.eventAt[model.events.length >> 1])); }",
        zoom,
    )
    drawn(page)
    seats = page.evaluate(SEATS)
    for seat in seats:
        assert abs(seat["x"] - seat["time"]) < (SLOT if seat["on"] else 1e-6)
    alone = [seat["place"] for seat in seats if not seat["on"]]
    assert len(alone) == len(set(alone)) > 0


def test_events_in_one_place_are_chosen_one_after_the_other(page: Page) -> None:
    """A click on a pile goes on to the next event in it."""
    piled = page.evaluate(
        "() => { const { slots, seated, model } = dig.app.painter;"
        " const [on, more] = [...slots.more][0]; const { x, y } = dig.app.painter.seat(on);"
        " return { x, y, ids: seated.filter((i) => i === on || slots.on[i] === on)"
        ".map((i) => model.events[i].id) }; }"
    )
    at, seen = box(page, "#canvas"), []
    for _ in piled["ids"]:
        page.evaluate("dig.app.view.fit()")
        drawn(page)
        page.mouse.click(at["x"] + piled["x"], at["y"] + piled["y"])
        seen.append(settled(page, "s.selected")["selected"]["id"])
        drawn(page)
    assert sorted(seen) == sorted(piled["ids"])


def test_edges_are_drawn_no_further_than_a_little_out_of_sight(page: Page) -> None:
    """Dashes over millions of pixels took half a second a frame."""
    page.evaluate(
        "() => { dig.far = 0; const { ctx } = dig.app.painter;"
        " for (const name of ['lineTo', 'bezierCurveTo', 'moveTo']) { const draw = ctx[name];"
        "  ctx[name] = function (...at) {"
        "   for (const x of at.filter((_, i) => i % 2 === 0)) dig.far = Math.max(dig.far, x, -x);"
        "   return draw.apply(this, at); }; } }"
    )
    page.evaluate("dig.app.view.zoom(1000, 700)")
    found = drawn(page)
    assert found["scale"] > 0
    assert page.evaluate("dig.far") < box(page, "#canvas")["width"] + 2 * 400 + 200


def beginnings(run: Path) -> tuple[dict[tuple[str, str], int], set[str]]:
    """By the trace: the moment that each delivery edge begins at, and why not at a generation."""
    born, started, latest = dict[str, int](), dict[str, Start](), dict[tuple[str, str], int]()
    edges, reasons, made_by_healing = dict[tuple[str, str], int](), set[str](), set[str]()
    for record in read_records(run):
        moved = dict[tuple[str, str], str]()
        match record:
            case Emit():
                born[record.event] = record.us
                made_by_healing |= {record.event} if record.by == "system" else set()
            case Start():
                started[record.activation] = record
                for event in record.inputs:
                    at = latest.get((event, record.agent), born[event])
                    edges[event, record.activation] = at
            case End():
                start, named = started[record.activation], {fate.event for fate in record.fates}
                # What an activation does not name is delayed, except what healing made.
                kept = [Fate(e, "delay") for e in start.inputs if e not in named | made_by_healing]
                for fate in (*record.fates, *kept):
                    to = (start.agent,) if fate.fate == "delay" else fate.to
                    moved |= dict.fromkeys(((fate.event, heir) for heir in to), fate.fate)
            case Redirect():
                moved = dict.fromkeys(((record.event, to) for to in record.to), "redirect")
        latest |= dict.fromkeys(moved, record.us)
        reasons |= set(moved.values())
    return edges, reasons


def test_what_went_on_is_drawn_from_where_it_went_on(page: Page, healed: Path) -> None:
    """After a delay or a reroute an edge begins at the end of the activation that did it."""
    edges = page.evaluate(
        "dig.app.model.edges.map(({ i, event, activation }) =>"
        " [event.id, activation.id, dig.app.layout.fromAt[i]])"
    )
    expected, reasons = beginnings(healed)
    assert {(event, activation): at for event, activation, at in edges} == expected
    assert reasons == {"delay", "reroute", "redirect"}


def test_before_and_after_healing_differ(page: Page) -> None:
    """The graph just before the first record of it, and the graph with the last one."""
    page.locator('#findings button[data-finding]:not([data-finding^="repeats"])').first.click()
    pictures, moments = [], []
    for name in ("Before healing", "After healing"):
        page.get_by_role("button", name=name).click()
        drawn(page)
        pictures.append(page.evaluate("dig.app.canvas.toDataURL()"))
        moments.append(state(page)["at"])
    heal = page.evaluate("dig.app.model.heals[0]")
    assert moments[0] < heal["t"] <= moments[1]
    assert pictures[0] != pictures[1]
