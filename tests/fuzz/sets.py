"""Sets of faults, answers about them, results, plans of faults and grids: `digmon bench`, and more.

The checksums of a set are right, whatever stands in its files: whoever has bad intent writes them
anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from dig.errors import DigError
from dig.faults.inject.fault import Fault
from dig.lab.benchmark.answer_file import read_answers
from dig.lab.benchmark.attributing import ATTRIBUTORS, attribute_all
from dig.lab.benchmark.candidates import Configuration, Recipe
from dig.lab.benchmark.instances import BASELINE, FILES, INDEX, FaultSet, Label
from dig.lab.benchmark.scores_answers import score
from dig.lab.benchmark.scores_detectors import score_detectors
from dig.lab.benchmark.scores_healing import NO_ERRORS, HealingScores, Pair, heal
from dig.lab.benchmark.storing import make_set
from dig.lab.experiment.experiment_report import all_tables
from dig.lab.experiment.file import read_grid
from dig.lab.experiment.grid import NEWSGROUPS, Grid, TaskGrid
from dig.lab.experiment.markdown_table import Table
from dig.lab.experiment.results import read_rows
from dig.lab.experiment.run import RESULTS, carry_out
from dig.lab.experiment.samples import Samples

from .entrance import Entrance, assert_short

_RECIPE = Recipe(
    seed=7, count=1, configurations=(Configuration(NEWSGROUPS, 20, 2),), baseline_runs=20
)
_GRID = Grid(
    tasks=(TaskGrid(task=NEWSGROUPS, sizes=(20,)),), methods=("mas", "dig"), agents=(2,), seeds=(1,)
)

ANSWERS, PLAN, OWN_GRID = "answers.json", "plan.txt", "grid.toml"

_TOML = b"""agents = [3, 6]
methods = ["mas", "dig"]
seeds = 20
limit_s = 60.0
[[tasks]]
task = "count-frequency"
sizes = [1000, 5000]
options = {a = 1}
[profile]
fail = 0.1
[judge]
every = 3
[thresholds]
mc_window_s = 10.0
"""
_FAULTS = b"""crash target=agent-1 start=1 end=30 probability=0.5
corrupt target='agent 2' how=counts at_most=2
stall target=agent-1 seconds=5"""


class Sets(Entrance):
    """All that is read of a directory of such files, and what is done with it.

    An input holds some of the files, each below a line with its name; the others are valid ones.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder
        self._valid = _made(folder)
        self._written: dict[str, bytes] = {}
        self._write(b"")
        (one,) = FaultSet.open(folder).instances()
        self._label = one.label()
        self._pair = heal((self._label, NO_ERRORS))
        first = [f"public/i0001/{file}" for file in FILES]
        self.seeds = [
            self._input(INDEX, *first[2:]),
            self._input(ANSWERS, *first[2:]),
            self._input(first[2]),
            self._input(*first[:2]),
            self._input(*(name for name in self._valid if name.startswith(BASELINE))),
            self._input(RESULTS, PLAN, OWN_GRID),
        ]

    def take(self, data: bytes) -> bool:
        names = self._write(data)
        looks: list[Callable[[], None]] = []
        if names & {RESULTS, PLAN, OWN_GRID}:
            looks += [self._rows, self._plan, self._grid]
        if names - {RESULTS, PLAN, OWN_GRID}:
            looks += [partial(self._attributed, name) for name in ATTRIBUTORS]
            looks += [self._answers, self._detectors, self._healing]
        refused = [_is_refused(look) for look in looks]
        return bool(looks) and not any(refused)

    def _write(self, data: bytes) -> set[str]:
        """Write the files of an input, and the valid ones in place of those that it has not.

        Returns:
            The names of those that it has.
        """
        files, given = dict(self._valid), set[str]()
        for part in re.split(rb"(?:^|\n)== ", data):
            name, _, content = part.partition(b"\n")
            if (known := name.decode("utf-8", "replace")) in files:
                files[known] = content
                given.add(known)
        for name, content in files.items():
            digest = sha256(content).hexdigest().encode()
            files[INDEX] = files[INDEX].replace(b"<%s>" % name.encode(), digest)
        for name, content in files.items():
            if self._written.get(name) != content:
                (self._path / name).write_bytes(content)
        self._written = files
        return given

    def _input(self, *names: str) -> bytes:
        return b"\n".join(b"== %s\n%s" % (name.encode(), self._valid[name]) for name in names)

    def _answers(self) -> None:
        answers, known = read_answers(self._path / ANSWERS), FaultSet.open(self._path)
        for shuffle in (None, 1):
            scores = score(answers, known, shuffle)
            _shown(scores.tables(), scores.to_json())

    def _detectors(self) -> None:
        found = score_detectors(FaultSet.open(self._path))
        for among, scores in found.items():
            _shown(scores.tables(among), scores.to_json())

    def _healing(self) -> None:
        """Other runs than ours are read, and not played: they may be as long as somebody likes."""
        labels = [one.label() for one in FaultSet.open(self._path).labelled()]
        played = [self._healed(label) for label in labels if not label.is_healed]
        scores = HealingScores(tuple(filter(None, played)))
        _shown(scores.tables(), scores.to_json())

    def _healed(self, label: Label) -> Pair | None:
        assert label.team_run.agents_are == "simulated"
        if label.run != self._label.run:
            return None
        if label.faults == self._label.faults:  # it would be played as it was before
            return replace(self._pair, plain=label.faulted)
        return heal((label, NO_ERRORS))

    def _attributed(self, name: str) -> None:
        json.loads(attribute_all(name, FaultSet.open(self._path)).text().encode())

    def _rows(self) -> None:
        rows = read_rows(self._path / RESULTS)
        if rows:
            _shown(all_tables(_GRID, Samples(rows))[0], {})

    def _plan(self) -> None:
        for line in (self._path / PLAN).read_text("utf-8", "replace").splitlines():
            fault = Fault.parse(line)
            assert Fault.read(json.loads(json.dumps(fault.to_json()))) == fault

    def _grid(self) -> None:
        read_grid(self._path / OWN_GRID)


