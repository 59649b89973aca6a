"""The notebook: all its cells are executed, in order, in one namespace, as Jupyter does."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "quickstart.ipynb"


async def execute(cells: list[str], namespace: dict[str, Any]) -> None:
    for number, source in enumerate(cells):
        code = compile(source, f"cell {number}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waiting = eval(code, namespace)
        if inspect.isawaitable(waiting):
            await waiting


def test_every_cell_of_the_notebook_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It finds the work that was left behind, and ends with a page."""
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    asyncio.run(execute(["".join(cell["source"]) for cell in cells], namespace))
    shown = capsys.readouterr().out
    assert "answer e7 was submitted too early; still open" in shown
    assert "DiGraph" in shown
    assert namespace["page"].path.is_file()
    assert namespace["answer"] == "a flight at 9:40"
