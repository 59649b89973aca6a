"""The effects of methods: differences with intervals, exact tests, and sentences about both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import ClassVar

from dig._util.intervals import LEVEL

from . import row_measures
from .markdown_table import Table, TableCell, number, with_interval
from .samples import Pool, Samples
from .statistics import Mean, holm, sign_flip

QUICK = 30
"""With fewer seeds an experiment is a quick look."""

READING = (
    "Each cell: mean difference [95 % interval], exact p of the paired test over seeds (sign-flip; "
    "of flags McNemar), p corrected by Holm for all cells of its measure in this table, in "
    "brackets the paper's difference. A seed's settings are averaged first. RMSE and seconds only "
    "where both methods have a valid answer. The test asks whether the methods differ at all, the "
    "interval how large the mean difference can be; it allows for what few seeds did not show, so "
    "it may contain 0 where p is small. docs/lab/experiments/coverage.md has the levels of both."
)

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

Pair = tuple[str, str]
"""A method, and the one whose values are subtracted."""


@dataclass(frozen=True, slots=True)
class MeasuredEffect:
    """The difference of two methods in a measure.

    Attributes:
        difference: The mean difference; ``None``: no seed has both.
        p: The exact p-value.
        corrected: The p-value, corrected by Holm.
        paper: The paper's difference, if it has one.
    """

    difference: Mean | None
    p: float = 1.0
    corrected: float = 1.0
    paper: float | None = None

    parts: ClassVar[tuple[str, ...]] = ("", " low", " high", " seeds", " p", " Holm", " paper")

    @property
    def sign(self) -> int:
        """-1 or 1 if the corrected test shows a difference, else 0."""
        # The margin is for rounding: exact p-values are often exactly at the level.
        if self.difference is None or self.corrected > 1 - LEVEL + 1e-12:
            return 0
        return (self.difference.mean > 0) - (self.difference.mean < 0)

    @property
    def verdict(self) -> str:
        """The difference beside the paper's."""
        if not self.paper:
            return "no claim"
        if not self.sign:
            return "open"
        return "met" if (self.paper > 0) == (self.sign > 0) else "contradicted"

    def __str__(self) -> str:
        """`+0.23 [+0.10, +0.36] p 0.001, Holm 0.012 (+0.30)`."""
        text = with_interval(self.difference, _with_sign)
        if self.difference is not None:
            text += f" p {_p(self.p)}, Holm {_p(self.corrected)}"
        return text if self.paper is None else f"{text} ({_with_sign(self.paper)})"

    def columns(self) -> list[str]:
        """Difference, interval, seeds, p-values and the paper's difference, for a CSV file."""
        figures: Sequence[float | None] = [None] * 6
        if self.difference is not None:
            figures = (*astuple(self.difference), self.p, self.corrected)
        return ["" if value is None else f"{value:g}" for value in (*figures, self.paper)]


@dataclass(frozen=True)
class Contrast:
    """Two methods in some settings, in all measures.

    Attributes:
        pool: The settings.
        pair: The methods.
        effects: The effect by the measure's name.
    """

    pool: Pool
    pair: Pair
    effects: Mapping[str, MeasuredEffect]


def pairs(methods: Sequence[str]) -> list[Pair]:
    """Each method against doing nothing, and DIG, also with ladders, against each rival."""
    compared = [method for method in methods if method != row_measures.BASELINE]
    own = [method for method in compared if method in row_measures.HEALING]
    rivals = [method for method in compared if method not in own]
    pairs = [
        (method, row_measures.BASELINE) for method in compared if row_measures.BASELINE in methods
    ]
    return pairs + [(method, rival) for method in own for rival in rivals]


def compare(
    samples: Samples,
    pools: Sequence[Pool],
    pairs: Sequence[Pair],
    measures: Sequence[row_measures.Measure],
) -> list[Contrast]:
    """Compare methods; p-values are corrected over all comparisons of a measure.

    Args:
        samples: The runs.
        pools: The settings that are looked at together, each by itself.
        pairs: The methods.
        measures: The measures that are compared.
    """
    measured: dict[tuple[Pool, Pair], dict[str, MeasuredEffect]] = defaultdict(dict)
    for measure in measures:
        raw = {
            (pool, pair): _effect(samples, pool, pair, measure) for pool in pools for pair in pairs
        }
        # A cell without a difference is no test, and must not make the correction harsher.
        tested = [key for key, effect in raw.items() if effect.difference is not None]
        corrected = dict(zip(tested, holm([raw[key].p for key in tested]), strict=True))
        for key, effect in raw.items():
            measured[key][measure.name] = replace(effect, corrected=corrected.get(key, 1.0))
    return [Contrast(pool, pair, effects) for (pool, pair), effects in measured.items()]


def _effect(
    samples: Samples, pool: Pool, pair: Pair, measure: row_measures.Measure
) -> MeasuredEffect:
    differences = samples.difference(pool, pair, measure)
    mean = samples.mean_difference(pool, differences, measure)
    figures = [[measure.figure(setting, method) for method in pair] for setting in pool.settings]
    paper = [a - b for a, b in figures if a is not None and b is not None]
    # Our mean is over all settings; the paper's must be, too, to stand beside it.
    theirs = sum(paper) / len(paper) if len(paper) == len(figures) else None
    return MeasuredEffect(mean, sign_flip(differences), paper=theirs)


