"""A judge without a language model: sees what its recall allows, and errs as its precision says.

It sees the log that a model would see, and nothing else. It reads the log with the detectors of
`dig.detectors`, as a perfect judge would, then misses some failures and makes others up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dig.detectors import standard, standard_healers
from dig.detectors.finding import Finding
from dig.detectors.interventions import Create, Inject, Intervention, Reroute
from dig.detectors.judged import MOST_CHARACTERS, MOST_REPORTS
from dig.detectors.patterns import NAMES
from dig.detectors.watch import Watch
from dig.graph.graph import InteractionGraph
from dig.graph.records import micros
from dig.runtime.agents import Plan, View
from dig.runtime.keyed_random import KeyedRandom
from dig.runtime.reviewer import ReviewMaterial

from .judge import JudgeReport, Judging, Remedy, Verdict, reading_of

_DONE_WRONG = ("inject", "reroute", "create")


@dataclass(frozen=True, slots=True)
class SimulatedJudge:
    """A judge with stated recall, precision and latency: a pure function of (seed, view).

    Attributes:
        key: The key of the run's random numbers.
        judging: Its recall, precision and latency.
    """

    key: int | str
    judging: Judging = field(default_factory=Judging)

    def plan(self, view: View) -> Plan:
        """Read the log, and report."""
        how, draws = self.judging, KeyedRandom(self.key, view.agent, view.turn)
        graph, new = look(reading_of(view), micros(view.time_s))
        reports = list(self._reports(graph, new, draws))[:MOST_REPORTS]
        think_s = draws.lognormal(how.latency_s, how.spread, "think")
        return Plan(think_s, Verdict(reports=reports).decision())

    def _reports(
        self, graph: InteractionGraph, new: Iterable[Finding], draws: KeyedRandom
    ) -> Iterator[JudgeReport]:
        """Reports of the new failures that it sees, each followed by wrong ones that it draws."""
        wrong = 0
        for i, finding in enumerate(new):
            if not draws.chance(self.judging.recall, "see", i):
                continue
            yield _true(graph, finding)
            while wrong < MOST_REPORTS and draws.chance(1 - self.judging.precision, "err", wrong):
                yield _false(graph, draws, wrong)
                wrong += 1
            wrong += 1


def look(reading: ReviewMaterial, now_us: int) -> tuple[InteractionGraph, list[Finding]]:
    """The graph of a log, and all failures since the last reading: what a perfect judge reports."""
    watch, found = Watch(standard()), list[Finding]()
    for record in reading.log:
        found += watch.feed(record)
    found += watch.advance(now_us)
    new = [f for f in found if f.t >= reading.before or f.us > reading.since_us]
    return watch.graph, new


def _true(graph: InteractionGraph, finding: Finding) -> JudgeReport:
    subject = next((v for v in finding.subject.values() if isinstance(v, str)), "")
    healer = standard_healers()[finding.pattern]
    remedy = next((_remedy(what) for what in healer.heal(graph, finding)), None)
    return JudgeReport(
        pattern=finding.pattern,
        subject=subject,
        reason="the log shows it",
        action=remedy or _note_on_outputs(graph, finding),
    )


def _remedy(what: Intervention) -> Remedy:
    """An intervention of healing, as a judge asks for it."""
    match what:
        case Inject():
            return Remedy(do="inject", event=what.event, note=what.note[:MOST_CHARACTERS])
        case Reroute():
            to = list(what.to)
            return Remedy(do="reroute", event=what.event, to=to, note=what.note[:MOST_CHARACTERS])
        case Create():
            return Remedy(do="create", to=list(what.to), note=what.note[:MOST_CHARACTERS])
    return Remedy(do="none")


def _note_on_outputs(graph: InteractionGraph, finding: Finding) -> Remedy:
    """A note on an output of the finding's activation that some agent still has."""
    v = graph.history.activation(str(finding.subject.get("activation")))
    for n in graph.history.outputs(v) if v is not None else ():
        event = graph.event(graph.history.event_ids[n])
        if event.copies:
            note = f"This may be wrong ({finding.pattern}): look at what it was made from."
            return Remedy(do="inject", event=event.id, note=note)
    return Remedy(do="none")


def _false(graph: InteractionGraph, draws: KeyedRandom, index: int) -> JudgeReport:
    """A wrong report: a random pattern, about random work, with a random action."""
    work = [event.id for event in graph.open_events()]
    agents = list(graph.agents)
    event = draws.choice(work, "wrong event", index) if work else ""
    do = draws.choice(_DONE_WRONG, "wrong action", index) if work else "create"
    to = [] if do == "inject" else [draws.choice(agents, "wrong agent", index)]
    remedy = Remedy(
        do=do,  # type: ignore[arg-type]  # a choice of literals
        event="" if do == "create" else event,
        to=to,
        note="Something seems to be wrong with this work: see to it now.",
    )
    pattern = draws.choice(NAMES, "wrong pattern", index)
    return JudgeReport(pattern=pattern, subject=event, reason="it looks so", action=remedy)
