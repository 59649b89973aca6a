"""The rules by which a deviation may cause another, as data: source, relation, target.

A rule admits a step from a thing in one of some states to another in one of some states, if a
relation holds between the two in the faulted run (`dig.lab.truth.relations`). How the one brings
about the other is in the table of docs/lab/faults-verification.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from dig.diagnosis.causes import Node

from . import relations
from .relations import Relation


@dataclass(frozen=True, slots=True)
class RelationRule:
    """A kind of step.

    Attributes:
        id: Its name.
        source: The type of the cause; source_states: its states.
        relation: The relation that must hold between the two.
        target: The type of the effect; target_states: its states.
    """

    id: str
    source: str
    source_states: frozenset[str]
    relation: Relation
    target: str
    target_states: frozenset[str]

    def begins(self, node: Node) -> bool:
        """Whether a node has the type of the source and a state of the source."""
        return node.type == self.source and node.state in self.source_states

    def ends(self, node: Node) -> bool:
        """Whether a node has the type of the target and a state of the target."""
        return node.type == self.target and node.state in self.target_states


def _rule(name: str, source: str, relation: Relation, target: str) -> RelationRule:
    """A rule; source and target are written `type: state state`."""
    (of, states), (to, targets) = source.split(": "), target.split(": ")
    return RelationRule(
        name, of, frozenset(states.split()), relation, to, frozenset(targets.split())
    )


RULES: tuple[RelationRule, ...] = (
    # From the fault to what it acts on.
    _rule(
        "I1",
        "agent: injected",
        relations.acted_in,
        "activation: failed slow idle losing rerouting discarding hasty",
    ),
    _rule(
        "I2",
        "agent: injected",
        relations.acted_on_what_it_generated,
        "event: lost delayed altered miscounted misdirected shared duplicated premature",
    ),
    _rule("I3", "agent: injected", relations.is_, "agent: gone"),
    # From who acts to what lies before it, and what it makes.
    _rule("G1", "agent: gone", relations.was_to_have, "event: lost unread overdue misdirected"),
    _rule("G2", "agent: gone", relations.was_to_be_told_by, "agent: starved"),
    _rule("A1", "activation: failed slow idle", relations.kept_waiting, "event: unread overdue"),
    _rule("A2", "activation: slow", relations.generated, "event: late"),
    _rule("A3", "activation: hasty", relations.generated, "event: premature"),
    _rule("A4", "activation: rerouting", relations.passed_on, "event: rerouted overdue unread"),
    _rule("A5", "activation: discarding", relations.threw_away, "event: lost"),
    _rule("A6", "activation: losing", relations.consumed_the_last_of, "part: missing late"),
    _rule("A7", "activation: losing", relations.lost_what_was_to_be_told_to, "agent: starved"),
    # From event to event.
    _rule(
        "E1", "event: late delayed overdue rerouted misdirected", relations.led_to, "event: late"
    ),
    _rule("E2", "event: altered miscounted", relations.led_to, "event: altered miscounted"),
    _rule("E3", "event: altered shared duplicated", relations.led_to, "event: duplicated"),
    _rule(
        "E4",
        "event: delayed misdirected rerouted late",
        relations.is_,
        "event: overdue rerouted unread lost",
    ),
    _rule("E5", "event: altered duplicated", relations.is_, "event: lost overdue unread rerouted"),
    _rule(
        "E6",
        "event: altered duplicated misdirected rerouted",
        relations.was_dropped_by,
        "activation: discarding rerouting",
    ),
    _rule("E7", "event: duplicated", relations.led_to, "event: miscounted"),
    # From event to part.
    _rule("P1", "event: lost unread", relations.is_the_undone_work_on, "part: missing"),
    _rule(
        "P2",
        "event: lost late delayed overdue rerouted misdirected",
        relations.is_about,
        "part: late",
    ),
    _rule("P3", "event: premature", relations.leaves_out, "part: missing"),
    _rule("P4", "event: lost unread", relations.was_to_be_told_to, "agent: starved"),
    # To what the run comes to.
    _rule("S1", "part: missing", relations.is_lacked_by, "agent: starved"),
    _rule(
        "S2",
        "part: missing",
        relations.is_of_the_same_run,
        "outcome: missing timeout incomplete wrong",
    ),
    _rule("S3", "part: late", relations.is_of_the_same_run, "outcome: timeout"),
    _rule("S4", "agent: starved", relations.is_of_the_same_run, "outcome: missing timeout"),
    _rule(
        "S5", "event: unread overdue", relations.was_there_in_the_end, "outcome: missing timeout"
    ),
    _rule(
        "S6",
        "event: altered miscounted premature",
        relations.is_behind_the_answer,
        "outcome: wrong incomplete",
    ),
    _rule("S7", "activation: slow", relations.was_going_on_in_the_end, "outcome: missing timeout"),
    # To what detectors raise.
    _rule("F1", "event: lost", relations.is_the_subject_of_oe, "finding: raised"),
    _rule(
        "F2",
        "event: lost unread overdue delayed late rerouted misdirected shared duplicated",
        relations.is_named_by_et,
        "finding: raised",
    ),
    _rule(
        "F3", "event: premature altered", relations.is_behind_the_subject_of_et, "finding: raised"
    ),
    _rule("F4", "event: shared duplicated", relations.is_about_what_et_names, "finding: raised"),
    _rule("F5", "event: unread overdue", relations.is_named_by_dl, "finding: raised"),
    _rule("F6", "agent: starved", relations.waits_in_dl, "finding: raised"),
    _rule("F7", "part: missing", relations.is_missed_by_mc, "finding: raised"),
)
