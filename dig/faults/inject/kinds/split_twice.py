"""An agent hands the parts of a problem out twice."""

from __future__ import annotations

from dig.faults.inject.injector import Moment, OnTurn, pieces
from dig.runtime.agents import Decision, View


class SplitTwice(OnTurn):
    """Each part once more, as another event, to the agent after the one that has it."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """The same with the parts once more."""
        parts = pieces(decision)
        if not parts:
            return decision
        names = view.others or view.team
        again = [
            part.model_copy(update={"to": [_after(names, name) for name in part.to]})
            for part in parts
        ]
        moment.tell(f"handed {len(parts)} parts out twice", output=again[0])
        return decision.model_copy(update={"outputs": [*decision.outputs, *again]})


def _after(names: tuple[str, ...], name: str) -> str:
    """The next agent in turn."""
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]
