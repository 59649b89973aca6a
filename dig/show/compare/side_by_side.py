"""Two stored runs side by side, in lines: behaviour, counts, findings and cost.

A run and its fork are shown from the first record that differs, with the decisions of each agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from dig._util.text import counted, name, names, one_line
from dig.graph import records
from dig.graph.behaviour import LIMIT_S
from dig.graph.codec import encode
from dig.graph.words import decision_text
from dig.show.runs.summary import RunSummary, grade, summarise
from dig.traces.run import RecordedRun

from .difference import BehaviourComparison, section, unequal
from .golden import behaviour_at, is_golden

LEAST_COMMON = 3
"""The equal records that a run and its fork begin with, at least; other runs have fewer."""
MOST_ROWS = 12
MOST_IN_CELL = 62


@dataclass(frozen=True)
class RunComparison:
    """Two runs, compared.

    Attributes:
        behaviour: The comparison of their behaviours.
        runs: The summary of each; ``None`` for a golden file.
        fork_lines: The decisions of a run and its fork from the first difference on.
    """

    behaviour: BehaviourComparison
    runs: tuple[RunSummary | None, RunSummary | None]
    fork_lines: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The object for `digmon diff --json`."""
        keys = ("outcome", "findings", "heals", "score", "cost", "seconds", "records")
        sides = [run and {key: getattr(run, key) for key in keys} for run in self.runs]
        return {**self.behaviour.to_json(), "runs": dict(zip("ab", sides, strict=True))}

    def lines(self, a: str, b: str) -> Iterator[str]:
        """The comparison in lines, with the names of the two runs."""
        yield from self.behaviour.lines(a, b)
        yield from self.fork_lines
        left, right = self.runs
        if left and right:
            yield from section("findings", unequal(left.findings, right.findings), a, b)
            yield from section("cost", unequal(left.cost, right.cost), a, b)
            values = {
                "outcome": [run.status for run in (left, right)],
                "score": [_score(run) for run in (left, right)],
                "seconds": [f"{run.seconds:,.1f}" for run in (left, right)],
                "records": [f"{run.records:,}" for run in (left, right)],
            }
            rows = [(label, x, y) for label, (x, y) in values.items() if x != y]
            yield from section("run", rows, a, b)


def _score(run: RunSummary) -> str:
    value = grade(run.score)
    return "none" if value is None else f"{value:.4g}"


def compare_runs(
    a: Path,
    b: Path,
    *,
    strict: bool = False,
    limit_s: float = LIMIT_S,
    stopwatch: Callable[[], float] | None = None,
) -> RunComparison:
    """Compare two traces, run directories or golden files.

    Args:
        a: The path of the first.
        b: The path of the second.
        strict: Whether to compare by the strict notion; by default, by the causal one.
        limit_s: Seconds that the comparison may take.
        stopwatch: See `same_behaviour`.

    Raises:
        TraceError: One of the two cannot be read; the line is named.
        UndecidedError: The limit was reached before a verdict.
    """
    behaviours = behaviour_at(a), behaviour_at(b)
    comparison = BehaviourComparison.of(
        *behaviours, strict=strict, limit_s=limit_s, stopwatch=stopwatch
    )
    left, right = (None if is_golden(path) else summarise(path) for path in (a, b))
    has_records = left and right and not comparison.is_same
    return RunComparison(comparison, (left, right), tuple(_fork_lines(a, b)) if has_records else ())


# --- a run and its fork ---


def _fork_lines(a: Path, b: Path) -> Iterator[str]:
    """The decisions of a run and a fork from the first difference on; nothing for other runs."""
    left, right = (RecordedRun.read(path, payloads=True) for path in (a, b))
    pairs = enumerate(zip(left.records, right.records, strict=False))
    first = next((t for t, (x, y) in pairs if encode(x) != encode(y)), 0)
    if first < LEAST_COMMON:
        return
    rows = [*_rows([*_steps(left, first)], [*_steps(right, first)])]
    yield f"the same up to record {first - 1}; then"
    cells = [("s", "A", "B"), *rows[:MOST_ROWS]]
    width = max(len(text) for _, text, _ in cells)
    for s, left_text, right_text in cells:
        yield f"  {s:>7}  {left_text:<{width}}  {right_text}".rstrip()
    if len(rows) > MOST_ROWS:
        yield f"  and {counted(len(rows) - MOST_ROWS, 'further row')}"


Step = tuple[str, int, str]
"""A step of a run: a key that both runs have for the same step, the moment, and the words."""


def _rows(left: list[Step], right: list[Step]) -> Iterator[tuple[str, str, str]]:
    """The moment and the steps of both runs, without equal steps."""
    keys, other_keys = ([key for key, _, _ in steps] for steps in (left, right))
    # Times differ after the first difference, so steps are matched by their keys.
    matcher = SequenceMatcher(None, keys, other_keys, autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            for (_, us, text), (_, _, other_text) in zip(
                left[i:i_end], right[j:j_end], strict=True
            ):
                if text != other_text:
                    yield f"{us / 1e6:.1f}", text, other_text
        else:
            rows = [(us, text, "") for _, us, text in left[i:i_end]]
            rows += [(us, "", text) for _, us, text in right[j:j_end]]
            yield from ((f"{us / 1e6:.1f}", x, y) for us, x, y in sorted(rows))


def _steps(run: RecordedRun, first: int) -> Iterator[Step]:
    for record in run.records[first:]:
        match record:
            case records.End(activation=id):
                activation = run.activations[id]
                fates = [asdict(fate) for fate in record.fates]
                decision = decision_text(fates, run.outputs(activation), past=True)
                text = f"{name(activation.agent)} {'failed' if record.error else decision}"
                key = f"{id} {activation.agent}"
            case records.Emit(by=None, event=event, to=to):
                key, text = (
                    f"outside {event}",
                    f"{name(event)} came from outside for {names([*to])}",
                )
            case records.Join(agent=agent):
                key, text = f"joined {agent}", f"{name(agent)} joined"
            case records.Leave(agent=agent):
                key, text = f"left {agent}", f"{name(agent)} left"
            case records.FindingRow(pattern=pattern):
                key, text = f"finding {pattern}", f"{name(pattern)} was found"
            case records.Finish(outcome=outcome):
                key, text = "finish", f"the run ended: {outcome}"
            case _:
                continue
        yield key, record.us, one_line(text, MOST_IN_CELL)
