"""A set that somebody else made: whatever is in it, it is data, and an error is one sentence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dig.errors import SettingsError, TraceError
from dig.lab.benchmark.answer_file import Answers
from dig.lab.benchmark.attributing import attribute_all
from dig.lab.benchmark.instances import FaultSet, Instance
from dig.lab.benchmark.scores_answers import score
from dig.lab.benchmark.scores_detectors import score_detectors
from dig.lab.benchmark.scores_healing import score_healing
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.reader import TRACE
from tests.fuzz.running import hold_promises


@pytest.fixture
def copy(small: FaultSet, tmp_path: Path) -> FaultSet:
    """The set with one instance that has labels."""
    first = next(small.instances("public"))
    name = first.entry.id
    shutil.copytree(first.folder, tmp_path / "public" / name)
    index = small.index.model_copy(update={"instances": (first.entry,)})
    (tmp_path / "set.json").write_text(index.model_dump_json())
    return FaultSet.open(tmp_path)


def the_one(known: FaultSet) -> Instance:
    """Its instance."""
    (one,) = known.instances()
    return one


def rewrite(path: Path, change: Callable[[Any], object]) -> None:
    """Change a file of JSON."""
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))


def sealed(known: FaultSet) -> FaultSet:
    """The set with the right checksums: whoever has bad intent writes them anew."""

    def change(body: Any) -> None:
        for entry, one in zip(body["instances"], known.instances(), strict=True):
            for file in entry["sha256"]:
                data = ((one.folder if file == TRACE else one.labels) / file).read_bytes()
                entry["sha256"][file] = sha256(data).hexdigest()

    rewrite(known.path / "set.json", change)
    return FaultSet.open(known.path)


def renamed(run: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The settings of a run with others among them, and with the name that they have then."""
    changed = {**run, **changes}
    with pytest.raises(SettingsError, match="would be") as refused:
        TeamRun.read(changed)
    return {**changed, "run": str(refused.value).split("would be '")[1].split("'")[0]}


