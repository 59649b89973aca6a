"""A set: made twice it is the same, and what is in it is what it says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import networkx as nx
import pytest

from dig.errors import SettingsError
from dig.faults.inject.fault_catalogue import KINDS
from dig.lab.benchmark.candidates import (
    CONFIGURATIONS,
    HYBRIDS,
    WEIGHTS,
    InstanceDraft,
    Recipe,
    Stratum,
)
from dig.lab.benchmark.hidden import Made, attempt
from dig.lab.benchmark.instances import INDEX, LABELS, SECRET, STRUCTURE, FaultSet
from dig.lab.benchmark.storing import make_set
from dig.lab.run_pair import lines, play
from dig.lab.truth.baseline import Baseline
from dig.lab.truth.verification import SILENT, Dropped
from dig.traces.journal.reader import TRACE
from dig.traces.verify import verify
from tests.faults.plays import nulls_of

from .conftest import SMALL, files

TINY = replace(SMALL, count=3, configurations=SMALL.configurations[:1], baseline_runs=20)

ELSEWHERE = """
from pathlib import Path
from tests.lab.faults.conftest import SMALL
from dig.lab.benchmark.storing import make_set
make_set(Path({out!r}), SMALL, jobs=2)
"""


@pytest.mark.nightly
def test_the_same_seed_makes_the_same_bytes(small: FaultSet, tmp_path: Path) -> None:
    """In two processes instead of one, and with another hash seed."""
    out = tmp_path / "again"
    environment = {**os.environ, "PYTHONHASHSEED": "3"}
    script = ELSEWHERE.format(out=str(out))
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=100)
    assert files(out) == files(small.path)


def test_another_seed_makes_another_set(tmp_path: Path, small: FaultSet) -> None:
    """The seed is what all follows from."""
    make_set(tmp_path / "other", replace(TINY, seed=8))
    other = FaultSet.open(tmp_path / "other")
    assert not {one.label().run["seed"] for one in other.instances()} & {
        one.label().run["seed"] for one in small.instances()
    }


def test_every_file_is_what_the_index_says(small: FaultSet) -> None:
    """Checksums, numbers of records, and nothing that the index does not know."""
    known = set()
    for one in small.instances():
        for name, digest in one.entry.sha256.items():
            path = (one.folder if name == TRACE else one.labels) / name
            if name == STRUCTURE:
                assert one.structure is not None
                path = one.structure / TRACE
            assert sha256(path.read_bytes()).hexdigest() == digest
            known.add(path)
        assert len(one.records()) == one.entry.records
    parts = ("public", "held-out", LABELS, STRUCTURE)
    known.add(small.path / LABELS / SECRET)
    assert known == {p for part in parts for p in (small.path / part).rglob("*") if p.is_file()}


def test_labels_of_the_held_out_part_are_in_a_folder_of_their_own(
    small: FaultSet, tmp_path: Path
) -> None:
    """Without that folder nothing but traces is left of it, and the rest can be used."""
    copy = tmp_path / "copy"
    shutil.copytree(small.path, copy)
    shutil.rmtree(copy / LABELS)
    held_out = [*FaultSet.open(copy).instances("held-out")]
    assert held_out
    assert {path.name for path in (copy / "held-out").rglob("*.*")} == {TRACE}
    assert not any(one.is_labelled for one in held_out)
    assert len(FaultSet.open(copy).labelled()) == len([*small.instances("public")])


def test_half_of_each_kind_is_held_out(small: FaultSet) -> None:
    """The parts differ by one instance of a kind at most."""
    parts = {
        split: Counter(one.label().kind for one in small.instances(split))
        for split in ("public", "held-out")
    }
    kinds = parts["public"].keys() | parts["held-out"].keys()
    assert all(0 <= parts["public"][kind] - parts["held-out"][kind] <= 1 for kind in kinds)


def test_every_trace_is_one(small: FaultSet) -> None:
    """The independent checker finds nothing wrong with traces, twins and baseline."""
    paths = sorted(small.path.rglob("*.dig.jsonl"))
    without_contents = len([*small.instances("held-out")])
    baseline = len(SMALL.configurations) * SMALL.baseline_runs
    assert len(paths) == 2 * SMALL.count + without_contents + baseline
    for path in paths[::7]:
        assert not verify(path).problems


def test_a_trace_tells_no_fault(small: FaultSet) -> None:
    """No incident, but that time was up, and the header is the twin's."""
    for one in small.instances():
        records = one.records()
        assert records[0] == one.twin()[0]
        rows = [json.loads(line) for line in (one.folder / TRACE).read_text().splitlines()]
        incidents = [row for row in rows if row["kind"] == "incident"]
        assert {row["what"] for row in incidents} <= {"request_failed"}
        late = [row["detail"]["how"] for row in incidents if row["ts"] == rows[-1]["ts"]]
        assert late == ["timeout"] * (rows[-1]["outcome"] == "timeout")
        assert len(incidents) == len(late)


