"""What notebooks show of a graph, a finding and a result: well-formed, escaped, bounded."""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from hypothesis import given

from dig import Finding, InteractionGraph, Watch, explain
from dig._util.html import MOST_ROWS, STRIP_WIDTH
from dig.detectors import standard
from dig.detectors.run_so_far import RunSoFar
from dig.graph.codec import decode
from dig.runtime.setup import Tally
from dig.traces.run import RecordedRun
from tests import failing
from tests.histories import arrive, emit, final, trace, turn
from tests.oracle import Row
from tests.strategies import traces

EVIL = "<script>alert(1)</script><svg onload='x'>&\x00\u202e$x$"


def parsed(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    assert not {one.tag for one in root.iter()} & {"script", "img", "a"}
    assert not any(key.startswith("on") for one in root.iter() for key in one.attrib)
    parts = [root] if "class" in root.attrib else list(root)
    assert {one.attrib["class"] for one in parts} == {"tex2jax_ignore mathjax_ignore"}
    return root


def graph(rows: list[Row]) -> InteractionGraph:
    return InteractionGraph.of(decode(one) for one in rows)


def cells(text: str) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in parsed(text).iter("tr")]


def test_a_graph_has_a_row_for_each_agent() -> None:
    """With its turns, what it did with its events, and what is in front of it."""
    rows = trace(
        arrive(0, "p", None, "ab"),
        turn(1, "v", "a", "q", p="consume"),
        arrive(1, "q", "v", "b"),
        turn(2, "w", "b", p="discard", q="delay"),
    )
    text = graph(rows)._repr_html_()
    assert "r: 2 events, 2 activations, 10 records, 1 open, going on" in text
    heads, *found = cells(text)
    assert heads[2:] == ["turns", "consume", "delay", "reroute", "discard", "in front of it"]
    assert [row[2:] for row in found] == [
        ["1", "1", "0", "0", "0", "0"],
        ["1", "0", "1", "0", "1", "1"],
        ["0", "0", "0", "0", "0", "0"],
    ]


@given(traces())
def test_any_graph_can_be_shown_at_any_time(rows: list[Row]) -> None:
    """While it grows, too; and what is drawn of it stays within its strip."""
    whole = InteractionGraph()
    parsed(whole._repr_html_())
    for row in rows:
        whole.apply(decode(row))
    root = parsed(whole._repr_html_())
    drawn = " ".join(one.attrib["d"] for one in root.iter("{http://www.w3.org/2000/svg}path"))
    for left, width in re.findall(r"M(\d+) 1h(\d+)", drawn):
        assert int(left) + int(width) <= STRIP_WIDTH and int(width) > 0


def test_a_graph_of_very_many_agents_is_cut() -> None:
    agents = [f"agent-{i}" for i in range(MOST_ROWS + 5)]
    found = cells(graph(trace(agents=agents))._repr_html_())
    assert len(found) == MOST_ROWS + 2 and found[-1] == ["and 5 more"]


def test_a_finding_alone_says_where_its_path_is() -> None:
    """It has ids, and no graph to look them up in."""
    body: dict[str, Any] = {"unresolved": ["q", "r"]}
    text = Finding("ET", 12, 43_800_000, {"event": "f"}, body)._repr_html_()
    assert "warning: ET at 43.8 s" in text
    why, path = cells(text)
    assert "q, r" in why[1] and "dig.explain(graph, finding)" in path[1]


def test_the_findings_of_a_result_and_of_a_trace_show_their_paths() -> None:
    """Name, severity, why, path and a small picture, without a call of the user's."""
    rows = trace(
        arrive(0, "p", None, "a"),
        arrive(0, "q", None, "b"),
        turn(1, "v", "a", "f", p="consume"),
        final(1, "f", "v"),
    )
    stored = RecordedRun(map(decode, rows), Watch(standard()))
    (found,) = stored.found
    result = Tally(findings=deque([replace(found, explains=None)])).result(stored.graph, "")
    for one in (found, *result.findings):
        text = one._repr_html_()
        assert "early termination (ET)" in text
        assert [row[0] for row in cells(text)][:2] == ["why", "path"] and "<svg" in text


