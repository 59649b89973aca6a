"""The words of a diagnosis: frozen, and plain JSON as `dataclasses.asdict` gives them.

    records -> Failure -> Candidate -> Hypothesis -> verdict

A failure says that a run failed, a candidate which agent may be at fault and where, a hypothesis
what would have helped, a verdict whether experiments confirm it. Each names the records or steps
that show what it claims. Milestones are those of `dig.tasks.milestones`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dig.errors import SettingsError
from dig.show.document import FailureKind, Status
from dig.tasks.milestones import Evidence
from dig.traces.replay.kinds import MOST_INTERVENTIONS


@dataclass(frozen=True, slots=True)
class Failure:
    """Something by which a run is not good.

    Attributes:
        kind: `no-answer`, `bad-answer`, `finding`, `timeout` or `complaint`.
        about: An agent, an event, a pattern, or `outcome`.
        evidence: The records that show it.
    """

    kind: FailureKind
    about: str
    evidence: tuple[Evidence, ...]

    def __post_init__(self) -> None:
        """Check that there is evidence.

        Raises:
            SettingsError: There is none.
        """
        _shown(f"the failure {self.kind!r} of {self.about!r}", self.evidence)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The activations of a run that try to solve a problem by one plan.

    Attributes:
        id: Its name: `p1`, `p2`, ...
        plan: The activation that made the plan; ``None``, if no activation took the problem on.
        activations: Its activations, in the order of their start.
        accepted: The accepted final event that one of them generated, if there is one.
        ended: The end of the attempt: `accepted`, `bounced`, `no answer`, or `cut off` with the
            trace.
    """

    id: str
    plan: str | None
    activations: tuple[str, ...]
    accepted: str | None
    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A place that may be at fault.

    Attributes:
        id: Its name: `c1`, `c2`, ...
        share: Its weight by the sum of the weights of all candidates; no probability.
        evidence: The records or steps that speak for it.
        by: The suspects that named it, or `person`.
        mechanism: The mechanism of the failure, in a word; ``None``: unknown.
        status: `origin` (nothing before it explains it), `propagated` (another candidate explains
            it), `recovered` (it was put right later) or `open` (not decided).
        step: The step of the source; ``None``, if the place is no activation and no message.
        t: The first record of the place; ``None`` in a conversation.
        until: Its last record; ``None``: the end of the run.
        activation, event: The activation or the message that the place is, if it is one.
        subtask: The subtask of a hierarchical graph that it belongs to.
        is_certain: Whether what speaks for it can hardly be the doing of another agent.
    """

    id: str
    agent: str
    share: float
    evidence: tuple[Evidence, ...]
    by: tuple[str, ...]
    mechanism: str | None = None
    status: Status = "open"
    step: int | None = None
    t: int | None = None
    until: int | None = None
    activation: str | None = None
    event: str | None = None
    subtask: str | None = None
    is_certain: bool = False

    def __post_init__(self) -> None:
        """Check that it has evidence, and that its share is one.

        Raises:
            SettingsError: The candidate has none, or the share is not from 0 to 1.
        """
        _shown(f"the candidate {self.id!r}", self.evidence)
        if not 0 <= self.share <= 1:
            raise SettingsError(
                f"the share of the candidate {self.id!r} must be from 0 to 1, got {self.share!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A claim that can be tried: had this been otherwise at this place, the run would be good.

    Attributes:
        id: Its name: `h1`, `h2`, ...
        candidate: The candidate whose place it is about.
        interventions: The changes of the recorded run, three at most, each with `kind` and `at`.
        attempt: The attempt that it is about, if that is known.
        expects: The acts that must happen in the fork for the change to count as carried out.
    """

    id: str
    candidate: str
    interventions: tuple[Mapping[str, Any], ...]
    attempt: str | None = None
    expects: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check the number of interventions.

        Raises:
            SettingsError: There is none, or there are more than `MOST_INTERVENTIONS`.
        """
        if not 1 <= len(self.interventions) <= MOST_INTERVENTIONS:
            raise SettingsError(
                f"the hypothesis {self.id!r} must have 1 to {MOST_INTERVENTIONS} interventions, "
                f"got {len(self.interventions)}"
            )


def _shown(what: str, evidence: tuple[Evidence, ...]) -> None:
    if not evidence:
        raise SettingsError(f"{what} needs evidence: a record or a step, with a sentence")
