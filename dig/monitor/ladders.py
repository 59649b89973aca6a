"""Ladders: the subjects of healing, and when the next step about each is due.

A step follows when the finding is raised again, or by itself when the step before has brought no
progress for a while. That while is learned from the lengths of the team's own turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps

from dig.detectors.finding import Finding, texts_in
from dig.detectors.interventions import Create, Intervention, Reroute, action_of
from dig.detectors.ladder import LadderStep, Progress, Trouble
from dig.detectors.siblings import Shape, shape_of
from dig.detectors.turn_lengths import ENOUGH_OF_TEAM, TurnLengths
from dig.graph.graph import InteractionGraph
from dig.graph.records import Limits, micros
from dig.graph.state import ActivationState

from .messages import Output

PATIENCE = 2
"""The time that a step has to help, as a multiple of nine of ten turns; at least `dl_window_s`."""

LAST = 3
"""A step without any effect is over after so many times `patience`, whatever still runs."""

STEPS_BEFORE = 2
"""The number of steps left out where work began anew: the note, and giving waiting work away."""

ANY = ""
"""Stands for all problems, in a finding about the whole run."""


@dataclass
class Ladder:
    """A subject of healing in progress.

    Attributes:
        row: The logical time of its latest finding's record.
        finding: Its latest finding.
        about: The key that tells that one apart from others with the same subject.
        due: When it is looked at again, in microseconds; ``None``: when it is raised again.
        is_ripe: At that moment there was no progress: the next step is to be taken.
        us_step: When the latest step was taken, in microseconds.
        base: The number of steps that were taken about the work before it began anew.
        steps: The number of steps that were taken.
        helpers: The agents that its steps have turned to, in order.
        began_anew: Whether its latest step had the problem begin anew.
    """

    row: int
    finding: Finding
    about: str = ""
    due: int | None = None
    is_ripe: bool = False
    us_step: int = 0
    base: int = 0
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
        self._shapes: dict[str, Shape] = {}
        self._renewed: dict[str, dict[str, int]] = {}
        self._suspects: dict[str, set[tuple[int, int]]] = {}
        self._anew: set[str] = set()  # the problems that began anew
        self._looping: dict[str, int] = {}  # agent -> when it was said to go round
        self._us_effect = 0  # the moment of the latest effect of a turn

    def learn(
        self, ended: ActivationState, us: int, error: str | None, outputs: Mapping[str, Output]
    ) -> None:
        """Learn from a turn: the length, and the fate of the work in front of the agent.

        Args:
            ended: The activation that has just ended.
            us: The moment, in microseconds.
            error: The error's text, if the activation failed.
            outputs: The events that the activation generates, by id.
        """
        has_effect = False
        for event, output in outputs.items():
            self._shapes[event] = shape_of(output.payload)
            # A message to oneself is no effect of a step.
            has_effect = has_effect or output.final or not {ended.agent}.issuperset(output.to)
        # Neither is what is said again and again.
        looping = self._looping.get(ended.agent)
        if has_effect and (looping is None or us - looping >= self.patience):
            self._us_effect = us
        if ended.is_progress and not error:
            self._lengths.add(us - ended.us_start)
        if error is not None:
            self._troubles[ended.agent] = "failed"
        elif any(event.work for event in ended.inputs):  # a turn over notes alone proves nothing
            self._troubles.pop(ended.agent, None)
            if not ended.consumed:
                self._troubles[ended.agent] = "kept"
            elif not outputs:
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
            problem = finding.subject.get("event", ANY) if finding.subject else ANY
            ladder.base = STEPS_BEFORE if problem in self._anew else 0
        ladder.row, ladder.finding, ladder.about = row, finding, about
        return ladder

    def step(self, ladder: Ladder, now: int) -> LadderStep:
        """The latest step of a ladder, as of a moment."""
        helpers = tuple(ladder.helpers)
        return LadderStep(
            ladder.base + ladder.steps, helpers, self._troubles, self._stand_ins, self.patience,
            now, self._shapes, self._renewed, self._suspects,
        )  # fmt: skip

    def took(self, ladder: Ladder, interventions: Sequence[Intervention], t: int) -> None:
        """Remember the agents a step has turned to alone, and the agents they replace.

        Args:
            ladder: The ladder.
            interventions: The interventions of the step.
            t: The present logical time.
        """
        ladder.began_anew = any(
            action_of(intervention) == "restart" for intervention in interventions
        )
        if ladder.began_anew:
            self._anew |= {ANY, *(i.event for i in interventions if isinstance(i, Reroute))}
        for intervention in interventions:
            if isinstance(intervention, Create | Reroute) and len(intervention.to) == 1:
                ladder.helpers[intervention.to[0]] = None
                if isinstance(intervention, Reroute):
                    self._renewed.setdefault(intervention.event, {})[intervention.to[0]] = t
                    self._stand_ins.update(dict.fromkeys(intervention.without, intervention.to[0]))

    def discount(self, agents: Iterable[str], now: int) -> None:
        """Count outputs of agents that repeat themselves not as effects, for a while."""
        self._looping.update(dict.fromkeys(agents, now))
        self._us_effect = min(self._us_effect, now - 1)

    def judge(self, ladder: Ladder, progress: Progress, now: int) -> Progress:
        """Judge the progress of a step: without any effect of a turn, there is a last date."""
        is_idle = self._us_effect < max(ladder.us_step, now - self.patience)
        if progress == "none" or not is_idle:
            return progress
        return "none" if now - ladder.us_step >= LAST * self.patience else "under way"

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
        self._suspects.clear()  # each step looks again at the problems that are open

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the ladders of findings too old for an intervention."""
        findings, knows = {*graph.findings}, graph.knows
        self._keep(lambda ladder: ladder.row in findings)
        self._shapes = {event: shape for event, shape in self._shapes.items() if knows(event)}
        self._renewed = {event: asked for event, asked in self._renewed.items() if knows(event)}
        self._anew = {problem for problem in self._anew if problem == ANY or knows(problem)}

    def _keep(self, is_kept: Callable[[Ladder], bool]) -> None:
        self._open = {name: ladder for name, ladder in self._open.items() if is_kept(ladder)}
        self.timed[:] = [ladder for ladder in self.timed if is_kept(ladder)]


def _named_ids(finding: Finding) -> Iterator[str]:
    yield from texts_in(finding.subject)
    yield from texts_in(finding.evidence)
