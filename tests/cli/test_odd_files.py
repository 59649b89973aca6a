"""Files that options name: an endless, a silent or a huge one is an error, and is not read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dig._util.files import MOST_BYTES
from tests.diagnosis.failed_runs import failed

COMMANDS = (
    "check RUN --baseline FILE", "check RUN --config FILE", "check RUN --usual FILE",
    "thresholds --config FILE", "run count-frequency --virtual --config FILE",
    "run count-frequency --virtual --usual FILE", "try RUN --at 20 --hypotheses FILE",
    "try RUN --at 20 --edit FILE", "fork RUN --at 20 --edit FILE", "report RUN --diagnosis FILE",
    "why FILE --as messages", "why FILE --as conversation", "why FILE",
    "import FILE -o made", "investigate FILE --from otlp", "investigate FLASH --checkpoint FILE",
    "investigate FLASH --score FILE", "experiment FILE --out made",
)  # fmt: skip
FLASH = Path(__file__).parents[2] / "examples" / "flash-sale"
LONGER = ("why FILE", "import", "investigate FILE")
"""Of files to import and conversations more is read: see `tests/test_fuzz.py`."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that failed."""
    return failed(tmp_path_factory.mktemp("runs"))


@pytest.fixture(params=["endless", "silent", "huge"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A link to zeros without an end, a pipe that nobody writes to, a file with a hole."""
    path = tmp_path / "odd.toml"
    if request.param == "endless":
        path.symlink_to("/dev/zero")
    elif request.param == "silent":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(MOST_BYTES + 1)
    return path


@pytest.mark.skipif(os.name != "posix", reason="there are no such files")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_odd_file_is_refused(
    call: Any, monkeypatch: pytest.MonkeyPatch, run: Path, odd: Path, tmp_path: Path, command: str
) -> None:
    """One line that names the file, status 2, and nothing is waited for."""
    if odd.is_file() and command.startswith(LONGER):
        pytest.skip("it may be longer")
    monkeypatch.chdir(tmp_path)
    named = {"RUN": run, "FILE": odd, "FLASH": FLASH}
    status, out, err = call(*(named.get(word, word) for word in command.split()))
    assert (status, out) == (2, "")
    assert "odd.toml" in err and len(err.splitlines()) == 1
    assert not (tmp_path / "made").exists()
