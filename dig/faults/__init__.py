"""Known causes: faults that are injected into runs.

- `inject`: faults, the catalogue of their kinds, and how they are put into a run.
"""

from .inject.fault import Fault
from .inject.fault_catalogue import KINDS
from .inject.faulty_team import FaultyTeam
from .inject.game_day import GameDay, around

__all__ = ["KINDS", "Fault", "FaultyTeam", "GameDay", "around"]
