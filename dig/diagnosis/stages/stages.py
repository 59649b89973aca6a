"""The six stages of the model pipeline: the instructions of each, and the use of its answer.

A stage takes what a model said into `Known`. Single items that are wrong (an unknown subtask, an
edge backwards) are dropped and counted. An answer in which nothing is of use is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel

from dig._util.text import counted, one_line
from dig.diagnosis.conversations.hierarchy import (
    AgentPart,
    BiasPattern,
    HierarchicalGraph,
    HierarchyEdge,
    Subtask,
    SubtaskOracle,
    covers,
    drafted,
    repaired,
    step_edge,
    step_edges,
)
from dig.diagnosis.conversations.ranking import Attribution
from dig.diagnosis.conversations.reading import Conversation

from .deciding import Deviations, Responsible, Screened, deviating
from .requests import Exemplar
from .shapes import Backtrack, DataFlow, Oracles, Parsed, Screening, SubtaskPlan

Part = Literal["backtrack", "screening"]
"""A part of the pipeline that can be left out."""

MOST_EDGES = 200
"""The number of edges of a draft or graph that a model is shown."""
MOST_DRAFTED = 3
"""The number of steps that stand in for a model's candidates: the first without a model."""
MOST_SHOWN = 300
KEY_EVIDENCE = ("each number and each name has a source in the log",)
ACCEPTANCE = ("code ran without an error", "what the goal asks for is stated")


# --- what is known ---


