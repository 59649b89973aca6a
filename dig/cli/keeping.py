"""The options that say what is kept of a run, and how safely."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dig.errors import SettingsError

if TYPE_CHECKING:
    from dig.traces.journal.journal import Keeping as Promised


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
    segment_size: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="How large the trace's file becomes before a next one is begun: 64MiB; 0: never.",
        ),
    ] = "256MiB"

    def promised(self) -> Promised:
        """How the run is kept.

        Raises:
            SettingsError: The size is none.
        """
        from dig.traces.journal.journal import Keeping as Promised

        return Promised(self.durability.value, self.disk_full.value, _bytes(self.segment_size))


def _bytes(size: str) -> int | None:
    """How many bytes a size is; ``None``: there is no limit."""
    from pydantic import ByteSize, TypeAdapter, ValidationError

    try:
        return int(TypeAdapter(ByteSize).validate_python(size)) or None
    except ValidationError:
        raise SettingsError(f"--segment-size: {size!r} is no size; try 64MiB, 1GiB or 0") from None
