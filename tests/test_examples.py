"""What the README and examples/ show is what happens."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


@pytest.mark.skipif(not README.exists(), reason="an installed package has no README beside it")
def test_the_first_python_of_the_readme_runs_as_it_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    exec(compile(code, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert out.startswith("submitted 499500 (Finding(pattern='ET'")


def test_hello_ends_with_the_whole_answer_after_one_early_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "hello.py"))
    assert example["main"]() == 499500
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "submitted: 499500"
    assert [line.split()[0] for line in lines[1:]] == ["ET"]


def test_the_monitor_alone_answers() -> None:
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "monitor_only.py"))
    assert '"kind":"finish","outcome":"submitted"' in example["main"]()[-1]