@dataclass
class Known:
    """The state of the pipeline: at first the drafts, which are made without a model.

    Attributes:
        ranked: The answer without a model.
        exemplars: The exemplars that are shown.
        deviations: The steps that deviate.
        screened: The words about each candidate.
        verdict: The agent and the step that the model would answer.
        reasons: The words about steps.
        dropped: The number of items that broke a rule, by stage.
    """

    conversation: Conversation
    ranked: Attribution
    exemplars: Sequence[Exemplar] = ()
    graph: HierarchicalGraph = field(init=False)
    deviations: Deviations = field(init=False)
    screened: dict[int, Screened] = field(default_factory=dict)
    verdict: tuple[str, int] | None = None
    reasons: dict[int, list[str]] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with the drafts."""
        self.graph = self.ranked.graph
        self.deviate([one.step for one in self.ranked.candidates[:MOST_DRAFTED]])

    @property
    def candidates(self) -> tuple[int, ...]:
        """The steps that deviate."""
        return deviating(self.conversation, self.graph, self.deviations)

    def deviate(self, steps: Iterable[int | None]) -> None:
        """Take it that these steps deviate, with their agents and subtasks."""
        places = {
            step: (self.graph.subtask_of(step).id, self.conversation.steps[step].agent)
            for step in steps
            if step is not None
        }
        subtasks = frozenset(subtask for subtask, _ in places.values())
        self.deviations = Deviations(subtasks, frozenset(places.values()), frozenset(places))

    def drop(self, stage: str, count: int) -> None:
        """Count items of a stage that are of no use."""
        if count:
            self.dropped[stage] = self.dropped.get(stage, 0) + count

    def shown_graph(self) -> dict[str, Any]:
        """The graph as a model is shown it."""
        row = self.graph.to_json()
        return {**row, "edges": row["edges"][:MOST_EDGES]}

    def plan(self) -> list[dict[str, Any]]:
        """The subtasks as a model is shown them."""
        return [
            {"id": one.id, "name": one.name, "goal": one.goal, "first": one.first, "last": one.last}
            for one in self.graph.subtasks
        ]


# --- the stages ---


@dataclass(frozen=True)
class Stage:
    """A stage.

    Attributes:
        schema: The shape of its answer.
        instructions: The question to the model.
        needs: Further keys of its request.
        take: Takes an answer into what is known.
        check: Says what is wrong with an answer that would be taken.
        stand_in: Takes a draft into what is known, if the model has no answer.
        part: The part of the pipeline with which it is left out, if it can be.
        is_repairable: Whether `take` can use an answer that `check` complains about twice.
        is_about_candidates: Whether candidates and their neighbours are shown in full.
    """

    name: str
    schema: type[BaseModel]
    instructions: str
    needs: Callable[[Known], Mapping[str, Any]]
    take: Callable[[Known, Any], None]
    check: Callable[[Known, Any], str | None]
    stand_in: Callable[[Known], None] = lambda known: None
    part: Part | None = None
    is_repairable: bool = False
    is_about_candidates: bool = False


def _nothing_known(items: Sequence[object], known: int, what: str) -> str | None:
    """A complaint about an answer none of whose items is known."""
    if known:
        return None
    return f"none of the {counted(len(items), what)} is about anything in the document"


def _subtasks(said: SubtaskPlan) -> list[Subtask]:
    return [
        Subtask(one.id, one_line(one.name), one_line(one.goal), one.first, one.last)
        for one in said.subtasks
    ]


def _take_plan(known: Known, said: SubtaskPlan) -> None:
    case = known.conversation
    subtasks = repaired(_subtasks(said), len(case.steps))
    known.drop("plan", max(0, len(said.subtasks) - len(subtasks)))
    known.graph = drafted(case, subtasks=subtasks)
    known.deviate([one.step for one in known.ranked.candidates[:MOST_DRAFTED]])


def _parts(said: Parsed) -> list[AgentPart]:
    return [
        AgentPart(one.subtask, one.agent, one.observation, one.thought, one.action, one.result)
        for one in said.agents
    ]


def _take_parsed(known: Known, said: Parsed) -> None:
    flow = [one for one in known.graph.edges if one.level == "step"]
    edges = [
        HierarchyEdge(
            one.level, one.source, one.target, one.type,
            one.subtask if one.level == "agent" else None,
            tuple(BiasPattern(p.bias, p.anomaly, p.scenario) for p in one.patterns),
        )
        for one in said.edges
    ]  # fmt: skip
    graph = replace(known.graph, edges=(), dropped=0)
    graph = graph.with_parts(known.conversation, _parts(said)).with_edges(edges)
    known.drop("parse", graph.dropped)
    known.graph = graph.with_edges(flow)


def _check_parsed(known: Known, said: Parsed) -> str | None:
    graph = replace(known.graph, dropped=0).with_parts(known.conversation, _parts(said))
    return _nothing_known(said.agents, len(graph.agents), "part")


def _take_flow(known: Known, said: DataFlow) -> None:
    """Take the data that went from step to step; what records show stays."""
    others = tuple(one for one in known.graph.edges if one.level != "step")
    edges = [
        step_edge(one.source, one.target, f"{one.output} -> {one.input}", one.type)
        for one in said.edges
    ]
    graph = replace(known.graph, edges=others, dropped=0).with_edges(edges)
    known.drop("data flow", graph.dropped)
    told = {(one.source, one.target) for one in edges}
    recorded = step_edges(known.conversation.lineage or ())
    known.graph = graph.with_edges(o for o in recorded if (o.source, o.target) not in told)


def _take_oracles(known: Known, said: Oracles) -> None:
    given = {
        one.subtask: SubtaskOracle(
            one.goal, tuple(one.preconditions), tuple(one.key_evidence), tuple(one.acceptance)
        )
        for one in said.oracles
    }
    subtasks = [replace(one, oracle=given.pop(one.id, None)) for one in known.graph.subtasks]
    known.drop("oracles", len(given))
    known.graph = replace(known.graph, subtasks=tuple(subtasks))


def _draft_oracles(known: Known) -> None:
    """Give each subtask tests that fit any subtask."""
    subtasks = [
        replace(one, oracle=SubtaskOracle(one.goal, (), KEY_EVIDENCE, ACCEPTANCE))
        for one in known.graph.subtasks
    ]
    known.graph = replace(known.graph, subtasks=tuple(subtasks))


def _check_oracles(known: Known, said: Oracles) -> str | None:
    ids = {one.id for one in known.graph.subtasks}
    return _nothing_known(said.oracles, sum(one.subtask in ids for one in said.oracles), "oracle")


def _take_backtrack(known: Known, said: Backtrack) -> None:
    ids = {one.id for one in known.graph.subtasks}
    subtasks = frozenset(one.id for one in said.subtasks if one.deviates and one.id in ids)
    agents = frozenset((one.subtask, one.agent) for one in said.agents if one.deviates)
    steps = [one for one in said.steps if one.deviates]
    shown = [one for one in steps if 0 <= one.step < len(known.conversation.steps)]
    known.drop("backtrack", len(steps) - len(shown))
    known.deviations = Deviations(subtasks, agents, frozenset(one.step for one in shown))
    for one in shown:
        known.reasons.setdefault(one.step, []).append(one_line(one.why, MOST_SHOWN))


def _take_screening(known: Known, said: Screening) -> None:
    candidates = known.candidates
    known.screened = {}
    for one in said.candidates:
        if one.step not in candidates:
            known.drop("screening", 1)
            continue
        known.screened[one.step] = Screened(
            tuple(one.upstream), one.loop, one.responsible, one.spoilt_at, one.recovered_at
        )
        says = (one.upstream_why, one.loop_why, one.spoilt_why, one.recovered_why)
        held = (one.upstream, one.loop, one.spoilt_at is not None, one.recovered_at is not None)
        known.reasons.setdefault(one.step, []).extend(
            one_line(text, MOST_SHOWN) for text, is_held in zip(says, held, strict=True) if is_held
        )
    known.verdict = (said.verdict.agent, said.verdict.step)
    if said.verdict.step in candidates:
        why = one_line(said.verdict.why, MOST_SHOWN)
        known.reasons.setdefault(said.verdict.step, []).insert(0, why)


def _draft_screening(known: Known) -> None:
    """Screen candidates by the texts alone: data from other candidates, and loops."""
    candidates = known.candidates
    sources = [(one.source, one.target) for one in known.graph.edges if one.level == "step"]
    known.screened = {}
    for step in candidates:
        upstream = tuple(int(a) for a, b in sources if b == step and a in candidates)
        loop = next((one for one in known.graph.loops if step in one.steps and one.failed), None)
        by: Responsible = "none"
        if loop is not None:
            by = "planner" if loop.same_command else "executor"
        known.screened[step] = Screened(upstream, loop is not None, by)


def _check_screening(known: Known, said: Screening) -> str | None:
    inside = sum(one.step in known.candidates for one in said.candidates)
    return _nothing_known(said.candidates, inside, "candidate")


def _exemplars(known: Known) -> dict[str, Any]:
    shown = [{"task": one.task, "steps": one.steps} for one in known.exemplars]
    return {"exemplars": shown} if shown else {}


def _data(known: Known) -> list[dict[str, Any]]:
    return [
        {"source": one.source, "target": one.target, "datum": one.data, "type": one.type}
        for one in known.graph.edges
        if one.level == "step"
    ][:MOST_EDGES]


STAGES: Sequence[Stage] = (
    Stage(
        "plan", SubtaskPlan,
        """\
