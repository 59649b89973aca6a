"""A planner that answers with the first of two results: the monitor says what it left behind.

python examples/start.py; digmon check runs
"""

import asyncio  # noqa: TID251 (as most teams do)
from typing import Any

import dig


def trip() -> dict[str, Any]:
    """Three agents by name; they call each other through this dict."""

    async def planner(question: str) -> str:
        asked = {asyncio.create_task(team[name](question)) for name in ("flights", "hotels")}
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        return ", ".join(task.result() for task in done)

    async def flights(question: str) -> str:
        await asyncio.sleep(0.1)
        return "a flight at 9:40"

    async def hotels(question: str) -> str:
        await asyncio.sleep(0.5)
        return "a room with a view"

    team = {"planner": planner, "flights": flights, "hotels": hotels}
    return team


async def main() -> None:
    team = dig.wrap(trip(), journal="runs")
    print(await team["planner"]("Rome, in May"))
    await asyncio.sleep(1)
    dig.unwrap(team)


if __name__ == "__main__":
    asyncio.run(main())
