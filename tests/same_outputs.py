"""The outputs whose bytes `tests.same_bytes` holds, each computed by the command `digmon` alone.

Nothing of dig is imported but `dig.cli.main`, so that files may move and classes be renamed.

- `traces`: 200 seeds with each of three methods in virtual time, every fifth of them with a fault.
- `tables`: `digmon experiment paper --runs 3`.
- `commands`: every command but `view` (a server), as text and as JSON, on a fixed set of runs.
- `page`: a report page.

A job is what one process computes in one directory; it gives one output or several.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from dig._version import __version__
from dig.cli import main as digmon_main

Outputs = dict[str, str]

DATA = Path(__file__).parent / "lab" / "data"
METHODS = ("mas", "judge", "dig")
SEEDS = 200
BLOCK = 10
TASKS = (("count-frequency", 1000), ("newsgroups", 40))
"""Blocks of seeds take turns between these."""
FAULTS = (
    "drop", "delay", "duplicate", "misaddress", "address_nobody", "corrupt", "replay_stale",
    "stall", "crash", "leave", "slow", "silent", "hoard", "pass_on", "submit_early",
    "never_submit", "discard_needed", "ignore_notes", "split_twice", "work_on_others_part",
    "merge_across_lineages",
)  # fmt: skip

DATE = 1_767_225_600
"""When each file was changed: at the beginning of 2026."""

CHAT = """\
id,from,to,at,reply_to,content
q,user,planner,2026-03-01T10:00:00Z,,Count the words
a,planner,ann,2026-03-01T10:00:02Z,q,first half
b,planner,bob,2026-03-01T10:00:02Z,q,second half
c,ann,planner,2026-03-01T10:00:05Z,a,120
d,bob,planner,2026-03-01T10:00:09.500Z,b,98
e,planner,user,2026-03-01T10:00:11Z,c;d,218
"""
GRID = """\
agents = [3]
methods = ["mas", "dig"]
seeds = 2

[[tasks]]
task = "count-frequency"
sizes = [1000]

[thresholds]
mc_window_s = 10.0
"""

# --- what differs from one execution to the next ------------------------------------------------

_PINS = (
    (r"\d{8}-\d{6}-[0-9a-f]{6}", "20260101-000000-abcdef"),  # execution ids: a date, and chance
    (r'("wall_s": ?)[\d.e-]+', r"\g<1>0.5"),
    (r'("began": ?)"[^"]*"', r'\1"2026-01-01T00:00:00+00:00"'),
    (r'("python": ?)"[^"]*"', r'\1"3"'),
    (r'("platform": ?)"[^"]*"', r'\1"any"'),
)


def pinned(text: str) -> str:
    """A text with fixed values for all that depends on when and where it was made.

    That is: execution ids, the seconds of real time that a run took, when it began, and the
    version of Python and the platform in `side.json`, and the version of dig. The data of a page
    are unpacked for it.

    Everything else is the same by how it is made: paths are relative to the job's directory, a
    run that commands look at has a name that is given to it (`fixed_run`), files have one date
    (`_files`), and `_surroundings` sets width, colours, time zone and environment. Names of
    classes and modules, as in a trace's first line, are bytes as all others.
    """
    # A release is no other change: the digests were first taken under this version.
    text = text.replace(__version__, "0.1.0")
    text = re.sub(r"(?<=>)H4sI[\w+/=]+(?=<)", _unpacked, text)
    for pattern, value in _PINS:
        text = re.sub(pattern, value, text)
    return text


def _unpacked(packed: re.Match[str]) -> str:
    return gzip.decompress(b64decode(packed[0])).decode()


@contextmanager
def _surroundings(folder: Path) -> Iterator[None]:
    """The same surroundings everywhere, and `folder` as the current directory."""
    fixed = {"COLUMNS": "100", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC"}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DIG_", "OTEL_", "FORCE_"))}
    with patch.dict(os.environ, {**kept, **fixed}, clear=True), chdir(folder):
        time.tzset()
        yield
    time.tzset()


# --- calls --------------------------------------------------------------------------------------


def digmon(*arguments: str) -> str:
    """What a call of the command gives: exit status, standard output and error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    code: object = 0
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", ["digmon"]):
        sys.argv += arguments
        try:
            digmon_main()
        except SystemExit as end:
            code = end.code or 0
    told = f"$ digmon {' '.join(arguments)}\nexit status {code}\n"
    for name, stream in (("output", out), ("error", err)):
        stream.seek(0)
        told += f"--- {name}\n{stream.read()}"
    return told


