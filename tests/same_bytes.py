"""`python -m tests.same_bytes`: is every byte that a user sees what it was?

    python -m tests.same_bytes compare
    python -m tests.same_bytes compare --only traces --keep now
    python -m tests.same_bytes take

For code that is moved and renamed, while nothing that it does may change. `take` writes a digest
of each output into the fixture; `compare` says which outputs differ from it. To see how, keep the
outputs of both states of the code in directories (`--keep`) and compare these. A change that is
meant is taken, and stands in the changelog. Exit status 0: all equal, 1: not, 2: wrong arguments,
130: interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from .same_outputs import JOBS, Outputs, carried_out

FIXTURE = Path(__file__).parent / "fixtures" / "same_bytes.json"
MOST_TOLD = 40


def outputs_of(job: str) -> Outputs:
    """The outputs of a job, made in a directory of its own."""
    with TemporaryDirectory() as folder:
        return carried_out(job, Path(folder))


def outputs(names: Sequence[str], jobs: int) -> Iterator[tuple[str, Outputs]]:
    """Each job's name with its outputs, over some processes if `jobs` is above 1."""
    if jobs == 1:
        yield from ((name, outputs_of(name)) for name in names)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {pool.submit(outputs_of, name): name for name in names}
        for future in as_completed(futures):
            yield futures[future], future.result()


def digests(names: Sequence[str], jobs: int, keep: Path | None) -> dict[str, str]:
    """The digest of each output; the outputs themselves are written below `keep`."""
    found: dict[str, str] = {}
    for done, (name, made) in enumerate(outputs(names, jobs), 1):
        for each, text in made.items():
            data = text.encode()
            found[each] = sha256(data).hexdigest()
            if keep is not None:
                path = keep / f"{each}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        print(f"{done} of {len(names)} jobs: {name}", file=sys.stderr, flush=True)
    return dict(sorted(found.items()))


def differences(
    found: Mapping[str, str], known: Mapping[str, str], names: Sequence[str]
) -> list[str]:
    """In words, which outputs of these jobs are not what they were."""
    told = []
    asked = {each for each in known if any(f"{each}/".startswith(f"{name}/") for name in names)}
    for each in sorted(asked | set(found)):
        if each not in known:
            told.append(f"new: {each}")
        elif each not in found:
            told.append(f"gone: {each}")
        elif found[each] != known[each]:
            told.append(f"different: {each}")
    return told


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.same_bytes", description=__doc__.split("\n")[0]
    )
    parser.add_argument("what", choices=["take", "compare"])
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="only jobs whose names begin so, such as "
        "traces, tables, commands, page or traces/newsgroups/dig; may be repeated",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the outputs there")
    parser.add_argument("--fixture", type=Path, default=FIXTURE, help="the file of digests")
    options = parser.parse_args(argv)
    if options.jobs < 1:
        parser.error("jobs must be above 0")
    only = tuple(options.only or ("",))
    for one in only:
        if not any(name.startswith(one) for name in JOBS):
            parser.error(f"no job begins with {one!r}; known are: {', '.join(JOBS)}")
    options.names = [name for name in JOBS if name.startswith(only)]
    if options.what == "compare" and not options.fixture.exists():
        parser.error(f"{options.fixture} is missing; `take` writes it")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    path: Path = options.fixture
    known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    try:
        found = digests(options.names, options.jobs, options.keep)
    except KeyboardInterrupt:
        return 130
    told = differences(found, known, options.names)
    if options.what == "take":
        gone = {line.removeprefix("gone: ") for line in told if line.startswith("gone: ")}
        kept = {each: digest for each, digest in known.items() if each not in gone}
        path.write_text(json.dumps(dict(sorted({**kept, **found}.items())), indent=1) + "\n")
        print(f"{len(found)} outputs taken into {path}")
        return 0
    for line in told[:MOST_TOLD]:
        print(line)
    if told[MOST_TOLD:]:
        print(f"... and {len(told) - MOST_TOLD} more")
    print(f"{len(found)} outputs: {f'{len(told)} NOT the same' if told else 'the same bytes'}")
    if told:
        print("a change that is meant, such as a new pattern: python -m tests.same_bytes take")
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
