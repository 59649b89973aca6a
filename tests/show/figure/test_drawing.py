"""The picture as a whole: what is in it, its formats, and that no text from outside harms it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dig import InteractionGraph
from dig.errors import JournalError, SettingsError
from dig.graph.codec import decode
from dig.show.cause import KnownCause, SuspectedPlace, TriedChange
from dig.show.figure import palette
from dig.show.figure.drawing import Drawing
from dig.show.figure.scene import Box, Curve, Polygon, Words, text_width
from dig.show.figure.selection import RunPart
from dig.show.page.html_page import source
from tests.histories import arrive, deliver, emit, end, row, start, trace, turn
from tests.hostile import ATTACKS, hostile_run
from tests.oracle import Row
from tests.traces.runs import directory, hasty, solved

from .pictures import scene, texts

PAGE = Path(__file__).parents[3] / "docs" / "lab" / "drawing.md"
SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {"svg", "title", "desc", "g", "path", "circle", "rect", "text"}


def parsed(text: str) -> ElementTree.Element:
    """An SVG that has no more in it than shapes and words."""
    root = ElementTree.fromstring(text)
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in ALLOWED
        for key, value in element.attrib.items():
            assert not key.startswith("on") and "href" not in key and key != "style"
            assert "url(" not in value and "script" not in value
    return root


# --- what is in it ---


def test_title_and_description_say_what_is_seen(tmp_path: Path) -> None:
    """For people who cannot see it, too."""
    run = directory(tmp_path, "r", solved(), method="dig", agents_are="simulated")
    root = parsed(Drawing.of(run).svg())
    assert root.attrib["role"] == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and title.text == "r"
    assert description is not None and description.text == (
        "adding, method dig, 3 simulated agents, 3 activations, 4 events, 3.0 s, submitted"
    )


def test_agents_that_are_not_known_to_be_simulated_are_not_called_so(tmp_path: Path) -> None:
    run = directory(tmp_path, "r", solved(), method="dig")
    assert "simulated" not in Drawing.of(run).svg()


def test_findings_stand_at_their_place_and_in_the_time_line(tmp_path: Path) -> None:
    """A label beside the answer, one at its time, one in the legend with its name."""
    picture = Drawing.of(directory(tmp_path, "r", hasty())).scene
    assert texts(picture).count("ET") == 3
    assert "early termination (error)" in texts(picture)


def test_a_label_shows_what_a_finding_is_worth(tmp_path: Path) -> None:
    """As it was recorded, whatever its pattern; the legend says it in words."""
    row_of = {"pattern": "ET", "stage": None, "subject": {"event": "p"}, "evidence": {}}
    kinds = [{"severity": one} for one in ("error", "warning", "notice")]
    kinds.append({"severity": "error", "silenced": "a drill"})
    found = [row(n + 1, "finding", **row_of, **kind) for n, kind in enumerate(kinds)]
    rows = trace(arrive(0, "p", None, "a"), turn(1, "v", "a", p="delay"), found)
    picture = Drawing.of(directory(tmp_path, "r", rows)).scene
    worths = ["error", "warning", "notice", "silenced"]
    assert [t for t in texts(picture) if t.startswith("early")] == [
        f"early termination ({worth})" for worth in worths
    ]
    drawn = [one.look for one in picture.shapes if isinstance(one, Box)]
    looks = [palette.BADGES[worth][0] for worth in palette.BADGES]
    assert all(drawn.count(look) == 3 for look in looks)  # at the event, in time, in the legend


def test_findings_for_which_there_is_no_place_lie_below_the_labels_of_others(
    tmp_path: Path,
) -> None:
    """In the time line: one sees them, and no line goes through a label."""
    row_of = {"pattern": "ET", "stage": None, "subject": {"event": "p"}, "evidence": {}}
    found = [row(1 + n / 1000, "finding", **row_of) for n in range(30)]
    over = row(90, "finish", outcome="timeout")
    rows = trace(arrive(0, "p", None, "a"), turn(1, "v", "a", p="delay"), found, over)
    shapes = Drawing.of(directory(tmp_path, "r", rows)).scene.shapes
    below = [
        i for i, one in enumerate(shapes)
        if isinstance(one, Polygon) and not one.closed
        and one.look.stroke == palette.BADGES["error"][2]
    ]  # fmt: skip
    labels = [i for i, one in enumerate(shapes) if isinstance(one, Words) and one.text == "ET"]
    assert below and not any(below[0] < i < below[-1] for i in labels)
    assert sum(i > below[-1] for i in labels) == 3, "one above the other, and one in the legend"


def test_findings_of_a_trace_without_any_are_looked_for(tmp_path: Path) -> None:
    """A trace that nobody monitored is checked when it is drawn."""
    rows = hasty()[:12]
    picture = Drawing.of(directory(tmp_path, "r", rows)).scene
    assert "ET" in texts(picture)


def test_the_legend_has_what_is_there_and_nothing_else() -> None:
    told = set(texts(scene(solved())))
    assert {"generated, consumed", "accepted answer", "activation: submits"} <= told
    assert not {"delayed", "rerouted", "activation: waits", "healing"} & told


FATES: list[tuple[str, Any, str]] = [
    ("delayed", "delay", "activation: waits"),
    ("rerouted", ("c",), "activation: reroutes"),
    ("discarded", "discard", "activation: discards"),
]


@pytest.mark.parametrize(("text", "fate", "did"), FATES)
def test_what_is_not_productive_is_dashed_and_told(text: str, fate: Any, did: str) -> None:
    """Colour, dash, mark, letter and legend say the same."""
    rows = trace(arrive(0, "p", None, "b"), turn(1, "v", "b", p=fate))
    picture = scene(rows)
    assert {text, did} <= set(texts(picture))
    drawn, in_legend = (s.look for s in picture.shapes if isinstance(s, Curve))
    assert drawn == in_legend
    assert drawn.dash and drawn.stroke in ("#e69f00", "#0072b2", "#d55e00")


def test_an_activation_that_has_not_ended_is_dashed_and_one_that_failed_is_marked(
    tmp_path: Path,
) -> None:
    rows = trace(
        arrive(0, "p", None, "ab"),
        start(1, "v", "a", "p"),
        end(2, "v") | {"error": "no"},
        start(3, "w", "b", "p"),
    )
    told = set(texts(Drawing.of(directory(tmp_path, "r", rows)).scene))
    assert {"activation: fails", "activation: in progress", "in front of it"} <= told


def test_an_answer_is_what_it_was_at_that_time(tmp_path: Path) -> None:
    """A star is hollow as long as nobody has accepted it."""
    run = directory(tmp_path, "r", solved())
    whole = set(texts(Drawing.of(run).scene))
    before = set(texts(Drawing.of(run, RunPart(at=13)).scene))
    assert "accepted answer" in whole
    assert "answer" in before and "accepted answer" not in before


def test_a_graph_without_a_clock_can_be_drawn() -> None:
    """In a notebook there may be no trace; then the axis counts records, not seconds."""
    graph = InteractionGraph.of(decode(one) for one in solved())
    text = Drawing.of(graph)._repr_svg_()
    assert "activations by record" in text and ">10</text>" in text and " s</text>" not in text
    parsed(text)


def test_a_finding_that_names_anything_at_all_is_drawn(tmp_path: Path) -> None:
    """Rows of kind `finding` can be written by anybody."""
    odd = [None, 3, "x", ["p"], {"event": ["p"]}, {"event": "nobody"}, {"activation": "v"}]
    rows = [
        {**one, "t": t}
        for t, one in enumerate(
            [*solved()[:5], *(row(1, "finding", pattern="<b>", stage=None, subject=s, evidence={})
                              for s in odd), *solved()[5:]]
        )
    ]  # fmt: skip
    picture = Drawing.of(directory(tmp_path, "r", rows)).scene
    assert "<b>" in texts(picture)
    parsed(Drawing.of(directory(tmp_path, "r", rows)).svg())


# --- text from outside ---

HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\u200b-\u200f\u2028-\u202e\ud800-\udfff\ufffe\uffff]")


def test_a_thousand_hostile_texts_change_nothing_in_the_svg(tmp_path: Path) -> None:
    """It has the elements that any other run has, and shows the names as text."""
    run = directory(tmp_path, "r", hostile_run(1000), agents_are=ATTACKS[0], method=ATTACKS[1])
    text = Drawing.of(run, RunPart(fold=False)).svg()
    bars = [one for one in parsed(text).iter(f"{SVG}rect") if one.find(f"{SVG}title") is not None]
    assert len(bars) == 2000  # two for each activation: in the graph and in time
    assert not HARMFUL.search(text)


@pytest.mark.parametrize("seed", range(20))
def test_hostile_texts_in_short_runs_change_nothing(tmp_path: Path, seed: int) -> None:
    """Where there is room for labels, names and badges; lanes of any name, too."""
    text = Drawing.of(directory(tmp_path, "r", hostile_run(25, seed, agents=5))).svg()
    parsed(text)
    assert not HARMFUL.search(text)


def test_hostile_names_can_be_drawn_by_matplotlib(tmp_path: Path) -> None:
    """Dollar signs are no formulas, and what the font does not have is a box, not a warning."""
    pytest.importorskip("matplotlib")
    Drawing.of(directory(tmp_path, "r", hostile_run(20))).save(tmp_path / "r.png")
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def test_an_activation_that_nothing_led_to_stands_where_the_others_had_come() -> None:
    """A judge that reads along has no inputs; its turns are not all at the beginning."""
    rows = trace(
        arrive(0, "p", None, "a"),
        turn(1, "v", "a", "q", p="consume"),
        arrive(1, "q", "v", "b"),
        turn(2, "j", "c"),
    )
    picture = scene(rows)
    bars = [one for one in picture.shapes if isinstance(one, Box) and one.title]
    at = {one.title.split()[0]: one.at for one in reversed(bars)}  # the graph comes first
    assert at["j"][0] > at["v"][0]
    assert "activation: does nothing" in texts(picture)


# --- one vocabulary with the page ---


def test_edges_have_the_dashes_of_the_page() -> None:
    """The page's table of dashes by fate, in the page's own file, is that of figures."""
    glyphs = source("glyphs.js")
    (table,) = re.findall(r"FATE_DASH = \{(.*?)\};", glyphs)
    dashes = re.findall(r"(-?\d)\"?: \[([\d., ]*)\]", table)
    on_page = {fate: tuple(map(float, filter(None, text.split(", ")))) for fate, text in dashes}
    kinds = (palette.SEEN, palette.PRODUCTIVE, "delay", "reroute", "discard")
    assert on_page == {str(n): palette.LINKS[kind].dash for n, kind in enumerate(kinds, -1)}


# --- a part of a run, a width, and a diagnosis ---


def test_a_finding_is_drawn_with_the_paths_that_prove_it(tmp_path: Path) -> None:
    """What it names and how it came about, its label, and its sentence; the rest is left out."""
    run = directory(tmp_path, "r", hasty())
    picture = Drawing.of(run, RunPart(finding=12)).scene
    titles = {s.title.split(",")[0] for s in picture.shapes if isinstance(s, Polygon) and s.title}
    assert titles == {"p", "q", "f", "healing acted on it"}
    assert "ET" in texts(picture)
    assert "answer f was submitted too early" in picture.description
    with pytest.raises(SettingsError, match=r"no finding has this record \(12\)"):
        Drawing.of(run, RunPart(finding=3))


def passed_on() -> list[Row]:
    """`a` and `b` pass `e` on to each other; healing acts on it, and on another finding."""
    hands = zip(range(1, 5), "abab", "baba", strict=True)
    turns = [[*turn(n, f"v{n}", a, e=(b,)), deliver(n, "e", b)] for n, a, b in hands]
    kind = {"pattern": "ER", "stage": None, "evidence": {"path": [*"abab"]}, "severity": "warning"}
    other = kind | {"pattern": "OE", "subject": {"event": "x"}, "evidence": {"cause": "discarded"}}
    found = [row(4, "finding", subject={"event": "e"}, **kind), row(4, "finding", **other)]
    healed = [
        row(4, "heal", finding=16, action="inject", event="x", to=None, note="x is lost"),
        row(4, "heal", finding=15, action="inject", event="e", to=None, note="work on it"),
        row(4, "heal", finding=16, action="inject", event="x", to=None, note="x is lost"),
    ]
    last, given = turns[-1][:-1], turns[-1][-1:]
    return trace(arrive(0, "e", None, "a"), emit(0, "x", None), *turns[:-1], last, found, healed,
                 given, turn(6, "w", "a", e="consume"))  # fmt: skip


def test_a_finding_of_rerouting_is_drawn_from_hand_to_hand(tmp_path: Path) -> None:
    """Each activation leads to the next one, to the right of it, and has one mark of healing."""
    run = directory(tmp_path, "r", passed_on())
    picture = Drawing.of(run, RunPart(finding=15)).scene
    bars = [s for s in picture.shapes if isinstance(s, Box) and s.title.startswith("v")][:4]
    lefts = [bar.at[0] for bar in bars]
    assert [bar.title[:2] for bar in bars] == ["v1", "v2", "v3", "v4"]
    assert lefts == sorted({*lefts})
    hops = [s for s in picture.shapes if isinstance(s, Curve) and s.look.stroke == "#0072b2"][:4]
    begins = [hop.points[0][0] for hop in hops[1:]]
    assert all(left < x < left + 40 for left, x in zip(lefts, begins, strict=False))
    healed = [s for s in picture.shapes if isinstance(s, Polygon) and s.look.fill == palette.HEAL]
    assert len(healed) == 3  # beside the event, in the time line, and in the legend
    # The record that raised it, as `digmon check` names it, is the same finding.
    raised = Drawing.of(run, RunPart(finding=14)).scene
    assert raised == picture


@pytest.mark.parametrize(
    ("side", "label"),
    [
        ({"clock": "virtual"}, "in simulated time"),
        ({"clock": "real time x 1"}, "in wall time"),
        ({"clock": "real time x 10"}, "in the run's time, 10 times as fast"),
        ({}, "in wall time"),
    ],
)
def test_wall_time_is_said_where_it_is(tmp_path: Path, side: dict[str, str], label: str) -> None:
    run = directory(tmp_path, "r", solved(), **side)
    assert f"activations {label}" in texts(Drawing.of(run).scene)
    assert "activations in time as recorded" in texts(Drawing.of(run / "trace.dig.jsonl").scene)


def test_a_twin_stands_below_on_the_same_scale(tmp_path: Path) -> None:
    """A second is as wide in both, and one legend is for both."""
    run, twin = directory(tmp_path, "r", solved()), directory(tmp_path, "t", hasty())
    picture = Drawing.of(run, twin=twin).scene
    assert picture.description.count("; below: ") == 1
    seconds = [s.at[0] for s in picture.shapes if isinstance(s, Words) and s.text == "2 s"]
    assert len(seconds) == 2 and len({*seconds}) == 1
    assert texts(picture).count("problem") == 1
    with pytest.raises(SettingsError, match="--twin: records of the other run"):
        Drawing.of(run, RunPart(finding=3), twin=twin)


def test_a_figure_for_a_caption_has_neither_title_nor_legend(tmp_path: Path) -> None:
    """The file itself still says what it is, for people who cannot see it."""
    run = directory(tmp_path, "r", hasty(), task="adding")
    bare = Drawing.of(run, has_title=False, has_legend=False).scene
    assert bare.title == "r" and "3 agents" in bare.description
    assert not {"r", "activation: waits"} & {*texts(bare)}
    assert bare.height < Drawing.of(run).scene.height - 60


def test_a_run_at_the_width_of_a_paper_is_cleaned(tmp_path: Path) -> None:
    """Unless it is to be raw; a part of a run keeps what only waited."""
    run = directory(tmp_path, "r", hasty())
    parts = [RunPart(), RunPart(cleaned=False), RunPart(focus="f")]
    words = [texts(Drawing.of(run, part, width=7).scene) for part in parts]
    assert ["delayed" in shown for shown in words] == [False, True, True]
    assert "delayed" in texts(Drawing.of(run, width=8).scene)


def test_a_width_changes_the_picture_and_not_its_letters(tmp_path: Path) -> None:
    """A figure for a column is as wide as the column, and is read without a glass."""
    run = directory(tmp_path, "r", hasty())
    wide, narrow = Drawing.of(run).scene, Drawing.of(run, width=3.3).scene
    assert narrow.width == pytest.approx(3.3 * 96)
    sizes = [{s.size for s in one.shapes if isinstance(s, Words)} for one in (wide, narrow)]
    assert sizes[0] == sizes[1] and min(sizes[0]) >= 8.5
    right = [s.at[0] + text_width(s.text, s.size) for s in narrow.shapes
             if isinstance(s, Words) and s.anchor == "start"]  # fmt: skip
    assert max(right) <= narrow.width
    waits = (turn(n, f"v{n}", "a", p="delay") for n in range(1, 40))
    long = directory(tmp_path, "long", trace(arrive(0, "p", None, "a"), *waits))
    with pytest.raises(SettingsError, match=r"at least \S+ inches wide"):
        Drawing.of(long, RunPart(cleaned=False), width=3.3)
    with pytest.raises(SettingsError, match="nothing was productive; try --raw"):
        Drawing.of(long, width=3.3)


def crowd() -> list[Row]:
    """`a` gives a part to each of ten others, and each of them answers."""
    team = "bcdefghijk"
    return trace(
        arrive(0, "p", None, "a"),
        turn(1, "v", "a", " ".join(f"q{one}" for one in team), p="consume"),
        [emit(1, f"q{one}", "v", one) for one in team],
        [deliver(1, f"q{one}", one) for one in team],
        *(
            [
                *turn(2, f"w{one}", one, f"s{one}", **{f"q{one}": "consume"}),
                emit(2, f"s{one}", f"w{one}"),
            ]
            for one in team
        ),
        agents="abcdefghijk",
    )


def test_lanes_that_behave_alike_are_drawn_once() -> None:
    """With many agents; the lane says how many it stands for, and can be unfolded."""
    shown = texts(scene(crowd()))
    assert "b and 9 alike" in shown
    assert not {"c", "qc", "sc", "wc"} & set(shown)
    assert "lanes that are alike drawn once" in scene(crowd()).description
    assert {"c", "sc", "wc"} <= set(texts(scene(crowd(), fold=False)))


def test_an_agent_that_a_finding_is_about_keeps_its_lane(tmp_path: Path) -> None:
    found = row(3, "finding", pattern="ET", stage=None, subject={"event": "se"}, evidence={})
    rows = [*crowd(), {**found, "t": len(crowd())}]
    shown = texts(Drawing.of(directory(tmp_path, "r", rows)).scene)
    assert "b and 8 alike" in shown and "e" in shown


def test_a_diagnosis_is_drawn_with_flags_a_path_and_a_table(tmp_path: Path) -> None:
    """Candidates by number, the chain as one path, and what was tried in dots."""
    places = (SuspectedPlace("w", 5, "b: it lost q"), SuspectedPlace("v", 1, "a: it split p"))
    tried = TriedChange("b is told", "validated", 2, 3, 0, 1)
    known = KnownCause(5, "b lost q (confirmed)", places, (0, 1, 2), (tried,))
    picture = Drawing.of(directory(tmp_path, "r", solved()), cause=known).scene
    shown = texts(picture)
    assert "cause: b lost q (confirmed)" in shown and "2 a: it split p" in shown
    assert {"1", "2", "the failure went on", "candidate of the diagnosis"} <= set(shown)
    good, bad = "\N{BLACK CIRCLE}", "\N{WHITE CIRCLE}"
    assert f"{good}{good}{bad} | {bad} validated: b is told" in shown
    chain = [s for s in picture.shapes if isinstance(s, Curve) and s.look == palette.LINKS["chain"]]
    assert len(chain) == 5  # v to q to w to s to x, and the legend


# --- files ---


def test_letters_in_a_pdf_are_letters(tmp_path: Path) -> None:
    """Its fonts are embedded as TrueType: type 3 is refused by publishers, and not searchable."""
    pytest.importorskip("matplotlib")
    Drawing.of(directory(tmp_path, "r", solved())).save(tmp_path / "r.pdf")
    data = (tmp_path / "r.pdf").read_bytes()
    assert b"/Type3" not in data and b"/FontFile2" in data


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_the_same_run_gives_the_same_bytes(tmp_path: Path, form: str) -> None:
    """No date, no random id: a picture can be kept under version control."""
    if form != "svg":
        pytest.importorskip("matplotlib")
    run = directory(tmp_path, "r", hasty())
    files = [tmp_path / f"{i}.{form}" for i in range(2)]
    for file in files:
        Drawing.of(run).save(file)
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert first.startswith({"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[form])


def test_without_matplotlib_a_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    picture = Drawing.of(directory(tmp_path, "r", solved()))
    with pytest.raises(SettingsError, match=r"PNG.* matplotlib.*dig-monitor\[draw\]"):
        picture.save(tmp_path / "r.png")
    picture.save(tmp_path / "r.svg")


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    picture = Drawing.of(directory(tmp_path, "r", solved()))
    with pytest.raises(JournalError, match="No such file"):
        picture.save(tmp_path / "nowhere" / "r.svg")
    with pytest.raises(SettingsError, match=r"must end in one of \.svg, \.png, \.pdf"):
        picture.save(tmp_path / "r.gif")


def test_both_back_ends_draw_the_same_shapes() -> None:
    """The scene is computed once; a back end that left a kind of shape out would be seen."""
    picture = scene(hasty())
    kinds = {type(shape).__name__ for shape in picture.shapes}
    assert kinds == {"Box", "Curve", "Polygon", "Words", "Circle"}
    root = parsed(Drawing(picture).svg())
    drawn = sum(len(list(root.iter(SVG + tag))) for tag in ("path", "circle", "rect", "text"))
    assert drawn == len(picture.shapes)
    assert any(isinstance(shape, Polygon) for shape in picture.shapes)


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs beside it")
def test_the_page_shows_how_to_draw_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands there runs, and leaves the picture that it names."""
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    directory(tmp_path / "runs", "20260101-120000-abcdef", solved())
    names: dict[str, Any] = {}
    exec(block, names)
    parsed(Path("run.svg").read_text(encoding="utf-8"))
    assert "<svg" in names["picture"]._repr_svg_()
