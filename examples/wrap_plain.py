"""A team of plain async functions, monitored: a message is passed round, an answer is early.

    python examples/wrap_plain.py [DIRECTORY]

A shop's desk asks two departments. Refunds and billing each believe that the other is responsible,
and the desk answers as soon as it has one part of its answer. No model is called: the agents are
scripted, and so are their failures. They are run twice: observed, then healed.
"""

import sys
import tempfile
from typing import Any

import anyio

import dig
from dig.detectors.policy import HEAL_ALL


def shop(tasks: anyio.abc.TaskGroup) -> dict[str, Any]:
    """The agents by name; they call each other through this dict."""
    team: dict[str, Any] = {}

    async def desk(question: str) -> str:
        if not dig.notes():
            tasks.start_soon(ask, "shipping", f"where is it: {question}")
            tasks.start_soon(ask, "refunds", f"is it paid: {question}")
        await (complete if dig.notes() else first).wait()  # the rest is under way already
        return ", ".join(sorted(parts))

    async def ask(department: str, question: str) -> None:
        parts.append(await team[department](question))
        (complete if first.is_set() else first).set()

    async def shipping(question: str) -> str:
        return "it is on its way"

    async def refunds(question: str) -> str:
        await anyio.sleep(0.01)
        return "it is paid back" if dig.notes() else await team["billing"](question)

    async def billing(question: str) -> str:
        await anyio.sleep(0.01)
        if dig.notes() or len(passed) == 2:
            return "it is paid"
        passed.append(question)
        return await team["refunds"](question)

    first, complete = anyio.Event(), anyio.Event()
    parts: list[str] = []
    passed: list[str] = []
    team.update(desk=desk, shipping=shipping, refunds=refunds, billing=billing)
    return team


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the team works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


async def ask(mode: Any, runs: str, **options: Any) -> str:
    """Ask the shop one question, and say what the monitor has seen and done."""
    print(f"{mode}:")
    async with anyio.create_task_group() as tasks:
        team = dig.wrap(shop(tasks), mode=mode, journal=runs, on_finding=tell, **options)
        answer: str = await team["desk"]("parcel 7")
    session = dig.session_of(team)
    dig.unwrap(team)
    print(f"  answer: {answer}")
    print(f"  healed: {session.result().heals or 'nothing'}")
    print(f"  trace and result: {session.directory}")
    print(f"  why, and the graph: digmon check {session.directory}\n")
    return answer


async def main(runs: str) -> list[str]:
    """Observe, then heal; returns both answers."""
    # Both findings are warnings, which are healed by notes alone unless a policy wants more.
    healing = {"allow": {"bounce"}, "policy": HEAL_ALL}
    return [await ask("observe", runs), await ask("heal", runs, **healing)]


if __name__ == "__main__":
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-"))
