"""From the page to the act: commands that are copied, a rule for a false alarm, a note."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dig.show.server.server import Server
from tests.browser.conftest import Witness
from tests.browser.pages import opened, report
from tests.show.server.client import serving
from tests.traces.runs import directory, hasty, late_twice, store

CHOOSE = "dig.app.select(dig.app.findings.shown()[0])"


@pytest.fixture
def early(tmp_path: Path) -> Path:
    """A run with one finding, at record 12."""
    return directory(tmp_path / "my runs", "early", hasty())


def chosen(page: Page, address: str) -> None:
    """Opens a page with its finding open."""
    opened(page, address)
    page.wait_for_function("() => dig.app.findings.shown().length")
    page.evaluate(CHOOSE)


def test_commands_about_a_finding_are_copied_by_a_click(
    page: Page, witness: Witness, early: Path, tmp_path: Path
) -> None:
    """Each with the name of the run; a report alone can write nothing."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chosen(page, report(early, tmp_path / "r.html"))
    shown = page.locator(".finding .acts code").all_inner_texts()
    assert shown == [
        "digmon show early 11",
        "digmon why early --good findings.ET==0 --try",
        "digmon check early --ignore ET=a",
    ]
    button = page.get_by_role("button", name=f"Copy: {shown[1]}")
    button.click()
    expect(button).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == shown[1]
    expect(button).to_have_text("Copy")
    expect(page.locator(".finding form")).to_have_count(0)
    assert witness.strangers("file:") == []


@pytest.fixture
def server(early: Path, page: Page, tmp_path: Path) -> Iterator[Server]:
    """A server of the run."""
    with serving(early, settings=tmp_path / "digmon.toml") as server:
        yield server
        page.goto("about:blank")


def test_a_false_alarm_is_shown_as_a_rule_and_then_written(
    page: Page, witness: Witness, server: Server, tmp_path: Path
) -> None:
    chosen(page, server.address)
    form, file = page.locator(".finding form"), tmp_path / "digmon.toml"
    form.get_by_role("textbox").fill("votes may be late")
    form.get_by_role("button", name="Show the rule").click()
    expect(form.locator("pre")).to_contain_text('reason = "votes may be late"')
    assert not file.exists()
    form.get_by_role("button", name=f"Add it to {file}").click()
    expect(form.locator("code")).to_contain_text(f"--config {file}")
    assert tomllib.loads(file.read_text())["policy"]["ET"][0]["action"] == "off"
    assert witness.strangers(server.guard.root) == []


def test_the_rule_is_about_the_finding_that_is_open(
    page: Page, witness: Witness, tmp_path: Path
) -> None:
    """Also if another one was raised at the same record."""
    run, forms = store(tmp_path / "t.dig.jsonl", late_twice()), page.locator(".finding form")
    with serving(run, settings=tmp_path / "digmon.toml") as server:
        opened(page, server.address)
        page.wait_for_function("() => dig.app.findings.shown().length > 1")
        for event, type_ in (("q", "one"), ("m", "other")):
            chosen = f"(one) => one.pattern === 'LATE' && one.ids.includes('{event}')"
            page.evaluate(f"dig.app.select(dig.app.model.findings.find({chosen}))")
            forms.get_by_role("textbox").fill("slow")
            forms.get_by_role("button", name="Show the rule").click()
            expect(forms.locator("pre")).to_contain_text(f'types = ["{type_}"]')
        page.goto("about:blank")
    assert witness.strangers(server.guard.root) == []


def test_what_is_wrong_with_a_false_alarm_is_said(
    page: Page, witness: Witness, server: Server, tmp_path: Path
) -> None:
    """Beside the form; what was typed stays, also when the list is made anew."""
    (tmp_path / "digmon.toml").write_text('[policy]\nET = "off"\n')
    witness.allowed.append("409")
    chosen(page, server.address)
    form = page.locator(".finding form")
    form.get_by_role("textbox").fill("typed")
    form.get_by_role("button", name="Show the rule").click()
    expect(form.get_by_role("status")).to_contain_text("it cannot be added here")
    page.evaluate("dig.app.setHops(2)")
    expect(form.get_by_role("textbox")).to_have_value("typed")


def test_a_note_is_written_and_stands_in_the_report(
    page: Page, witness: Witness, server: Server, early: Path, tmp_path: Path
) -> None:
    """While one types, the page may be made anew: the cursor stays."""
    opened(page, server.address)
    page.evaluate("dig.app.tabs.show('overview')")
    text = page.get_by_role("textbox", name="Note on this run")
    text.click()
    page.keyboard.type("who read ")
    page.evaluate("dig.app.overview.version = '', dig.app.overview.update()")
    page.keyboard.type("this?")
    page.get_by_role("button", name="Write").click()
    expect(page.get_by_text("It is written.")).to_be_visible()
    assert (early / "note.txt").read_text() == "who read this?"
    page.goto(report(early, tmp_path / "r.html"))
    page.evaluate("dig.app.tabs.show('overview')")
    expect(page.locator("#overview .note")).to_have_text("who read this?")
