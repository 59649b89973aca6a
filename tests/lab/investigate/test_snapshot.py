"""Directories as worlds: what is read, what is refused, and that order changes nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dig.errors import DigError, SettingsError, TraceError
from dig.lab.investigate.investigation import investigate
from dig.lab.investigate.rules import ServiceRules
from dig.lab.investigate.snapshot import Snapshot, read_truth
from tests.lab.investigate.worlds import FLASH_SALE


def write(directory: Path, **files: Any) -> Path:
    """Files by the first part of their names; text stays as it is."""
    ends = {"evidence": "jsonl"}
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (directory / f"{name}.{ends.get(name, 'json')}").write_text(text)
    return directory


def test_the_order_of_rows_and_keys_changes_nothing(tmp_path: Path) -> None:
    """Shuffled files give the same checksum, and the same answer byte for byte."""
    chance = random.Random(7)
    whole = Snapshot.read(FLASH_SALE)
    answer = investigate(whole, ServiceRules()).to_json()
    for number in range(5):
        folder = tmp_path / f"{number}" / "flash-sale"
        folder.mkdir(parents=True)
        topology = json.loads((FLASH_SALE / "topology.json").read_text())
        lines = (FLASH_SALE / "evidence.jsonl").read_text().splitlines()
        for some in (topology["entities"], topology["edges"], lines):
            chance.shuffle(some)
        write(folder, topology=topology, evidence="\n".join(lines),
              alerts=(FLASH_SALE / "alerts.json").read_text())  # fmt: skip
        again = Snapshot.read(folder)
        assert again.sha256 == whole.sha256
        assert investigate(again, ServiceRules()).to_json() == answer


def test_rows_without_ids_get_the_same_ids_in_any_order(tmp_path: Path) -> None:
    """An id is made of the entity and the place in time."""
    rows = [{"entity": "a", "ts": ts, "type": kind} for ts, kind in ((3, "x"), (1, "x"), (3, "w"))]
    ids = []
    for number, some in enumerate((rows, rows[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, evidence="\n".join(map(json.dumps, some)))
        known = Snapshot.read(folder)
        ids.append([(one.id, one.ts, one.type) for one in known.evidence("a", known.window)])
    assert ids[0] == ids[1] == [("a/1", 1.0, "x"), ("a/2", 3.0, "w"), ("a/3", 3.0, "x")]


def test_aliases_name_one_entity(tmp_path: Path) -> None:
    """Edges, alarms, evidence and `about` may use any name of an entity."""
    write(
        tmp_path,
        topology={"entities": [{"id": "svc", "kind": "service", "aliases": ["pod-1"]}],
                  "edges": [{"source": "web", "target": "pod-1", "kind": "calls"}]},
        alerts=[{"entity": "pod-1", "name": "down", "ts": 5}],
        evidence='{"entity": "pod-1", "ts": 4, "type": "error", "about": "pod-1"}',
    )  # fmt: skip
    known = Snapshot.read(tmp_path)
    assert list(known.entities()) == ["svc", "web"]
    assert [one.entity for one in known.alerts()] == ["svc"]
    assert [one.about for one in known.evidence("svc", known.window)] == ["svc"]
    assert [(one.entity, one.is_source) for one in known.neighbours("svc")] == [("web", True)]


def test_undeclared_entities_are_known(tmp_path: Path) -> None:
    """Ends of edges and owners of evidence need no row; without a topology it works as well."""
    write(tmp_path, evidence='{"entity": "x", "ts": 1, "type": "error"}')
    assert list(Snapshot.read(tmp_path).entities()) == ["x"]
    write(tmp_path, topology={"edges": [{"source": "a", "target": "a"}]})
    assert list(Snapshot.read(tmp_path).entities()) == ["a", "x"]
    assert Snapshot.read(tmp_path).neighbours("a") == ()


def test_an_entity_may_have_several_rows(tmp_path: Path) -> None:
    """Their aliases are put together, in any order; published graphs declare some twice."""
    rows = [{"id": "x", "aliases": ["y"]}, {"id": "x", "kind": "pod", "aliases": ["z"]}]
    for some in (rows, rows[::-1]):
        known = Snapshot.read(write(tmp_path, topology={"entities": some}))
        assert [known.canonical(one) for one in "xyz"] == ["x", "x", "x"]
        assert known.kind("x") == "pod"


def test_the_window_is_that_of_the_alarms(tmp_path: Path) -> None:
    """Five minutes before the first and after the last; all, if there is no alarm."""
    rows = [{"entity": "x", "ts": ts, "type": "log"} for ts in (0, 700, 1301, 9999)]
    write(tmp_path, evidence="\n".join(map(json.dumps, rows)))
    assert len(Snapshot.read(tmp_path).evidence("x", Snapshot.read(tmp_path).window)) == 4
    write(tmp_path, alerts=[{"entity": "x", "name": "n", "ts": 1000, "until": 1001}])
    known = Snapshot.read(tmp_path)
    assert known.window == (700.0, 1301.0)
    assert [one.ts for one in known.evidence("x", known.window)] == [700.0, 1301.0]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "has none of"),
        ({"topology": "{"}, "topology.json"),
        ({"alerts": [{"entity": "x"}]}, "alerts.json: 0.ts"),
        ({"evidence": '{"entity": "x", "ts": 1, "type": "log"}\n{"entity": 3}'},
         "evidence.jsonl:2: entity"),
        ({"evidence": '{"entity": "x", "ts": 1, "type": "log", "text": "' + "y" * 66_000 + '"}'},
         "evidence.jsonl:1: is longer than 65,536 bytes"),
        ({"evidence": '{"id": "i", "entity": "x", "ts": 1, "type": "log"}\n' * 2}, "have the id i"),
        ({"evidence": '{"id": "x/2", "entity": "x", "ts": 1, "type": "log"}\n'
                      '{"entity": "x", "ts": 2, "type": "log"}'}, "x/2 is an id"),
        ({"evidence": '{"entity": "x", "ts": NaN, "type": "log"}'}, "x has a number that is none"),
        ({"alerts": '[{"entity": "x", "ts": 1e999, "name": "n"}]'}, "about x is no number"),
        ({"topology": {"entities": [{"id": "x", "aliases": ["y"]}, {"id": "y"}]}},
         "y is a name of two entities"),
    ],
)  # fmt: skip
def test_a_broken_directory_is_refused_with_its_place(
    tmp_path: Path, files: dict[str, Any], says: str
) -> None:
    """The file, the line and the key are named."""
    with pytest.raises(DigError, match=says.replace(".", r"\.")):
        Snapshot.read(write(tmp_path, **files))


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    """A missing directory, and a directory in the place of a file."""
    with pytest.raises(SettingsError, match="no directory"):
        Snapshot.read(tmp_path / "none")
    (tmp_path / "alerts.json").mkdir()
    with pytest.raises(TraceError, match="is no file"):
        Snapshot.read(tmp_path)


def test_the_truth_lies_apart(tmp_path: Path) -> None:
    """A snapshot is the same with it and without it; scoring needs it."""
    assert read_truth(FLASH_SALE).roots == ["S1"]
    write(tmp_path, alerts=[])
    before = Snapshot.read(tmp_path).sha256
    with pytest.raises(SettingsError, match=r"no truth\.json"):
        read_truth(tmp_path)
    write(tmp_path, truth={"roots": ["x"]})
    assert Snapshot.read(tmp_path).sha256 == before
