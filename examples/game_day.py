"""A game day: a fault is put round one agent of a team, to see whether the team stands it.

    python examples/game_day.py [DIRECTORY]

A desk asks two departments, and is patient for a while. That is long enough, until the refunds
department stalls: then the desk answers with what it has. The monitor finds it (ET), and where it
may heal, the desk gets its answer back and waits for the rest. No model is called.
"""

import sys
import tempfile
from typing import Any

import anyio

import dig
from dig.detectors.policy import HEAL_ALL
from dig.faults import Fault, around

PATIENCE_S = 0.2


def shop(tasks: anyio.abc.TaskGroup) -> dict[str, Any]:
    """The agents by name; they call each other through this dict."""
    team: dict[str, Any] = {}

    async def desk(question: str) -> str:
        if not dig.notes():
            tasks.start_soon(ask, "shipping", f"where is it: {question}")
            tasks.start_soon(ask, "refunds", f"is it paid: {question}")
        with anyio.move_on_after(5 if dig.notes() else PATIENCE_S):
            await complete.wait()
        return ", ".join(sorted(parts))

    async def ask(department: str, question: str) -> None:
        parts.append(await team[department](question))
        if len(parts) == 2:
            complete.set()

    async def shipping(question: str) -> str:
        return "it is on its way"

    async def refunds(question: str) -> str:
        return "it is paid back"

    complete = anyio.Event()
    parts: list[str] = []
    team.update(desk=desk, shipping=shipping, refunds=refunds)
    return team


async def ask(mode: Any, runs: str, faults: list[Fault]) -> str:
    """Ask the shop one question, with faults around it, and say what was seen and done."""
    print(f"{mode}, {len(faults)} fault{'s' * (len(faults) != 1)}:")
    async with anyio.create_task_group() as tasks:
        team = shop(tasks)
        with around(team, faults, seed=1) as day:
            dig.wrap(team, mode=mode, journal=runs, allow={"bounce"}, policy=HEAL_ALL)
            answer: str = await team["desk"]("parcel 7")
            session = dig.session_of(team)
            for act in day.acts:
                print(f"  injected at {act.ts:.2f} s: {act.agent}: {act.what}")
            for finding in session.findings:
                print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")
            dig.unwrap(team)
    print(f"  answer: {answer}")
    print(f"  healed: {session.result().heals or 'nothing'}; see {session.directory}\n")
    return answer


async def main(runs: str) -> list[str]:
    """Without the fault, with it, and with it healed; returns the answers."""
    stall = Fault(kind="stall", target="refunds", parameters={"seconds": 1.0})
    return [
        await ask("observe", runs, []),
        await ask("observe", runs, [stall]),
        await ask("heal", runs, [stall]),
    ]


if __name__ == "__main__":
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="game-day-"))
