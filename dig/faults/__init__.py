"""Known causes: faults that are injected into runs, and what they lead to.

- `inject`: what a fault is, the catalogue of kinds, and how they are put into a run.
- `truth`: what a fault led to, step by step: the run is compared with its twin without the fault.
- `benchmark`: sets of runs with known causes, and what answers, detectors and healing are worth.
"""

from .inject.catalogue import KINDS
from .inject.fault import Fault
from .inject.faulty_team import Injected
from .inject.game_day import GameDay, around
from .inject.run_pair import Played, play

__all__ = ["KINDS", "Fault", "GameDay", "Injected", "Played", "around", "play"]
