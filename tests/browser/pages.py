"""Runs to look at in a browser, what a page says of itself, and what it should say.

The oracle is `digmon graph`: networkx node-link data of the same trace.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import networkx as nx
from playwright.sync_api import Page

from dig.graph.views import GraphView
from dig.show.page.writing import write_report
from dig.show.server.server import Server
from dig.traces.journal.reader import read_graph
from tests.histories import arrive, row, trace, turn
from tests.oracle import Row
from tests.show.server.client import serving
from tests.traces.runs import store

State = dict[str, Any]


def simulated(folder: Path) -> Path:
    """A run in which a team gets stuck and submits too early, and is healed."""
    command = [sys.executable, "-m", "dig", "run", "count-frequency", "--virtual", "--json"]
    settings = ["--agents", "6", "--size", "10000", "--seed", "2675", "--method", "dig"]
    settings += ["--runs", str(folder)]
    done = subprocess.run([*command, *settings], capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["directory"])


def repeating(folder: Path, rounds: int = 60) -> Path:
    """A run in which two agents hand the same on to each other again and again."""
    parts: list[list[Row]] = [arrive(0, "e0", None, "a")]
    for n in range(rounds):
        here, there = "ab"[n % 2], "ab"[(n + 1) % 2]
        parts.append(turn(n + 1, f"v{n}", here, f"e{n + 1}", **{f"e{n}": "consume"}))
        parts.append(arrive(n + 1, f"e{n + 1}", f"v{n}", there, "message"))
    return store(
        folder / "repeating.dig.jsonl", trace(*parts, row(99, "finish", outcome="timeout"))
    )


def report(run: Path, out: Path) -> str:
    """The address of a run's report."""
    return write_report(run, out).path.as_uri()


@contextmanager
def visited(page: Page, path: Path) -> Iterator[Server]:
    """A server of a run or a directory, which the page leaves before it ends.

    A page that asks just then tells of a connection that was refused, reset or cut off.
    """
    with serving(path) as server:
        yield server
        page.goto("about:blank")


def opened(page: Page, address: str) -> State:
    """The state of a page that has just been opened."""
    # With an address that tells a view, a report does not open on its worst finding.
    page.goto(address if "#" in address else f"{address}#tab=findings")
    page.wait_for_function("() => window.dig?.state.ready && dig.state.frames > 0")
    return state(page)


def state(page: Page) -> State:
    """What the page shows, as plain values."""
    found: State = page.evaluate("dig.state")
    return found


def settled(page: Page, condition: str) -> State:
    """The state once something holds of it, `s` for short."""
    page.wait_for_function(f"() => {{ const s = dig.state; return {condition}; }}")
    return state(page)


def drawn(page: Page) -> State:
    """The state after the next frame."""
    frames = state(page)["frames"]
    page.evaluate("dig.app.ask()")
    return settled(page, f"s.frames > {frames}")


def width(found: State) -> float:
    """How much of the axis is in sight."""
    return float(found["window"][1] - found["window"][0])


def box(page: Page, selector: str) -> dict[str, float]:
    """Where on the page an element is: `x`, `y`, `width` and `height` in pixels."""
    found = page.locator(selector).bounding_box()
    assert found is not None
    return {"x": found["x"], "y": found["y"], "width": found["width"], "height": found["height"]}


def seat(page: Page, event: str) -> dict[str, float]:
    """Where on the picture an event is."""
    found: dict[str, float] = page.evaluate(
        "id => dig.app.painter.seat(dig.app.model.node(id).i)", event
    )
    return found


class Oracle:
    """A run as networkx sees it.

    Attributes:
        graph: Its nodes and edges.
    """

    def __init__(self, run: Path, *, cleaned: bool = False, at: int | None = None) -> None:
        data = GraphView(read_graph(run), at, cleaned).node_link()
        graph: Any = nx.node_link_graph(data, edges="edges", multigraph=True, directed=True)
        self.graph: nx.MultiDiGraph[str] = graph

    def nodes(self, kind: str) -> set[str]:
        """The nodes of a kind."""
        return {node for node, body in self.graph.nodes.items() if body["kind"] == kind}

    def deliveries(self) -> int:
        """How many delivery edges there are."""
        return sum(body["kind"] == "delivery" for *_, body in self.graph.edges(data=True))

    def around(self, named: Iterable[str], hops: int) -> set[str]:
        """The nodes within some hops before or after others."""
        there = [node for node in named if node in self.graph]
        ways = (self.graph, self.graph.reverse(copy=False))
        near = [
            nx.single_source_shortest_path_length(way, node, hops) for way in ways for node in there
        ]
        return set().union(*near)