def with_files(*arguments: str) -> str:
    """The same, and each file that it has made or changed."""
    before = _files()
    told = digmon(*arguments)
    changed = [(path, data) for path, data in _files().items() if before.get(path) != data]
    files = (f"--- file {path}\n{data.decode()}" for path, data in changed)
    return pinned(told) + "".join(sorted(map(pinned, files)))  # ids that are pinned have no order


def _files() -> dict[str, bytes]:
    """What lies in the current directory, but for the index of runs (it has inodes of files).

    A file that is there gets the same date everywhere: exports tell it where there is no other.
    """
    paths = [path for path in Path().rglob("*") if path.is_file() and ".index" not in path.name]
    for path in paths:
        os.utime(path, (DATE, DATE))
    return {str(path): path.read_bytes() for path in paths}


def _called(name: str, calls: list[str]) -> Outputs:
    """The outputs of calls that are written as in a shell; their arguments have no blanks."""
    found: Outputs = {}
    for call in calls:
        key = f"{name}/{re.sub(r'[^a-zA-Z0-9.=-]+', '_', call)}"
        assert key not in found, key
        found[key] = with_files(*call.split())
    return found


def _run(name: str) -> list[str]:
    """The call that makes one of the fixed runs."""
    return ["run", *(word.replace("@", " ") for word in RUNS[name].split()), "--virtual"]


def fixed_run(name: str) -> Path:
    """A run in virtual time at `runs/NAME`, one minute after the one before it."""
    digmon(*_run(name), "--json", "--runs", "made")
    (made,) = Path("made").iterdir()
    path = Path("runs") / name
    path.parent.mkdir(exist_ok=True)
    made.rename(path)
    number = len(list(path.parent.iterdir()))
    for file in ("side.json", "result.json"):
        text = pinned((path / file).read_text())
        text = text.replace("2026-01-01T00:00:00", f"2026-01-01T00:{number:02}:00")
        (path / file).write_text(text)
    return path


# --- traces -------------------------------------------------------------------------------------


