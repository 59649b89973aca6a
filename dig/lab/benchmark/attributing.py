"""Attributors: functions of a `Case`, for the causes of the run's failure.

    def mine(case: Case) -> Answer: ...

A case has the records of a trace and what follows from them, and nothing of the labels. An
attributor answers with an `Answer`, or with the candidates of `dig.diagnosis`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from dig._util.text import one_line
from dig.detectors import standard
from dig.diagnosis.attempts import find_attempts
from dig.diagnosis.attribution.lineage import chain
from dig.diagnosis.case import Case
from dig.diagnosis.causes import OUTCOME
from dig.diagnosis.failures import failures
from dig.diagnosis.goal import Finished, Goal
from dig.diagnosis.suspects import USUAL_SUSPECTS, Together, load_suspects
from dig.errors import DigError, SettingsError
from dig.graph.records import Finish, Record, Run
from dig.show.document import Candidate
from dig.tasks.user_objects import load
from dig.traces.run import RecordedRun

from . import baselines, rules, surface
from .answer_file import Answer, Answers, CausalStep, RootCause
from .instances import FaultSet, Instance
from .set_reading import step_at

Attributor = Callable[[Case], Answer | Iterable[Candidate]]
"""Names the causes of a run's failure; none, if nothing went wrong."""


def by_suspects(*names: str) -> Callable[[FaultSet], Attributor]:
    """Make attributors of suspects of `dig.diagnosis`; runs without a fault give the usual habits.

    Args:
        *names: The suspects, whose candidates are merged.
    """

    def make(fault_set: FaultSet) -> Attributor:
        peers, suspects = baselines.Peers(fault_set), Together(tuple(map(load_suspects, names)))
        # A trace alone does not tell what is usual: the runs without a fault do.
        return lambda case: suspects.candidates(replace(case, usual=peers.usual(case.run.records)))

    return make


ATTRIBUTORS: Mapping[str, Callable[[FaultSet], Attributor]] = MappingProxyType(
    {
        "random": baselines.random_agent,
        "earliest_deviation": baselines.earliest_deviation,
        "rules": partial(baselines.by_surface, rules.rules),
        "learned": partial(baselines.by_surface, surface.learned),
        **{
            name: by_suspects(name)
            for name in ("signs", "beliefs", "attribution", "attribution_blind")
        },
        "why": by_suspects(*USUAL_SUSPECTS),
    }
)
"""The attributors by name: the baselines, the suspects of a diagnosis, and all usual ones; each is
made from a set, of which it may read the public part."""

FLOORS = ("random", "earliest_deviation", "rules", "learned")
"""The baselines that stand beside every score."""


def attributor(name: str, fault_set: FaultSet) -> Attributor:
    """The attributor with a name, or a user's own as `module:object`: a function of a case.

    Raises:
        SettingsError: There is no such attributor.
    """
    if name in ATTRIBUTORS:
        return ATTRIBUTORS[name](fault_set)
    if ":" not in name:
        raise SettingsError(
            f"there is no attributor {name!r}; known are: {', '.join(ATTRIBUTORS)}, and your own "
            "as module:object"
        )
    loaded: Attributor = load(name, "attributor")
    if not callable(loaded):
        raise SettingsError(f"{name} is no function of a Case but {_describe(loaded)}")
    return loaded


def case_of(name: str, records: Sequence[Record]) -> Case:
    """Make the case of a failed run from the records alone.

    Its header tells neither the seed nor the run's own name. If the records do not show a failure,
    that is one that somebody complains of: every run of a set is asked about.

    Args:
        name: The name of the run in its set.
        records: The records; they keep the rules of the graph.
    """
    # With seed and name, an attributor could play the run again without its faults.
    rows = [replace(r, run=name, seed=None) if isinstance(r, Run) else r for r in records]
    last = rows[-1]
    outcome = {"outcome": last.outcome} if isinstance(last, Finish) else {}
    # Under the goal `none` each run counts as complained of, so quiet runs are asked about, too.
    ended, run = Finished.of(rows, outcome, standard(), name=name), RecordedRun(rows)
    shown = failures(ended, Goal.parse("default")) or failures(ended, Goal.parse("none"))
    all_attempts = tuple(
        attempt for attempts in find_attempts(run).values() for attempt in attempts
    )
    return Case(name, "trace", run, shown, all_attempts)


