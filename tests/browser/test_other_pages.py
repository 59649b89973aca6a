"""Pages of a conversation and of an investigation, opened from disk in the page of runs."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from dig.diagnosis.conversations.explaining import explain
from dig.diagnosis.conversations.reading import read_conversation
from dig.diagnosis.pictures import draw_conversation
from dig.lab.investigate.investigation import investigate
from dig.lab.investigate.investigation_page import draw_investigation
from dig.lab.investigate.rules import ServiceRules
from dig.lab.investigate.snapshot import Snapshot
from tests.browser.conftest import Witness
from tests.browser.pages import opened
from tests.diagnosis.conversations.talks import history, write
from tests.lab.investigate.worlds import FLASH_SALE


def test_a_step_of_a_conversation_shows_its_text(
    page: Page, witness: Witness, tmp_path: Path
) -> None:
    """The answer is chosen at first, times are steps, and a click in its path shows the text."""
    path = write(tmp_path / "chat.json", history())
    out = tmp_path / "chat.html"
    draw_conversation(read_conversation(path), explain(path, has_graph=True), out)
    opened(page, f"{out.as_uri()}#")
    assert witness.strangers(out.as_uri()) == []
    expect(page.locator("#headline")).to_contain_text("Map_Expert: it speaks of assumed")
    page.locator("#findings").get_by_role("button", name="text 3").click()
    expect(page.locator("#details")).to_contain_text("Let's assume a sample of 17 bridges")


def test_a_judgement_of_an_investigation_shows_packet_and_belief(
    page: Page, witness: Witness, tmp_path: Path
) -> None:
    """The explanation is in focus at first; a step links its evidence, its inbox and its belief."""
    world, out = Snapshot.read(FLASH_SALE), tmp_path / "flash.html"
    draw_investigation(investigate(world, ServiceRules()), world, out)
    found = opened(page, f"{out.as_uri()}#")
    assert found["focus"] == ["S1 -> S2", "S1: origin", "S2: symptom"]
    assert witness.strangers(out.as_uri()) == []
    expect(page.locator("#chips")).to_contain_text("4 parts")
    page.evaluate("dig.app.select(dig.app.model.node('10 symptom'))")
    details = page.locator("#details")
    for name in ("evidence of S2", "belief 8", "belief 10"):
        expect(details.get_by_role("button", name=name, exact=True).first).to_be_visible()
    details.get_by_role("button", name="belief 10", exact=True).first.click()
    expect(details).to_contain_text('"by": "S1"')
