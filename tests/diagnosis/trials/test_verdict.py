"""Verdicts: the rules one by one, and an independent reading of them on random rows."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.diagnosis.trials.significance import fisher, interval, verdict
from dig.errors import SettingsError


def row(letter: str) -> dict[str, Any] | None:
    """G: good; b: bad; p: bad with progress; n: not carried out, N: but good; x: not made."""
    if letter == "x":
        return None
    progress = {"G": 1.0, "N": 1.0, "p": 0.6}.get(letter, 0.4)
    return {"good": letter in "GN", "fulfilled": letter not in "nN", "progress": progress}


def rows(letters: str) -> list[dict[str, Any] | None]:
    return [*map(row, letters)]


VALIDATED, PARTIAL, REFUTED = ("validated", None), ("partial", None), ("refuted", None)


def unclear(reason: str) -> tuple[str, str]:
    return "inconclusive", reason


@pytest.mark.parametrize(
    ("changed", "unchanged", "said"),
    [
        ("GGG", "bbb", VALIDATED),
        ("GGb", "bbb", VALIDATED),
        ("GGN", "bbb", VALIDATED),
        ("GNN", "bbb", unclear("not carried out")),
        ("Gpb", "bbb", PARTIAL),
        ("ppb", "bbb", PARTIAL),
        ("Gbb", "bbb", unclear("mixed")),
        ("pbb", "bbb", unclear("mixed")),
        ("bbb", "bbb", REFUTED),
        ("bbn", "bbb", REFUTED),
        ("bbN", "bbb", unclear("mixed")),
        ("bnn", "bbb", unclear("not carried out")),
        ("nnn", "bbb", unclear("not carried out")),
        ("GGx", "bbb", unclear("cannot be replayed")),
        ("GGG", "bbx", unclear("cannot be replayed")),
        ("GGG", "bb", unclear("cannot be replayed")),
        ("", "", unclear("cannot be replayed")),
        # A repeat whose control is good does not count, but for the first.
        ("GGGG", "bGbb", VALIDATED),
        ("bGGG", "bGGb", unclear("mixed")),
        ("GGGG", "Gbbb", VALIDATED),
        ("bGGGG", "bGGGG", unclear("flaky")),
        ("GGGGGGGGG", "bGGGGGGGG", unclear("flaky")),
        ("GGGGGGGGG", "bGGGGGGGb", VALIDATED),
        # More than n that count are not looked at, nor more than 3n at all.
        ("GGGbbbb", "bbbbbbb", VALIDATED),
        ("GGGGGGGGGG", "bGGGGGGGGb", unclear("flaky")),
    ],
)
def test_paired_repeats(changed: str, unchanged: str, said: Any) -> None:
    """Replay k of both arms draws the same random numbers."""
    assert verdict(rows(changed), rows(unchanged)) == said


@pytest.mark.parametrize(
    ("changed", "unchanged", "said"),
    [
        ("GGG", "bbb", VALIDATED),
        ("GGG", "Gbb", VALIDATED),
        ("GGb", "Gbb", unclear("flaky")),
        ("GGG", "GGb", unclear("flaky")),
        ("GGG", "", unclear("cannot be replayed")),
        ("ppb", "bbG", PARTIAL),
        ("ppb", "bpG", REFUTED),  # the median of the controls is 0.6
        ("bbb", "GGG", REFUTED),
        ("G", "b", unclear("flaky")),
        ("GxG", "bbb", unclear("cannot be replayed")),
    ],
)
def test_unpaired_repeats(changed: str, unchanged: str, said: Any) -> None:
    """All count, and good ones without the change are set off against good ones with it."""
    assert verdict(rows(changed), rows(unchanged), paired=False) == said


@pytest.mark.parametrize(("changed", "said"), [("G", VALIDATED), ("p", PARTIAL), ("b", REFUTED)])
def test_one_repeat_is_enough_where_nothing_is_random(changed: str, said: Any) -> None:
    """Another repeat would be the same."""
    assert verdict(rows(changed), rows("b"), n=1) == said


@pytest.mark.parametrize(
    ("milestones", "progress", "control", "gains"),
    [
        (5, 0.6, 0.4, True),  # in floats this is a little less than .2
        (5, 0.59, 0.4, False),
        (10, 0.5, 0.4, False),  # a milestone, but less than .2
        (10, 0.6, 0.4, True),
        (3, 2 / 3, 1 / 3, True),
        (3, 0.6, 1 / 3, False),  # more than .2, but no milestone
        (5, None, 0.4, False),
        (5, 0.6, None, False),
        (5, 0.4, 0.6, False),
    ],
)
def test_a_gain_is_a_milestone_and_a_fifth(
    milestones: int, progress: float | None, control: float | None, gains: bool
) -> None:
    """Both bounds are included; an unknown progress is no gain."""
    one = {"good": False, "fulfilled": True, "progress": progress}
    other = {"good": False, "fulfilled": False, "progress": control}
    for paired in (True, False):
        said = verdict([one] * 3, [other] * 3, milestones, paired)
        assert said == (PARTIAL if gains else REFUTED)


def test_a_number_of_repeats_or_milestones_is_at_least_one() -> None:
    """Two thirds of nothing would be reached by any change."""
    with pytest.raises(SettingsError, match="n must be at least 1, got milestones=5 and n=0"):
        verdict(rows("GGG"), rows("bbb"), n=0)
    with pytest.raises(SettingsError, match="got milestones=0 and n=3"):
        verdict(rows("GGG"), rows("bbb"), milestones=0)


# --- an independent reading ---

MADE = st.fixed_dictionaries(
    {
        "good": st.booleans(),
        "fulfilled": st.sampled_from([True, True, False]),
        "progress": st.sampled_from([None, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    }
)
PAIRS = st.lists(st.tuples(MADE, MADE), max_size=10).map(
    lambda pairs: ([one for one, _ in pairs], [other for _, other in pairs])
)
ANY = st.lists(st.one_of(MADE, MADE, MADE, st.none()), max_size=4)
ARMS = st.one_of(PAIRS, PAIRS, st.tuples(ANY, ANY))


def tenths(value: float) -> int:
    return round(10 * value)


def read(changed: Any, unchanged: Any, k: int, paired: bool, n: int) -> str:
    """The verdict by counting, rule by rule, with whole numbers."""
    if None in changed + unchanged or not changed or not unchanged:
        return "inconclusive: cannot be replayed"
    if paired and len(changed) != len(unchanged):
        return "inconclusive: cannot be replayed"
    order = [
        i
        for i in range(len(changed))
        if not paired or (i < 3 * n and (i == 0 or not unchanged[i]["good"]))
    ]
    if paired:
        order = order[:n]
    if len(order) < min(2, n):
        return "inconclusive: flaky"
    s = c = f = p = any_good = 0
    known = sorted(tenths(u["progress"]) for u in unchanged if u["progress"] is not None)
    for i in order:
        one = changed[i]
        if paired:
            before = unchanged[i]["progress"]
            before = None if before is None else Fraction(tenths(before))
        else:
            middle = (known[(len(known) - 1) // 2], known[len(known) // 2]) if known else None
            before = Fraction(sum(middle), 2) if middle else None
        any_good += one["good"]
        if one["fulfilled"]:
            f += 1
            s += one["good"]
            gain = None
            if before is not None and one["progress"] is not None:
                gain = tenths(one["progress"]) - before
            p += one["good"] or (gain is not None and gain >= 2 and gain * k >= 10)
    if not paired:
        c = sum(u["good"] for u in unchanged)
    m = len(order)
    if 3 * s >= 2 * m:
        return "validated" if 3 * (s - c) >= 2 * m else "inconclusive: flaky"
    if 3 * p >= 2 * m:
        return "partial"
    if 3 * f >= 2 * m and not any_good and not p:
        return "refuted"
    return "inconclusive: " + ("not carried out" if 3 * f < 2 * m else "mixed")


@given(ARMS, st.integers(1, 10), st.booleans(), st.integers(1, 4))
def test_the_verdict_is_what_its_rules_say(
    arms: Any, milestones: int, paired: bool, n: int
) -> None:
    """Read once more, by counting in whole numbers."""
    changed, unchanged = arms
    said = verdict(changed, unchanged, milestones, paired, n)
    assert ": ".join(filter(None, said)) == read(changed, unchanged, milestones, paired, n)


@given(st.integers(0, 6), st.integers(0, 6), st.data())
def test_fishers_p_is_a_share_of_all_ways_to_deal_the_good_ones(
    of: int, controls: int, data: st.DataObject
) -> None:
    """If the change had no effect, the good replays would be any of them."""
    good = data.draw(st.integers(0, of))
    others = data.draw(st.integers(0, controls))
    found = fisher(good, of, others, controls)
    if not of or not controls:
        assert found is None
        return
    ways = [*combinations(range(of + controls), good + others)]
    as_many = [way for way in ways if sum(one < of for one in way) >= good]
    assert found == pytest.approx(len(as_many) / len(ways))


def test_three_of_three_against_none_of_three_is_no_more_than_a_hint() -> None:
    """The p-value is 1 in 20, and the interval of the share is wide."""
    assert fisher(3, 3, 0, 3) == pytest.approx(0.05)
    assert interval(3, 3) == pytest.approx((0.4385, 1.0), abs=1e-4)
    assert interval(0, 3) == pytest.approx((0.0, 0.5615), abs=1e-4)
    assert interval(0, 0) == pytest.approx((0.0, 1.0))
