"""docs/healing.md quotes what agents are really shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import Recorder, rows

from .pictures import SCENES, picture
from .test_healing_works import HELPED, HOPELESS, Helped, Hopeless, play, setup

PAGE = Path(__file__).parents[2] / "docs" / "healing.md"


def spoken(sink: Recorder) -> list[str]:
    """All that the monitor said in a run, and why it refused to."""
    told = [row.note or row.reason for row in rows(sink, "heal")]
    return told + [row.detail["note"] for row in rows(sink, "incident") if row.what == "prevented"]


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs beside it")
def test_the_notes_in_the_docs_are_what_agents_are_shown() -> None:
    """Each quotation is from the scene that the comment above it names."""
    handler = HOPELESS["RSP, the handler does nothing"]
    scenes: dict[str, Helped | Hopeless] = {**HELPED, **HOPELESS, "designate": handler}
    page = PAGE.read_text("utf-8")
    quoted = re.findall(r"<!-- (.+) -->\n((?:> .+\n)+)", page)
    assert len(quoted) == page.count("<!--")
    assert {name for name, _ in quoted} >= HELPED.keys() - {"OE, left"}
    for name, lines in quoted:
        case = scenes[name]
        scene = case.scene(1)
        _, sink = play(scene, setup(scene, 1, designate=getattr(case, "designate", False)))
        assert " ".join(lines.replace("> ", "").split()) in spoken(sink)


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs beside it")
@pytest.mark.parametrize("pattern", SCENES)
def test_the_pictures_of_the_page_are_drawn_from_its_teams(pattern: str, tmp_path: Path) -> None:
    """Byte for byte; `python -m tests.detectors.pictures` draws them anew."""
    assert f"](pictures/patterns/{pattern}.svg)" in PAGE.read_text("utf-8")
    picture(pattern, tmp_path / "drawn.svg")
    kept = PAGE.parent / "pictures" / "patterns" / f"{pattern}.svg"
    assert (tmp_path / "drawn.svg").read_text() == kept.read_text()
