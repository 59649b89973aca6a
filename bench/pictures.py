"""Pictures: the page in a real browser beside cytoscape with dagre, and the drawing for papers.

cytoscape and its layout come from npm into a folder of the user's cache, for the bench alone. Of
frames the CPU time of the page's thread is taken, which paints as well where there is no GPU.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from dig.show.figure.drawing import compose
from dig.show.figure.raster import raster
from dig.show.figure.selection import RunPart
from dig.show.figure.source import Source
from dig.show.figure.svg import svg
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE, read_graph

from .measure import Table, claim
from .workload import Work

SIZES = (200, 2_000, 17_000, 85_000)
"""Nodes; of the last two, 10,000 and 50,000 are events."""
DEMO = TeamRun(seed=651, method="dig", profile=Profile.of(["error=0"]))
MOST_FOR_CYTOSCAPE = 2_000
DRAWN = (100, 400, 1_000)
ROUNDS = 3
PACKAGES = ("cytoscape@3.34.4", "cytoscape-dagre@4.0.1")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-frame-rate-limit", "--disable-gpu-vsync",
)  # fmt: skip

FRAMES = 40
COLUMNS = ("layout", "first paint", "CPU to it", "frame, all in sight", "frame, close")

# Tells when all was drawn, and moves a picture to and fro, frame by frame.
_STOPWATCH = """
  const frame = () => new Promise(requestAnimationFrame);
  window.shown = async () => {
    await frame(); await frame();
    window.firstPaint = performance.now();
  };
  window.moved = async (frames, pan) => {
    for (let i = 0; i < frames; i++) { pan(i % 20 < 10 ? 3 : -3); await frame(); }
  };
"""

_OURS_SHOWN = """
  const look = () => {
    const page = window.dig?.app;
    if (page?.isReady && page.painter.frames > 0) window.shown();
    else requestAnimationFrame(look);
  };
  look();
"""


@dataclass(frozen=True)
class Page:
    """How a page is asked: JavaScript functions, and what tells that all was drawn."""

    layout: str
    pan: str
    zoom: str
    shown: str = ""


OURS = Page(
    """() => {
      const { app } = window.dig, began = performance.now();
      app.layout.reset();
      app.layout.slots(app.view.scale, app.view.laneHeight);
      return performance.now() - began;
    }""",
    "(frames) => window.moved(frames, (dx) => window.dig.app.view.pan(dx, 0))",
    "(by) => { const { view } = window.dig.app; view.zoom(by, view.gutter + view.plot / 2); }",
    _OURS_SHOWN,
)
CYTOSCAPE = Page(
    "() => window.layoutMs",
    "(frames) => window.moved(frames, (dx) => window.cy.panBy({ x: dx, y: 0 }))",
    """(by) => {
      const middle = { x: innerWidth / 2, y: innerHeight / 2 };
      window.cy.zoom({ level: window.cy.zoom() * by, renderedPosition: middle });
    }""",
)
_THEIR_PAGE = """<!doctype html><meta charset="utf-8">
<style>html, body, #cy {{ margin: 0; width: 100%; height: 100% }}</style><div id="cy"></div>
<script src="{cytoscape}"></script><script src="{dagre}"></script>
<script>
  cytoscape.use(window.cytoscapeDagre.default ?? window.cytoscapeDagre);
  const cy = window.cy = cytoscape({{
    container: document.getElementById("cy"), elements: {elements},
    maxZoom: 1e6, minZoom: 1e-6,
    style: [{{ selector: "node", style: {{ label: "data(id)", "font-size": 8 }} }},
            {{ selector: "edge", style: {{ width: 1, "target-arrow-shape": "triangle",
                                          "curve-style": "bezier" }} }}],
  }});
  const began = performance.now();
  cy.one("layoutstop", () => {{ window.layoutMs = performance.now() - began; window.shown(); }});
  cy.layout({{ name: "dagre", rankDir: "LR" }}).run();
