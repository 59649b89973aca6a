"""A team of three plain functions fails; why is found by running it again from its journal.

    python examples/wrap_served.py DIRECTORY
    cd examples && digmon why DIRECTORY/RUN --try --entry wrap_served:run

A desk asks the stock and a carrier. The carrier's service was down while the run was recorded, so
the request failed. In a replay, both answer what they had answered; if the carrier is asked once
more instead, the request succeeds. No model is called.
"""

import sys
import tempfile
from typing import Any

import anyio

import dig


def shop(*, carrier_is_up: bool) -> dict[str, Any]:
    """The agents by name; they call each other through this dict."""
    team: dict[str, Any] = {}

    async def desk(parcel: str) -> str:
        stock = await team["stock"](parcel)
        date = await team["carrier"](stock["town"])
        return f"{parcel} leaves {stock['town']} on {date}"

    async def stock(parcel: str) -> dict[str, Any]:
        return {"parcel": parcel, "town": "Ulm"}

    async def carrier(town: str) -> str:
        if not carrier_is_up:
            raise ConnectionError(f"no answer from the carrier in {town}")
        return "Friday"

    team.update(desk=desk, stock=stock, carrier=carrier)
    return team


async def run(runs: str | None = None, *, carrier_is_up: bool = True) -> Any:
    """Make the team, and ask it one question; gives the run directory."""
    team = shop(carrier_is_up=carrier_is_up)
    dig.wrap(team, journal=runs, stateless={"stock", "carrier"})
    try:
        print(await team["desk"]("parcel 7"))
    except ConnectionError as error:
        print(f"failed: {error}")
    directory = dig.session_of(team).directory
    dig.unwrap(team)
    return directory


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-")
    print(anyio.run(lambda: run(folder, carrier_is_up=False)))
