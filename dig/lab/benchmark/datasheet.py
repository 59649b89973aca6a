"""The datasheet of a set, `CARD.md`: content, making, dropped candidates and limits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from statistics import fmean

from dig.lab.experiment.markdown_table import SIMULATED_AGENTS, Table

from .answer_file import Answers
from .candidates import Recipe
from .generate import Harvest
from .instances import FaultSet, by_kind
from .oracle import ORACLE
from .scores_answers import Scores, score

HARD = ("concurrent", "decoys", "gradual", "hybrid", "silent contents")
"""The strata in which reading the surface should not be enough."""
SURFACE = ("rules", "learned")
"""The floors that read the surface alone."""
MOST_ANY_AGENT, MOST_EXACT, LEAST_GAP = 0.85, 0.60, 0.10
"""The aims of a set: how far these may go, and how much further the oracle goes."""


def datasheet(fault_set: FaultSet, crop: Harvest, recipe: Recipe) -> str:
    """The datasheet, as Markdown.

    Args:
        fault_set: The set, with all of its files but this one.
        crop: Its instances, and the dropped candidates.
        recipe: Its settings.
    """
    scores = score(Answers(answers={}), fault_set)
    endings = [ending for _, group in fault_set.baseline_endings() for ending in group]
    failed = sum(ending.is_bad for ending in endings)
    floors = next(table for table in scores.tables() if table.name == "floors")
    # The first row is that of the empty answers, which were scored for the sake of the table.
    floors = replace(floors, rows=floors.rows[1:], title="What is no attribution, and the oracle")
    parts = (_strata(crop), _contents(crop), floors, _aims(scores), _left_out(crop))
    tables = "\n".join(table.markdown() for table in parts)
    entries = fault_set.index.instances
    held_out = sum(entry.split == "held-out" for entry in entries)
    dropped = crop.attempts - len(crop.instances)
    return f"""# Runs whose failure has a known cause, version 2

{len(entries)} runs of {SIMULATED_AGENTS} into which one or two faults were injected, each with its
twin (the same run without the faults, with the decoys), a label, and a causal graph of what the
faults led to. {held_out} are held out: their twins and labels, the seed of the set and its salt
are in `held-out-labels/` alone, which can be kept back. Without the salt nobody can play them
again.

- A failure is a run without a right and complete answer. Runs with one are the stratum `no harm`,
  which is in no headline figure.
- Of several faults, each is left out in turn: if the end is another one then, it is a root cause,
  else a bystander, and to name it is neither right nor wrong.
- Decoys are innocent oddities: the run ends well with them alone, and badly without them.
- `concurrent`: sessions with two or three problems at once, each posed to another agent. Each has
  an answer and an end of its own; agents work for all of them, and habitually count twice what is
  solved twice. A session is a failure if one of its problems is.
- `silent contents`: wrong counts with a right sum, from agents with a memory of their own, whose
  messages do not say which parts they cover.
- `baseline/` has {recipe.baseline_runs} runs without a fault of each configuration, which nothing
  has chosen. {failed} of all {len(endings)} ended badly by themselves.
- `structure-only/` has each held-out trace once more, with tokens in place of payloads.
- Every message of an agent bears the mark of a disturbed delivery, whether it was or not.

By `digmon bench make` of dig-monitor {version("dig-monitor")}, in virtual time: the same seed and
salt give the same bytes. Of {crop.attempts} candidates {dropped} were dropped.

{tables}
## What it is not

- Simulated agents follow stated habits. How often a fault matters, how it spreads and how well it
  is found says nothing about any language model.
- Faults that change nothing that anybody would notice are not in it, so rates in it are no rates
  of failures in the world.
- A session has a few problems that begin within seconds; long sessions are not in it.
"""


def _strata(crop: Harvest) -> Table:
    harmful = [instance.label for instance in crop.instances if instance.label.harm]
    counts = Counter(label.stratum for label in harmful)
    rows: list[list[str | int]] = [[name, number] for name, number in sorted(counts.items())]
    rows.append(["no harm", len(crop.instances) - len(harmful)])
    by_size: Counter[tuple[int, bool]] = Counter()
    for label in harmful:
        if label.problems > 1:  # where several agents split and collect
            continue
        first = f"agent-{label.run['first'] + 1}"
        for cause in label.causes:
            by_size[int(label.run["agents"]), cause.component == first] += 1
    sizes = sorted({size for size, _ in by_size})
    verdict = (
        f"{by_size[size, True] / (by_size[size, True] + by_size[size, False]):.2f} of {size}"
        for size in sizes
    )
    note = "Share of root causes at the agent that splits and collects, by size of team: "
    return Table(
        "strata", "Strata", ["stratum", "failures"], rows, [note + ", ".join(verdict) + "."]
    )


def _aims(scores: Scores) -> Table:
    """Compare the set with the aims."""
    rows: list[list[str]] = []
    strata = {name: [name] for name in HARD} | {"all of them": [*HARD]}
    for name, counted_strata in strata.items():
        means = {
            (by, metric): fmean(values)
            for by in (*SURFACE, ORACLE)
            for metric in ("any_agent", "exact")
            if (values := [
                row.marks[metric]
                for row in scores.floors[by]
                if row.harm and row.stratum in counted_strata
            ])
        }  # fmt: skip
        if not means:
            rows.append([name, *"-----", "no runs"])
            continue
        any_agent, exact = (
            [means[by, metric] for by in SURFACE] for metric in ("any_agent", "exact")
        )
        gap = means[ORACLE, "any_agent"] - max(any_agent)
        is_reached = max(any_agent) <= MOST_ANY_AGENT and max(exact) <= MOST_EXACT
        verdict = "reached" if is_reached and gap >= LEAST_GAP else "missed"
        figures = [f"{each:.2f}" for pair in zip(any_agent, exact, strict=True) for each in pair]
        rows.append([name, *figures, f"{gap:+.2f}", verdict])
    return Table(
        "aims",
        "What is wanted of the set",
        [
            "stratum", *(f"{by}, {metric}" for by in SURFACE for metric in ("any_agent", "exact")),
            "oracle, more any_agent", "aim",
        ],
        rows,
        [f"Wanted: readers of the surface at most {MOST_ANY_AGENT} any_agent and {MOST_EXACT:.2f} "
         f"exact, and {LEAST_GAP:.2f} more any_agent with the twin. Where they reach more, the "
         "stratum is too easy to compare attributors by."],
    )  # fmt: skip


def _contents(crop: Harvest) -> Table:
    counts = {
        kind: Counter(instance.label.configuration for instance in group)
        for kind, group in by_kind(crop.instances, lambda instance: instance.kind).items()
    }
    names = sorted({name for counter in counts.values() for name in counter})
    return Table(
        "contents",
        "What is in it",
        ["fault", *names, "all"],
        [
            [kind, *(counter[name] for name in names), counter.total()]
            for kind, counter in counts.items()
        ],
    )


def _left_out(crop: Harvest) -> Table:
    reasons = sorted({reason for counter in crop.dropped.values() for reason in counter})
    taken_in = Counter(instance.kind for instance in crop.instances)
    return Table(
        "dropped",
        "What was dropped, and why",
        ["fault", "kept", *reasons],
        [
            [
                kind,
                taken_in[kind],
                *(crop.dropped.get(kind, Counter())[reason] for reason in reasons),
            ]
            for kind in by_kind([*taken_in, *crop.dropped], str)
        ],
    )
