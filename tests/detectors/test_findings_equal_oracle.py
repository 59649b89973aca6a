"""What the detectors find in random traces is what the definition says, and in its order.

More of the same: `make campaign`.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.detectors import standard
from dig.detectors.finding import Finding
from dig.detectors.watch import Watch
from dig.graph.codec import decode
from tests.comparison import Comparison, compare, detectors_with_an_oracle, find, numbered_trace
from tests.features import FEATURES
from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row
from tests.oracle_findings import KINDS, PATTERNS
from tests.oracle_findings import findings as expected
from tests.random_traces import random_trace
from tests.strategies import traces

CHUNKS, SIZE = 10, 200
COUNTED = 5  # so many chunks are enough to tell that the traces are worth something
NIGHTLY = [pytest.param(chunk, marks=pytest.mark.nightly) for chunk in range(COUNTED, CHUNKS)]


@cache
def comparisons(chunk: int) -> list[Comparison]:
    """Traces of all kinds and lengths, the same on every machine."""
    numbers = range(chunk * SIZE, (chunk + 1) * SIZE)
    return [compare(numbered_trace(number)) for number in numbers]


def counted() -> list[Comparison]:
    return list(chain.from_iterable(map(comparisons, range(COUNTED))))


def test_every_pattern_has_a_detector() -> None:
    """The patterns of the oracle and those of `standard()` are the same, in the same order."""
    names = tuple(detector.pattern for detector in standard())
    missing, gone = set(names) - set(PATTERNS), set(PATTERNS) - set(names)
    assert not missing, f"patterns without an oracle, add to tests/oracle_findings.py: {missing}"
    assert not gone, f"patterns of the oracle without a detector: {gone}"
    assert names == PATTERNS, "the order of KINDS in tests/oracle_findings.py is not the table's"


@pytest.mark.parametrize("chunk", [*range(COUNTED), *NIGHTLY])
def test_what_is_found_is_what_the_oracle_finds(chunk: int) -> None:
    """Subject, stage, evidence, both times and the order of all findings are the oracle's."""
    for number, seen in enumerate(comparisons(chunk), chunk * SIZE):
        assert seen.agree, f"python -m tests.campaign --seed {number} --count 1"


def test_both_kinds_of_run_hold_every_pattern_often() -> None:
    """The comparison is about something: no pattern is rare in the traces compared."""
    raised = Counter((seen.session, kind) for seen in counted() for kind in seen.kinds)
    rare = {(session, kind) for session in (False, True) for kind in KINDS
            if raised[session, kind] < 5}  # fmt: skip
    assert not rare, f"have tests/random_traces.py reach {rare} more often"


def test_the_traces_visit_every_corner() -> None:
    """Each feature that may matter to a detector is in several of the traces compared."""
    had = Counter(chain.from_iterable(seen.features for seen in counted()))
    assert {name: had[name] for name in FEATURES if had[name] < 3} == {}


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("session", [False, True])
def test_findings_equal_the_oracles_in_long_traces(session: bool, memory: bool) -> None:
    """What only a longer history has: many answers, long lineages, events used again late."""
    for seed in range(4):
        rng = random.Random(f"long {seed}")
        rows = random_trace(rng, length=150, session=session, memory=memory)
        assert compare(rows).agree, f"seed {seed}"


@given(traces())
def test_findings_equal_the_oracles_in_traces_drawn_anew(rows: list[Row]) -> None:
    """Like above, over traces that shrink; `--hypothesis-profile=dev` looks at a thousand."""
    assert find(rows) == expected(rows)


@given(traces(most=40), st.randoms(use_true_random=False))
def test_what_is_found_does_not_depend_on_when_the_clock_is_looked_at(
    rows: list[Row], rng: random.Random
) -> None:
    """A host may look at the clock between two records as often as it likes."""
    watch = Watch(detectors_with_an_oracle())
    found: list[Finding] = []
    for one in rows:
        record = decode(one)
        for us in sorted(rng.randint(watch.graph.now, record.us) for _ in range(2)):
            found += watch.advance(us)
        found += watch.feed(record)
    assert [finding.row() for finding in found] == find(rows)


def test_reading_a_notice_is_work_on_the_problem_behind_it() -> None:
    """A deadlock of a problem waits for whoever looks at anything that concerns it."""
    rows = trace(
        arrive(0, "e", None, "a"),
        turn(1, "v", "a", "x n", e="consume"),
        [emit(1, "x", "v", "b"), emit(1, "n", "v", "c", "notice")],
        [deliver(1, "x", "b"), deliver(1, "n", "c")],
        start(2, "w", "c", "n"),
        row(5, "incident", what="x", detail=None),
        end(6, "w", n="delay"),
        limits={"dl_window_s": 2},
        session=True,
    )
    assert find(rows) == expected(rows)
    assert [(one["pattern"], one["ts"]) for one in find(rows)] == [("DL", 6.0)]


