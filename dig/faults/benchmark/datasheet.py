"""The datasheet of a set, `CARD.md`: its content, making, dropped candidates and limits."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version

from dig.tasks.experiment.table import SIMULATED_AGENTS, Table

from .candidates import Recipe
from .generate import Harvest
from .instances import Index, by_kind


def datasheet(index: Index, found: Harvest, recipe: Recipe) -> str:
    """The datasheet, as Markdown.

    Args:
        index: The index of the set.
        found: Its instances, and the dropped candidates.
        recipe: Its settings.
    """
    public = sum(entry.split == "public" for entry in index.instances)
    lost = sum(reasons.total() for reasons in found.dropped.values())
    tables = "\n".join(table.markdown() for table in (_contents(found), _left_out(found)))
    return f"""# Runs whose failure has a known cause

{len(index.instances)} runs of {SIMULATED_AGENTS} into which one or two faults were injected, each
with its twin (the same run without them), a label, and a causal graph of what the faults led to.
{public} are public; the labels of the other {len(index.instances) - public} are in a folder of
their own, which can be kept back.

- `set.json` lists all of them, with SHA-256 of each file. Traces are read by every command
  (`digmon check`, `digmon report`, `digmon draw`, ...).
- `baseline/` has {recipe.baseline_runs} runs without a fault of each configuration: what counts as
  usual.
- `digmon bench score ANSWERS DIR` scores answers, `digmon bench detectors DIR` detectors,
  `digmon bench healing DIR` healing.

## How it was made

By `digmon bench make --seed {index.seed} --count {len(index.instances)}` of dig-monitor
{version("dig-monitor")}, in virtual time: the same seed gives the same bytes. Candidates were
drawn from each stratum (a configuration with a kind of fault) in turn, at most
{recipe.most_of_a_stratum} instances of each. Of {found.tried} candidates {lost} were dropped. A
candidate is an instance if its fault took effect, somebody would notice it (a wrong or missing
answer, a timeout, an error that was found, and not in the twin), and a verified path leads from the
fault to there. Half of the instances of each kind are held out, by the seed.

{tables}
## What it is not

- Simulated agents follow stated habits. How often a fault matters, how it spreads and how well it
  is found says nothing about any language model.
- Faults that nobody would notice are not in it, so rates in it are no rates of failures in the
  world.
- A trace tells the run's seed, and the program is public: whoever has both can play the twin of a
  held-out instance. An answer is to be had from the trace alone.
"""


def _contents(found: Harvest) -> Table:
    counts = {
        kind: Counter(one.label.configuration for one in some)
        for kind, some in by_kind(found.made, lambda one: one.kind).items()
    }
    names = sorted({name for some in counts.values() for name in some})
    return Table(
        "contents",
        "What is in it",
        ["fault", *names, "all"],
        [[kind, *(some[name] for name in names), some.total()] for kind, some in counts.items()],
    )


def _left_out(found: Harvest) -> Table:
    reasons = sorted({reason for lost in found.dropped.values() for reason in lost})
    kept = Counter(one.kind for one in found.made)
    return Table(
        "dropped",
        "What was dropped, and why",
        ["fault", "kept", *reasons],
        [
            [kind, kept[kind], *(found.dropped.get(kind, Counter())[why] for why in reasons)]
            for kind in by_kind([*kept, *found.dropped], str)
        ],
    )