def test_what_was_dropped_is_counted(small: FaultSet) -> None:
    """Every candidate that was tried is an instance or has a reason."""
    found = json.loads((small.path / "dropped.json").read_text())
    dropped = sum(number for reasons in found["dropped"].values() for number in reasons.values())
    assert (found["kept"], found["tried"]) == (SMALL.count, SMALL.count + dropped)


def test_a_stratum_gives_no_more_than_its_share(tmp_path: Path) -> None:
    """The cap holds however many are wanted."""
    recipe = replace(TINY, count=10, most_of_a_stratum=1)
    make_set(tmp_path / "set", recipe)
    labels = [one.label() for one in FaultSet.open(tmp_path / "set").instances()]
    strata = Counter((one.kind, one.stratum, one.configuration) for one in labels)
    assert len(labels) == 10
    assert all(n <= WEIGHTS.get("hybrid", 1) for n in strata.values())
    assert all(n == 1 for (_, sort, _), n in strata.items() if sort != "hybrid")


def test_a_card_tells_what_is_in_it(small: FaultSet) -> None:
    """Each kind with its number."""
    card = (small.path / "CARD.md").read_text()
    for kind, number in Counter(one.label().kind for one in small.instances()).items():
        assert any(
            row.startswith(f"| {kind} |") and row.endswith(f" {number} |")
            for row in card.splitlines()
        )


def test_a_set_of_version_1_is_refused(small: FaultSet, tmp_path: Path) -> None:
    """Its traces told their seeds."""
    index = json.loads((small.path / INDEX).read_text())
    (tmp_path / INDEX).write_text(json.dumps({**index, "version": 1, "seed": 7}))
    with pytest.raises(SettingsError, match="version: input should be 2"):
        FaultSet.open(tmp_path)


# --- what is no instance ---