def traces(name: str) -> Outputs:
    """The traces of a block of seeds, one after the other."""
    _, task, method, block = name.split("/")
    first, last = map(int, block.split("-"))
    size = dict(TASKS)[task]
    told = ""
    for seed in range(first, last + 1):
        call = f"run {task} --size {size} --agents {3 + seed % 4} --method {method} --seed {seed}"
        if seed % 5 == 0:
            call += f" --to {'all' if seed % 2 else 'one'}"
        arguments = [*call.split(), "--virtual", "--json", "--runs", f"runs-{seed}"]
        if seed % 5 == 0:
            kind = FAULTS[seed // 5 % len(FAULTS)]
            arguments += ["--fault", f"{kind} target=agent-{1 + seed % 3} start=5"]
        digmon(*arguments)
        (run,) = Path(f"runs-{seed}").iterdir()
        trace = (run / "trace.dig.jsonl").read_bytes().decode()
        told += f"== {' '.join(arguments)}\n{trace}"
    return {name: told}


def _blocks() -> Iterator[str]:
    for method in METHODS:
        for number, first in enumerate(range(1, SEEDS + 1, BLOCK)):
            task, _ = TASKS[number % len(TASKS)]
            yield f"traces/{task}/{method}/{first:03}-{first + BLOCK - 1:03}"


# --- tables, page -------------------------------------------------------------------------------


def tables(name: str) -> Outputs:
    """The tables, charts and rows of the paper's experiment."""
    return {name: with_files("experiment", "paper", "--runs", "3", "--jobs", "1", "--out", "out")}


def page(name: str) -> Outputs:
    """A report page."""
    return {name: with_files("report", str(fixed_run("dig")), "-o", "report.html")}


# --- commands -----------------------------------------------------------------------------------

FOUR = "count-frequency --agents 4 --size 1000 --seed 3"
RUNS = {
    "mas": f"{FOUR} --method mas",
    "judge": f"{FOUR} --method judge",
    "dig": f"{FOUR} --method dig",
    "news": "newsgroups --agents 3 --size 40 --seed 7 --to all",
    "fault": f"{FOUR} --fault crash@target=agent-3@start=10",
    "parts": "count-frequency --agents 5 --size 2000 --seed 8 --segment-size 16KiB",
    "windows": "count-frequency --agents 3 --size 1000 --seed 2 --set mc_window_s=5",
}
"""Runs that commands look at; `@` stands for a blank within an argument."""

LOOKS = (
    "show", "show --json", "check", "check --json", "check --set mc_window_s=5 --json",
    "graph", "graph --json", "graph --cleaned --json", "graph --at 20", "graph --at 100000",
    "verify", "verify --json", "replay", "replay --json", "replay --at 30 --json",
    "replay --rerun", "replay --rerun --json",
    "export --format graphml", "export --format node-link", "export --format dot",
    "export --format dot --cleaned --at 40", "export --format otlp-json --service-per-agent",
    "export --format otlp -o otlp.json", "export --format nothing",
    "draw -o whole.svg", "draw --cleaned -o cleaned.svg", "draw --from 5 --to 40 -o part.svg",
    "draw --focus e2 --hops 2 -o near.svg",
    "report --json -o said.html", "report --no-payloads -o bare.html",
    "fork --at 20 --json --runs forks", "fork --at 30 --runs forks",
)  # fmt: skip
"""What is asked of each run; its path comes after the first word."""


def of_run(name: str) -> Outputs:
    """What every command says of one run."""
    which = name.rpartition("/")[2]
    path = fixed_run(which)
    made = json.loads((path / "result.json").read_text())
    first = made["findings"][0]["t"] if made["findings"] else 0
    looks = [*LOOKS, *(f"show {it}" for it in ("e1", "e2", "a2", "agent-1", "nothing", first))]
    looks += ["show e2 --json", "show agent-1 --json", "show a2 --json", f"show {first} --json"]
    words = [look.partition(" ") for look in looks]
    files = (f"--- {file}\n{data.decode()}" for file, data in sorted(_files().items()))
    found = {f"{name}/files": "".join(files)}
    found |= _called(name, [f"{first} {path} {rest}".strip() for first, _, rest in words])
    again = [*_run(which), "--runs", "told"]
    return found | {
        f"{name}/run": with_files(*again),
        f"{name}/run_--json": with_files(*again, "--json"),
    }


def of_several(name: str) -> Outputs:
    """Commands about several runs."""
    for which in RUNS:
        fixed_run(which)
    sorts = ("date", "name", "task", "method", "agents", "outcome", "findings", "score", "tokens")
    calls = ["runs", "runs --json", "runs --method dig --json", "runs --pattern ET --reverse"]
    calls += ["runs --task newsgroups", "runs --agents 5 --json", "runs --outcome submitted"]
    calls += [f"runs --sort {sort}" for sort in (*sorts, "time", "nothing")]
    for a, b in (("mas", "dig"), ("dig", "fault"), ("dig", "dig"), ("news", "parts")):
        calls += [f"diff runs/{a} runs/{b}", f"diff runs/{a} runs/{b} --json"]
        calls += [f"diff runs/{a} runs/{b} --strict --json"]
    return _called(name, calls)


def of_damaged(name: str) -> Outputs:
    """Commands about traces that are damaged, cut off, or no traces."""
    whole = fixed_run("dig") / "trace.dig.jsonl"
    lines = whole.read_bytes().splitlines(keepends=True)
    damaged = {
        "changed": [*lines[:40], lines[40].replace(b'"t":', b'"t": '), *lines[41:]],
        "torn": [*lines[:50], lines[50][:30]],
        "cut": lines[:50],
        "swapped": [*lines[:30], lines[31], lines[30], *lines[32:]],
        "words": [b"This is no trace.\n"],
        "empty": [],
    }
    for which, given in damaged.items():
        Path(f"{which}.dig.jsonl").write_bytes(b"".join(given))
    words = ("check", "check --json", "verify", "verify --json", "replay --rerun", "show", "graph")
    calls = [
        f"{word} {which}.dig.jsonl {rest}".strip()
        for which in (*damaged, "missing")
        for word, _, rest in (one.partition(" ") for one in (*words, "verify --salvage"))
    ]
    return _called(name, calls)


def of_none(name: str) -> Outputs:
    """Commands that need no run, or are told nonsense."""
    Path("chat.csv").write_text(CHAT, encoding="utf-8")
    for graph in DATA.glob("*.json"):
        Path(graph.name).write_bytes(graph.read_bytes())
    calls = ["--version", "thresholds", "thresholds --json", "thresholds --set mc_window_s=5"]
    calls += ["faults", "faults --json", "bench schema", "import chat.csv -o chat"]
    calls += ["import dig-graph-team.json -o team.dig.jsonl", "import chat.csv -o chat"]
    calls += ["import dig-graph-external.json -o external", "show chat", "check external --json"]
    calls += ["graph team.dig.jsonl --json", "export chat --format otlp-json", "verify chat --json"]
    calls += ["run nothing", "run count-frequency --method none", "run newsgroups --data nowhere"]
    calls += ["run count-frequency --fault none", "run count-frequency --set none=1"]
    calls += ["run count-frequency --detector none:none", "experiment none --out out", "nothing"]
    calls += ["runs nowhere", "thresholds --set mc_window_s=-1", "import nowhere -o there"]
    return _called(name, list(dict.fromkeys(calls)))


def of_help(name: str) -> Outputs:
    """The help of every command; it is laid out by typer."""
    words = "runs show diff draw experiment faults import export check graph report view run verify"
    words += " replay fork thresholds bench bench@make bench@schema bench@attribute bench@score"
    words += " bench@detectors bench@healing bench@try why try"
    words += " investigate"
    return _called(name, ["--help", *(f"{one.replace('@', ' ')} --help" for one in words.split())])


def of_experiments(name: str) -> Outputs:
    """Experiments besides the paper's."""
    Path("grid.toml").write_text(GRID, encoding="utf-8")
    small = "--runs 1 --jobs 1 --agents 3"
    return _called(name, [
        f"experiment ablation {small} --tasks count-frequency --out ablation --json",
        f"experiment traces {small} --tasks newsgroups --out traces",
        "experiment grid.toml --jobs 1 --keep --out grid",
        "experiment grid.toml --jobs 1 --out grid --json",
    ])  # fmt: skip


def of_bench(name: str) -> Outputs:
    """Runs whose failure has a known cause: a small set, and all that is made of it."""
    calls = ["bench make --out set --seed 1 --salt x --count 2 --jobs 1 --json"]
    for who in ("random", "earliest_deviation", "rules"):
        calls += [f"bench attribute {who} set -o {who}.json", f"bench score {who}.json set --json"]
    calls += ["bench score random.json set", "bench score random.json set --shuffle 1"]
    calls += ["bench detectors set", "bench detectors set --json"]
    calls += ["bench healing set --jobs 1", "bench healing set --jobs 1 --json"]
    return _called(name, calls)


# --- all of it ----------------------------------------------------------------------------------

JOBS: Mapping[str, Callable[[str], Outputs]] = {
    "commands/bench": of_bench,
    "tables/paper": tables,
    "commands/experiments": of_experiments,
    **{f"commands/of/{which}": of_run for which in RUNS},
    "commands/several": of_several,
    "commands/damaged": of_damaged,
    "commands/none": of_none,
    "commands/help": of_help,
    **dict.fromkeys(_blocks(), traces),
    "page/report": page,
}
"""Jobs by name, the longest first."""


def carried_out(job: str, folder: Path) -> Outputs:
    """The outputs of a job, by their names, which begin with its own; `folder` is empty."""
    with _surroundings(folder):
        return JOBS[job](job)