@pytest.mark.parametrize("session", [False, True])
def test_who_leaves_holds_nothing_back_any_more(session: bool) -> None:
    """An activation that was cut off is not in progress: the deadlock is raised at the leave."""
    rows = trace(
        arrive(0, "e", None, "ab"),
        start(1, "v", "a", "e"),
        row(4, "leave", agent="a"),
        row(9, "incident", what="x", detail=None),
        limits={"dl_window_s": 2},
        session=session,
    )
    assert find(rows) == expected(rows)
    assert [(one["pattern"], one["t"], one["ts"]) for one in find(rows)] == [("DL", 5, 4.0)]


@pytest.mark.parametrize("session", [False, True])
def test_an_end_exactly_at_the_deadline_makes_it_pass_there_and_then(session: bool) -> None:
    """The activation in progress was all that held it back: nothing has to come after its end."""
    rows = trace(
        arrive(0, "e", None, "ab"),
        start(1, "v", "a", "e"),
        end(2, "v"),
        limits={"dl_window_s": 2},
        session=session,
    )
    assert find(rows) == expected(rows)
    assert [(one["pattern"], one["t"], one["ts"]) for one in find(rows)] == [("DL", 5, 2.0)]


def test_an_answer_built_on_one_from_memory_does_not_share_that_memory() -> None:
    """What `a` did before counts for its answer on a note alone, and not for that of `b`."""
    rows = trace(
        arrive(0, "e", None, "a"),
        turn(1, "v1", "a", e="consume"),
        arrive(2, "s", "system", "a", "system"),
        turn(3, "v2", "a", "f1", s="consume"),
        final(3, "f1", "v2"),
        row(3, "redirect", event="f1", to=["b"]),
        deliver(3, "f1", "b"),
        turn(4, "v3", "b", "f2", f1="consume"),
        final(4, "f2", "v3"),
    )
    assert find(rows) == expected(rows)
    assert [(one["pattern"], one["subject"]["event"]) for one in find(rows)] == [("ET", "f2")]


@pytest.mark.parametrize("session", [False, True])
def test_a_second_answer_that_uses_what_the_first_left_out_is_no_early_one(session: bool) -> None:
    """The part that was missing behind the first answer is not held against the second."""
    rows = trace(
        arrive(0, "e", None, "a"),
        turn(1, "v", "a", "x y", e="consume"),
        [emit(1, "x", "v", "b"), emit(1, "y", "v", "b")],
        deliver(1, "x", "b"),
        turn(2, "w1", "b", "f1", x="consume"),
        final(2, "f1", "w1"),
        row(2, "redirect", event="f1", to=["b"]),
        [deliver(2, "f1", "b"), deliver(2, "y", "b")],
        turn(3, "w2", "b", "f2", f1="consume", y="consume"),
        final(3, "f2", "w2"),
        session=session,
    )
    assert find(rows) == expected(rows)
    assert [(one["pattern"], one["subject"]["event"]) for one in find(rows)] == [("ET", "f1")]


def test_waiting_before_what_concerns_two_problems_leaves_each_its_own_window() -> None:
    """Nothing is open about either, the same agent looked last: still one began to wait later."""
    rows = trace(
        [*arrive(0, "e1", None, "a"), *arrive(0, "e2", None, "ab")],
        turn(1, "v1", "b", "y", e2="consume"),
        arrive(1, "y", "v1", "b"),
        turn(1, "v2", "a", "n", e1="consume", e2="consume"),
        arrive(1, "n", "v2", "c", "notice"),
        turn(3, "v3", "b", y="discard"),
        turn(4, "v4", "c", n="delay"),
        row(9, "incident", what="x", detail=None),
        limits={"mc_window_s": 5},
        session=True,
    )
    missing = [one for one in find(rows) if one["pattern"] == "MC"]
    assert find(rows) == expected(rows)
    assert [(one["subject"]["event"], one["ts"]) for one in missing] == [("e1", 6.0), ("e2", 8.0)]


def test_what_an_agent_does_after_its_answer_is_not_settled_with_it() -> None:
    """Memory goes back from an answer, whenever it is accepted."""
    rows = trace(
        [*arrive(0, "e1", None, "a"), *arrive(0, "e3", None, "b")],
        turn(1, "v1", "a", "f1", e1="consume"),
        final(1, "f1", "v1"),
        arrive(2, "e2", None, "a"),
        turn(2, "v2", "a", e2="consume"),
        turn(2, "v3", "b", "f3", e3="consume"),
        final(2, "f3", "v3"),
        [deliver(3, "f1", None), deliver(3, "f3", None)],
        row(9, "incident", what="x", detail=None),
        limits={"mc_window_s": 5},
        session=True,
        memory=True,
    )
    assert find(rows) == expected(rows)
    assert [(one["pattern"], one["subject"]["event"]) for one in find(rows)] == [("MC", "e2")]
