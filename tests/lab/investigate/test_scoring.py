"""Answers against the truth, several runs, and the answer in lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dig.errors import SettingsError
from dig.lab.investigate.beliefs import Claim
from dig.lab.investigate.controller import Controller, Course
from dig.lab.investigate.investigation import (
    Investigation,
    InvestigationCost,
    document,
    investigate,
    majority,
)
from dig.lab.investigate.investigation_lines import step_line, tell
from dig.lab.investigate.rules import ServiceRules
from dig.lab.investigate.scoring import Agreement, score
from dig.lab.investigate.snapshot import EvidenceLine, Snapshot, SnapshotTruth, read_truth
from tests.lab.investigate.worlds import FLASH_SALE, world

KNOWN = Snapshot.read(FLASH_SALE)
FOUND = investigate(KNOWN, ServiceRules())


def answered(*frontier: str, claims: tuple[Claim, ...] = ()) -> Investigation:
    return replace(FOUND, frontier=frontier, claims=claims)


@pytest.mark.parametrize(
    ("answer", "true", "numbers"),
    [
        ("ab", "ab", (1, 1, 1)),
        ("abc", "a", (1 / 3, 1, 0.5)),
        ("", "a", (0, 0, 0)),
        ("a", "", (0, 0, 0)),
        ("", "", (1, 1, 1)),
    ],
)
def test_agreement_by_hand(answer: str, true: str, numbers: tuple[float, ...]) -> None:
    """Precision, recall and F1 of small sets."""
    one = Agreement.of(answer, true)
    assert (one.precision, one.recall, one.f1) == pytest.approx(numbers)


def test_the_right_answer_has_full_marks() -> None:
    """Roots, edges and proximity of the example."""
    found = score(KNOWN, read_truth(FLASH_SALE), [FOUND])
    assert (found.roots.f1, found.edges.f1, found.proximity) == (1, 1, 1)
    assert found.pass_at_k and found.maj_at_k


@pytest.mark.parametrize(("answer", "near"), [("S1", 1), ("S2", 1 / 2), ("S4", 1 / 4)])
def test_proximity_goes_down_with_each_link(answer: str, near: float) -> None:
    """One over one more than the links to the true cause, also those that only the truth has."""
    assert score(KNOWN, read_truth(FLASH_SALE), [answered(answer)]).proximity == near


def test_edges_count_if_they_lead_on_from_the_answer() -> None:
    """A claim that the answer does not reach is not part of it."""
    claims = (Claim("S1", "S2"), Claim("S3", "S4"))
    found = score(KNOWN, read_truth(FLASH_SALE), [answered("S1", claims=claims)])
    assert found.edges.precision == 1
    assert found.edges.recall == pytest.approx(1 / 3)


def test_aliases_of_the_truth_name_the_entity() -> None:
    """The truth may use any name."""
    assert score(KNOWN, SnapshotTruth(["shop-frontend"]), [FOUND]).roots.f1 == 1


def test_several_runs_pass_or_win_together() -> None:
    """pass@k asks for one right frontier, maj@k for more than half."""
    truth = read_truth(FLASH_SALE)
    runs = [answered("S1"), answered("S4"), answered("S4")]
    found = score(KNOWN, truth, runs)
    assert found.pass_at_k and not found.maj_at_k and found.answers == 3
    assert found.roots.f1 == pytest.approx(1 / 3)
    assert score(KNOWN, truth, [answered("S1"), *runs[:2]]).maj_at_k
    voted = majority(runs, "samples")
    assert score(KNOWN, truth, [voted]).pass_at_k
    # Documents of several runs count with each of them: here 3 of 4 are right.
    right = majority([answered("S1")] * 3, "samples")
    assert score(KNOWN, truth, [right, answered("S4")]).maj_at_k


def test_the_majority_and_how_far_runs_agree() -> None:
    """More than half of the frontiers; the mean Jaccard index of pairs."""
    runs = [answered("a", "b"), answered("a"), answered("c")]
    found = majority(runs, "orders")
    assert found.frontier == ("a",) and found.votes is not None
    assert found.votes.agreement == pytest.approx((0.5 + 0 + 0) / 3)
    none = majority([answered("a"), answered("b")], "orders")
    assert none.frontier == () and none.confidence == "guess"
    assert majority([answered(), answered()], "orders").votes.agreement == 1  # type: ignore[union-attr]


def test_the_cost_of_several_runs_is_added() -> None:
    """Steps, requests and tokens; dollars if they are known."""
    costs = [InvestigationCost(2, 1, 10, 5, 0.5), InvestigationCost(3, 1, 10, 5, None)]
    runs = [replace(FOUND, cost=one) for one in costs]
    assert majority(runs, "samples").cost == InvestigationCost(5, 2, 20, 10, 0.5)


def test_answers_about_something_else_are_refused() -> None:
    """Another snapshot, or none at all."""
    with pytest.raises(SettingsError, match="another snapshot"):
        score(KNOWN, read_truth(FLASH_SALE), [replace(FOUND, sha256="0")])
    with pytest.raises(SettingsError, match="no answer"):
        score(KNOWN, read_truth(FLASH_SALE), [])


def test_a_document_is_read_as_it_was_written() -> None:
    """The JSON round trip loses nothing."""
    assert Investigation.from_json(FOUND.to_json()) == FOUND
    with pytest.raises(SettingsError, match="format"):
        Investigation.from_json(FOUND.to_json().replace("digmon-investigation", "digmon-other"))


# --- in lines ---


def test_the_answer_in_lines() -> None:
    """Where it began, the way to the alarm, and the number of steps."""
    assert [*tell(FOUND)] == [
        "flash-sale: it began at S1",
        "  S1: it sends more traffic, and no caller of it does [s1-traffic, s1-log]",
        "HighErrorRate at S2: S1 -> S2",
        "10 steps by rules, 4 of its parts judged: nothing was left to judge",
    ]


def test_what_changed_a_belief_is_told() -> None:
    """An origin until a neighbour's message."""
    lines = [
        EvidenceLine("db", 90.0, "exhausted"),
        EvidenceLine("db", 80.0, "traffic", about="web", value=3, usual=1),
        EvidenceLine("web", 70.0, "change"),
    ]
    found = investigate(world(["db", "web"], [("web", "db")], alerts=["db"], evidence=lines),
                        ServiceRules())  # fmt: skip
    assert found.frontier == ("web",)
    told = [*tell(found)]
    assert "  db was origin until web's message at step 2" in told


