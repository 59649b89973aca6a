"""A wrapped team of plain functions that fails, and entries that make and run it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

import dig


async def entry(
    runs: Path | None = None, *, price: Any = 0, is_right: bool = True,
    stateless: tuple[str, ...] = ("prices", "postage"),
) -> Path | None:  # fmt: skip
    """A clerk asks for a price, and gives an offer; without a price it fails, unless it is told."""
    team: dict[str, Any] = {}

    async def clerk(thing: str) -> str:
        price = await team["prices"](thing)
        price = 5 if dig.notes() else price + await team["postage"](thing)
        if price <= 0:
            raise ValueError("no price")
        return f"{thing} for {price}"

    async def prices(thing: str) -> Any:
        return price

    async def postage(thing: str) -> int:
        return 0 if is_right else 1

    team.update(clerk=clerk, prices=prices, postage=postage)
    dig.wrap(team, journal=runs, stateless=stateless)
    try:
        print("the entry says", await team["clerk"]("lamp" if is_right else "chair"))
    except ValueError as error:
        print("the entry failed", error)
    directory = dig.session_of(team).directory
    dig.unwrap(team)
    return directory


async def other() -> None:
    """The same team, asked something else."""
    await entry(is_right=False)


async def mended() -> None:
    """The same team, whose prices are known by now."""
    await entry(price=7)


async def undeclared(runs: Path | None = None) -> Path | None:
    """The same team; nobody says which agents keep nothing between calls."""
    return await entry(runs, stateless=())


async def nothing() -> None:
    """Wraps no team."""


def failed(folder: Path, make: Any = entry) -> Path:
    """A run of the team that fails, since it gets no price."""
    directory: Path | None = anyio.run(make, folder)
    assert directory is not None
    return directory
