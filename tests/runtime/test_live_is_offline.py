"""What a monitor raises in a run is what a check of its trace finds, for every pattern.

In the simulator that is shown over ten thousand runs by `test_simulation`; here it is shown that
such runs raise all patterns, and that the same holds on the bus and for the command itself.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import anyio
import pytest

from dig import Watch, cli
from dig.detectors import standard
from dig.graph.codec import encode
from dig.runtime import Bus, RunResult, simulate
from tests.chaos import chaos_run
from tests.helpers import Recorder, backends, bodies, found_again
from tests.oracle_findings import KINDS, PATTERNS, kind_of

MODES = pytest.mark.parametrize("heal", [False, True], ids=["observe", "heal"])
SEEDS = 150
SEEDS_ON_THE_BUS = 60


def kinds(result: RunResult) -> Iterator[str]:
    """The pattern of each finding that was raised, with its stage, if the oracle has it."""
    return (kind_of(row) for row in bodies(result.findings) if row["pattern"] in PATTERNS)


@cache
def simulated(seed: int, heal: bool) -> tuple[RunResult, Recorder]:
    run, sink = chaos_run(seed, heal=heal), Recorder()
    return simulate(run.team, run.problem, setup=run.setup, script=run.script, sink=sink), sink


def on_the_bus(seed: int, heal: bool, backend: str) -> tuple[RunResult, Recorder]:
    run, sink = chaos_run(seed, heal=heal), Recorder()
    bus = Bus(run.team, run.setup, sink=sink)
    name, options = backends()[backend]()
    return anyio.run(bus.run, run.problem, backend=name, backend_options=options), sink


@pytest.mark.sampled(2)
@MODES
def test_in_the_simulator_every_pattern_is_raised_and_found_again(heal: bool) -> None:
    """Random teams raise all patterns, both stages of CLA, observed and healed."""
    raised: Counter[str] = Counter()
    for seed in range(SEEDS):
        result, sink = simulated(seed, heal)
        assert found_again(sink, Watch(standard())) == bodies(result.findings), seed
        raised.update(set(kinds(result)))
    rare = {kind for kind in KINDS if raised[kind] < 3}
    assert not rare, f"have tests/chaos.py raise {rare} more often"
    assert set(raised) == {*KINDS}


@pytest.mark.sampled(2)
@MODES
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_on_the_bus_every_pattern_is_raised_and_found_again(backend: str, heal: bool) -> None:
    """The same on both event loops, where activations really overlap."""
    raised: Counter[str] = Counter()
    for seed in range(SEEDS_ON_THE_BUS):
        result, sink = on_the_bus(seed, heal, backend)
        assert found_again(sink, Watch(standard())) == bodies(result.findings), seed
        raised.update(set(kinds(result)))
    assert set(raised) == {*KINDS}


OPTIONS = ("--json", "--fail-on", "notice")


@pytest.mark.sampled(2)
@MODES
def test_the_command_prints_for_a_trace_what_was_raised_in_the_run(
    heal: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`digmon check FILE --json` on enough runs to have every pattern among them."""
    raised: set[str] = set()
    for seed in range(SEEDS):
        result, sink = simulated(seed, heal)
        if not set(kinds(result)) - raised:
            continue  # nothing new in it
        path = tmp_path / f"{seed}.dig.jsonl"
        path.write_text("".join(encode(record) + "\n" for record in sink), encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["digmon", "check", str(path), *OPTIONS])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert printed == bodies(result.findings)
        assert ended.value.code == 1
        raised.update(kinds(result))
    assert raised == {*KINDS}
