"""Sets of failing runs from elsewhere: checks labels against traces, and believes the rest.

    DIR/NAME/            a run directory, or trace.dig.jsonl
    DIR/NAME/twin/       the same of the run without the fault; or twin.dig.jsonl
    DIR/NAME/label.json  {"agent": "agent-3", "kind": "any name", "activation": "a7", "t": 41}

`t` is the first record that the fault may have changed, `activation` where it acted, or null. The
label has `"wrong": true`, if the run has an answer and that is not right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from dig.diagnosis.causes import OUTCOME, CausalGraph, Cause, Edge, Node
from dig.errors import SettingsError
from dig.graph.records import FindingRow, Finish, Record, Run, Start
from dig.lab.truth.matching import first_difference
from dig.traces.journal.reader import TRACE

from .candidates import Configuration, InstanceDraft, Stratum
from .generate import splits
from .hidden import Made
from .instances import CARD, INDEX, LABEL, TWIN, Index, Label, RunEnding, TrueCause
from .set_reading import read_model, read_run, step_at
from .storing import as_json_bytes, filling, write, write_instance

NO_METHOD = {"method": "mas", "to": "one"}
"""All that a label says of the settings of a run that was made elsewhere."""
_SAYS = "label"


class BroughtLabel(BaseModel):
    """The label of a run by the maker of the run."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    agent: str = Field(min_length=1)
    kind: str = Field(min_length=1)
    activation: str | None = None
    t: int = Field(ge=1)
    wrong: bool = False


def bring_set(
    out: Path, source: Path,
    progress: Callable[[str, int, int], None] = lambda stage, finished, total: None,
) -> Index:  # fmt: skip
    """Make a set of failing runs from elsewhere.

    Args:
        out: An empty directory, or one that is made.
        source: The directory with a folder for each run.
        progress: Takes a word for what is read, how many there are, and how many are wanted.

    Raises:
        SettingsError: There is no run, or one is not what its label says; the message names it.
        TraceError: A trace cannot be read or breaks a rule.
    """
    folders = sorted(path.parent for path in source.glob(f"*/{LABEL}"))
    if not folders:
        raise SettingsError(f"{source} has no folders with a {LABEL}, a trace and a twin")
    instances: list[Made] = []
    for folder in folders:
        instances.append(_brought(folder))
        progress("runs", len(instances), len(folders))
    with filling(out) as place:
        entries = tuple(
            write_instance(place, f"i{number:04}", split, instance)
            for number, (split, instance) in enumerate(splits(instances, "brought"), 1)
        )
        index = Index(instances=entries)
        write(place / INDEX, as_json_bytes(index.model_dump(exclude_none=True)))
        write(place / CARD, _card(len(instances)).encode())
    return index


def _brought(folder: Path) -> Made:
    """The instance in a folder.

    Raises:
        SettingsError: The run does not agree with its label.
    """
    says = read_model(BroughtLabel, folder / LABEL)
    trace, twin = folder / TRACE, folder / TWIN
    run = read_run(trace if trace.is_file() else folder)
    other = read_run(twin if twin.is_file() else folder / "twin")
    # Only the first: the checks after it rely on what it denies.
    wrong = next(_contradictions(says, run, other), None)
    if wrong:
        raise SettingsError(f"{folder}: {wrong}")
    cause = TrueCause(
        component=says.agent,
        kind=says.kind,
        step=step_at(run, says.t),
        first_act=says.t,
        first_effect=first_difference(run[1:], other[1:]) + 1,
    )
    header = run[0]
    # `_contradictions` has looked.
    assert isinstance(header, Run)
    task = header.task if isinstance(header.task, str) else "brought"
    place = Configuration(task, 0, len(header.agents))
    act = {
        "fault": 0, "t": says.t, "ts": run[says.t].ts, "agent": says.agent,
        "activation": says.activation, "what": "as its label says",
    }  # fmt: skip
    label = Label(
        instance="",
        configuration=place.name,
        run=NO_METHOD,
        faults=({"kind": says.kind, "target": says.agent},),
        injections=(act,),
        faulted=_ending(run, is_wrong=says.wrong),
        twin=_ending(other),
        stratum="brought",
        causes=(cause,),
    )
    draft = InstanceDraft(Stratum(place, (says.kind,), "brought"), 0, "brought")
    return Made(draft, label, _graph(says, run), run, other)


def _contradictions(
    says: BroughtLabel, run: Sequence[Record], twin: Sequence[Record]
) -> Iterator[str]:
    """Find the claims of a label that contradict the traces."""
    header, last = run[0], run[-1]
    if not isinstance(header, Run) or says.agent not in header.agents:
        yield f"no agent is called {says.agent!r:.60}"
    if says.t >= len(run):
        yield f"the run has no record {says.t}"
    begun = {row.activation: row.agent for row in run if isinstance(row, Start)}
    if says.activation is not None and begun.get(says.activation) != says.agent:
        yield f"{says.activation!r:.60} is no activation of {says.agent!r:.60}"
    # Headers differ by their names, so the comparison begins after them.
    first = first_difference(run[1:], twin[1:]) + 1
    if first < says.t:
        yield f"run and twin differ at record {first}, before the fault at {says.t}"
    if first >= max(len(run), len(twin)):
        yield "run and twin are the same"
    if not isinstance(last, Finish):
        yield "the run has not ended"
    # Nobody can score the answer here, so the label has to say that it is wrong.
    elif last.outcome == "submitted" and not says.wrong:
        yield 'the run has an answer; if that is wrong, say so with "wrong": true'
    end = twin[-1]
    if not (isinstance(end, Finish) and end.outcome == "submitted"):
        yield "the twin has no answer"


def _ending(run: Sequence[Record], *, is_wrong: bool = False) -> RunEnding:
    last = run[-1]
    outcome = last.outcome if isinstance(last, Finish) else "stopped"
    raised = Counter(row.pattern for row in run if isinstance(row, FindingRow))
    return RunEnding(
        outcome=outcome,
        valid=outcome == "submitted" and not is_wrong,
        rmse=None,
        seconds=last.ts,
        raised=dict(raised),
    )


def _graph(says: BroughtLabel, run: Sequence[Record]) -> CausalGraph:
    """From the agent to the outcome: more is not known."""
    last = run[-1]
    nodes = tuple(
        Node(type=kind, name=name, component=component, state=state, onset_t=row.t,
             onset_s=row.ts, test=_SAYS)
        for kind, name, component, state, row in (
            ("agent", says.agent, says.agent, "injected", run[says.t]),
            ("outcome", "", OUTCOME, "wrong" if says.wrong else "missing", last),
        )
    )  # fmt: skip
    cause, effect = nodes
    return CausalGraph(
        nodes, (Edge(cause.id, effect.id, _SAYS),), (Cause(says.agent, says.kind),), (effect.id,)
    )


def _card(count: int) -> str:
    return f"""# Failing runs that were made elsewhere

{count} runs with a twin each, brought by `digmon bench make --from`. Of each it was verified that
the run is the same as its twin up to the first act of the fault, that the twin has an answer, and
that the run has none, or one that its label calls wrong. Agent and kind are as their maker says.
Causal graphs have one step, from the agent to the outcome, so `edge_f1` and the paths say little.
"""
