"""Fuzzing that is guided by what code an input reaches: atheris, if it is installed."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ENTRANCES_OF = "dig"


def guide(entrance: str, folder: Path, count: int, seed: int, left: Path) -> int:
    """Fuzz an entrance; does not return if atheris ends the process, as it does."""
    try:
        import atheris
    except ImportError:
        print("atheris is not installed: pip install atheris", file=sys.stderr)
        return 2
    with atheris.instrument_imports(include=[ENTRANCES_OF]):
        from .running import Fuzzer
    from .inputs import MOST_BYTES, mutated

    fuzzer = Fuzzer(entrance, folder, seed)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, data in enumerate(fuzzer.seeds):
        (corpus / str(number)).write_bytes(data)

    def try_input(data: bytes) -> None:
        fault = fuzzer.try_input(data)
        if fault is not None:
            print(f"{fuzzer.keep(fault, left)}: {fault.what}", file=sys.stderr)
            raise SystemExit(1)

    def change(data: bytes, most: int, number: int) -> bytes:
        if number % 2:
            return bytes(atheris.Mutate(data, most))
        return mutated(data, random.Random(number), fuzzer.seeds)[:most]

    arguments = [f"-runs={count}", f"-seed={seed + 1}", f"-max_len={MOST_BYTES}", "-timeout=5"]
    atheris.Setup([sys.argv[0], *arguments, str(corpus)], try_input, custom_mutator=change)
    atheris.Fuzz()
    return 0
