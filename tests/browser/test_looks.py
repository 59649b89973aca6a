"""A close look at the page: nothing is hard to read, cut off, on something else or off its moment.

`python -m tests.browser.looks` looks at more runs, and in every size.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from dig.show.page.writing import write_report
from dig.tasks.run.execute import execute
from tests.browser.looks import faults, looked
from tests.browser.test_cards import STUCK


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a healed run, beside itself."""
    run = execute(STUCK, tmp_path_factory.mktemp("runs")).directory
    return write_report(run, twin=run).path.as_uri()


@pytest.mark.parametrize(("width", "height", "theme"), [(1440, 900, "light"), (390, 844, "dark")])
def test_nothing_is_wrong_at_a_close_look(
    browser: Browser, report: str, width: int, height: int, theme: str
) -> None:
    """As the page opens, and with a finding, an activation or the overview in sight."""
    size = {"width": width, "height": height}
    page = browser.new_page(viewport=size, color_scheme=theme)  # type: ignore[arg-type]
    found = dict(looked(page, report))
    assert {state: lines for state, one in found.items() if (lines := faults(one))} == {}
    # It has looked at something. How much is in sight depends on the path in the command: a phone
    # breaks a long one into more lines, and each takes some of the picture.
    assert min(one["texts"] for one in found.values()) > 30
    page.close()


def test_a_close_look_sees_what_is_wrong(browser: Browser, report: str) -> None:
    """Pale text, text on other text, a hint that is cut, and things drawn at another moment."""
    page = browser.new_page()
    (_, found), *_ = looked(page, report)
    assert faults(found) == []
    page.evaluate(
        "() => { const { painter, layout } = dig.app; painter.theme['ink-2'] = '#ddd';"
        " painter.theme.ink = painter.theme.band; layout.startAt[0] += 1e6;"
        " document.querySelector('.chips').style.marginTop = '-14px';"
        " document.getElementById('search').placeholder = 'Search ' + 'and find '.repeat(9); }"
    )
    lines = faults(page.evaluate("look()"))
    for fault in ("below 4.5:1: ", "on one another: ", "px off its moment", "cut off: search"):
        assert any(fault in line for line in lines), fault
    page.close()
