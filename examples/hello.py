"""Three agents of your own as plain async functions, a problem, a run, the findings.

    python examples/hello.py

Ada splits a problem between Bob and Cyd, and submits as soon as the first part comes back. The
monitor finds that (ET, early termination) and sends her answer back with a note; she waits for
the rest, and the run ends with the whole answer.
"""

from typing import Any

import anyio

import dig
from dig.runtime import Decision, NewEvent, View


async def ada(view: View) -> Decision:
    """Splits a problem in two; submits the sum of what she has, or waits if a note is new."""
    if view.events[0].type == "problem":
        low, high = view.events[0].payload
        half = (low + high) // 2
        parts = {"bob": [low, half], "cyd": [half, high]}
        return Decision.respond(
            view, *(NewEvent(payload=part, to=[who], type="part") for who, part in parts.items())
        )
    if view.events[-1].notes:
        return Decision.wait()
    return Decision.submit(view, sum(event.payload for event in view.events))


async def bob(view: View) -> Decision:
    """Sums a range of numbers."""
    low, high = view.events[0].payload
    return Decision.respond(view, NewEvent(payload=sum(range(low, high)), to=["ada"]))


async def cyd(view: View) -> Decision:
    """Does the same as Bob, but takes her time."""
    await anyio.sleep(0.1)
    return await bob(view)


def main() -> Any:
    """Run the team once and tell what happened."""
    result = dig.run({"ada": ada, "bob": bob, "cyd": cyd}, [0, 1000])
    print(f"{result.outcome}: {result.answer}")
    for finding in result.findings:
        print(finding.pattern, finding.subject, finding.evidence)
    return result.answer


if __name__ == "__main__":
    main()