@pytest.mark.parametrize(
    "changes",
    [
        {"agents_are": "os:system", "options": {"command": "touch it"}},
        {"detectors": ["os:getpid"]},
        {"task": "os:getcwd"},
        {"agents_are": "model x", "options": {"base_url": "http://127.0.0.1:9/v1"}},
    ],
    ids=["team", "detector", "task", "model"],
)
def test_no_code_that_a_label_names_is_run(
    copy: FaultSet, changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is played again is one of simulated agents, of a known task."""
    monkeypatch.chdir(tmp_path)
    label = the_one(copy).folder / "label.json"
    rewrite(label, lambda body: body.update(run=renamed(body["run"], **changes)))
    with pytest.raises(SettingsError, match="cannot be played again"):
        score_healing(sealed(copy))
    assert not (tmp_path / "it").exists()


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("run", "method"), None),
        (("run", "to"), []),
        (("faults",), []),
        (("faults", 0, "kind"), None),
        (("faults", 0, "parameters"), []),
        (("injections",), []),
        (("injections", 0, "t"), None),
        (("injections", 0, "t"), -(10**400)),
        (("injections", 0, "ts"), 1e300),
        (("faulted", "rmse"), 1e308),
        (("twin", "seconds"), "NaN"),
        (("injections", 0, "ts"), []),
    ],
)
def test_a_label_of_wrong_kinds_is_refused(copy: FaultSet, where: Any, value: Any) -> None:
    """The file is named, and the place in it."""
    path = the_one(copy).folder / "label.json"
    body = json.loads(path.read_text())
    inner = body
    for step in where[:-1]:
        inner = inner[step]
    inner[where[-1]] = value
    path.write_text(json.dumps(body))
    for scored in (score_detectors, score_healing):
        with pytest.raises(SettingsError, match=rf"label\.json: {where[0]}"):
            scored(sealed(copy))


@pytest.mark.parametrize(
    "changes", [{"size": None}, {"agents": 2.5}, {"agents_are": None}, {"budget": {"per_run": []}}]
)
def test_settings_of_wrong_kinds_are_not_played(copy: FaultSet, changes: dict[str, Any]) -> None:
    """They are no settings of a run."""
    rewrite(the_one(copy).folder / "label.json", lambda body: body["run"].update(changes))
    with pytest.raises(SettingsError, match="cannot be played again"):
        score_healing(sealed(copy))


def test_a_run_that_would_fill_the_memory_is_not_played(copy: FaultSet) -> None:
    """A label says how many agents there are; a number is quickly written."""
    label = the_one(copy).folder / "label.json"
    rewrite(label, lambda body: body["run"].update(agents=10**9))
    with pytest.raises(SettingsError, match="agents must be at most"):
        score_healing(sealed(copy))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["nodes"][0].update(component=[]),
        lambda body: body["nodes"][0].update(type=1),
        lambda body: body["nodes"][0].update(onset_t="x"),
        lambda body: body["edges"][0].update(source={}),
        lambda body: body["root_causes"][0].update(kind=None),
        lambda body: body.update(alarms=[[]]),
    ],
)
def test_a_causal_graph_of_wrong_kinds_is_refused(copy: FaultSet, change: Any) -> None:
    """Each value is looked at before anything is counted."""
    rewrite(the_one(copy).folder / "causal_graph.json", change)
    with pytest.raises(SettingsError, match="is no causal graph"):
        score(Answers(answers={}), sealed(copy))


@pytest.mark.parametrize("name", ["../../elsewhere", "/etc", "..", "", "a\x1b[31m", "a/b"])
def test_the_name_of_an_instance_leads_nowhere_else(copy: FaultSet, name: str) -> None:
    """It is the name of a folder."""
    rewrite(copy.path / "set.json", lambda body: body["instances"][0].update(id=name))
    with pytest.raises(SettingsError, match=r"set\.json: instances\[0\]\.id"):
        FaultSet.open(copy.path)


def test_an_instance_stands_in_a_set_once(copy: FaultSet) -> None:
    """Else it would be counted twice."""
    rewrite(copy.path / "set.json", lambda body: body["instances"].extend(body["instances"]))
    with pytest.raises(SettingsError, match="stands there 2 times"):
        FaultSet.open(copy.path)


@pytest.mark.parametrize("file", ["label.json", "causal_graph.json"])
@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 1}', "[" * 100_000, "1" * 5000, "NaN", b"\xff", "[1e999]"]
)
def test_files_of_a_set_are_read_strictly(copy: FaultSet, file: str, text: str | bytes) -> None:
    """As a line of a trace is."""
    data = text if isinstance(text, bytes) else text.encode()
    (the_one(copy).folder / file).write_bytes(data)
    with pytest.raises(SettingsError, match="is not JSON"):
        score(Answers(answers={}), sealed(copy))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_in_a_set_is_not_waited_for(copy: FaultSet) -> None:
    """It is no file."""
    path = the_one(copy).folder / "causal_graph.json"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(SettingsError, match="cannot be read: it is no file"):
        score(Answers(answers={}), copy)


READS: dict[str, Callable[[FaultSet], object]] = {
    "trace.dig.jsonl": lambda known: attribute_all("random", known),
    "twin.dig.jsonl": lambda known: score(Answers(answers={}), known),
    "label.json": score_healing,
    "causal_graph.json": lambda known: score(Answers(answers={}), known),
}


@pytest.mark.parametrize("file", READS)
def test_a_file_that_is_not_the_one_that_was_made_is_named(copy: FaultSet, file: str) -> None:
    """Whatever looks at it, by its checksum."""
    path = the_one(copy).folder / file
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(SettingsError, match="is not the file that was made") as refused:
        READS[file](copy)
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize("sums", [{}, {"label.json": "0" * 64}, {"../x": "0" * 64}, None, "x"])
def test_a_set_has_a_checksum_for_each_file(copy: FaultSet, sums: object) -> None:
    """None is left out because somebody has left it out."""
    rewrite(copy.path / "set.json", lambda body: body["instances"][0].update(sha256=sums))
    with pytest.raises(SettingsError, match=r"set\.json: instances\[0\]\.sha256"):
        FaultSet.open(copy.path)


@pytest.mark.parametrize("file", ["trace.dig.jsonl", "twin.dig.jsonl"])
def test_a_trace_of_a_set_keeps_the_rules_of_the_graph(copy: FaultSet, file: str) -> None:
    """What ends has begun, for instance: scores and attributors rely on it."""
    path = the_one(copy).folder / file
    text = path.read_text()
    path.write_text(text.replace('"activation":"', '"activation":"x', 1))
    with pytest.raises(TraceError, match=rf"{file}:\d+: "):
        READS[file](sealed(copy))


def test_no_hostile_set_breaks_a_promise(tmp_path: Path) -> None:
    """As of other entrances (`tests/test_fuzz.py`)."""
    hold_promises("sets", tmp_path)