</script>"""


def pictures(quick: bool) -> Table:
    """The report, layout, first paint and frames of the page, beside cytoscape with dagre."""
    title = "Pictures in a browser (milliseconds)"
    columns = ("", "nodes", "report, CPU", *COLUMNS)
    if missing := _missing():
        return Table(title, columns, (), missing)
    sizes = SIZES[:2] if quick else SIZES
    rows, claims = [], []
    with tempfile.TemporaryDirectory() as temporary, _browser() as browser:
        libraries = _libraries()
        for size in sizes:
            run = _run(Path(temporary), size)
            began = process_time()
            report = _report(run)
            report_ms = (process_time() - began) * 1000
            ours = _measured(browser, report, OURS)
            rows.append(_row("the page", size, {"report": report_ms, **ours}))
            if size <= MOST_FOR_CYTOSCAPE:
                theirs = _measured(browser, _cytoscape(run, libraries), CYTOSCAPE)
                rows.append(_row("cytoscape, dagre", size, {"report": 0, **theirs}))
                ratios = ", ".join(f"{k} {theirs[k] / max(ours[k], 0.1):.1f}" for k in ours)
                claims.append(f"cytoscape to the page, {size:,} nodes: {ratios}")
            if size == SIZES[2]:
                claims.append(
                    claim("10,000 events: first paint, ms of CPU", ours["CPU to it"], 500)
                )
                frame = max(ours[key] for key in COLUMNS[-2:])
                claims.append(claim("10,000 events: a frame, ms of CPU", frame, 16))
            if size == SIZES[3]:
                claims.append(claim("50,000 events: the report, ms of CPU", report_ms, 5000))
        demo = _report(execute(DEMO, Path(temporary)).directory)
        close = _measured(browser, demo, OURS, zoom=1000)
        rows.append(_row("the demo, 1,000 x", 75, {"report": 0, **close}))
        claims.append(claim("the demo, 1,000 x: a frame, ms of CPU", close[COLUMNS[-1]], 16))
    return Table(title, columns, rows, "\n".join(claims))


def drawing(quick: bool) -> Table:
    """The drawing for papers: its layout and shapes, and the two back ends."""
    sizes = DRAWN[:2] if quick else DRAWN
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for size in sizes:
            source = Source.of(_run(Path(temporary), size))
            scene = compose([source], RunPart())
            times = {
                "shapes": _best(lambda source=source: compose([source], RunPart())),  # type: ignore[misc]
                "svg": _best(lambda scene=scene: svg(scene)),  # type: ignore[misc]
                "png": _best(lambda scene=scene: raster(scene, "png")),  # type: ignore[misc]
            }
            kib = len(svg(scene)) / 1024
            whole = times["shapes"] + times["svg"]
            rows.append(
                (f"{size:,} nodes", *(f"{ms:.1f}" for ms in times.values()), f"{kib:.0f}",
                 f"{whole / size * 1000:.0f}", f"{times['png'] / times['svg']:.0f}")
            )  # fmt: skip
    columns = ("", "shapes", "svg", "png", "svg, KiB", "us/node", "png to svg")
    return Table("A drawing (milliseconds)", columns, rows)


def _best(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = perf_counter()
        work()
        times.append((perf_counter() - began) * 1000)
    return min(times)


def _run(folder: Path, nodes: int) -> Path:
    """The journal of teams at work, with so many events and activations."""
    path = folder / str(nodes)
    path.mkdir(exist_ok=True)
    with closing(Journal(path / TRACE)) as journal:
        Work(agents=20, sink=journal).grow(nodes)
    return path


def _report(run: Path) -> Path:
    from dig.show.page.writing import write_report

    return write_report(run).path


def _cytoscape(run: Path, libraries: tuple[Path, Path]) -> Path:
    view = read_graph(run).at(10**9)
    elements = [{"data": {"id": node}} for node, _ in view.nodes()]
    elements += [{"data": {"source": a, "target": b}} for a, b, _ in view.edges()]
    page = run.with_suffix(".cytoscape.html")
    cytoscape, dagre = (library.as_uri() for library in libraries)
    text = _THEIR_PAGE.format(cytoscape=cytoscape, dagre=dagre, elements=json.dumps(elements))
    page.write_text(text, encoding="utf-8")
    return page


# --- the browser --------------------------------------------------------------------------------


def _missing() -> str:
    """What is not there to measure with, in a sentence."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "skipped: playwright is not installed (pip install playwright)"
    if not _found(BROWSERS):
        return f"skipped: there is no browser ({', '.join(BROWSERS)})"
    return "" if shutil.which("npm") else "skipped: there is no npm to get cytoscape with"


def _found(names: tuple[str, ...]) -> str | None:
    return next(filter(None, map(shutil.which, names)), None)


def _libraries() -> tuple[Path, Path]:
    """cytoscape and its layout, from npm."""
    folder = Path.home() / ".cache" / "dig-monitor" / "bench"
    found = folder / "node_modules"
    files = (
        found / "cytoscape" / "dist" / "cytoscape.min.js",
        found / "cytoscape-dagre" / "dist" / "cytoscape-dagre.min.js",
    )
    if not all(file.exists() for file in files):
        folder.mkdir(parents=True, exist_ok=True)
        npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
        subprocess.run(npm, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return files


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_found(BROWSERS), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def _measured(browser: Any, file: Path, page: Page, zoom: float = 10) -> dict[str, float]:
    """The median of some visits to a page, each in a fresh context."""
    visits = [_visit(browser, file, page, zoom) for _ in range(ROUNDS)]
    return {key: median(visit[key] for visit in visits) for key in visits[0]}


def _visit(browser: Any, file: Path, page: Page, zoom: float) -> dict[str, float]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True)
    context.add_init_script(_STOPWATCH + page.shown)
    tab = context.new_page()
    tab.set_default_timeout(300_000)
    tools = context.new_cdp_session(tab)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def cpu_ms() -> float:
        metrics = tools.send("Performance.getMetrics")["metrics"]
        times = (float(one["value"]) for one in metrics if one["name"] == "TaskDuration")
        return next(times) * 1000

    def frame() -> float:
        tab.evaluate(page.pan, 5)  # what is kept for later frames is made
        before = cpu_ms()
        tab.evaluate(page.pan, FRAMES)
        return (cpu_ms() - before) / FRAMES

    tab.goto(file.as_uri())
    tab.wait_for_function("window.firstPaint > 0")
    first, cpu = tab.evaluate("window.firstPaint"), cpu_ms()
    layout = tab.evaluate(page.layout)
    whole = frame()
    tab.evaluate(page.zoom, zoom)
    found = dict(zip(COLUMNS, (layout, first, cpu, whole, frame()), strict=True))
    context.close()
    return found


def _row(name: str, nodes: int, times: dict[str, float]) -> tuple[str, ...]:
    return (name, f"{nodes:,}", *(f"{ms:.1f}" for ms in times.values()))