def test_a_finding_whose_explanation_fails_is_described() -> None:
    """A user's own explanation does not take a result from its notebook."""

    def fail(graph: InteractionGraph, finding: Finding) -> Any:
        raise KeyError(EVIL)

    run = graph(trace(arrive(0, "p", None, "a")))
    own = Finding("MINE", 1, 1, {}, {}, why=fail)
    text = Tally(findings=deque([own])).result(run, "")._repr_html_()
    parsed(text)
    assert "its explanation raised KeyError" in text


def test_text_from_outside_is_text_in_the_page() -> None:
    """Whatever names, patterns and evidence hold."""
    rows = trace(arrive(0, EVIL, None, "a"), agents=["a", EVIL])
    parsed(graph([{**rows[0], "run": EVIL}, *rows[1:]])._repr_html_())
    parsed(Finding(EVIL, 1, 1, {EVIL: EVIL}, {EVIL: [EVIL]}, EVIL)._repr_html_())


def test_an_explanation_shows_its_paths_as_pictures() -> None:
    """Hop by hop through the lanes of the agents; text from outside is text there, too."""
    work = turn(1, "v", "a", "q", p="consume")
    work[-1]["outputs"] = [EVIL]
    rows = trace(arrive(0, "p", None, "a"), work, emit(1, EVIL, "v"))
    whole = graph(rows)
    why = explain(whole, Finding("ET", 6, 6, {"event": EVIL}, {"unresolved": [EVIL]}))
    root = parsed(why._repr_html_())
    (picture, *_) = root.iter("{http://www.w3.org/2000/svg}svg")
    lanes = ["".join(one.itertext()) for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert lanes[:2] == ["outside", "a"]
    assert "warning: early termination (ET)" in why._repr_html_()
    assert [row[0] for row in cells(why._repr_html_())][:2] == ["why", "path"]


def test_a_result_tells_its_run_from_left_to_right() -> None:
    """The five answers as cards, and the first alarms with what proves them."""
    run = graph(trace(arrive(0, "p", None, "a"), turn(1, "v", "a", p="delay")))
    found = Finding("DL", 5, 40_000_000, {}, {"waiting": {"a": ["p"]}}, severity="error")
    told = Tally(findings=deque([found]), heals=Counter(create=1)).result(run, "")._repr_html_()
    first, *_ = parsed(told)
    cards = ["".join(one.itertext()) for one in first]
    assert [card[:12] for card in cards] == [
        "How it ended", "What went wr", "What the mon", "Do nextFollo",
    ]  # fmt: skip
    assert "path" in [row[0] for row in cells(told)]


def test_a_result_says_how_the_run_ended() -> None:
    """And what was found and left."""
    run = graph(trace(arrive(0, "p", None, "ab"), turn(1, "v", "a", p="delay")))
    result = Tally(answer={EVIL: 1}).result(run, EVIL)
    found = dict(cells(result._repr_html_()))
    assert found["activity"] == "1 activation, 1 event"
    assert (found["findings"], found["unconsumed"]) == ("none", "p")


def test_a_result_shows_each_finding() -> None:
    """When, and about what; of very many the first, and how many more there are."""
    run = graph(trace(arrive(0, "p", None, "ab")))
    found = [Finding("ET", n, n * 1_000_000, {"event": EVIL}, {}) for n in range(MOST_ROWS + 5)]
    shown = cells(Tally(findings=deque(found)).result(run, "")._repr_html_())
    raised = [row[:3] for row in shown if row[1:2] == ["ET"]]
    assert raised[12] == ["warning", "ET", "12.0 s"]
    assert shown[-1] == ["and 5 more"]


def test_a_failed_run_begins_with_its_headline() -> None:
    """On the first card, and in the first row; the finding behind it is no step of its own."""
    rows, watch = failing.failed(), Watch(standard())
    tally = Tally(so_far=RunSoFar(watch.graph))
    for record in map(decode, rows):
        tally.findings += watch.feed(record)
        tally.so_far(record)
    text = tally.result(watch.graph, "an agent raised")._repr_html_()
    parsed(text)
    assert text.index("How it ended") < text.index(f"Failed: {failing.FAILED}")
    assert text.index(failing.FAILED) < text.index("verdict")
