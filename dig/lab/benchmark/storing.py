"""Writes a set of faults for `dig.lab.benchmark.instances` to read: complete, or nothing at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from dig.errors import SettingsError, file_errors
from dig.graph.records import Emit, End, Finish, Record, Run
from dig.lab.run_pair import Played, lines, play, publish_records
from dig.lab.truth.baseline import Baseline
from dig.runtime.workers import Workers
from dig.traces.journal.durable_files import write_file
from dig.traces.journal.reader import TRACE

from . import instances
from .candidates import Configuration, Recipe
from .datasheet import datasheet
from .generate import Harvest, Progress, harvest, splits
from .hidden import Made

ERROR = "an error"
"""The text of every error in a trace without contents."""


def make_set(
    out: Path, recipe: Recipe, *, jobs: int = 1,
    progress: Progress = lambda stage, finished, total: None,
) -> instances.Index:  # fmt: skip
    """Make a set of verified instances.

    Args:
        out: An empty directory, or one that is made. While the set is being made it is in a hidden
            one within, so that an interruption leaves nothing half done.
        recipe: The settings of the set; the same ones give the same bytes.
        jobs: The number of processes.
        progress: Takes a word for what is made, how many there are, and how many are wanted.

    Raises:
        SettingsError: The directory cannot be used, or there are fewer instances than are wanted.
        KeyboardInterrupt: The user interrupted the work; nothing is left.
    """
    workers = Workers(jobs, "the making", "make it with fewer --jobs")
    with filling(out) as folder, workers:
        baselines = _write_baseline(folder / instances.BASELINE, recipe, workers, progress)
        crop = harvest(recipe, baselines, workers, progress)
        entries = tuple(
            write_instance(folder, f"i{number:04}", split, instance)
            for number, (split, instance) in enumerate(splits(crop.instances, recipe.key), 1)
        )
        index = instances.Index(instances=entries)
        write(
            folder / instances.LABELS / instances.SECRET,
            as_json_bytes({"seed": recipe.seed, "salt": recipe.salt}),
        )
        write(folder / instances.INDEX, as_json_bytes(index.model_dump(exclude_none=True)))
        write(folder / instances.DROPPED, as_json_bytes(_count_dropped(crop)))
        write(
            folder / instances.CARD,
            datasheet(instances.FaultSet(folder, index), crop, recipe).encode(),
        )
    return index


@contextmanager
def filling(out: Path) -> Iterator[Path]:
    """Yield a directory within `out`; if all goes well, the files move to `out` in the end.

    It is within `out`, since that may be another file system, or a shell's current directory.
    """
    is_new = not out.exists()
    with file_errors(out, "used"):
        if not is_new and (not out.is_dir() or any(out.iterdir())):
            raise SettingsError(f"{out} is not empty; name another directory for the set")
        out.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".making.", dir=out))
    try:
        with file_errors(out, "written"):
            yield folder
            for path in sorted(folder.iterdir(), key=lambda path: path.name == instances.INDEX):
                path.rename(out / path.name)  # the index last: before, there is no set
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        # After a failure nothing is left, not even an empty directory.
        if is_new and not any(out.iterdir()):
            out.rmdir()


def write_instance(
    folder: Path, name: str, split: instances.Split, instance: Made
) -> instances.Entry:
    """Write the files of an instance.

    Args:
        folder: Of the set.
        name: Of the instance.
        split: Its part.
        instance: The instance.

    Returns:
        Its line in the index.
    """
    configuration = instance.candidate.stratum.configuration
    trace, twin = (publish_records(run, name) for run in (instance.trace, instance.twin))
    label = instance.label.model_copy(update={"instance": name})
    files = {
        TRACE: lines(trace),
        instances.TWIN: lines(twin),
        instances.LABEL: as_json_bytes(label.model_dump()),
        instances.GRAPH: as_json_bytes(instance.graph.to_json()),
    }
    # The trace of a held-out instance is public; all else about it can be kept back.
    labels = split if split == "public" else instances.LABELS
    for file, data in files.items():
        write(folder / (split if file == TRACE else labels) / name / file, data)
    sums = {file: sha256(data).hexdigest() for file, data in files.items()}
    if split == "held-out":
        bare = lines(without_contents(trace))
        sums[instances.STRUCTURE] = sha256(bare).hexdigest()
        write(folder / instances.STRUCTURE / name / TRACE, bare)
    return instances.Entry(
        id=name,
        split=split,
        configuration=configuration.name,
        task=configuration.task,
        size=configuration.size,
        agents=configuration.agents,
        records=len(trace),
        sha256=sums,
    )


def _write_baseline(
    folder: Path, recipe: Recipe, workers: Workers, progress: Progress
) -> dict[Configuration, Baseline]:
    """Write the fault-free runs of each configuration, with the endings and the baseline."""
    usual_runs = [run for sort in recipe.sorts_of_runs for run in recipe.baseline(sort)]
    # One stream over all configurations: no process waits where one of them ends.
    played = workers.each(play, usual_runs)
    baselines: dict[Configuration, Baseline] = {}
    for configuration in recipe.sorts_of_runs:
        runs: list[Played] = []
        for number, run in enumerate(islice(played, recipe.baseline_runs)):
            runs.append(run)
            name = f"{configuration.name}-{number:03}"
            records = lines(publish_records(run.records, name))
            write(folder / configuration.name / f"{number:03}.dig.jsonl", records)
            finished = len(baselines) * recipe.baseline_runs + len(runs)
            progress("runs without a fault", finished, len(usual_runs))
        endings = [instances.RunEnding.of(run).model_dump() for run in runs]
        write(folder / configuration.name / instances.ENDINGS, as_json_bytes(endings))
        baseline = baselines[configuration] = Baseline.from_runs(runs)
        write(folder / f"{configuration.name}.json", as_json_bytes(baseline.to_json()))
    return baselines


def _count_dropped(crop: Harvest) -> Mapping[str, Any]:
    return {
        "tried": crop.attempts,
        "kept": len(crop.instances),
        **{
            column: {name: dict(counts[name]) for name in sorted(counts)}
            for column in ("raised", "raised_in_sessions")
            if (counts := getattr(crop, column))
        },
        "dropped": {
            kind: dict(sorted(reasons.items())) for kind, reasons in sorted(crop.dropped.items())
        },
    }


def as_json_bytes(value: Any) -> bytes:
    """A file of JSON."""
    return (json.dumps(value, indent=1, ensure_ascii=True) + "\n").encode()


def write(path: Path, data: bytes) -> None:
    """Write a file, and make the folders above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, data, mode=0o666)


def without_contents(records: Iterable[Record]) -> tuple[Record, ...]:
    """The records of a run with a token in place of each payload, and without texts of errors.

    Equal payloads have equal tokens, which are numbered in the order in which they came.
    """
    tokens: dict[str, str] = {}
    return tuple(_bare(record, tokens) for record in records)


def _bare(record: Record, tokens: dict[str, str]) -> Record:
    if isinstance(record, Run):
        # The name of the task would tell what the payloads are about.
        return replace(record, task=None)
    if isinstance(record, Emit):
        return replace(record, payload=_token(record.payload, tokens))
    if isinstance(record, End) and record.error is not None:
        return replace(record, error=ERROR)
    if isinstance(record, Finish) and record.answer is not None:
        return replace(record, answer=_token(record.answer, tokens))
    return record


def _token(payload: Any, tokens: dict[str, str]) -> str:
    text = json.dumps(payload, sort_keys=True)
    return tokens.setdefault(text, f"payload-{len(tokens) + 1}")
