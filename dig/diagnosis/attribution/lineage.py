"""The way from a cause to the end of a run, by lineage."""

from __future__ import annotations

from dig.traces.run import RecordedRun


def chain(run: RecordedRun, activation: str) -> list[str]:
    """Return a path of activations by lineage, from an activation to the last descendant.

    Args:
        run: The run.
        activation: The first activation.
    """
    before: dict[str, str] = {}
    for act in run.activations.values():
        generators = [run.events[event].by for event in act.inputs]
        by = next((by for by in reversed(generators) if by in before or by == activation), None)
        if by is not None and act.id != activation:
            before[act.id] = by
    # Activations stand in the order of their start, so the last one found is the latest descendant.
    path = [next(reversed(before), activation)]
    while path[-1] in before:
        path.append(before[path[-1]])
    return path[::-1]
