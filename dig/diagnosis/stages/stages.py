"""Stages of the model pipeline: the instructions of each, and the use of the answer.

A stage takes the answer of a model into `PipelineState`. Single items that are wrong (an unknown
subtask, an edge backwards) are dropped and counted. A useless answer is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel

from dig._util.text import counted, one_line
from dig.diagnosis.conversations import hierarchy
from dig.diagnosis.conversations.hierarchy import AgentPart, HierarchicalGraph, Subtask
from dig.diagnosis.conversations.ranking import Attribution
from dig.diagnosis.conversations.reading import Conversation

from .deciding import Deviations, Responsible, Screened, deviating
from .requests import Exemplar
from .shapes import Backtrack, DataFlow, Oracles, Parsed, Screening, SubtaskPlan

Part = Literal["backtrack", "screening"]
"""Parts of the pipeline that can be left out."""

MOST_EDGES = 200
"""The number of edges of a draft or graph that a model is shown."""
MOST_DRAFTED = 3
"""The number of steps that stand in for a model's candidates: the first without a model."""
MOST_SHOWN = 300
KEY_EVIDENCE = ("each number and each name has a source in the log",)
ACCEPTANCE = ("code ran without an error", "what the goal asks for is stated")


# --- the state of the pipeline ---


@dataclass
class PipelineState:
    """State of the pipeline, from drafts made without a model to the answers.

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
        self.graph = self.ranked.graph
        self.deviate([candidate.step for candidate in self.ranked.candidates[:MOST_DRAFTED]])

    @property
    def candidates(self) -> tuple[int, ...]:
        """Deviating steps."""
        return deviating(self.conversation, self.graph, self.deviations)

    def deviate(self, steps: Iterable[int | None]) -> None:
        """Assume deviations in steps, with their agents and subtasks."""
        places = {
            step: (self.graph.subtask_of(step).id, self.conversation.steps[step].agent)
            for step in steps
            if step is not None
        }
        subtasks = frozenset(subtask for subtask, _ in places.values())
        self.deviations = Deviations(subtasks, frozenset(places.values()), frozenset(places))

    def drop(self, stage: str, count: int) -> None:
        """Count useless items of a stage."""
        if count:
            self.dropped[stage] = self.dropped.get(stage, 0) + count

    def shown_graph(self) -> dict[str, Any]:
        """Render the graph for a model."""
        row = self.graph.to_json()
        return {**row, "edges": row["edges"][:MOST_EDGES]}

    def plan(self) -> list[dict[str, Any]]:
        """Render the subtasks for a model."""
        return [
            {key: getattr(subtask, key) for key in ("id", "name", "goal", "first", "last")}
            for subtask in self.graph.subtasks
        ]


# --- the stages ---


@dataclass(frozen=True)
class Stage:
    """A request to the model, and the use of the answer.

    Attributes:
        schema: The shape of its answer.
        instructions: The question to the model.
        needs: Further keys of its request.
        take: Takes an answer into the state of the pipeline.
        check: Says what is wrong with an answer that would be taken.
        stand_in: Takes a draft into the state of the pipeline, if the model has no answer.
        part: The part of the pipeline with which it is left out, if it can be.
        is_repairable: Whether `take` can use an answer that `check` complains about twice.
        is_about_candidates: Whether candidates and their neighbours are shown in full.
    """

    name: str
    schema: type[BaseModel]
    instructions: str
    needs: Callable[[PipelineState], Mapping[str, Any]]
    take: Callable[[PipelineState, Any], None]
    check: Callable[[PipelineState, Any], str | None] = lambda state, answer: None
    stand_in: Callable[[PipelineState], None] = lambda state: None
    part: Part | None = None
    is_repairable: bool = False
    is_about_candidates: bool = False


def _complain_unknown(items: Sequence[object], count: int, noun: str) -> str | None:
    """Complain about an answer without a known item."""
    if count:
        return None
    return f"none of the {counted(len(items), noun)} is about anything in the document"


def _subtasks(answer: SubtaskPlan) -> list[Subtask]:
    return [
        Subtask(row.id, one_line(row.name), one_line(row.goal), row.first, row.last)
        for row in answer.subtasks
    ]


def _take_plan(state: PipelineState, answer: SubtaskPlan) -> None:
    case = state.conversation
    subtasks = hierarchy.repair_subtasks(_subtasks(answer), len(case.steps))
    state.drop("plan", max(0, len(answer.subtasks) - len(subtasks)))
    # Other subtasks change the edges and parts between them, and the subtasks of the candidates.
    state.graph = hierarchy.draft_graph(case, subtasks=subtasks)
    state.deviate([candidate.step for candidate in state.ranked.candidates[:MOST_DRAFTED]])


def _parts(answer: Parsed) -> list[AgentPart]:
    return [AgentPart(**part.model_dump()) for part in answer.agents]


def _take_parsed(state: PipelineState, answer: Parsed) -> None:
    flow = [edge for edge in state.graph.edges if edge.level == "step"]
    edges = [
        hierarchy.HierarchyEdge(
            edge.level, edge.source, edge.target, edge.type,
            edge.subtask if edge.level == "agent" else None,
            tuple(hierarchy.BiasPattern(p.bias, p.anomaly, p.scenario) for p in edge.patterns),
        )
        for edge in answer.edges
    ]  # fmt: skip
    # Parts come first: an edge between agents is valid only where both have a part.
    graph = replace(state.graph, edges=(), dropped=0)
    graph = graph.with_parts(state.conversation, _parts(answer)).with_edges(edges)
    state.drop("parse", graph.dropped)
    state.graph = graph.with_edges(flow)


def _check_parsed(state: PipelineState, answer: Parsed) -> str | None:
    graph = replace(state.graph, dropped=0).with_parts(state.conversation, _parts(answer))
    return _complain_unknown(answer.agents, len(graph.agents), "part")


def _take_flow(state: PipelineState, answer: DataFlow) -> None:
    """Replace the flow of data; recorded edges stay."""
    other_edges = tuple(edge for edge in state.graph.edges if edge.level != "step")
    edges = [
        hierarchy.step_edge(edge.source, edge.target, f"{edge.output} -> {edge.input}", edge.type)
        for edge in answer.edges
    ]
    graph = replace(state.graph, edges=other_edges, dropped=0).with_edges(edges)
    state.drop("data flow", graph.dropped)
    # A recorded edge that the model also names has the words of the model.
    ends = {(edge.source, edge.target) for edge in edges}
    recorded = hierarchy.step_edges(state.conversation.lineage or ())
    state.graph = graph.with_edges(o for o in recorded if (o.source, o.target) not in ends)


def _take_oracles(state: PipelineState, answer: Oracles) -> None:
    oracles = {
        oracle.subtask: hierarchy.SubtaskOracle(
            oracle.goal,
            tuple(oracle.preconditions),
            tuple(oracle.key_evidence),
            tuple(oracle.acceptance),
        )
        for oracle in answer.oracles
    }
    subtasks = [
        replace(subtask, oracle=oracles.pop(subtask.id, None)) for subtask in state.graph.subtasks
    ]
    state.drop("oracles", len(oracles))
    state.graph = replace(state.graph, subtasks=tuple(subtasks))


def _draft_oracles(state: PipelineState) -> None:
    """Draft the same tests for any subtask."""
    subtasks = [
        replace(subtask, oracle=hierarchy.SubtaskOracle(subtask.goal, (), KEY_EVIDENCE, ACCEPTANCE))
        for subtask in state.graph.subtasks
    ]
    state.graph = replace(state.graph, subtasks=tuple(subtasks))


def _check_oracles(state: PipelineState, answer: Oracles) -> str | None:
    ids = {subtask.id for subtask in state.graph.subtasks}
    count = sum(oracle.subtask in ids for oracle in answer.oracles)
    return _complain_unknown(answer.oracles, count, "oracle")


def _take_backtrack(state: PipelineState, answer: Backtrack) -> None:
    ids = {subtask.id for subtask in state.graph.subtasks}
    subtasks = frozenset(
        subtask.id for subtask in answer.subtasks if subtask.deviates and subtask.id in ids
    )
    agents = frozenset((agent.subtask, agent.agent) for agent in answer.agents if agent.deviates)
    steps = [step for step in answer.steps if step.deviates]
    shown = [step for step in steps if 0 <= step.step < len(state.conversation.steps)]
    state.drop("backtrack", len(steps) - len(shown))
    state.deviations = Deviations(subtasks, agents, frozenset(step.step for step in shown))
    for step in shown:
        state.reasons.setdefault(step.step, []).append(one_line(step.why, MOST_SHOWN))


def _take_screening(state: PipelineState, answer: Screening) -> None:
    candidates = state.candidates
    # From now on candidates without testimony stay open.
    state.screened = {}
    for row in answer.candidates:
        if row.step not in candidates:
            state.drop("screening", 1)
            continue
        state.screened[row.step] = Screened(
            tuple(row.upstream), row.loop, row.responsible, row.spoilt_at, row.recovered_at
        )
        reasons = (
            (row.upstream, row.upstream_why),
            (row.loop, row.loop_why),
            # Step 0 is a step like any other: it must not count as "no step".
            (row.spoilt_at is not None, row.spoilt_why),
            (row.recovered_at is not None, row.recovered_why),
        )
        state.reasons.setdefault(row.step, []).extend(
            one_line(text, MOST_SHOWN) for is_held, text in reasons if is_held
        )
    state.verdict = (answer.verdict.agent, answer.verdict.step)
    if answer.verdict.step in candidates:
        reason = one_line(answer.verdict.why, MOST_SHOWN)
        state.reasons.setdefault(answer.verdict.step, []).insert(0, reason)


def _draft_screening(state: PipelineState) -> None:
    """Screen candidates by the texts alone: data from other candidates, and loops."""
    candidates = state.candidates
    sources = [(edge.source, edge.target) for edge in state.graph.edges if edge.level == "step"]
    state.screened = {}
    for step in candidates:
        upstream = tuple(int(a) for a, b in sources if b == step and a in candidates)
        loop = next(
            (group for group in state.graph.loops if step in group.steps and group.failed), None
        )
        by: Responsible = "none"
        if loop is not None:
            by = "planner" if loop.same_command else "executor"
        state.screened[step] = Screened(upstream, loop is not None, by)


def _check_screening(state: PipelineState, answer: Screening) -> str | None:
    inside = sum(candidate.step in state.candidates for candidate in answer.candidates)
    return _complain_unknown(answer.candidates, inside, "candidate")


def _exemplars(state: PipelineState) -> dict[str, Any]:
    shown = [{"task": exemplar.task, "steps": exemplar.steps} for exemplar in state.exemplars]
    return {"exemplars": shown} if shown else {}


def _data(state: PipelineState) -> list[dict[str, Any]]:
    return [
        {"source": edge.source, "target": edge.target, "datum": edge.data, "type": edge.type}
        for edge in state.graph.edges
        if edge.level == "step"
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
        lambda state: {"draft": state.plan(), **_exemplars(state)},
        _take_plan,
        lambda state, answer: hierarchy.covers(_subtasks(answer), len(state.conversation.steps)),
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
        lambda state: {"plan": state.plan(), "draft": [*map(asdict, state.graph.agents)]},
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
        lambda state: {
            "plan": state.plan(),
            "draft": _data(state),
            "is_recorded": state.conversation.lineage is not None,
        },
        _take_flow,
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
        lambda state: {"plan": state.plan(), **_exemplars(state)},
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
        lambda state: {"graph": state.shown_graph()},
        _take_backtrack,
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
        lambda state: {"candidates": list(state.candidates), "graph": state.shown_graph()},
        _take_screening,
        _check_screening,
        stand_in=_draft_screening,
        part="screening",
        is_about_candidates=True,
    ),
)  # fmt: skip
"""The stages, in order."""