BASELINE_OF: dict[str, Baseline] = {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_without_effect_makes_no_instance(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The null test: each parameter that takes all effect away does so."""
    configuration = SMALL.configurations[0]
    if not BASELINE_OF:
        runs = [play(run) for run in SMALL.baseline(configuration)]
        BASELINE_OF["it"] = Baseline.from_runs(runs)
    for number, (name, null) in enumerate(nulls_of(kind).items()):
        candidate = InstanceDraft(Stratum(configuration, (kind,)), number, "1")
        twin = play(candidate.run)
        (fault,) = candidate.faults(twin.records)
        nothing = (replace(fault, parameters={**fault.parameters, name: null}),)
        monkeypatch.setattr(InstanceDraft, "faults", lambda *_, nothing=nothing: nothing)
        assert lines(play(candidate.run, nothing).records) == lines(twin.records)
        assert attempt((candidate, BASELINE_OF["it"])) == Dropped(SILENT)
        monkeypatch.undo()


def test_a_run_without_anybody_to_hit_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two faults need two targets."""
    candidate = InstanceDraft(Stratum(replace(CONFIGURATIONS[0], agents=1), HYBRIDS[0]), 0, "1")
    assert candidate.faults(play(candidate.run).records) == ()
    nobody = attempt((candidate, Baseline(0, {})))
    assert isinstance(nobody, Dropped) and "nobody" in nobody.reason


def test_an_instance_has_a_path_from_each_cause_to_an_alarm(small: FaultSet) -> None:
    """Causes are the label's faults that did harm; steps lead from each to somewhere noticed."""
    for one in small.instances():
        graph, label = one.graph(), one.label()
        faults = sorted((cause.component, cause.kind) for cause in label.causes)
        injected = {(fault.target, fault.kind) for fault in label.read_faults()}
        assert {*faults} <= injected
        assert sorted((cause.component, cause.kind) for cause in graph.root_causes) == faults
        steps = nx.DiGraph([(edge.source, edge.target) for edge in graph.edges])
        for target, _ in faults:
            reached = nx.descendants(steps, f"agent:{target}:injected")
            assert not reached.isdisjoint(graph.alarms)


# --- what a set is made in ---


def test_a_directory_with_something_in_it_is_refused(small: FaultSet) -> None:
    """Nothing is overwritten."""
    with pytest.raises(SettingsError, match="is not empty"):
        make_set(small.path, SMALL)


def test_a_set_can_be_made_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current directory is filled, and stays the one that it was."""
    monkeypatch.chdir(tmp_path)
    inode = tmp_path.stat().st_ino
    assert make_set(Path(), TINY) == FaultSet.open(Path()).index
    assert tmp_path.stat().st_ino == inode
    assert not [*tmp_path.glob(".*")]


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    """Neither the set nor the directory in which it was being made."""

    def interrupt(what: str, done: int, total: int) -> None:
        if what == "instances" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_set(tmp_path / "set", TINY, progress=interrupt)
    assert not [*tmp_path.iterdir()]


def test_more_than_there_can_be_is_refused(tmp_path: Path) -> None:
    """The message says how many there were."""
    recipe = replace(TINY, count=500, tries=1)
    with pytest.raises(SettingsError, match=r"candidates gave \d+ instances and not 500"):
        make_set(tmp_path / "set", recipe)
    assert not [*tmp_path.iterdir()]


def test_hybrids_are_of_known_kinds_and_the_second_fault_is_subtle() -> None:
    """It acts now and then, and somewhere else than the first."""
    assert {kind for pair in HYBRIDS for kind in pair} <= KINDS.keys()
    candidate = InstanceDraft(Stratum(CONFIGURATIONS[1], HYBRIDS[0]), 0, "1")
    first, second = candidate.faults(play(candidate.run).records)
    assert first.target != second.target
    assert (second.parameters["probability"], second.parameters["at_most"]) == (0.5, 2)


def test_no_candidate_is_drawn_twice() -> None:
    """Two strata of one name would draw the same runs, and a set would hold them twice."""
    names = Counter(stratum.name for stratum in Recipe(seed=1).strata)
    assert {*names.values()} == {1}


def test_seeds_of_a_baseline_are_no_candidates() -> None:
    """An instance is never held against itself."""
    recipe = Recipe(seed=1)
    seeds = {run.seed for run in recipe.baseline(CONFIGURATIONS[0])}
    assert len(seeds) == recipe.baseline_runs
    runs = (InstanceDraft(one, number, "1").run for one in recipe.strata for number in range(3))
    assert seeds.isdisjoint(run.seed for run in runs)


def test_a_kept_candidate_is_what_it_was_drawn_as() -> None:
    """`Made` has the kinds of its stratum, in their order."""
    stratum = Stratum(SMALL.configurations[0], ("drop",))
    baseline = Baseline.from_runs([play(run) for run in SMALL.baseline(stratum.configuration)])
    results = [attempt((InstanceDraft(stratum, number, "1"), baseline)) for number in range(4)]
    made = [one for one in results if isinstance(one, Made)]
    assert made
    assert {tuple(fault.kind for fault in one.label.read_faults()) for one in made} == {("drop",)}