def _made(folder: Path) -> dict[str, bytes]:
    """Make a small set and all else; its files, with marks in the place of the checksums."""
    make_set(folder / "made", _RECIPE)
    for path in (folder / "made").iterdir():
        path.rename(folder / path.name)
    (folder / "made").rmdir()
    for path in sorted(folder.glob(f"{BASELINE}/*/*.jsonl"))[1:]:
        path.unlink()
    carry_out(_GRID, folder)
    attributed = attribute_all("rules", FaultSet.open(folder))
    (folder / ANSWERS).write_text(attributed.text())
    (folder / PLAN).write_bytes(_FAULTS)
    (folder / OWN_GRID).write_bytes(_TOML)
    index = json.loads((folder / INDEX).read_text())
    for entry in index["instances"]:
        entry["sha256"] = {file: f"<public/{entry['id']}/{file}>" for file in FILES}
    names = [f"public/{entry['id']}/{file}" for entry in index["instances"] for file in FILES]
    names += [str(path.relative_to(folder)) for path in folder.glob(f"{BASELINE}/*/*.jsonl")]
    names += [ANSWERS, RESULTS, PLAN, OWN_GRID]
    valid = {name: _on_one_line(folder / name) for name in names}
    return {**valid, INDEX: json.dumps(index).encode()}


def _on_one_line(path: Path) -> bytes:
    """A file's text, in which a line is what is changed at once."""
    if path.suffix == ".json":
        return json.dumps(json.loads(path.read_text())).encode()
    return path.read_bytes()


def _is_refused(look: Callable[[], None]) -> bool:
    try:
        look()
    except DigError as error:
        assert_short(error)
        return True
    return False


def _shown(tables: Iterable[Table], found: Mapping[str, object]) -> None:
    """What a command prints, and what it writes."""
    json.dumps(found)
    for table in tables:
        table.markdown().encode()
        table.csv().encode()
