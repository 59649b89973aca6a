"""The loop of an investigation: order, messages, damping, refusals, checkpoints."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.errors import RequestError, SettingsError
from dig.lab.investigate.beliefs import (
    Belief,
    Claim,
    LocalJudgement,
    Message,
    NextEntity,
    NoAnswer,
    Packet,
)
from dig.lab.investigate.controller import Controller, Course
from dig.lab.investigate.investigation import checkpoint_bytes, document, investigate, resume
from dig.lab.investigate.rules import ServiceRules
from dig.lab.investigate.snapshot import EvidenceLine, Snapshot
from tests.lab.investigate.worlds import Scripted, cited, noted, snapshots, world


def judged(controller: Controller, policy: Scripted) -> list[str]:
    """The ledger in short: who was judged, as what, who was told and who was added."""
    while (packet := controller.next()) is not None:
        controller.take(policy.judge(packet))
    return [
        f"{one.entity}{one.visit} {one.belief.label}"
        f" told={''.join(one.told)} added={''.join(one.added)} active={one.active}"
        for one in controller.ledger
    ]


def other(packet: Packet) -> str:
    return packet.neighbours[0].entity


def quarrel(packet: Packet) -> LocalJudgement:
    """Contradicts what it said last."""
    is_symptom = packet.belief is None or packet.belief.label == "origin"
    by = other(packet) if is_symptom else None
    return LocalJudgement("symptom" if by else "origin", by, 0.5, cited(packet))


def test_two_that_flip_each_other_end_by_damping() -> None:
    """The fourth change of a label makes it `defer` for good, and the loop ends."""
    known = world("AB", [("A", "B")], alerts="A", evidence=noted("AB"))
    found = investigate(known, Scripted(quarrel))
    assert found.ended == "converged"
    assert {one.name: one.label for one in found.entities} == {"A": "defer", "B": "defer"}
    assert [line.flips for line in found.ledger if line.is_frozen] == [4, 4]
    assert found.frontier == () and found.confidence == "guess"
    assert found.answer == ("A",)


def test_the_ledger_of_a_scripted_policy_is_this_one() -> None:
    """Queue, cooldown and visits: an entity that just was judged waits until two others were."""

    def answer(packet: Packet) -> LocalJudgement:
        if packet.entity == "A":
            return quarrel(packet)
        return LocalJudgement("healthy", next=(NextEntity("A"),))

    known = world("ABC", [("A", "B"), ("A", "C"), ("B", "C")], alerts="AB", evidence=noted("ABC"))
    assert judged(Controller(known), Scripted(answer)) == [
        "A1 symptom told=BC added= active=1",
        "B1 healthy told=AC added=A active=1",
        "A2 origin told=BC added=B active=1",
        "B2 healthy told= added= active=0",
    ]


def test_a_cooling_entity_goes_to_the_end() -> None:
    """Two others come before an entity is judged again, though it was added before one of them."""
    known = world("ABC", [("A", "B"), ("B", "C")], alerts="CAB", evidence=noted("ABC"))
    policy = Scripted(lambda packet: LocalJudgement("healthy"))
    assert judged(Controller(known), policy) == [
        "C1 healthy told=B added= active=2",
        "A1 healthy told=B added= active=1",
        "B1 healthy told=AC added=AC active=2",
        "C2 healthy told= added= active=1",
        "A2 healthy told= added= active=0",
    ]


def test_all_that_quarrel_are_judged_in_turn() -> None:
    """Three that change at each of three visits, and are healthy then."""

    def answer(packet: Packet) -> LocalJudgement:
        return quarrel(packet) if packet.visits < 3 else LocalJudgement("healthy")

    known = world("ABC", [("A", "B"), ("B", "C"), ("A", "C")], alerts="ABC", evidence=noted("ABC"))
    lines = judged(Controller(known), Scripted(answer))
    assert [line.split()[0] for line in lines] == [
        "A1", "B1", "C1", "A2", "B2", "C2", "A3", "B3", "C3", "A4", "B4", "C4", "A5", "B5",
    ]  # fmt: skip


def test_nobody_is_judged_more_than_five_times() -> None:
    """A, whose cause changes each time, has neighbours with ten changes of a label together."""

    def answer(packet: Packet) -> LocalJudgement:
        if packet.entity == "A":
            return LocalJudgement("symptom", "BC"[packet.visits % 2], 0.5, cited(packet))
        return quarrel(packet)

    known = world("ABC", [("A", "B"), ("A", "C")], alerts="ABC", evidence=noted("ABC"))
    found = investigate(known, Scripted(answer))
    assert [line.visit for line in found.ledger if line.entity == "A"] == [1, 2, 3, 4, 5]
    assert found.ended == "converged"


def judge_now(controller: Controller, entity: str, judgement: LocalJudgement) -> Packet:
    """Judge an entity, whoever is next."""
    controller._active = {entity: None}
    packet = controller.next()
    assert packet is not None and packet.entity == entity
    assert controller.take(judgement) is not None
    return packet


def test_the_latest_message_that_blames_stays_until_its_sender_is_cleared() -> None:
    """A sender that later blames another is in the inbox twice; as healthy or origin, once."""
    known = world("ABC", [("B", "A"), ("B", "C")], alerts="B", evidence=noted("ABC"))
    controller, inboxes = Controller(known), []
    for label, by in (("symptom", "A"), ("symptom", "C"), ("origin", None)):
        judge_now(controller, "B", LocalJudgement(label, by, 0.5, ("B/1",)))  # type: ignore[arg-type]
        packet = judge_now(controller, "A", LocalJudgement("healthy"))
        inboxes.append([(one.belief.label, one.belief.by) for one in packet.inbox])
    assert inboxes == [
        [("symptom", "A")],
        [("symptom", "C"), ("symptom", "A")],
        [("origin", None)],
    ]


def test_without_messages_nobody_is_told_and_nobody_is_judged_twice() -> None:
    """The comparison: entities are still found by claims."""
    known = world("AB", [("A", "B")], alerts="A", evidence=noted("AB"))
    policy = Scripted(lambda packet: quarrel(packet))
    found = investigate(known, policy, Course(has_messages=False))
    assert [(line.entity, line.told) for line in found.ledger] == [("A", ()), ("B", ())]
    assert all(packet.inbox == () for packet in policy.packets)


def test_a_claim_lives_as_long_as_the_judgement_that_made_it() -> None:
    """The next judgement of the claimant replaces its claims."""
    known = world("ABC", [("A", "B"), ("A", "C")], alerts="A", evidence=noted("ABC"))
    controller = Controller(known)
    for by in "BC":
        judge_now(controller, "A", LocalJudgement("symptom", by, 0.5, ("A/1",)))
    assert [(one.source, one.target) for one in controller.claims] == [("C", "A")]


@pytest.mark.parametrize(
    ("judgement", "says"),
    [
        (LocalJudgement("origin"), "needs the ids of facts"),
        (LocalJudgement("origin", None, 0.5, ("B/1",)), "no evidence B/1"),
        (LocalJudgement("symptom", "X", 0.5, ("A/1",)), "name X"),
        (LocalJudgement("symptom", None, 0.5, ("A/1",)), "`by` names another"),
        (LocalJudgement("healthy", "B"), "`by` names another"),
        (LocalJudgement("symptom", "A", 0.5, ("A/1",)), "`by` names another"),
        (LocalJudgement("healthy", claims=(Claim("A", "X"),)), "name X"),
        (LocalJudgement("healthy", claims=(Claim("A", "A"),)), "itself"),
        (LocalJudgement("healthy", claims=(Claim("A", "B", evidence=("Z/9",)),)), "Z/9"),
        (LocalJudgement("healthy", weight=1.5), "weight"),
        (LocalJudgement("guilty"), "no label guilty"),  # type: ignore[arg-type]
        (LocalJudgement("healthy", next=(NextEntity("B"),) * 3), "at most 2"),
        ({"label": "healthy"}, "is a dict, not a judgement"),
    ],
)
def test_a_judgement_that_breaks_a_rule_is_asked_for_again_and_then_is_defer(
    judgement: object, says: str
) -> None:
    """Lies about ids, unknown entities and malformed answers: told once, then not decided."""
    known = world("AB", [("A", "B")], alerts="A", evidence=noted("AB"))
    controller = Controller(known)
    packet = controller.next()
    assert packet is not None and packet.complaint is None
    assert controller.take(judgement) is None
    again = controller.next()
    assert again is not None and again.complaint is not None
    assert says in again.complaint
    line = controller.take(judgement)
    assert line is not None and line.belief.label == "defer"
    assert says in line.belief.why


def test_refused_answers_are_no_failed_calls() -> None:
    """However many are refused twice, the investigation goes on."""
    known = world("ABCD", alerts="ABCD", evidence=noted("ABCD"))
    found = investigate(known, Scripted(lambda packet: LocalJudgement("origin")))
    assert found.ended == "converged" and found.steps == 4


def test_a_better_second_answer_counts() -> None:
    """After a refusal the policy may mend its answer."""
    known = world("A", alerts="A", evidence=noted("A"))
    policy = Scripted(
        lambda packet: LocalJudgement(
            "origin", None, 0.5, cited(packet) if packet.complaint else ()
        )
    )
    assert investigate(known, policy).frontier == ("A",)


def test_three_failed_calls_in_a_row_stop_it() -> None:
    """A call that fails is `defer` with its reason, at once; three end the investigation."""
    known = world("ABCD", alerts="ABCD", evidence=noted("ABCD"))
    controller = Controller(known)
    for _ in range(3):
        assert controller.next() is not None
        line = controller.take(NoAnswer("the server is gone"))
        assert line is not None and "the server is gone" in line.belief.why
    assert controller.next() is None and controller.ended == "stopped"


def test_the_budget_ends_it() -> None:
    """So many steps and no more; the answer is that of the time."""
    known = world("ABC", alerts="ABC", evidence=noted("ABC"))
    found = investigate(known, Scripted(lambda packet: LocalJudgement("healthy")), Course(budget=2))
    assert (found.ended, found.steps, found.converged) == ("budget", 2, False)


def test_taking_what_was_not_asked_for_is_an_error() -> None:
    """Without a packet there is nothing to judge."""
    with pytest.raises(RequestError, match="no packet"):
        Controller(world("A")).take(LocalJudgement("healthy"))


@pytest.mark.parametrize("course", [{"budget": 0}, {"window": (2.0, 1.0)}])
def test_a_senseless_course_is_refused(course: dict[str, object]) -> None:
    """A budget of nothing, a window that ends before it begins."""
    with pytest.raises(SettingsError):
        Course(**course)  # type: ignore[arg-type]


@given(snapshots(), st.booleans())
def test_a_packet_has_evidence_of_its_entity_alone(known: Snapshot, messages: bool) -> None:
    """No packet holds a fact of another entity, nor the text of one."""
    owner = {
        fact.id: entity
        for entity in known.entities()
        for fact in known.evidence(entity, (float("-inf"), float("inf")))
    }
    rules, seen = ServiceRules(), list[Packet]()

    def answer(packet: Packet) -> LocalJudgement:
        seen.append(packet)
        return rules.judge(packet)

    found = investigate(known, Scripted(answer), Course(has_messages=messages))
    assert len(seen) == found.steps  # the rules break no rule
    for packet in seen:
        assert {owner[fact.id] for fact in packet.evidence} <= {packet.entity}
        others = [
            json.dumps(asdict(fact))
            for entity in known.entities()
            if entity != packet.entity
            for fact in known.evidence(entity, packet.window)
        ]
        told = json.dumps(asdict(packet))
        assert not any(fact in told for fact in others)


@given(snapshots())
def test_it_ends_within_its_bound(known: Snapshot) -> None:
    """Every investigation by rules converges in at most five visits an entity."""
    found = investigate(known, ServiceRules(), Course(budget=10_000))
    judged_entities = {line.entity for line in found.ledger}
    assert found.converged
    assert found.steps <= 5 * len(judged_entities)


@given(snapshots(), st.data())
def test_a_stop_after_any_step_changes_nothing(known: Snapshot, data: st.DataObject) -> None:
    """A checkpoint goes on to the same ledger, byte for byte."""
    rules, course = ServiceRules(), Course()
    whole = investigate(known, rules, course)
    stop = data.draw(st.integers(0, whole.steps))
    controller = Controller(known, course)
    for _ in range(stop):
        packet = controller.next()
        assert packet is not None
        controller.take(rules.judge(packet))
    later = resume(known, rules.name, course, checkpoint_bytes(controller, rules.name))
    assert later.ledger == controller.ledger
    while (packet := later.next()) is not None:
        later.take(rules.judge(packet))
    assert document(later, rules.name).to_json() == whole.to_json()


def test_a_checkpoint_keeps_refused_answers() -> None:
    """A stop between a refusal and the second answer is none: both were taken, or neither."""
    known = world("AB", [("A", "B")], alerts="AB", evidence=noted("AB"))
    controller = Controller(known)
    for answer in (LocalJudgement("origin"), NoAnswer("it hung up"), LocalJudgement("healthy")):
        controller.next()
        controller.take(answer)
    later = resume(known, "p", Course(), checkpoint_bytes(controller, "p"))
    assert later.ledger == controller.ledger and later.answers == controller.answers


@pytest.mark.parametrize("what", ["world", "policy", "course", "file"])
def test_a_checkpoint_of_something_else_is_refused(what: str) -> None:
    """The world, the policy and the course must be the same."""
    known = world("AB", alerts="A", evidence=noted("AB"))
    data = checkpoint_bytes(Controller(known), "rules")
    changed = world("AB", alerts="B", evidence=noted("AB"))
    with pytest.raises(SettingsError, match="is no checkpoint" if what == "file" else what):
        resume(
            changed if what == "world" else known,
            "model x" if what == "policy" else "rules",
            Course(has_messages=what != "course"),
            b"{}" if what == "file" else data,
        )


def test_a_message_is_a_belief() -> None:
    """It blames only as a symptom of the receiver."""
    assert Message("B", Belief("symptom", "A")).blames("A")
    assert not Message("B", Belief("symptom", "C")).blames("A")
    assert not Message("B", Belief("defer")).blames("A")


def test_unknown_alarms_are_told_and_start_nothing() -> None:
    """An alarm about an entity that nothing is known of is unexplained."""
    known = world("A", alerts=["nowhere"], evidence=[EvidenceLine("A", 0.0, "log")])
    found = investigate(known, ServiceRules())
    assert found.steps == 0
    assert found.unexplained == ("nowhere: alarm",)
