"""The first screen of runs of twelve kinds: the five answers, and no text cut off or on another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from dig.show.page.writing import write_report
from dig.tasks.run.execute import execute
from tests import failing
from tests.browser.looks import faults
from tests.browser.pages import opened, repeating
from tests.browser.test_cards import STUCK
from tests.detectors.test_run_so_far import hasty
from tests.histories import arrive, end, row, start, trace, turn
from tests.oracle import Row
from tests.traces.runs import directory

LONG = "the name of an agent that is far too long for any column of a page"


def many(agents: int = 24) -> list[Row]:
    """A crowd of agents with long names, one of which fails again and again."""
    names = [f"{LONG} {n}" for n in range(agents)]
    rows: list[Row] = []
    for n, name in enumerate(names):
        rows += [
            {**made, **({"to": [name]} if made["kind"] == "emit" else {})}
            | ({"to": name} if made["kind"] == "deliver" else {})
            for made in arrive(n, f"e{n}", None, "a")
        ]
        failed = end(n + 0.5, f"v{n}", **{f"e{n}": "delay"})
        rows += [start(n, f"v{n}", name, f"e{n}"), failed | {"error": f"ValueError: {LONG * 3}"}]
    return trace(rows, row(agents, "finish", outcome="error"), agents=names)


CUT = """[...document.querySelectorAll('body *')].filter((one) => one.clientWidth
  && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === 'hidden'
  && !one.closest('[title], .spoken')).map((one) => one.className || one.id)"""

RUNS: dict[str, Callable[[], list[Row]]] = {
    "exception": failing.failed,
    "exception of many words": lambda: failing.failed(f"ValueError: {LONG * 4}"),
    "answer without a part": failing.partial,
    "limit": failing.at_limit,
    "out of time": lambda: failing.at_limit("timeout"),
    "waits for a person": failing.waiting,
    "went on": lambda: failing.waiting(is_resumed=True),
    "healthy": lambda: trace(arrive(0, "p", None, "a"), turn(1, "v", "a", p="consume")),
    "crowd": many,
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of the reports, by the kind of the run."""
    folder = tmp_path_factory.mktemp("runs")
    paths = {name: directory(folder, name, make()) for name, make in RUNS.items()}
    paths["ring"] = repeating(folder)
    paths["too early"] = hasty(folder)
    paths["healed"] = execute(STUCK, folder).directory
    return {
        name: write_report(path, folder / f"{n}.html").path.as_uri()
        for n, (name, path) in enumerate(paths.items())
    }


def story(page: Page, address: str) -> None:
    """Open a report as a person does, on its story."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_function("() => window.dig?.state.ready && dig.state.frames > 0")


@pytest.mark.parametrize("width", [390, 720, 1024, 1440])
def test_no_text_is_cut_off_or_lies_on_another(
    browser: Browser, reports: dict[str, str], width: int
) -> None:
    """At no width, for no kind of run; and the five answers are there with their text."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.add_init_script(path=Path(__file__).with_name("looking.js"))
    wrong: dict[str, list[str]] = {}
    for name, address in reports.items():
        story(page, address)
        lines = [line for line in faults(page.evaluate("look()")) if "below" not in line]
        cards = page.locator("#cards .card > div").all_inner_texts()
        cut = page.evaluate(CUT)
        if lines or cut or len(cards) < 4 or not all(cards):
            wrong[name] = [*lines, *cut, json.dumps(cards)]
    page.close()
    assert wrong == {}


def test_a_report_opens_on_its_worst_finding(page: Page, reports: dict[str, str]) -> None:
    """With what led to it; one button shows everything again. A healthy run shows all."""
    story(page, reports["healed"])
    chosen = page.evaluate("dig.state.selected")
    assert chosen["kind"] == "finding" and page.evaluate("dig.state.focus.length") > 0
    page.get_by_role("button", name="Everything").click()
    assert page.evaluate("[dig.state.selected, dig.state.fitted]") == [None, True]
    story(page, reports["healthy"])
    assert page.evaluate("dig.state.selected") is None


def test_one_agent_alone_is_one_click(page: Page, reports: dict[str, str]) -> None:
    """From what is said about the agent; everything is one click, too."""
    opened(page, reports["healed"])
    page.evaluate("dig.app.select(dig.app.model.lane('agent-3'))")
    page.get_by_role("button", name="Only this agent").click()
    assert page.evaluate("dig.state.lanes") == ["system", "agent-3"]
    page.get_by_role("button", name="Everything").click()
    assert len(page.evaluate("dig.state.lanes")) == 7


def test_many_agents_are_a_graph_first(page: Page, reports: dict[str, str]) -> None:
    """Failed agents are red; a click on one shows its lane alone."""
    story(page, reports["crowd"])
    assert page.evaluate("dig.state.tab") == "overview"
    failed = page.locator("#overview .matrix circle.failed")
    assert failed.count() == 24
    failed.nth(3).dispatch_event("click")
    assert len(page.evaluate("dig.state.lanes")) == 2
