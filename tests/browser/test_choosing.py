"""Choosing something in a report: findings, what one clicks on, what one searches for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from dig.detectors.describe import WORTHS
from dig.graph.records import Deliver, Emit, End, FindingRow, HealRow, Record, Start
from dig.show.explain.facts import show
from dig.traces.journal.reader import read_records
from tests.browser.conftest import Witness
from tests.browser.pages import Oracle, box, drawn, opened, report, seat, settled, state
from tests.histories import arrive, row, trace
from tests.traces.runs import store


@pytest.fixture(scope="module")
def records(run: Path) -> list[Record]:
    """Its records."""
    return list(read_records(run))


@pytest.fixture(autouse=True)
def _opened(page: Page, witness: Witness, address: str) -> None:
    opened(page, address)


# --- findings ---

REPEATS = 'button[data-finding^="repeats"]'


def single(page: Page) -> Locator:
    """The rows of single findings."""
    return page.locator('#findings button[data-finding]:not([data-finding^="repeats"])')


def times(text: str) -> int:
    """How often the finding of a row of repeats was raised."""
    found = re.search(r"([\d,]+) times", text)
    assert found is not None
    return int(found[1].replace(",", ""))


def choose(page: Page, pattern: str) -> None:
    """Click the first finding of a pattern, after opening its row of repeats if it is in one."""
    row = page.locator("#findings > ol > li", has_text=pattern).first
    row.locator("button").first.click()
    if row.locator(REPEATS).count():
        row.locator(".repeats button").first.click()


def test_findings_are_listed_by_severity_and_time(page: Page, records: list[Record]) -> None:
    """Errors first, then in order of time; as many as were raised, repeats in rows that open."""
    raised = [record for record in records if isinstance(record, FindingRow)]
    repeats = page.locator(f"#findings {REPEATS}")
    assert sum(map(times, repeats.all_inner_texts())) + single(page).count() == len(raised)
    for n in range(repeats.count()):
        repeats.nth(n).click()
    badges = single(page).locator(".badge")
    severities = badges.evaluate_all("all => all.map(one => one.className.split(' ')[1])")
    assert severities == sorted(severities, key=WORTHS.index)
    assert sorted(badges.all_inner_texts()) == sorted(record.pattern for record in raised)


def test_repeats_are_one_row_that_opens_and_closes(page: Page, tmp_path: Path) -> None:
    """It says how often, and has a row for each time while it is open."""
    again = {"pattern": "ER", "stage": None, "subject": {"event": "p"}, "evidence": {"path": ["a"]}}
    found = [row(n, "finding", **again) for n in range(1, 13)]
    run = store(tmp_path / "r.dig.jsonl", trace(arrive(0, "p", None, "a"), found))
    opened(page, report(run, tmp_path / "r.html"))
    repeats = page.locator(f"#findings {REPEATS}").first
    assert times(repeats.inner_text()) == 12
    expect(single(page)).to_have_count(0)
    repeats.click()
    expect(single(page)).to_have_count(12)
    page.locator("#findings .repeats button").last.click()
    assert state(page)["selected"]["kind"] == "finding"
    repeats.click()
    expect(single(page)).to_have_count(0)
    assert state(page)["selected"] is None


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_a_finding_focuses_on_the_way_that_proves_it(
    page: Page, run: Path, records: list[Record], hops: int
) -> None:
    """What it names, the paths to that, and as many hops more as one likes; nothing else."""
    choose(page, "ET")
    for _ in range(hops + 1):
        page.get_by_role("button", name="More hops").click()
    page.get_by_role("button", name="Fewer hops").click()
    found = drawn(page)
    assert (found["selected"]["kind"], found["hops"]) == ("finding", hops)
    row = next(r for r in records if isinstance(r, FindingRow) and r.pattern == "ET")
    heals = [r for r in records if isinstance(r, HealRow) and r.finding == row.t]
    named = [row.subject["event"], *row.evidence["unresolved"], *row.evidence["uncovered"]]
    named += [str(heal.event) for heal in heals]
    named += [node for path in show(run, str(row.t))["paths"] for node in path["nodes"]]
    oracle = Oracle(run)
    assert set(found["focus"]) == oracle.around(named, hops)
    assert len(found["focus"]) < len(oracle.graph)


def test_a_finding_says_why_it_was_raised_and_what_healing_did(
    page: Page, records: list[Record]
) -> None:
    """With the note that was written; and it shows the graph before and after that."""
    choose(page, "ET")
    more = page.locator("#findings li.chosen .more")
    expect(more).to_contain_text("submitted too early")
    row = next(r for r in records if isinstance(r, FindingRow) and r.pattern == "ET")
    heal = next(r for r in records if isinstance(r, HealRow) and r.finding == row.t)
    assert more.locator(".note").first.inner_text().split() == str(heal.note).split()
    page.get_by_role("button", name="Before healing").click()
    assert state(page)["at"] == heal.t - 1
    page.get_by_role("button", name="After healing").click()
    assert state(page)["at"] >= heal.t
    page.keyboard.press("End")
    assert state(page)["at"] is None
    page.keyboard.press("Escape")
    found = state(page)
    assert (found["selected"], found["focus"]) == (None, None)


# --- the inspector ---


def test_an_event_that_is_clicked_tells_its_whole_story(page: Page, records: list[Record]) -> None:
    """Payload, recipients, notes, and everything that happened to it, in order."""
    place, picture = seat(page, "e39"), box(page, "#canvas")
    page.mouse.click(picture["x"] + place["x"], picture["y"] + place["y"])
    found = drawn(page)
    assert (found["selected"], found["tab"]) == ({"kind": "event", "id": "e39"}, "details")
    details = page.locator("#details")
    expect(details.locator("h2")).to_have_text("Event e39")
    emit = next(r for r in records if isinstance(r, Emit) and r.event == "e39")
    assert '"task"' in details.locator("pre").inner_text()
    expect(details.locator("dl")).to_contain_text(str(emit.by))
    steps = details.get_by_role("list", name="Story of e39").locator("li")
    titles = steps.locator("button[title]").evaluate_all("all => all.map(one => one.title)")
    numbers = [int(title.split()[1].strip(":")) for title in titles]
    assert numbers == sorted(numbers) and numbers[0] == emit.t
    looked_at = [r.t for r in records if isinstance(r, Start) and "e39" in r.inputs]
    decided = [
        r.t for r in records if isinstance(r, End) and any(f.event == "e39" for f in r.fates)
    ]
    arrived = [r.t for r in records if isinstance(r, Deliver) and r.event == "e39"]
    assert {*looked_at, *decided, *arrived} <= set(numbers)


def test_an_activation_tells_what_went_in_and_came_out(page: Page, records: list[Record]) -> None:
    """Inputs with their fates, outputs, and how long it took."""
    page.get_by_role("combobox", name="Search").fill("a18")
    page.keyboard.press("Enter")
    found = drawn(page)
    assert found["selected"] == {"kind": "activation", "id": "a18"}
    start = next(r for r in records if isinstance(r, Start) and r.activation == "a18")
    end = next(r for r in records if isinstance(r, End) and r.activation == "a18")
    details = page.locator("#details")
    expect(details).to_contain_text(f"Inputs ({len(start.inputs)})")
    expect(details).to_contain_text(f"Outputs ({len(end.outputs)})")
    expect(details).to_contain_text(start.agent)
    links = details.get_by_role("button").all_inner_texts()
    assert {*start.inputs, *end.outputs} <= set(links)


def test_an_agent_tells_what_it_did(page: Page, records: list[Record]) -> None:
    """A click on its lane: turns, waits, load, and each of its activations."""
    picture = box(page, "#canvas")
    y = page.evaluate("dig.app.view.y(6) + dig.app.view.laneHeight / 2")
    page.mouse.click(picture["x"] + 30, picture["y"] + y)
    assert drawn(page)["selected"] == {"kind": "agent", "id": "agent-6"}
    turns = [r.activation for r in records if isinstance(r, Start) and r.agent == "agent-6"]
    details = page.locator("#details")
    expect(details.locator("dl")).to_contain_text("busy")
    assert set(turns) <= set(details.get_by_role("button").all_inner_texts())


# --- overview, search, filters ---


def test_the_overview_counts_who_sent_what_to_whom(page: Page, records: list[Record]) -> None:
    """As the records say; a click on a pair puts what it counts into focus."""
    page.get_by_role("tab", name="Overview").click()
    agents = {r.activation: r.agent for r in records if isinstance(r, Start)}
    by = {r.event: agents.get(str(r.by), "") for r in records if isinstance(r, Emit)}
    sent = [(by[r.event], r.to) for r in records if isinstance(r, Deliver) and r.to]
    pairs = page.locator("#overview .matrix li")
    expected = {
        f"{a or 'outside, healing'} \u2192 {b}{sent.count((a, b))}"
        for a, b in sent
        if b is not None
    }
    assert set(pairs.all_text_contents()) == expected
    pairs.first.get_by_role("button").click()
    assert drawn(page)["focus"]


def test_search_finds_ids_agents_and_what_was_said(page: Page) -> None:
    """By the keyboard alone; Enter chooses the first."""
    page.keyboard.press("/")
    page.keyboard.type("agent-3")
    assert state(page)["found"] >= 1
    page.keyboard.press("Enter")
    assert state(page)["selected"] == {"kind": "agent", "id": "agent-3"}
    page.keyboard.press("/")
    page.keyboard.type("counts")
    assert state(page)["found"] > 5, "payloads are searched"
    page.keyboard.type("no such thing")
    assert state(page)["found"] == 0
    expect(page.locator("#results")).to_contain_text("Nothing matches")
    page.keyboard.press("Escape")
    expect(page.locator("#results")).to_be_hidden()


@pytest.mark.parametrize(
    ("group", "key", "seen"),
    [
        ("agents", "agent-6", "s => !s.lanes.includes('agent-6')"),
        ("types", "solution", "s => s.drawn.events < s.counts.events"),
        ("patterns", "CLA", "s => document.querySelectorAll('#findings ol > li').length < 5"),
        ("fates", "1", "s => s.drawn.edges < s.counts.edges"),
    ],
)
def test_filters_leave_out_what_one_does_not_want(
    page: Page, group: str, key: str, seen: str
) -> None:
    """Agents, types, patterns and fates; and everything comes back."""
    before = drawn(page)
    page.locator("#filters summary").click()
    page.locator(f'#filters input[data-group="{group}"][data-key="{key}"]').uncheck()
    found = drawn(page)
    assert [str(one) for one in found["hidden"][group]] == [key]
    assert page.evaluate(f"({seen})(dig.state)")
    page.get_by_role("button", name="Show everything").click()
    after = drawn(page)
    assert (after["drawn"], after["lanes"]) == (before["drawn"], before["lanes"])


# --- a link, and the keyboard ---

SAME = ("axis", "graph", "at", "selected", "focus", "hidden", "hops", "tab", "lanes", "drawn")


def test_a_link_reopens_the_same_view(page: Page, browser: Browser) -> None:
    """Somebody else, elsewhere, sees what one saw."""
    page.keyboard.press("t")
    page.keyboard.press("c")
    page.locator("#filters summary").click()
    page.locator('#filters input[data-key="agent-5"]').uncheck()
    page.keyboard.press("Escape")
    page.locator("#findings li button").nth(1).click()
    page.get_by_role("button", name="More hops").click()
    page.locator("#canvas").focus()
    page.keyboard.press("+")
    page.keyboard.press(",")
    before = drawn(page)
    page.wait_for_function("() => location.hash.includes('at=')")
    context = browser.new_context(viewport=page.viewport_size)
    other = context.new_page()
    after = opened(other, page.url)
    assert {key: after[key] for key in SAME} == {key: before[key] for key in SAME}
    assert after["window"] == pytest.approx(before["window"], rel=1e-3)
    context.close()


def test_back_goes_to_what_was_selected_before(page: Page) -> None:
    """And forward again; each with the view of it."""
    page.locator("#canvas").focus()
    chosen = []
    for node in ("a1", "a18"):
        page.evaluate("id => dig.app.select(dig.app.model.node(id))", node)
        page.wait_for_function("id => location.hash.includes(`id=${id}`)", arg=node)
        chosen.append(drawn(page)["window"])
    page.go_back()
    back = settled(page, "s.selected.id === 'a1'")
    assert back["window"] == pytest.approx(chosen[0])
    page.go_forward()
    assert settled(page, "s.selected.id === 'a18'")["window"] == pytest.approx(chosen[1])


def test_an_id_that_the_run_has_not_is_told(page: Page, address: str) -> None:
    """A link to it opens the run, and says what is missing."""
    page.goto("about:blank")
    opened(page, f"{address}#is=event&id=e999")
    expect(page.locator("#hint")).to_contain_text("the link names event e999")
    page.keyboard.press("n")
    expect(page.locator("#hint")).not_to_contain_text("e999")


@pytest.mark.parametrize("how", ["axis", "shift"])
def test_a_stretch_is_measured_by_dragging(page: Page, how: str) -> None:
    """Along the time or with Shift; `f` has it fill the picture, Escape takes it away."""
    at, before = box(page, "#canvas"), state(page)
    y = at["y"] + (10 if how == "axis" else 200)
    if how == "shift":
        page.keyboard.down("Shift")
    page.mouse.move(at["x"] + 300, y)
    page.mouse.down()
    page.mouse.move(at["x"] + 500, y, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    found = drawn(page)
    assert (found["window"], found["selected"]) == (before["window"], None)
    measured = found["measured"]
    assert measured[1] - measured[0] == pytest.approx(200 / found["scale"])
    page.keyboard.press("f")
    filled = drawn(page)["window"]
    assert filled[0] < measured[0] and filled[1] > measured[1]
    assert measured[1] - measured[0] == pytest.approx(0.8 * (filled[1] - filled[0]), rel=0.02)
    page.keyboard.press("Escape")
    assert state(page)["measured"] is None


def test_lanes_without_a_part_in_a_finding_are_folded(page: Page) -> None:
    """The others have their place; a click below the lanes, or a key, shows all again."""
    everyone = state(page)["lanes"]
    choose(page, "ET")
    found = drawn(page)
    lanes = page.evaluate(
        "[...dig.app.view.focus].map((node) => dig.app.model.lanes[node.lane].id)"
    )
    assert set(found["lanes"]) == {everyone[0], *lanes} < set(everyone)
    at = box(page, "#canvas")
    page.mouse.click(at["x"] + 20, at["y"] + at["height"] - 10)
    assert drawn(page)["lanes"] == everyone
    page.keyboard.press("v")
    assert drawn(page)["lanes"] == found["lanes"]
    page.keyboard.press("Escape")
    assert drawn(page)["lanes"] == everyone


def test_what_events_say_stands_beside_them(page: Page) -> None:
    """On the way of a finding, at the pointer, and with what went in and out of an activation."""
    page.evaluate(
        "() => { dig.said = []; const { ctx } = dig.app.painter, write = ctx.fillText;"
        " ctx.fillText = function (text, ...at) { dig.said.push(text);"
        " return write.call(this, text, ...at); }; }"
    )
    choose(page, "ET")
    drawn(page)
    assert any("part: " in text for text in page.evaluate("dig.said"))
    expect(page.locator("#findings .way .said").first).to_contain_text("Count how often")
    x, y, made = page.evaluate(
        "(() => { dig.app.select(null); dig.app.view.fit(); const one = dig.app.model.node('a1');"
        " return [dig.app.view.x(dig.app.layout.startAt[one.i]) + 3,"
        " dig.app.view.y(one.lane) + 8, one.outputs[0].id]; })()"
    )
    at = box(page, "#canvas")
    page.mouse.move(at["x"] + x, at["y"] + y)
    tip = page.locator("#tip")
    expect(tip).to_contain_text("in: e1 problem: ")
    expect(tip).to_contain_text(f"out: {made} problem: part: ")
    page.mouse.click(at["x"] + x, at["y"] + y)
    expect(page.locator("#details .said").first).to_contain_text("Count how often")


def test_everything_can_be_done_from_the_keyboard(page: Page) -> None:
    """Walk through findings and nodes, choose, ask for help, and get out again."""
    page.keyboard.press("n")
    first = state(page)["selected"]
    page.keyboard.press("n")
    second = state(page)["selected"]
    page.keyboard.press("p")
    assert first == state(page)["selected"] != second
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    assert state(page)["selected"] == {"kind": "activation", "id": "a1"}
    page.keyboard.press("l")
    came = state(page)["selected"]
    assert came["kind"] == "event"
    page.keyboard.press("h")
    assert state(page)["selected"]["id"] == "a1"
    page.keyboard.press("3")
    assert state(page)["tab"] == "overview"
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def test_every_control_is_reached_by_tab_and_has_a_name(page: Page) -> None:
    """Whoever cannot see or point learns what is there."""
    names = []
    for _ in range(40):
        page.keyboard.press("Tab")
        names.append(
            page.evaluate(
                "(e => e.getAttribute('aria-label') || e.textContent.trim() || e.id)"
                "(document.activeElement)"
            )
        )
        if page.evaluate("document.activeElement.closest('aside') !== null"):
            break
    assert all(names)
    assert {"Search", "Raw", "Cleaned", "Everything", "Play"} <= set(names)
    nameless = page.locator("button, input, canvas, [role=listbox], ol").evaluate_all(
        """all => all.filter(e => e.checkVisibility() && !e.ariaHidden
             && !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map(e => e.outerHTML)"""
    )
    assert nameless == []


# --- time ---


@pytest.mark.parametrize("t", [0, 40, 128])
def test_the_scrubber_shows_the_graph_as_it_stood(page: Page, run: Path, t: int) -> None:
    """As many nodes and edges as the graph had at that moment, on the scale of the picture."""
    moment = "dig.app.model.times[t]"
    place = page.evaluate(f"t => dig.app.layout.axis.place({{ t, us: {moment} }})", t)
    page.locator("#scrubber").fill(str(place))
    found = drawn(page)
    oracle = Oracle(run, at=found["at"])
    times = [page.evaluate(f"t => {moment}", one) for one in (t, found["at"], found["at"] + 1)]
    assert times[0] == times[1] < times[2]
    assert found["drawn"]["events"] == len(oracle.nodes("event"))
    assert found["drawn"]["activations"] == len(oracle.nodes("activation"))
    assert found["drawn"]["edges"] == oracle.deliveries()


def test_one_steps_through_the_records(page: Page) -> None:
    """Back, on, to the first moment, and to all of it."""
    last = state(page)["t"]
    page.get_by_role("button", name="One record back").click()
    assert state(page)["at"] == last - 1
    page.keyboard.press(",")
    assert state(page)["at"] == last - 2
    page.keyboard.press(".")
    page.get_by_role("button", name="One record on").click()
    assert state(page)["at"] is None
    page.keyboard.press("Home")
    assert state(page)["at"] == 0
    page.keyboard.press("End")
    assert state(page)["at"] is None


def test_play_goes_through_the_run(page: Page) -> None:
    """From the first record on, until it is stopped."""
    page.locator("#canvas").focus()
    page.keyboard.press(" ")
    assert state(page)["playing"]
    first = settled(page, "s.at > 0")["at"]
    assert settled(page, f"s.at > {first}")["playing"]
    page.get_by_role("button", name="Pause").click()
    assert not state(page)["playing"]