Cut the log into subtasks: phases of the work that each have one purpose. `draft` is a proposal
that was made from changes of speaker alone. Work in three passes: write a division of your own,
hold it against the log step by step, and correct it where a step belongs elsewhere. Rules: ids
are s1, s2 and so on, in order; the first subtask begins at step 0, each next one begins right
after the end of the one before, the last ends at the last step; no step is left out and none is
in two. Between one and eight subtasks are usual. `goal` says in a sentence what the phase was to
reach. If there are `exemplars`, they show for other tasks into what steps people divide such
work.""",
        lambda known: {"draft": known.plan(), **_exemplars(known)},
        _take_plan,
        lambda known, said: covers(_subtasks(said), len(known.conversation.steps)),
        is_repairable=True,
    ),
    Stage(
        "parse", Parsed,
        """\
`plan` has the subtasks. For every agent that speaks in a subtask give one entry: `observation` is
what lay before it, `thought` how it reasoned, `action` what it did (code, a call, a request to
another), `result` what came of that. A few words each; leave empty what the log does not show;
`draft` has the beginnings of texts around each agent's first step. Then give edges. Level
`subtask`: only from a subtask to the next one, of type data_dependency or logical_prerequisite,
with `subtask` null. Level `agent`: between two agents of one subtask, whose id stands in
`subtask`, of type observation, reasoning, decision, environment_feedback, memory or loop_control.
For each edge name in `patterns` how a fault at its source would show at its target: `bias` is the
fault, `anomaly` the symptom, and `scenario` says which question decides about it: local (was the
target's input sound?), control (does a planner repeat itself, or does an executor fail at sound
orders?), data (where was a datum first spoilt?), reversal (was it put right later?).""",
        lambda known: {
            "plan": known.plan(),
            "draft": [asdict(one) for one in known.graph.agents],
        },
        _take_parsed,
        _check_parsed,
    ),
    Stage(
        "data flow", DataFlow,
        """\
