"""What every test may ask for."""

from __future__ import annotations

import gc
import signal
import ssl
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any
from zlib import crc32

import pytest
import typer.main
from hypothesis import settings

from tests.browser.browsers import NONE

BY_FRAMEWORK = "tests/adapters/test_conformance.py"
"""A file of tests that are about the frameworks that are installed, each by itself."""

# Each call of a command makes the commands anew: 17 ms, half of the time of a test of commands.
typer.main.get_command = cache(typer.main.get_command)  # `typer.testing` takes it from there

# Each client of a model reads all certificates anew, for servers of tests that have none.
ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]

gc.disable()  # while the tests are collected; see `pytest_collection_finish`

# A shell starts what runs in its background with Ctrl-C ignored, and commands would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `ci` draws the same examples on every machine, and a nightly run more of them;
# `pytest --hypothesis-profile=dev` looks further.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=20, print_blob=True)
settings.register_profile("whole", settings.get_profile("ci"), max_examples=50)
settings.register_profile("dev", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the nightly run."""
    parser.addoption("--whole", action="store_true", help="all cases of sampled tests, and nightly")


def pytest_configure(config: pytest.Config) -> None:
    """Have a nightly run draw more examples, unless a profile is named."""
    if config.getoption("whole") and not config.getoption("--hypothesis-profile"):
        settings.load_profile("whole")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out nightly tests, all but a share of the cases of sampled ones, and tests without any.

    `@pytest.mark.sampled(5)`: a fifth of its cases, the same ones each time, and at least one.
    """
    without = [it for it in items if it.nodeid.startswith(BY_FRAMEWORK) and "NOTSET" in it.nodeid]
    leave_out(config, items, without)
    if config.getoption("whole"):
        return
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out = {item for item in items if item.get_closest_marker("nightly")}
    for name, some in cases.items():
        marker = some[0].get_closest_marker("sampled")
        share = min(marker.args[0] if marker else 1, len(some))
        left_out |= {
            case for number, case in enumerate(some) if (number - crc32(name.encode())) % share
        }
    leave_out(config, items, left_out)


def leave_out(
    config: pytest.Config, items: list[pytest.Item], some: Collection[pytest.Item]
) -> None:
    """Deselect some of the items."""
    config.hook.pytest_deselected(items=[item for item in items if item in some])
    items[:] = [item for item in items if item not in some]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop under a test marked `anyio`: each such test runs on both."""
    backend: str = request.param
    return backend


@pytest.fixture(autouse=True, scope="session")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of its own: what tests make is not kept among what the user has made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> None:
    """Spare the garbage collector what the modules before have left.

    A test that collects takes a second in the midst of the suite otherwise.
    """
    gc.freeze()


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays until the end anyway, and let it look less often.

    These are the modules and the collected tests: a full collection went through all of them.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 10, 10)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say aloud that the pages were not tested, if there was no browser."""
    skipped = [
        one for one in terminalreporter.stats.get("skipped", []) if NONE in str(one.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests of pages were skipped: {NONE}", red=True)


TOGETHER = {
    "tests/browser/": "browser",
    "tests/lab/faults/test_attributors.py": "small set",
    "tests/lab/faults/test_benchmark_page.py": "small set",
    "tests/lab/faults/test_generate.py": "small set",
    "tests/lab/faults/test_scores.py": "small set",
}
"""Files of tests that share what takes seconds to make, by how their names begin."""


@pytest.hookimpl(optionalhook=True)  # without xdist nobody asks
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the tests of a file to one worker, so that what they share is made once.

    By name, not the most tests first: small files come last, and no worker waits for a long one.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Together(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file == BY_FRAMEWORK:
                return f"{file} {nodeid.partition('[')[2].partition('-')[0]}"
            return next((TOGETHER[it] for it in TOGETHER if file.startswith(it)), file)

    config.option.loadscopereorder = False
    return Together(config, log) if config.getvalue("dist") == "load" else None
