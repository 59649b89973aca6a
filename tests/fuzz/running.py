"""Hands hostile inputs to an entrance, one after the other, and looks what comes of it."""

from __future__ import annotations

import resource
import sys
import time
import traceback
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from .entrances import ENTRANCES
from .guarding import Watchman
from .inputs import hostile_input

WATCHMAN = Watchman()


class Fault(NamedTuple):
    """An input that broke a promise, and how."""

    data: bytes
    what: str


class Fuzzer:
    """Fuzzes one entrance.

    Attributes:
        accepted: How many inputs were taken for valid ones.
        slowest_s: How long the slowest took.
    """

    def __init__(self, entrance: str, folder: Path, seed: int = 0) -> None:
        """Make the entrance ready, in a folder of its own; every valid input is tried once."""
        self._folder = folder
        self._seed = seed
        self._entrance = ENTRANCES[entrance](folder)
        self.seeds = self._entrance.seeds
        for data in self.seeds:
            self._entrance.take(data)
        self.accepted = 0
        self.slowest_s = 0.0

    def try_number(self, number: int) -> Fault | None:
        """Try an input by its number; what was wrong, if anything was."""
        return self.try_input(hostile_input(self.seeds, self._seed, number))

    def try_input(self, data: bytes) -> Fault | None:
        """Try an input; what was wrong, if anything was."""
        began = time.perf_counter()
        try:
            with WATCHMAN.watching(self._folder):
                self.accepted += self._entrance.take(data)
        except Exception:
            return Fault(data, traceback.format_exc(limit=-6))
        finally:
            self.slowest_s = max(self.slowest_s, time.perf_counter() - began)
        return None

    def keep(self, fault: Fault, folder: Path) -> Path:
        """Write a failing input to a file."""
        folder.mkdir(exist_ok=True)
        path = folder / f"fuzz-{sha256(fault.data).hexdigest()[:12]}"
        path.write_bytes(fault.data)
        return path

    def close(self) -> None:
        """Let go of everything."""
        self._entrance.close()


def hold_promises(entrance: str, folder: Path) -> None:
    """Try some inputs: only documented errors, soon, nothing carried out, and some still pass."""
    fuzzer = Fuzzer(entrance, folder, seed=7)
    try:
        faults = [fault for number in range(150) if (fault := fuzzer.try_number(number))]
    finally:
        fuzzer.close()
    assert not faults, faults[0].what
    assert 0 < fuzzer.accepted < 150


def memory_mib() -> float:
    """The most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
