"""What agents say is text: nothing of it runs, asks anybody or becomes an element."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from dig import Finding
from dig.show.figure.drawing import Drawing
from dig.show.figure.selection import RunPart
from dig.show.server.server import Server
from dig.traces.journal.reader import read_graph
from tests.browser.conftest import Witness
from tests.browser.pages import opened, report, settled, state
from tests.hostile import ATTACKS, hostile_run, texts
from tests.show.server.client import serving
from tests.traces.runs import store

COUNT = 300
LIVE = 100  # as a whole they are looked at in a report; live each batch is shown by itself
FIXED = ["script", "img", "iframe", "svg", "object", "embed", "link", "base", "style", "meta", "h1"]
LOOK = """ids => {
  const { app } = dig;
  const missing = [];
  for (const id of ids) {
    const node = app.model.node(id);
    if (!node) { missing.push(`no ${id}`); continue; }
    app.select(node);
    app.details.update();
    const told = document.querySelector("#details").textContent;
    if (!told.includes(id)) missing.push(id);
  }
  return missing;
}"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which every text is hostile."""
    return store(tmp_path_factory.mktemp("hostile") / "h.dig.jsonl", hostile_run(COUNT))


@pytest.fixture(scope="module")
def server(hostile: Path) -> Iterator[Server]:
    """A server of the beginning of such a run."""
    with serving(store(hostile.parent / "live.dig.jsonl", hostile_run(LIVE))) as server:
        yield server


def elements(page: Page) -> dict[str, int]:
    """How many there are of each kind of element that no text should make."""
    found: dict[str, int] = page.evaluate(
        """names => Object.fromEntries(
             names.map(name => [name, document.getElementsByTagName(name).length]))""",
        FIXED,
    )
    return found


def show_overview(page: Page) -> None:
    """Open the overview, which draws who sent what to whom, and wait for its picture."""
    page.keyboard.press("3")
    page.wait_for_selector("svg")


def is_pwned(page: Page) -> bool:
    """Whether a text was carried out."""
    return bool(page.evaluate("window.pwned !== undefined || {}.pwned !== undefined"))


@pytest.mark.parametrize("kind", ["report", "live"])
def test_nothing_that_agents_say_becomes_part_of_the_page(
    page: Page, witness: Witness, hostile: Path, server: Server, tmp_path: Path, kind: str
) -> None:
    """Each is shown as it is, in the picture, the lists, the inspector, search and filters."""
    if kind == "report":
        count, own = COUNT, report(hostile, tmp_path / "h.html")
        opened(page, own)
    else:
        count, own = LIVE, server.guard.root
        opened(page, server.address)
    found = settled(page, f"s.t === {8 * count + 1}")
    assert found["counts"]["events"] == found["counts"]["activations"] == count
    show_overview(page)
    before = elements(page)
    given = texts(count)
    ids = [f"e{n} {text}" for n, text in enumerate(given)]
    assert page.evaluate(LOOK, [*ids, f"a7 {given[7]}"]) == []
    for key in ("1", "n", "n", "3"):
        page.keyboard.press(key)
    for pop in ("#filters", "#legend"):
        page.locator(f"{pop} summary").click()
    page.get_by_role("combobox", name="Search").fill("<script>")
    assert state(page)["found"] > 10
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('id=')")
    page.reload()
    settled(page, f"s.ready && s.t === {8 * count + 1}")
    show_overview(page)
    after = elements(page)
    assert {name: after[name] for name in FIXED} == {name: before[name] for name in FIXED}
    assert after["h1"] == 1
    assert not is_pwned(page)
    assert witness.strangers(own) == []


def test_a_hostile_payload_is_shown_to_the_letter(
    page: Page, witness: Witness, tmp_path: Path
) -> None:
    """Not cleaned, not unescaped, not cut."""
    rows = hostile_run(len(ATTACKS))
    for n, row in enumerate(row for row in rows if row["kind"] == "emit"):
        row["payload"] = ATTACKS[n]
    opened(page, report(store(tmp_path / "h.dig.jsonl", rows), tmp_path / "h.html"))
    shown = page.evaluate(
        """ids => ids.map(id => {
             dig.app.select(dig.app.model.node(id));
             dig.app.details.update();
             return document.querySelector("#details pre")?.textContent;
           })""",
        [f"e{n} {text}" for n, text in enumerate(ATTACKS)],
    )
    told = [text.encode("utf-16", "surrogatepass") for text in ATTACKS]
    assert [text.encode("utf-16", "surrogatepass") for text in shown] == told


def test_a_drawing_holds_text_and_nothing_else(
    page: Page, witness: Witness, hostile: Path, tmp_path: Path
) -> None:
    """A browser that opens it runs nothing, asks nobody, and finds no element but shapes."""
    path = tmp_path / "h.svg"
    Drawing.of(hostile, RunPart(first=0, last=2500)).save(path)
    page.goto(path.as_uri())
    kinds = page.evaluate("[...new Set([...document.querySelectorAll('*')].map(e => e.localName))]")
    allowed = {"svg", "title", "desc", "g", "rect", "circle", "path", "line", "polyline", "polygon",
               "text", "tspan", "defs", "pattern", "clipPath", "marker", "style"}  # fmt: skip
    assert set(kinds) <= allowed
    attributes = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
        ".filter(name => name.startsWith('on') || name.includes('href'))"
    )
    assert attributes == []
    assert not is_pwned(page)
    assert witness.strangers(path.as_uri()) == []


def test_what_a_notebook_shows_is_text(page: Page, witness: Witness, tmp_path: Path) -> None:
    """A notebook has no policy that would stop a script: the markup itself has to be clean."""
    given = texts(COUNT)
    graph = read_graph(store(tmp_path / "h.dig.jsonl", hostile_run(COUNT)))
    found = [
        Finding(text, n, n, {"event": text, text: text}, {"unresolved": [text, given[n - 1]]}, text)
        for n, text in enumerate(given)
    ]
    markup = [graph._repr_html_(), *(one._repr_html_() for one in found)]
    page.goto("about:blank")
    page.set_content("<body>" + "<hr>".join(markup))
    assert elements(page)["script"] == elements(page)["img"] == elements(page)["iframe"] == 0
    assert not is_pwned(page)
    assert witness.strangers("about:blank") == []
