"""The options that say what is kept of a run, and how safely."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Level(StrEnum):
    """A level of durability."""

    process = "process"
    effects = "effects"
    power = "power"


class DiskFull(StrEnum):
    """What happens when a record does not fit on the disk."""

    stop = "stop"
    continue_ = "continue"


@dataclass(frozen=True)
class Keeping:
    """Where a run's directory is made, and what its journal promises."""

    runs: Annotated[Path, typer.Option(help="Where run directories are made.")] = Path("runs")
    durability: Annotated[
        Level, typer.Option(help="What survives more than a crash of this process.")
    ] = Level.process
    disk_full: Annotated[
        DiskFull, typer.Option(help="Whether to go on without a journal if the disk is full.")
    ] = DiskFull.stop
