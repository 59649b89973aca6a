"""The soak, for some hours: memory does not follow the age of a session, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from tests.soak import Sample, Soak, Soaked, soaked, told
from tests.soak_follow import FOLLOWERS

SOAK = Soak(days=0.3, every_s=120.0, keep=50, segment_bytes=200 * 1024, traces=False)
HOURS = replace(SOAK, days=0.1)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Soaked:
    return soaked(SOAK, tmp_path_factory.mktemp("soak"))


def test_nothing_is_forgotten(done: Soaked) -> None:
    """Every event is consumed, lost and told of, or open; the independent checker agrees."""
    assert done.account.is_complete and not done.account.forgotten
    assert done.account.open_work == set(done.result.left.unconsumed)
    assert done.result.events == done.account.emitted > 800
    assert not done.report.problems and done.report.records == done.result.records
    assert {"consumed", "accepted", "lost, and found to be"} <= done.account.ended.keys()
    assert len(done.result.raised()) >= 5


def test_the_journal_goes_on_in_further_files(done: Soaked) -> None:
    """A session that lasts fills several segments, and what they hold is one trace."""
    assert len(done.report.files) >= 3


def test_history_stays_short(done: Soaked) -> None:
    """In the last hours the graph holds no more than in the first, and a fraction of the whole."""
    early, late = done.steady[:3], done.steady[-3:]
    assert _mean("rows", late) < 1.5 * _mean("rows", early) + 100
    assert _mean("rows", late) < done.result.events / 4
    assert _mean("live", late) < 20


@pytest.mark.nightly
def test_findings_are_what_they_are_with_all_history(done: Soaked, tmp_path: Path) -> None:
    """The same hours with nothing let go of: the same findings, and a graph that grows."""
    kept = soaked(Soak(**vars(SOAK) | {"keep": None}), tmp_path)
    assert kept.result.raised() == done.result.raised()
    assert kept.result.records == done.result.records
    assert kept.samples[-1].rows > 4 * done.samples[-1].rows


def journals(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())]


@pytest.fixture(scope="module")
def unfollowed(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The journal of some hours that nothing follows."""
    folder = tmp_path_factory.mktemp("alone")
    soaked(HOURS, folder)
    return journals(folder)


@pytest.mark.nightly
@pytest.mark.parametrize("who", FOLLOWERS)
def test_who_follows_stays_short_too(who: str, unfollowed: list[bytes], tmp_path: Path) -> None:
    """As the session does; nothing of it gets into the journal, and it sees all records."""
    done = soaked(replace(HOURS, follow=who), tmp_path)
    graph = done.followed.graph
    assert graph is not None and graph.t + 1 == done.result.records
    assert graph.event_count == done.result.events > 300 > 2 * graph.history.rows
    assert done.followed.made > 300 and not done.followed.fault
    assert journals(tmp_path) == unfollowed


def test_what_grows_is_told(done: Soaked) -> None:
    """Memory that grows by megabytes a day makes it fail, with the figure."""
    samples = [Sample(h, h, h * 10**6, 0, 0, 0, 0) for h in range(40)]
    grown = Soaked(done.soak, done.result, done.account, done.report, samples)
    assert grown.slope("traced") == pytest.approx(24e6)
    assert list(grown.faults()) == ["traced bytes grow by 24.00 MB a day"]
    assert list(told(grown))[-1] == "not as it should be"


def _mean(what: str, samples: list[Sample]) -> float:
    return float(mean(getattr(sample, what) for sample in samples))