def effects_table(
    name: str, heading: str, compared: Sequence[Contrast], notes: Sequence[str],
    names: Callable[[str], str] = row_measures.title,
) -> Table:  # fmt: skip
    """A line for each comparison, a column for each measure.

    Args:
        name: The name of the table's file.
        heading: Its title.
        compared: The comparisons.
        notes: Sentences above it.
        names: The name of a method in the table.
    """
    measures = [*compared[0].effects] if compared else []
    rows: list[list[TableCell]] = [
        [contrast.pool.agents, contrast.pool.task, contrast.pool.level, *map(names, contrast.pair),
         *contrast.effects.values()]
        for contrast in compared
    ]  # fmt: skip
    columns = ["agents", "task", "level", "method", "less that of", *measures]
    return Table(name, heading, columns, rows, [READING, *notes])


# --- in words ---


def headline(samples: Samples, methods: Sequence[str]) -> list[str]:
    """The gains and costs of healing, a sentence for each team size.

    Args:
        samples: The runs.
        methods: In their order; DIG is compared with doing nothing, else the last with the first.
    """
    first, last = methods[0], methods[-1]
    if {row_measures.BASELINE, row_measures.OURS} <= {*methods}:
        first, last = row_measures.BASELINE, row_measures.OURS
    lines = []
    for pool in samples.pools():
        if first != last and (changes := [*_changes(samples, pool, (last, first))]):
            lines.append(f"{_team(pool.agents)}: {', '.join(changes)} ({_seeds(samples, pool)})")
    return lines


def _changes(samples: Samples, pool: Pool, pair: Pair) -> Iterator[str]:
    for measure in (row_measures.VALID, row_measures.COMPLETE):
        after, before = (samples.values(pool, method, measure).values() for method in pair)
        if before and after:
            means = [sum(values) / len(values) for values in (before, after)]
            yield f"{measure.name} {means[0]:.2f} -> {means[1]:.2f}"
    costs = []
    for measure, unit in ((row_measures.SECONDS, "s"), (row_measures.CALLS, "calls")):
        if differences := samples.difference(pool, pair, measure):
            by = sum(differences) / len(differences)
            costs.append((f"{abs(by):.1f} {unit}", "more" if by >= 0 else "less"))
    # Both go the same way: one word is enough.
    if len({direction for _, direction in costs}) == 1:
        yield f"{' and '.join(text for text, _ in costs)} {costs[0][1]}"
    else:
        yield from (f"{text} {direction}" for text, direction in costs)


def _team(agents: int) -> str:
    if agents == 1:
        return "single agents"
    return f"teams of {_WORDS[agents - 1] if agents <= len(_WORDS) else agents}"


def _seeds(samples: Samples, pool: Pool) -> str:
    seeds = {row.seed for row in samples.rows if row.agents == pool.agents}
    if len(seeds) < QUICK:
        return f"a quick look: {len(seeds)} seeds tell little"
    return f"{len(seeds)} seeds; 95 % intervals in tables.md"


def quick_note(seeds: int) -> list[str]:
    """The note above each table of an experiment with few seeds."""
    return [f"A quick look: {seeds} seeds tell little."] if seeds < QUICK else []


def shortcomings(compared: Sequence[Contrast], pairs: Collection[Pair]) -> list[str]:
    """The settings where a method is no better than another, or costs more, by the corrected tests.

    Args:
        compared: The comparisons.
        pairs: The pairs of methods of which that is said.
    """
    places = defaultdict[str, list[str]](list)
    for contrast in compared:
        text = "; ".join(_shortcomings(contrast)) if contrast.pair in pairs else ""
        if text:
            ours, rival = contrast.pair
            knows = " (which knows no graph)" if rival in row_measures.GRAPHLESS else ""
            places[text].append(f"{_team(contrast.pool.agents)}, {ours} against {rival}{knows}")
    return [f"{'; '.join(listed)}: {text}." for text, listed in places.items()]


def _shortcomings(contrast: Contrast) -> Iterator[str]:
    for measure in row_measures.GOALS:
        effect = _effect_of(contrast, measure)
        if effect and measure.better * effect.sign <= 0:
            yield f"{_no_better(measure, effect)} in {measure.name} ({_briefly(effect)})"
    for measure in row_measures.COSTS:
        effect = _effect_of(contrast, measure)
        if effect and effect.sign > 0:
            yield f"more {measure.name} ({_briefly(effect)})"


def paper_in_words(compared: Sequence[Contrast]) -> list[str]:
    """For each measure and pair of methods: whether the paper's direction is met."""
    missing: dict[tuple[str, Pair], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for contrast in compared:
        for name, effect in contrast.effects.items():
            if effect.paper is not None:
                missing[name, contrast.pair][effect.verdict].append(_team(contrast.pool.agents))
    return [
        f"{name}, {pair[0]} against {pair[1]}: "
        + "; ".join(f"{verdict} for {', '.join(teams)}" for verdict, teams in verdicts.items())
        + "."
        for (name, pair), verdicts in missing.items()
    ]


def _effect_of(contrast: Contrast, measure: row_measures.Measure) -> MeasuredEffect | None:
    """The effect in a measure, or in the relative measure of several tasks."""
    for name in (measure.name, f"{measure.name}, relative"):
        if name in contrast.effects and contrast.effects[name].difference is not None:
            return contrast.effects[name]
    return None


def _no_better(measure: row_measures.Measure, effect: MeasuredEffect) -> str:
    assert effect.difference is not None
    if measure.better * effect.sign < 0:
        return "worse"
    more = measure.better * effect.difference.mean
    return "not shown to be better" if more > 0 else "no better"


def _briefly(effect: MeasuredEffect) -> str:
    difference = effect.difference
    assert difference is not None
    return f"{_with_sign(difference.mean)}, Holm {_p(effect.corrected)}"


def _with_sign(value: float) -> str:
    text = number(value)
    return text if text.startswith("-") or not float(text) else f"+{text}"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
