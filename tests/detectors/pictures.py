"""The pictures of docs/healing.md: each pattern in its small team, without healing.

python -m tests.detectors.pictures docs/pictures/patterns
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from dig.cli.app import app
from dig.traces.journal.journal import Journal
from tests.helpers import rows

from .test_healing_works import HELPED, play, setup

SCENES = {
    "ET": "ET", "MC": "MC", "OE": "OE, sent to nobody", "DL": "DL", "ER": "ER",
    "CLA": "CLA, delivery", "RSP": "RSP",
}  # fmt: skip
"""The scene of each pattern."""


def picture(pattern: str, out: Path) -> None:
    """Draw the finding of a pattern's scene as SVG, as wide as a page."""
    case = HELPED[SCENES[pattern]]
    scene = case.scene(1)
    observed = setup(scene, 1, heal=False)
    _, sink = play(scene, observed)
    [finding, *_] = [row for row in rows(sink, "finding") if row.pattern == pattern]
    with TemporaryDirectory() as directory:
        trace = Path(directory, "trace.dig.jsonl")
        with closing(Journal(trace, header=observed.header())) as journal:
            for record in sink:
                journal(record)
        options = ["--finding", finding.t, "--width", 7, "--no-title", "-o", out]
        app(["draw", str(trace), *map(str, options)], standalone_mode=False)


if __name__ == "__main__":
    for name in SCENES:
        picture(name, Path(sys.argv[1], f"{name}.svg"))
