"""One browser for all tests of this folder, and pages that report whatever goes wrong in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

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
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", self._request)
        page.on("dialog", lambda dialog: self.problems.append(f"dialog: {dialog.message}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)

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


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of its own, at half a large screen."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", reduced_motion="reduce"
    )
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


@pytest.fixture
def witness(page: Page) -> Iterator[Witness]:
    """Watches the page; a problem that the test has not provoked fails it."""
    witness = Witness(page)
    yield witness
    assert witness.unexpected() == []
