"""The smallest use of the monitor without our bus: your loop, your agents, its decisions.

    python examples/monitor_only.py

A monitor is one synchronous object. You tell it what happens (`inject`, `start`, `end`), it tells
you what to do (effects). Nothing reaches an agent before the monitor has released it.
"""

import time

from dig import Fate, Monitor, Output
from dig.detectors import standard, standard_healers
from dig.graph.codec import encode
from dig.monitor.messages import Answered, Effect, Raised, Started, Wake


def main() -> list[str]:
    """Run one agent that answers with an echo; return the lines of the trace."""
    trace: list[str] = []
    began = time.monotonic()
    monitor = Monitor(
        ["echo"],
        clock=lambda: time.monotonic() - began,
        detectors=standard(),
        healers=standard_healers(),
        sink=lambda record: trace.append(encode(record)),
    )
    todo: list[Effect] = monitor.inject(Output("hello", to=("echo",), type="problem"))
    while todo:
        match todo.pop(0):
            case Wake(agent):
                todo += monitor.start(agent)
            case Started(activation, _, events):
                fates = [Fate(event.id, "consume") for event in events]
                todo += monitor.end(activation, fates, [Output(events[0].payload, final=True)])
            case Raised(finding):
                print("found:", finding.pattern, finding.subject)
            case Answered(_, payload):
                print("answer:", payload)
    monitor.finish("submitted")
    return trace


if __name__ == "__main__":
    print("\n".join(main()))
