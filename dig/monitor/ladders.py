"""Ladders: the subjects of healing, and when the next step about each is due.

A step follows when the finding is raised again, or by itself when the step before has brought no
progress for a while. That while is learned from the lengths of the team's own turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from json import dumps

from dig.detectors.finding import Finding, texts_in
from dig.detectors.interventions import Create, Intervention, Reroute, action_of
from dig.detectors.ladder import LadderStep, Progress, Trouble
from dig.detectors.turn_lengths import ENOUGH_OF_TEAM, TurnLengths
from dig.graph.graph import InteractionGraph
from dig.graph.records import Limits, micros
from dig.graph.state import ActivationState

PATIENCE = 2
"""The time that a step has to help, as a multiple of nine of ten turns; at least `dl_window_s`."""


@dataclass
class Ladder:
    """A subject of healing in progress.

    Attributes:
        row: The logical time of its latest finding's record.
        finding: Its latest finding.
        about: The key that tells that one apart from others with the same subject.
        due: When it is looked at again, in microseconds; ``None``: when it is raised again.
        is_ripe: At that moment there was no progress: the next step is to be taken.
        steps: The number of steps that were taken.
        helpers: The agents that its steps have turned to, in order.
        began_anew: Whether its latest step had the problem begin anew.
    """

    row: int
    finding: Finding
    about: str = ""
    due: int | None = None
    is_ripe: bool = False
    steps: int = 0
    helpers: dict[str, None] = field(default_factory=dict)
    began_anew: bool = False


class Ladders:
    """The ladders of one run, and statistics about the team.

    Attributes:
        timed: Those that have a moment at which they are looked at.
    """

    def __init__(self, limits: Callable[[], Limits]) -> None:
        """Begin without a ladder.

        Args:
            limits: The thresholds of the run, as soon as it has begun.
        """
        self._open: dict[str, Ladder] = {}  # those that are not over, by subject
        self.timed: list[Ladder] = []
        self._limits = limits
        self._lengths = TurnLengths()
        self._troubles: dict[str, Trouble] = {}  # by agent
        self._stand_ins: dict[str, str] = {}

    def learn(self, ended: ActivationState, us: int, error: str | None, output_count: int) -> None:
        """Learn from a turn: the length, and the fate of the work in front of the agent.

        Args:
            ended: The activation that has just ended.
            us: The moment, in microseconds.
            error: The error's text, if the activation failed.
            output_count: The number of events that the activation generates.
        """
        if ended.is_progress and not error:
            self._lengths.add(us - ended.us_start)
        if error is not None:
            self._troubles[ended.agent] = "failed"
        elif any(event.work for event in ended.inputs):  # a turn over notes alone proves nothing
            self._troubles.pop(ended.agent, None)
            if not ended.consumed:
                self._troubles[ended.agent] = "kept"
            elif not output_count:
                self._troubles[ended.agent] = "swallowed"

    @property
    def patience(self) -> int:
        """The time for a step to help, in microseconds."""
        least = micros(self._limits().dl_window_s)
        if len(self._lengths) < ENOUGH_OF_TEAM:  # too few turns to say how long one takes
            return least
        return max(least, PATIENCE * self._lengths.percentile)

    def open_ladder(self, row: int, finding: Finding, about: str) -> Ladder:
        """Open or continue the ladder of a raised finding.

        Args:
            row: The logical time of its record.
            finding: The finding.
            about: The key that tells findings with equal subjects apart. Where the problem began
                anew, so does the ladder with what is about something else.
        """
        # As text: the subject of a user's detector may hold lists, which no dict takes as a key.
        subject = dumps([finding.pattern, finding.subject], sort_keys=True, default=repr)
        ladder = self._open.get(subject)
        if ladder is None or (ladder.began_anew and ladder.about != about):
            self.timed[:] = [other for other in self.timed if other is not ladder]
            ladder = self._open[subject] = Ladder(row, finding)
        ladder.row, ladder.finding, ladder.about = row, finding, about
        return ladder

    def step(self, ladder: Ladder, now: int) -> LadderStep:
        """The latest step of a ladder, as of a moment."""
        helpers = tuple(ladder.helpers)
        return LadderStep(
            ladder.steps, helpers, self._troubles, self._stand_ins, self.patience, now
        )

    def took(self, ladder: Ladder, interventions: Sequence[Intervention]) -> None:
        """Remember the agents a step has turned to alone, and the agents they replace."""
        ladder.began_anew = any(
            action_of(intervention) == "restart" for intervention in interventions
        )
        for intervention in interventions:
            if isinstance(intervention, Create | Reroute) and len(intervention.to) == 1:
                ladder.helpers[intervention.to[0]] = None
                if isinstance(intervention, Reroute):
                    self._stand_ins.update(dict.fromkeys(intervention.without, intervention.to[0]))

    def wait(self, ladder: Ladder, progress: Progress, now: int) -> None:
        """Plan the next look at a subject, unless the detector does so, or it is over."""
        self.timed[:] = [other for other in self.timed if other is not ladder]
        ladder.due, ladder.is_ripe = None, False
        if progress in ("under way", "none"):
            ladder.due = now + self.patience
            self.timed.append(ladder)
        elif progress == "made":
            self._open = {name: other for name, other in self._open.items() if other is not ladder}

    def poll(self, now: int, progress: Callable[[Ladder, int], Progress]) -> None:
        """Look at the subjects due by now, each as of its own moment.

        Nothing has changed between these moments and now. So it makes no difference whether a host
        calls at each of them, or only now, as a replay does.

        Args:
            now: The moment of the call, in microseconds.
            progress: Says what the latest step has brought about, as it stood at a moment.
        """
        for ladder in (*self.timed,):
            while not ladder.is_ripe and ladder.due is not None and ladder.due <= now:
                state = progress(ladder, ladder.due)
                if state == "none":
                    ladder.is_ripe = True
                else:
                    self.wait(ladder, state, ladder.due)

    @property
    def ripe(self) -> list[Ladder]:
        """The ladders with a step to be taken now, in order."""
        ripe = [ladder for ladder in self.timed if ladder.is_ripe]
        return sorted(ripe, key=lambda ladder: (ladder.due or 0, ladder.row))

    def deadline(self) -> int | None:
        """When a subject is to be looked at next, in microseconds."""
        return min([ladder.due for ladder in self.timed if ladder.due is not None], default=None)

    def awaited_ids(self, graph: InteractionGraph) -> set[str]:
        """The events and activations a further step may name.

        The events only of those that have a moment: a session would wait for the others for ever.
        """
        is_activation = graph.history.activation
        named = {text for ladder in self._open.values() for text in _named_ids(ladder.finding)}
        soon = [text for ladder in self.timed for text in _named_ids(ladder.finding)]
        return {text for text in named if is_activation(text) is not None}.union(soon)

    def end_answered(self, graph: InteractionGraph) -> None:
        """Forget the ladders about answered problems alone."""

        def is_open(ladder: Ladder) -> bool:
            sources = graph.sources_about(ladder.finding.subject)
            return not sources or bool(graph.unanswered_sources(sources, 1))

        self._keep(is_open)

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the ladders of findings too old for an intervention."""
        findings = {*graph.findings}
        self._keep(lambda ladder: ladder.row in findings)

    def _keep(self, is_kept: Callable[[Ladder], bool]) -> None:
        self._open = {name: ladder for name, ladder in self._open.items() if is_kept(ladder)}
        self.timed[:] = [ladder for ladder in self.timed if is_kept(ladder)]


def _named_ids(finding: Finding) -> Iterator[str]:
    yield from texts_in(finding.subject)
    yield from texts_in(finding.evidence)
