"""One browser for all tests of this folder, and pages that report whatever goes wrong in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.browser.browsers import ARGUMENTS, NONE, browser_path, is_required
from tests.browser.pages import report, simulated

WIDTH, HEIGHT = 1280, 800

# The errors of a page whose server ends, by the moment at which the page asks.
GONE = (
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_EMPTY_RESPONSE",
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "ERR_SOCKET_NOT_CONNECTED",
)


# For the package, not the session: the driver's event loop counts as running in this thread for
# as long as it is there, and other tests run their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The browser; without one the test is skipped, which the summary says."""
    path = browser_path()
    if path is None:
        (pytest.fail if is_required() else pytest.skip)(NONE)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Witness:
    """What a page did besides what it was asked for.

    Attributes:
        problems: Errors and warnings, on the console or not caught.
        requests: All addresses that it asked for.
        allowed: Parts of problems that a test provokes.
    """

    def __init__(self, page: Page) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.allowed: list[str] = []
        self._page = page
        self._listeners = {
            "console": self._console,
            "pageerror": lambda error: self.problems.append(str(error)),
            "request": lambda request: self.requests.append(request.url),
            "dialog": lambda dialog: self.problems.append(f"dialog: {dialog.message}"),
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)  # type: ignore[call-overload]

    def leave(self) -> None:
        """Watch no longer."""
        for event, listener in self._listeners.items():
            self._page.remove_listener(event, listener)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def unexpected(self) -> list[str]:
        """The problems that no test has provoked."""
        return [one for one in self.problems if not any(part in one for part in self.allowed)]

    def strangers(self, *own: str) -> list[str]:
        """The requests that went elsewhere than to some addresses."""
        return [url for url in self.requests if not url.startswith((*own, "data:", "blob:"))]


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six agents."""
    return simulated(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="package")
def address(run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its report."""
    return report(run, tmp_path_factory.mktemp("report") / "a & <b>.html")


def opened_tab(browser: Browser) -> Page:
    """A tab at half a large screen, with storage and permissions of its own."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", reduced_motion="reduce"
    )
    context.set_default_timeout(20_000)
    return context.new_page()


@pytest.fixture(scope="package")
def tab(browser: Browser) -> Iterator[Page]:
    """The tab of one test after the other: to open one takes longer than most tests."""
    tab = opened_tab(browser)
    yield tab
    tab.context.close()


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """An empty page, with the size, the storage and the permissions of a new one."""
    tab.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    tab.mouse.move(0, 0)
    yield tab
    tab.evaluate("try { localStorage.clear() } catch {}")
    tab.context.clear_permissions()
    tab.goto("about:blank")


@pytest.fixture
def fresh_page(browser: Browser) -> Iterator[Page]:
    """A page in a tab of its own, for what `page` does not take back, such as the clock."""
    page = opened_tab(browser)
    yield page
    page.context.close()


@pytest.fixture
def witness(page: Page) -> Iterator[Witness]:
    """Watches the page; a problem that the test has not provoked fails it."""
    witness = Witness(page)
    yield witness
    witness.leave()
    assert witness.unexpected() == []
