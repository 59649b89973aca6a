from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from bench import bounded, evidence, pictures, rescan
from bench.measure import claim
from bench.workload import Work
from dig.graph.records import Record


@pytest.fixture(scope="module", autouse=True)
def _freeze_what_others_left() -> None:
    """Benchmarks collect garbage before each measurement: what earlier tests keep is none."""
    gc.collect()
    gc.freeze()


def test_same_seed_makes_the_same_work() -> None:
    runs: list[list[Record]] = [[], []]
    for records in runs:
        Work(sink=records.append).grow(1_000)
    assert runs[0] == runs[1]
    assert runs[0] != rescan.trace(500, 0, session=False)[0]


def test_work_makes_every_pattern_now_and_then() -> None:
    work = Work(agents=40)
    while work.events < 10_000:
        work.step()
    assert {"ET", "OE", "DL", "CLA", "RSP"} <= set(work.findings)
    assert len(work.monitor.graph.open_events()) < 200


@pytest.mark.parametrize("session", [True, False])
def test_monitor_that_rescans_finds_what_ours_finds(session: bool) -> None:
    rescan.check(rescan.Networkx, rescan.trace(400, 0, session=session)[0])


@pytest.mark.parametrize("case", evidence.CASES.values(), ids=list(evidence.CASES))
def test_case_of_evidence_raises_as_many_items_as_it_says(case: evidence.Case) -> None:
    assert evidence.raised(case, 30) > 0


@pytest.mark.parametrize("case", bounded.CASES.values(), ids=list(bounded.CASES))
def test_a_failure_that_goes_on_costs_bytes_and_findings_in_proportion(
    case: Callable[[int], bounded.Failing],
) -> None:
    """It is raised at all, and four times as long it has at most four times of both."""
    short, long = bounded.measured(case, 30), bounded.measured(case, 120)
    assert 0 < short.findings <= long.findings <= 4 * short.findings + 4
    assert long.size < 1.2 * short.size


def test_pictures_that_cannot_be_measured_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a browser or npm there is a sentence, and the other benchmarks go on."""
    monkeypatch.setattr("shutil.which", lambda name: None)
    table = pictures.pictures(True)
    assert table.rows == ()
    assert table.note.startswith("skipped: ")


def test_claim_over_its_limit_says_so() -> None:
    assert claim("ratio", 1.5, 2) == "ratio: 1.50 (limit 2)"
    assert claim("ratio", 2.5, 2) == "ratio: 2.50 (limit 2, MISSED)"