def attribute_all(
    name: str, fault_set: FaultSet, progress: Callable[[str, int, int], None] = lambda *_: None,
    *, structure_only: bool = False,
) -> Answers:  # fmt: skip
    """The answers of an attributor about every run of a set.

    Args:
        name: Its name, as `attributor` takes it.
        fault_set: The set.
        progress: Takes a word for what is counted, how many are done, and how many there are.
        structure_only: Whether the attributor gets the traces without contents, which held-out
            instances have.

    Raises:
        SettingsError: There is no such attributor, no trace is without contents, it raised an
            error, or it returned neither an `Answer` nor candidates.
    """
    attribute = attributor(name, fault_set)
    answers: dict[str, Answer] = {}
    instances = [
        instance for instance in fault_set.instances() if instance.structure or not structure_only
    ]
    if not instances:
        raise SettingsError(f"{fault_set.path} has no traces without contents")
    for instance in instances:
        case = case_about(instance, structure_only=structure_only)
        answers[case.name] = answer(name, attribute, case)
        progress("answers", len(answers), len(instances))
    return Answers(by=name, answers=answers)


def case_about(instance: Instance, *, structure_only: bool = False) -> Case:
    """Make the case of an instance, without a look at the label.

    Args:
        instance: The instance.
        structure_only: Whether the case has the trace without contents.
    """
    records = instance.structure_only() if structure_only else instance.records()
    return case_of(instance.entry.id, records)


def answer(name: str, attribute: Attributor, case: Case) -> Answer:
    """The answer of an attributor about a case.

    Args:
        name: The attributor's name.
        attribute: The attributor.
        case: The case.

    Raises:
        SettingsError: The attributor raised an error, or returned neither an `Answer` nor
            candidates.
    """
    try:
        candidates = attribute(case)
        if not isinstance(candidates, Answer):
            # A generator runs here, inside the `try`: it may raise, too.
            candidates = list(candidates)
    # An error of dig itself keeps its text.
    except DigError:
        raise
    except (Exception, SystemExit) as error:  # it is the user's, and may raise anything
        raise SettingsError(f"{name} raised {_describe(error)} about {case.name}") from error
    if isinstance(candidates, Answer):
        return candidates
    strange = next(
        (candidate for candidate in candidates if not isinstance(candidate, Candidate)), None
    )
    if strange is not None:
        raise SettingsError(
            f"{name} answered {_describe(strange)} about {case.name}; it must be a "
            "dig.lab.benchmark.answer_file.Answer, or candidates of dig.diagnosis"
        )
    return of_candidates(case, candidates)


def of_candidates(case: Case, candidates: Sequence[Candidate]) -> Answer:
    """Make an answer of candidates: of all with status `origin`, else of the first candidate.

    Args:
        case: The case.
        candidates: Its candidates, the likeliest first.
    """
    # Several origins are several faults; without any, the likeliest candidate is the best guess.
    origins = [candidate for candidate in candidates if candidate.status == "origin"] or [
        *candidates[:1]
    ]
    if not origins:
        return Answer()
    first, records = origins[0], case.run.records
    steps: dict[tuple[str, str], CausalStep] = {}
    for origin in origins:
        for source, target, t in trace_steps(case, origin):
            step = CausalStep(source=source, target=target, evidence=(t,))
            steps.setdefault((source, target), step)
    causes = tuple(
        RootCause(
            component=origin.agent,
            kind=baselines.kind_of_mechanism(origin.mechanism),
            evidence=tuple(shown.t for shown in origin.evidence if shown.t is not None),
        )
        for origin in origins
    )
    # A candidate without a record is placed at the end, where the failure shows.
    t = first.t if first.t is not None else len(records) - 1
    number = step_at(records, t) if first.step is None else first.step
    return Answer(
        root_causes=causes, propagation=tuple(steps.values()), step=number, onset=t
    )  # fmt: skip


def trace_steps(case: Case, cause: Candidate) -> list[tuple[str, str, int]]:
    """List the steps from a cause to the outcome, by lineage; each with a record.

    Args:
        case: The run.
        cause: The beginning of the failure.
    """
    run = case.run
    path = chain(run, cause.activation) if cause.activation in run.activations else []
    last = {run.activations[name].agent: run.activations[name].t for name in path}
    agents = [*dict.fromkeys([cause.agent, *last])]
    ends = [*agents[1:], OUTCOME]
    return [(a, b, last.get(b, run.last.t)) for a, b in zip(agents, ends, strict=True)]


def _describe(value: object) -> str:
    try:
        return one_line(repr(value), 80)
    except Exception:  # it may be of a user's own class
        return f"a {type(value).__name__}"
