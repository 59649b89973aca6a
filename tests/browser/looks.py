"""Looks closely at the pages of eight runs: `python -m tests.browser.looks`.

Measures the contrast of all texts, finds texts on one another and texts that are cut off, and
compares the place of every element with its moment: for eight runs, at 1440, 1024 and 390 pixels,
light and dark, as the page opens and with a finding, an activation and the overview in sight.

    python -m tests.browser.looks --out FOLDER       # keeps the pictures, too
    python -m tests.browser.looks --readme           # takes the picture of README.md anew

Two of the runs need LangGraph: `--langgraph PYTHON` names an interpreter that has it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from dig.show.page.writing import write_report
from tests.browser.browsers import ARGUMENTS, NONE, browser_path
from tests.browser.pages import opened

ROOT = Path(__file__).parents[2]
SIZES = ((1440, 900), (1024, 768), (390, 844))
THEMES = ("light", "dark")
STATES = {
    "as it opens": "",
    "finding": "dig.app.select(dig.app.findings.shown()[0] ?? null)",
    "activation": "dig.app.select(dig.app.model.activations.at(-1))",
    "overview": "dig.app.select(null), dig.app.tabs.show('overview')",
}
COUNTING = ("count-frequency", "--habit", "error=0", "--virtual")
DEMO = (*COUNTING, "--seed", "651")
SIMULATED = {
    "demo": (*DEMO, "--method", "dig"),
    "its twin": (*DEMO, "--method", "mas"),
    "newsgroups": ("newsgroups", "--seed", "1", "--virtual"),
    "healthy": (*COUNTING, "--seed", "606"),
    "100 agents": (*COUNTING, "--agents", "100", "--size", "100000", "--seed", "1"),
}
CUT_OFF = 60
"""The records of the demo that are left in the run that was cut off."""


def runs(folder: Path, langgraph: str | None) -> dict[str, Path]:
    """The eight runs, made anew; without LangGraph six of them."""
    made = {name: _run(folder, settings) for name, settings in SIMULATED.items()}
    lines = (made["demo"] / "trace.dig.jsonl").read_text().splitlines(keepends=True)
    made["cut off"] = folder / "cut-off.dig.jsonl"
    made["cut off"].write_text("".join(lines[:CUT_OFF]))
    if langgraph:
        wrapped = folder / "wrapped"
        command = [langgraph, str(ROOT / "examples" / "wrap_langgraph.py"), str(wrapped)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        observed, healed, *_ = sorted(wrapped.iterdir(), key=lambda run: run.stat().st_ctime_ns)
        made |= {"reroute loop": observed, "LangGraph example": healed}
    return made


def _run(folder: Path, settings: tuple[str, ...]) -> Path:
    command = [sys.executable, "-m", "dig", "run", *settings, "--runs", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)  # 1: no answer
    return Path(json.loads(done.stdout)["directory"])


def looked(page: Page, address: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a close look finds at a page, state by state."""
    page.add_init_script(path=Path(__file__).with_name("looking.js"))
    opened(page, address)
    for name, act in STATES.items():
        page.evaluate(f"() => {{ {act} }}")
        yield name, page.evaluate("look()")


def faults(found: dict[str, Any]) -> list[str]:
    """What is wrong with a page, in lines."""
    kinds = {"pale": "below 4.5:1", "overlaps": "on one another", "clipped": "cut off"}
    lines = [f"{text}: {one}" for key, text in kinds.items() for one in found[key][:6]]
    return lines + ([f"{found['astray']:.1f} px off its moment"] if found["astray"] > 0.5 else [])


def _look(browser: Browser, name: str, report: str, out: Path | None) -> int:
    wrong = 0
    for width, height in SIZES:
        for theme in THEMES:
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme="dark" if theme == "dark" else "light",
            )
            for state, found in looked(page, report):
                lines = faults(found)
                wrong += len(lines)
                print(
                    f"{name:18}{width:5} {theme:6}{state:12}{found['texts']:5} texts, "
                    f"contrast {found['contrast']:5.2f}, {found['astray']:4.2f} px off"
                )
                for line in lines:
                    print(f"    {line}")
                if out:
                    page.screenshot(path=out / f"{name}-{width}-{theme}-{state}.png")
            page.close()
    return wrong


def _readme(browser: Browser, report: str) -> None:
    """The picture of the README: the demo beside its twin."""
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    opened(page, report)
    page.screenshot(path=ROOT / "docs" / "pictures" / "page.png")


def main() -> int:
    """Look at all of it; the number of faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a folder for pictures")
    parser.add_argument("--langgraph", help="a Python that has LangGraph")
    parser.add_argument("--only", nargs="*", help="names of runs")
    parser.add_argument("--readme", action="store_true", help="take the README's picture anew")
    options = parser.parse_args()
    path = browser_path()
    if path is None:
        sys.exit(NONE)
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as driver:
        folder = Path(temporary)
        made = runs(folder, options.langgraph)
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
        for n, (name, run) in enumerate(made.items()):
            twin = made["its twin"] if name == "demo" else None
            report = write_report(run, folder / f"{n}.html", twin=twin).path.as_uri()
            if options.readme and name == "demo":
                _readme(browser, report)
            elif not options.readme and name in (options.only or made):
                wrong += _look(browser, name, report, options.out)
        browser.close()
    print(f"{wrong} faults")
    return wrong


if __name__ == "__main__":
    sys.exit(main() > 0)
