"""A judge without a language model, with a given recall and precision.

It sees the log that a model would see, and nothing else. It reads the log by the rules of
`dig.lab.judge.log_reader`, which share nothing with the detectors but the patterns' names; then
it misses some of what the rules show, and makes other failures up. Its remedies are simple, too: a
lost event goes to its maker, or to an agent that has not discarded it; of everything else, a note
tells the agents concerned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from dig.detectors.patterns import NAMES
from dig.graph.records import micros
from dig.runtime.agents import Plan, View
from dig.runtime.keyed_random import KeyedRandom, repeat_key
from dig.tasks.run.judging import Judging

from .judge import JudgeReport, Remedy, Verdict, reading_of
from .judged import MOST_CHARACTERS, MOST_REPORTS
from .log_reader import LogReader, Suspicion
from .reviewer import ReviewMaterial

_DONE_WRONG = ("inject", "reroute", "create")

_NOTES = {
    "ET": "The answer {first} came although nobody had consumed {rest}: see whether it lacks them.",
    "MC": "Nothing happens any more, and there is no answer: submit what there is.",
    "OE": "No agent has {first} any more: see to it.",
    "DL": "Nothing happens any more, and nobody has consumed {all}: see to what you have of it.",
    "ER": "{first} was passed on again and again: do it, or say why it cannot be done.",
    "RSP": "{first} was consumed by more than one of you: take what came of it into account once.",
}


@dataclass(frozen=True, slots=True)
class SimulatedJudge:
    """A judge with stated recall, precision and latency: a pure function of (seed, view).

    Attributes:
        key: The key of the run's random numbers.
        judging: Its recall, precision and latency.
    """

    key: int | str
    judging: Judging = field(default_factory=Judging)

    def reseeded(self, repeat: int) -> SimulatedJudge:
        """The same judge, with the random numbers of a repeat."""
        return replace(self, key=repeat_key(self.key, (repeat,)))

    def plan(self, view: View) -> Plan:
        """Read the log, and report."""
        settings, draws = self.judging, KeyedRandom(self.key, view.agent, view.turn)
        reader, new = look(reading_of(view), micros(view.time_s))
        reports = list(self._reports(reader, new, draws))[:MOST_REPORTS]
        think_s = draws.lognormal(settings.latency_s, settings.spread, "think")
        return Plan(think_s, Verdict(reports=reports).decision())

    def _reports(
        self, reader: LogReader, new: Iterable[Suspicion], draws: KeyedRandom
    ) -> Iterator[JudgeReport]:
        """Report new failures by chance of the recall, and add wrong reports."""
        wrong = 0
        for i, suspicion in enumerate(new):
            if not draws.chance(self.judging.recall, "see", i):
                continue
            yield _true(reader, suspicion)
            # So many wrong reports a true one as make the stated precision on average.
            while wrong < MOST_REPORTS and draws.chance(1 - self.judging.precision, "err", wrong):
                yield _false(reader, draws, wrong)
                wrong += 1
            wrong += 1


def look(reading: ReviewMaterial, now_us: int) -> tuple[LogReader, list[Suspicion]]:
    """Read a log, and list the failures that are new since the last reading."""
    reader = LogReader(reading.log, now_us)
    new = [
        suspicion for suspicion in reader.suspicions
        # A silence has the number of an old record, so its moment tells that it is new.
        if suspicion.t >= reading.before or suspicion.us > reading.since_us
    ]  # fmt: skip
    return reader, new


def _true(reader: LogReader, suspicion: Suspicion) -> JudgeReport:
    subject, remedy = next(iter(suspicion.events), ""), _remedy(reader, suspicion)
    return JudgeReport(
        pattern=suspicion.pattern, subject=subject, reason="the log shows it", action=remedy
    )


def _remedy(reader: LogReader, suspicion: Suspicion) -> Remedy:
    """Send a lost event to a present agent, or a note to the agents concerned."""
    first, further = next(iter(suspicion.events), ""), ", ".join(suspicion.events[1:])
    text = _NOTES[suspicion.pattern].format(
        first=first, rest=further, all=", ".join(suspicion.events)
    )
    note, team = text[:MOST_CHARACTERS], list(reader.team)
    if suspicion.pattern == "OE":
        # An agent that discarded the event would do so again.
        members = [name for name in team if name not in reader.work[first].discarded_by]
        to = [*(name for name in suspicion.agents if name in members), *members][:1]
        return Remedy(do="reroute", event=first, to=to, note=note) if to else Remedy(do="none")
    to = [name for name in suspicion.agents if name in reader.team] or team
    return Remedy(do="create", to=to, note=note) if to else Remedy(do="none")


def _false(reader: LogReader, draws: KeyedRandom, index: int) -> JudgeReport:
    """A wrong report: a random pattern, about random work, with a random action."""
    work, agents = list(reader.unread()), list(reader.team)
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
