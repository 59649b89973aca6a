"""The page of a run that is going on: it grows with the journal, whatever happens to the server."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dig.graph.records import FindingRow, HealRow, Record
from dig.show.server.server import Server
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE, read_records
from tests.browser.conftest import GONE, Witness
from tests.browser.pages import opened, settled, state, visited
from tests.show.server.client import serving
from tests.traces.runs import hasty, store


class Growing:
    """A journal that is written while somebody looks.

    Attributes:
        path: Its run directory.
        records: What is to be written still.
    """

    def __init__(self, path: Path, records: list[Record]) -> None:
        self.path = path
        self.records = records
        self._journal = Journal(path / TRACE)

    def write(self, count: int | None = None) -> int:
        """Write so many further records, or all; returns the number of the last one."""
        now = self.records[:count]
        del self.records[:count]
        for record in now:
            self._journal(record)
        return now[-1].t

    def ahead(self) -> tuple[int, int]:
        """The findings and the interventions that are to be written still: some of each."""
        numbers = [sum(isinstance(r, kind) for r in self.records) for kind in (FindingRow, HealRow)]
        assert all(numbers)
        return numbers[0], numbers[1]

    def close(self) -> None:
        """Be done with it."""
        self._journal.close()


@pytest.fixture
def growing(tmp_path: Path, run: Path) -> Iterator[Growing]:
    """A run of which twenty records are there."""
    growing = Growing(tmp_path, list(read_records(run)))
    growing.write(20)
    yield growing
    growing.close()


@pytest.fixture
def server(page: Page, growing: Growing) -> Iterator[Server]:
    """A server of it."""
    with visited(page, growing.path) as server:
        yield server


def numbers(page: Page) -> list[int]:
    """The numbers of the records that the page was told of, as its model has them."""
    found: list[int] = page.evaluate("dig.app.model.times.map((_, t) => t)")
    return found


def test_it_shows_what_is_there_and_grows(
    page: Page, witness: Witness, growing: Growing, server: Server
) -> None:
    """And asks nobody but the server that it came from."""
    assert opened(page, server.address)["t"] == 19
    expect(page.locator("#chips")).to_contain_text("live")
    last = growing.write(100)
    found = settled(page, f"s.t === {last}")
    assert (found["rows"], found["fitted"]) == (last + 1, True)
    assert found["window"][1] >= found["end"]
    assert witness.strangers(server.guard.root) == []


def test_a_record_is_shown_within_a_second_of_its_line(
    page: Page, witness: Witness, growing: Growing, server: Server
) -> None:
    """The quickest of five, so that a machine that is busy with something else does no harm."""
    opened(page, server.address)
    took = []
    for _ in range(5):
        began = time.monotonic()
        settled(page, f"s.t === {growing.write(1)} && s.frames > 0")
        took.append(time.monotonic() - began)
    assert min(took) < 1


def test_what_is_found_and_healed_meanwhile_is_listed(
    page: Page, witness: Witness, growing: Growing, server: Server
) -> None:
    """With its explanation, as in a report."""
    findings, heals = growing.ahead()
    opened(page, server.address)
    expect(page.locator("#findings ol > li")).to_have_count(0)
    found = settled(page, f"s.t === {growing.write()}")
    assert (found["counts"]["findings"], found["counts"]["heals"]) == (findings, heals)
    rows = page.locator("#findings ol > li").all_inner_texts()
    # Findings that are alike are one row, which says how many they are.
    times = [re.search(r"(\d+) times", row) for row in rows]
    assert sum(int(row[1]) if row else 1 for row in times) == findings
    page.locator("#findings li", has_text="ET").first.locator("button").first.click()
    expect(page.locator("#findings li.chosen .more")).to_contain_text("submitted too early")
    expect(page.locator("#findings li.chosen .note").first).not_to_be_empty()


def test_a_view_that_was_chosen_stays_while_the_run_grows(
    page: Page, witness: Witness, growing: Growing, server: Server
) -> None:
    """Neither window, nor selection, nor moment moves by itself."""
    opened(page, server.address)
    for key in ("j", "+", "+", ","):
        page.keyboard.press(key)
    before = state(page)
    after = settled(page, f"s.t === {growing.write(80)}")
    kept = ("at", "selected", "window", "lane", "axis", "graph", "tab")
    assert {key: after[key] for key in kept} == {key: before[key] for key in kept}


def test_when_the_run_ends_so_does_the_asking(
    page: Page, witness: Witness, growing: Growing, server: Server
) -> None:
    """The page says how it ended and goes on working without the server."""
    opened(page, server.address)
    growing.write()
    growing.close()
    settled(page, "s.live === 'ended'")
    expect(page.locator("#headline")).to_contain_text("Early answer after")
    asked = len(witness.requests)
    page.wait_for_timeout(700)  # longer than a browser waits before it comes again
    assert len(witness.requests) == asked
    page.keyboard.press("n")
    assert state(page)["selected"]["kind"] == "finding"


def test_a_run_that_was_cut_off_is_said_to_be(
    page: Page, witness: Witness, growing: Growing, server: Server
) -> None:
    """Nobody writes its journal any more."""
    opened(page, server.address)
    growing.close()
    settled(page, "s.live === 'ended'")
    expect(page.locator("#headline")).to_contain_text("Cut off at")


def test_it_survives_that_the_server_goes_and_comes_back(
    page: Page, witness: Witness, growing: Growing
) -> None:
    """Nothing is missing, and nothing is there twice."""
    witness.allowed += GONE
    with serving(growing.path) as server:
        opened(page, server.address)
        settled(page, f"s.t === {growing.write(30)}")
    settled(page, "s.live === 'waiting'")
    expect(page.locator("#chips")).to_contain_text("connection lost")
    findings, heals = growing.ahead()
    last = growing.write()
    with serving(growing.path, port=server.server_port):
        found = settled(page, f"s.t === {last}")
        assert found["rows"] == last + 1
        assert numbers(page) == list(range(last + 1))
        assert (found["counts"]["findings"], found["counts"]["heals"]) == (findings, heals)
        settled(page, "s.live !== 'waiting'")


def test_the_clock_goes_on_while_a_team_is_stuck(
    page: Page, witness: Witness, growing: Growing, server: Server
) -> None:
    """It says since when no agent works, and counts down to the moment of the deadlock."""
    (growing.path / "side.json").write_text(json.dumps({"clock": "real time x 1"}))
    raised = next(r for r in growing.records if isinstance(r, FindingRow) and r.pattern == "DL")
    growing.write(growing.records.index(raised))
    trace = growing.path / TRACE
    os.utime(trace, (trace.stat().st_mtime - 5,) * 2)
    opened(page, server.address)
    line = page.locator("#headline")
    expect(line).to_contain_text("Stuck since ")
    expect(line).to_contain_text("Deadlock (DL) in ")
    first = page.evaluate("[dig.app.model.now.us, document.querySelector('#headline').textContent]")
    page.wait_for_function("us => dig.app.model.now.us > us", arg=first[0])
    expect(line).not_to_have_text(first[1])
    growing.write(1)
    expect(line).not_to_contain_text("Stuck")


def test_findings_of_a_plain_trace_are_told_live_too(
    page: Page, witness: Witness, tmp_path: Path
) -> None:
    """Of what other programs write nobody has recorded what is wrong with it."""
    rows = [row for row in hasty() if row["kind"] not in ("finding", "heal")]
    for t, row in enumerate(rows):
        row["t"] = t
    path = store(tmp_path / "theirs.dig.jsonl", rows[:5])
    with visited(page, path) as server:
        opened(page, server.address)
        store(path, rows)
        settled(page, f"s.t === {rows[-1]['t']}")
        expect(page.locator("#findings ol > li")).to_have_count(1)


def test_a_server_with_another_secret_is_not_the_one_that_was_lost(
    page: Page, witness: Witness, growing: Growing
) -> None:
    """The page says that its server has gone, and keeps what it has."""
    witness.allowed += [*GONE, "403"]
    with serving(growing.path) as server:
        opened(page, server.address)
    with serving(growing.path, port=server.server_port, token="another"):
        assert settled(page, "s.live === 'lost'")["t"] == 19
    expect(page.locator("#chips")).to_contain_text("the server has gone")


def test_a_run_of_a_directory_has_a_way_back_to_the_list(
    page: Page, witness: Witness, growing: Growing
) -> None:
    """From the list to the run, and back; a run that is served alone has no list."""
    with visited(page, growing.path.parent) as server:
        page.goto(server.address)
        page.get_by_role("link", name=growing.path.name).click()
        settled(page, "s.ready && s.t === 19")
        page.get_by_role("link", name="Runs").click()
        expect(page.locator("h1")).to_have_text("Runs")
    with visited(page, growing.path) as server:
        opened(page, server.address)
        expect(page.get_by_role("link", name="Runs")).to_be_hidden()
