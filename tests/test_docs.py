"""The documents hang together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dig.detectors import PATTERNS

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    heads = [head.strip().lower() for head in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in heads}


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="an installed package has no docs")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_link_between_pages_is_dead(page: Path) -> None:
    """Each relative link names a file that is there, and a heading that is in it."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="an installed package has no docs")
def test_every_page_can_be_reached_from_the_readme() -> None:
    """Going from link to link."""
    seen, ahead = set[Path](), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            links = re.findall(r"\]\(([^)\s#]+\.md)", page.read_text("utf-8"))
            ahead += [(page.parent / link).resolve() for link in links]
    assert {page.resolve() for page in PAGES} - seen <= {ROOT / "CHANGELOG.md"}


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="an installed package has no docs")
def test_the_definitions_have_every_pattern() -> None:
    """The tables of patterns have the patterns of the code, by name and title, and no other."""
    text = (ROOT / "docs" / "meaning.md").read_text("utf-8").split("## Patterns\n")[1]
    told = set(re.findall(r"^\| \*\*([A-Z]+)\*\* ([^|]+) \|", text, re.MULTILINE))
    there = {(pattern.name, pattern.title) for pattern in PATTERNS}
    assert not there - told, f"define these patterns in docs/meaning.md: {there - told}"
    assert not told - there, f"docs/meaning.md defines what is no pattern: {told - there}"