def test_a_guess_is_called_one() -> None:
    """Nothing to cite: no origin; and nobody in trouble."""
    guess = investigate(world("A", alerts="A"), ServiceRules())
    assert next(tell(guess)) == "small: no origin was found; a guess is A"
    assert "Not explained: A: alarm" in [*tell(guess)]
    assert next(tell(investigate(world("A"), ServiceRules()))).endswith("no entity is in trouble")


def test_never_more_than_twenty_lines() -> None:
    """Also with many origins, alarms and changes; control characters are made visible."""
    names = [f"e{n}\x1b" for n in range(40)]
    lines = [EvidenceLine(one, 90.0, "error", text="x") for one in names]
    lines += [EvidenceLine(one, 95.0, "failed-call", about=names[0]) for one in names[20:]]
    known = world(names, alerts=[*names, "nowhere"], evidence=lines)
    found = majority(
        [investigate(known, ServiceRules(), Course(order=n)) for n in (None, 1)], "orders"
    )
    told = [*tell(found)]
    assert len(told) <= 20
    assert not any("\x1b" in line for line in told)


def test_a_step_in_a_line() -> None:
    """The number, the judgement, the type of what it rests on, and how many are left."""
    controller = Controller(KNOWN)
    packet = controller.next()
    assert packet is not None
    line = controller.take(ServiceRules().judge(packet))
    assert line is not None
    assert step_line(controller, line) == "1/40 S2: symptom of S3 (failed-call); 1 active"
    assert document(controller, "rules").ended == "stopped"
