"""The command line of the audit; see the package."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .checks import Instance, Pool, asked, pooled
from .checks import wrong as wrong_with
from .history import History
from .relations import rules

TRACE = "trace.dig.jsonl"
PARTS = ("public", "held-out")


def audit(folder: Path, count: int | None = None, seed: int = 0) -> tuple[int, int, list[str]]:
    """Audit some instances of a set, or all.

    Returns:
        How many instances and how many steps were looked at, and what is wrong with them.
    """
    table = rules()
    names = sorted(path.name for path in folder.glob("*/*/") if (path / "label.json").is_file())
    if count is not None and count < len(names):
        names = sorted(random.Random(seed).sample(names, count))
    pools: dict[str, Pool] = {}
    steps, wrong = 0, []
    for name in names:
        views = _instance(folder, name, pools)
        steps += len(views[0].graph["edges"])
        wrong += [f"{name}: {what}" for what in wrong_with(views[0].graph, views, table)]
        wrong += [f"{name}: {what}" for what in _bare(folder, name)]
    return len(names), steps, wrong


def _instance(folder: Path, name: str, pools: dict[str, Pool]) -> list[Instance]:
    """An instance, as each of its problems sees it.

    The labels of those that are held out lie apart from the traces.
    """
    (about,) = [path.parent for path in folder.glob(f"*/{name}/label.json")]
    (trace,) = (folder / part / name / TRACE for part in PARTS if (folder / part / name).is_dir())
    label = _json(about / "label.json")
    its = label["configuration"]
    if its not in pools:
        pools[its] = pooled(_baseline(folder / "baseline" / its, asked(label)))
    files, graph = (trace, about / "twin.dig.jsonl"), _json(about / "causal_graph.json")
    places = range(len(asked(label)))
    return [Instance(files, label, graph, pools[its], place) for place in places]


def _bare(folder: Path, name: str) -> Iterator[str]:
    """What is wrong with the trace without contents, if there is one."""
    path = folder / "structure-only" / name / TRACE
    if not path.is_file():
        return
    pairs = zip(_rows(path), _rows(folder / "held-out" / name / TRACE), strict=True)
    tokens: dict[str, str] = {}
    for bare, full in pairs:
        for key in ("payload", "answer"):
            if full.get(key) is None:
                continue
            text = json.dumps(full[key], sort_keys=True)
            if tokens.setdefault(text, str(bare.get(key))) != bare.get(key):
                yield f"record {full['t']}: equal contents have other tokens"
        for row in (bare, full):
            for key in ("payload", "answer", "error", "task"):
                row.pop(key, None)
        if bare != full:
            yield f"record {full['t']} is another one without contents"
    if len({*tokens.values()}) != len(tokens):
        yield "other contents have the same token"


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _baseline(
    folder: Path, problems: list[list[int] | None]
) -> Iterator[tuple[History, float | None]]:
    endings = _json(folder / "endings.json")
    for path, ending in zip(sorted(folder.glob("*.dig.jsonl")), endings, strict=True):
        for problem, end in zip(problems, ending.get("problems", [ending]), strict=True):
            yield History.read(path, problem), end["rmse"]


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def main() -> int:
    """Audit, print what is wrong, and say so by the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.faults.audit", description=__doc__)
    parser.add_argument("folder", type=Path, help="the set, as `digmon bench make` has made it")
    parser.add_argument("--count", type=int, help="how many instances; all, if left out")
    parser.add_argument("--seed", type=int, default=0, help="which of them")
    chosen = parser.parse_args()
    instances, steps, wrong = audit(chosen.folder, chosen.count, chosen.seed)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{instances} instances, {steps} steps: {len(wrong) or 'nothing'} wrong")
    return 1 if wrong or not instances else 0


if __name__ == "__main__":
    sys.exit(main())
