"""The rules by which a deviation may bring about another, as data: what, along what, and how.

A rule admits a step from a thing in one of some states to another in one of some states, if a
relation holds between the two in the faulted run (`dig.faults.truth.relations`).
"""

from __future__ import annotations

from dataclasses import dataclass

from dig.diagnosis.causes import Node


@dataclass(frozen=True, slots=True)
class RelationRule:
    """One kind of step.

    Attributes:
        id: Its name.
        source: The type of the cause; source_states: its states.
        relation: What must hold between the two, a name in `RELATIONS`.
        target: The type of the effect; target_states: its states.
        mechanism: How the one brings about the other.
    """

    id: str
    source: str
    source_states: frozenset[str]
    relation: str
    target: str
    target_states: frozenset[str]
    mechanism: str

    def begins(self, node: Node) -> bool:
        """Whether a node is of its source's type, and in one of the states."""
        return node.type == self.source and node.state in self.source_states

    def ends(self, node: Node) -> bool:
        """Whether a node is of its target's type, and in one of the states."""
        return node.type == self.target and node.state in self.target_states


def _rule(name: str, source: str, relation: str, target: str, mechanism: str) -> RelationRule:
    """A rule; source and target are written `type: state state`."""
    (of, states), (to, others) = source.split(": "), target.split(": ")
    return RelationRule(
        name, of, frozenset(states.split()), relation, to, frozenset(others.split()), mechanism
    )


RULES: tuple[RelationRule, ...] = (
    # From the fault to what it acts on.
    _rule(
        "I1", "agent: injected", "acted in",
        "activation: failed slow idle losing rerouting discarding hasty",
        "the fault changes what its target decides, or how long that takes",
    ),
    _rule(
        "I2", "agent: injected", "acted on what it generated",
        "event: lost delayed altered miscounted misdirected shared duplicated premature",
        "the fault changes a message that its target sends, or the answer",
    ),
    _rule("I3", "agent: injected", "is", "agent: gone", "the fault has its target leave"),
    # From who acts to what lies before it, and what it makes.
    _rule(
        "G1", "agent: gone", "was to have", "event: lost unread overdue misdirected",
        "what lay before an agent that leaves, or was meant for it, is gone or has no reader",
    ),
    _rule(
        "G2", "agent: gone", "was to be told by", "agent: starved",
        "whoever worked for an agent that leaves keeps solutions that nobody puts together",
    ),
    _rule(
        "A1", "activation: failed slow idle", "kept waiting", "event: unread overdue",
        "what lies before an agent that is busy, fails or waits is not taken up",
    ),
    _rule(
        "A2", "activation: slow", "generated", "event: late",
        "what a slow activation makes is there later",
    ),
    _rule(
        "A3", "activation: hasty", "generated", "event: premature",
        "an answer that is given too early is not complete",
    ),
    _rule(
        "A4", "activation: rerouting", "passed on", "event: rerouted overdue unread",
        "what is passed on has to be taken up by somebody else",
    ),
    _rule(
        "A5", "activation: discarding", "threw away", "event: lost",
        "what is thrown away is lost, unless somebody else has it",
    ),
    _rule(
        "A6", "activation: losing", "consumed the last of", "part: missing late",
        "work that is consumed without an outcome is not solved by anybody",
    ),
    _rule(
        "A7", "activation: losing", "lost what was to be told to", "agent: starved",
        "who puts solutions together is never told of work that comes to nothing",
    ),
    # From event to event.
    _rule(
        "E1", "event: late delayed overdue rerouted misdirected", "led to", "event: late",
        "what is made of something that came later is later itself",
    ),
    _rule(
        "E2", "event: altered miscounted", "led to", "event: altered miscounted",
        "what is made of wrong data is wrong",
    ),
    _rule(
        "E3", "event: altered shared duplicated", "led to", "event: duplicated",
        "work that is there twice is done twice",
    ),
    _rule(
        "E4", "event: delayed misdirected rerouted late", "is",
        "event: overdue rerouted unread lost",
        "what goes astray, or comes late, is passed on, waits or is dropped on its way",
    ),
    _rule(
        "E5", "event: altered duplicated", "is", "event: lost overdue unread rerouted",
        "what cannot be read, or is not needed, is thrown away, left or passed on",
    ),
    _rule(
        "E6", "event: altered duplicated misdirected rerouted", "was let go by",
        "activation: discarding rerouting",
        "who is given what it cannot read, or what is not for it, does not work on it",
    ),
    # From event to part.
    _rule(
        "P1", "event: lost unread", "is the undone work on", "part: missing",
        "work that nobody does is not solved, and a solution that nobody reads is not used",
    ),
    _rule(
        "P2", "event: lost late delayed overdue rerouted misdirected", "is about", "part: late",
        "work that is done later is solved later",
    ),
    _rule(
        "P3", "event: premature", "leaves out", "part: missing",
        "an answer does not have what was not solved by then",
    ),
    _rule(
        "P4", "event: lost unread", "was to be told to", "agent: starved",
        "who puts solutions together waits for what is lost or not taken up",
    ),
    # To what the run comes to.
    _rule(
        "S1", "part: missing", "is lacked by", "agent: starved",
        "who puts solutions together waits for those that do not come",
    ),
    _rule(
        "S2", "part: missing", "is of the same run", "outcome: missing timeout incomplete wrong",
        "without all parts there is no answer, or not a whole one",
    ),
    _rule(
        "S3", "part: late", "is of the same run", "outcome: timeout",
        "time is up before all parts are solved",
    ),
    _rule(
        "S4", "agent: starved", "is of the same run", "outcome: missing timeout",
        "who puts solutions together and waits does not answer",
    ),
    _rule(
        "S5", "event: unread overdue", "was there in the end", "outcome: missing timeout",
        "the run ends while work lies about that would lead to an answer",
    ),
    _rule(
        "S6", "event: altered miscounted premature", "is behind the answer",
        "outcome: wrong incomplete",
        "an answer that is made of wrong or too few solutions is wrong",
    ),
    _rule(
        "S7", "activation: slow", "was going on in the end", "outcome: missing timeout",
        "the run ends while somebody is still at it",
    ),
    # To what detectors raise.
    _rule(
        "F1", "event: lost", "is the subject of OE", "finding: raised",
        "work that nobody can reach is orphaned",
    ),
    _rule(
        "F2", "event: lost unread overdue delayed late rerouted misdirected shared duplicated",
        "is named by ET", "finding: raised",
        "an answer is submitted while this work is not done",
    ),
    _rule(
        "F3", "event: premature altered", "is behind the subject of ET", "finding: raised",
        "an answer that is not complete, or believes that it is, comes before the work is done",
    ),
    _rule(
        "F4", "event: shared duplicated", "is about what ET names", "finding: raised",
        "the answer is made of one of two solutions while work on the other goes on",
    ),
    _rule(
        "F5", "event: unread overdue", "is named by DL", "finding: raised",
        "work lies before agents, and nobody takes it up",
    ),
    _rule(
        "F6", "agent: starved", "waits in DL", "finding: raised",
        "an agent waits for what does not come",
    ),
    _rule(
        "F7", "part: missing", "is missed by MC", "finding: raised",
        "all work is gone before there is an answer",
    ),
)  # fmt: skip
