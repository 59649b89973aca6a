"""The picture is true: what is drawn at a place happened at the moment of that place."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from dig.tasks.run.execute import execute
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
    page.evaluate("zoom => dig.app.view.zoom(zoom, 200)", zoom)
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


def test_what_went_on_is_drawn_from_where_it_went_on(page: Page) -> None:
    """After a delay an edge begins at the end of the activation that delayed the event."""
    edges = page.evaluate(
        "dig.app.model.edges.map(({ i, event, activation, from }) => ({"
        " event: event.id, by: from?.activation?.id ?? null, lane: activation.lane,"
        " at: dig.app.layout.fromAt[i], t: activation.t, fate: dig.app.model.edges[i].fate,"
        " birth: dig.app.layout.eventAt[event.i],"
        " end: from?.activation ? dig.app.layout.endAt[from.activation.i] : null }))"
    )
    last: dict[tuple[str, int], bool] = {}
    delayed = 0
    for edge in edges:
        key = (edge["event"], edge["lane"])
        assert edge["at"] == (edge["end"] if edge["by"] else edge["birth"])
        assert (edge["by"] is not None) == last.get(key, False)
        delayed += edge["by"] is not None
        last[key] = edge["fate"] == 1
    assert delayed > 5


def test_before_and_after_healing_differ(page: Page) -> None:
    """After it an agent has done something about it."""
    page.locator('#findings button[data-finding]:not([data-finding^="repeats"])').first.click()
    pictures, moments = [], []
    for name in ("Before healing", "After healing"):
        page.get_by_role("button", name=name).click()
        drawn(page)
        pictures.append(page.evaluate("dig.app.canvas.toDataURL()"))
        moments.append(state(page)["at"])
    heal = page.evaluate("dig.app.model.heals[0]")
    assert moments[0] < heal["t"] < moments[1]
    assert pictures[0] != pictures[1]
    ended = page.evaluate(
        "id => dig.app.model.node(id).seen.map((edge) => edge.activation.end.t)", heal["event"]
    )
    assert moments[1] in ended