Say which piece of data went from which step to which later step: a number, a name, a text, a list
or a decision that one step produced and another one used. `draft` was found by matching words;
leave out what is chance, add what was said in other words. An edge goes from the latest step that
had the datum to the one that used it, always forwards. `output` is the datum as the source has
it, `input` as the target has it: where they differ, something happened to it on the way. If
`is_recorded` is true, `draft` was not found by words but recorded: data went along these edges and
along no others, so say only what went along them.""",
        lambda known: {
            "plan": known.plan(),
            "draft": _data(known),
            "is_recorded": known.conversation.lineage is not None,
        },
        _take_flow,
        lambda known, said: None,
    ),
    Stage(
        "oracles", Oracles,
        """\
For each subtask in `plan`, in order, write by what one could judge it afterwards, as if you had
to check the work of a stranger: `goal` is what the task needs from this phase, which may be more
than what the team wanted of it; `preconditions` must hold when it begins; `key_evidence` must
have been looked up or computed, not assumed; `acceptance` are tests of its result. Each line must
be such that the log can show it to be false. Later subtasks must fit what you demanded of earlier
ones.""",
        lambda known: {"plan": known.plan(), **_exemplars(known)},
        _take_oracles,
        _check_oracles,
        stand_in=_draft_oracles,
        part="backtrack",
    ),
    Stage(
        "backtrack", Backtrack,
        """\
`graph` has the subtasks with their oracles, what each agent did in them, and what goes on to
what. Go from the end to the beginning. First judge each subtask: does its result meet goal and
acceptance? Then, only in subtasks that do not, judge each agent: does what it saw, thought, did
and got agree with the preconditions and the key evidence? Then, only for those agents, judge each
of their steps in that subtask: is there a deviation in this very step? Give an entry for
everything that you judge, with `deviates` and the reason in one sentence. Output of tools is
never at fault itself; the step that called the tool, or that believed its output, may be.""",
        lambda known: {"graph": known.shown_graph()},
        _take_backtrack,
        lambda known, said: None,
        part="backtrack",
        is_about_candidates=True,
    ),
    Stage(
        "screening", Screening,
        """\
`candidates` are steps that deviate. Separate causes from consequences. For each of them answer
four questions, one after the other. Upstream: would it have been right, had certain earlier steps
been right? Then list those steps in `upstream`; if its input was sound, leave the list empty.
Loop: is it part of a group in the graph's `loops`? Then `responsible` is planner if the same
order was repeated in spite of failures, and executor if the orders changed and the work still
failed; else none. Data: at which step was a datum that it relies on first wrong? That is
`spoilt_at`, or null. Reversal: did a later step put it right for good? That is `recovered_at`, or
null. Finally give your verdict: the earliest step such that, had it been right, the team would
not have failed in this way, with its agent.""",
        lambda known: {
            "candidates": list(known.candidates),
            "graph": known.shown_graph(),
        },
        _take_screening,
        _check_screening,
        stand_in=_draft_screening,
        part="screening",
        is_about_candidates=True,
    ),
)  # fmt: skip
"""The stages, in order."""
